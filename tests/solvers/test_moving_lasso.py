"""Sparse regressions whose coefficients may move, cross-fitted."""

from __future__ import annotations

import numpy as np
import pytest

from graphfield.solvers.interaction import interaction_coefficients
from graphfield.solvers.moving_lasso import cross_fitted_coefficients


def test_sparse_regressions_are_least_squares_where_rows_are_many() -> None:
    rng = np.random.default_rng(0)
    z = rng.choice([-1.0, 1.0], 20_000)
    X = rng.normal(size=(20_000, 4))
    X[:, 1] += (0.5 + 0.3 * z) * X[:, 0]
    X /= X.std(axis=0)
    W = np.column_stack([np.ones(len(z)), z])
    found = cross_fitted_coefficients(X, W, np.arange(len(z))[None] % 5).coef[0]
    exact = interaction_coefficients(X, W, 1e-6).transpose(1, 2, 0)
    np.testing.assert_allclose(found, exact, atol=0.03)
    assert (found[range(4), range(4)] == 0).all()


@pytest.mark.slow
def test_sparse_regressions_do_not_move_with_noise() -> None:
    """Where a node has many neighbours the best penalty is small, and would let any movement in."""
    moving = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(180, 8)) + rng.normal(size=(180, 1))
        W = np.column_stack([np.ones(180), rng.normal(size=(180, 2))])
        found = cross_fitted_coefficients(X / X.std(axis=0), W, np.arange(180)[None] % 5).coef
        moving.append((found[..., 1:] != 0).any(axis=(0, 2, 3)).mean())
    assert np.mean(moving) < 0.3


@pytest.mark.slow
def test_near_copies_are_regressed_by_least_squares() -> None:
    """Of each node the others leave .1 to .4 %, less than the least penalty that is tried."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1)) + rng.normal(size=(200, 5)) * [0.06, 0.05, 0.06, 0.07, 0.05]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    W = np.ones((200, 1))
    left = cross_fitted_coefficients(X, W, np.arange(200)[None] % 5).residuals(X, W)
    least = 1 / np.diag(np.linalg.inv(X.T @ X / len(X)))
    assert (np.square(left).mean(axis=0) < 1.15 * least).all()


def test_a_row_has_the_mean_of_what_several_cuts_found_without_it() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4)) + rng.normal(size=(100, 1))
    X, W = X / X.std(axis=0), np.ones((100, 1))
    fold = np.stack([np.arange(100) % 5, 5 + np.arange(100) // 20])
    found = cross_fitted_coefficients(X, W, fold)
    left = found.residuals(X, W)
    coef = found.coef[..., 0]
    for row in (0, 57, 99):
        mean = coef[fold[:, row]].mean(axis=0)
        np.testing.assert_allclose(left[row], X[row] - mean @ X[row])
