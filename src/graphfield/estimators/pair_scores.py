"""What the training rows say about each pair of nodes, given a fitted model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import Encoded
from graphfield.estimators.per_row import PerRow
from graphfield.estimators.streaming import cache_slices, slices
from graphfield.graphs.pair_tests import PairScores, PairTests
from graphfield.graphs.strength import directed_strengths

# Entries of coefficients that the tests of pairs look at, at most: beyond 200 nodes and 50,000 rows, or
# 1,000 nodes and 2,000 rows, evenly spread rows (or groups) stand for all.
_MOST_ENTRIES = 2_000_000_000


def score_pairs(
    model: PerRow, values: NDArray, encoded: Encoded, labels: NDArray | None, freedom: float
) -> PairTests:
    """Test every pair of a fitted model with its training rows; rows of one label count as one."""
    n, p = values.shape
    units = np.arange(n) if labels is None else np.unique(labels, return_inverse=True)[1]
    step = -(-n * p**2 // _MOST_ENTRIES)
    order = np.argsort(units, kind="stable")
    order = order[units[order] % step == 0]
    scores = PairScores(p)
    for rows in slices(len(order), model._rows_per_chunk()):
        own = order[rows]
        z = encoded.take(own)
        coef, scale, x = model._coef_at(z), model._residual_scale_at(z), model._standard(values[own], z)
        residuals = (x - np.einsum("bjk,bk->bj", coef, x)) / scale
        for part in cache_slices(len(own), p):
            scores.add(residuals[part], directed_strengths(coef[part], scale[part]), units[own[part]])
    return scores.tests(freedom)
