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

# The smallest eigenvalue, in partial correlation units, that a reported precision matrix may have.
MIN_EIGENVALUE = 1e-3


def directed_strengths(coef: NDArray, residual_scale: NDArray) -> NDArray:
    """``beta_jk * sigma_k / sigma_j`` for every ordered pair; same shape as ``coef`` (n, p, p).

    ``residual_scale`` is (p,), the same for all graphs, or (n, p), one row per graph.
    """
    scale = np.asarray(residual_scale)
    if scale.ndim == 2 and scale.strides[0] == 0 and len(scale):  # one row, broadcast to all graphs
        scale = scale[0]
    scale = scale.astype(coef.dtype)
    ratio = scale[..., None, :] / scale[..., :, None]
    return np.multiply(coef, ratio, out=ratio if ratio.shape == coef.shape else None)


def symmetrise(directed: NDArray) -> NDArray:
    """Mean of the two directions of every pair, (n, p, p), kept within [-1, 1].

    Two separate regressions can overshoot what a correlation can be, for example where two nodes
    are copies of each other.
    """
    mean = directed + np.swapaxes(directed, -1, -2)
    mean /= 2
    return np.clip(mean, -1, 1, out=mean)


def partial_correlations(coef: NDArray, residual_scale: NDArray) -> NDArray:
    """Signed partial correlations, (n, p, p), symmetric with a zero diagonal.

    ``residual_scale`` is (p,) or (n, p), as in :func:`directed_strengths`.
    """
    return symmetrise(directed_strengths(coef, residual_scale))


def edge_magnitudes(coef: NDArray, residual_scale: NDArray) -> NDArray:
    """Sizes of the :func:`partial_correlations`: what an edge is ranked by."""
    partial = partial_correlations(coef, residual_scale)
    return np.abs(partial, out=partial)


def apply_rule(directed: NDArray, threshold: float, rule: str = "and") -> NDArray[np.bool_]:
    """Edges whose directed strengths exceed ``threshold`` in both (AND) or either (OR) direction.

    >>> directed = np.array([[[0.0, 0.3], [0.1, 0.0]]])
    >>> bool(apply_rule(directed, 0.2, "and")[0, 0, 1]), bool(apply_rule(directed, 0.2, "or")[0, 0, 1])
    (False, True)
    """
    check_choice("rule", rule, ("and", "or"))
    if not (np.isfinite(threshold) and threshold >= 0):
        raise ParameterError(
            f"threshold must be a number >= 0 in units of partial correlation, got {threshold!r}."
        )
    strong = np.abs(directed) > threshold
    swapped = np.swapaxes(strong, -1, -2)
    return strong & swapped if rule == "and" else strong | swapped


def precision_from_partial(partial: NDArray, residual_scale: NDArray) -> NDArray:
    """Precision matrices with these partial correlations and residual scales, positive definite.

    ``Theta = D^-1 (I - a R) D^-1`` with ``D = diag(sigma)``. ``a`` is 1 wherever ``I - R`` is
    already positive definite and otherwise the largest factor that makes it so: all edges of that
    graph shrink alike, none appears or disappears. ``residual_scale`` is (p,) or (n, p).
    """
    scale = np.asarray(residual_scale, dtype=np.float64)
    n_nodes = partial.shape[-1]
    largest = np.linalg.eigvalsh(partial.astype(np.float64))[..., -1]
    limit = 1.0 - MIN_EIGENVALUE
    shrink = np.where(largest > limit, limit / np.maximum(largest, limit), 1.0)
    identity = np.eye(n_nodes)
    correlation = identity - shrink[..., None, None] * partial
    return correlation / (scale[..., :, None] * scale[..., None, :])


def precision_matrices(coef: NDArray, residual_scale: NDArray) -> NDArray:
    """:func:`precision_from_partial` of the partial correlations of these coefficients."""
    return precision_from_partial(partial_correlations(coef, residual_scale), residual_scale)


def partial_from_precision(precision: NDArray) -> NDArray:
    """``-Theta_jk / sqrt(Theta_jj Theta_kk)`` with a zero diagonal, (..., p, p)."""
    scale = 1 / np.sqrt(np.diagonal(precision, axis1=-2, axis2=-1))
    partial = -precision * scale[..., :, None] * scale[..., None, :]
    off_diagonal = 1 - np.eye(precision.shape[-1])
    return partial * off_diagonal
