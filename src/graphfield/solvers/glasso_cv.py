"""Graphical lasso at the penalty under which held-out rows are most likely.

The search is that of scikit-learn's ``GraphicalLassoCV`` with its grid, refinements and tolerances, and
so are penalty and matrix wherever its solver finds them: a matrix that violates the conditions of optimality
is replaced by one that does not (:mod:`graphfield.solvers.glasso_admm`). It is faster for two reasons: second
moments are computed once per fold and shared by all penalties, and a grid is not followed far below the best
penalty, where graphs are dense.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import EmpiricalCovariance, empirical_covariance, log_likelihood

from graphfield.data.splits import folds
from graphfield.exceptions import TrainingError
from graphfield.solvers.glasso import (
    ACCURACY,
    SEARCH_ACCURACY,
    edge_counts,
    graphical_lasso_path,
    quiet,
    sparse_precision,
)
from graphfield.solvers.glasso_admm import PrecisionSolver
from graphfield.solvers.penalties import PenaltyChoice, penalty_path, too_dense

_MAX_ITERATIONS, _MAX_ITERATIONS_IN_FOLDS = 200, 20
_ROUNDS = 2
# The first grid ends at this share of the penalty that leaves no edge.
_SPAN = 0.01
# Penalties worse than the best one, one after the other, after which a grid is left. One of them is
# enough where the graphs are too dense.
_WORSE = 2
# A larger likelihood than this is a sign of a singular matrix.
_TOO_LIKELY = 0.1 / np.finfo(np.float64).eps


@dataclass(frozen=True)
class _Fold:
    """Second moments of training and of held-out rows, and the likelihood without any penalty."""

    train: NDArray[np.float64]
    held_out: NDArray[np.float64]
    n_train: int
    unpenalised: float
    solver: PrecisionSolver = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "solver", PrecisionSolver(self.train))

    @classmethod
    def of(cls, train: NDArray[np.float64], held_out: NDArray[np.float64]) -> _Fold:
        plain = EmpiricalCovariance().fit(train)
        return cls(
            plain.covariance_, empirical_covariance(held_out), len(train), float(plain.score(held_out))
        )

    def likelihood(self, penalty: float) -> tuple[float, float]:
        """Of the held-out rows at a penalty, and the number of neighbours that a node has on average."""
        try:
            precision = sparse_precision(
                self.train, penalty, SEARCH_ACCURACY, self.solver, max_iterations=_MAX_ITERATIONS_IN_FOLDS
            )
        except TrainingError:
            return -np.inf, np.inf
        found = log_likelihood(self.held_out, precision)
        n_neighbours = np.count_nonzero(precision) / len(precision) - 1
        return float(found) if np.isfinite(found) else -np.inf, n_neighbours


def graphical_lasso_cv(
    X: NDArray[np.float64], groups: NDArray | None, n_penalties: int, n_folds: int
) -> PenaltyChoice:
    """Sparse precision matrix of centred ``X`` (n, p), with the path of held-out log-likelihoods.

    ``n_penalties`` are tried from the empty graph down, and as many again around the best one. The
    numbers of edges on the path are those on all rows.
    """
    S = X.T @ X / len(X)
    with quiet():
        parts = [_Fold.of(X[train], X[held_out]) for train, held_out in folds(len(X), groups, n_folds)]
    scores = _search(parts, penalty_path(S, n_penalties, ratio=_SPAN))
    best = _best(scores)
    precision = sparse_precision(S, best, ACCURACY, max_iterations=_MAX_ITERATIONS)
    tried = sorted(scores, reverse=True)
    penalties = np.array([*tried, 0.0])
    likelihoods = [*(scores[a] for a in tried), float(np.mean([f.unpenalised for f in parts]))]
    counts = edge_counts(graphical_lasso_path(S, penalties))
    counts[penalties == best] = edge_counts(precision[None])
    return PenaltyChoice(precision, best, np.column_stack([penalties, np.array(likelihoods), counts]))


def _search(parts: list[_Fold], grid: NDArray[np.float64]) -> dict[float, float]:
    """Mean held-out log-likelihood of every penalty that was tried."""
    scores = _followed(parts, grid)
    for _ in range(_ROUNDS - 1):
        high, low = _around(scores)
        scores |= _followed(parts, np.logspace(np.log10(high), np.log10(low), len(grid) + 2)[1:-1])
    return scores


def _followed(parts: list[_Fold], grid: NDArray[np.float64]) -> dict[float, float]:
    """Scores at descending penalties until they have become worse for good."""
    scores: dict[float, float] = {}
    best, worse = -np.inf, 0
    for penalty in map(float, grid):
        likelihoods, degrees = zip(*(fold.likelihood(penalty) for fold in parts), strict=True)
        score = scores[penalty] = float(np.mean(likelihoods))
        best, worse = (score, 0) if score >= best else (best, worse + 1)
        dense = too_dense(float(np.mean(degrees)), parts[0].n_train)
        if worse >= (1 if dense else _WORSE):
            break
    return scores


def _best(scores: dict[float, float]) -> float:
    """The penalty with the highest score, the smaller one of equals."""
    usable = {penalty: score for penalty, score in scores.items() if score < _TOO_LIKELY}
    return max(usable or scores, key=lambda penalty: (scores[penalty], -penalty))


def _around(scores: dict[float, float]) -> tuple[float, float]:
    """Between which penalties to look closer: the neighbours of the best one."""
    path = sorted(scores, reverse=True)
    best = path.index(_best(scores))
    if best == len(path) - 1:
        return path[best], 0.01 * path[best]
    return path[max(best - 1, 0)], path[best + 1]
