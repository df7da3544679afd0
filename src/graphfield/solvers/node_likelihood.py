"""Regressions of all nodes on all others, each by the likelihood of its kind, with hardly a penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks

Array = NDArray[np.float64]
# Kinds of nodes whose regressions are linear.
NUMBERS = ("gaussian", "ordinal")
# A normal prior of variance one for natural parameters in standard units, beside which n rows tell n times as
# much: where classes are separated, or a level is absent, estimates stay finite, and are known to be unsure.
# Numbers need none. That of what is not an edge is wide.
_PRIOR, _PRIOR_OF_NUMBERS, _PRIOR_OF_OTHERS = 1.0, 1e-6, 1e-2
_MOST_STEPS, _MOST_HALVINGS, _PRECISION = 60, 12, 1e-8
# Rows whose leverage is larger are taken to have this one.
_MOST_LEVERAGE = 0.9


@dataclass(frozen=True)
class NodeFits:
    """Natural parameters of each design column beside the usual ones, linear in ``design``, and their errors.

    The covariance matrix of a node's coefficients is about its ``inverse``; what row i adds to their error is
    ``inverse @ (residuals[i] x design[i])``.

    Attributes
    ----------
    design : ndarray of shape (n, m)
        Ones and what else is given, then the columns of all nodes.
    coef : ndarray of shape (d, m)
        Zero where a column would explain its own node.
    inverses : list of ndarray of shape (w, m, w, m)
        Inverse information of each node.
    residuals : ndarray of shape (n, d)
    leverages : ndarray of shape (n, p)
        Shares of a row in its own fitted value.
    """

    design: Array
    coef: Array
    inverses: list[Array]
    residuals: Array
    leverages: Array


def fit_nodes(blocks: Blocks, columns: Array, given: Array) -> NodeFits:
    """Maximum likelihood, by Newton's method with steps that are halved until the likelihood grows.

    Parameters
    ----------
    blocks : Blocks
    columns : ndarray of shape (n, d)
        Of all nodes, in standard units.
    given : ndarray of shape (n, g)
        What else natural parameters are linear in, the first column one.
    """
    design = np.hstack([given, columns])
    owner = np.concatenate([np.full(given.shape[1], -1), blocks.nodes])
    coef = np.zeros((columns.shape[1], design.shape[1]))
    penalty = _penalties(blocks, owner)
    loss = _losses(blocks, columns, design, coef, penalty)
    active = np.full(len(blocks.slices), True)
    for _ in range(_MOST_STEPS):
        eta = blocks.null + design @ coef.T
        left, step = columns - blocks.means(eta), np.zeros_like(coef)
        variances = blocks.variances(eta)
        for node in np.flatnonzero(active):
            own, others = blocks.slices[node], owner != node
            information = _information(design[:, others], variances[node], penalty[own, others])
            slope = left[:, own].T @ design[:, others] - penalty[own, others] * coef[own][:, others]
            step[own, others] = np.linalg.solve(information, slope.ravel()).reshape(slope.shape)
        coef, loss, moved = _climb(blocks, columns, design, coef, step, penalty, loss)
        active &= moved & (np.maximum.reduceat(np.abs(step).max(axis=1), blocks.starts) > _PRECISION)
        if not active.any():
            break
    return _finished(blocks, columns, design, owner, coef, penalty)


def _penalties(blocks: Blocks, owner: NDArray[np.intp]) -> Array:
    """Of each coefficient, (d, m)."""
    numbers = np.isin(np.array(blocks.types.kinds), NUMBERS)[blocks.nodes]
    found = np.where(numbers[:, None] & numbers, _PRIOR_OF_NUMBERS, _PRIOR)
    others = np.where(numbers, _PRIOR_OF_NUMBERS, _PRIOR_OF_OTHERS)[:, None]
    return np.hstack([np.repeat(others, (owner < 0).sum(), axis=1), found])


def _losses(blocks: Blocks, columns: Array, design: Array, coef: Array, penalty: Array) -> Array:
    """Of each node, (p,)."""
    squares = np.add.reduceat((penalty * np.square(coef)).sum(axis=1), blocks.starts)
    return blocks.losses(blocks.null + design @ coef.T, columns).sum(axis=0) + squares / 2


def _climb(
    blocks: Blocks, columns: Array, design: Array, coef: Array, step: Array, penalty: Array, loss: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Each node's step, halved until it is one that helps, its loss then, and whether there was one."""
    size = np.ones(len(loss))
    for _ in range(_MOST_HALVINGS):
        tried = coef + size[blocks.nodes, None] * step
        found = _losses(blocks, columns, design, tried, penalty)
        worse = ~(found <= loss + 1e-10 * np.abs(loss))
        if not worse.any():
            return tried, found, size > 0
        size[worse] /= 2
    size[worse] = 0.0
    tried = np.where(worse[blocks.nodes, None], coef, tried)
    return tried, np.where(worse, loss, found), size > 0


def _information(design: Array, variances: Array, penalty: Array) -> Array:
    """Of coefficients (w, m), as a matrix."""
    w, m = penalty.shape
    found = np.empty((w, m, w, m))
    for a in range(w):
        for b in range(a + 1):
            found[a, :, b] = (design * variances[:, a, b, None]).T @ design
            found[b, :, a] = found[a, :, b].T
    flat = found.reshape(w * m, w * m)
    flat[np.diag_indices(w * m)] += penalty.ravel()
    return flat


def _finished(
    blocks: Blocks, columns: Array, design: Array, owner: NDArray[np.intp], coef: Array, penalty: Array
) -> NodeFits:
    eta = blocks.null + design @ coef.T
    residuals, inverses = columns - blocks.means(eta), []
    coef, leverages = coef.copy(), np.empty((len(design), len(blocks.slices)))
    variances = blocks.variances(eta)
    for node, own in enumerate(blocks.slices):
        others = np.flatnonzero(owner != node)
        information = _information(design[:, others], variances[node], penalty[own][:, others])
        inverse = np.asarray(np.linalg.inv(information)).reshape((own.stop - own.start, len(others)) * 2)
        leverages[:, node] = _leverages(design[:, others], variances[node], inverse)
        if blocks.types.kinds[node] in NUMBERS:
            # Natural parameters of numbers are means divided by the variance that is left.
            freedom = max(1.0, len(design) - len(others))
            variance = max(float(np.square(residuals[:, own]).sum() / freedom), 1e-12)
            coef[own] /= variance
            inverse = inverse / variance
        whole = np.zeros((own.stop - own.start, len(owner)) * 2)
        whole[np.ix_(*(np.arange(len(whole)), others) * 2)] = inverse
        inverses.append(whole)
    return NodeFits(design, coef, inverses, residuals, leverages)


def _leverages(design: Array, variances: Array, inverse: NDArray[np.floating]) -> Array:
    """(n,), of several columns their mean."""
    w = len(inverse)
    total = np.zeros(len(design))
    for a in range(w):
        for b in range(w):
            total += variances[:, a, b] * np.einsum("nc,nc->n", design @ inverse[a, :, b], design)
    return np.minimum(total / w, _MOST_LEVERAGE)
