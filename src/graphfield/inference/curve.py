"""The partial correlation of one pair along one covariate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from graphfield.data.covariates import Categorical, CovariateEncoder, Numeric
from graphfield.data.encoded import Encoded
from graphfield.exceptions import ParameterError
from graphfield.inference.asked_values import check_covariates, hold_at, hold_values, places_of, position_of
from graphfield.inference.design import Design, Fit
from graphfield.inference.edge_basis import learn_basis
from graphfield.inference.enough_rows import has_products, value_degrees
from graphfield.inference.overlap import Common, common_rows, rows_with_levels, stratum_of
from graphfield.numbers import is_clear

# Draws of a whole curve, the largest estimate, and the largest standard error of one that is cut to it.
_DRAWS, _MOST, _CLEAR = 10_000, 0.999, 0.05
# A curve along a number ends where so many rows are left, or these shares of all at least and at most: what a
# spline does beyond is decided by a few.
_ROWS_BEYOND, _LEAST_BEYOND, _MOST_BEYOND = 20, 0.01, 0.1
# The share of rows that are at a value of a number.
_NEAR = 0.05
# The level of the intervals that choose the scale of all others.
_USUAL = 0.9
# Standard errors by which a curve must lie above or below both its ends for a bend: the clearest of several.
_BEND = 2.5

# Why a curve may have gaps.
WHY_GAPS = "too few rows, or no estimate within ±1"


Array = NDArray[np.float64]


def intervals_of(
    estimate: Array, error: Array, freedom: float, width: float | None = None
) -> tuple[Array, Array]:
    """Of 90 %, or so many errors wide, on the scale of Fisher's z, where estimates near one are not skewed.

    That scale has no end: where errors are large beside what is left up to one, it says nothing of the other
    end either, and intervals are those of the plain scale, which ends at one. Which scale it is does not
    depend on what is asked, so a wider interval holds a narrower one.
    """
    usual = float(student.ppf((1 + _USUAL) / 2, freedom))
    of_usual, plain_of_usual = _on_scales(estimate, usual * error)
    is_plain = (usual * error > 1 - estimate**2) & (np.ptp(plain_of_usual, axis=0) < np.ptp(of_usual, axis=0))
    (low, high), plain = _on_scales(estimate, (usual if width is None else width) * error)
    return np.where(is_plain, plain[0], low), np.where(is_plain, plain[1], high)


def _on_scales(estimate: Array, half: Array) -> tuple[Array, Array]:
    """Lower and upper ends, (2, values), on the scale of Fisher's z and on the plain one."""
    sides = np.stack([-half, half])
    on_z = np.tanh(np.arctanh(estimate) + sides / (1 - estimate**2))
    return on_z, np.clip(estimate + sides, -1.0, 1.0)


@dataclass(frozen=True)
class Curve:
    """Estimates at values of a covariate, their covariance, and its degrees of freedom.

    NaN where rows are too few for an estimate.
    """

    values: list[Any]
    estimate: NDArray[np.float64]
    covariance: NDArray[np.float64]
    freedom: float

    def intervals(self, level: float, simultaneous: bool, seed: int) -> tuple[Array, Array]:
        """That hold at each value, or at all of them."""
        error = np.sqrt(np.maximum(np.diag(self.covariance), 1e-20))
        width = float(student.ppf((1 + level) / 2, self.freedom))
        if simultaneous:
            width = max(width, self._largest(error, level, seed))
        return intervals_of(self.estimate, error, self.freedom, width)

    def covers(self, other: Curve, seed: int) -> bool:
        """Whether another curve along the same values lies within the band of this one."""
        low, high = self.intervals(_USUAL, True, seed)
        return not bool(((other.estimate < low) | (other.estimate > high)).any())

    def known(self) -> Curve:
        """The curve at the values at which there is an estimate."""
        there = np.flatnonzero(np.isfinite(self.estimate))
        values = [self.values[i] for i in there]
        return Curve(values, self.estimate[there], self.covariance[np.ix_(there, there)], self.freedom)

    def telling_places(self, low: float, high: float) -> list[int]:
        """Positions of the values nearest to these two, and of the bend between them where it is clear."""
        nearest = (int(np.abs(np.asarray(self.values) - end).argmin()) for end in (low, high))
        first, last = sorted(nearest)
        if first == last:
            first, last = 0, len(self.values) - 1
        inner, variance = np.arange(first + 1, last), np.diag(self.covariance)
        from_ends = []
        for end in (first, last):
            error = np.sqrt(np.maximum(variance + variance[end] - 2 * self.covariance[end], 1e-20))
            from_ends.append(((self.estimate - self.estimate[end]) / error)[inner])
        size = np.where(from_ends[0] * from_ends[1] > 0, np.abs(from_ends).min(axis=0), 0.0)
        bend = [int(inner[size.argmax()])] if is_clear(size.max(initial=0.0), 1.0, _BEND) else []
        return [first, *bend, last]

    def clearest_levels(self) -> list[int]:
        """Positions of the two values whose estimates differ most clearly."""
        return clearest_two(self.estimate, self.covariance)

    def differs_between(self, low: float, high: float) -> bool:
        """Whether any two of the values that tell most between these two places differ clearly."""
        places = self.telling_places(low, high)
        apart = _apart(self.estimate[places], self.covariance[np.ix_(places, places)])
        return bool(is_clear(apart.max(), 1.0))

    def _largest(self, error: NDArray[np.float64], level: float, seed: int) -> float:
        """Quantile of the largest of all deviations (Chernozhukov, Chetverikov and Kato, 2013)."""
        rng = np.random.default_rng(seed)
        values, vectors = np.linalg.eigh(self.covariance / np.outer(error, error))
        root = vectors * np.sqrt(np.maximum(values, 0))
        drawn = np.abs(rng.normal(size=(_DRAWS, len(error))) @ root.T).max(axis=1)
        noise = np.sqrt(rng.chisquare(self.freedom, _DRAWS) / self.freedom)
        return float(np.quantile(drawn / noise, level))


def clearest_two(estimates: NDArray[np.float64], covariance: NDArray[np.float64]) -> list[int]:
    """Positions of the two that differ most clearly: extremes are those of few rows."""
    apart = _apart(estimates, covariance)
    return sorted(map(int, np.unravel_index(apart.argmax(), apart.shape)))


def _apart(estimates: NDArray[np.float64], covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Differences of any two, in their standard errors."""
    variance = np.diag(covariance)
    error = np.sqrt(np.maximum(variance + variance[:, None] - 2 * covariance, 1e-20))
    return np.asarray(np.abs(estimates - estimates[:, None]) / error)


def curve_of_pair(
    fit_pair: Callable[[NDArray[np.intp] | slice, Design], Fit],
    encoder: CovariateEncoder,
    encoded: Encoded,
    starts: NDArray[np.intp] | None,
    covariate: str,
    others: Mapping[str, Any],
    n_points: int,
    averaged: dict[Any, list[Common]] | None = None,
    *,
    smooth: bool = False,
) -> Curve:
    """By a spline of the covariate that is rough enough for bias to be small beside chance.

    Or one that is ``smooth``, whose single values are less of chance: to be told in words, without a band.

    Where ``others`` fix levels, by rows that have these, if they are enough.

    Over levels, of rows whose other covariates occur at all of them. Along a number such rows are rare, so at
    each value of rows whose other covariates occur with it; all rows where nearly all do. ``averaged`` keeps
    these from one pair to the next.

    Of an edge that is several numbers, which ``fit_pair`` has as columns, the norm, without errors.
    """
    check_covariates(encoder, (covariate, *others))
    if covariate in others:
        raise ParameterError(
            f"{covariate!r} is the covariate that moves: it cannot be fixed in others."
        ).about(argument="others", column=covariate)
    known = stratum_of(encoder, encoded, starts, places_of(encoder, [others]))
    encoded = known.encoded
    degrees = value_degrees(known.counted, known.n_units, () if smooth else (covariate, *others))
    basis = learn_basis(encoder, encoded, degrees, products=has_products(known.counted, known.n_units))
    design = Design.of(basis.at(encoded), known.starts)
    fit = fit_pair(known.rows, design)
    values, places = _places(encoder, encoded, covariate, n_points)
    averaged, key = {} if averaged is None else averaged, (covariate, n_points, repr(sorted(others.items())))
    if key not in averaged:
        averaged[key] = _rows_along(encoder, encoded, covariate, others, places)
    rows = [hold_values(encoder, own.rows, others) for own in averaged[key]]
    at = np.stack(
        [
            basis.at(hold_at(encoder, own, covariate, place)).mean(axis=0)
            for own, place in zip(rows, places, strict=True)
        ]
    )
    freedom, (position, column) = design.freedom(slice(None)), position_of(encoder, covariate)
    if isinstance(column, Numeric):
        unknown = np.array([own.share == 0 for own in averaged[key]])
    else:
        unknown = ~np.isin(places, encoded.codes[:, position])
    if fit.coef.shape[1] > 1:
        norms = np.where(unknown, np.nan, np.sqrt(np.square(at @ fit.coef).sum(axis=1)))
        return Curve(values, norms, np.full((len(at),) * 2, np.nan), freedom)
    # A spline may overshoot what a partial correlation can be: by a little where this is nearly one, by much
    # where rows are few, and then it is no estimate.
    found, covariance = at @ fit.coef[:, 0], at @ fit.covariance[0] @ at.T
    unknown |= (np.abs(found) > _MOST) & (np.diag(covariance) > _CLEAR**2)
    return Curve(values, np.where(unknown, np.nan, np.clip(found, -_MOST, _MOST)), covariance, freedom)


def _rows_along(
    encoder: CovariateEncoder,
    encoded: Encoded,
    covariate: str,
    others: Mapping[str, Any],
    places: NDArray[np.float64],
) -> list[Common]:
    """Rows to average over at each place."""
    fixed = places_of(encoder, [others])[0]
    asked = [{covariate: float(place), **fixed} for place in places]
    if isinstance(position_of(encoder, covariate)[1], Categorical):
        occurring = [place for place in asked if rows_with_levels(encoder, encoded, place).any()]
        return [common_rows(encoder, encoded, occurring)] * len(places)
    return [common_rows(encoder, encoded, [place], _NEAR) for place in asked]


def _places(
    encoder: CovariateEncoder, encoded: Encoded, name: str, n_points: int
) -> tuple[list[Any], NDArray[np.float64]]:
    """Values as the user has them, and as they are encoded."""
    position, column = position_of(encoder, name)
    if isinstance(column, Categorical):
        return list(column.levels), np.arange(float(len(column.levels)))
    own = encoded.numeric[:, position]
    beyond = np.clip(_ROWS_BEYOND / len(own), _LEAST_BEYOND, _MOST_BEYOND)
    low, high = np.quantile(own, [beyond, 1 - beyond])
    distinct = np.unique(own[(own >= low) & (own <= high)])
    places = distinct if len(distinct) <= n_points else np.linspace(low, high, n_points)
    return [float(value) for value in column.mean + column.scale * places], places
