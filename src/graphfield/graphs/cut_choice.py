"""How small a partial correlation may be to count as an edge: as large a cut as predicts as well as any.

Best asked of rows that had no part in the fit: each node is predicted from the others by the edges above the
cut. Where there are none, the rows of the fit have to do. An edge that is estimated as r at z, and is there
with rho, lowers the squared error of a node by ``2 r rho - r^2`` (in units of its residual variance, apart
from what other edges explain). The scores of :mod:`graphfield.graphs.pair_tests` stand for rho. They come
from the rows that r was found in, so what is dropped looks better than it is; on average by twice its noise,
as in Mallows' Cp.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.graphs.pair_tests import PairTests, as_array, pair_scores
from graphfield.graphs.strength import block_strengths, directed_strengths, edge_sizes

# Cuts that are compared, in units of partial correlation.
CUTS = np.concatenate([[0.0], np.geomspace(0.004, 0.6, 51)])


class CutErrors:
    """For each cut what rows lose where the edges up to it are dropped, of pairs that are clear."""

    def __init__(
        self, tests: PairTests, clear: NDArray[np.bool_], starts: NDArray[np.intp] | None = None
    ) -> None:
        self._tests, self._starts = tests, starts
        n_columns = len(tests.used)
        self._wide = starts is not None and len(starts) < n_columns
        widths = 1 if starts is None else np.diff(starts, append=n_columns)
        self._nodes = np.repeat(np.arange(len(clear)), widths)
        self._j, self._k = np.nonzero(np.triu(clear[np.ix_(self._nodes, self._nodes)], 1))
        self._losses: list[NDArray[np.float64]] = []  # (rows, cuts)
        self._units: list[NDArray[np.intp]] = []
        self._dropped = np.zeros(len(CUTS))

    def add(self, residuals: Any, directed: Any, units: NDArray[np.intp]) -> None:
        """More rows, (b, p) and (b, p, p), arrays or tensors."""
        j, k, b = self._j, self._k, len(units)
        residuals, ahead, back = map(as_array, (residuals, directed[:, j, k], directed[:, k, j]))
        scores = pair_scores(residuals[:, j], residuals[:, k], ahead, back) / self._tests.scales[j, k]
        estimate = (ahead + back) / 2
        # The first of the cuts that drops an edge; one beyond the last for an edge that none drops.
        first = np.searchsorted(CUTS, self._sizes(directed) if self._wide else edge_sizes(ahead, back))
        place = (np.arange(b)[:, None] * (len(CUTS) + 1) + first).ravel()
        losses = np.bincount(place, (2 * estimate * scores - estimate**2).ravel(), b * (len(CUTS) + 1))
        self._losses.append(np.cumsum(losses.reshape(b, -1), axis=1, dtype=np.float64)[:, :-1])
        self._units.append(units)
        self._dropped += np.cumsum(np.bincount(first[estimate != 0], minlength=len(CUTS) + 1))[:-1]

    def _sizes(self, directed: NDArray) -> NDArray:
        """Of pairs of columns: those of their nodes, as a cut drops all columns of a pair."""
        assert self._starts is not None
        of_nodes = block_strengths(directed, self._starts)
        j, k = self._nodes[self._j], self._nodes[self._k]
        return edge_sizes(of_nodes[:, j, k], of_nodes[:, k, j])

    def largest_cut(self, freedom: float) -> float:
        losses, units = np.concatenate(self._losses), np.concatenate(self._units)
        chance = 2 * freedom * self._tests.standard_error**2 * self._dropped / len(losses)
        return largest_cut(losses, units, chance)


class NewRowErrors:
    """For each cut the squared errors of rows that had no part in the fit, of pairs that are clear."""

    def __init__(self, clear: NDArray[np.bool_]) -> None:
        self._pairs = np.nonzero(clear & ~np.eye(len(clear), dtype=bool))
        self._losses: list[NDArray[np.float64]] = []  # (rows, cuts)
        self._units: list[NDArray[np.intp]] = []

    def add(self, x: NDArray, coef: NDArray, scale: NDArray, units: NDArray[np.intp]) -> None:
        """More rows: nodes and residual scales (b, p), coefficients (b, p, p); rows of a unit together."""
        (b, p), (j, k) = x.shape, self._pairs
        directed = directed_strengths(coef, scale)
        first = np.searchsorted(CUTS, edge_sizes(directed[:, j, k], directed[:, k, j]))
        place = (np.arange(b)[:, None] * p + j) * (len(CUTS) + 1) + first
        shares = coef[:, j, k] * x[:, k]
        dropped = np.bincount(place.ravel(), shares.ravel(), b * p * (len(CUTS) + 1)).reshape(b, p, -1)
        # With no edge left a node is what it is; a cut gives back what it does not drop.
        kept = dropped.sum(axis=2, keepdims=True) - np.cumsum(dropped, axis=2)[:, :, :-1]
        left = x[:, :, None] - kept
        self._losses.append(np.square(left / scale[:, :, None]).mean(axis=1))
        self._units.append(units)

    def largest_cut(self) -> float:
        return largest_cut(np.concatenate(self._losses), np.concatenate(self._units))


def largest_cut(losses: NDArray, units: NDArray[np.intp], chance: NDArray | float = 0.0) -> float:
    """The largest cut whose error is within one standard error of the smallest, both over units.

    ``losses`` (rows, cuts) of rows whose units come without others between them, and by how much they are too
    large by ``chance``.
    """
    n = len(losses)
    errors = losses.mean(axis=0) - chance
    best = int(np.argmin(errors))
    apart = losses - losses[:, [best]]
    apart -= apart.mean(axis=0)
    starts = np.flatnonzero(np.diff(units, prepend=units[0] - 1))
    deviation = np.sqrt(np.square(np.add.reduceat(apart, starts, axis=0)).sum(axis=0)) / n
    return float(CUTS[np.flatnonzero(errors - errors[best] <= deviation)[-1]])
