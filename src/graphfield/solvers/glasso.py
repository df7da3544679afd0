"""Graphical lasso: its path of penalties, and one penalty given, or chosen by EBIC or on held-out rows."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import pinvh
from sklearn.covariance import graphical_lasso, log_likelihood
from sklearn.exceptions import ConvergenceWarning

from graphfield.exceptions import TrainingError
from graphfield.solvers.glasso_admm import (
    ILL_CONDITIONED,
    SEARCH_ACCURACY,
    PrecisionSolver,
    optimality_violation,
)
from graphfield.solvers.moments import FoldMoments
from graphfield.solvers.penalties import (
    PathSearch,
    PenaltyChoice,
    between_neighbours,
    penalty_path,
    search_path,
    smallest_penalty,
    too_dense,
)

# Duality gaps of the matrix and of the lasso inside. With scikit-learn's 1e-4 for the inner one the
# outer gap often stalls above its own tolerance until the iterations run out.
_TOLERANCE, _INNER_TOLERANCE = 1e-6, 1e-10
_MAX_ITERATIONS = 100
# How far a solution may violate the optimality conditions, in units of the penalty.
_ACCURACY = 5e-3
# A covariance whose smallest eigenvalue is below this share of the penalty is singular for scikit-learn's
# solver at a tight tolerance, which then takes minutes or fails.
_SINGULAR = 1e-3
# Rounds of the EBIC search after the first, each between the neighbours of the best penalty so far.
_ROUNDS = 2
# The grid of the search on held-out rows ends at this share of the penalty that leaves no edge. It is left
# after so many penalties worse than the best one, one after the other; after one where graphs are too dense.
_SPAN, _WORSE = 0.01, 2
# A larger likelihood than this is a sign of a singular matrix.
_TOO_LIKELY = 0.1 / np.finfo(np.float64).eps


def graphical_lasso_path(S: NDArray[np.float64], penalties: ArrayLike) -> NDArray[np.float64]:
    """Minimise ``-log det(Theta) + tr(S Theta) + penalty sum_{j != k} |Theta_jk|`` at each penalty.

    Each solution meets the conditions of :func:`optimality_violation` to half a percent of the penalty.

    Returns
    -------
    ndarray of shape (m, p, p)
        Precision matrices; NaN where there is none: without a penalty and with fewer rows than nodes, or
        with a penalty that is close to the rounding errors of a singular matrix.
    """
    smallest = float(np.linalg.eigvalsh(S)[0])
    solver = PrecisionSolver(S)
    return np.array([_precision(S, float(penalty), smallest, solver) for penalty in np.atleast_1d(penalties)])


def _precision(S: NDArray, penalty: float, smallest: float, solver: PrecisionSolver) -> NDArray[np.float64]:
    if penalty == 0:
        regular = smallest > len(S) * np.finfo(np.float64).eps
        return np.linalg.inv(S) if regular else np.full_like(S, np.nan)
    found = None if smallest < _SINGULAR * penalty else _by_scikit_learn(S, penalty)
    try:
        return solver.solve(penalty, _ACCURACY) if found is None else found
    except TrainingError:
        return np.full_like(S, np.nan)


def _by_scikit_learn(S: NDArray[np.float64], penalty: float) -> NDArray[np.float64] | None:
    """Its precision matrix, or None where that is no solution."""
    try:
        with _quiet():
            found = graphical_lasso(
                S, penalty, tol=_TOLERANCE, enet_tol=_INNER_TOLERANCE, max_iter=_MAX_ITERATIONS
            )[1]
    except (FloatingPointError, np.linalg.LinAlgError):
        return None
    precision = np.asarray(found, dtype=np.float64)
    return precision if optimality_violation(precision, S, penalty) <= _ACCURACY * penalty else None


def precision_ebic(
    precisions: NDArray[np.float64], S: NDArray[np.float64], n_samples: int, gamma: float = 0.5
) -> NDArray[np.float64]:
    """Extended BIC of each precision matrix, (m,); lower is better, infinite for NaN matrices.

    Foygel and Drton (2010): ``-2 loglik + E log n + 4 E gamma log p`` with E edges. ``gamma = 0`` is
    the BIC; more prefers fewer edges.
    """
    with np.errstate(invalid="ignore"):
        signs, log_dets = np.linalg.slogdet(precisions)
    twice_likelihood = n_samples * (log_dets - np.einsum("jk,mkj->m", S, precisions))
    score = -twice_likelihood + edge_counts(precisions) * (np.log(n_samples) + 4 * gamma * np.log(len(S)))
    return np.where((signs > 0) & np.isfinite(score), score, np.inf)


def edge_counts(precisions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Non-zero entries above the diagonal, (m,); NaN for NaN matrices."""
    upper = np.triu(precisions, 1)
    return np.where(np.isnan(precisions).any(axis=(1, 2)), np.nan, np.count_nonzero(upper, axis=(1, 2)))


def graphical_lasso_ebic(
    S: NDArray[np.float64], n_samples: int, n_penalties: int, gamma: float = 0.5
) -> PenaltyChoice:
    """The precision matrix with the lowest extended BIC.

    ``n_penalties`` are tried from the empty graph down to a tenth of the noise level (or until nodes
    have as many neighbours as half the rows), then twice as many between the neighbours of the best.
    """
    tried = search_path(S, n_samples, n_penalties)
    search = PathSearch(tried, lambda penalty, _: (0.0, graphical_lasso_path(S, [penalty])[0]))
    search.walk(0, lambda s: too_dense(np.count_nonzero(s.last.solution) / len(S) - 1, n_samples))
    precisions = np.array([one.solution for one in search.tried.values()])
    tried = tried[: len(precisions)]
    for _ in range(_ROUNDS):
        best = int(np.argmin(precision_ebic(precisions, S, n_samples, gamma)))
        new = between_neighbours(tried, best, n_penalties)
        tried = np.concatenate([tried, new])
        order = np.argsort(-tried, kind="stable")
        precisions = np.concatenate([precisions, graphical_lasso_path(S, new)])[order]
        tried = tried[order]
    scores = precision_ebic(precisions, S, n_samples, gamma)
    best = int(np.argmin(scores))
    path = np.column_stack([tried, scores, edge_counts(precisions)])
    return PenaltyChoice(precisions[best], float(tried[best]), path)


def graphical_lasso_at(S: NDArray[np.float64], penalty: float) -> PenaltyChoice:
    """The precision matrix at a penalty that is given."""
    precisions = graphical_lasso_path(S, [penalty])
    if np.isnan(precisions).any():
        raise TrainingError(ILL_CONDITIONED.format(penalty=penalty))
    path = np.array([[penalty, np.nan, edge_counts(precisions)[0]]])
    return PenaltyChoice(precisions[0], penalty, path)


class _Fold:
    """A fold, its solver, and the likelihood without any penalty."""

    def __init__(self, moments: FoldMoments) -> None:
        self.held_out, self.n_train = moments.new, moments.n_known
        self.solver = PrecisionSolver(moments.known)
        self.unpenalised = float(log_likelihood(moments.new_about_known, pinvh(moments.known)))

    def likelihood(self, penalty: float) -> tuple[float, float]:
        """Of the held-out rows at a penalty, and the number of neighbours that a node has on average."""
        try:
            precision = self.solver.solve(penalty, SEARCH_ACCURACY)
        except TrainingError:
            return -np.inf, np.inf
        found = log_likelihood(self.held_out, precision)
        n_neighbours = np.count_nonzero(precision) / len(precision) - 1
        return float(found) if np.isfinite(found) else -np.inf, n_neighbours


def graphical_lasso_cv(
    S: NDArray[np.float64],
    n_samples: int,
    folds: Sequence[FoldMoments],
    n_penalties: int,
) -> PenaltyChoice:
    """Sparse precision matrix of nodes with second moments S, with the path of held-out log-likelihoods.

    The search is that of scikit-learn's ``GraphicalLassoCV`` with its grid and refinements. It is faster for
    three reasons: second moments are computed once per fold and shared by all penalties, folds are solved by
    :mod:`graphfield.solvers.glasso_admm`, each penalty from the one before, and a grid is not followed far
    below the best penalty, where graphs are dense.

    ``n_penalties`` are tried from the empty graph down, and as many again around the best one. The
    numbers of edges on the path are those on all rows.
    """
    # Where a node never varies, as a rare event may in a fold, no penalty has a likelihood.
    usable = [fold for fold in folds if fold.varies] or folds
    with _quiet():
        parts = [_Fold(fold) for fold in usable]
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
    high, low = _around(scores, smallest_penalty(parts[0].n_train))
    return scores | _followed(parts, np.logspace(np.log10(high), np.log10(low), len(grid) + 2)[1:-1])


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


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the solver's warnings: what stops short at the smallest penalties does not decide."""
    with warnings.catch_warnings(), _numpy_random_state_kept:
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


class _KeptRandomState:
    """scikit-learn's solver draws (and ignores) a seed from NumPy's global generator.

    That has one state for all threads: the last of those that are in here at once brings it back.
    """

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._state = np.random.get_state()  # noqa: NPY002
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                np.random.set_state(self._state)  # noqa: NPY002


_numpy_random_state_kept = _KeptRandomState()
