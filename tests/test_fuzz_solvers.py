"""Convex solvers reach their aim on tables that are hard for them: few rows, copies, sums, other last bits."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import small_data

pytestmark = pytest.mark.fuzz


def standard(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def last_bits_changed(values: np.ndarray, seed: int) -> np.ndarray:
    """What another machine's arithmetic does to a table, or more or less."""
    return values * (1 + 1e-15 * np.random.default_rng(seed).normal(size=values.shape))


def few_rows_and_copies(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes, one a copy of another and one nearly, and covariates; mostly fewer rows than nodes."""
    rng = np.random.default_rng(seed)
    n, p, q = int(rng.choice([5, 10, 15, 40])), int(rng.choice([6, 12])), int(rng.integers(1, 4))
    X = rng.normal(size=(n, p))
    X[:, 2] = X[:, 3] + 1e-3 * rng.normal(size=n)
    if seed % 3 == 0:
        X[:, 5] = X[:, 4]
    return standard(X), rng.normal(size=(n, q))


@pytest.mark.parametrize("seed", range(4))
def test_sparse_group_path_does_not_depend_on_the_last_bits(seed):
    """Held-out errors of the table on which some machines found 1e13 where others found 1."""
    solver = pytest.importorskip("graphfield.solvers.sparse_group")
    X, Z = small_data(10, 30)
    site = Z["site"].to_numpy()[:, None] == ["B", "C"]
    W = np.column_stack([np.ones(10), standard(Z["age"].to_numpy()), site])
    folds, groups = np.arange(10) % 3, np.array([0, 1, 2, 2])
    values = standard(X.to_numpy())
    paths = [
        solver.sparse_group_path(x, W, groups, 0.75, 8, folds)
        for x in (values, last_bits_changed(values, seed))
    ]
    np.testing.assert_allclose(paths[0].error, paths[1].error, rtol=1e-2)  # the path is solved to 1e-4


@pytest.mark.parametrize("seed", range(12))
def test_sparse_group_solutions_are_fixed_points(seed):
    """No proximal step on the rows themselves leads away; what stops early warns, which is an error here."""
    solver = pytest.importorskip("graphfield.solvers.sparse_group")
    X, Z = few_rows_and_copies(seed)
    n, p = X.shape
    W = np.column_stack([np.ones(n), Z])
    penalty, mix = [0.2, 0.02, 0.005][seed % 3], [0.25, 0.75][seed % 2]
    coef = solver.sparse_group_coefficients(X, W, np.arange(W.shape[1]), penalty, mix)
    for j in range(p):
        others = np.arange(p) != j
        design = (W[:, :, None] * X[:, None, others]).reshape(n, -1)
        b = coef[:, j, others]
        slope = (design.T @ (design @ b.ravel() - X[:, j]) / n).reshape(b.shape)
        step = 1 / np.linalg.norm(design, 2) ** 2 * n
        moved = b - step * slope
        moved = np.sign(moved) * np.maximum(np.abs(moved) - step * penalty * mix, 0)
        norms = np.linalg.norm(moved[1:], axis=1, keepdims=True)
        cut = step * penalty * (1 - mix) * np.sqrt(p - 1)
        moved[1:] *= np.maximum(1 - cut / np.maximum(norms, 1e-300), 0)
        assert np.abs(moved - b).max() < 1e-5
