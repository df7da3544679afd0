"""Node values to standard units and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphfield.data.ranges import MAX_MAGNITUDE
from graphfield.data.row_store import allocate_rows
from graphfield.data.saved_arrays import SavedArrays

# Entries of a table that are computed with at a time: 16 MB in double precision.
BLOCK_ENTRIES = 2_000_000
# Entries of columns that are gathered at a time: 160 MB.
_COLUMN_ENTRIES = 20_000_000
# Single precision can hold such a ratio, its inverse, and their products with any sensible coefficient.
_SAFE_RATIO = 1e25
# What is left of a node that varies by as little as X may, once the others have explained most of it.
LEAST_SCALE = 1e-20 / MAX_MAGNITUDE


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Consecutive rows of a table, few enough that computing with them takes no memory to speak of."""
    step = max(1, BLOCK_ENTRIES // max(1, n_columns))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def columns_of(X: NDArray[np.floating]) -> Iterator[NDArray[np.float64]]:
    """Each column in double precision; of a long table several are gathered in one pass over its rows."""
    n, p = X.shape
    width = max(1, _COLUMN_ENTRIES // max(1, n))
    for first in range(0, p, width):
        some = np.empty((min(width, p - first), n))
        for rows in row_blocks(n, p):
            some[:, rows] = X[rows, first : first + width].T
        yield from some


def _sum_of_rows(
    X: NDArray[np.floating], function: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The sum of ``function(rows)`` over all rows, added row after row whatever the block size."""
    total = np.zeros((1, X.shape[1]))
    for rows in row_blocks(*X.shape):
        values = function(np.ascontiguousarray(X[rows], dtype=np.float64))
        total = np.add.reduce(np.concatenate([total, values]), axis=0, keepdims=True)
    return total[0]


@dataclass(frozen=True)
class NodeScaler:
    """``x -> (x - center) / scale`` per node, and the same for what is derived from x."""

    center: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def learn(cls, X: NDArray[np.floating], *, center: bool, scale: bool) -> NodeScaler:
        """Mean and standard deviation of each column, where wanted, in double precision."""
        n_samples, n_nodes = X.shape
        mean = _sum_of_rows(X, lambda rows: rows) / n_samples if center or scale else np.zeros(n_nodes)
        spread = np.ones(n_nodes)
        if scale:
            spread = np.sqrt(_sum_of_rows(X, lambda rows: (rows - mean) ** 2) / n_samples)
        return cls(mean if center else np.zeros(n_nodes), spread)

    @classmethod
    def from_arrays(cls, arrays: SavedArrays, n_nodes: int) -> NodeScaler:
        """From a file, where they must be what X that could be fitted to has."""
        center = arrays.read("center", (n_nodes,), low=-MAX_MAGNITUDE, high=MAX_MAGNITUDE)
        return cls(center, read_scale(arrays, "scale", n_nodes))

    def transform(
        self,
        X: NDArray[np.floating],
        dtype: DTypeLike = np.float64,
        change: Callable[[NDArray], NDArray] | None = None,
    ) -> NDArray:
        """Node values in standard units, computed in double precision and kept as ``dtype``.

        They are what ``change`` makes of X, where it is given.
        """
        values = allocate_rows(X.shape, dtype)
        for rows in row_blocks(*X.shape):
            nodes = X[rows] if change is None else change(X[rows])
            values[rows] = (nodes - self.center) / self.scale
        return values

    def restore(self, X: NDArray) -> NDArray:
        """Node values in standard units to the user's units."""
        return X * self.scale + self.center


def rescale_coef(coef: NDArray, unit: NDArray[np.float64]) -> NDArray:
    """Coefficients of nodes that were divided by ``unit``, of the nodes themselves.

    That is ``beta_jk * unit_j / unit_k``, in the type of ``coef``: infinite where that cannot hold it.
    ``unit`` is (p,), the same for all graphs, or (n, p), one row per graph.

    >>> rescale_coef(np.array([[0.0, 0.5], [0.5, 0.0]]), np.array([1.0, 10.0]))
    array([[0.  , 0.05],
           [5.  , 0.  ]])
    """
    if unit.ndim == 2 and (unit == unit[:1]).all():
        unit = unit[0] if len(unit) else np.ones(unit.shape[1])
    if unit.ndim == 1:
        return _rescaled(coef, unit)
    result = np.empty_like(coef)
    for rows in row_blocks(len(coef), coef[0].size):  # ratios take twice the room of coefficients
        result[rows] = _rescaled(coef[rows], unit[rows])
    return result


def _rescaled(coef: NDArray, unit: NDArray[np.float64]) -> NDArray:
    if (unit == 1).all():
        return coef
    ratio = unit[..., :, None] / unit[..., None, :]
    if ratio.max(initial=1.0) < _SAFE_RATIO:
        return coef * ratio.astype(coef.dtype)
    with np.errstate(over="ignore"):
        return (coef * ratio).astype(coef.dtype)


def read_scale(arrays: SavedArrays, name: str, n_nodes: int) -> NDArray[np.float64]:
    """A standard deviation per node, in the user's units, from a file."""
    return arrays.read(name, (n_nodes,), low=LEAST_SCALE, high=MAX_MAGNITUDE)
