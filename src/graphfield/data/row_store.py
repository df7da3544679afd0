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
# Rows far apart that are gathered at a time: each may bring in some hundred kB of a file.
GATHERED_ROWS = 200
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}

_bound: ContextVar[int | None] = ContextVar("bound", default=None)
# Of all bounds that hold now, in any thread: files are let go of by whoever looks at them.
_most_resident: list[float] = []
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
    token = _bound.set(bound)
    _most_resident.append(most)
    done = threading.Event()
    trimmer = threading.Thread(target=_trim, args=(done,), daemon=True)
    trimmer.start()
    try:
        yield
    finally:
        done.set()
        trimmer.join()
        _bound.reset(token)
        _most_resident.remove(most)


def allocate_rows(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """An array to be filled, rows first, which holds anything yet."""
    size, bound = prod(shape) * np.dtype(dtype).itemsize, _bound.get()
    if bound is None or size <= _ARRAY_SHARE * bound:
        return np.empty(shape, dtype=dtype)
    buffer = _scratch(size)
    _maps.add(buffer)
    return np.frombuffer(buffer, dtype=dtype, count=prod(shape)).reshape(shape)


def take_rows(values: NDArray, rows: NDArray[np.intp]) -> NDArray:
    """``values[rows]``, some at a time."""
    taken = allocate_rows((len(rows), *values.shape[1:]), values.dtype)
    for start in range(0, len(rows), GATHERED_ROWS):
        taken[start : start + GATHERED_ROWS] = values[rows[start : start + GATHERED_ROWS]]
        release_if_many()
    return taken


def followed_by(first: NDArray, second: NDArray) -> NDArray:
    """Both, one after the other."""
    kind = np.result_type(first, second)
    shape = (len(first) + len(second), *first.shape[1:])
    return np.concatenate([first, second], out=allocate_rows(shape, kind))


def is_bounded() -> bool:
    return _bound.get() is not None


def has_scratch_files() -> bool:
    """Whether some array of this process, of any thread, is in a file."""
    return len(_maps) > 0


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


def _trim(done: threading.Event) -> None:
    """Let go of the pages of scratch files whenever they are many, until it is done."""
    while not done.wait(_PAUSE):
        release_if_many()


def release_if_many() -> None:
    """Let go of the pages of scratch files where they are many, as after looking at rows far apart."""
    if _most_resident and resident_file_pages() > min(_most_resident) and hasattr(mmap, "MADV_DONTNEED"):
        for one in list(_maps):
            one.madvise(mmap.MADV_DONTNEED)
