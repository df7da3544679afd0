"""Weights that are not negative and sum to one."""

from __future__ import annotations

import numpy as np
import pytest

from graphfield.solvers.simplex import simplex_weights


def test_known_weights_are_recovered():
    """Independent residuals of variances 1, 2 and 4 are best averaged as 4 : 2 : 1."""
    np.testing.assert_allclose(simplex_weights(np.diag([1.0, 2.0, 4.0])), np.array([4, 2, 1]) / 7, atol=1e-12)
    np.testing.assert_allclose(simplex_weights(1e-9 * np.diag([1.0, 3.0])), [0.75, 0.25], atol=1e-9)
    np.testing.assert_allclose(simplex_weights(np.array([[1.0, 1.5], [1.5, 4.0]])), [1, 0], atol=1e-12)
    assert simplex_weights(np.ones((3, 3))).sum() == pytest.approx(1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        A = rng.normal(size=(6, 4)) + 1
        gram = A.T @ A
        best = simplex_weights(gram)
        others = rng.dirichlet(np.full(4, 0.5), 2000)
        assert best @ gram @ best <= np.einsum("ij,jk,ik->i", others, gram, others).min() + 1e-9
        slope = gram @ best  # optimal: equal where there is weight, larger elsewhere
        assert slope[best > 1e-9] == pytest.approx(slope.min(), abs=1e-8)


def test_small_weights_are_left_out_and_the_rest_solved_again():
    gram = np.diag([1.0, 2.0, 99.0])
    assert 0 < simplex_weights(gram)[2] < 0.02
    np.testing.assert_allclose(simplex_weights(gram, 0.02), [2 / 3, 1 / 3, 0], atol=1e-12)
