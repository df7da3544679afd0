"""Tests of all pairs from scores of nodes of several kinds, where an edge may be several numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from graphfield.data.encoded import Encoded
from graphfield.graphs.false_discoveries import combine_tests
from graphfield.inference.design import Design, Fit
from graphfield.inference.edge_basis import EdgeBasis
from graphfield.inference.edge_tests import EdgeTests
from graphfield.inference.kind_scores import KindScores

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BlockFit:
    """Coefficients of one pair on functions of z, (m, width), and their covariance, (m, width, m, width)."""

    coef: Array
    covariance: Array

    def p_values(self, directions: Array, freedom: float) -> Array:
        """That sums of the coefficients are zero, each set of sums (sets, sums, m) for itself."""
        spread = np.einsum("zam,mvnw,zbn->zavbw", directions, self.covariance, directions, optimize=True)
        return _p_values(directions @ self.coef, spread, freedom)

    def p_value(self, which: slice, freedom: float) -> float:
        """That these coefficients are zero."""
        return float(_p_values(self.coef[None, which], self.covariance[None, which, :, which], freedom)[0])


def _p_values(sums: Array, spread: Array, freedom: float) -> Array:
    """That sums (sets, sums, width) are zero, given their covariances (sets, sums, width, sums, width)."""
    off = sums.reshape(len(sums), -1, 1)
    size = off.shape[1]
    spread = spread.reshape(-1, size, size)
    steady = 1e-12 * (np.trace(spread, axis1=1, axis2=2)[:, None, None] + 1e-12) * np.eye(size)
    wald = (off * np.linalg.solve(spread + steady, off)).sum(axis=(1, 2))
    # The whole covariance is estimated (Hotelling).
    second = max(freedom - size + 1, 1e-3)
    return np.asarray(fdtrc(size, second, wald * second / (freedom * size)))


def fit_block(values: Array, design: Design, inflation: float = 1.0) -> BlockFit:
    """Of scores (n, width), with variances by what the functions leave of rows, or of groups."""
    left = values - design.whole @ (design.whole.T @ values)
    if design.starts is None:
        left = left / np.sqrt(np.maximum(1 - np.square(design.whole).sum(axis=1), 0.1))[:, None]
    parts = (design.spread[:, :, None] * left[:, None]).reshape(len(left), -1)
    if design.starts is not None:
        parts = np.add.reduceat(parts, design.starts)
    m, width = design.reading.shape[1], values.shape[1]
    covariance = inflation * (parts.T @ parts).reshape(m, width, m, width)
    return BlockFit(design.reading.T @ values, covariance)


def fit_columns(scores: KindScores, pair: int, design: Design, rows: NDArray[np.intp] | slice) -> Fit:
    """Of the numbers of one pair, each for itself, by the rows of the design."""
    found = fit_block(scores.of_pair(pair)[rows], design, float(scores.inflation[pair]))
    return Fit(found.coef, np.einsum("mwnw->wmn", found.covariance))


def kind_p_values_at(scores: KindScores, design: Design, functions: Array) -> Array:
    """That there is no edge, of every pair at functions of z (n, m): (n, pairs)."""
    freedom, at = design.freedom(slice(None)), functions[:, None]
    fits = (
        fit_block(scores.of_pair(pair), design, float(scores.inflation[pair]))
        for pair in range(scores.n_pairs)
    )
    return np.stack([fit.p_values(at, freedom) for fit in fits], axis=1)


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
    estimate, error, p_value, p_varies, *own = np.array(found).T
    return EdgeTests(estimate, error, p_value, p_varies, dict(zip(of_covariate, own, strict=True)))


def _test_pair(
    scores: KindScores,
    pair: int,
    basis: EdgeBasis,
    design: Design,
    of_covariate: Mapping[str, Design | None],
) -> list[float]:
    values, inflation = scores.of_pair(pair), float(scores.inflation[pair])
    fit, ends = fit_block(values, design, inflation), sorted(set(basis.ends))
    there, varies = (
        [np.array([fit.p_value(own, design.freedom(own))]) for own in tested]
        for tested in ([slice(0, end) for end in (1, *ends)], [slice(1, end) for end in ends])
    )
    average = fit.coef[0]
    estimate = average[0] if len(average) == 1 else np.sqrt(np.square(average).sum())
    error = np.sqrt(np.trace(fit.covariance[0, :, 0]))
    found = [estimate, error, *(combine_tests(p_values)[0] for p_values in (there, varies))]
    for own in of_covariate.values():
        p_value = np.nan
        if own is not None:
            p_value = fit_block(values, own, inflation).p_value(slice(None), own.freedom(slice(None)))
        found.append(p_value)
    return found
