"""Means and levels are taken out of nodes in units in which noise is even: logarithms change no answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.data.node_units import choose_units

GROUPS, ROWS, P = 60, 6, 5
WHO = np.repeat(np.arange(GROUPS), ROWS)


def panel(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A chain within groups that have levels of their own, and years that move all means."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(len(WHO), P))
    for j in range(1, P):
        X[:, j] = 0.5 * X[:, j - 1] + 0.85 * X[:, j]
    year = np.tile(np.arange(float(ROWS)), GROUPS)
    X += 1.5 * rng.normal(size=(GROUPS, P))[WHO] + np.outer(year / 4, rng.normal(size=P))
    return pd.DataFrame(X, columns=list("vwxyz")), pd.DataFrame({"year": year})


def features_of(Z: pd.DataFrame) -> np.ndarray:
    return np.column_stack([np.ones(len(Z)), Z])


def test_nodes_with_even_noise_stay_as_they_are():
    rng = np.random.default_rng(1)
    for seed in range(5):
        X, Z = panel(seed)
        assert not choose_units(X.to_numpy(), features_of(Z), WHO).others.any()
    z = rng.uniform(-1, 1, 800)
    moving = rng.normal(size=(800, 4)) + 6 * np.sign(z)[:, None]  # two humps, which the mean explains
    assert not choose_units(moving, np.column_stack([np.ones(800), np.sign(z)])).others.any()
    assert not choose_units(rng.integers(0, 2, (800, 2)).astype(float), np.ones((800, 1))).others.any()


def test_there_and_back():
    X, Z = panel()
    X = X.assign(v=np.exp(X.v), w=X.w**3, x=7.0).to_numpy()
    X[3, 3] = 1e6
    units = choose_units(X, features_of(Z), WHO)
    assert units.logs.tolist() == [True, False, False, False, False]
    assert units.scores.tolist() == [False, True, False, True, False]
    np.testing.assert_allclose(units.restore(units.transform(X)), X, rtol=1e-9)
    told = units.describe(list("vwxyz"), "levels")
    assert "Of 3 nodes, levels were taken out of" in told
    assert "logarithms of 'v' and normal scores of 'w', 'y'" in told


def test_few_groups_are_looked_at_whole_where_rows_are_many(monkeypatch):
    X, Z = panel()
    monkeypatch.setattr("graphfield.data.node_units._MOST_ROWS", 120)
    units = choose_units(np.exp(X.to_numpy()), features_of(Z), WHO)
    assert units.logs.all()
    assert choose_units(np.exp(X.to_numpy()), features_of(Z)).others.all()


@pytest.mark.filterwarnings("ignore::graphfield.DataWarning")
def test_logarithms_change_no_answer():
    X, Z = panel()
    plain, skewed = (gf.dependence_test(own, Z, groups=WHO, n_permutations=99) for own in (X, np.exp(X)))
    assert skewed.p_value == plain.p_value
    assert any("logarithms of 'v', 'w', 'x' and 2 more" in note for note in skewed.notes)
    assert plain.notes == ()
    plain, skewed = (gf.infer_edges(own, Z, groups=WHO).table for own in (X, np.exp(X)))
    np.testing.assert_allclose(skewed.estimate, plain.estimate, atol=1e-6)
    np.testing.assert_allclose(skewed.p_varies, plain.p_varies, atol=1e-6)


@pytest.mark.filterwarnings("ignore::graphfield.DataWarning")
def test_rows_without_groups_too():
    rng = np.random.default_rng(2)
    z = rng.uniform(-1, 1, 400)
    X = rng.normal(size=(400, 4))
    X[:, 1] += 0.6 * X[:, 0]
    X += 2 * np.outer(np.sin(5 * z), rng.normal(size=4))
    plain, skewed = (gf.infer_edges(own, z[:, None]).table for own in (X, np.exp(X)))
    np.testing.assert_allclose(skewed.estimate, plain.estimate, atol=1e-6)


def test_levels_of_a_fit_are_those_of_even_units():
    """What a fit sees of a group is what varies within it, by so many per cent where noise is."""
    (X, Z), model = panel(), gf.RegGMM()
    with pytest.warns(gf.DataWarning, match="levels of their own"):
        plain = model.fit(X, Z, groups=WHO).partial_correlations(Z[:1])[0]
    with pytest.warns(gf.DataWarning, match="levels of their own"):
        skewed = model.fit(np.exp(X / 2), Z, groups=WHO).partial_correlations(Z[:1])[0]
    edges = np.eye(P, k=1, dtype=bool)
    assert np.abs(skewed - plain)[edges].max() < 0.12
    assert np.abs(skewed)[np.triu(~np.eye(P, dtype=bool) & ~edges)].max() < 0.15


def test_counts_stay_counts():
    """Levels are of numbers; what is no plain number is not turned there and back."""
    X, Z = panel()
    table = np.exp(X).assign(n=np.random.default_rng(0).poisson(3, len(X)) + 1)
    model = gf.RegGMM(node_types={"n": "count"})
    with pytest.warns(gf.DataWarning, match="levels of their own"):
        model.fit(table, Z, groups=WHO)
    with pytest.warns(gf.DataWarning, match="it knows none"):
        predicted = model.predict(table, Z)
    assert np.isfinite(predicted).all()
    assert (predicted[:, -1] > 0).all()
