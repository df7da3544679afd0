"""How many cores this process may use, and work that is spread over them.

Nearly everything here runs in threads of this process: NumPy and torch let go of the interpreter while they
compute. Many small steps in Python do not: :func:`in_processes` is for those.
A thread waits asleep, so programs that share the cores do not stand in each other's way; the thread pools of
BLAS and OpenMP wait awake, and two fits on the same cores then take ten times as long as one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import joblib

Item = TypeVar("Item")
Result = TypeVar("Result")
# Seconds of work for which other processes are worth starting.
_WORTH = 30.0


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
    workers = min(len(items), core_count())
    if workers < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


def in_processes(
    function: Callable[[Item], Result], items: Iterable[Item], *, sure: bool = False, ordered: bool = True
) -> Iterator[Result]:
    """``function`` of each item, in processes that compute with one thread each.

    They come in the order of the items, or, not ``ordered``, as they are finished.

    ``function`` and the items are copied to these. To start them takes seconds: the first item is done here,
    and so are the others where that tells that all of it is quick; not where one is ``sure`` that it is not.

    >>> list(in_processes(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    items = list(items)
    start = time.perf_counter()
    yield from map(function, items[:1])
    seconds, left = time.perf_counter() - start, items[1:]
    workers = min(len(left), core_count())
    if workers < 2 or (seconds * len(left) < _WORTH and not sure):
        yield from map(function, left)
        return
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        pool = joblib.Parallel(n_jobs=workers, return_as="generator" if ordered else "generator_unordered")
        yield from pool(joblib.delayed(function)(item) for item in left)


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
