"""Graphical lassos of several levels, coupled."""

from __future__ import annotations

import numpy as np
import pytest

from graphfield.solvers.glasso import graphical_lasso_path
from graphfield.solvers.joint_graphs import COUPLINGS, JointSolver


def correlations_with_copies(p: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Of three levels of unequal size; the last node copies the first, the one before is a sum of others."""
    rng, found, sizes = np.random.default_rng(0), [], np.array([200.0, 80.0, 25.0])
    for n in sizes.astype(int):
        X = rng.normal(size=(n, p))
        X[:, 1] += X[:, 0]
        X[:, -1], X[:, -2] = X[:, 0], X[:, 1] + X[:, 2]
        found.append(np.corrcoef(X.T))
    return np.array(found), sizes


def penalised_distance(coupling: str, t: np.ndarray, y: np.ndarray, a: np.ndarray, amount: float) -> float:
    apart = (a @ np.square(t - y)) / 2
    if coupling == "group":
        return apart + amount * np.sqrt(a @ np.square(t))
    if coupling == "chain":
        up_to = np.cumsum(a)[:-1]
        return apart + amount * (up_to * (1 - up_to)) @ np.abs(np.diff(t))
    return apart + amount * np.triu(np.outer(a, a) * np.abs(t[:, None] - t)).sum()


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_no_other_values_are_a_better_proximal_step(coupling):
    rng = np.random.default_rng(0)
    a = rng.dirichlet(np.ones(5))
    for amount in (0.0, 0.3, 1.0, 3.0, 20.0):
        y = rng.normal(size=(5, 4))
        for t, own in zip(COUPLINGS[coupling](y, a, amount).T, y.T, strict=True):
            best = penalised_distance(coupling, t, own, a, amount)
            for _ in range(100):
                # Some levels together, or each on its own, near and far.
                together = rng.integers(0, 2, 5) * rng.normal()
                step = 10 ** rng.uniform(-4, 0) * (together if rng.random() < 0.5 else rng.normal(size=5))
                assert penalised_distance(coupling, t + step, own, a, amount) > best - 1e-12


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_hardly_coupled_levels_are_graphical_lassos_of_their_own(coupling):
    """Also where nodes are copies and sums of others."""
    S, sizes = correlations_with_copies()
    solver = JointSolver(S, sizes, coupling)
    found = solver.solve(0.1, 1e-6, accuracy=1e-3)
    for own, matrix, penalty in zip(S, found, solver.level_penalties(0.1), strict=True):
        alone = graphical_lasso_path(own, [penalty])[0]
        assert np.abs(matrix - alone).max() < 0.01 * np.abs(alone).max()
    assert solver.level_penalties(0.1)[2] > solver.level_penalties(0.1)[0]


@pytest.mark.parametrize("coupling", ["fused", "chain"])
def test_strongly_fused_levels_are_one_graphical_lasso(coupling):
    S, sizes = correlations_with_copies()
    found = JointSolver(S, sizes, coupling).solve(0.1, 0.999, accuracy=1e-3)
    pooled = graphical_lasso_path(np.average(S, axis=0, weights=sizes), [0.1])[0]
    assert np.abs(found - pooled).max() < 0.01 * np.abs(pooled).max()
