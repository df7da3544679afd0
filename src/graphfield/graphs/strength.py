"""From coefficients to edges: the one definition of how strong an edge is and when it is there.

With residual standard deviations sigma_j, a Gaussian graph has
``beta_jk = -Theta_jk / Theta_jj`` and ``Theta_jj = 1 / sigma_j**2``, hence the partial correlation

    rho_jk = beta_jk * sigma_k / sigma_j = beta_kj * sigma_j / sigma_k .

A nodewise regression estimates both sides separately. Each is a *directed strength*; their mean is
the partial correlation we report, and its size is the weight an edge is ranked by. None of these
depends on the units of the nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.exceptions import ParameterError, check_choice

# The smallest eigenvalue, in partial correlation units, of a precision matrix that had to be made definite,
# and the one below which a matrix is not definite to the accuracy of its single-precision coefficients.
MIN_EIGENVALUE, _DEFINITE = 1e-3, 1e-7
# How much larger than the variance of a node in the data the variance that a precision matrix implies may be.
# Variances move with z: under the true matrices of our settings they reach 3.97 times that of the data (S1).
MOST_VARIANCE = 4.0
# Halvings that bring a factor between 0 and 1 to its last bit.
_HALVINGS = 50


def directed_strengths(coef: NDArray, residual_scale: NDArray) -> NDArray:
    """``beta_jk * sigma_k / sigma_j`` for every ordered pair, within [-1, 1]; same shape as ``coef``.

    No correlation is more than 1, but a regression may overshoot, as at a z with few rows. Its word then
    counts as 1 and no more, so that a pair is at 1 only where both regressions put it there.

    ``residual_scale`` is (p,), the same for all graphs, or (n, p), one row per graph.
    """
    scale = _plain_scale(residual_scale, coef)
    ratio = scale[..., None, :] / scale[..., :, None]
    directed = np.multiply(coef, ratio, out=ratio if ratio.shape == coef.shape else None)
    return np.clip(directed, -1, 1, out=directed)


def pair_strengths(
    coef: NDArray, residual_scale: NDArray, j: NDArray[np.intp], k: NDArray[np.intp]
) -> tuple[NDArray, NDArray]:
    """:func:`directed_strengths` of some pairs, from j to k and back: (n, pairs) each."""
    scale, flat = _plain_scale(residual_scale, coef), coef.reshape(len(coef), -1)

    def ahead(j: NDArray[np.intp], k: NDArray[np.intp]) -> NDArray:
        directed = flat.take(j * coef.shape[-1] + k, axis=1)
        directed *= scale[..., k] / scale[..., j]
        return np.clip(directed, -1, 1, out=directed)

    return ahead(j, k), ahead(k, j)


def _plain_scale(residual_scale: NDArray, coef: NDArray) -> NDArray:
    """As precise as ``coef``; (p,) where it is one row that is broadcast to all graphs."""
    scale = np.asarray(residual_scale)
    if scale.ndim == 2 and scale.strides[0] == 0 and len(scale):
        scale = scale[0]
    return scale.astype(coef.dtype)


def symmetrise(directed: NDArray) -> NDArray:
    """Mean of the two directions of every pair, (n, p, p)."""
    mean = directed + np.swapaxes(directed, -1, -2)
    mean /= 2
    return mean


def partial_correlations(coef: NDArray, residual_scale: NDArray) -> NDArray:
    """Signed partial correlations, (n, p, p), symmetric with a zero diagonal.

    ``residual_scale`` is (p,) or (n, p), as in :func:`directed_strengths`.
    """
    return symmetrise(directed_strengths(coef, residual_scale))


def block_strengths(directed: NDArray, starts: NDArray[np.intp]) -> NDArray:
    """Directed strengths of nodes that own several columns each, (n, p, p), from those of columns (n, d, d).

    The strength of a pair is the norm of the mean of its two blocks, and a direction counts as far as it
    points along that mean: the mean of both is the strength. Between single columns nothing changes.
    Elsewhere an edge has no sign. ``starts`` (p,) is the first column of each node.
    """
    mean = symmetrise(directed)
    along = _sum_blocks(directed * mean, starts)
    norm = np.sqrt(_sum_blocks(np.square(mean), starts))
    single = np.diff(starts, append=directed.shape[-1]) == 1
    sign = np.where(single[:, None] & single, np.sign(mean[:, starts[:, None], starts]), 1.0)
    strengths = sign * along / np.where(norm > 0, norm, 1.0)
    return np.clip(strengths, -1, 1).astype(directed.dtype)


def _sum_blocks(values: NDArray, starts: NDArray[np.intp]) -> NDArray:
    return np.add.reduceat(np.add.reduceat(values, starts, axis=-2), starts, axis=-1)


def edge_sizes(ahead: NDArray, back: NDArray) -> NDArray:
    """The largest threshold at which two directions are an edge under AND, see :func:`apply_rule`."""
    return np.minimum(np.minimum(np.abs(ahead), np.abs(back)), np.abs(ahead + back) / 2)


def apply_rule(directed: NDArray, threshold: float | NDArray, rule: str = "and") -> NDArray[np.bool_]:
    """Edges whose directed strengths exceed ``threshold`` in both (AND) or either (OR) direction.

    Under AND their mean, which is the weight of the edge, must exceed it as well: directions of opposite sign
    contradict each other. Where they cancel there is no edge under OR either. ``threshold`` is one number or
    one for every pair, (p, p); infinite for a pair that is no edge.

    >>> directed = np.array([[[0.0, 0.3], [0.1, 0.0]]])
    >>> bool(apply_rule(directed, 0.2, "and")[0, 0, 1]), bool(apply_rule(directed, 0.2, "or")[0, 0, 1])
    (False, True)
    >>> bool(apply_rule(np.array([[[0.0, 0.3], [-0.3, 0.0]]]), 0.2)[0, 0, 1])
    False
    """
    return are_edges(directed, np.swapaxes(directed, -1, -2), threshold, rule)


def are_edges(
    ahead: NDArray, back: NDArray, threshold: float | NDArray, rule: str = "and"
) -> NDArray[np.bool_]:
    """:func:`apply_rule` to pairs whose two directed strengths are ``ahead`` and ``back``."""
    check_choice("rule", rule, ("and", "or"))
    if not np.all(np.asarray(threshold) >= 0):
        raise ParameterError.of(
            "threshold", f"must be a number >= 0 in units of partial correlation, got {threshold!r}."
        )
    strong, also = np.abs(ahead) > threshold, np.abs(back) > threshold
    if rule == "and":
        return strong & also & (np.abs(ahead + back) > 2 * np.asarray(threshold))
    return (strong | also) & (ahead != -back)


def edge_shrinkage(partial: NDArray, residual_scale: NDArray, node_scale: NDArray | None = None) -> NDArray:
    """By which factor, at most 1, all edges of a graph must shrink for a sane covariance matrix: (n,).

    The largest ``a`` for which ``I - a R`` is positive definite and no variance that it implies,
    ``sigma_j^2 [(I - a R)^-1]_jj``, is more than 4 times that of the node, ``node_scale`` squared. It is 1
    for every covariance matrix that the data could have, however strong an edge: two nodes that nearly copy
    each other have residuals that are small beside their scale. Without ``node_scale`` variances are not
    looked at. The scales are (p,) or (n, p), and ``partial`` is (n, p, p).
    """
    partial = partial.astype(np.float64)
    largest = np.linalg.eigvalsh(partial)[..., -1]
    shrink = np.where(largest < 1 - _DEFINITE, 1.0, (1 - MIN_EIGENVALUE) / np.maximum(largest, 0.5))
    if node_scale is None:
        return shrink
    with np.errstate(divide="ignore", invalid="ignore"):
        inflation = np.square(np.asarray(node_scale, dtype=np.float64) / residual_scale)
    # A node whose residuals exceed it (a poor fit) is measured by these.
    limit = np.broadcast_to(MOST_VARIANCE * np.fmax(inflation, 1.0), partial.shape[:-1])
    # No implied variance exceeds 1 / (1 - a largest) residual variances, so most graphs need no closer look.
    doubtful = np.flatnonzero(1 / (1 - shrink * largest) > limit.min(axis=-1))
    if len(doubtful):
        shrink[doubtful] = _largest_factor(partial[doubtful], limit[doubtful], shrink[doubtful])
    return shrink


def _largest_factor(partial: NDArray, limit: NDArray, shrink: NDArray) -> NDArray[np.float64]:
    """The largest factors up to ``shrink`` that keep the diagonal of ``(I - a R)^-1`` below ``limit``.

    The diagonal is convex in a and 1 at a = 0, so what is allowed is an interval from 0.
    """
    values, vectors = np.linalg.eigh(partial)
    weights = vectors**2  # (n, j, eigenvalue)

    def allowed(factor: NDArray) -> NDArray[np.bool_]:
        return (np.einsum("njk,nk->nj", weights, 1 / (1 - factor[:, None] * values)) <= limit).all(axis=1)

    low, high = np.where(allowed(shrink), shrink, 0.0), shrink
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = allowed(middle)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low


def precision_from_partial(
    partial: NDArray, residual_scale: NDArray, node_scale: NDArray | None = None
) -> NDArray:
    """Precision matrices with these partial correlations and residual scales, positive definite.

    ``Theta = D^-1 (I - a R) D^-1`` with ``D = diag(sigma)`` and the factor a of :func:`edge_shrinkage`: all
    edges of a graph shrink alike, none appears or disappears.
    """
    scale = np.asarray(residual_scale, dtype=np.float64)
    shrink = edge_shrinkage(partial, scale, node_scale)
    correlation = np.eye(partial.shape[-1]) - shrink[..., None, None] * partial
    return correlation / (scale[..., :, None] * scale[..., None, :])


def coef_from_precision(theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """``-Theta_jk / Theta_jj`` with a zero diagonal, (n, p, p)."""
    diagonal = np.einsum("njj->nj", theta)
    coef = -theta / diagonal[:, :, None]
    np.einsum("njj->nj", coef)[:] = 0.0
    return coef


def partial_from_precision(precision: NDArray) -> NDArray:
    """``-Theta_jk / sqrt(Theta_jj Theta_kk)`` with a zero diagonal, (..., p, p)."""
    scale = 1 / np.sqrt(np.diagonal(precision, axis1=-2, axis2=-1))
    partial = -precision * scale[..., :, None] * scale[..., None, :]
    off_diagonal = 1 - np.eye(precision.shape[-1])
    return partial * off_diagonal


def are_positive_definite(matrices: NDArray[np.float64]) -> bool:
    """Whether all of them, (m, p, p), are symmetric and have a Cholesky decomposition."""
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return False
    return bool(np.allclose(matrices, matrices.swapaxes(1, 2)))  # which the decomposition does not look at
