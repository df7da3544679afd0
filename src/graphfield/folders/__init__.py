"""The one writer of files and folders: beside their place first, then there in one move.

At every instant the old or the new is at the path, whole. A writer that is killed leaves something
beside it whose name tells the target, the host and the process; the next writer to that target clears
it. Nothing else is ever removed, and nothing that a process is still writing.

The folder that a target is to lie in must be there: one that is missing is most often a slip of the pen.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from graphfield.exceptions import OutputError
from graphfield.folders.leftovers import beside, clear_leftovers, is_leftover, restore
from graphfield.folders.moves import flush_file, flush_folder, keep_mode, move_file, move_folder
from graphfield.messages import Message

__all__ = [
    "already_exists",
    "check_file",
    "check_folder",
    "clear_leftovers",
    "holds_others",
    "make_folder",
    "open_file",
    "restore",
    "write_file",
    "write_folder",
]

OVERWRITE = Message("pass overwrite=True", code="overwrite")


@contextmanager
def open_file(path: str | Path, *, overwrite: bool) -> Iterator[IO[bytes]]:
    """A handle whose content takes the place of ``path`` when the block ends; an error leaves the old file.

    A link is followed, permissions of a file that is replaced are kept. What is no ordinary file (a pipe,
    ``/dev/stdout``) is written to directly.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_file(folder + "/graph.csv", overwrite=False) as file:
    ...         _ = file.write(b"source,target")
    ...     Path(folder, "graph.csv").read_text()
    'source,target'
    """
    with _name_in_errors(path):
        target = _refuse_file(path, overwrite=overwrite)
        if _is_stream(path):
            with Path(path).open("wb") as file:
                yield file
            return
        with beside(target) as part:
            with part.open("xb") as file:
                keep_mode(part, target)
                yield file
                flush_file(file)
            move_file(part, target, overwrite=overwrite)
        flush_folder(target.parent)


def write_file(path: str | Path, content: bytes, *, overwrite: bool) -> Path:
    """All of the content or nothing: an earlier file survives until the new one is on the disk."""
    with open_file(path, overwrite=overwrite) as file:
        file.write(content)
    return Path(path)


def write_folder(
    path: str | Path, files: Mapping[str, bytes] | Iterable[tuple[str, bytes]], *, overwrite: bool
) -> Path:
    """All of the files or none: an earlier folder survives until the new one is on the disk.

    They may be made one by one as they are written. A name with slashes is that of a file in a folder inside.
    With ``overwrite`` the earlier folder goes as a whole, with whatever it holds.
    """
    with _name_in_errors(path):
        target = _refuse_folder(path, overwrite=overwrite)
        with beside(target) as part:
            part.mkdir()
            keep_mode(part, target)
            folders = {part}
            for name, content in files.items() if isinstance(files, Mapping) else files:
                folders.add((part / name).parent)
                (part / name).parent.mkdir(parents=True, exist_ok=True)
                with (part / name).open("xb") as file:
                    file.write(content)
                    flush_file(file)
            for folder in folders:
                flush_folder(folder)
            move_folder(part, target, overwrite=overwrite)
            flush_folder(target.parent)  # before the old folder goes
    return Path(path)


def check_file(path: str | Path, *, overwrite: bool) -> None:
    """Say before the work that its result could not be written, or would replace a file."""
    with _name_in_errors(path):
        target = _refuse_file(path, overwrite=overwrite)
        if not _is_stream(path):
            _try_place(target)


def check_folder(path: str | Path, *, overwrite: bool) -> None:
    """Say before the work that its result could not be written, or would replace a folder."""
    with _name_in_errors(path):
        target = _refuse_folder(path, overwrite=overwrite)
        _refuse_protected(target)
        _try_place(target)


def make_folder(path: str | Path) -> Path:
    """A folder to write several things into, one after the other; it may be there."""
    with _name_in_errors(path):
        target = _real(path)
        _refuse_place(path, target)
        if target.exists() and not target.is_dir():
            raise OutputError("{file} is a file. Name a folder.", file=path)
        target.mkdir(exist_ok=True)
    return Path(path)


def holds_others(folder: Path) -> bool:
    """Whether a folder holds anything but what killed writers left in it."""
    return any(not is_leftover(entry.name) for entry in folder.iterdir())


def _try_place(target: Path) -> None:
    """Make and remove a folder beside the target."""
    clear_leftovers(target)
    with beside(target) as part:
        part.mkdir()


def _refuse_place(path: str | Path, target: Path) -> None:
    if not target.parent.is_dir():
        raise OutputError(
            f"Cannot write {path}: there is no folder {target.parent}. Make it first, or name another place."
        ).about(file=path)


def _refuse_file(path: str | Path, *, overwrite: bool) -> Path:
    target = _real(path)
    clear_leftovers(target)
    if os.path.isdir(path):
        raise OutputError("{file} is a folder. Name a file.", file=path)
    if os.path.exists(path) and not overwrite:
        raise OutputError(
            "{file} already exists. Choose another name or {overwrite}.", file=path, overwrite=OVERWRITE
        )
    if not _is_stream(path):
        _refuse_place(path, target)
    _refuse_protected(target)
    return target


def already_exists(folder: str | Path) -> OutputError:
    """What is said of a folder that must not be replaced."""
    return OutputError(
        "{file} already exists. Choose another folder, or {overwrite}.", file=folder, overwrite=OVERWRITE
    )


def _refuse_folder(path: str | Path, *, overwrite: bool) -> Path:
    target = _real(path)
    _refuse_place(path, target)
    clear_leftovers(target)
    with suppress(FileNotFoundError):  # one look: another writer may move it away between two
        if not stat.S_ISDIR(target.stat().st_mode):
            raise OutputError("{file} is a file. Name a folder.", file=path)
    if not overwrite and target.is_dir() and any(target.iterdir()):
        raise already_exists(path)
    if target.is_dir() and _is_around_us(target):
        raise OutputError(
            "{file} is the folder that this program runs in, or one above it. Name another.", file=path
        )
    return target


def _is_around_us(folder: Path) -> bool:
    """A shell or program whose folder is replaced finds itself in one that is gone."""
    try:
        return Path.cwd().is_relative_to(folder)
    except FileNotFoundError:  # ours is gone already
        return False


def _refuse_protected(target: Path) -> None:
    """A move asks for no permission to write to what it replaces."""
    if not os.access(target, os.W_OK) and target.exists():
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _is_stream(path: str | Path) -> bool:
    """Something that can be written to and not replaced; its real path may lead nowhere."""
    return os.path.exists(path) and not os.path.isfile(path)


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


@contextmanager
def _name_in_errors(path: str | Path) -> Iterator[None]:
    """A full disk, a folder that may not be written to and the like, as the error that users know."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"Cannot write {path}: {error.strerror or error}.").about(file=path) from error
