"""Tests of all pairs from scores of nodes of several kinds, where an edge may be several numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from graphfield.data.blocks import block_power
from graphfield.data.encoded import Encoded
from graphfield.inference.design import Design, Fit
from graphfield.inference.edge_basis import EdgeBasis
from graphfield.inference.edge_tests import EdgeTests, presence_and_movement
from graphfield.inference.kind_differences import at_least
from graphfield.inference.kind_scores import KindScores

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BlockFit:
    """Coefficients of one pair on functions of z, (m, width), and their covariance, (m, width, m, width).

    Where there are two of these, a pair must be clear by both.
    """

    coef: Array
    covariances: tuple[Array, ...]
    design: Design

    @property
    def covariance(self) -> Array:
        """In no direction less than one of them."""
        first, *others = self.covariances
        for other in others:
            flat = other.reshape(self.coef.size, -1)
            steady = flat + 1e-12 * (np.trace(flat) + 1e-12) * np.eye(len(flat))
            first = at_least(first.reshape(flat.shape), steady).reshape(other.shape)
        return first

    def p_values(self, directions: Array) -> Array:
        """That sums of the coefficients are zero, each set of sums (sets, sums, m) for itself."""
        sums, spreads = directions @ self.coef, []
        for own in self.covariances:
            spreads.append(np.einsum("zam,mvnw,zbn->zavbw", directions, own, directions, optimize=True))
        return self._p_values(sums, spreads, slice(None))

    def p_value(self, which: slice) -> float:
        """That these coefficients are zero, as far as groups can tell."""
        sums = self.design.by_many(which)
        if not sums.shape[1]:
            return 1.0
        spreads = [
            np.einsum("ma,mvnw,nb->avbw", sums, own[which, :, which], sums, optimize=True)[None]
            for own in self.covariances
        ]
        return float(self._p_values((sums.T @ self.coef[which])[None], spreads, which)[0])

    def _p_values(self, sums: Array, spreads: list[Array], which: slice) -> Array:
        """That sums (sets, sums, width) are zero, given covariances (sets, sums, width, sums, width)."""
        off = sums.reshape(len(sums), -1, 1)
        size = off.shape[1]
        scale, second = self.design.distribution(which, size)
        found = []
        for own in spreads:
            spread = own.reshape(-1, size, size)
            steady = 1e-12 * (np.trace(spread, axis1=1, axis2=2)[:, None, None] + 1e-12) * np.eye(size)
            wald = (off * np.linalg.solve(spread + steady, off)).sum(axis=(1, 2))
            found.append(fdtrc(size, second, wald * scale))
        return np.asarray(np.max(found, axis=0))


def fit_pair(
    scores: KindScores, pair: int, design: Design, rows: NDArray[np.intp] | slice = slice(None)
) -> BlockFit:
    """Of the numbers of one pair, by the rows of the design."""
    values, variances = scores.of_pair(pair)[rows], scores.variances[pair][rows]
    left = values - design.whole @ (design.whole.T @ values)
    covariances: tuple[Array, ...] = (_by_units(left, design),)
    if design.starts is None:
        covariances = (_by_laws(left, variances, design), *covariances)
    inflated = tuple(float(scores.inflation[pair]) * own for own in covariances)
    return BlockFit(design.reading.T @ values, inflated, design)


def _by_laws(left: Array, variances: Array, design: Design) -> Array:
    """From what laws say that rows add, brought to what the functions leave.

    What rows themselves add varies with the values that it is to judge: with skewed scores that lets chance
    seem clear too often, the more the smaller a p-value is. But laws may be wrong: counts may vary by much
    more than their law says.
    """
    found = left.T @ left / max(1, len(left) - design.whole.shape[1])
    whole = [slice(0, len(found))]
    turn = block_power(found, whole, 0.5) @ block_power(variances.mean(axis=0), whole, -0.5)
    own = np.einsum("nm,nl,nvw->mvlw", design.reading, design.reading, variances, optimize=True)
    return np.asarray(np.einsum("av,mvlw,bw->malb", turn, own, turn, optimize=True))


def _by_units(left: Array, design: Design) -> Array:
    """From what the functions leave of rows, or of groups."""
    if design.starts is None:
        left = left / np.sqrt(np.maximum(1 - np.square(design.whole).sum(axis=1), 0.1))[:, None]
    parts = (design.spread[:, :, None] * left[:, None]).reshape(len(left), -1)
    if design.starts is not None:
        parts = np.add.reduceat(parts, design.starts)
    shape = (design.spread.shape[1], left.shape[1])
    return np.asarray((parts.T @ parts).reshape(*shape, *shape))


def fit_columns(scores: KindScores, pair: int, design: Design, rows: NDArray[np.intp] | slice) -> Fit:
    """Of the numbers of one pair, each for itself, by the rows of the design."""
    found = fit_pair(scores, pair, design, rows)
    return Fit(found.coef, np.einsum("mwnw->wmn", found.covariance))


def kind_p_values_at(scores: KindScores, design: Design, functions: Array) -> Array:
    """That there is no edge, of every pair at functions of z (n, m): (n, pairs)."""
    fits = (fit_pair(scores, pair, design) for pair in range(scores.n_pairs))
    return np.stack([fit.p_values(functions[:, None]) for fit in fits], axis=1)


def kind_edge_tests(
    scores: KindScores,
    basis: EdgeBasis,
    starts: NDArray[np.intp] | None,
    encoded: Encoded,
    of_covariate: Mapping[str, Design | None],
) -> EdgeTests:
    """As :func:`graphfield.inference.edge_tests.edge_tests`; an edge of several numbers has its norm."""
    design = Design.of(basis.at(encoded), starts=starts)
    found = [_test_pair(scores, pair, basis, design, of_covariate) for pair in range(scores.n_pairs)]
    estimate, error, p_average, p_together, p_varies, *own = np.array(found).T
    named = dict(zip(of_covariate, own, strict=True))
    freedom = design.freedom(slice(0, 1))
    return EdgeTests(estimate, error, p_average, (p_together, p_varies), p_varies, named, freedom)


def _test_pair(
    scores: KindScores,
    pair: int,
    basis: EdgeBasis,
    design: Design,
    of_covariate: Mapping[str, Design | None],
) -> list[float]:
    fit = fit_pair(scores, pair, design)
    p_values = presence_and_movement(lambda which: np.array([fit.p_value(which)]), basis.ends)
    average = fit.coef[0]
    estimate = average[0] if len(average) == 1 else np.sqrt(np.square(average).sum())
    error = np.sqrt(fit.covariance[0, 0, 0, 0]) if len(average) == 1 else np.nan
    found = [estimate, error, *np.concatenate(p_values)]
    for own in of_covariate.values():
        p_value = np.nan
        if own is not None:
            p_value = fit_pair(scores, pair, own).p_value(slice(None))
        found.append(p_value)
    return found
