"""Patterns of columns that belong together, and patterns found by the likelihood of each node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from graphfield.data.blocks import Blocks
from graphfield.data.frames import as_frame
from graphfield.data.node_types import read_node_types
from graphfield.nn.backbone import CovariateShape
from graphfield.nn.fields import CoefField, FieldConfig, Samples
from graphfield.nn.gates import GateField, mixed_field
from graphfield.training.family_patterns import FamilyTable, fit_families
from graphfield.training.mixture import Again
from graphfield.training.sparse_patterns import Moments, PatternProblem

NODES = torch.tensor([0, 1, 1, 2, 3, 3, 3])


def columns(n: int = 300) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, len(NODES), generator=generator)
    x[:, 1:3] += 0.8 * x[:, :1]
    x[:, 4:] += 0.5 * x[:, 3:4]
    return torch.softmax(torch.randn(n, 2, generator=generator), dim=1), x


def block_norms(patterns: torch.Tensor) -> torch.Tensor:
    """(R, p, p)."""
    own = torch.nn.functional.one_hot(NODES).T.float()
    return (own @ patterns.square() @ own.T).sqrt()


def test_columns_of_a_node_come_and_go_together_and_never_explain_each_other():
    shares, x = columns()
    problem = PatternProblem(Moments.of(shares, x, NODES))
    assert not problem.solve(1.001 * problem.largest_penalty()).any()
    assert problem.solve(0.98 * problem.largest_penalty()).any()
    patterns = problem.solve(0.15 * problem.largest_penalty(), tolerance=1e-6)
    same = NODES[:, None] == NODES
    assert not patterns[:, same].any()
    there = block_norms(patterns) > 0
    assert there.any()
    assert not there.all()
    expanded = there[:, NODES][:, :, NODES]
    assert ((patterns != 0) == (expanded & ~same)).all()


def test_another_basis_of_the_columns_of_a_node_gives_the_same_blocks():
    shares, x = columns()
    turned = x.clone()
    angle = torch.tensor(0.7)
    turn = torch.stack([torch.stack([angle.cos(), angle.sin()]), torch.stack([-angle.sin(), angle.cos()])])
    turned[:, 1:3] = x[:, 1:3] @ turn
    ours, theirs = (PatternProblem(Moments.of(shares, own, NODES)) for own in (x, turned))
    patterns, other = (problem.solve(0.1, tolerance=1e-7) for problem in (ours, theirs))
    torch.testing.assert_close(block_norms(patterns), block_norms(other), rtol=1e-3, atol=1e-4)
    lighter, other = (
        problem.relaxed(own, 0.05, torch.ones(len(NODES))).solve(0.1, own, 1e-7)
        for problem, own in ((ours, patterns), (theirs, other))
    )
    torch.testing.assert_close(block_norms(lighter), block_norms(other), rtol=2e-3, atol=2e-4)


def test_nodes_of_one_column_each_are_solved_as_before():
    shares, x = columns()
    plain = PatternProblem(Moments.of(shares, x)).solve(0.1, tolerance=1e-6)
    owned = PatternProblem(Moments.of(shares, x, torch.arange(len(NODES)))).solve(0.1, tolerance=1e-6)
    torch.testing.assert_close(owned, plain, rtol=1e-4, atol=1e-5)


def test_moments_of_another_target():
    shares, x = columns()
    plain = Moments.of(shares, x, NODES)
    again = plain.with_target(shares, x, x)
    for name in ("gram", "cross", "power"):
        torch.testing.assert_close(getattr(again, name), getattr(plain, name), rtol=1e-4, atol=1e-3)
    target = x.flip(1)
    lines = torch.einsum("nr,nk,nj->jrk", shares, x, target).flatten(1)
    torch.testing.assert_close(plain.with_target(shares, x, target).cross, lines, rtol=1e-4, atol=1e-3)
    assert torch.equal((again + again).without(again).nodes, NODES)


def one_graph(coef: CoefField, penalty: float = 0.0) -> Again:
    """Coefficients that do not move, by least squares."""

    def find(moments: Moments, of_one: Moments) -> CoefField:
        patterns = PatternProblem(moments).solve(penalty, tolerance=1e-7)
        weights = {**coef.state_dict(), "head.weight": torch.cat([patterns, 0 * patterns])[None]}
        found = CoefField(coef.config, torch.Generator())
        found.load_state_dict(weights)
        return found.eval()

    return Again(lambda: torch.ones(1, 1), find)


def table_of(X: pd.DataFrame, types: dict[str, str]) -> FamilyTable:
    frame = as_frame(X, "X")
    found = read_node_types(frame, types)
    assert found is not None
    codes = found.codes(found.with_categories(frame))
    blocks = Blocks.learn(found, codes)
    values, n = blocks.columns(codes), len(X)
    data = Samples(
        torch.as_tensor(values, dtype=torch.float32), torch.zeros(n, 1), torch.zeros(n, 0, dtype=torch.int64)
    )
    nodes = None if (blocks.widths == 1).all() else torch.as_tensor(blocks.nodes)
    return FamilyTable(blocks, values, np.tile(blocks.null, (n, 1)), data, nodes)


def fit_one_graph(table: FamilyTable) -> np.ndarray:
    """Natural parameters of all rows, without any penalty."""
    n, d = table.columns.shape
    config = FieldConfig(d, CovariateShape(1, ()), "residual", "all", 4, 0.0, True, "squared", 0.0, rank=1)
    start = mixed_field(GateField(config, torch.Generator().manual_seed(0)), torch.zeros(1, d, d))
    again = replace(one_graph(start), features=lambda: torch.ones(n, 1))
    found = fit_families(table, again, torch.arange(n), start)
    fitted = found.coef.fitted(table.data.take(torch.arange(n)[None]))[0].detach().double().numpy()
    return np.asarray(table.blocks.null + found.base + fitted)


@pytest.mark.parametrize("strength", [1.0, 2.0])
def test_a_node_with_levels_is_a_logistic_regression(strength):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 1_500))
    flag = rng.random(1_500) < 1 / (1 + np.exp(-(strength * a - 1.5)))
    odds = np.exp(np.outer(strength * b, [1.0, 0.0, -1.0]))
    level = (rng.random(1_500)[:, None] > np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)).sum(
        axis=1
    )
    X = pd.DataFrame({"a": a, "b": b, "flag": flag, "level": level})
    table = table_of(X, {"level": "categorical"})
    eta = fit_one_graph(table)
    for node, name in ((2, "flag"), (3, "level")):
        others = table.columns[:, table.blocks.nodes != node]
        known = (
            LogisticRegression(C=1e8, tol=1e-10, max_iter=1_000).fit(others, X[name]).predict_proba(others)
        )
        np.testing.assert_allclose(table.blocks.probabilities(eta, node), known, atol=0.02)


def test_a_rare_level_whose_loss_is_more_curved_than_assumed_does_not_swing():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 2_000))
    X = pd.DataFrame({"a": a, "b": b, "flag": rng.random(2_000) < 1 / (1 + np.exp(6 - 3 * a))})
    table = table_of(X, {"flag": "binary"})
    ours = table.blocks.losses(fit_one_graph(table), table.columns)[:, 2].mean()
    others = table.columns[:, :2]
    known = LogisticRegression(C=1e8).fit(others, X.flag).predict_proba(others)
    assert ours < -1.08 * np.log(known[np.arange(2_000), X.flag.astype(int)]).mean()


def test_counts_with_a_long_tail_stay_finite_and_fit_better_than_their_mean():
    rng = np.random.default_rng(1)
    a = rng.normal(size=800)
    X = pd.DataFrame({"a": a, "b": rng.normal(size=800), "events": rng.poisson(np.exp(1.5 * a))})
    table = table_of(X, {"events": "count"})
    eta, null = fit_one_graph(table), np.tile(table.blocks.null, (800, 1))
    ours, theirs = (table.blocks.losses(own, table.columns)[:, 2].mean() for own in (eta, null))
    assert np.isfinite(eta).all()
    assert ours < 0.3 * theirs


def test_links_are_those_of_means_that_can_be():
    X = pd.DataFrame({"a": np.arange(40.0), "flag": np.arange(40) < 10, "level": np.arange(40) % 3})
    X["events"] = np.arange(40) % 5
    table = table_of(X, {"level": "categorical", "events": "count"})
    blocks = table.blocks
    rng = np.random.default_rng(0)
    near = 0.2 * rng.normal(size=(50, blocks.n_columns))
    np.testing.assert_allclose(blocks.means(blocks.bounded_at(near)), near, atol=1e-9)
    np.testing.assert_allclose(blocks.bounded_at(np.zeros((1, blocks.n_columns)))[0], blocks.null, atol=1e-9)
    far = blocks.bounded_at(100 * near)
    assert np.isfinite(far).all()
    assert blocks.probabilities(far, 1)[:, 1].min() == pytest.approx(0.025)  # a tenth of a quarter
