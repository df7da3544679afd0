"""Neighbourhood selection (Meinshausen and Buehlmann 2006): the lasso of each node on all others."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from graphfield.solvers.moments import FoldMoments
from graphfield.solvers.penalties import PathSearch, PenaltyChoice, search_path, too_dense

# Duality gap relative to the variance of a node. scikit-learn's 1e-4 leaves two digits in the
# coefficients; this leaves eight and with more rows than nodes costs a tenth more time.
_TOLERANCE = 1e-10
_MAX_ITERATIONS = 5_000
# Penalties that are solved before the search looks whether it has gone far enough.
_BLOCK = 5


def nodewise_lasso_path(
    S: NDArray[np.float64], penalties: ArrayLike, start: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Minimise ``|x_j - X b|^2 / (2 n) + penalty |b|_1`` over b with b_j = 0, for every node j.

    Parameters
    ----------
    S : ndarray of shape (p, p)
        ``X'X / n`` of centred columns. It is all the lasso needs to know, so n does not matter to
        the cost, and it may be singular (n < p).
    penalties : array-like of shape (m,)
        In any order; each node's path starts at the largest and goes down from solution to solution.
    start : ndarray of shape (p, p), optional
        A solution at another penalty, from which that at the largest is found sooner.

    Returns
    -------
    ndarray of shape (m, p, p)
        ``[i, j, k]`` is the coefficient of node k in the regression of node j at penalty i.
    """
    penalties = np.asarray(penalties, dtype=np.float64)
    descending = np.argsort(-penalties, kind="stable")
    coef = np.empty((len(penalties), *S.shape))
    coef[descending] = _solve(S, penalties[descending], np.zeros(S.shape) if start is None else start)
    return coef


def _solve(S: NDArray, descending: NDArray, start: NDArray) -> NDArray[np.float64]:
    """Coefficients at descending penalties, found from ``start`` (p, p) on."""
    p = len(S)
    # scikit-learn divides by the number of rows it is shown: p rows with rows'rows / p = S.
    rows, gram = np.sqrt(p) * _square_root(S), p * S
    coef = np.zeros((len(descending), p, p))
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        # Copies of one node stop short of a tolerance as tight as this one.
        for j in range(p):
            others = np.flatnonzero(np.arange(p) != j)
            _, path, _ = lasso_path(
                np.asfortranarray(rows[:, others]),
                np.ascontiguousarray(rows[:, j]),
                alphas=descending,
                precompute=np.ascontiguousarray(gram[np.ix_(others, others)]),
                Xy=gram[others, j],
                coef_init=start[j, others],
                tol=_TOLERANCE,
                max_iter=_MAX_ITERATIONS,
                random_state=0,  # never used, but drawn from NumPy's global generator otherwise
                check_input=False,  # three quarters of the time otherwise
            )
            coef[:, j, others] = path.T
    return coef


def _square_root(S: NDArray[np.float64]) -> NDArray[np.float64]:
    """A matrix R with R'R = S; S may be singular."""
    values, vectors = np.linalg.eigh(S)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def residual_variances(coef: NDArray[np.float64], S: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean squares of ``x_j - sum_k coef_jk x_k`` on rows with second moments ``S``: (m, p).

    ``(I - B) S (I - B)'`` has them on its diagonal, so no row is needed.
    """
    identity = np.eye(len(S))
    left = (identity - B for B in coef)
    return np.array([np.einsum("jk,jk->j", E @ S, E) for E in left])


def nodewise_cv_errors(folds: Sequence[FoldMoments], penalties: ArrayLike) -> NDArray[np.float64]:
    """Held-out squared error per row, mean over nodes, at each penalty: (m,).

    In each fold the means of the training rows are subtracted on both sides.
    """
    total = np.zeros(np.size(penalties))
    for fold in folds:
        coef = nodewise_lasso_path(fold.known, penalties)
        total += fold.n_new * residual_variances(coef, fold.new_about_known).mean(axis=1)
    return total / sum(fold.n_new for fold in folds)


def nodewise_ebic(
    coef: NDArray[np.float64], S: NDArray[np.float64], n_samples: int, gamma: float = 0.5
) -> NDArray[np.float64]:
    """Extended BIC of each set of p neighbourhoods, (m,); lower is better.

    Per node the criterion of Chen and Chen (2008) for a linear regression with p - 1 candidates,
    as Foygel Barber and Drton (2015) use it for neighbourhoods, added up over the nodes::

        sum_j  n log(rss_j / n) + df_j log n + 2 gamma df_j log(p - 1)

    with df_j the number of non-zero coefficients. ``gamma = 0`` is the BIC; more prefers fewer
    edges. It is infinite where some node has more neighbours than half the rows.
    """
    degrees = np.count_nonzero(coef, axis=2)  # (m, p)
    variances = np.maximum(residual_variances(coef, S), np.finfo(np.float64).tiny)
    cost = np.log(n_samples) + 2 * gamma * np.log(max(len(S) - 1, 1))
    score = (n_samples * np.log(variances) + degrees * cost).sum(axis=1)
    # Residual variances go to zero there, and their logarithm would always prefer the fullest graph.
    return np.where([too_dense(most, n_samples) for most in degrees.max(axis=1)], np.inf, score)


def nodewise_lasso_cv(
    S: NDArray[np.float64], n_samples: int, folds: Sequence[FoldMoments], n_penalties: int
) -> PenaltyChoice:
    """One penalty for all nodes, by held-out squared error."""
    penalties, coef = _search(S, n_samples, n_penalties)
    return PenaltyChoice.best(coef, penalties, nodewise_cv_errors(folds, penalties), coef != 0)


def nodewise_lasso_ebic(
    S: NDArray[np.float64], n_samples: int, n_penalties: int, gamma: float = 0.5
) -> PenaltyChoice:
    """One penalty for all nodes, by :func:`nodewise_ebic`."""
    penalties, coef = _search(S, n_samples, n_penalties)
    return PenaltyChoice.best(coef, penalties, nodewise_ebic(coef, S, n_samples, gamma), coef != 0)


def _search(S: NDArray, n_samples: int, n_penalties: int) -> tuple[NDArray, NDArray]:
    """The penalties worth a look and their coefficients: down to the noise or to a full graph."""
    penalties = search_path(S, n_samples, n_penalties)
    blocks = np.split(penalties, range(_BLOCK, len(penalties), _BLOCK))
    empty = np.zeros((1, *S.shape))
    search = PathSearch(
        blocks, lambda block, near: (0.0, _solve(S, block, (empty if near is None else near)[-1]))
    )
    search.walk(0, lambda s: too_dense(np.count_nonzero(s.last.solution[-1]) / len(S), n_samples))
    found = np.concatenate([one.solution for one in search.tried.values()])
    return penalties[: len(found)], found


def nodewise_lasso_at(S: NDArray[np.float64], penalty: float) -> PenaltyChoice:
    """The solution at a penalty that is given."""
    coef = nodewise_lasso_path(S, [penalty])
    return PenaltyChoice.best(coef, np.array([penalty]), np.array([np.nan]), coef != 0)
