"""Nodes as they are or as normal scores: the choice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.data.marginals import NormalScores
from graphfield.data.splits import hold_out
from graphfield.solvers import marginal_choice
from graphfield.solvers.marginal_choice import FEWEST_GROUPS, FEWEST_ROWS, prefer_normal_scores
from solver_cases import chain, preferred, still_rows

SHAPES = {"exp": np.exp, "cube": lambda X: X**3}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES)
def test_the_check_sees_the_shape_of_the_nodes(shape, seed):
    X, _ = chain(seed=seed)
    plain, bent = preferred(X), preferred(SHAPES[shape](X))
    assert not plain.prefers
    assert abs(plain.gain) < 0.002
    assert bent.prefers
    assert bent.gain > max(0.01, 3 * bent.standard_error)


def test_scores_of_the_scores_change_nothing():
    """Increasing transforms of nodes change neither ranks nor what normal scores predict."""
    X, _ = chain()
    bent = np.exp(X)
    raw, other = preferred(X), preferred(bent)
    scored = preferred(NormalScores.learn(bent).transform(bent))
    assert abs(scored.gain) < 0.002
    assert other.gain > 10 * abs(raw.gain)


@pytest.mark.parametrize("name", ["G1", "D1", "S1"])
def test_settings_whose_nodes_are_fine_as_they_are(name):
    sim = gf.make_setting(name, 2_000, 0)
    assert not preferred(sim.X, sim.Z).prefers


@pytest.mark.slow
@pytest.mark.parametrize("name", ["N1", "N2"])
def test_settings_seen_through_a_transform(name):
    sim = gf.make_setting(name, 8_000, 0)
    assert preferred(sim.X, sim.Z).prefers


def opposite(n: int, seed: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Skewed nodes, two of them related, in opposite ways at both ends of a covariate; the rest is noise."""
    rng = np.random.default_rng(seed)
    X, age = rng.normal(size=(n, 8)), rng.uniform(20, 80, n)
    X[:, 1] = 0.8 * (age - 50) / 30 * X[:, 0] + 0.6 * X[:, 1]
    return np.exp(1.2 * X), pd.DataFrame({"age": age})


@pytest.mark.parametrize("seed", range(3))
def test_relations_that_cancel_over_all_rows_are_seen(seed):
    X, Z = opposite(4_000, seed)
    assert preferred(X, Z).prefers
    assert not preferred(X).prefers
    assert not preferred(np.log(X), Z).prefers


def test_relations_by_category_are_seen():
    X, Z = opposite(4_000, 0)
    assert preferred(X, pd.DataFrame({"old": np.where(Z["age"] > 50, "yes", "no")})).prefers


@pytest.mark.parametrize("seed", range(3))
def test_extreme_values_that_go_together_are_not_hidden(seed):
    """Ranks see little of what one row in ten has in common, and much of the skewed other nodes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4_000, 8)) + 0.5 * rng.normal(size=(4_000, 1))
    X[:, 4:] = np.exp(0.8 * X[:, 4:])
    ill = rng.random(4_000) < 0.1
    X[ill, :4] += rng.exponential(8.0, size=(ill.sum(), 1))
    check = preferred(X)
    assert check.gain > 3 * check.standard_error
    assert check.hides
    assert not check.prefers


@pytest.mark.parametrize("held_out", [False, True])
def test_one_wild_value_does_not_decide(held_out, monkeypatch):
    """Among the rows to learn from it spoils relations; among held-out ones nothing is seen of it."""
    monkeypatch.setattr(marginal_choice, "_FEW_ROWS", 0)  # as with many rows
    X, W = np.random.default_rng(3).normal(size=(1_000, 4)).cumsum(axis=1), np.ones((1_000, 1))
    assert not prefer_normal_scores(X, W).prefers
    row = hold_out(1_000, 0.2, None, seed=0)[held_out][0]
    X[row, 2] = 30.0  # far out, but a small part of the variance
    assert not prefer_normal_scores(X, W).prefers
    X[row, 2] = 1e6
    check = prefer_normal_scores(X, W)
    assert check.prefers
    assert check.one_value_decides == held_out
    monkeypatch.undo()
    assert not prefer_normal_scores(X, W).one_value_decides, "of few rows, each is learned from"


def test_too_many_products_leave_relations_the_same_for_all_rows(monkeypatch):
    X, Z = opposite(1_000, 0)
    monkeypatch.setattr(marginal_choice, "MAX_PRODUCTS", 15)
    assert preferred(X, Z) == preferred(X)
    monkeypatch.setattr(marginal_choice, "MAX_PRODUCTS", 16)
    assert preferred(X, Z) != preferred(X)


def test_nodes_that_depend_on_no_other_count_little():
    """Twenty nodes of noise beside the chain change the gain by less than half."""
    X, _ = chain(3_000)
    bent = np.exp(np.hstack([X, np.random.default_rng(9).normal(size=(3_000, 20))]))
    assert preferred(bent).gain > 0.5 * preferred(np.exp(X)).gain
    assert not preferred(bent[:, 8:]).prefers


def test_too_few_rows_or_groups_to_tell():
    X, _ = chain(1_000)
    few = preferred(np.exp(X[:240]))
    assert not few.prefers
    assert np.isnan([few.gain, few.standard_error]).all()
    assert np.isfinite(preferred(np.exp(X[:250])).gain)
    groups = preferred(np.exp(X), groups=np.arange(1_000) % 49)
    assert np.isnan(groups.gain)
    assert (few.lacks, groups.lacks) == ("rows", "groups"), "1,000 rows are not few"
    assert np.isfinite(preferred(np.exp(X), groups=np.arange(1_000) % 50).gain)
    needs = f"needs {FEWEST_ROWS} rows, and {FEWEST_GROUPS} groups"
    assert needs in gf.DNNCGM.__doc__


def test_copies_of_rows_in_one_group_count_once():
    """Ten copies of each row do not make the evidence stronger when they are known to be copies."""
    X, _ = chain(600)
    copies, groups = np.repeat(np.exp(X), 10, axis=0), np.repeat(np.arange(600), 10)
    known, unknown = preferred(copies, groups=groups), preferred(copies)
    assert known.standard_error > 2 * unknown.standard_error


def test_a_small_but_certain_gain_is_not_enough(monkeypatch):
    X, _ = chain(3_000)
    bent = X + 0.02 * X**3
    check = preferred(bent)
    monkeypatch.setattr(marginal_choice, "_LEAST_GAIN", check.gain + 1e-6)
    monkeypatch.setattr(marginal_choice, "_EVIDENCE", -100.0)
    monkeypatch.setattr(marginal_choice, "_COUNTER_EVIDENCE", np.inf)
    assert not preferred(bent).prefers
    monkeypatch.setattr(marginal_choice, "_LEAST_GAIN", check.gain - 1e-6)
    assert preferred(bent).prefers


def test_a_node_that_is_constant_in_the_rows_to_learn_from(monkeypatch):
    monkeypatch.setattr(marginal_choice, "_FEW_ROWS", 0)  # one split
    X, _ = chain(400)
    train, held_out = hold_out(400, 0.2, None, seed=0)
    X[held_out, 3], X[held_out, 5] = np.arange(len(held_out)), 2.0
    checks = []
    for constant in (0.0, 0.1):
        X[train, 3] = constant
        checks.append(preferred(X))
    assert np.isfinite([checks[0].gain, checks[0].standard_error]).all()
    assert checks[1].gain == pytest.approx(checks[0].gain, abs=1e-4)


@pytest.mark.parametrize("seed", range(2))
def test_heavy_tails_are_seen_in_a_few_hundred_rows(seed):
    """Normal rows and rows of the same covariance with the tails of a t distribution."""
    rng = np.random.default_rng(seed)
    X, Z, _ = still_rows(500, 10, seed)
    W = np.column_stack([np.ones(500), Z])
    assert not prefer_normal_scores(X, W).prefers
    assert prefer_normal_scores(X * np.sqrt(2 / rng.chisquare(2, (500, 1))), W).prefers
