"""Differences at a level and a number, where a level has a curve of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf


def _table(n: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Of a third of the rows the edge v - w goes up and down with t, of the others there is none."""
    rng = np.random.default_rng(seed)
    t, group = rng.uniform(-1, 1, n), np.where(rng.random(n) < 0.3, "a", "b")
    size = np.where(group == "a", 0.7 * np.cos(np.pi * t), 0.0)
    X = rng.normal(size=(n, 5))
    X[:, 1] = size * X[:, 0] + np.sqrt(1 - size**2) * X[:, 1]
    return pd.DataFrame(X, columns=list("vwxyz")), pd.DataFrame({"t": t, "group": group})


@pytest.mark.parametrize(("t", "difference"), [(0.0, -0.7), (0.9, 0.67)])
def test_a_level_may_have_a_curve_of_its_own(t, difference):
    """What is linear in the level and in t alone says that there is no difference at all."""
    X, Z = _table(1_500, 0)
    found = gf.compare_graphs(X, Z, {"group": "a", "t": t}, {"group": "b", "t": t}).iloc[0]
    assert (found.source, found.target) == ("v", "w")
    assert found.low < difference < found.high
    assert found.difference == pytest.approx(difference, abs=0.25)
    assert found.q_value < 0.05


@pytest.mark.slow
def test_where_levels_have_one_curve_intervals_cover():
    covered, small = [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X, Z = _table(700, seed)
        X["w"] = rng.normal(size=len(X)) + 0.3 * X["v"]
        found = gf.compare_graphs(X, Z, {"group": "a", "t": 0.5}, {"group": "b", "t": 0.5})
        covered.append(((found.low <= 0) & (found.high >= 0)).mean())
        small.append((found.p_value <= 0.05).mean())
    assert np.mean(covered) > 0.84
    assert np.mean(small) < 0.09
