"""Strong edges that differ."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from graphfield.inference.sparse_differences import q_values_of_differences


@pytest.mark.slow
def test_a_strong_edge_that_differs_has_a_small_q_value() -> None:
    """Two strong edges are no two draws of edges as they mostly are, and differ all the same."""
    rates, n = [], 80
    for seed in range(6):
        truth = np.zeros((2, 45))  # of ten nodes
        truth[:, 17], truth[:, 39], truth[:, [0, 9, 20, 30, 40]] = (0.6, 0.9), 0.6, 0.3
        variances = (1 - truth**2) ** 2 / n
        estimates = truth + np.sqrt(variances) * np.random.default_rng(seed).normal(size=truth.shape)
        estimates[:, 17] = truth[:, 17]
        sizes = np.abs(estimates[0] - estimates[1]) / np.sqrt(variances.sum(axis=0))
        p_values = 2 * norm.sf(sizes)  # 6e-5 for the pair that differs
        rates.append(q_values_of_differences(estimates, [np.diag(v) for v in variances.T], p_values)[17])
    assert max(rates) < 0.1, rates
