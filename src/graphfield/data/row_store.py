"""Arrays with a line per row of a long table: in memory or, beyond a bound, in scratch files.

Scratch files have no name, so that nothing is left of them after a kill. They are mapped into memory: arrays
like any other, whose pages are read and written as they are used. While a bound holds, a thread lets go of
these pages whenever many are resident; what is in them stays in the file, and comes when it is asked for.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphfield.data.room import free_memory, resident_file_pages, size_text
from graphfield.exceptions import OutputError, ParameterError

# Of the bound: a table of which an estimator that holds its rows may take ten copies, and what one array may
# take before it goes to a file.
SHARE, _ARRAY_SHARE = 0.1, 0.02
# Of free memory: the bound where none is given.
_FREE_SHARE = 0.5
# Of the bound, or in bytes: pages of scratch files that may be resident. Seconds between two looks at them.
_RESIDENT_SHARE, _LEAST_RESIDENT, _PAUSE = 0.05, 2**24, 0.005
# Rows that are gathered at a time.
_ROWS_AT_A_TIME = 1_000
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}

_bound: ContextVar[int | None] = ContextVar("bound", default=None)
_most_resident: ContextVar[float] = ContextVar("most_resident", default=float("inf"))
_maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()


def memory_bound(memory: int | str | None) -> int:
    """Bytes that a user's ``memory`` stands for; None is half of what is free.

    >>> memory_bound("4GB"), memory_bound("1.5 MB"), memory_bound(1000)
    (4000000000, 1500000, 1000)
    """
    if memory is None:
        return int(_FREE_SHARE * free_memory())
    try:
        text = str(memory).strip().upper().replace("IB", "B")
        unit = next((unit for unit in _UNITS if text.endswith(unit)), "")
        size = int(float(text.removesuffix(unit).strip()) * _UNITS.get(unit, 1))
    except (ValueError, OverflowError):
        size = 0
    if size < 1:
        raise ParameterError.of("memory", f"must be a size such as '4GB' or '500MB', got {memory!r}.")
    return size


@contextmanager
def bounded_memory(bound: int) -> Iterator[None]:
    """Here, arrays that are long beside the bound (in bytes) go to scratch files."""
    most = resident_file_pages() + max(_LEAST_RESIDENT, _RESIDENT_SHARE * bound)
    tokens = _bound.set(bound), _most_resident.set(most)
    done = threading.Event()
    trimmer = threading.Thread(target=_trim, args=(done, most), daemon=True)
    trimmer.start()
    try:
        yield
    finally:
        done.set()
        trimmer.join()
        _bound.reset(tokens[0])
        _most_resident.reset(tokens[1])


def allocate_rows(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """An array to be filled, rows first, which holds anything yet."""
    size, bound = prod(shape) * np.dtype(dtype).itemsize, _bound.get()
    if bound is None or size <= _ARRAY_SHARE * bound:
        return np.empty(shape, dtype=dtype)
    buffer = _scratch(size)
    _maps.add(buffer)
    return np.frombuffer(buffer, dtype=dtype, count=prod(shape)).reshape(shape)


def take_rows(values: NDArray, rows: NDArray[np.intp]) -> NDArray:
    """``values[rows]``, some at a time: each may bring in many pages of a file."""
    taken = allocate_rows((len(rows), *values.shape[1:]), values.dtype)
    for start in range(0, len(rows), _ROWS_AT_A_TIME):
        taken[start : start + _ROWS_AT_A_TIME] = values[rows[start : start + _ROWS_AT_A_TIME]]
        _release_if_many()
    return taken


def followed_by(first: NDArray, second: NDArray) -> NDArray:
    """Both, one after the other."""
    kind = np.result_type(first, second)
    shape = (len(first) + len(second), *first.shape[1:])
    return np.concatenate([first, second], out=allocate_rows(shape, kind))


def is_bounded() -> bool:
    return _bound.get() is not None


def _scratch(size: int) -> mmap.mmap:
    """Room is made sure of now: a disk that is full later would end the process."""
    try:
        with tempfile.TemporaryFile(prefix="graphfield-") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            return mmap.mmap(file.fileno(), size)
    except OSError as error:
        raise OutputError(
            f"A scratch file of {size_text(size)} cannot be made in {tempfile.gettempdir()!r}: "
            f"{error.strerror or error}. Make room there, or name another folder in the environment variable "
            "TMPDIR."
        ).about(file=tempfile.gettempdir()) from error


def _trim(done: threading.Event, most: float) -> None:
    """Let go of the pages of scratch files whenever they are many, until it is done."""
    while not done.wait(_PAUSE):
        _release_if_many(most)


def _release_if_many(most: float | None = None) -> None:
    most = _most_resident.get() if most is None else most
    if resident_file_pages() > most and hasattr(mmap, "MADV_DONTNEED"):
        for one in list(_maps):
            one.madvise(mmap.MADV_DONTNEED)
