"""How many rows are computed with at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from graphfield.data.nodes import NodeScaler

# A network is evaluated in blocks of one fixed size, so one z costs as much as a block: so many entries of
# coefficients, which stay near the processor (2.5 MB), and at most so many rows. With many nodes the time
# goes into reading the weights, which a block does once: at least so many rows, but no more than 64 MB.
_EVALUATION_ENTRIES, _MOST_ENTRIES = 640_000, 16_000_000
_LEAST_ROWS, _MOST_ROWS = 16, 256
# Entries that stay in a processor's cache while they are worked on.
_CACHE_ENTRIES = 250_000
# Entries of matrices that are worked on by stripes, which stay in the cache.
_PAIR_ENTRIES = 8_000_000
# Entries of fitted values that are joined before something is done to all of them: 16 MB.
_JOINED_ENTRIES = 2_000_000

# Positions of some rows, and values there.
Part = tuple[slice | NDArray[np.intp], NDArray[np.float64]]


def evaluation_rows(n_nodes: int) -> int:
    """Rows of the fixed-size blocks in which a network is evaluated.

    >>> evaluation_rows(50), evaluation_rows(268), evaluation_rows(1000)
    (256, 16, 16)
    """
    rows = min(max(_EVALUATION_ENTRIES // n_nodes**2, _LEAST_ROWS), _MOST_ROWS)
    return min(rows, max(1, _MOST_ENTRIES // n_nodes**2))


def rows_within(n_bytes: int, n_nodes: int) -> int:
    """Rows of float32 coefficients that take ``n_bytes``: whole evaluation blocks where one fits."""
    rows = max(1, n_bytes // (4 * n_nodes**2))
    block = evaluation_rows(n_nodes)
    return rows - rows % block if rows > block else rows


def slices(n_rows: int, step: int) -> Iterator[slice]:
    """Consecutive rows, ``step`` at a time.

    >>> list(slices(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def cache_slices(n_rows: int, n_nodes: int) -> Iterator[slice]:
    """Consecutive matrices, few enough that an operation on them does not leave the cache."""
    return slices(n_rows, max(1, _CACHE_ENTRIES // n_nodes**2))


def pair_slices(n_rows: int, n_nodes: int) -> Iterator[slice]:
    """Consecutive matrices: as many as stay in the cache, or a few more of 32 MB where these are very few."""
    few = min(32, _PAIR_ENTRIES // n_nodes**2)
    return slices(n_rows, max(1, _CACHE_ENTRIES // n_nodes**2, few))


def joined_parts(parts: Iterable[Part]) -> Iterator[Part]:
    """The same positions and values in fewer, larger parts: work by columns is slow on a few rows."""
    rows: list[NDArray[np.intp]] = []
    values: list[NDArray[np.float64]] = []
    size = 0
    for where, part in parts:
        rows.append(np.arange(where.start, where.stop) if isinstance(where, slice) else where)
        values.append(part)
        size += part.size
        if size >= _JOINED_ENTRIES:
            yield np.concatenate(rows), np.concatenate(values)
            rows, values, size = [], [], 0
    if rows:
        yield np.concatenate(rows), np.concatenate(values)


def mean_r2(values: NDArray, parts: Iterable[Part]) -> float:
    """Mean over nodes of the R^2 of fitted values that come in parts."""
    left = np.zeros(values.shape[1])
    for rows, fitted in parts:
        left += np.square(values[rows] - fitted).mean(axis=0) * (len(fitted) / len(values))
    variance = NodeScaler.learn(values, center=True, scale=True).scale ** 2
    # A node that never changes is explained in full or not at all, as in scikit-learn's r2_score.
    share = np.divide(left, variance, out=(left > 0).astype(np.float64), where=variance > 0)
    return float(np.mean(1 - share))
