"""Convex solvers reach their aim on tables that are hard for them: few rows, copies, sums, other bits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import graphical_lasso

import graphfield as gf
from conftest import small_data
from graphfield.data.splits import fold_labels
from graphfield.solvers.glasso import graphical_lasso_cv, graphical_lasso_path
from graphfield.solvers.glasso_admm import PrecisionSolver, optimality_violation
from graphfield.solvers.moments import FoldMoments

pytestmark = pytest.mark.fuzz


def standard(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def few_rows_and_copies(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes, one a copy of another and one nearly, and covariates; mostly fewer rows than nodes."""
    rng = np.random.default_rng(seed)
    n, p, q = int(rng.choice([5, 10, 15, 40])), int(rng.choice([6, 12])), int(rng.integers(1, 4))
    X = rng.normal(size=(n, p))
    X[:, 2] = X[:, 3] + 1e-3 * rng.normal(size=n)
    if seed % 3 == 0:
        X[:, 5] = X[:, 4]
    return standard(X), rng.normal(size=(n, q))


@pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")
@pytest.mark.parametrize("seed", [3, 6, 10, 13, 14, 17])
def test_sparse_group_path_has_no_jumps(seed):
    """Tables on which some machines, or others in the last bits, found errors of 1e13 in place of 1."""
    X, Z = small_data(10, 30)
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=X.shape)
    X = X * (1 + 1e-15 * noise) if seed < 10 else X + 0.3 * noise
    model = gf.RegGMM(penalty="sparse-group", n_penalties=8, n_folds=3).fit(X, Z)
    assert model.cv_path_["error"].max() < 3
    assert np.abs(model.interactions_).max() < 3


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


COLLINEAR = ("copies", "sums", "near copies", "copied rows", "few rows", "opposites")


def collinear(kind: str, seed: int, n: int = 120, p: int = 18) -> np.ndarray:
    """A chain of nodes, the first third of which are other nodes again, or nearly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=({"few rows": 3 + seed}.get(kind, n), p))
    for k in range(1, p):
        X[:, k] += 0.5 * X[:, k - 1]
    first, second, third = np.split(np.arange(p), 3)
    if kind in ("copies", "opposites"):
        X[:, first] = X[:, second] * (1 if kind == "copies" else -1)
    elif kind == "sums":
        X[:, first] = X[:, second] + X[:, third]
    elif kind == "near copies":
        X[:, first] = X[:, second] + 10.0 ** -(seed + 1) * rng.normal(size=(len(X), len(first)))
    elif kind == "copied rows":
        X = np.repeat(X[:10], 12, axis=0)
    return standard(X)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", COLLINEAR)
def test_graphical_lasso_is_optimal_on_collinear_nodes(kind, seed):
    X = collinear(kind, seed)
    S = X.T @ X / len(X)
    penalties = [0.3, 0.03, 0.01, 0.003, 0.001]
    for penalty, precision in zip(penalties, graphical_lasso_path(S, penalties), strict=True):
        assert optimality_violation(precision, S, penalty) <= 0.005 * penalty, penalty
        np.testing.assert_array_equal(precision == 0, precision.T == 0)


@pytest.mark.parametrize("kind", COLLINEAR)
def test_search_on_collinear_nodes_is_optimal_and_scored_throughout(kind):
    X = collinear(kind, 12 if kind == "few rows" else 2, n=60, p=12)
    parts = FoldMoments.of_each(X, fold_labels(len(X), 3, None, shuffle=False))
    found = graphical_lasso_cv(X.T @ X / len(X), len(X), parts, 6)
    assert np.isfinite(found.path[:-1, 1]).all(), "every penalty has a likelihood"
    violation = optimality_violation(found.solution, X.T @ X / len(X), found.penalty)
    assert violation <= 0.005 * found.penalty + 1e-8, "no penalty at all is the inverse, but for rounding"


@pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")
@pytest.mark.parametrize("kind", ["copies", "sums", "near copies", "opposites"])
def test_leaves_of_trees_are_optimal_on_collinear_nodes(kind, monkeypatch):
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1, 1, (400, 1))
    X = collinear(kind, 2, n=400, p=9)
    X[:, 8] = np.where(Z[:, 0] > 0, 3, -3) * X[:, 7] + rng.normal(size=400)
    solved, original = [], gf.GraphicalLasso._use

    def spy(self, solution, covariance, scale):
        solved.append((solution, covariance, self.penalty_))
        return original(self, solution, covariance, scale)

    monkeypatch.setattr(gf.GraphicalLasso, "_use", spy)
    model = gf.TreeCGM(max_leaves=4, random_state=0).fit(X, Z)
    assert model.n_leaves_ == len(solved) >= 2
    for solution, S, penalty in solved:
        assert optimality_violation(solution, S, penalty) <= 0.006 * penalty + 1e-8


@pytest.mark.parametrize("seed", range(10))
def test_graphical_lasso_agrees_with_scikit_learn_where_that_is_right(seed):
    """Both are solutions of one strictly convex problem on data without collinear nodes."""
    rng = np.random.default_rng(seed)
    X = standard(rng.normal(size=(150, 12)) @ (np.eye(12) + 0.3 * rng.normal(size=(12, 12))))
    S, state = X.T @ X / 150, np.random.get_state()  # noqa: NPY002
    solver = PrecisionSolver(S)
    for penalty in (0.3, 0.1, 0.03):
        theirs = graphical_lasso(S, penalty, tol=1e-8, enet_tol=1e-12, max_iter=1_000)[1]
        np.testing.assert_allclose(solver.solve(penalty, 1e-5), theirs, atol=1e-4 * np.abs(theirs).max())
    np.random.set_state(state)  # noqa: NPY002
