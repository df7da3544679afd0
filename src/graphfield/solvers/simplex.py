"""Weights that sum to one and minimise a quadratic form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls


def simplex_weights(gram: NDArray[np.float64], least: float = 0.0) -> NDArray[np.float64]:
    """Minimise ``w' gram w`` over w >= 0 with sum 1; weights below ``least`` are left out.

    With w on the simplex, ``|A t w|^2 + (t - 1)^2`` is smallest at ``q / (1 + q)`` with ``q = w' A'A w``,
    which grows with q. So the minimiser over all vectors ``t w >= 0``, an ordinary non-negative least
    squares, has the direction of the best w. ``gram`` has the products of the residuals that are to be
    averaged; what is left without the smaller weights is solved again.

    >>> simplex_weights(np.diag([1.0, 3.0])).round(6).tolist()
    [0.75, 0.25]
    """
    kept = np.arange(len(gram))
    while True:
        part = gram[np.ix_(kept, kept)]
        values, vectors = np.linalg.eigh(part / max(np.trace(part) / len(part), np.finfo(float).tiny))
        root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
        target = np.append(np.zeros(len(part)), 1.0)
        found = nnls(np.vstack([root, np.ones(len(part))]), target)[0]
        found /= found.sum()
        large = found >= least
        if large.all():
            weights = np.zeros(len(gram))
            weights[kept] = found
            return weights
        kept = kept[large]
