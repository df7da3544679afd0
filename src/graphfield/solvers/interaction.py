"""Coefficients linear in the covariates, by exact least squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.data.nodes import row_blocks
from graphfield.data.row_store import allocate_rows


def interaction_coefficients(
    X: NDArray[np.float64], W: NDArray[np.float64], ridge: float
) -> NDArray[np.float64]:
    """Minimise ``|x_j - sum_{k != j} (sum_w B_wjk W_w) x_k|^2 / n + ridge |B_j|^2`` for every node j.

    The design is all products W_w x_k, so this is one linear regression per node. All of them share
    one Gram matrix, which is inverted once; leaving out the m columns of node j itself then costs an
    m x m solve (the Schur complement of the inverse).

    Parameters
    ----------
    X : ndarray of shape (n, p)
    W : ndarray of shape (n, m)
        Features of the covariates; the first column must be ones.
    ridge : float
        Keeps the Gram matrix invertible; on standardised data 1e-3 hardly changes the solution.

    Returns
    -------
    ndarray of shape (m, p, p)
        ``[w, j, k]``, zero where j = k.
    """
    return coefficients_from_gram(interaction_gram(X, W), X.shape[1], np.full(W.shape[1], ridge))


def coefficients_from_gram(
    gram: NDArray[np.float64],
    n_nodes: int,
    ridge: NDArray[np.float64],
    still: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """:func:`interaction_coefficients` from :func:`interaction_gram`, with a ridge per feature, (m,).

    The ridge pulls to zero, or to edges that are the same at all z: ``still`` (p, p), zero where j = k.
    """
    p, m = n_nodes, len(ridge)
    inverse = np.linalg.inv(gram + np.diag(np.repeat(ridge, p)))
    B, left = np.zeros((m, p, p)), gram[:, :p]  # W_0 = 1, so column j of the design is x_j itself
    if still is not None:
        left = left - left @ still.T
    target = left.copy()
    target.reshape(m, p, p)[:, np.arange(p), np.arange(p)] = 0.0
    solutions = inverse @ target
    for j, solution in enumerate(solutions.T):
        own = np.arange(m) * p + j
        # inv(G without own) = P_kk - P_ko inv(P_oo) P_ok, applied to the target.
        solution = solution - inverse[:, own] @ np.linalg.solve(inverse[np.ix_(own, own)], solution[own])
        B[:, j, :] = solution.reshape(m, p)
        B[:, j, j] = 0.0
    if still is not None:
        B[0] += still
    return B


def interaction_gram(
    X: NDArray[np.float64], W: NDArray[np.float64], rows: NDArray[np.intp] | None = None
) -> NDArray[np.float64]:
    """``D' D / n`` of the design D with columns W_w x_k, (mp, mp), of some or all rows, in bounded memory."""
    n, p, m = len(X) if rows is None else len(rows), X.shape[1], W.shape[1]
    gram = np.zeros((m * p, m * p))
    for block in row_blocks(n, m * p):
        some = block if rows is None else rows[block]
        design = (W[some][:, :, None] * X[some][:, None, :]).reshape(-1, m * p)
        gram += design.T @ design
    return gram / n


def fold_grams(
    X: NDArray[np.float64], W: NDArray[np.float64], folds: NDArray[np.intp]
) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """``D' D`` of the rows of each fold, counted from 0, and of all rows, also those of no fold (-1)."""
    rows = {fold: np.flatnonzero(folds == fold) for fold in np.unique(folds)}
    parts = {fold: len(own) * interaction_gram(X, W, own) for fold, own in rows.items()}
    return [part for fold, part in parts.items() if fold >= 0], np.sum(list(parts.values()), axis=0)


def squared_errors(B: NDArray[np.float64], gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each node with coefficients B (m, p, p), summed over the rows with this Gram matrix, (p,)."""
    p = B.shape[1]
    coef = B.transpose(0, 2, 1).reshape(-1, p)  # (m p, p): what node j takes from W_w x_k
    return np.diag(gram)[:p] + (coef * (gram @ coef - 2 * gram[:, :p])).sum(axis=0)


def linear_mean(values: NDArray[np.float64], W: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    """Coefficients of the mean of each node on the features of z, (m, p)."""
    gram, products = np.zeros((W.shape[1], W.shape[1])), np.zeros((W.shape[1], values.shape[1]))
    for rows in row_blocks(*values.shape):
        gram += W[rows].T @ W[rows]
        products += W[rows].T @ values[rows]
    ridged = gram / len(W) + ridge * np.eye(len(gram))
    return np.asarray(np.linalg.solve(ridged, products / len(W)), dtype=np.float64)


def subtract_mean(values: NDArray[np.float64], W: NDArray[np.float64], mean: NDArray[np.float64]) -> None:
    """Take ``W @ mean`` out of nodes, in place, some rows at a time."""
    for rows in row_blocks(*values.shape):
        values[rows] -= W[rows] @ mean


def interaction_residuals(
    X: NDArray[np.float64], W: NDArray[np.float64], B: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What :func:`interaction_fit` leaves of the nodes, (n, p)."""
    left = allocate_rows(X.shape, np.float64)
    for rows in row_blocks(*X.shape):
        left[rows] = X[rows] - interaction_fit(X[rows], W[rows], B)
    return left


def interaction_fit(
    X: NDArray[np.float64], W: NDArray[np.float64], B: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``sum_k (sum_w B_wjk W_w) x_k`` for every row and node, (n, p), one feature at a time."""
    fitted = np.zeros_like(X)
    for feature, coef in zip(W.T, B, strict=True):
        fitted += feature[:, None] * (X @ coef.T)
    return fitted
