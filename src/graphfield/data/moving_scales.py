"""Scales of the nodes that move with the covariates, as a value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.data.nodes import row_blocks
from graphfield.data.saved_arrays import AtMost, SavedArrays

# Rows that are computed with at a time: always as many, so that the scale at z has the same bits whatever
# else is asked for.
_BLOCK_ROWS = 256
# In a file: rectifiers at most, and the size of their weights and of what they add to a log scale.
_MAX_RECTIFIERS, _MAX_WEIGHT = 100_000, 1e12
# The size of a log scale, at most: far from what is learned, and what a file may hold beyond it is no number.
_MOST = 20.0


@dataclass(frozen=True)
class MovingScales:
    """``log s_j(z) = constant_j + sum_h max(0, w(z) @ weights_h + bias_h) slopes_hj`` for every node j.

    ``w(z)`` are the features of z that ``data.covariates.features`` gives, without the one that comes
    first. The mean of ``s_j(z)^2`` over the rows that it was learned from is 1; a node whose scale does
    not move has slopes of zero.

    >>> scales = MovingScales(np.ones((1, 1)), np.zeros(1), np.array([[0.0, 2.0]]), np.zeros(2))
    >>> scales.at(np.array([[1.0, -1.0], [1.0, 0.5]])).round(2)
    array([[1.  , 1.  ],
           [1.  , 2.72]])
    """

    weights: NDArray[np.float64]  # (m, h)
    bias: NDArray[np.float64]  # (h,)
    slopes: NDArray[np.float64]  # (h, p)
    constant: NDArray[np.float64]  # (p,)

    @property
    def moves(self) -> NDArray[np.bool_]:
        """Which nodes have a scale that moves, (p,)."""
        return (self.slopes != 0).any(axis=0)

    def at(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scales at rows of features with their one, (n, p)."""
        scales = np.empty((len(W), len(self.constant)))
        for start in range(0, len(W), _BLOCK_ROWS):
            block = W[np.minimum(np.arange(start, start + _BLOCK_ROWS), len(W) - 1), 1:]
            log_scale = rectified(block, self.weights, self.bias) @ self.slopes + self.constant
            scales[start : start + _BLOCK_ROWS] = np.exp(np.clip(log_scale, -_MOST, _MOST))[: len(W) - start]
        return scales

    def divide(self, values: NDArray[np.float64], W: NDArray[np.float64]) -> None:
        """Nodes by their scales, in place."""
        for rows in row_blocks(*values.shape):
            values[rows] /= self.at(W[rows])

    def to_arrays(self) -> dict[str, NDArray]:
        return {name: getattr(self, name) for name in ("weights", "bias", "slopes", "constant")}

    @classmethod
    def from_arrays(cls, arrays: SavedArrays, n_features: int, n_nodes: int) -> MovingScales:
        """Inverse of :meth:`to_arrays`; ``n_features`` count the one."""
        weights = arrays.read(
            "weights", (n_features - 1, AtMost(_MAX_RECTIFIERS, 1)), low=-_MAX_WEIGHT, high=_MAX_WEIGHT
        )
        h = weights.shape[1]
        return cls(
            weights,
            arrays.read("bias", (h,), low=-_MAX_WEIGHT, high=_MAX_WEIGHT),
            arrays.read("slopes", (h, n_nodes), low=-_MAX_WEIGHT, high=_MAX_WEIGHT),
            arrays.read("constant", (n_nodes,), low=-_MAX_WEIGHT, high=_MAX_WEIGHT),
        )


def rectified(W: NDArray, weights: NDArray, bias: NDArray) -> NDArray:
    """``max(0, W @ weights + bias)``, (n, h)."""
    return np.maximum(W @ weights + bias, 0)
