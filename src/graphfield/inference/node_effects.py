"""Edges between nodes of any kinds in some rows, in one unit, with their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks, block_power
from graphfield.inference.pair_columns import PairColumns
from graphfield.solvers.node_likelihood import NUMBERS, NodeFits, fit_nodes

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Effects:
    """Of all pairs in some rows: ``T_j B_jk T_k``, B the mean of what both regressions say.

    B is in canonical units (log-odds, logarithms of rates, entries of a precision matrix), in which both
    regressions of a pair have the same coefficients. T is the root of the residual variances of a node:
    between numbers this is the partial correlation.
    """

    blocks: Blocks
    pairs: PairColumns
    fits: NodeFits
    units: Array  # T, (d, d)

    @cached_property
    def estimates(self) -> Array:
        """(columns of pairs,)"""
        found = self.units @ self.fits.coef[:, self._n_given :] @ self.units
        return (found[self.pairs.first, self.pairs.second] + found[self.pairs.second, self.pairs.first]) / 2

    @property
    def _n_given(self) -> int:
        return self.fits.design.shape[1] - self.blocks.n_columns

    @cached_property
    def _readings(self) -> list[Array]:
        """Of each node, (w, d, w, m): errors of estimates from residuals times the design."""
        found = []
        for own, inverse in zip(self.blocks.slices, self.fits.inverses, strict=True):
            of_pairs = np.einsum("ab,bcxy->acxy", self.units[own, own], inverse[:, self._n_given :])
            found.append(np.einsum("dc,acxy->adxy", self.units, of_pairs, optimize=True))
        return found

    def influences(self, part: slice) -> Array:
        """What each row adds to the errors of estimates, (n, columns of pairs).

        Residuals are divided by one less the leverage of their row (HC3; MacKinnon and White, 1985).
        """
        fits, blocks = self.fits, self.blocks
        first, second = self.pairs.first[part], self.pairs.second[part]
        found = np.zeros((len(fits.design), len(first)))
        for response, other in ((first, second), (second, first)):
            for node in np.unique(blocks.nodes[response]):
                own, which = blocks.slices[node], np.flatnonzero(blocks.nodes[response] == node)
                reading = self._readings[node][response[which] - own.start, other[which]]  # (columns, w, m)
                left = fits.residuals[:, own] / (1 - fits.leverages[:, [node]])
                for column in range(left.shape[1]):
                    found[:, which] += left[:, [column]] * (fits.design @ reading[:, column].T)
        return found / 2

    def expected_covariance(self, pair: int) -> Array:
        """Of one edge as the likelihoods have it, were errors of both regressions the same, (v w, v w)."""
        own = self.pairs.of_pair(pair)
        sides = self.pairs.first[own], self.pairs.second[own]
        return (self._expected(*sides) + self._expected(*sides[::-1])) / 2

    def _expected(self, response: NDArray[np.intp], other: NDArray[np.intp]) -> Array:
        node = self.blocks.nodes[response[0]]
        own = self.blocks.slices[node]
        reading = self._readings[node][response - own.start, other][:, :, self._n_given :]
        return np.einsum(
            "ibd,jb,jd->ij", reading, self.units[response, own], self.units[other], optimize=True
        )


def fit_effects(
    blocks: Blocks, columns: Array, given: Array, graphs: Sequence[NDArray[np.intp]]
) -> list[Effects]:
    """Of each of several sets of rows.

    How large the residual variances of numbers are differs between the sets and makes no difference to
    partial correlations, so they have units of their own. Those of others follow from how frequent levels
    are, or how large counts; they have the same unit everywhere, so that what differs is in the edge.
    """
    pairs = PairColumns.of(blocks.widths)
    fits = [fit_nodes(blocks, columns[rows], given[rows]) for rows in graphs]
    left = [_left(blocks, fit) for fit in fits]
    numbers = np.isin(np.array(blocks.types.kinds), NUMBERS)[blocks.nodes]
    common = np.mean(left, axis=0)
    return [
        Effects(blocks, pairs, fit, block_power(np.where(numbers, own, common), blocks.slices, 0.5))
        for fit, own in zip(fits, left, strict=True)
    ]


def _left(blocks: Blocks, fit: NodeFits) -> Array:
    """Variances of what regressions leave, (d, d)."""
    n, m = fit.design.shape
    own = fit.residuals / np.sqrt(np.maximum(1, n - m + blocks.widths[blocks.nodes]))
    return own.T @ own
