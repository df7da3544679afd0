"""What a fit decides on few rows or groups: all of them have a say, and what does not move is one graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import graphfield as gf
from engine_cases import FIELD, TRAINING, generator, samples
from graphfield.data.splits import cross_parts, hold_out
from graphfield.estimators.moving_means import _moves
from graphfield.graphs.strength import partial_correlations
from graphfield.nn.gates import GateField
from graphfield.nn.pack import member_arrays
from graphfield.training import finished_mixture
from graphfield.training.finished_mixture import LastStep
from graphfield.training.mixture import MixtureTask
from graphfield.training.mixture_state import Mixture
from graphfield.training.plan import Seeds
from graphfield.training.relaxed_patterns import SingleGraph
from graphfield.training.sparse_patterns import Moments, PatternProblem, total
from graphfield.training.supported_variation import FEW_UNITS


@pytest.mark.parametrize("seed", range(5))
def test_a_tenth_of_uneven_groups_is_about_a_tenth_of_the_rows(seed):
    sizes = np.array([150, 90, 40, *[20] * 4, *[4] * 30])
    labels = np.repeat(np.arange(len(sizes)), sizes)
    train, held_out = hold_out(len(labels), 0.1, labels, seed)
    assert not set(labels[train]) & set(labels[held_out])
    assert 0.1 * len(labels) <= len(held_out) <= 0.2 * len(labels)
    assert len(np.unique(labels[held_out])) >= 0.1 * len(sizes)


def test_groups_that_are_all_large_still_leave_one_to_hold_out():
    labels = np.repeat([0, 1, 2], 30)
    train, held_out = hold_out(90, 0.1, labels, seed=0)
    assert len(held_out) == 30
    assert len(train) == 60


def test_a_regression_that_overshoots_does_not_make_a_correlation_of_one():
    coef, scale = np.zeros((1, 2, 2)), np.ones((1, 2))
    coef[0, 0, 1], coef[0, 1, 0] = 2.2, 0.3
    assert partial_correlations(coef, scale)[0, 0, 1] == pytest.approx(0.65)


def test_rows_of_one_group_are_one_word_about_the_mean():
    """Two of six groups gain much: many rows, but no evidence that a mean moves."""
    groups = torch.arange(600) // 100
    gain = (groups % 3 == 0) * 0.5 - 0.1 + 0.01 * torch.randn(600, generator=generator())
    assert _moves(gain, torch.arange(600))
    assert not _moves(gain, groups)


def collinear_rows(n: int, p: int = 12) -> torch.Tensor:
    """Node 5 is nearly the sum of three others; those after it are on their own."""
    x = torch.randn(n, p, generator=generator(3), dtype=torch.float64)
    x[:, 1] += 0.5 * x[:, 0]
    x[:, 5] = x[:, 1] + x[:, 2] - x[:, 3] + 0.2 * x[:, 5]
    return ((x - x.mean(dim=0)) / x.std(dim=0)).float()


def single_graph(x: torch.Tensor) -> tuple[SingleGraph, torch.Tensor, Moments]:
    ones = torch.ones(len(x), 1)
    rows = [torch.as_tensor(part) for part in cross_parts(np.arange(len(x)), None)]
    parts = [Moments.of(ones[part], x[part]) for part in rows]
    single = SingleGraph.choose(parts)
    return single, single.find(total(parts))[0], total(parts)


def test_edges_among_nearly_collinear_nodes_are_as_strong_as_without_a_penalty():
    x = collinear_rows(400)
    single, found, moments = single_graph(x)
    free = torch.linalg.inv(torch.cov(x.T.double()))
    free = -free / free.diagonal()[:, None]
    sparse = PatternProblem(moments).solve(single.penalty, tolerance=1e-5)[0]
    strong = [5, 1], [5, 2], [5, 3], [1, 2], [1, 3]
    for j, k in strong:
        assert float(found[j, k]) == pytest.approx(float(free[j, k]), rel=0.1)
    assert max(abs(float(sparse[j, k] / free[j, k]) - 1) for j, k in strong) > 0.15
    assert float(found[6:].abs().max()) < 0.05 < float(sparse[6:].abs().max()), "nodes on their own"


def test_a_refit_has_the_edges_that_are_there_either_way():
    x = collinear_rows(400)
    patterns = torch.zeros(1, 12, 12)
    patterns[0, 0, 1] = patterns[0, 0, 2] = 0.1
    found = PatternProblem(Moments.of(torch.ones(400, 1), x)).refit(patterns)[0]
    expected = torch.linalg.lstsq(x[:, 1:3], x[:, 0]).solution
    torch.testing.assert_close(found[0, 1:3], expected, rtol=1e-3, atol=1e-4)
    assert int((found != 0).sum()) == 4


@torch.no_grad()
@pytest.mark.parametrize("held_out", [0.0, 0.7])
def test_few_independent_rows_keep_what_either_half_supports(monkeypatch, held_out):
    """Those held out, or those of training by gates and patterns that have not seen them."""
    data = samples(400)
    gate = GateField(replace(FIELD, rank=3), generator()).eval()
    gate.spread(data)
    patterns = 0.1 * torch.randn(3, 6, 6, generator=generator()) * (1 - torch.eye(6))
    mixture = Mixture(dict(member_arrays(gate)), patterns, 3, 0.05, 0.0, 0)
    task = MixtureTask(tuple(torch.arange(300).split(100)), torch.arange(300, 400), Seeds(1, 2, 3), None)
    shares = {100: held_out, 300: 0.4}
    monkeypatch.setattr(finished_mixture, "supported_share", lambda _, units, *_of: shares[len(units)])
    assert LastStep(mixture, FIELD, data, task, TRAINING).finish().kept_share == max(held_out, 0.4)


@torch.no_grad()
@pytest.mark.parametrize("n_held_out", [FEW_UNITS, 2 * FEW_UNITS])
def test_training_rows_decide_about_movement_where_few_groups_are_held_out(monkeypatch, n_held_out):
    """Rows of the training parts are judged by gates and patterns that have not seen them."""
    data = samples(300 + n_held_out)
    gate = GateField(replace(FIELD, rank=3), generator()).eval()
    gate.spread(data)
    patterns = 0.1 * torch.randn(3, 6, 6, generator=generator()) * (1 - torch.eye(6))
    mixture = Mixture(dict(member_arrays(gate)), patterns, 3, 0.05, 0.0, 0)
    parts, held_out = tuple(torch.arange(300).split(100)), torch.arange(300, len(data))
    task = MixtureTask(parts, held_out, Seeds(1, 2, 3), None, labels=torch.arange(len(data)) // 2)
    seen = {}

    def spy(support, units, *n_errors):
        seen["units"] = len(torch.unique(units))
        return 0.0

    monkeypatch.setattr(finished_mixture, "supported_share", spy)
    done = LastStep(mixture, FIELD, data, task, TRAINING).finish()
    assert seen["units"] == (150 if n_held_out < 2 * FEW_UNITS else FEW_UNITS)
    coef = done.field(data.numeric[None], data.codes[None])[0]
    torch.testing.assert_close(coef, coef[:1].expand_as(coef), rtol=1e-4, atol=1e-5)
    assert float(coef[0, 3, 2]) == pytest.approx(
        float(data.x[:, 2] @ data.x[:, 3] / data.x[:, 2].square().sum()), abs=0.1
    )


def still_groups(seed: int, n_groups: int = 25, n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A chain that is the same everywhere, in groups of uneven sizes with levels of their own."""
    rng = np.random.default_rng(seed)
    precision = np.eye(8) - 0.4 * (np.eye(8, k=1) + np.eye(8, k=-1))
    shares = rng.dirichlet(np.full(n_groups, 0.7))
    labels = np.concatenate([np.arange(n_groups), rng.choice(n_groups, n - n_groups, p=shares)])
    X = np.linalg.solve(np.linalg.cholesky(precision).T, rng.normal(size=(8, n))).T
    return X + rng.normal(size=(n_groups, 8))[labels], rng.uniform(-1, 1, (n_groups, 2))[labels], labels


@pytest.mark.slow
def test_hardly_any_movement_is_kept_where_groups_have_levels_only():
    kept = []
    for seed in range(5):
        X, Z, labels = still_groups(seed)
        with pytest.warns(gf.DataWarning, match="levels of their own"):
            kept.append(gf.DNNCGM(device="cpu", random_state=seed).fit(X, Z, groups=labels).variation_)
    assert np.median(kept) <= 0.2


@pytest.mark.slow
def test_whether_the_mean_moves_does_not_depend_on_the_seed():
    """A slope that thirty held-out rows cannot tell from none, and three hundred can."""
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1, 1, (300, 1))
    X = rng.normal(size=(300, 4)) + 0.55 * Z
    models = [gf.DNNCGM(rank=2, device="cpu", random_state=seed).fit(X, Z) for seed in range(5)]
    assert all(model.mean_depends_on_covariates_ for model in models)
