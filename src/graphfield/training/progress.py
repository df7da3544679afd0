"""A progress bar on a terminal, silence elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int, str], None]
# A terminal has room for one bar: that of the work as a whole, not of its parts.
_TERMINAL = threading.Lock()


@contextmanager
def progress_bar(description: str | None, total: int, unit: str = "steps") -> Iterator[Advance]:
    """Yield ``advance(done, note)``. Draws on stderr, only when that is a terminal and there is a name.

    While a bar is drawn, others are silent.
    """
    if description is None or not sys.stderr.isatty() or not _TERMINAL.acquire(blocking=False):
        yield _silent
        return
    try:
        yield from _draw(description, total, unit)
    finally:
        _TERMINAL.release()


def _draw(description: str, total: int, unit: str) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed}}/{{task.total}} {unit}"),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total, note="")
        yield lambda done, note: bar.update(task, completed=done, note=note)


def _silent(done: int, note: str) -> None:
    """Not a terminal: nothing to draw."""
