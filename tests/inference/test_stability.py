"""Stability: rows of resamples, bounds, centralities, resuming and merging, words."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import SMALL
from graphfield.graphs.centrality import CENTRALITIES, closeness, path_betweenness
from graphfield.inference.selection_bounds import ASSUMPTIONS, _tail, expected_false
from graphfield.inference.stability_folder import Resample, planned_resamples

FEW = {"n_pairs": 3, "n_drops": 2, "shares": [0.2], "n_bootstraps": 2, "random_state": 0}


def hub_data(n=300, seed=0):
    """The first node is connected to the next three; three more are alone. Rows of two come together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 7))
    X[:, 0] += X[:, 1:4].sum(axis=1)
    nodes = pd.DataFrame(X, columns=[f"n{i}" for i in range(7)])
    return nodes, pd.DataFrame({"age": rng.uniform(20, 80, n)}), np.repeat(np.arange(n // 2), 2)


@pytest.fixture(scope="module")
def found():
    X, Z, _ = hub_data()
    return gf.stability(gf.RegGMM(), X, Z, at={"age": 50.0}, **FEW)


# -- rows -------------------------------------------------------------------------------------


def test_halves_are_complementary_and_groups_stay_together():
    codes = np.repeat(np.arange(21), 3)
    first, second = (set(Resample("half", 5, 2, side).rows(codes)) for side in (0, 1))
    assert not first & second
    assert len(first) == len(second) == 30  # of 21 groups one is left out
    dropped = Resample("drop", 5, 0, 30).rows(codes)
    assert np.bincount(codes[dropped]).max() == 3
    assert len(np.unique(codes[dropped])) == round(0.7 * 21)
    drawn = Resample("draw", 5, 0).rows(codes)
    assert len(drawn) == 63
    assert (np.bincount(codes[drawn], minlength=21) % 3 == 0).all()


def test_more_fits_keep_those_that_are_there():
    few, many = (planned_resamples(3, n, n, [0.2, 0.5], n) for n in (2, 6))
    assert set(few) <= set(many)
    assert len({one.fit_seed for one in many}) == len(many)
    assert all(Resample.named(one.name) == one for one in many)
    assert Resample.named("half-1") is None
    assert sum(one.dropped == 0.5 for one in planned_resamples(0, 5, 8, [0.5], 0)) == 10


# -- bounds -----------------------------------------------------------------------------------


def test_bounds_are_ordered_and_fall_with_the_frequency():
    table = np.array(
        [[expected_false(500, 30, 50, tau, kind) for kind in ASSUMPTIONS] for tau in (0.6, 0.75, 0.9, 1.0)]
    )
    assert (np.diff(table, axis=1) < 0).all()
    assert (np.diff(table, axis=0) < 0).all()
    assert expected_false(500, 30, 50, 0.9, "none") == pytest.approx(30**2 / (0.8 * 500))
    assert expected_false(500, 30, 50, 0.5) == 500
    below, above = (expected_false(500, 30, 50, tau) for tau in (0.75, 0.75001))
    assert above == pytest.approx(below, rel=0.01)  # both branches of the theorem meet


@pytest.mark.parametrize("power", [2.0, 4.0])
def test_no_r_concave_distribution_has_a_larger_tail(power):
    """Whatever falls like (a + i)^(-s) with s >= power, cut off anywhere, is r-concave too."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        steps = int(rng.integers(10, 60))
        shape = (rng.exponential(3) + 0.01 + np.arange(steps + 1.0)) ** -(power + rng.exponential(1))
        shape[rng.integers(2, steps + 2) :] = 0
        shape /= shape.sum()
        mean = shape @ np.arange(steps + 1) / steps
        for first in rng.integers(1, steps + 1, 1):
            assert shape[first:].sum() <= _tail(mean, first / steps, steps, power) * 1.002 + 1e-12


# -- centralities -----------------------------------------------------------------------------


def test_centralities_are_those_of_networkx():
    rng = np.random.default_rng(0)
    sizes = np.triu(rng.uniform(0.1, 1, (9, 9)) * (rng.random((9, 9)) < 0.3), 1)
    sizes[:, 8] = 0  # a node alone
    sizes += sizes.T
    graph = nx.Graph([(j, k, {"length": 1 / sizes[j, k]}) for j, k in zip(*np.nonzero(sizes), strict=True)])
    graph.add_nodes_from(range(9))
    for ours, theirs in (
        (closeness, nx.closeness_centrality(graph, distance="length")),
        (path_betweenness, nx.betweenness_centrality(graph, weight="length")),
    ):
        assert np.allclose(ours(sizes), [theirs[j] for j in range(9)])


# -- what is found ----------------------------------------------------------------------------


def test_edges_that_are_there_are_selected_and_the_hub_is_central(found):
    edges = found.edges(1.0)
    assert {("n0", "n1"), ("n0", "n2"), ("n0", "n3")} <= set(zip(edges.source, edges.target, strict=True))
    assert found.centrality("strength").node[0] == "n0"
    assert found.cs_coefficient("strength") == 0.5  # the most that was dropped
    line = found.centrality("strength").iloc[0]
    assert line.low <= line.estimate * 1.2
    assert line.low < line.high
    assert found.expected_false(1.0) <= found.expected_false(0.75)
    lowest = found.frequency_for(found.expected_false(2 / 3) + 1e-9)
    assert lowest <= 2 / 3


def test_words_say_what_was_found(found):
    text = repr(found)
    assert "RegGMM on 300 rows" in text
    assert "strength .50 or more" in text
    assert "in the average graph" in text
    assert "hides edges that are there at some z only" in text
    there = found.at({"age": 50.0})
    assert "at age=50.0" in there.summary()
    assert "hides edges" not in there.summary()
    assert len(there.table) == 21
    with pytest.raises(gf.ParameterError, match=r"No graph was asked for at \{'age': 51\}"):
        found.at({"age": 51})


def test_noise_is_not_stable():
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(120, 8)), rng.normal(size=(120, 1))
    found = gf.stability(gf.RegGMM(), X, Z, threshold=0.05, **{**FEW, "n_bootstraps": 0, "n_drops": 0})
    assert found.cs_coefficient("strength") < 0.5
    with pytest.raises(gf.ParameterError, match="n_bootstraps was 0"):
        found.centrality()


def test_a_graph_without_edges_has_no_central_nodes():
    X, Z, _ = hub_data(80)
    found = gf.stability(gf.RegGMM(), X, Z, threshold=0.99, **FEW)
    assert all(np.isnan(found.cs_coefficient(name)) for name in CENTRALITIES)
    assert "all nodes are equal" in found.summary()
    assert found.expected_false(0.9) == 0


def test_groups_are_named_and_kept_together():
    X, Z, groups = hub_data(120)
    found = gf.stability(gf.RegGMM(), X, Z, groups=groups, **{**FEW, "n_pairs": 2})
    assert "120 rows of 60 groups" in repr(found)


# -- going on, merging ------------------------------------------------------------------------


def test_a_run_that_was_killed_goes_on(tmp_path, monkeypatch):
    X, Z, _ = hub_data(100)
    whole = gf.stability(gf.RegGMM(), X, Z, **FEW)
    folder, fit, n_fits = tmp_path / "run", gf.RegGMM.fit, 0

    def fit_some(self, *args, **keys):
        nonlocal n_fits
        n_fits += 1
        if n_fits == 6:
            raise KeyboardInterrupt
        return fit(self, *args, **keys)

    monkeypatch.setattr(gf.RegGMM, "fit", fit_some)
    with pytest.raises(KeyboardInterrupt):
        gf.stability(gf.RegGMM(), X, Z, folder=folder, **FEW)
    assert len(gf.Stability.read(folder).graphs) == 5
    resumed = gf.stability(gf.RegGMM(), X, Z, folder=folder, **FEW)
    assert n_fits == 6 + len(whole.graphs) - 5
    pd.testing.assert_frame_equal(resumed.table, whole.table)
    assert resumed.summary() == whole.summary() == gf.Stability.read(folder).summary()
    with pytest.raises(gf.OutputError, match="other rows, or of another estimator"):
        gf.stability(gf.RegGMM(), X + 1, Z, folder=folder, **FEW)


@pytest.mark.slow
def test_results_of_one_table_merge(tmp_path):
    X, Z, _ = hub_data(100)
    first, second = (gf.stability(gf.RegGMM(), X, Z, **{**FEW, "random_state": seed}) for seed in (0, 1))
    both = first.merge(second, first)
    assert both.n_pairs == first.n_pairs + second.n_pairs
    frequency = (first.table.frequency + second.table.frequency) / 2
    assert np.allclose(both.table.frequency, frequency)
    assert both.summary() == gf.Stability.read(both.save(tmp_path / "both")).summary()
    other = gf.stability(gf.RegGMM(), X.iloc[:90], Z.iloc[:90], **{**FEW, "n_pairs": 1})
    with pytest.raises(gf.DataError, match="100 rows and RegGMM on 90 rows"):
        first.merge(other)
    with pytest.raises(gf.ParameterError, match="takes results of stability, got None"):
        first.merge(None)


def test_a_damaged_or_foreign_folder_is_refused(tmp_path):
    X, Z, _ = hub_data(60)
    with pytest.raises(gf.ModelFileError, match="holds no resamples"):
        gf.Stability.read(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(gf.OutputError, match="holds other files"):
        gf.stability(gf.RegGMM(), X, Z, folder=tmp_path, **FEW)
    folder = gf.stability(gf.RegGMM(), X, Z, **{**FEW, "n_pairs": 1}).save(tmp_path / "run")
    (folder / "half-0-0-1.safetensors").write_bytes(b"short")
    with pytest.raises(gf.ModelFileError, match="half-0-0-1"):
        gf.Stability.read(folder)


# -- other estimators, bad input --------------------------------------------------------------


def test_neural_fits_train_together(monkeypatch):
    from graphfield.estimators import together

    sizes, fit_together = [], together.fit_together
    monkeypatch.setattr(
        together,
        "fit_together",
        lambda models, *args, **keys: sizes.append(len(models)) or fit_together(models, *args, **keys),
    )
    X, Z, _ = hub_data(60)
    keys = {**FEW, "n_pairs": 1, "n_drops": 2, "n_bootstraps": 0}
    found = gf.stability(gf.DNNCGM(**{**SMALL, "rank": None}), X.iloc[:, :4], Z, **keys)
    assert sizes == [2, 2]  # halves, and without a fifth
    assert found.n_pairs == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphfield.DataWarning")
@pytest.mark.filterwarnings("ignore::graphfield.TrainingWarning")
def test_every_estimator_can_be_asked(estimator, data):
    keys = {"n_pairs": 1, "n_drops": 1, "shares": [0.2], "n_bootstraps": 1, "random_state": 0}
    found = gf.stability(estimator(), *data, threshold=0.05, **keys)
    assert found.n_pairs == 1, found.failures
    assert not found.failures
    assert len(found.graphs) == 5


@pytest.mark.slow
def test_other_processes_find_the_same(monkeypatch):
    from graphfield import cores

    X, Z, _ = hub_data(100)
    here = gf.stability(gf.RegGMM(), X, Z, **FEW)
    monkeypatch.setattr(cores, "_WORTH", 0.0)
    monkeypatch.setattr(cores, "core_count", lambda: 2)
    there = gf.stability(gf.RegGMM(), X, Z, **FEW)
    pd.testing.assert_frame_equal(here.table, there.table, rtol=1e-4)


def test_fits_that_break_down_are_counted_and_named(monkeypatch):
    X, Z, _ = hub_data(60)
    fit, n_fits = gf.RegGMM.fit, 0

    def fit_most(self, *args, **keys):
        nonlocal n_fits
        n_fits += 1
        if n_fits in (3, 8):  # a half, and one without a fifth
            raise gf.DataError("Node 'n1' has one value.")
        return fit(self, *args, **keys)

    monkeypatch.setattr(gf.RegGMM, "fit", fit_most)
    found = gf.stability(gf.RegGMM(), X, Z, **FEW)
    assert found.n_pairs == 2
    assert "2 fits broke down, the first of them: Node 'n1' has one value." in found.summary()
    assert found.cs_coefficient("strength") == 0  # one of two at the smallest share

    def fit_none(self, *args, **keys):
        if len(args[0]) < 60:
            raise gf.DataError("No.")
        return fit(self, *args, **keys)

    monkeypatch.setattr(gf.RegGMM, "fit", fit_none)
    with pytest.raises(gf.DataError, match="No fit to a part of the rows succeeded"):
        gf.stability(gf.RegGMM(), X, Z, **{**FEW, "n_bootstraps": 0})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_pairs": -1}, "n_pairs must be"),
        ({"n_drops": 2.5}, "n_drops must be"),
        ({"shares": [1.2]}, "shares must be"),
        ({"shares": 0.3}, "list of shares"),
        ({"at": {"age": 50, "sex": "F"}}, "unknown 'sex'"),
        ({"at": {"age": np.nan}}, "age"),
        ({"model": gf.RegGMM}, "estimator of graphfield"),
        ({"groups": np.repeat(np.arange(6), 10)}, "At least 20 groups"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_input(change, message):
    X, Z, _ = hub_data(60)
    keys = {"model": gf.RegGMM(), **FEW, **change}
    with pytest.raises(gf.GraphfieldError, match=message):
        gf.stability(keys.pop("model"), X, Z, **keys)


def test_a_level_that_no_row_has():
    X, Z, _ = hub_data(60)
    Z = Z.assign(site=np.resize(["a", "b"], 60))
    with pytest.raises(gf.DataError, match="'c'"):
        gf.stability(gf.RegGMM(), X, Z, at={"age": 50, "site": "c"}, **FEW)
