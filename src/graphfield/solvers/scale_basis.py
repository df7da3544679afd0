"""Functions of the covariates in which the logarithm of a scale is linear."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from graphfield.data.moving_scales import rectified

# A function of a number is piecewise linear, flat beyond these quantiles: a wild value decides nothing.
_OUTER = 0.005
# Rectifiers, about, bends of a number, and bends of two covariates together (none where there is no room).
_MAX_RECTIFIERS, _MAX_BENDS, _MAX_JOINT_BENDS, _MIN_JOINT_BENDS = 160, 20, 8, 2
# Levels at most, the most frequent ones, and the rows of one at least; others count as the first level does.
_MAX_LEVELS, _MIN_LEVEL_ROWS = 150, 10
# Variances that effects are expected to have, up to a common factor: of a level, of the whole range of two
# covariates together and of a number (which costs nothing, beside that), of bends along the whole range.
_LEVEL, _JOINT, _NUMBER, _BENDS = 1.0, 12.0, 1200.0, 40.0
# A direction with less than this share of the largest variance is taken for a copy of others.
_COPY = 1e-7


@dataclass(frozen=True)
class ScaleBasis:
    """Functions ``max(0, W @ weights + bias) @ mix`` of features W (without their one), (n, b).

    ``expected`` has the variances that their coefficients are expected to have, up to a common factor.
    """

    weights: NDArray[np.float64]  # (m, h)
    bias: NDArray[np.float64]  # (h,)
    mix: NDArray[np.float64]  # (h, b)
    expected: NDArray[np.float64]  # (b,)

    def at(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        return rectified(W, self.weights, self.bias) @ self.mix


@dataclass(frozen=True)
class _Direction:
    """Piecewise linear functions of ``W @ weights + offset``, and the effect expected of its range."""

    weights: NDArray[np.float64]  # (m,)
    offset: float
    knots: NDArray[np.float64]  # ascending; flat beyond the first and the last
    effect: float

    def blocks(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Weights, bias, mix and expected variances of the functions of this direction."""
        h, width = len(self.knots), np.ptp(self.knots)
        mix = np.vstack([np.eye(h - 1), -np.ones((1, h - 1))])
        expected = _BENDS * np.diff(self.knots) / width**3  # as if the slope were a random walk
        expected[0] = self.effect / width**2
        return np.tile(self.weights[:, None], h), self.offset - self.knots, mix, expected


def scale_basis(W: NDArray[np.float64], n_numeric: int) -> ScaleBasis | None:
    """Of features without their one, (n, m), the first ``n_numeric`` of them numbers, the others levels.

    Each number on its own, each level, and two of them together where there are few. Sums and differences of
    two numbers stand for their product. None where nothing varies but in a few rows.
    """
    unit, levels = np.eye(W.shape[1]), _frequent_levels(W, n_numeric)
    room = _MAX_RECTIFIERS - len(levels)
    bends = int(np.clip(room // max(1, n_numeric), 1, _MAX_BENDS))
    directions = [_Direction(unit[level], 0.0, np.array([0.0, 1.0]), _LEVEL) for level in levels]
    directions += [_of_number(unit[number], W[:, number], bends) for number in range(n_numeric)]
    n_pairs = n_numeric * (n_numeric - 1) + n_numeric * len(levels)
    room = (room - n_numeric * bends) // max(1, n_pairs) - 1
    if n_pairs and room >= _MIN_JOINT_BENDS:
        directions += _joint(W, n_numeric, levels, min(room, _MAX_JOINT_BENDS))
    directions = [direction for direction in directions if len(direction.knots) > 1]
    if not directions:
        return None
    weights, bias, mix, expected = zip(*(direction.blocks() for direction in directions), strict=True)
    return ScaleBasis(np.hstack(weights), np.concatenate(bias), block_diag(*mix), np.concatenate(expected))


def _of_number(weights: NDArray[np.float64], values: NDArray[np.float64], bends: int) -> _Direction:
    """One with two values is a level."""
    low, high = values.min(), values.max()
    if ((values == low) | (values == high)).all():
        return _Direction(weights, 0.0, np.unique([low, high]), _LEVEL)
    return _Direction(weights, 0.0, _knots(values, bends), _NUMBER)


def _frequent_levels(W: NDArray[np.float64], n_numeric: int) -> list[int]:
    """Positions of their indicators."""
    counts = W[:, n_numeric:].sum(axis=0)
    frequent = np.argsort(-counts, kind="stable")[:_MAX_LEVELS]
    return sorted(int(n_numeric + level) for level in frequent if counts[level] >= _MIN_LEVEL_ROWS)


def _joint(W: NDArray[np.float64], n_numeric: int, levels: list[int], bends: int) -> Iterator[_Direction]:
    unit = np.eye(W.shape[1])
    for one, other in combinations(range(n_numeric), 2):
        for sign in (1, -1):
            weights = (unit[one] + sign * unit[other]) / np.sqrt(2)
            yield _Direction(weights, 0.0, _knots(W @ weights, bends), _JOINT)
    for number in range(n_numeric):
        reach = 2 * float(np.ptp(W[:, number]))  # brings rows of other levels below all knots
        for level in levels:
            knots = _knots(W[W[:, level] == 1, number], bends)
            yield _Direction(unit[number] + reach * unit[level], -reach, knots, _JOINT)


def _knots(values: NDArray[np.float64], bends: int) -> NDArray[np.float64]:
    return np.unique(np.quantile(values, np.linspace(_OUTER, 1 - _OUTER, bends + 2)))


def smooth_functions(
    basis: ScaleBasis, columns: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Combinations of the columns (n, b) that are uncorrelated with mean square one: (b, k), smoothest first.

    Also how rough each is, (k,): a ridge penalty ``sum c^2 / expected`` on the coefficients of the columns is
    ``sum roughness * a^2`` on those of the combinations.
    """
    centred = (columns - columns.mean(axis=0)) * np.sqrt(basis.expected)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    kept = values > _COPY * values[-1]
    whitening = vectors[:, kept] / np.sqrt(values[kept])
    roughness, rotation = np.linalg.eigh(whitening.T @ whitening)
    return np.sqrt(basis.expected)[:, None] * (whitening @ rotation), roughness
