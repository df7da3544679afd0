"""What lies beside a target while it is written, by its name, and what of it a killed writer left there."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# NEW may go when its writer has ended; OLD is an earlier folder that may be the only copy there is.
NEW, OLD = "new", "old"
_NAME = re.compile(
    r"\.(?P<label>.+)\.graphfield-(?P<kind>new|old)-(?P<host>[0-9a-f]{8})-(?P<pid>[1-9]\d*)-[0-9a-f]{8}",
    re.DOTALL,
)
_MOST_BYTES = 180  # of a target's name in the name beside it; file systems allow 255 for all of it
_DAY = 86_400.0
_PATIENCE, _PAUSE = 2.0, 0.02  # seconds that a reader waits between two moves of a writer
_BEING_WRITTEN: set[str] = set()  # names beside targets that this process is at


@dataclass(frozen=True)
class Leftover:
    """Something beside a target, and who wrote it."""

    path: Path
    kind: str
    host: str
    pid: int

    def writer_is_gone(self) -> bool:
        """Its process has ended or, where that cannot be seen from here, nothing happened for a day."""
        if self.host == _host() and self.pid == os.getpid():  # ours, or an earlier one with that number
            return self.path.name not in _BEING_WRITTEN
        if self.host == _host() and os.name == "posix":
            return not _runs(self.pid)
        return time.time() - self.changed() > _DAY

    def changed(self) -> float:
        try:
            return self.path.lstat().st_mtime
        except OSError:  # gone meanwhile
            return time.time()


def is_leftover(name: str) -> bool:
    """Whether a file of this name is something beside a target."""
    return _NAME.fullmatch(name) is not None


def clear_leftovers(target: Path) -> None:
    """Remove what killed writers of this target left beside it, and nothing else."""
    restore(target)
    for each in _leftovers(target):
        if each.writer_is_gone() and (each.kind == NEW or target.exists()):
            _remove(each.path)


def restore(path: str | Path) -> None:
    """Put a folder back whose writer was killed between two moves; for readers too.

    That can only be where two folders cannot change places in one move (``moves.exchange``). Between the
    two moves of a writer that goes on, this waits.
    """
    target = Path(os.path.realpath(path))
    until = time.monotonic() + _PATIENCE
    while not os.path.lexists(target):
        copies = [each for each in _leftovers(target) if each.kind == OLD]
        left = [each for each in copies if each.writer_is_gone()]
        if left:
            with suppress(OSError):  # another reader was faster, or we may not write here
                os.rename(max(left, key=Leftover.changed).path, target)
        if left or not copies or time.monotonic() > until:
            return
        time.sleep(_PAUSE)


@contextmanager
def beside(target: Path, kind: str = NEW) -> Iterator[Path]:
    """A free path beside the target for as long as the block lasts; what is NEW there goes with its end."""
    writer = f"{_host()}-{os.getpid()}-{os.urandom(4).hex()}"
    path = target.with_name(f".{_label(target)}.graphfield-{kind}-{writer}")
    _BEING_WRITTEN.add(path.name)
    try:
        yield path
    finally:
        if kind == NEW:
            _remove(path)
        _BEING_WRITTEN.discard(path.name)


def _leftovers(target: Path) -> list[Leftover]:
    try:
        names = os.listdir(target.parent)
    except OSError:  # nothing there yet, or not for us to see
        return []
    found = [match for match in map(_NAME.fullmatch, names) if match and match["label"] == _label(target)]
    return [Leftover(target.parent / m[0], m["kind"], m["host"], int(m["pid"])) for m in found]


def _label(target: Path) -> str:
    name = os.fsencode(target.name)
    if len(name) <= _MOST_BYTES:
        return target.name
    return f"{name[:_MOST_BYTES].decode(errors='ignore')}~{hashlib.sha256(name).hexdigest()[:8]}"


@cache
def _host() -> str:
    """This machine and its numbering of processes, of which every container has its own."""
    try:
        numbering = os.readlink("/proc/self/ns/pid")
    except OSError:
        numbering = ""
    return hashlib.sha256(f"{platform.node()} {numbering}".encode()).hexdigest()[:8]


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # signal 0 is none: it only asks
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # a process of somebody else
        return True
    return True


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
