"""Smooth functions of the covariates, as columns that regressions can use."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import Categorical, CovariateEncoder, Encoded

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


def smooth_covariates(
    encoder: CovariateEncoder, encoded: Encoded, degrees: int, *, to_the_ends: bool = False
) -> list[Smooth]:
    """One :class:`Smooth` per covariate, splines with at most ``degrees`` columns for numbers.

    ``to_the_ends`` has them follow the most extreme values too.
    """
    numbers, codes = iter(encoded.numeric.T), iter(encoded.codes.T)
    result = []
    for column in encoder.columns:
        if isinstance(column, Categorical):
            raw = level_columns(next(codes), len(column.levels))
            result.append(Smooth(column.name, _orthogonal(raw), raw.shape[1]))
        else:
            raw = spline_columns(next(numbers), degrees, to_the_ends=to_the_ends)
            result.append(Smooth(column.name, _orthogonal(raw), 1))
    return result


def spline_columns(
    values: NDArray[np.float64], degrees: int, *, to_the_ends: bool = False
) -> NDArray[np.float64]:
    """A natural cubic spline with quantile knots, (n, degrees), the first column linear.

    Fewer columns where there are few distinct values.

    >>> spline_columns(np.arange(100.0), 3).shape, spline_columns(np.arange(100.0) % 2, 3).shape
    ((100, 3), (100, 1))
    """
    distinct = np.unique(values)
    degrees = min(degrees, len(distinct) - 1)
    outer = 0.0 if to_the_ends else _OUTER_KNOTS
    knots = np.unique(np.quantile(values, np.linspace(outer, 1 - outer, degrees + 1)))
    if len(knots) < 2:
        knots = distinct[[0, -1]]
    at = np.clip((values - knots[0]) / (knots[-1] - knots[0]), -_FLAT_BEYOND, 1 + _FLAT_BEYOND)
    inner = (knots - knots[0]) / (knots[-1] - knots[0])
    if len(inner) <= degrees:  # many rows share one value
        return np.stack([at**power for power in range(1, max(2, len(inner)))], axis=1)

    def bend(knot: float) -> NDArray[np.float64]:
        return (np.maximum(at - knot, 0) ** 3 - np.maximum(at - 1, 0) ** 3) / (1 - knot)

    last = bend(inner[-2])
    return np.stack([at, *(bend(knot) - last for knot in inner[:-2])], axis=1)


def level_columns(codes: NDArray[np.int64], n_levels: int) -> NDArray[np.float64]:
    """An indicator per level but the most frequent; rare levels are one level together.

    >>> level_columns(np.array([0] * 50 + [1] * 50 + [2] * 6 + [3] * 5), 4).sum(axis=0)
    array([50., 11.])
    """
    counts = np.bincount(codes, minlength=n_levels)
    rare = (counts < max(_RARE_ROWS, _RARE_SHARE * len(codes))) & (counts < counts.max())
    pooled = np.where(rare[codes], n_levels, codes)
    levels, counts = np.unique(pooled, return_counts=True)
    others = np.delete(levels, np.argmax(counts))
    return (pooled[:, None] == others).astype(np.float64)


def mean_columns(covariates: list[Smooth]) -> NDArray[np.float64]:
    """What a mean or a scale may depend on: all columns, and products of two covariates.

    Of a numeric covariate, products have a straight line and a bend, or fewer where all would be more than
    a tenth of the rows.
    """
    columns = [smooth.columns for smooth in covariates]
    for bends in (1, 0):
        parts = [smooth.columns[:, : smooth.n_linear + bends] for smooth in covariates]
        products = [
            (one[:, :, None] * other[:, None, :]).reshape(len(one), -1)
            for one, other in combinations(parts, 2)
        ]
        products = [part - part.mean(axis=0) for part in products]
        if sum(part.shape[1] for part in columns + products) <= len(parts[0]) / 10:
            columns += products
            break
    return whitened(np.hstack(columns))


def whitened(columns: NDArray[np.float64], given: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Uncorrelated columns with mean square one that span ``columns``, apart from ``given`` if any.

    Both must have mean zero. Directions that ``given`` explains but for a thousandth are left out, so
    there may be no column at all.
    """
    size = np.sqrt(np.square(columns).mean(axis=0))
    own = _principal(columns[:, size > 1e-6] / size[size > 1e-6], 1e-8)
    if given is None or given.shape[1] == 0:
        return own
    others = whitened(given)
    return _principal(own - others @ (others.T @ own) / len(own), _COPY)


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
