"""Coefficients linear in the covariates, by exact least squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Entries of the interaction design held at a time while its Gram matrix is added up.
CHUNK_ENTRIES = 20_000_000


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
    gram: NDArray[np.float64], n_nodes: int, ridge: NDArray[np.float64]
) -> NDArray[np.float64]:
    """:func:`interaction_coefficients` from :func:`interaction_gram`, with a ridge per feature, (m,)."""
    p, m = n_nodes, len(ridge)
    inverse = np.linalg.inv(gram + np.diag(np.repeat(ridge, p)))
    B = np.zeros((m, p, p))
    for j in range(p):
        own = np.arange(m) * p + j
        target = gram[:, j].copy()  # W_0 = 1, so column j of the design is x_j itself
        target[own] = 0.0
        # inv(G without own) = P_kk - P_ko inv(P_oo) P_ok, applied to the target.
        solution = inverse @ target
        solution -= inverse[:, own] @ np.linalg.solve(inverse[np.ix_(own, own)], solution[own])
        B[:, j, :] = solution.reshape(m, p)
        B[:, j, j] = 0.0
    return B


def interaction_gram(X: NDArray[np.float64], W: NDArray[np.float64]) -> NDArray[np.float64]:
    """``D' D / n`` of the design D with columns W_w x_k, (m p, m p), in bounded memory."""
    n, p = X.shape
    m = W.shape[1]
    step = max(1, CHUNK_ENTRIES // (m * p))
    gram = np.zeros((m * p, m * p))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        design = (W[rows, :, None] * X[rows, None, :]).reshape(-1, m * p)
        gram += design.T @ design
    return gram / n


def linear_mean(values: NDArray[np.float64], W: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    """Coefficients of the mean of each node on the features of z, (m, p)."""
    gram = W.T @ W / len(W) + ridge * np.eye(W.shape[1])
    return np.asarray(np.linalg.solve(gram, W.T @ values / len(W)), dtype=np.float64)


def interaction_fit(
    X: NDArray[np.float64], W: NDArray[np.float64], B: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``sum_k (sum_w B_wjk W_w) x_k`` for every row and node, (n, p), one feature at a time."""
    fitted = np.zeros_like(X)
    for feature, coef in zip(W.T, B, strict=True):
        fitted += feature[:, None] * (X @ coef.T)
    return fitted
