"""Whether nodes are to be divided by scales that move with the covariates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.data.moving_scales import MovingScales
from graphfield.solvers.interaction import interaction_coefficients
from graphfield.solvers.scale_choice import EVIDENCE, ScaleRows, find_scales, standard_errors

_RIDGE = 0.01  # of the regressions that are compared


def learn_node_scales(rows: ScaleRows) -> MovingScales | None:
    """Scales s_j(z) to divide nodes by before edges are fitted; None where that makes no graph simpler.

    The scale of a node moves with z on its own, or because its edges do. Where it moves on its own, one graph
    for everybody predicts nodes that are divided by their scales better than nodes as they are: that is what
    held-out rows have to say, by their Gaussian likelihood.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.uniform(-1.7, 1.7, 900), rng.normal(size=(900, 2))
    >>> W, fold = np.column_stack([np.ones(900), z]), np.arange(900) % 3
    >>> on_its_own = noise.cumsum(axis=1) * np.exp([0, 0.5] * z[:, None])
    >>> learn_node_scales(ScaleRows(on_its_own, W, 1, fold)).moves
    array([False,  True])
    >>> by_its_edge = np.column_stack([noise[:, 0], noise[:, 1] + z * noise[:, 0]])
    >>> learn_node_scales(ScaleRows(by_its_edge, W, 1, fold)) is None
    True
    """
    found = find_scales(rows)
    if found is None:
        return None
    nodes = np.asarray(rows.values[found.rows], dtype=np.float64)
    scale = np.exp(found.held_out.astype(np.float64))
    part = rows.fold[found.rows]
    gains = np.empty(len(nodes))
    for held_out in np.unique(part):
        known, new = part != held_out, part == held_out
        divided = _log_likelihood(nodes, scale, scale, known)
        gains[new] = (divided - _log_likelihood(nodes, np.ones_like(scale), scale, known))[new]
    error = standard_errors(gains[:, None], found.units)[0]
    return found.scales if gains.mean() > EVIDENCE * error else None


def _log_likelihood(
    nodes: NDArray[np.float64],
    unit: NDArray[np.float64],
    scale: NDArray[np.float64],
    known: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Of each row, mean over nodes: each node given all others, by one graph of nodes divided by ``unit``.

    Residual scales are constant or move as ``scale`` does, whichever the known rows prefer, node by node.
    """
    values = nodes / unit
    coef = interaction_coefficients(values[known], np.ones((int(known.sum()), 1)), _RIDGE)[0]
    left = unit * (values - values @ coef.T)
    likely = []
    for residual in (np.ones_like(scale), scale):
        residual = residual * np.sqrt(np.square(left / residual)[known].mean(axis=0))
        likely.append(-np.log(residual) - np.square(left / residual) / 2)
    better = likely[0][known].mean(axis=0) > likely[1][known].mean(axis=0)
    return np.where(better, *likely).mean(axis=1)
