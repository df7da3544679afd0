"""Graphical lasso at the penalty under which held-out rows are most likely.

The search is that of scikit-learn's ``GraphicalLassoCV`` with its grid and refinements. It is faster for
three reasons: second moments are computed once per fold and shared by all penalties, folds are solved by
:mod:`graphfield.solvers.glasso_admm`, each penalty from the one before, and a grid is not followed far below
the best penalty, where graphs are dense.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import EmpiricalCovariance, log_likelihood

from graphfield.exceptions import TrainingError
from graphfield.solvers.glasso import edge_counts, graphical_lasso_path, quiet
from graphfield.solvers.glasso_admm import ILL_CONDITIONED, SEARCH_ACCURACY, PrecisionSolver
from graphfield.solvers.penalties import (
    FoldPairs,
    PathSearch,
    PenaltyChoice,
    penalty_path,
    smallest_penalty,
    too_dense,
)

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
    varies: bool  # all nodes among the training rows
    solver: PrecisionSolver = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "solver", PrecisionSolver(self.train))

    @classmethod
    def of(cls, train: NDArray[np.float64], held_out: NDArray[np.float64]) -> _Fold:
        plain = EmpiricalCovariance().fit(train)
        around_mean, around_known = (
            (held_out - mean).T @ (held_out - mean) / len(held_out)
            for mean in (held_out.mean(axis=0), plain.location_)
        )
        likely = float(log_likelihood(around_known, plain.get_precision()))
        varies = bool((np.ptp(train, axis=0) > 0).all())
        return cls(plain.covariance_, around_mean, len(train), likely, varies)

    def likelihood(self, penalty: float) -> tuple[float, float]:
        """Of the held-out rows at a penalty, and the number of neighbours that a node has on average."""
        try:
            precision = self.solver.solve(penalty, SEARCH_ACCURACY)
        except TrainingError:
            return -np.inf, np.inf
        found = log_likelihood(self.held_out, precision)
        n_neighbours = np.count_nonzero(precision) / len(precision) - 1
        return float(found) if np.isfinite(found) else -np.inf, n_neighbours


def graphical_lasso_cv(X: NDArray[np.float64], pairs: FoldPairs, n_penalties: int) -> PenaltyChoice:
    """Sparse precision matrix of centred ``X`` (n, p), with the path of held-out log-likelihoods.

    ``n_penalties`` are tried from the empty graph down, and as many again around the best one. The
    numbers of edges on the path are those on all rows.
    """
    S = X.T @ X / len(X)
    with quiet():
        parts = [_Fold.of(train, held_out) for train, held_out in pairs]
    # Where a node never varies, as a rare event may in a fold, no penalty has a likelihood.
    parts = [part for part in parts if part.varies] or parts
    scores = _search(parts, penalty_path(S, n_penalties, ratio=_SPAN))
    best = _best(scores)
    tried = sorted(scores, reverse=True)
    penalties = np.array([*tried, 0.0])
    likelihoods = [*(scores[a] for a in tried), float(np.mean([f.unpenalised for f in parts]))]
    precisions = graphical_lasso_path(S, penalties)
    if best == tried[-1] and likelihoods[-1] > scores[best] and np.isfinite(precisions[-1]).all():
        best = 0.0  # the smaller the better, to the end of the search: none at all
    solution = precisions[penalties == best][0]
    if np.isnan(solution).any():
        raise TrainingError(ILL_CONDITIONED.format(penalty=best))
    path = np.column_stack([penalties, np.array(likelihoods), edge_counts(precisions)])
    return PenaltyChoice(solution, best, path)


def _search(parts: list[_Fold], grid: NDArray[np.float64]) -> dict[float, float]:
    """Mean held-out log-likelihood of every penalty that was tried."""
    scores = _followed(parts, grid)
    for _ in range(_ROUNDS - 1):
        high, low = _around(scores, smallest_penalty(parts[0].n_train))
        scores |= _followed(parts, np.logspace(np.log10(high), np.log10(low), len(grid) + 2)[1:-1])
    return scores


def _followed(parts: list[_Fold], grid: NDArray[np.float64]) -> dict[float, float]:
    """Scores at descending penalties until they have become worse for good."""

    def attempt(penalty: float, _: bool | None) -> tuple[float, bool]:
        likelihoods, degrees = zip(*(fold.likelihood(penalty) for fold in parts), strict=True)
        return -float(np.mean(likelihoods)), too_dense(float(np.mean(degrees)), parts[0].n_train)

    search = PathSearch(grid.tolist(), attempt).walk(
        0, lambda s: s.worse >= (1 if s.last.solution else _WORSE)
    )
    return {one.value: -one.loss for one in search.tried.values()}


def _best(scores: dict[float, float]) -> float:
    """The penalty with the highest score, the smaller one of equals."""
    usable = {penalty: score for penalty, score in scores.items() if score < _TOO_LIKELY}
    return max(usable or scores, key=lambda penalty: (scores[penalty], -penalty))


def _around(scores: dict[float, float], smallest: float) -> tuple[float, float]:
    """Between which penalties to look closer: the neighbours of the best one.

    Below the last one the search goes on, but not beyond ``smallest``: with copies among the nodes the
    likelihood of held-out rows rises without end.
    """
    path = sorted(scores, reverse=True)
    best = path.index(_best(scores))
    if best < len(path) - 1:
        return path[max(best - 1, 0)], path[best + 1]
    below = max(0.01 * path[best], smallest)
    return (path[best], below) if below < path[best] else (path[max(best - 1, 0)], path[best])
