"""Correlations from ranks."""

from __future__ import annotations

import numpy as np

from graphfield.solvers.rank_correlations import rank_correlations


def test_what_ranks_say_is_projected_to_a_correlation_matrix():
    X = np.random.default_rng(0).normal(size=(12, 8))
    X = np.column_stack([X, X[:, :4], X[:, 4:] + X[:, :4], np.ones(12)])
    S = rank_correlations(X)
    assert np.linalg.eigvalsh(S)[0] > -1e-10
    np.testing.assert_array_equal(np.diag(S), 1.0)
    np.testing.assert_array_equal(S, S.T)
    assert not S[-1, :-1].any()
