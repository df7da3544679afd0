"""Nodes as normal scores: the transform and its inverse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from graphfield.data.nodes import NodeScaler
from graphfield.data.ranges import MAX_MAGNITUDE
from graphfield.data.saved_arrays import AtMost, SavedArrays

MARGINALS = ("auto", "raw", "normal")
# Points of the map of one node at most; between them it is a straight line.
MAX_KNOTS = 1_024


def normal_scores(X: NDArray[np.floating]) -> NDArray[np.float64]:
    """Each column as the normal quantiles of its ranks, ``Phi^-1(rank / (n + 1))``, ties averaged.

    A graph of Gaussian data seen through unknown increasing functions (the nonparanormal model) can
    be estimated from these as if the data were Gaussian.

    >>> normal_scores(np.array([[1.0], [100.0], [3.0]])).round(2).ravel()
    array([-0.67,  0.67,  0.  ])
    """
    return ndtri(rankdata(X, axis=0) / (len(X) + 1))


@dataclass(frozen=True)
class NormalScores:
    """Per node an increasing, piecewise linear map from its values to their normal scores, and back.

    Scores are stretched to the node's own mean and standard deviation, so that they have its unit. Beyond
    the values that were there to learn from, a value counts as the nearest of them; a node that was
    constant has this one value always.

    The maps of all nodes are stored one after the other: those of node j are
    ``knots[offsets[j] : offsets[j + 1]]`` (its values) and the same part of ``targets`` (their scores).

    >>> X = np.exp(np.random.default_rng(0).normal(size=(500, 1)))
    >>> scores = NormalScores.learn(X)
    >>> bool(np.isclose(scores.transform(X).std(), X.std()))
    True
    >>> bool(np.allclose(scores.restore(scores.transform(X)), X))
    True
    """

    knots: NDArray[np.float64]
    targets: NDArray[np.float64]
    offsets: NDArray[np.int64]

    @classmethod
    def learn(cls, X: NDArray[np.floating]) -> NormalScores:
        """Knots are the distinct values of a node, at most 1,024 of them, evenly spread in rank."""
        own = NodeScaler.learn(X, center=True, scale=True)
        maps = [_map(X[:, j], own.center[j], own.scale[j]) for j in range(X.shape[1])]
        return cls(
            np.concatenate([knots for knots, _ in maps]),
            np.concatenate([targets for _, targets in maps]),
            np.cumsum([0, *(len(knots) for knots, _ in maps)], dtype=np.int64),
        )

    def to_arrays(self) -> dict[str, NDArray]:
        return {"knots": self.knots, "targets": self.targets, "offsets": self.offsets}

    @classmethod
    def from_arrays(cls, arrays: SavedArrays, n_nodes: int) -> NormalScores:
        """Inverse of :meth:`to_arrays`: maps that never fall, with at least one point for each node."""
        length = AtMost(MAX_KNOTS * n_nodes, n_nodes)
        knots = arrays.read("knots", (length,), low=-MAX_MAGNITUDE, high=MAX_MAGNITUDE)
        targets = arrays.read("targets", (len(knots),), low=-10 * MAX_MAGNITUDE, high=10 * MAX_MAGNITUDE)
        offsets = arrays.read("offsets", (n_nodes + 1,), np.int64)
        if offsets[0] != 0 or offsets[-1] != len(knots) or (np.diff(offsets) < 1).any():
            arrays.refuse("offsets", f"rising from 0 to {len(knots)}", str(offsets[:8]))
        within = np.delete(np.arange(1, len(knots)), offsets[1:-1] - 1)  # no step from one node to the next
        for name, values in (("knots", knots), ("targets", targets)):
            if (values[within] < values[within - 1]).any():
                arrays.refuse(name, "rising within each node", "numbers that fall")
        return cls(knots, targets, offsets)

    def transform(self, X: NDArray[np.floating], dtype: DTypeLike = np.float64) -> NDArray:
        """Values to scores, computed in double precision and kept as ``dtype``.

        Values beyond the range of the training rows count as its end.
        """
        return self._mapped(X, self.knots, self.targets, dtype)

    def restore(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Scores to values; scores beyond those of the training rows count as the last of them."""
        return self._mapped(X, self.targets, self.knots, np.float64)

    def _mapped(self, X: NDArray, start: NDArray, end: NDArray, dtype: DTypeLike) -> NDArray:
        values = np.empty(X.shape, dtype=dtype)
        for j in range(X.shape[1]):
            own = slice(self.offsets[j], self.offsets[j + 1])
            values[:, j] = np.interp(X[:, j], start[own], end[own])
        return values


def _map(
    values: NDArray[np.floating], center: float, scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Knots and targets of one node."""
    distinct, counts = np.unique(values.astype(np.float64), return_counts=True)
    if len(distinct) == 1:
        return distinct, distinct
    ranks = np.cumsum(counts) - (counts - 1) / 2
    kept = np.linspace(0, len(distinct) - 1, min(len(distinct), MAX_KNOTS)).round().astype(np.intp)
    knots, scores = distinct[kept], ndtri(ranks[kept] / (len(values) + 1))
    # Mean and spread of what comes out, straight lines between the knots included.
    seen = np.interp(distinct, knots, scores)
    mean = np.average(seen, weights=counts)
    spread = np.sqrt(np.average((seen - mean) ** 2, weights=counts))
    return knots, center + scale * (scores - mean) / spread
