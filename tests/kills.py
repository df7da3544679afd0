"""Work that dies at a chosen file operation, in forks of one process that has everything imported."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from graphfield.folders import moves

# Operations that change what is on the disk, as the interpreter announces them.
_EVENTS = {"open", "os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.truncate"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Outcome:
    """How a fork ended: "done", "killed", "failed" (with what it said) or "hung"."""

    kind: str
    operations: int
    said: str


class _Counter:
    """Counts operations on files under a folder; the process dies just before the one with its number."""

    def __init__(self, root: Path, last: int | None) -> None:
        self.root, self.last, self.count = os.path.realpath(root), last, 0

    def next(self, damage: Callable[[], None] | None = None) -> None:
        self.count += 1
        if self.count == self.last:
            if damage is not None:
                damage()
            os.kill(os.getpid(), signal.SIGKILL)

    def hear(self, event: str, arguments: tuple) -> None:
        if event not in _EVENTS or (event == "open" and not arguments[2] & _WRITING):
            return
        path = arguments[0]
        relative = isinstance(path, (str, bytes)) and not os.path.isabs(path)  # to a handle, as rmtree does
        if relative or (isinstance(path, (str, os.PathLike)) and str(path).startswith(self.root)):
            self.next()


def _arm(root: Path, last: int | None, *, exchange: bool) -> _Counter:
    counter = _Counter(root, last)
    sys.addaudithook(counter.hear)
    flush, call = os.fsync, moves._exchange_call()

    def flush_or_die(handle: int) -> None:
        def tear() -> None:  # a file that the kill caught half written
            if os.fstat(handle).st_size and not os.path.isdir(f"/proc/self/fd/{handle}"):
                os.truncate(handle, os.fstat(handle).st_size // 2)

        counter.next(tear)
        flush(handle)

    def exchange_or_die(first: bytes, second: bytes) -> int:
        counter.next()
        return call(first, second)

    os.fsync = flush_or_die
    moves._exchange_call = lambda: exchange_or_die if exchange and call is not None else None
    return counter


def in_fork(
    work: Callable[[], None],
    root: Path,
    last: int | None = None,
    *,
    exchange: bool = True,
    seconds: float = 120.0,
) -> Outcome:
    """Do the work in a fork that is killed at operation ``last`` on files under ``root``."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _child(work, root, last, exchange, writing)
    os.close(writing)
    status = _wait(pid, seconds)
    with os.fdopen(reading, "rb") as pipe:
        count, _, said = pipe.read().decode(errors="replace").partition("\n")
    if status is None:
        return Outcome("hung", 0, said)
    if os.WIFSIGNALED(status):
        return Outcome("killed", last or 0, said)
    return Outcome("failed" if os.WEXITSTATUS(status) else "done", int(count or 0), said)


def _child(work: Callable[[], None], root: Path, last: int | None, exchange: bool, writing: int) -> None:
    code, said = 0, ""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    counter = _arm(root, last, exchange=exchange)
    try:
        work()
    except BaseException:  # noqa: BLE001 - a fork must never go on with the work of its parent
        code, said = 1, traceback.format_exc()
    os.write(writing, f"{counter.count}\n{said[-4000:]}".encode())
    os._exit(code)


def _wait(pid: int, seconds: float) -> int | None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def files_under(root: Path) -> list[str]:
    """Every file and folder, hidden ones too."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))
