"""Graphical lasso: its path of penalties, and one penalty given or chosen by EBIC."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.covariance import graphical_lasso
from sklearn.exceptions import ConvergenceWarning

from graphfield.exceptions import TrainingError
from graphfield.solvers.glasso_admm import ILL_CONDITIONED, PrecisionSolver, optimality_violation
from graphfield.solvers.penalties import PathSearch, PenaltyChoice, between_neighbours, search_path, too_dense

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
        with quiet():
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


@contextmanager
def quiet() -> Iterator[None]:
    """Without the solver's warnings: what stops short at the smallest penalties does not decide."""
    with warnings.catch_warnings(), _numpy_random_state_kept():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@contextmanager
def _numpy_random_state_kept() -> Iterator[None]:
    """scikit-learn's solver draws (and ignores) a seed from NumPy's global generator."""
    state = np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
