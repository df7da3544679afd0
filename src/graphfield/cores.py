"""How many cores this process may use, and work that is spread over them.

Nearly everything here runs in threads of this process: NumPy and torch let go of the interpreter while they
compute. Many small steps in Python do not: :func:`in_processes` is for those. Whole fits go to the workers
that the user has set up with ``joblib.parallel_config`` (a cluster of Dask or Ray), where there are any.
A thread waits asleep, so programs that share the cores do not stand in each other's way; the thread pools of
BLAS and OpenMP wait awake, and two fits on the same cores then take ten times as long as one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

import joblib

from graphfield.exceptions import TrainingError

Item = TypeVar("Item")
Result = TypeVar("Result")
# Seconds of work for which other processes are worth starting.
_WORTH = 30.0
# How joblib (loky) and Dask say that a worker is gone.
_DEATHS = ("TerminatedWorkerError", "KilledWorker", "BrokenProcessPool")
# Bytes for which a cluster sends an object once for all.
_LARGE = 10**6


def core_count() -> int:
    """Cores that this process may use.

    The affinity of the process and the CPU quota of its container count, as in joblib, and so does
    ``OMP_NUM_THREADS`` where it asks for fewer.
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    available = int(joblib.cpu_count())
    return min(available, int(wanted)) if wanted.isdecimal() and int(wanted) > 0 else available


def side_by_side(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """``[function(item) for item in items]``, on as many cores as there are.

    What an item gives must not depend on the others, so that results do not depend on the number of cores.

    >>> side_by_side(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    items = list(items)
    workers = min(len(items), core_count()) if len(items) > 1 else 1
    if workers < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


def offered_workers() -> int:
    """How many workers the user has set up with ``joblib.parallel_config``; 0 for none, and inside of one.

    >>> offered_workers()
    0
    >>> with joblib.parallel_config("threading", n_jobs=3):
    ...     offered_workers()
    3
    """
    found = int(joblib.effective_n_jobs(None))
    return found if found > 1 else 0


def in_processes(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    sure: bool = False,
    ordered: bool = True,
    most: int | None = None,
) -> Iterator[Result]:
    """``function`` of each item, in processes that compute with one thread each, or by the user's workers.

    They come in the order of the items, or, not ``ordered``, as they are finished; at most ``most`` at a
    time, by default as many as there are cores.

    ``function`` and the items are copied to the workers, ``function`` once to each. To start processes takes
    seconds: the first item is done here, and so are the others where that tells that all of it is quick; not
    where one is ``sure`` that it is not.

    >>> list(in_processes(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    items = list(items)
    return_as = "generator" if ordered else "generator_unordered"
    if offered_workers():
        yield from _ask_workers(_pool(return_as), function, items)
        return
    seconds = 0.0
    workers = min(len(items), core_count() if most is None else most)
    if not sure or workers < 2:
        start = time.perf_counter()
        yield from map(function, items[:1])
        seconds, items = time.perf_counter() - start, items[1:]
        workers = min(workers, len(items))
    if workers < 2 or (seconds * len(items) < _WORTH and not sure):
        yield from map(function, items)
        return
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        pool = joblib.Parallel(n_jobs=workers, return_as=return_as)
    yield from _ask_workers(pool, function, items)


def fit_side_by_side(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """:func:`side_by_side` for whole fits: by the user's workers, where there are any."""
    if offered_workers():
        return list(in_processes(function, items))
    return side_by_side(function, items)


class _Shared(Generic[Item, Result]):
    """A function with its table, which a cluster is to copy to each worker once and not with each item."""

    def __init__(self, function: Callable[[Item], Result]) -> None:
        self.function = function

    def __sizeof__(self) -> int:
        return _LARGE

    def __call__(self, item: Item) -> Result:
        with joblib.parallel_config("sequential"):  # a worker asks no others
            return self.function(item)


def _call(shared: _Shared[Item, Result], item: Item) -> Result:
    return shared(item)


def _pool(return_as: str) -> joblib.Parallel:
    """The user's; some can only give all results at the end."""
    try:
        return joblib.Parallel(return_as=return_as)
    except ValueError:
        return joblib.Parallel()


def _ask_workers(
    pool: joblib.Parallel, function: Callable[[Item], Result], items: list[Item]
) -> Iterator[Result]:
    shared = _Shared(function)
    try:
        yield from pool(joblib.delayed(_call)(shared, item) for item in items)
    except Exception as error:
        if type(error).__name__ not in _DEATHS:
            raise
        raise TrainingError(
            "A worker was killed, perhaps for want of memory. Use fewer workers, or some with more memory; "
            "where results go to a folder, what is finished is not done again."
        ) from error


def one_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items; each is made while the one before it is being used, where there is a second core."""
    if core_count() < 2:
        yield from items
        return
    missing = object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, missing)
        while (item := coming.result()) is not missing:
            coming = pool.submit(next, items, missing)
            yield item  # type: ignore[misc]
