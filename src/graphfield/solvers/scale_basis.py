"""Functions of the covariates in which the logarithm of a scale is linear."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from graphfield.data.moving_scales import rectified

# A function of a number is piecewise linear, flat beyond these quantiles: a wild value decides nothing.
_OUTER = 0.005
# Rectifiers at most, bends of a number, and bends of two covariates together (none where there is no room).
_MAX_RECTIFIERS, _MAX_BENDS, _MAX_JOINT_BENDS, _MIN_JOINT_BENDS = 160, 20, 8, 2
# Variance that a slope is expected to have beside that of the bends, where a number acts on its own.
_FREE_SLOPE = 100.0
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
    """Bends of ``max(0, W @ weights - reach)`` at some values; how far its slope is expected to go."""

    weights: NDArray[np.float64]  # (m,)
    offset: float
    knots: NDArray[np.float64]  # ascending; flat beyond the last
    slope: float

    def blocks(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Weights, bias, mix and expected variances of the functions of this direction."""
        h = len(self.knots)
        mix = np.vstack([np.eye(h - 1), -np.ones((1, h - 1))])
        expected = np.diff(self.knots)  # as if the slope were a random walk
        expected[0] = self.slope
        return np.tile(self.weights[:, None], h), self.offset - self.knots, mix, expected


def scale_basis(W: NDArray[np.float64], n_numeric: int) -> ScaleBasis:
    """Of features without their one, (n, m), the first ``n_numeric`` of them numbers, the others levels.

    Each number on its own, each level, and two of them together where there are few. Sums and differences of
    two numbers stand for their product.
    """
    numbers, levels = range(n_numeric), range(n_numeric, W.shape[1])
    unit = np.eye(W.shape[1])
    room = _MAX_RECTIFIERS - len(levels)
    bends = int(np.clip(room // max(1, n_numeric), 1, _MAX_BENDS))
    directions = [_Direction(unit[level], 0.0, np.array([0.0, 1.0]), 1.0) for level in levels]
    directions += [
        _Direction(unit[number], 0.0, _knots(W[:, number], bends), _FREE_SLOPE) for number in numbers
    ]
    n_pairs = n_numeric * (n_numeric - 1) + n_numeric * len(levels)
    room = (room - n_numeric * bends) // max(1, n_pairs) - 1
    if n_pairs and room >= _MIN_JOINT_BENDS:
        directions += _joint(W, n_numeric, min(room, _MAX_JOINT_BENDS))
    weights, bias, mix, expected = zip(*(one.blocks() for one in directions if len(one.knots) > 1), strict=True)
    return ScaleBasis(np.hstack(weights), np.concatenate(bias), _block_diagonal(mix), np.concatenate(expected))


def _joint(W: NDArray[np.float64], n_numeric: int, bends: int) -> Iterator[_Direction]:
    unit = np.eye(W.shape[1])
    for one, other in combinations(range(n_numeric), 2):
        for sign in (1, -1):
            weights = (unit[one] + sign * unit[other]) / np.sqrt(2)
            yield _Direction(weights, 0.0, _knots(W @ weights, bends), 1.0)
    for number in range(n_numeric):
        reach = 2 * float(np.ptp(W[:, number]))  # brings rows of other levels below all knots
        for level in range(n_numeric, W.shape[1]):
            own = W[W[:, level] == 1, number]
            knots = _knots(own, bends) if len(own) else own
            yield _Direction(unit[number] + reach * unit[level], -reach, knots, 1.0)


def _knots(values: NDArray[np.float64], bends: int) -> NDArray[np.float64]:
    return np.unique(np.quantile(values, np.linspace(_OUTER, 1 - _OUTER, bends + 2)))


def _block_diagonal(blocks: tuple[NDArray, ...]) -> NDArray[np.float64]:
    rows, columns = np.sum([block.shape for block in blocks], axis=0)
    result, row, column = np.zeros((rows, columns)), 0, 0
    for block in blocks:
        result[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return result


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
