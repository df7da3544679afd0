"""Through many rows in bounded memory: rows with the same graph are computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from graphfield.fields.schema import Rows
from graphfield.fields.streaming import Part, cache_slices, rows_within, slices

# Bytes of weights held at a time.
CHUNK_BYTES = 64 * 2**20
# Rows with different graphs whose weights are kept while going through repeated rows.
_CACHE_BYTES = 256 * 2**20

T = TypeVar("T")


def rows_at_a_time(n_nodes: int) -> int:
    return rows_within(CHUNK_BYTES, n_nodes)


def is_worth_keeping(n_distinct: int, n_rows: int, n_nodes: int) -> bool:
    """Whether rows repeat, and what belongs to the distinct ones fits in memory while going through them."""
    return n_distinct < n_rows and 4 * n_nodes**2 * n_distinct <= _CACHE_BYTES


def parts_of(rows: Rows, step: int) -> Iterator[tuple[slice, Rows]]:
    """Consecutive rows, ``step`` at a time, and where they are."""
    for part in slices(len(rows), step):
        yield part, rows.between(part)


@dataclass(frozen=True)
class Group:
    """Some rows with different graphs; ``rows[i]`` are all rows that have the i-th of these.

    Where no graph is there twice, ``rows`` is one slice.
    """

    distinct: Rows
    rows: slice | list[NDArray[np.intp]]

    def fill(
        self, result: NDArray, function: Callable[..., NDArray], coef: NDArray, *scales: NDArray
    ) -> None:
        """Write ``function(coef, *scales)`` of the covariate values to all their rows of ``result``."""
        for part in cache_slices(len(coef), coef.shape[-1]):
            values = function(coef[part], *(scale[part] for scale in scales))
            if isinstance(self.rows, slice):
                result[self.rows][part] = values
                continue
            for rows, value in zip(self.rows[part], values, strict=True):
                result[rows] = value

    def regressions(self, values: NDArray, coef: NDArray, mean: NDArray, unit: NDArray) -> Iterator[Part]:
        """``mu + beta (x - mu)`` of the rows of this group, from what belongs to its covariate values.

        Coefficients are those of nodes divided by ``unit``.
        """
        if isinstance(self.rows, slice):
            left = (values[self.rows] - mean) / unit
            yield self.rows, mean + unit * np.einsum("bjk,bk->bj", coef, left)
            return
        for rows, B, mu, own in zip(self.rows, coef, mean, unit, strict=True):
            yield rows, mu + own * ((values[rows] - mu) / own @ B.T.astype(np.float64))


def groups_of(distinct: Rows, index: NDArray[np.intp], step: int) -> Iterator[Group]:
    """All rows, ``step`` of the distinct ones at a time; ``index`` says which of these each row is."""
    repeated = len(distinct) < len(index)
    order = np.argsort(index, kind="stable") if repeated else index
    ends = np.cumsum(np.bincount(index, minlength=len(distinct))) if repeated else index
    for rows, part in parts_of(distinct, step):
        if not repeated:
            yield Group(part, rows)
            continue
        first = ends[rows.start - 1] if rows.start else 0
        own = order[first : ends[rows.stop - 1]]
        yield Group(part, np.split(own, ends[rows.start : rows.stop - 1] - first))


def row_blocks(
    distinct: Rows, index: NDArray[np.intp], n_nodes: int, compute: Callable[[Rows], T]
) -> Iterator[tuple[slice, T, NDArray[np.intp] | slice]]:
    """Consecutive rows, what ``compute`` gives for graphs of theirs, and which of these each row has.

    Where no graph is there twice, that is all of them, in their order.
    """
    shared = None
    if is_worth_keeping(len(distinct), len(index), n_nodes):
        shared = compute(distinct)
    for rows in slices(len(index), rows_at_a_time(n_nodes)):
        if len(distinct) == len(index):
            yield rows, compute(distinct.between(rows)), slice(None)
        elif shared is not None:
            yield rows, shared, index[rows]
        else:
            own, which = np.unique(index[rows], return_inverse=True)
            yield rows, compute(distinct.take(own)), which
