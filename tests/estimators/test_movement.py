"""What a default fit makes of tables where nothing moves, of wide ones and of heavy tails."""

from __future__ import annotations

import numpy as np
import pytest

import graphfield as gf
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.frames import as_frame
from graphfield.data.room import size_text
from graphfield.estimators import dnncgm_setup
from graphfield.estimators.dnncgm_setup import choose_way
from graphfield.fields import Schema
from solver_cases import still_rows


@pytest.mark.slow
@pytest.mark.parametrize(("n", "p"), [(500, 10), (500, 20), (2_000, 20)])
def test_hardly_any_movement_is_kept_where_there_is_none(n, p):
    kept, losses = [], []
    for seed in range(5):
        X, Z, _ = still_rows(n + 3_000, p, seed)
        model = gf.DNNCGM(device="cpu", random_state=seed).fit(X[:n], Z[:n])
        centred = X[n:] - X[:n].mean(axis=0)
        average = centred - centred @ model.predict_coef(Z[:n]).mean(axis=0).T
        left = X[n:] - model.predict(X[n:], Z[n:])
        kept.append(model.variation_)
        losses.append(np.square(left).mean() / np.square(average).mean() - 1)
    assert np.median(kept) <= 0.2
    assert np.median(losses) <= 1e-3


@pytest.mark.slow
def test_strong_edges_are_not_too_weak():
    """On average within 8 % of what they are; the penalty alone takes off more than that."""
    ratios = []
    for seed in range(3):
        X, Z, partial = still_rows(2_000, 20, seed)
        found = gf.DNNCGM(device="cpu", random_state=seed).fit(X, Z).partial_correlations(Z[:20]).mean(axis=0)
        ratios.append((found[partial != 0] / partial[partial != 0]).mean())
    assert np.median(ratios) == pytest.approx(1, abs=0.08)


def wide(n_nodes: int) -> Schema:
    encoder = CovariateEncoder().fit(as_frame(np.random.default_rng(0).normal(size=(60, 2)), "Z"))
    return Schema([f"x{i}" for i in range(n_nodes)], False, encoder)


def test_wide_tables_mix_patterns_where_they_fit_in_memory(monkeypatch):
    monkeypatch.setattr(dnncgm_setup, "free_memory", lambda: 4 * 10**9)
    assert choose_way(gf.DNNCGM(device="cpu"), wide(1_000), 5_000).ranks == (8,)
    lacking = "8 patterns of 1,000 nodes need 2.8 GB of memory, but {} are free"
    for free, ranks in ((1_500, (4,)), (700, (2,))):
        monkeypatch.setattr(dnncgm_setup, "free_memory", lambda free=free: free * 10**6)
        with pytest.warns(gf.TrainingWarning, match="so {} are fitted".format(*ranks)):
            way = choose_way(gf.DNNCGM(device="cpu"), wide(1_000), 5_000)
        assert way.ranks == ranks
        assert str(way) == f"patterns ({lacking.format(size_text(free * 10**6))})"


def test_what_does_not_fit_with_few_patterns_is_refused_with_the_arithmetic(monkeypatch):
    monkeypatch.setattr(dnncgm_setup, "free_memory", lambda: 10**8)
    with pytest.raises(gf.ParameterError, match=r"2 patterns would need 413\.5 MB\. Use fewer") as found:
        choose_way(gf.DNNCGM(device="cpu"), wide(1_000), 5_000)
    assert str(found.value.parts["argument"]) == "rank"


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "patterns (the default)"),
        ({"rank": 4}, "patterns (rank=4)"),
        ({"rank": None}, "full head (rank=None)"),
        (
            {"loss": "huber"},
            "full head (sharing='all', loss='squared' and hidden layers are needed for patterns)",
        ),
    ],
)
def test_the_way_of_fitting_is_said_with_its_reason(params, said):
    assert str(choose_way(gf.DNNCGM(device="cpu", **params), wide(10), 500)) == said


def test_patterns_that_do_not_fit_are_refused_with_the_arithmetic(monkeypatch):
    monkeypatch.setattr(dnncgm_setup, "free_memory", lambda: 10**6)
    X, Z = np.random.default_rng(0).normal(size=(80, 40)), np.linspace(0, 1, 80)[:, None]
    said = r"8 patterns of 40 nodes would take .* of memory, but 1\.0 MB are free\. Use a smaller rank"
    with pytest.raises(gf.ParameterError, match=said):
        gf.DNNCGM(rank=8, device="cpu").fit(X, Z)
