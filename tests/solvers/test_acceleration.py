"""Accelerated proximal steps: one loop, for NumPy and for torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphfield.solvers.acceleration import accelerate
from graphfield.solvers.shrinkage import remaining_share
from graphfield.training.sparse_patterns import go_ahead

EIGENVALUES, PULL = np.geomspace(1, 1e-3, 20), np.linspace(-1, 1, 20)


def lasso_step(point):
    """Of a problem whose entries do not touch: half a square less a pull, and a penalty of 0.1."""
    moved = point - (EIGENVALUES * np.asarray(point) - PULL)
    return moved * remaining_share(np.abs(moved), 0.1)


def settled(change, _):
    return abs(change).max() < 1e-12


def test_the_solution_is_that_of_the_problem():
    expected = np.sign(PULL) * np.maximum(np.abs(PULL) - 0.1, 0) / EIGENVALUES
    found = accelerate(np.zeros(20), lasso_step, settled, 100_000)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_it_takes_far_fewer_steps_than_without_momentum():
    taken, plain, point = [], 0, np.zeros(20)
    accelerate(np.zeros(20), lambda own: taken.append(1) or lasso_step(own), settled, 100_000)
    while True:
        plain, new = plain + 1, lasso_step(point)
        if settled(new - point, new):
            break
        point = new
    assert 5 * len(taken) < plain


@pytest.mark.parametrize("check_every", [1, 7])
def test_tensors_take_the_same_steps_as_arrays(check_every):
    def torch_step(point):
        return torch.as_tensor(lasso_step(point.numpy()))

    arrays = accelerate(np.zeros(20), lasso_step, settled, 50, check_every=check_every)
    start = torch.zeros(20, dtype=torch.float64)
    tensors = accelerate(start, torch_step, settled, 50, check_every=check_every, ahead=go_ahead)
    np.testing.assert_allclose(tensors.numpy(), arrays, rtol=1e-12)


def test_it_asks_only_now_and_then_whether_it_is_settled():
    asked = []
    accelerate(np.ones(2), lambda x: x / 2, lambda *_: asked.append(1), 20, check_every=5)
    assert len(asked) == 4
