"""torch with one thread per operation, while our own threads share the cores."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from graphfield.cores import side_by_side

Item = TypeVar("Item")
Result = TypeVar("Result")

_lock = threading.Lock()
_users = 0  # blocks that are being carried out, in all threads
_before = 1  # what the user has set
_own = threading.local()  # .owed: what a thread has still to get back


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Operations of torch on the CPU run on the thread that calls them; also a decorator.

    Splitting a small operation between cores gains little and makes its rounding depend on their number;
    and its idle threads wait awake, so that two programs on the same cores stand still. Larger pieces of
    work go through :func:`spread`. What the user has set comes back at the end; where several threads of the
    user fit at once, at the end of the last, as torch has one setting for all threads to come.
    """
    global _users, _before
    with _lock:
        if _users == 0:
            _before = getattr(_own, "owed", None) or torch.get_num_threads()
        _users += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            _own.owed = _before if _users else None
            if _users == 0:
                torch.set_num_threads(_before)


def spread(function: Callable[[Item], Result], items: Iterable[Item], device: torch.device) -> list[Result]:
    """:func:`~graphfield.cores.side_by_side` for work of torch without gradients.

    A GPU gets one item after the other: it is busy anyway, and not all of CUDA may be called from several
    threads.
    """

    def alone(item: Item) -> Result:
        # Both are a matter of each thread; a new one would take all cores for a product.
        with one_thread_each(), torch.no_grad():
            return function(item)

    with one_thread_each():
        return side_by_side(alone, items) if device.type == "cpu" else [alone(item) for item in items]
