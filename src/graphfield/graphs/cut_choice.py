"""How small a partial correlation may be to count as an edge: as large a cut as predicts as well as any.

An edge that is estimated as r at z, and is there with rho, lowers the squared error of a node by
``2 r rho - r^2`` (in units of its residual variance, apart from what other edges explain). The scores of
:mod:`graphfield.graphs.pair_tests` stand for rho. They come from the rows that r was found in, so what is
dropped looks better than it is; on average by twice its noise, as in Mallows' Cp.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.graphs.pair_tests import PairTests, pair_scores

# Cuts that are compared, in units of partial correlation.
CUTS = np.concatenate([[0.0], np.geomspace(0.004, 0.6, 51)])


class CutErrors:
    """For each cut what rows lose where the edges up to it are dropped, of pairs that are clear."""

    def __init__(self, tests: PairTests, clear: NDArray[np.bool_]) -> None:
        self._tests = tests
        self._j, self._k = np.nonzero(np.triu(clear, 1))
        self._losses: list[NDArray[np.float64]] = []  # (rows, cuts)
        self._units: list[NDArray[np.intp]] = []
        self._dropped = np.zeros(len(CUTS))

    def add(self, residuals: NDArray, directed: NDArray, units: NDArray[np.intp]) -> None:
        """More rows, (b, p) and (b, p, p)."""
        j, k, b = self._j, self._k, len(units)
        ahead, back = directed[:, j, k], directed[:, k, j]
        scores = pair_scores(residuals[:, j], residuals[:, k], ahead, back) / self._tests.scales[j, k]
        estimate = (ahead + back) / 2
        # The first of the cuts that drops an edge; one beyond the last for an edge that none drops.
        first = np.searchsorted(CUTS, np.minimum(np.abs(ahead), np.abs(back)))
        place = (np.arange(b)[:, None] * (len(CUTS) + 1) + first).ravel()
        losses = np.bincount(place, (2 * estimate * scores - estimate**2).ravel(), b * (len(CUTS) + 1))
        self._losses.append(np.cumsum(losses.reshape(b, -1), axis=1, dtype=np.float64)[:, :-1])
        self._units.append(units)
        self._dropped += np.cumsum(np.bincount(first[estimate != 0], minlength=len(CUTS) + 1))[:-1]

    def largest_cut(self, freedom: float) -> float:
        """The largest cut whose error is within one standard error of the smallest, both over units."""
        losses, units = np.concatenate(self._losses), np.concatenate(self._units)
        n = len(losses)
        chance = 2 * freedom * self._tests.standard_error**2 * self._dropped / n
        errors = losses.mean(axis=0) - chance
        best = int(np.argmin(errors))
        apart = losses - losses[:, [best]]
        apart -= apart.mean(axis=0)
        starts = np.flatnonzero(np.diff(units, prepend=units[0] - 1))
        deviation = np.sqrt(np.square(np.add.reduceat(apart, starts, axis=0)).sum(axis=0)) / n
        return float(CUTS[np.flatnonzero(errors - errors[best] <= deviation)[-1]])
