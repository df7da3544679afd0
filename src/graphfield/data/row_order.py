"""An order of rows that is the same in whatever order they come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def value_order(*tables: Sequence[NDArray]) -> NDArray[np.intp]:
    """Positions of rows, sorted by the first table (a list of columns), where rows are alike by the next.

    What is drawn at random by position, such as folds, is then drawn alike in whatever order rows come. Rows
    are sorted by their ranks in the columns, added up, and by the squares of these. So neither units nor the
    order of columns matter, and what changes a value a little moves its row a little. Equal rows stay as they
    come.

    >>> age, nodes = np.array([60, 20, 20]), np.array([[1.0, 3.0], [4.0, 2.0], [2.0, 2.0]])
    >>> value_order([age], nodes.T).tolist()
    [2, 1, 0]
    """
    place = np.zeros(next(len(column) for table in tables for column in table), dtype=np.intp)
    for table in tables:
        place = _places(place, table)
    return np.argsort(place, kind="stable")


def _places(known: NDArray[np.intp], columns: Sequence[NDArray]) -> NDArray[np.intp]:
    """Places of rows that are sorted by their known ones, then by columns; those that are alike share one."""
    n = len(known)
    if known.max(initial=0) == n - 1 or not len(columns):
        return known
    words = np.random.default_rng(0).integers(2**63, size=len(columns), dtype=np.uint64)
    first, second = np.zeros((2, n), dtype=np.int64)
    exchanged = np.zeros(n, dtype=np.uint64)  # tells rows apart that have the same ranks in other columns
    short = known.astype(np.min_scalar_type(known.max()))  # numbers of 16 bits are sorted many times faster
    for word, column in zip(words, columns, strict=True):
        rank = _twice_ranks(short, column)
        first += rank
        second += rank**2
        exchanged += rank.astype(np.uint64) * word
    keys = (exchanged, second, first, known)
    order = np.lexsort(keys)
    places = np.empty(n, dtype=np.intp)
    places[order] = np.cumsum(_starts(order, keys)) - 1
    return places


def _twice_ranks(known: NDArray[np.integer], values: NDArray) -> NDArray[np.int64]:
    """Twice the mean rank of each row where they are sorted by known places, then by values."""
    order = np.argsort(values)
    order = order[np.argsort(known[order], kind="stable")]
    starts = np.flatnonzero(_starts(order, (values, known)))
    ends = np.append(starts[1:], len(order))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.repeat(starts + ends, ends - starts)
    return ranks


def _starts(order: NDArray[np.intp], keys: Sequence[NDArray]) -> NDArray[np.bool_]:
    """Whether each row of an order differs from the one before it in one of the keys."""
    differ = np.ones(len(order), dtype=bool)
    differ[1:] = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
    return differ
