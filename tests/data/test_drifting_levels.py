"""Levels of groups that drift are found, and levels that stay, however uneven the noise, are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.data.drifting_levels import drifting_covariates
from graphfield.data.frames import as_frame

N_GROUPS, WAVES, NODES = 150, 8, 4


def slow(rng, memory, n_groups=N_GROUPS, waves=WAVES):
    """Nodes that keep this share of themselves from wave to wave, (groups, waves, nodes)."""
    now, found = rng.normal(size=(n_groups, NODES)), []
    for _ in range(waves):
        found.append(now)
        now = memory * now + np.sqrt(1 - memory**2) * rng.normal(size=now.shape)
    return np.stack(found, axis=1)


def along(nodes, **covariates):
    n_groups, waves, n_nodes = nodes.shape
    each = {name: np.broadcast_to(own, (n_groups, waves)).ravel() for name, own in covariates.items()}
    labels = np.repeat(np.arange(n_groups), waves)
    return drifting_covariates(nodes.reshape(-1, n_nodes), as_frame(pd.DataFrame(each), "Z"), labels)


YEAR = np.arange(WAVES) + 1983


@pytest.mark.parametrize("seed", range(5))
def test_slow_levels_are_found(seed):
    rng = np.random.default_rng(seed)
    nodes = slow(rng, 0.9) + 0.7 * rng.normal(size=(N_GROUPS, WAVES, NODES))
    assert along(nodes, year=YEAR) == ["year"]
    assert along(nodes, year=rng.permuted(np.tile(YEAR, (N_GROUPS, 1)), axis=1)) == []


def test_steady_levels_are_rarely_taken_for_drift():
    """Noise of any law, of a size that changes with the years: at most one table in twenty."""
    wrong = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        size = np.abs(np.arange(WAVES) - 3.5)[:, None] if seed % 2 else 1.0
        noise = rng.standard_t(4, size=(N_GROUPS, WAVES, NODES)) * size
        wrong += along(noise + 2 * rng.normal(size=(N_GROUPS, 1, NODES)), year=YEAR) != []
    assert wrong <= 8  # of 100 with a rate of .05, more than 8 in 6 % of cases; .025 is meant


def test_means_that_move_are_no_drift():
    rng = np.random.default_rng(0)
    treated = rng.integers(0, 2, (N_GROUPS, 1))
    nodes = rng.normal(size=(N_GROUPS, WAVES, NODES)) + rng.normal(size=(N_GROUPS, 1, NODES))
    means = 2 * np.sin(np.arange(WAVES)) + treated * np.arange(WAVES)
    assert along(nodes + means[..., None], year=YEAR, treated=treated) == []


def test_slopes_of_groups_are_drift():
    rng = np.random.default_rng(0)
    slopes = 0.3 * rng.normal(size=(N_GROUPS, 1, NODES)) * np.arange(WAVES)[:, None]
    assert along(rng.normal(size=(N_GROUPS, WAVES, NODES)) + slopes, year=YEAR) == ["year"]


def test_only_what_tells_the_order_of_rows_is_named():
    """A mood that is slow as well says nothing of which rows are at the ends; nor what groups have."""
    rng = np.random.default_rng(0)
    nodes = slow(rng, 0.8, waves=30)
    mood, age = slow(rng, 0.8, waves=30)[..., 0], rng.normal(size=(N_GROUPS, 1))
    assert along(nodes, mood=mood, age=age, beep=np.arange(30)) == ["beep"]
    days = np.cumsum(rng.exponential(size=(N_GROUPS, 30)), axis=1)  # uneven, but listed in their order
    assert along(nodes, day=days) == ["day"]


def test_four_rows_of_five_groups_are_needed():
    rng = np.random.default_rng(0)
    assert along(slow(rng, 0.99, 100, 3), year=YEAR[:3]) == []
    assert along(slow(rng, 0.99, 4), year=YEAR) == []
    assert along(np.zeros((20, WAVES, NODES)), year=YEAR) == []


@pytest.mark.parametrize("memory", [0.9, 0.0])
def test_the_data_check_says_so(memory):
    rng = np.random.default_rng(1)
    nodes = slow(rng, memory) + (2 if memory == 0 else 0) * rng.normal(size=(N_GROUPS, 1, NODES))
    Z = pd.DataFrame({"year": np.tile(YEAR, N_GROUPS)})
    labels = np.repeat(np.arange(N_GROUPS), WAVES)
    checked = gf.check_data(nodes.reshape(-1, NODES), Z, labels)
    assert "group-levels" in checked.codes()
    found = [one for one in checked.warnings if one.code == "drifting-levels"]
    assert [one.columns for one in found] == ([("year",)] if memory else [])
    if memory:
        assert "differences of neighbouring rows" in found[0].advice
        Z = Z.astype(float).mask(rng.random(Z.shape) < 0.1)  # rows without a year are no reason to stop
        assert "drifting-levels" in gf.check_data(nodes.reshape(-1, NODES), Z, labels).codes()
