"""Smooth functions of the covariates, as columns that regressions can use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import Categorical, CovariateEncoder, Numeric
from graphfield.data.encoded import Encoded

# Knots of a spline lie between these quantiles; beyond them it is a straight line. Where a wild value of a
# covariate must not decide anything, it is flat from half their distance on.
_OUTER_KNOTS, _FLAT_BEYOND = 0.05, 0.5
# A level with fewer rows than this, or than this share of all, is pooled with other such levels.
_RARE_ROWS, _RARE_SHARE = 10, 0.02
# A direction with less variance than this share is taken for a copy of others.
_COPY = 1e-3


@dataclass(frozen=True)
class Smooth:
    """Columns that stand for one covariate: mean zero, orthogonal, mean square one.

    The first ``n_linear`` of them are what a linear model has: the covariate itself, or its levels.
    """

    name: str
    columns: NDArray[np.float64]
    n_linear: int

    @property
    def linear(self) -> NDArray[np.float64]:
        return self.columns[:, : self.n_linear]

    @property
    def is_linear(self) -> bool:
        return self.columns.shape[1] == self.n_linear

    def take(self, rows: NDArray[np.intp]) -> Smooth:
        return Smooth(self.name, self.columns[rows], self.n_linear)


def smooth_covariates(encoder: CovariateEncoder, encoded: Encoded, degrees: int) -> list[Smooth]:
    """One :class:`Smooth` per covariate, splines with at most ``degrees`` columns for numbers.

    Rare levels are one level together: few rows say little of a graph.
    """
    rare = max(_RARE_ROWS, _RARE_SHARE * len(encoded))
    result = []
    for column, _, values in covariate_columns(encoder, encoded):
        if isinstance(column, Categorical):
            raw = level_columns(values, len(column.levels), rare)
            result.append(Smooth(column.name, _orthogonal(raw), raw.shape[1]))
        else:
            raw = spline_columns(values, degrees)
            result.append(Smooth(column.name, _orthogonal(raw), 1))
    return result


def covariate_columns(
    encoder: CovariateEncoder, encoded: Encoded
) -> Iterator[tuple[Numeric | Categorical, int, NDArray]]:
    """Each covariate, its position among those of its kind, and its numbers or codes, (n,)."""
    numbers, codes = enumerate(encoded.numeric.T), enumerate(encoded.codes.T)
    for column in encoder.columns:
        yield column, *next(codes if isinstance(column, Categorical) else numbers)


def spline_columns(values: NDArray[np.float64], degrees: int) -> NDArray[np.float64]:
    """A natural cubic spline with quantile knots, (n, degrees), the first column linear.

    Fewer columns where there are few distinct values.

    >>> spline_columns(np.arange(100.0), 3).shape, spline_columns(np.arange(100.0) % 2, 3).shape
    ((100, 3), (100, 1))
    """
    return learn_spline(values, degrees).at(values)


@dataclass(frozen=True)
class Spline:
    """A natural cubic spline: ``degrees`` columns, the first linear; powers where knots are too few."""

    knots: NDArray[np.float64]
    degrees: int

    def at(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        knots = self.knots
        at = np.clip((values - knots[0]) / (knots[-1] - knots[0]), -_FLAT_BEYOND, 1 + _FLAT_BEYOND)
        inner = (knots - knots[0]) / (knots[-1] - knots[0])
        if len(inner) <= self.degrees:  # many rows share one value
            return np.stack([at**power for power in range(1, max(2, len(inner)))], axis=1)

        def bend(knot: float) -> NDArray[np.float64]:
            return (np.maximum(at - knot, 0) ** 3 - np.maximum(at - 1, 0) ** 3) / (1 - knot)

        last = bend(inner[-2])
        return np.stack([at, *(bend(knot) - last for knot in inner[:-2])], axis=1)


def learn_spline(values: NDArray[np.float64], degrees: int) -> Spline:
    """With knots at quantiles of the values."""
    distinct = np.unique(values)
    degrees = min(degrees, len(distinct) - 1)
    knots = np.unique(np.quantile(values, np.linspace(_OUTER_KNOTS, 1 - _OUTER_KNOTS, degrees + 1)))
    return Spline(knots if len(knots) > 1 else distinct[[0, -1]], degrees)


def level_columns(codes: NDArray[np.int64], n_levels: int, least: float) -> NDArray[np.float64]:
    """An indicator per level but the most frequent; those with fewer than ``least`` rows are one together.

    >>> level_columns(np.array([0] * 50 + [1] * 50 + [2] * 6 + [3] * 5), 4, 10).sum(axis=0)
    array([50., 11.])
    """
    counts = np.bincount(codes, minlength=n_levels)
    rare = (counts < least) & (counts < counts.max())
    pooled = np.where(rare[codes], n_levels, codes)
    levels, counts = np.unique(pooled, return_counts=True)
    others = np.delete(levels, np.argmax(counts))
    return (pooled[:, None] == others).astype(np.float64)


def whitened(columns: NDArray[np.float64], given: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Uncorrelated columns with mean square one that span ``columns``, apart from ``given`` if any.

    Both must have mean zero. Directions that ``given`` explains but for a thousandth are left out, so
    there may be no column at all.
    """
    size = np.sqrt(np.square(columns).mean(axis=0))
    own = _principal(columns[:, size > 1e-6] / size[size > 1e-6], 1e-8)
    if given is None or given.shape[1] == 0:
        return own
    return left_by(given, own)


def left_by(given: NDArray[np.float64], columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Uncorrelated columns with mean square one, for what ``given`` leaves of columns that were such."""
    others = whitened(given)
    return _principal(columns - others @ (others.T @ columns) / len(columns), _COPY)


def _principal(columns: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(columns.T @ columns / len(columns))
    kept = values > least
    return columns @ (vectors[:, kept] / np.sqrt(values[kept]))


def _orthogonal(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column without what those before it explain; the first keeps its direction."""
    centred = columns - columns.mean(axis=0)
    q, r = np.linalg.qr(centred / np.sqrt(np.square(centred).mean(axis=0)))
    kept = np.abs(np.diag(r)) > 1e-6 * np.sqrt(len(columns))
    return q[:, kept] * np.sqrt(len(columns))
