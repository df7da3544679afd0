"""Regressions on products of nodes and features of covariates."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge

from graphfield.solvers.interaction import (
    coefficients_from_gram,
    interaction_fit,
    interaction_gram,
    squared_errors,
)


def test_ridge_per_feature_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(80, 3)), rng.normal(size=80)
    W = np.column_stack([np.ones(80), z])
    coef = coefficients_from_gram(interaction_gram(X, W), 3, np.array([0.1, 0.5]))
    # A penalty that differs by column is a common one on columns that are scaled.
    scale = np.sqrt([0.1, 0.5])
    design = np.column_stack([W[:, w] / scale[w] * X[:, k] for w in (0, 1) for k in (1, 2)])
    direct = Ridge(alpha=80.0, fit_intercept=False).fit(design, X[:, 0]).coef_ / np.repeat(scale, 2)
    np.testing.assert_allclose(coef[:, 0, 1:].reshape(-1), direct, rtol=1e-8)


def test_ridge_pulls_to_a_graph_that_does_not_move():
    """What is left of that graph, regressed with a ridge, is the same."""
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(80, 3)), np.column_stack([np.ones(80), rng.normal(size=80)])
    still = np.array([[0, 0.5, 0], [0.4, 0, 0.1], [0, 0, 0]])
    found = coefficients_from_gram(interaction_gram(X, W), 3, np.full(2, 0.3), still)
    design = np.column_stack([W[:, w] * X[:, k] for w in (0, 1) for k in (0, 2)])
    left = Ridge(alpha=0.3 * 80, fit_intercept=False).fit(design, X[:, 1] - X @ still[1]).coef_
    expected = left.reshape(2, 2) + np.array([[0.4, 0.1], [0, 0]])
    np.testing.assert_allclose(found[:, 1][:, [0, 2]], expected, rtol=1e-8)
    errors = squared_errors(found, 80 * interaction_gram(X, W))
    np.testing.assert_allclose(errors, np.square(X - interaction_fit(X, W, found)).sum(axis=0))
