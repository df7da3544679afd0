"""The graphical lasso where nodes are copies or sums of others, and the conditions every solution must meet.

Block coordinate descent (scikit-learn's solver) loses its footing where the covariance matrix is singular
and the penalty small. The alternating direction method of multipliers (Boyd et al., 2011, section 6.5) does
not: it keeps two versions of the precision matrix, one positive definite and one sparse, and an eigenvalue
decomposition in each iteration makes the first of them exact whatever the condition of the matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.exceptions import TrainingError
from graphfield.solvers.shrinkage import shrink_entries

ILL_CONDITIONED = (
    "The graphical lasso has no accurate solution at penalty={penalty:.3g}: some nodes are too nearly "
    "copies, or sums, of others for so small a penalty. Drop some of them, or use a larger penalty, 'ebic' "
    "or 'cv'."
)
# How far a solution that is only compared with others may violate the conditions, in units of the penalty.
SEARCH_ACCURACY = 0.05
# Iterations between two looks at the conditions and at the balance of the two residuals.
_LOOK_EVERY = 10
# The violation must halve within so many iterations: with 100 nodes, a third of them copies and sums, it did
# at every penalty down to .001. Rounding alone keeps it where it is.
_PATIENCE = 2_000
_MAX_ITERATIONS = 40_000
# Steps beyond the minimum of each update (Boyd et al., section 3.4.3, recommend 1.5 to 1.8).
_RELAXATION = 1.6
# The weight of the distance between the two matrices changes by no more than this factor at a time, and
# not at all if less than this is asked for.
_MOST, _LEAST = 5.0, 1.5


def optimality_violation(
    precision: NDArray[np.float64], covariance: NDArray[np.float64], penalty: float
) -> float:
    """How far from a minimum of ``-log det(T) + tr(S T) + penalty sum_{j != k} |T_jk|`` a matrix T is.

    The smallest subgradient there has no entry larger than this: with W the inverse of T, ``S - W`` is zero
    on the diagonal, ``-penalty sign(T)`` on edges, and no larger than the penalty elsewhere. Zero is exact,
    infinity stands for a matrix that is not positive definite.

    >>> S = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> optimality_violation(np.eye(2), S, penalty=0.5), optimality_violation(np.eye(2), S, penalty=0.2)
    (0.0, 0.3)
    """
    try:
        np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        return np.inf
    if not np.isfinite(precision).all():
        return np.inf
    slope = covariance - np.linalg.inv(precision)
    on_edges = np.abs(slope + penalty * np.sign(precision))
    violation = np.where(precision == 0, np.maximum(np.abs(slope) - penalty, 0), on_edges)
    np.fill_diagonal(violation, np.abs(np.diag(slope)))
    return float(violation.max())


class PrecisionSolver:
    """Sparse precision matrices of one covariance matrix (p, p), each found from the one before.

    Where all variances are positive there is exactly one solution at every penalty above zero, even for a
    singular matrix; where one is zero, as among few rows, there is none.
    """

    def __init__(self, covariance: NDArray[np.float64]) -> None:
        self._covariance = covariance
        with np.errstate(divide="ignore"):
            self._empty = np.diag(1 / np.diag(covariance))
        self._sparse = self._empty
        self._pull = np.zeros_like(covariance)  # W - S at a solution
        self._weight = 1.0

    def solve(self, penalty: float, accuracy: float) -> NDArray[np.float64]:
        """The solution whose :func:`optimality_violation` is at most ``accuracy * penalty``."""
        if not np.isfinite(self._empty).all():
            raise TrainingError(ILL_CONDITIONED.format(penalty=penalty))
        linked = np.abs(self._covariance) > penalty
        np.fill_diagonal(linked, False)
        # The others have no edge (Mazumder and Hastie, 2012), and may be of quite another size.
        nodes = np.flatnonzero(linked.any(axis=1))
        found = self._empty.copy()
        if len(nodes):
            part = np.ix_(nodes, nodes)
            problem = Alternation(
                self._covariance[part], penalty, self._sparse[part], self._pull[part], self._weight
            )
            found[part] = problem.solve(accuracy)
            self._pull[part], self._weight = problem.pull, problem.weight
        self._sparse = found
        return found.copy()


class Alternation:
    """The iterations at one penalty, from a start that need not be feasible.

    Matrices are (p, p), or (K, p, p) of problems that are solved together by a subclass.
    """

    metric: NDArray[np.float64] = np.ones((1, 1))  # how much the weight counts in each of several problems

    def __init__(
        self, covariance: NDArray, penalty: float, sparse: NDArray, pull: NDArray, weight: float
    ) -> None:
        self.covariance, self.penalty = covariance, penalty
        self.sparse, self.pull, self.weight = sparse, pull, weight
        self.off_diagonal = ~np.eye(covariance.shape[-1], dtype=bool)

    def solve(self, accuracy: float) -> NDArray[np.float64]:
        mark, marked_at = np.inf, 0
        for i in range(_MAX_ITERATIONS):
            residuals = self.iterate()
            if (i + 1) % _LOOK_EVERY:
                continue
            violation = self.violation()
            if violation <= accuracy * self.penalty:
                return self.sparse
            if violation < mark / 2:
                mark, marked_at = violation, i
            elif i - marked_at >= _PATIENCE:
                break
            self.balance(*residuals)
        raise TrainingError(ILL_CONDITIONED.format(penalty=self.penalty))

    def violation(self) -> float:
        """How far from the solution the sparse matrix is, in units of the penalty."""
        return optimality_violation(self.sparse, self.covariance, self.penalty)

    def shrink(self, ahead: NDArray[np.float64]) -> NDArray[np.float64]:
        """The proximal step of the penalty."""
        return np.where(self.off_diagonal, shrink_entries(ahead, self.penalty / self.weight), ahead)

    def iterate(self) -> tuple[float, float]:
        """One round; returns the distance of the two matrices and the last step, both relative."""
        weight, before = self.weight * self.metric, self.sparse
        values, vectors = np.linalg.eigh(weight * before - self.pull - self.covariance)
        # The positive root x of weight x - 1 / x = value, without cancellation where the value is negative.
        reach = np.abs(values) + np.sqrt(values**2 + 4 * weight[..., 0])
        roots = np.where(values > 0, reach / (2 * weight[..., 0]), 2 / reach)
        definite = (vectors * roots[..., None, :]) @ vectors.swapaxes(-1, -2)
        ahead = _RELAXATION * definite + (1 - _RELAXATION) * before + self.pull / weight
        self.sparse = self.shrink(ahead) + 0.0  # no zero is negative
        self.pull = weight * (ahead - self.sparse)
        apart = np.linalg.norm(definite - self.sparse) / np.linalg.norm(definite)
        moved = np.linalg.norm(weight * (self.sparse - before))
        return float(apart), float(moved / max(np.linalg.norm(self.pull), np.finfo(float).tiny))

    def balance(self, apart: float, moved: float) -> None:
        """Let the two residuals fall at one pace (Boyd et al., section 3.4.1, with relative residuals)."""
        if apart > 0 and moved > 0:
            factor = float(np.clip(np.sqrt(apart / moved), 1 / _MOST, _MOST))
            if not 1 / _LEAST < factor < _LEAST:
                self.weight *= factor
