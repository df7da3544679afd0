"""The processes of a ``torch.distributed`` group that share the work of a fit.

All of them have the same rows, seeds and parameters and go the same way; long sums over rows, and problems
that do not touch, are divided among them. What was divided is put together before anything is decided, so
that all decide alike. Without a group, outside of :func:`shared_work` and in threads beside the main one, a
process is alone: then nothing here does anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from graphfield.exceptions import DataError, GraphfieldError, ParameterError, TrainingError
from graphfield.messages import Message

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Processes:
    """How many there are, and which of them this one is."""

    rank: int = 0
    size: int = 1

    def own_part(self, count: int) -> slice:
        """Which of so many rows are this one's; the parts follow each other and are about equal.

        >>> [Processes(rank, 3).own_part(10) for rank in range(3)]
        [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
        """
        return _part(count, self.rank, self.size)

    def own_items(self, items: Sequence[Item]) -> Sequence[Item]:
        """Every ``size``-th of them."""
        return items[self.rank :: self.size]

    def add_up(self, *tensors: Tensor) -> None:
        """Each tensor becomes its sum over the processes, the same bits in all of them."""
        if self.size == 1:
            return
        alone = len(tensors) == 1
        whole = tensors[0] if alone else torch.cat([tensor.reshape(-1) for tensor in tensors])
        with _answered(self.size):
            dist.all_reduce(whole)
        if not alone:
            for tensor, part in zip(tensors, whole.split([one.numel() for one in tensors]), strict=True):
                tensor.copy_(part.view_as(tensor))

    def fill_rows(self, values: Tensor) -> None:
        """Each process has computed its own part of the rows; now all have all of them."""
        for rank in range(self.size if self.size > 1 else 0):
            self.copy_from(rank, values[_part(len(values), rank, self.size)])

    def copy_from(self, rank: int, *tensors: Tensor) -> None:
        """What one of the processes has there, in all of them; tensors are contiguous."""
        if self.size == 1:
            return
        with _answered(self.size):
            for tensor in tensors:
                if tensor.numel():
                    dist.broadcast(tensor, src=rank)

    def from_first(self, find: Callable[[], Result]) -> Result:
        """What the first process finds, or the error that it meets, for all of them."""
        if self.size == 1:
            return find()
        found: list[Any] = [None, None]
        if self.rank == 0:
            try:
                found[0] = find()
            except GraphfieldError as error:
                found[1] = error
        with _answered(self.size):
            dist.broadcast_object_list(found, src=0)
        if found[1] is not None:
            raise cast(GraphfieldError, found[1])
        return cast(Result, found[0])

    def gather(self, value: Item) -> list[Item]:
        """What each of them says, in order."""
        found: list[Any] = [value] * self.size
        if self.size > 1:
            with _answered(self.size):
                dist.all_gather_object(found, value)
        return found

    def only_first(self, text: str | None) -> str | None:
        """Only the first of them speaks."""
        return text if self.rank == 0 else None

    def check_same(self, fingerprint: Callable[[], str]) -> None:
        """Raise unless all processes were given the same rows and parameters."""
        if self.size == 1:
            return
        found = self.gather(fingerprint())
        others = [rank for rank, other in enumerate(found) if other != found[0]]
        if others:
            raise DataError(
                f"The {self.size} processes of a fit need the same rows, covariates and parameters, but "
                f"process {others[0]} has others than process 0. Read the whole table in each of "
                "them: rows are divided among them during the fit."
            ).about(argument="X")

    def check_device(self, device: str) -> None:
        """Raise unless tensors there can be sent to the other processes."""
        if self.size > 1 and device not in _known_devices():
            known = " and ".join(_known_devices())
            raise ParameterError.of(
                "device",
                f"is {device!r}, but the process group has a backend for {known} only. "
                "Begin it with torch.distributed.init_process_group('cpu:gloo,cuda:nccl').",
            )


ALONE = Processes()
_sharing: ContextVar[Processes] = ContextVar("sharing", default=ALONE)


def current() -> Processes:
    """Those that share the work of the moment."""
    return _sharing.get()


@contextmanager
def shared_work() -> Iterator[Processes]:
    """All processes of the group, where there is one, carry out what is inside together; also a decorator.

    Only on the main thread: those beside it may come to their sums in another order elsewhere.
    """
    is_main = threading.current_thread() is threading.main_thread()
    with _as(group() if is_main else ALONE) as processes:
        yield processes


@contextmanager
def _as(processes: Processes) -> Iterator[Processes]:
    token = _sharing.set(processes)
    try:
        yield processes
    finally:
        _sharing.reset(token)


def work_alone() -> Any:
    """Inside of it, this process does something that the others do not."""
    return _as(ALONE)


def group() -> Processes:
    """The processes of the group of this program, whether they share anything or not."""
    if not dist.is_available() or not dist.is_initialized():
        return ALONE
    return Processes(dist.get_rank(), dist.get_world_size())


def _part(count: int, rank: int, size: int) -> slice:
    return slice(count * rank // size, count * (rank + 1) // size)


def _known_devices() -> list[str]:
    """Kinds of devices for which the group has a backend."""
    return [one.split(":")[0] for one in dist.get_backend_config().split(",")]


@contextmanager
def _answered(size: int) -> Iterator[None]:
    """A process that is gone, or does not come, ends the others too, with advice."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            "One of the {size} processes of this fit ended or did not answer; if it said why, that is in its "
            "output. Start all of them again{resume}.",
            size=size,
            resume=Message(
                ", with checkpoint=FOLDER, and resume=True to go on where the fit was",
                code="resume-processes",
            ),
        ) from error
