"""Correlations from ranks alone: those of Gaussian data seen through any increasing functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.solvers.moments import FoldMoments


def rank_correlations(X: NDArray[np.floating]) -> NDArray[np.float64]:
    """``2 sin(pi / 6 rho)`` of Spearman's rho of any two columns, as a correlation matrix (p, p).

    The nonparanormal SKEPTIC of Liu, Han, Yuan, Lafferty and Wasserman (2012): where columns are increasing
    functions of Gaussian ones, these are the correlations of the latter, at nearly the rate of Gaussian data,
    and a few wild values move them little. Made of pairs, they need not be a correlation matrix: they are
    projected to one. A column that does not vary has no correlation with any other.

    >>> X = np.random.default_rng(0).normal(size=(500, 3)).cumsum(axis=1)
    >>> bool(np.allclose(rank_correlations(np.exp(X)), rank_correlations(X)))
    True
    """
    return local_rank_correlations(X, np.ones((1, len(X))))[0]


def local_rank_correlations(X: NDArray[np.floating], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same of rows (n, p) with each of some sets of weights (G, n), (G, p, p).

    The rank of a value is the weight of what lies below it, and half of that of its equals.
    """
    codes = [np.unique(column, return_inverse=True)[1] for column in X.T]
    found = np.empty((len(weights), X.shape[1], X.shape[1]))
    ranks = np.empty(X.shape)
    for own, correlations in zip(weights, found, strict=True):
        for column, code in zip(ranks.T, codes, strict=True):
            known = np.bincount(code, own)
            column[:] = (np.cumsum(known) - known / 2)[code]
        ranks -= own @ ranks / own.sum()
        ranks *= np.sqrt(own)[:, None]
        norms = np.linalg.norm(ranks, axis=0)
        ranks /= np.where(norms > 0, norms, 1.0)
        correlations[:] = project_correlations(2 * np.sin(np.pi / 6 * (ranks.T @ ranks)))
    return found


def rank_folds(X: NDArray[np.floating], folds: NDArray[np.intp]) -> list[FoldMoments]:
    """:func:`rank_correlations` of each fold, in place of the second moments of :class:`FoldMoments`."""
    found = []
    for fold in range(int(folds.max()) + 1):
        known, new = X[folds != fold], X[folds == fold]
        S, varies = rank_correlations(new), bool((np.ptp(known, axis=0) > 0).all())
        found.append(FoldMoments(rank_correlations(known), S, S, len(known), len(new), varies))
    return found


def project_correlations(S: NDArray[np.float64]) -> NDArray[np.float64]:
    """Without negative eigenvalues, and with ones on the diagonal; a correlation matrix stays as it is.

    >>> project_correlations(np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])).round(2).tolist()
    [[1.0, 0.73, 0.06], [0.73, 1.0, 0.73], [0.06, 0.73, 1.0]]
    """
    found = S.copy()
    np.fill_diagonal(found, 1.0)
    values, vectors = np.linalg.eigh(found)
    if values[0] < 0:
        found = (vectors * np.maximum(values, 0)) @ vectors.T
        scale = np.sqrt(np.diag(found))
        found = (found + found.T) / (2 * scale[:, None] * scale)
        np.fill_diagonal(found, 1.0)
    return found
