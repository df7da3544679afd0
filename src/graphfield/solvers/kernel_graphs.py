"""Graphs at the points of a grid from rows near them, and which penalty predicts new rows best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.data.encoded import Encoded
from graphfield.exceptions import TrainingError
from graphfield.solvers.glasso_admm import ILL_CONDITIONED, SEARCH_ACCURACY, PrecisionSolver
from graphfield.solvers.lasso import nodewise_lasso_path, residual_variances
from graphfield.solvers.leaf_likelihood import LARGEST, factor_of, penalty_of
from graphfield.solvers.penalties import PathSearch
from graphfield.solvers.rank_correlations import local_rank_correlations

# Rows that a point must see at least, counted as equal weights would be; with fewer, it looks further.
LEAST_ROWS, _FURTHER = 20.0, 1.3
# Of the grid of penalties.
_STEPS = 12
# Residual variances below this share of a node's are rounding errors.
_TINY = 1e-8


@dataclass(frozen=True)
class Local:
    """What rows near each point say: means (G, p), scales (G, p), correlations (G, p, p), rows seen (G,).

    ``directions`` is the trace of the smoother: in how many directions what is said of a pair can vary.
    """

    centers: NDArray[np.float64]
    scales: NDArray[np.float64]
    correlations: NDArray[np.float64]
    n_rows: NDArray[np.float64]
    directions: float

    def penalties(self, factor: float) -> NDArray[np.float64]:
        """A factor means the same where rows are many and where they are few."""
        return np.array([penalty_of(factor, n, self.centers.shape[1]) for n in self.n_rows])


def kernel_weights(rows: Encoded, points: Encoded, bandwidth: float) -> NDArray[np.float64]:
    """Gaussian in numbers, and in levels as if any two of them were one unit apart: (points, rows).

    >>> at = Encoded(np.array([[0.0], [1.0]]), np.array([[0], [1]]))
    >>> kernel_weights(at, at, np.inf).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    distance = np.square(points.numeric[:, None, :] - rows.numeric[None, :, :]).sum(axis=2)
    distance += (points.codes[:, None, :] != rows.codes[None, :, :]).sum(axis=2)
    found = np.empty(distance.shape)
    for point, own in enumerate(distance):
        width = bandwidth
        while True:
            found[point] = np.exp(-(own - own.min()) / (2 * width**2))
            if rows_seen(found[point]) >= min(LEAST_ROWS, len(own) / 2):
                break
            width *= _FURTHER
    return found


def rows_seen(weights: NDArray[np.float64]) -> float:
    """How many rows of equal weight would say as much."""
    return float(weights.sum() ** 2 / np.square(weights).sum())


def local_moments(
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    *,
    by_rank: bool = False,
) -> Local:
    """Means, then scales and correlations around them; ``shares`` (n, points) lead from points to rows.

    Correlations are those of products or ``by_rank``.
    """
    total = weights.sum(axis=1, keepdims=True)
    centers = weights @ values / total
    left = values - shares @ centers
    moments = np.array([(left * own[:, None]).T @ left for own in weights]) / total[:, :, None]
    scales = np.sqrt(moments.diagonal(axis1=1, axis2=2))
    scales = np.maximum(scales, _TINY)
    correlations = moments / (scales[:, :, None] * scales[:, None, :])
    if by_rank:
        correlations = local_rank_correlations(left, weights)
    correlations[:, np.arange(values.shape[1]), np.arange(values.shape[1])] = 1.0
    seen = np.array([rows_seen(own) for own in weights])
    return Local(centers, scales, correlations, seen, float((weights / total * shares.T).sum()))


@dataclass(frozen=True)
class Solution:
    """Matrices (G, p, p), and the scales of what is left (G, p) where they do not follow from these."""

    local: Local
    matrices: NDArray[np.float64]
    residuals: NDArray[np.float64] | None

    def row_likelihood(self, values: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of rows (n, p) that see the points in these ``shares`` (n, points); of the nodes one by one where
        there is no joint one."""
        log_units = shares @ np.log(self.local.scales)
        left = (values - shares @ self.local.centers) / np.exp(log_units)
        found = np.empty(len(values))
        flat = self.matrices.reshape(len(self.matrices), -1)
        for start in range(0, len(values), 256):
            rows = slice(start, start + 256)
            matrices = (shares[rows] @ flat).reshape(-1, *self.matrices.shape[1:])
            if self.residuals is None:
                quadratic = np.einsum("nj,njk,nk->n", left[rows], matrices, left[rows], optimize=True)
                found[rows] = (np.linalg.slogdet(matrices)[1] - quadratic) / 2
            else:
                scales = np.exp(shares[rows] @ np.log(self.residuals))
                error = (left[rows] - np.einsum("njk,nk->nj", matrices, left[rows])) / scales
                found[rows] = -(np.log(scales) + np.square(error) / 2).sum(axis=1)
        return found - log_units.sum(axis=1)


def solve_joint(local: Local, penalties: NDArray[np.float64], accuracy: float = SEARCH_ACCURACY) -> Solution:
    """Graphical lassos of weighted covariances (Zhou, Lafferty and Wasserman 2010)."""
    matrices = [
        PrecisionSolver(own).solve(float(penalty), accuracy)
        for own, penalty in zip(local.correlations, penalties, strict=True)
    ]
    return Solution(local, np.array(matrices), None)


def solve_nodewise(local: Local, penalties: NDArray[np.float64], _: float = SEARCH_ACCURACY) -> Solution:
    """Lassos of each node on the others with weighted rows (Kolar, Parikh and Xing 2010)."""
    coef = np.array(
        [
            nodewise_lasso_path(own, [penalty])[0]
            for own, penalty in zip(local.correlations, penalties, strict=True)
        ]
    )
    left = [residual_variances(b[None], own)[0] for b, own in zip(coef, local.correlations, strict=True)]
    return Solution(local, coef, np.sqrt(np.maximum(left, _TINY)))


SOLVERS = {"joint": solve_joint, "nodewise": solve_nodewise}


def best_factor(judge: Callable[[float], NDArray[np.float64]], start: int | None) -> tuple[int, NDArray]:
    """The step of the grid of penalties, and the likelihoods of held-out rows there.

    ``judge`` leads from a factor of the penalties to these.
    """

    def attempt(step: int, _: NDArray | None) -> tuple[float, NDArray]:
        try:
            rows = judge(factor_of(step))
        except TrainingError:  # the penalty is too small for such a covariance
            return np.inf, np.empty(0)
        return -float(rows.mean()), rows

    first = _STEPS // 2 if start is None else start
    search = PathSearch(range(_STEPS), attempt).walk(first, lambda _: True)
    if search.walk_back().best.step == first:
        search.walk(first + 1, lambda s: s.worse >= 1)
    if not np.isfinite(search.best.loss):
        raise TrainingError(ILL_CONDITIONED.format(penalty=LARGEST))
    return search.best.step, search.best.solution
