"""Moves into place after which the old or the new is there, and their way to the disk."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

from graphfield.exceptions import OutputError
from graphfield.folders.leftovers import OLD, beside

_TRIES = 100  # at a folder that other writers keep moving
_OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST)
_NOT_OFFERED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EACCES)


def move_file(part: Path, target: Path, *, overwrite: bool) -> None:
    """Put a file in the place of another or, without ``overwrite``, of none."""
    if not overwrite:
        try:
            os.link(part, target)  # unlike a move, never onto a file that has appeared meanwhile
            return
        except FileExistsError:
            raise OutputError("{file} was written by another program just now.", file=target) from None
        except OSError as error:
            if error.errno not in _NOT_OFFERED:
                raise
    os.replace(part, target)


def move_folder(part: Path, target: Path, *, overwrite: bool) -> None:
    """Put a folder in the place of another, which is at ``part`` afterwards, or of none."""
    for _ in range(_TRIES):
        try:
            os.rename(part, target)  # onto nothing, or onto an empty folder
            return
        except OSError as error:
            if error.errno not in _OCCUPIED:
                raise
        with suppress(FileNotFoundError):  # another writer has moved it away
            if not overwrite and any(target.iterdir()):
                raise OutputError("{file} was written by another program just now.", file=target)
            if not exchange(part, target):
                _move_twice(part, target)
            return
    raise OutputError(
        "Cannot write {file}: other programs keep writing there. Choose another folder.", file=target
    )


def exchange(first: Path, second: Path) -> bool:
    """Let two folders change places in one move; False where system or file system do not offer that."""
    call = _exchange_call()
    if call is None:
        return False
    if call(os.fsencode(first), os.fsencode(second)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_OFFERED:
        return False
    raise OSError(number, os.strerror(number), str(second))


@cache
def _exchange_call() -> Callable[[bytes, bytes], int] | None:
    here, swap = -100, 2  # AT_FDCWD; RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
    if sys.platform not in ("linux", "darwin"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    text, number = ctypes.c_char_p, ctypes.c_int
    if hasattr(libc, "renameat2"):
        libc.renameat2.argtypes = (number, text, number, text, ctypes.c_uint)
        return lambda first, second: libc.renameat2(here, first, here, second, swap)
    if hasattr(libc, "renamex_np"):
        libc.renamex_np.argtypes = (text, text, ctypes.c_uint)
        return lambda first, second: libc.renamex_np(first, second, swap)
    return None


def _move_twice(part: Path, target: Path) -> None:
    """Without an exchange: between the moves the only copy is at a name that ``restore`` knows."""
    with beside(target, OLD) as old:
        os.rename(target, old)
        try:
            os.rename(part, target)
        except BaseException as error:
            _put_back(old, target)
            if isinstance(error, OSError) and error.errno in _OCCUPIED:  # a writer was faster: once more
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from error
            raise
        with suppress(OSError):
            os.rename(old, part)  # no longer the only copy: it goes with the name that is free now


def _put_back(old: Path, target: Path) -> None:
    try:
        os.rename(old, target)
    except OSError as error:
        if error.errno in _OCCUPIED:  # what another writer put there is newer
            with suppress(OSError), beside(target) as gone:
                os.rename(old, gone)


def keep_mode(part: Path, target: Path) -> None:
    """What replaces a file or folder may be read by the same people."""
    with suppress(FileNotFoundError, PermissionError):
        part.chmod(stat.S_IMODE(target.stat().st_mode))


def flush_file(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Moves reach the disk too; where a system does not offer that, they do so a little later."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
