"""Graphical lasso at the penalty under which held-out rows are most likely.

The search is that of scikit-learn's ``GraphicalLassoCV`` with its grid, refinements and tolerances, and
so are penalty and matrix, but for one case: where the solver breaks down at small penalties and held-out rows
are likelier without any, there is none. It is faster for two reasons: second moments are computed once per
fold and shared by all penalties, and a grid is not followed far below the best penalty, where graphs are
dense and solutions with fewer rows than nodes never converge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import EmpiricalCovariance, empirical_covariance, log_likelihood
from sklearn.covariance._graph_lasso import _graphical_lasso

from graphfield.data.splits import folds
from graphfield.exceptions import DataError
from graphfield.solvers.glasso import ILL_CONDITIONED, edge_counts, graphical_lasso_path, quiet
from graphfield.solvers.penalties import PenaltyChoice, too_dense

_MAX_ITERATIONS, _MAX_ITERATIONS_IN_FOLDS = 200, 20
_ROUNDS = 2
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

    @classmethod
    def of(cls, train: NDArray[np.float64], held_out: NDArray[np.float64]) -> _Fold:
        plain = EmpiricalCovariance().fit(train)
        return cls(
            plain.covariance_, empirical_covariance(held_out), len(train), float(plain.score(held_out))
        )


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
        precision, best, scores = _first_that_works(S, parts, n_penalties)
    tried = sorted(scores, reverse=True)
    penalties = np.array([*tried, 0.0])
    likelihoods = [*(scores[a] for a in tried), float(np.mean([f.unpenalised for f in parts]))]
    precisions = graphical_lasso_path(S, penalties)
    counts = edge_counts(precisions)
    broke_down = not np.isfinite(likelihoods).all()
    if broke_down and likelihoods[-1] > scores[best] and np.isfinite(precisions[-1]).all():
        # Below some penalty the solver finds nothing, though less of one is better: take none at all.
        precision, best = precisions[-1], 0.0
    counts[penalties == best] = edge_counts(precision[None])
    return PenaltyChoice(precision, best, np.column_stack([penalties, np.array(likelihoods), counts]))


def _first_that_works(
    S: NDArray[np.float64], parts: list[_Fold], n_penalties: int
) -> tuple[NDArray[np.float64], float, dict[float, float]]:
    """The precision matrix, its penalty, and the scores of all penalties of that search."""
    top = np.log10(np.abs(S - np.diag(np.diag(S))).max())
    usual = np.logspace(top - 2, top, n_penalties)[::-1]
    # Where nodes are nearly copies of each other the solver breaks down at small penalties.
    cautious = [np.geomspace(1, low, 2 * n_penalties) for low in (0.02, 0.1, 0.3)]
    for grid, rounds in ((usual, _ROUNDS), *((grid, 1) for grid in cautious)):
        scores = _search(parts, grid, rounds)
        best = _best(scores)
        try:
            return _graphical_lasso(S, best, max_iter=_MAX_ITERATIONS)[1], best, scores
        except FloatingPointError:
            continue
    raise DataError(ILL_CONDITIONED)


def _search(parts: list[_Fold], grid: NDArray[np.float64], rounds: int) -> dict[float, float]:
    """Mean held-out log-likelihood of every penalty that was tried."""
    scores = _followed(parts, grid)
    for _ in range(rounds - 1):
        high, low = _around(scores)
        scores |= _followed(parts, np.logspace(np.log10(high), np.log10(low), len(grid) + 2)[1:-1])
    return scores


def _followed(parts: list[_Fold], grid: NDArray[np.float64]) -> dict[float, float]:
    """Scores at descending penalties until they have become worse for good."""
    scores: dict[float, float] = {}
    covariances = [fold.train for fold in parts]
    best, worse = -np.inf, 0
    for penalty in map(float, grid):
        likelihoods, degrees = [], []
        for i, fold in enumerate(parts):
            likelihoods.append(-np.inf)
            try:
                covariances[i], precision, *_ = _graphical_lasso(
                    fold.train,
                    penalty,
                    cov_init=covariances[i],
                    max_iter=_MAX_ITERATIONS_IN_FOLDS,
                )
            except FloatingPointError:
                continue
            likelihood = log_likelihood(fold.held_out, precision)
            likelihoods[-1] = likelihood if np.isfinite(likelihood) else -np.inf
            degrees.append(np.count_nonzero(precision) / len(precision) - 1)
        score = scores[penalty] = float(np.mean(likelihoods))
        best, worse = (score, 0) if score >= best else (best, worse + 1)
        dense = not degrees or too_dense(float(np.mean(degrees)), parts[0].n_train)
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
    broken_below = not np.isfinite([scores[penalty] for penalty in path[best + 1 :]]).any()
    return path[best if broken_below else max(best - 1, 0)], path[best + 1]
