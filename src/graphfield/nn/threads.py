"""torch with one thread per operation, while our own threads share the cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from graphfield.cores import side_by_side

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Operations of torch on the CPU run on the thread that calls them; also a decorator.

    Splitting a small operation between cores gains little and makes its rounding depend on their number;
    and its idle threads wait awake, so that two programs on the same cores stand still. Larger pieces of
    work go through :func:`spread`. What the user has set comes back at the end.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def spread(function: Callable[[Item], Result], items: Iterable[Item], device: torch.device) -> list[Result]:
    """:func:`~graphfield.cores.side_by_side` for work of torch without gradients.

    A GPU gets one item after the other: it is busy anyway, and not all of CUDA may be called from several
    threads.
    """

    def alone(item: Item) -> Result:
        with one_thread_each(), torch.no_grad():
            return function(item)

    return side_by_side(alone, items) if device.type == "cpu" else [alone(item) for item in items]
