"""Questions asked of a fitted model, against direct computation and against a model that is known."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import ESTIMATORS, small_data
from graphfield import analysis as an
from graphfield.analysis.rows import median_row, typical_row
from graphfield.fields.linear import LinearField
from graphfield.graphs import connectivity as cn

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")
NAMES = ["a", "b", "c", "d"]
# One of each way to give coefficients: networks, archetypes with scales that move, parts, averages, none.
KINDS = ("archetype", "by-cluster", "dnncgm", "ensemble", "graphical-lasso", "reggmm", "tree")


class KnownField(LinearField):
    """Edges that are known functions of independent covariates: age, bmi, noise and site."""

    def weights_at(self, rows):
        encoded = rows.encoded
        age, bmi = encoded.numeric[:, 0], encoded.numeric[:, 1]
        weights = np.zeros((len(rows), 4, 4), dtype=np.float32)
        for j, k, value in (
            (0, 1, 0.2 * np.tanh(age)),
            (0, 2, 0.05 * age + 0.1 * bmi),
            (1, 2, 0.05 * age * bmi),
            (0, 3, 0.2 * (encoded.codes[:, 0] == 1)),
        ):
            weights[:, j, k] = weights[:, k, j] = value
        return weights

    def scales_at(self, rows):
        return np.ones((len(rows), 4))


class Known(gf.RegGMM):
    kind = KnownField

    def _fit(self, data):
        fitted = super()._fit(data)
        return self.kind(fitted.common, fitted.interactions, fitted.mean)


@pytest.fixture(scope="module")
def Z() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 1500
    columns = {"age": rng.normal(50, 10, n), "bmi": rng.normal(25, 3, n), "noise": rng.normal(size=n)}
    return pd.DataFrame({**columns, "site": rng.choice(["north", "south"], n)})


@pytest.fixture(scope="module")
def model(Z) -> Known:
    X = np.random.default_rng(1).normal(size=(len(Z), 4))
    return Known().fit(pd.DataFrame(X, columns=NAMES), Z)


@pytest.fixture(scope="module", params=KINDS)
def any_model(request):
    X, Z = small_data(n=150, p=6)
    if request.param == "by-cluster":
        Z = Z[["site"]]
    return ESTIMATORS[request.param]().fit(X, Z), Z.iloc[::3]


@pytest.mark.filterwarnings("ignore::graphfield.TrainingWarning", "ignore::graphfield.DataWarning")
def test_every_estimator_can_be_asked_and_agrees_with_its_own_methods(any_model):
    model, Z = any_model
    partial, graph = model.partial_correlations(Z), model.predict_graph(Z, threshold=0.1)
    at = an.graph_at(model, dict(Z.iloc[3]), threshold=None)
    np.testing.assert_allclose(at, partial[3], atol=1e-6)
    assert list(at.index) == list(at.columns) == model.node_names_
    thresholded = an.graph_at(model, dict(Z.iloc[3]), threshold=0.1)
    np.testing.assert_allclose(thresholded, partial[3] * graph[3], atol=1e-6)
    assert not np.signbit(thresholded.to_numpy()[~graph[3]]).any()  # no edge prints as 0, not as -0

    compared = an.compare(model, dict(Z.iloc[3]), dict(Z.iloc[8]))
    wide = pd.DataFrame(partial[8] - partial[3], index=model.node_names_, columns=model.node_names_)
    expected = [wide.loc[a, b] for a, b in zip(compared["source"], compared["target"], strict=True)]
    np.testing.assert_allclose(compared["difference"], expected, atol=1e-6)
    assert compared["difference"].abs().is_monotonic_decreasing

    table = an.varying_edges(model, Z, threshold=0.1)
    assert len(table) == 15
    j, k = (table[side].map(model.node_names_.index).to_numpy() for side in ("source", "target"))
    pairs = partial[:, j, k].astype(np.float64)
    np.testing.assert_allclose(table["mean"], pairs.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(table["standard_deviation"], pairs.std(axis=0), atol=1e-5)
    np.testing.assert_allclose(table["low"], np.quantile(pairs, 0.05, axis=0), atol=1e-5)
    np.testing.assert_allclose(table["presence"], graph[:, j, k].mean(axis=0), atol=1e-9)

    found = an.connectivity(model, Z, ["density", "mean_strength"], threshold=0.1)
    assert found.index.equals(Z.index)
    np.testing.assert_allclose(found["density"], cn.density(graph))
    np.testing.assert_allclose(found["mean_strength"], (np.abs(partial) * graph).sum(-1).mean(-1), atol=1e-6)
    degree = an.node_connectivity(model, Z, "degree", threshold=0.1)
    np.testing.assert_array_equal(degree, graph.sum(axis=-1))

    banded = an.bands(model, Z, "site", threshold=0.1)
    for label, matrix, presence in zip(banded.labels, banded.matrices, banded.presence, strict=True):
        own = (Z["site"] == label).to_numpy()
        np.testing.assert_allclose(matrix, partial[own].mean(axis=0), atol=1e-6)
        np.testing.assert_allclose(presence, graph[own].mean(axis=0), atol=1e-6)
    drivers = an.edge_drivers(model, Z, [("n0", "n1")])
    assert drivers["covariate"].tolist() == model.covariate_names_
    assert np.isfinite(drivers[["effect", "standard_deviation", "relative_deviation"]]).all(axis=None)
    deviation = partial[:, *np.triu_indices(6, 1)].astype(np.float64).std(axis=0)
    varies = deviation[0] > 0.05 * deviation.max() > 1e-7
    assert (drivers[["alone", "total"]].notna() == varies).all(axis=None)


def test_curves_are_partial_dependence(model, Z):
    edges = [("c", "a"), ("a", "d")]
    curves = an.edge_curves(model, "age", Z, edges, n_points=7, n_rows=None)
    values = np.linspace(*np.quantile(Z["age"], [0.01, 0.99]), 7)
    for (source, target), part in curves.groupby(["source", "target"], sort=False):
        np.testing.assert_allclose(part["value"], values)
        for value, mean, low in zip(values, part["partial_correlation"], part["low"], strict=True):
            j, k = NAMES.index(source), NAMES.index(target)
            direct = model.partial_correlations(Z.assign(age=value))[:, j, k]
            assert mean == pytest.approx(direct.mean(), abs=1e-6)
            assert low == pytest.approx(np.quantile(direct, 0.1), abs=1e-6)


def test_curves_with_the_others_fixed(model, Z):
    edge = [("a", "c")]
    fixed = {"bmi": 30.0, "noise": 0.0, "site": "south"}
    found = an.edge_curves(model, "age", Z, edge, n_points=5, others=fixed)
    at = pd.DataFrame({"age": found["value"], **fixed})
    np.testing.assert_allclose(
        found["partial_correlation"], model.partial_correlations(at)[:, 0, 2], atol=1e-6
    )
    np.testing.assert_allclose(found["low"], found["high"])
    typical = an.edge_curves(model, "age", Z, edge, n_points=5, others="typical")
    most = Z["site"].mode()[0]
    by_hand = {"bmi": Z["bmi"].median(), "noise": Z["noise"].median(), "site": most}
    expected = an.edge_curves(model, "age", Z, edge, n_points=5, others=by_hand)
    pd.testing.assert_frame_equal(typical, expected)
    # What the mapping does not name is averaged over.
    some = an.edge_curves(model, "age", Z, edge, n_points=5, others={"noise": 0.0})
    assert (some["high"] > some["low"] + 0.05).all()


def test_curves_over_levels_and_over_few_numbers():
    X, Z = small_data()
    Z["visit"] = np.arange(len(Z)) % 3
    model = gf.RegGMM().fit(X, Z)
    assert an.edge_curves(model, "site", Z, most=1)["value"].tolist() == ["A", "B", "C"]
    assert an.edge_curves(model, "visit", Z, most=1)["value"].tolist() == [0, 1, 2]
    only = Z[Z["site"] != "B"]
    assert an.edge_curves(model, "site", only, most=1)["value"].tolist() == ["A", "C"]


def test_the_edges_that_move_most_along_a_covariate_are_chosen(model, Z):
    first = an.edge_curves(model, "age", Z, most=1)[["source", "target"]].iloc[0]
    assert tuple(first) == ("a", "b")
    assert tuple(an.edge_curves(model, "bmi", Z, most=1)[["source", "target"]].iloc[0]) == ("a", "c")
    assert tuple(an.edge_curves(model, "site", Z, most=1)[["source", "target"]].iloc[0]) == ("a", "d")


def test_connectivity_curves_average_the_measure_over_rows(model, Z):
    found = an.connectivity_curves(
        model, "age", Z, ["density", "mean_strength"], n_points=4, n_rows=None, threshold=0.1
    )
    for value, part in found.groupby("value"):
        direct = an.connectivity(model, Z.assign(age=value), ["density", "mean_strength"], threshold=0.1)
        np.testing.assert_allclose(part["mean"], direct.mean(), atol=1e-9)
        np.testing.assert_allclose(part["high"], direct.quantile(0.9), atol=1e-9)


def test_no_question_goes_beyond_the_training_range(model, Z):
    wide = Z.assign(age=np.linspace(-500, 500, len(Z)))  # no ExtrapolationWarning, which would be an error
    values = an.edge_curves(model, "age", wide.iloc[[0, -1]].assign(bmi=25.0), [("a", "b")])["value"]
    assert values.min() >= Z["age"].min()
    assert values.max() <= Z["age"].max()


def test_drivers_are_the_covariates_that_an_edge_depends_on(model, Z):
    drivers = an.edge_drivers(model, Z, "all", n_rows=1500, n_repeats=8, most=2)  # most is for None
    shares = drivers.set_index(["source", "target", "covariate"])
    only_age = shares.loc[("a", "b")]
    np.testing.assert_allclose(only_age["total"], [1, 0, 0, 0], atol=0.03)
    np.testing.assert_allclose(only_age["alone"], [1, 0, 0, 0], atol=0.03)
    only_site = shares.loc[("a", "d")]
    np.testing.assert_allclose(only_site["total"], [0, 0, 0, 1], atol=0.03)
    both = shares.loc[("a", "c")]  # additive, bmi twice as strong: a fifth and four fifths
    np.testing.assert_allclose(both["total"], [0.2, 0.8, 0, 0], atol=0.06)
    np.testing.assert_allclose(both["alone"], [0.2, 0.8, 0, 0], atol=0.06)
    together = shares.loc[("b", "c")]  # a pure interaction
    np.testing.assert_allclose(together["total"], [1, 1, 0, 0], atol=0.25)
    np.testing.assert_allclose(together["alone"], [0, 0, 0, 0], atol=0.12)
    constant = shares.loc[("c", "d")]
    assert (constant[["effect", "standard_deviation", "relative_deviation"]] == 0).all(axis=None)
    assert constant[["alone", "total"]].isna().all(axis=None)
    assert drivers["standard_deviation"].is_monotonic_decreasing
    spread = model.partial_correlations(Z)[:, 0, 1].std()
    assert only_age.loc["age", "effect"] == pytest.approx(spread, rel=0.03)


def test_a_covariate_that_goes_along_with_the_driver_gets_nothing(model, Z):
    copied = Z.assign(noise=(Z["age"] - 50) / 20)
    drivers = an.edge_drivers(model, copied, [("a", "b")], n_rows=1500, n_repeats=8).set_index("covariate")
    np.testing.assert_allclose(drivers["total"], [1, 0, 0, 0], atol=0.03)


def test_the_summary_weighs_edges_by_their_variance(model, Z):
    drivers = an.edge_drivers(model, Z, [("a", "b"), ("a", "d"), ("c", "d")])
    summary = an.driver_summary(drivers).set_index("covariate")
    variance = model.partial_correlations(Z)[:, [0, 0], [1, 3]].var(axis=0)
    assert summary.loc["age", "total"] == pytest.approx(variance[0] / variance.sum(), abs=0.06)
    assert summary.loc["site", "total"] == pytest.approx(variance[1] / variance.sum(), abs=0.06)
    assert summary["edges_led"].to_dict() == {"age": 1, "site": 1, "bmi": 0, "noise": 0}
    assert summary["total"].is_monotonic_decreasing


class FaintField(KnownField):
    """One more edge, that hardly varies, with bmi: as large as ``size`` of a - b, which varies most."""

    size = 0.0

    def weights_at(self, rows):
        weights = super().weights_at(rows)
        values = 0.2 * np.tanh(rows.encoded.numeric[:, 1])
        weights[:, 2, 3] = weights[:, 3, 2] = 0.3 + self.size * values
        return weights


class Faint(Known):
    kind = FaintField


def test_an_edge_that_hardly_varies_has_no_shares_but_a_size(model, Z, monkeypatch):
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(len(Z), 4)), columns=NAMES)
    faint = Faint().fit(X, Z)
    largest = model.partial_correlations(Z)[:, 0, 1].std()
    for size, has_shares in ((0.04, False), (0.06, True)):
        monkeypatch.setattr(FaintField, "size", size)
        for edges in ([("c", "d")], [("c", "d"), ("a", "b")], "all"):
            drivers = an.edge_drivers(faint, Z, edges, n_rows=None)
            edge = drivers[drivers["source"].eq("c") & drivers["target"].eq("d")].set_index("covariate")
            assert (edge[["alone", "total"]].notna() == has_shares).all(axis=None)
            np.testing.assert_allclose(edge["relative_deviation"], size, rtol=0.05)
            assert edge.loc["bmi", "effect"] == pytest.approx(size * largest, rel=0.1)
            assert edge.drop("bmi")["effect"].max() < 1e-3 * largest


def test_the_summary_leaves_out_edges_without_shares(model, Z):
    drivers = an.edge_drivers(model, Z, [("a", "b"), ("a", "d")])
    empty = drivers.assign(source="b", target="d", alone=np.nan, total=np.nan)  # as large as the others
    expected, found = an.driver_summary(drivers), an.driver_summary(pd.concat([drivers, empty]))
    columns = ["covariate", "alone", "total", "edges_led"]
    pd.testing.assert_frame_equal(found[columns], expected[columns])
    nothing = an.driver_summary(empty)
    assert (nothing[["alone", "total", "edges_led"]] == 0).all(axis=None)


def test_answers_do_not_depend_on_the_order_of_rows_or_columns(model, Z):
    moved = Z.sample(frac=1, random_state=3)[["site", "noise", "bmi", "age"]]
    questions = (
        lambda table: an.edge_curves(model, "age", table, n_points=5, n_rows=50, most=3),
        lambda table: an.varying_edges(model, table, n_rows=60),
        lambda table: an.edge_drivers(model, table, n_rows=60),
        lambda table: an.bands(model, table, "age").table,
    )
    for question in questions:
        pd.testing.assert_frame_equal(question(Z), question(moved))


def test_equal_rows_are_sampled_as_often_as_they_are_there(model, Z):
    few = pd.concat([Z.iloc[[0]]] * 900 + [Z.iloc[[1]]] * 100, ignore_index=True)
    table = an.varying_edges(model, few, n_rows=200).set_index(["source", "target"])
    edge = model.partial_correlations(Z.iloc[:2])[:, 0, 1]
    share = (table.loc[("a", "b"), "mean"] - edge[1]) / (edge[0] - edge[1])
    assert share == pytest.approx(0.9, abs=0.07)


def test_distinct_covariates_are_evaluated_once(model, Z, monkeypatch):
    seen = []
    original = KnownField.weights_at

    def counted(self, rows):
        seen.append(len(rows))
        return original(self, rows)

    monkeypatch.setattr(KnownField, "weights_at", counted)
    repeated = pd.concat([Z.iloc[:5]] * 40, ignore_index=True)
    an.connectivity(model, repeated, ["density"])
    an.bands(model, repeated, "age")
    an.varying_edges(model, repeated, n_rows=None)
    assert seen == [5, 5, 5]


def test_quantiles_of_more_rows_than_fit_in_memory(model, Z, monkeypatch):
    whole = an.varying_edges(model, Z, n_rows=None)
    monkeypatch.setattr("graphfield.analysis.drivers._HELD_ENTRIES", 6 * 400)
    some = an.varying_edges(model, Z, n_rows=None)
    columns = ["source", "target", "mean", "standard_deviation", "presence"]
    pd.testing.assert_frame_equal(some[columns], whole[columns])
    assert not np.allclose(some["low"], whole["low"])
    np.testing.assert_allclose(some["low"], whole["low"], atol=0.05)


def test_printed_bands_are_short_and_presence_is_a_share(model, Z):
    many = pd.concat([Z] * 7, ignore_index=True)
    found = an.bands(model, many, "age", threshold=0.0)
    assert found.presence.max() == 1.0  # not a rounding error more
    assert found.threshold == 0.0
    lines = repr(found).splitlines()
    assert lines[0].startswith(f"Average graphs of {len(found.node_names)} nodes in 4 bands of age")
    assert lines[0].endswith("(edges: |partial correlation| > 0)")
    assert lines[1].startswith(f"  {found.labels[0]}: {found.n_rows[0]:,} rows, density ")
    assert len(lines) == 5


def test_bands_of_a_number(model, Z):
    found = an.bands(model, Z, "age", quantiles=4)
    assert found.n_rows == [375] * 4
    assert found.labels[0].startswith(f"{Z['age'].min():.4g} to ")
    assert found.table["density"].between(0, 1).all()
    edges = [frame.loc["a", "b"] for frame in (found.frame(label) for label in found.labels)]
    assert edges == sorted(edges)
    assert an.bands(model, Z, "age", quantiles=(0.5, 0.9)).n_rows == [750, 600, 150]
    rounded = an.bands(model, Z.assign(age=np.where(Z["age"] > 50, 60.0, 40.0)), "age")
    assert rounded.labels == ["40", "60"]
    high = np.where(Z["age"] > 60, "high", np.where(Z["age"] < 50, "low", None))
    chosen = an.average_graphs(model, Z, high)
    assert sorted(chosen.labels) == ["high", "low"]
    expected = model.partial_correlations(Z[Z["age"] > 60]).mean(axis=0)
    np.testing.assert_allclose(chosen.frame("high"), expected, atol=1e-6)


def test_parts_of_a_network(model, Z):
    graph = an.graph_at(model, dict(Z.iloc[0]), threshold=None)
    groups = {"a": "one", "c": "one", "b": "two", "d": "two"}
    part = an.subnetwork(graph, "one", groups=groups)
    assert list(part.columns) == ["a", "c"]
    assert part.loc["a", "c"] == graph.loc["a", "c"]
    assert list(an.subnetwork(graph, ["d", "a"]).columns) == ["d", "a"]
    banded = an.bands(model, Z, "age")
    inner = an.subnetwork(banded, ["two", "one"], groups=groups)
    assert inner.node_names == ["b", "d", "a", "c"]
    np.testing.assert_array_equal(inner.matrices[:, 0, 2], banded.matrices[:, 1, 0])
    np.testing.assert_allclose(inner.density, banded.density)
    means = an.block_means(graph, groups)
    assert means.loc["one", "one"] == pytest.approx(abs(graph.loc["a", "c"]))
    between = graph.loc[["a", "c"], ["b", "d"]]
    assert means.loc["two", "one"] == pytest.approx(between.abs().to_numpy().mean())
    assert an.block_means(graph, groups, absolute=False).loc["one", "two"] == pytest.approx(
        between.to_numpy().mean()
    )


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda m, Z: an.edge_curves(m, "agee", Z), gf.DataError, "'agee'.*Did you mean 'age'"),
        (lambda m, Z: an.edge_curves(m, "age", Z, [("a", "bb")]), gf.DataError, "no node called 'bb'"),
        (lambda m, Z: an.edge_curves(m, "age", Z, [("a", "a")]), gf.ParameterError, "no edge to itself"),
        (lambda m, Z: an.edge_curves(m, "age", Z, ("a", "b")), gf.ParameterError, "list of pairs"),
        (lambda m, Z: an.edge_curves(m, "age", Z, others="mean"), gf.ParameterError, "others"),
        (lambda m, Z: an.edge_curves(m, "age", Z, others={"age": 3}), gf.ParameterError, "cannot be fixed"),
        (lambda m, Z: an.edge_curves(m, "age", Z, others={"sight": 3}), gf.DataError, "'sight'"),
        (lambda m, Z: an.edge_curves(m, "age", Z, n_points=1), gf.ParameterError, "n_points"),
        (lambda m, Z: an.edge_curves(m, "age", Z.drop(columns="bmi")), gf.DataError, "lacks 'bmi'"),
        (lambda m, Z: an.edge_curves(m, "age", Z.iloc[:0]), gf.DataError, "no rows"),
        (lambda m, Z: an.varying_edges(m, Z.assign(age=np.nan)), gf.DataError, "age"),
        (lambda m, Z: an.varying_edges(m, Z, n_rows=0), gf.ParameterError, "n_rows"),
        (lambda m, Z: an.edge_drivers(m, Z.iloc[:2]), gf.DataError, "at least 3 rows"),
        (lambda m, Z: an.edge_drivers(m, Z, "most"), gf.ParameterError, "'all' or None"),
        (lambda m, Z: an.connectivity(m, Z, ["within"]), gf.ParameterError, "Pass groups"),
        (lambda m, Z: an.connectivity(m, Z, ["degree"]), gf.ParameterError, "mean_degree"),
        (lambda m, Z: an.connectivity(m, Z, groups={"a": 1}), gf.DataError, "lacks 'b'"),
        (lambda m, Z: an.node_connectivity(m, Z, "density"), gf.ParameterError, "measure"),
        (lambda m, Z: an.bands(m, Z, "vix"), gf.DataError, "The covariates are 'age'"),
        (lambda m, Z: an.bands(m, Z, "age", quantiles=(0.9, 0.5)), gf.ParameterError, "increasing"),
        (lambda m, Z: an.bands(m, Z, "age").frame("old"), gf.ParameterError, "no band 'old'"),
        (lambda m, Z: an.average_graphs(m, Z, ["x"]), gf.DataError, "one entry per row"),
        (lambda m, _: an.graph_at(m, {"age": 50}), gf.DataError, "lacks 'bmi'"),
        (
            lambda m, Z: an.subnetwork(
                an.graph_at(m, dict(Z.iloc[0])), "norht", groups=["north", "x", "x", "x"]
            ),
            gf.DataError,
            "Did you mean 'north'",
        ),
        (lambda *_: an.subnetwork(np.eye(3), ["a"]), gf.DataError, "as graph_at gives it"),
    ],
)
def test_bad_questions_are_told_what_to_do(model, Z, ask, error, message):
    with pytest.raises(error, match=message):
        ask(model, Z)


def test_a_constant_covariate_is_named():
    X, Z = small_data()
    with pytest.warns(gf.DataWarning, match="constant"):
        model = gf.RegGMM().fit(X, Z.assign(year=2001))
    with pytest.raises(gf.DataError, match="same value in every training row"):
        an.edge_curves(model, "year", Z.assign(year=2001))
    assert "year" not in set(an.edge_drivers(model, Z.assign(year=2001))["covariate"])


@pytest.mark.slow
def test_questions_need_neither_torch_nor_matplotlib():
    code = (
        "import graphfield as gf, numpy as np, sys\n"
        "X = np.random.default_rng(0).normal(size=(60, 5)); m = gf.RegGMM().fit(X[:, :3], X[:, 3:])\n"
        "gf.analysis.edge_curves(m, 'z1', X[:, 3:]); gf.analysis.connectivity(m, X[:, 3:], threshold=.1)\n"
        "bad = {'torch', 'matplotlib', 'polars'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_average_of_one_graph_is_that_graph():
    X, Z = small_data(150)
    model = gf.NodewiseLasso(penalty=0.05).fit(X, Z)
    for threshold in ("auto", 0.05, 0.2):
        graph = model.predict_graph(Z[:1], threshold=threshold)[0]
        np.testing.assert_array_equal(an.average_graph(model, Z, threshold=threshold) != 0, graph)


def test_the_typical_place_has_rows_near_it():
    """Of days on a circle it is a day, not the middle; where rows are in the middle it is that."""
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    circle = pd.DataFrame({"sine": np.sin(angle), "cosine": np.cos(angle)})
    X = np.random.default_rng(0).normal(size=(200, 3))
    field = gf.RegGMM().fit(X, circle).field_
    row = typical_row(field, circle)
    assert list(row.values()) in circle.to_numpy().tolist()
    cloud = pd.DataFrame(np.random.default_rng(1).normal(size=(200, 2)), columns=["sine", "cosine"])
    assert typical_row(field, cloud) == median_row(field, cloud) == cloud.median().to_dict()
    days = circle.assign(sine=pd.Timestamp("2020-01-01") + pd.to_timedelta(100 * circle.sine + 100, unit="D"))
    dated = gf.RegGMM().fit(X, days)
    found = typical_row(dated.field_, days)
    dated.predict_graph(pd.DataFrame([found]))
    assert isinstance(found["sine"], str)
