"""Which edges are there and which of them move: p-values, graphs and bands that may be believed."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, false_discovery_control, norm
from scipy.stats import t as student

import graphfield as gf
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.frames import as_frame
from graphfield.data.marginals import normal_scores
from graphfield.graphs.false_discoveries import combine_tests, q_values
from graphfield.inference.cleaned_nodes import cleaned_nodes
from graphfield.inference.compare_words import Estimates, beside_all, summary
from graphfield.inference.curve import Curve
from graphfield.inference.design import Design
from graphfield.inference.directions import Directions
from graphfield.inference.edge_basis import learn_basis
from graphfield.inference.edge_record import EdgeRecord
from graphfield.inference.edge_tests import EdgeTests, edge_table, edge_tests, presence_and_movement
from graphfield.inference.edges import read_question, scores_of
from graphfield.inference.movement_words import words_of_unclear
from graphfield.inference.overlap import common_rows
from graphfield.inference.pair_scores import PairScores
from graphfield.inference.sparse_differences import q_values_of_differences
from graphfield.numbers import p_text
from graphfield.plots import plot_edge_curves
from graphfield.report import write_report


def moving_chain(seed: int, n: int, p: int = 5, moves: float = 1.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A chain whose first edge is linear in ``age``; all others are constant, and ``site`` does nothing."""
    rng = np.random.default_rng(seed)
    age, site = rng.uniform(20, 80, n), np.array(["a", "b"])[rng.integers(0, 2, n)]
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] += (moves * (age - 50) / 30 if j == 1 else 0.5) * X[:, j - 1]
    return pd.DataFrame(X).add_prefix("n"), pd.DataFrame({"age": age, "site": site})


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, pd.DataFrame]:
    return moving_chain(0, 500)


@pytest.fixture(scope="module")
def found(data: tuple[pd.DataFrame, pd.DataFrame]) -> gf.EdgeInference:
    return gf.infer_edges(*data, random_state=0)


def line(found: gf.EdgeInference, source: str, target: str) -> pd.Series:
    table = found.table
    return table[(table.source == source) & (table.target == target)].iloc[0]


def test_table_has_one_line_per_pair(found: gf.EdgeInference) -> None:
    assert list(found.table.columns) == [
        *("source", "target", "estimate", "p_value", "q_value", "p_varies", "q_varies"),
        *("p_age", "q_age", "p_site", "q_site"),
    ]
    assert len(found.table) == 10
    p_values = found.table.filter(regex="^[pq]_")
    assert ((p_values >= 0) & (p_values <= 1)).all(axis=None)
    assert found.table.estimate.abs().max() <= 1


def test_finds_edges_and_what_moves_them(found: gf.EdgeInference) -> None:
    chain = {("n0", "n1"), ("n1", "n2"), ("n2", "n3"), ("n3", "n4")}
    edges = set(zip(found.edges(0.01).source, found.edges(0.01).target, strict=True))
    assert chain <= edges
    moving = found.varying(0.01)
    assert list(zip(moving.source, moving.target, strict=True)) == [("n0", "n1")]
    first = line(found, "n0", "n1")
    assert first.p_age < 1e-4 < first.p_site
    assert line(found, "n2", "n3").estimate == pytest.approx(0.5 / np.sqrt(1.25 * 1.25), abs=0.12)


def test_what_moves_is_an_edge() -> None:
    """An edge that changes its sign moves more clearly than it is there; it is in both lists or in none."""
    p_value, p_varies = np.array([0.2, 1e-6, 0.5]), np.array([1e-4, 0.6, 0.9])
    of_covariate = {"age": p_varies, "site": np.full(3, np.nan)}
    tests = EdgeTests(np.zeros(3), np.ones(3), p_value, (p_value,), p_varies, of_covariate)
    np.testing.assert_allclose(tests.p_value, p_value)
    table = edge_table(["a", "b", "c"], tests)
    assert (table[["q_varies", "q_age"]].ge(table.q_value, axis=0)).all(axis=None)
    assert table.q_varies[0] == table.q_value[0] > 0.1
    assert table.q_site.isna().all()


def test_an_edge_is_there_about_as_clearly_as_it_moves() -> None:
    """The same rows with another sign: on average there is no edge at all."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[:, 1] += 0.4 * X[:, 0]
    group = pd.DataFrame({"group": np.repeat(["a", "b"], 200)})
    first = gf.infer_edges(np.vstack([X, X * [1, -1, 1]]), group, covariates=[]).table.iloc[0]
    assert abs(first.estimate) < 0.01
    assert first.p_value < 3.5 * first.p_varies < 1e-4


def test_presence_keeps_its_level() -> None:
    """However many functions there are, with or without bends and products."""
    noise = np.square(np.random.default_rng(0).normal(size=(12, 40_000)))
    for ends in ((2, 2, 2), (2, 4, 4), (4, 9, 12)):
        average, together, varies = presence_and_movement(
            lambda which: chi2.sf(noise[which].sum(axis=0), len(noise[which])), ends
        )
        nothing = np.zeros(len(average))
        there = EdgeTests(nothing, nothing, average, (together, varies), varies, {}).p_value
        for level in (0.01, 0.05):
            assert 0.85 * level < (there <= level).mean() < 1.15 * level
        clear = varies < 1e-3
        assert (there[clear] < 3.3 * varies[clear]).all()


def test_lists_are_sorted_and_grow_with_the_rate(found: gf.EdgeInference) -> None:
    few, many = found.edges(0.001), found.edges(0.5)
    assert few.p_value.is_monotonic_increasing
    assert len(few) <= len(many)
    assert (many.q_value <= 0.5).all()


def test_graph_at_z_follows_the_edge(found: gf.EdgeInference) -> None:
    Z = pd.DataFrame({"site": ["a", "b", "a"], "age": [25.0, 50.0, 75.0]})
    graph = found.predict_graph(Z)
    assert graph.shape == (3, 5, 5)
    assert graph.dtype == bool
    assert (graph == graph.transpose(0, 2, 1)).all()
    assert not graph[:, range(5), range(5)].any()
    assert graph[[0, 2], 0, 1].all()
    assert graph[:, 2, 3].all()
    assert not graph[1, 0, 1]
    assert found.predict_graph(Z[:0]).shape == (0, 5, 5), "as that of a model"


def test_bands_follow_the_edge_and_are_wider_for_whole_curves(found: gf.EdgeInference) -> None:
    single = found.bands("n0", "n1", "age")
    whole = found.bands("n1", "n0", "age", simultaneous=True)
    assert list(single.columns) == ["value", "estimate", "low", "high"]
    assert (single.estimate == whole.estimate).all()
    assert ((whole.low <= single.low) & (single.low < single.high) & (single.high <= whole.high)).all()
    assert single.value.between(20, 80).all()
    slope = (single.value - 50) / 30
    truth = slope / np.sqrt((1 + slope**2) * 1.25)  # given n2, which follows n1
    assert np.corrcoef(truth, single.estimate)[0, 1] > 0.9
    assert ((whole.low <= truth) & (truth <= whole.high)).mean() > 0.9
    wider = found.bands("n0", "n1", "age", level=0.99)
    assert (wider.high - wider.low > single.high - single.low).all()


def test_bands_over_levels_and_at_values_of_others(found: gf.EdgeInference) -> None:
    young, old = (found.bands("n0", "n1", "site", others={"age": age}) for age in (25, 75))
    assert list(young.value) == ["a", "b"]
    assert (young.high < 0).all()
    assert (old.low > 0).all()


def test_says_what_it_is(found: gf.EdgeInference) -> None:
    assert "500 rows" in repr(found)
    assert "10 pairs" in found.summary()
    assert "false-discovery level of 0.10" in found.summary()
    first, low, last, high = re.fullmatch(
        r"n0 - n1 with age \((.*) at (.*), (.*) at (.*)\).*", found.movers()[0]
    ).groups()
    curve = found.bands("n0", "n1", "age", n_points=41, simultaneous=True)
    for estimate, at in ((first, low), (last, high)):
        ends = [np.interp(float(at), curve.value, curve[side]) for side in ("low", "high")]
        assert ends[0] < float(estimate) < ends[1]
    assert found.movers()[0] in found.summary()
    assert found.moved_by() == ["age"]


def test_pairs_that_move_with_one_covariate_are_not_denied(found: gf.EdgeInference) -> None:
    """The test of all covariates together may miss what that of one, given the others, finds."""
    unseen = replace(found, table=found.table.assign(q_varies=0.2))
    assert unseen.movers()[0] == found.movers()[0]
    assert "by the test of all covariates together; by that of one given the others" in unseen.summary()
    assert unseen.movers()[0] in unseen.summary()
    silent = replace(found, table=found.table.assign(q_varies=0.2, q_age=0.2, q_site=0.2))
    assert silent.movers() == []
    assert "None has one that moves with them." in silent.summary()
    rates = np.where(np.arange(len(found.table)) == 0, 0.01, 0.2)
    more = replace(found, table=found.table.assign(q_varies=rates, q_age=0.05)).summary()
    assert "1 has one that moves with them." in more
    assert "age 10, site 0. Tests of one covariate given the others also see movement: " in more
    assert "; and 6 more. Tests of all covariates together and of each" in more


def test_a_pair_that_moves_with_a_second_covariate_alone_is_named(found: gf.EdgeInference, tmp_path) -> None:
    """Though the test of all covariates together, which other pairs pass, does not see it."""
    table = found.table.assign(q_age=0.5, q_site=0.5, q_varies=0.5)
    table.loc[0, ["q_varies", "q_age"]] = 0.01
    table.loc[1, "q_site"] = 0.01
    two = replace(found, table=table)
    pair = f"{table.source[1]} - {table.target[1]}"
    seen = f"Tests of one covariate given the others also see movement: {pair} with site"
    assert f"age 1, site 1. {seen}" in two.summary()
    assert seen in EdgeRecord.of(two).notes[0]
    assert "Tests of one covariate" not in found.summary()


def test_how_both_tests_of_movement_may_differ_is_said_once(found: gf.EdgeInference) -> None:
    said = "Tests of all covariates together and of each given the others may find different pairs"
    assert found.summary().count(said) == 1
    assert sum(said in note for note in EdgeRecord.of(found).notes) == 1
    still = found.table.assign(q_varies=0.5, **{f"q_{name}": 0.5 for name in found.covariates})
    assert not any(said in note for note in EdgeRecord.of(replace(found, table=still)).notes)


def test_where_no_pair_moves_with_levels_another_question_is_named(found: gf.EdgeInference) -> None:
    """Whether two values differ; of numbers that have many there is no such question."""
    asks = "Whether values of site differ is a question of its own, which may see other pairs: "
    asks += "gf.compare_graphs(X, Z, {'site': 'a'}, {'site': 'b'})."
    assert found.summary().endswith(f" {asks}"), "no pair moves with site"
    assert EdgeRecord.of(found).notes[-1] == asks
    moving = replace(found, table=found.table.assign(q_site=0.01))
    assert "a question of its own" not in moving.summary()
    two = pd.DataFrame({"old": [0, 1] * 100, "age": np.arange(200.0)})
    X = np.random.default_rng(0).normal(size=(200, 4))
    silent = gf.infer_edges(X, two).summary()
    assert silent.endswith("pairs: gf.compare_graphs(X, Z, {'old': 0}, {'old': 1}).")
    assert silent.count("Whether values of old differ") == 1
    sites = pd.DataFrame({"site": np.array(list("abcd") * 50), "old": [0, 0, 1, 1] * 50})
    both = gf.infer_edges(X, sites).summary()
    assert "Whether values of site, old differ" in both
    assert "gf.compare_graphs(X, Z, {'old': 0}, {'old': 1})" in both, "two values are all that it has"


def test_that_no_covariate_is_told_is_said_in_words(found: gf.EdgeInference) -> None:
    """Pairs move, with 0, 0 and 0 of the covariates: which, cannot be told."""
    one = replace(found, table=found.table.assign(q_age=0.2, q_site=0.2))
    assert " With which covariate, given the others, cannot be told for it." in one.summary()
    all_pairs = replace(one, table=one.table.assign(q_varies=0.01))
    assert (
        "given the others, cannot be told for any of them. Tests of all covariates together"
        in all_pairs.summary()
    )
    assert "Edges that move with one covariate" not in all_pairs.summary()


def test_words_name_the_levels_that_differ_most_clearly() -> None:
    """A level of few rows may have the largest estimate by chance."""
    estimate, error = np.array([0.1, 0.12, 0.5, 0.9, 0.11]), np.array([0.03, 0.04, 0.03, 0.6, 0.05])
    assert Curve(list("abcde"), estimate, np.diag(error**2), 100.0).clearest_levels() == [0, 2]


def test_words_end_where_rows_do_and_name_the_bend() -> None:
    """Most rows are at the high end, and the curve turns there."""
    rng = np.random.default_rng(0)
    z = 100 - 100 * rng.beta(1, 3, 900)
    X = rng.normal(size=(900, 2))
    X[:, 1] += 1.5 * np.cos(2 * np.pi * (z - 40) / 60) * X[:, 0]  # high at 40 and 100, low at 70
    words = gf.infer_edges(X, pd.DataFrame({"z": z}), random_state=0).movers()[0]
    told = [(float(value), float(at)) for value, at in re.findall(r"([-+]\d\.\d\d) at (\d+)", words)]
    assert [value > 0 for value, _ in told] == [told[0][0] > 0, False, True]
    assert told[1][1] == pytest.approx(70, abs=10)
    assert told[2][1] > 94  # the 90th percentile of z is 97


def test_same_answer_for_any_container_and_seed() -> None:
    polars = pytest.importorskip("polars")
    X, Z = moving_chain(0, 150, p=3)
    first = gf.infer_edges(X, Z, covariates=["site"], random_state=0)
    other = gf.infer_edges(polars.from_pandas(X), polars.from_pandas(Z), covariates=["site"], random_state=7)
    pd.testing.assert_frame_equal(pd.DataFrame(first.table), pd.DataFrame(other.table))
    assert list(first.table.columns[7:]) == ["p_site", "q_site"]
    plain = gf.infer_edges(X.to_numpy(), Z, covariates=[])
    assert (plain.table.p_value.to_numpy() == first.table.p_value.to_numpy()).all()
    assert plain.table.source[0] == "x1"
    assert len(plain.table.columns) == 7


def test_does_not_depend_on_order_or_units(
    data: tuple[pd.DataFrame, pd.DataFrame], found: gf.EdgeInference
) -> None:
    """Nodes in another order and unit, a covariate in another unit, levels by other names."""
    X, Z = data
    changed = (X * [1, 10, 0.1, 3, 1000] + 7)[["n3", "n0", "n4", "n1", "n2"]]
    renamed = Z.assign(age=Z.age / 10, site=Z.site.map({"a": "z", "b": "y"}))
    other = gf.infer_edges(changed, renamed)
    for source, target in (("n0", "n1"), ("n0", "n2"), ("n0", "n3")):
        pair = (source, target) if (source, target) != ("n0", "n3") else ("n3", "n0")
        mine, theirs = line(found, source, target), line(other, *pair)
        numbers = ["estimate", "p_value", "p_varies", "p_age", "p_site"]
        np.testing.assert_allclose(
            mine[numbers].astype(float), theirs[numbers].astype(float), rtol=0.2, atol=0.02
        )


def test_increasing_functions_of_nodes_do_not_matter_much(
    data: tuple[pd.DataFrame, pd.DataFrame], found: gf.EdgeInference
) -> None:
    other = gf.infer_edges(np.exp(data[0] / 2), data[1], covariates=[])
    assert set(map(tuple, other.edges(0.01)[["source", "target"]].to_numpy())) >= {("n1", "n2"), ("n2", "n3")}
    assert np.abs(other.table.estimate - found.table.estimate).max() < 0.1


def test_means_and_scales_that_move_do_not_count() -> None:
    rng = np.random.default_rng(1)
    z = rng.uniform(-1, 1, 600)
    X = rng.normal(size=(600, 6)) * np.exp(0.8 * np.outer(z, [0, 1, -1, 1, 0, 1]))
    X += 4 * np.sin(3 * z)[:, None]
    found = gf.infer_edges(X, pd.DataFrame({"z": z}))
    assert len(found.edges(0.01)) == 0
    assert len(found.varying(0.01)) == 0


def test_groups_make_it_careful() -> None:
    """Subjects whose graphs differ by chance are no evidence that graphs follow their age."""
    rng = np.random.default_rng(1)
    label = np.repeat(np.arange(20), 40)
    own, age = 0.7 * rng.choice([-1, 1], 20), rng.normal(size=20)
    X = rng.normal(size=(800, 3))
    X[:, 1] += own[label] * X[:, 0]
    Z = pd.DataFrame({"age": age[label]})
    by_rows, by_groups = (gf.infer_edges(X, Z, groups=own, covariates=[]) for own in (None, label))
    assert by_rows.table.p_varies[0] < 1e-3
    assert by_groups.table.p_varies[0] > 0.01
    assert "20 groups" in by_groups.summary()


def panel(rng: np.random.Generator, n_years: int) -> tuple[np.ndarray, pd.DataFrame, np.ndarray]:
    """80 groups with levels and a skewed size, each seen in seven years; three nodes without any edge."""
    label = np.repeat(np.arange(80), 7)
    year = rng.integers(0, n_years - 6, 80)[label] + np.tile(np.arange(7), 80)
    X = rng.normal(size=(560, 3)) + 3 * rng.normal(size=(80, 3))[label]
    return X, pd.DataFrame({"year": year, "size": np.exp(1.5 * rng.normal(size=80))[label]}), label


@pytest.mark.parametrize("n_years", [7, 11])
@pytest.mark.filterwarnings("ignore:Groups have levels")
def test_years_that_are_good_or_bad_for_all_nodes_make_no_edge(n_years: int) -> None:
    X, Z, label = panel(np.random.default_rng(0), n_years)
    X += 0.6 * np.where(Z["year"] % 2, 1.0, -1.0)[:, None]
    question = read_question(X, Z, label, "error")
    by_year = pd.DataFrame(question.nodes().values).groupby(question.inputs.Z.values["year"].to_numpy())
    assert by_year.mean().abs().max(axis=None) < 0.2
    assert gf.infer_edges(X, Z, groups=label, covariates=[]).table.p_value.min() > 0.01


@pytest.mark.filterwarnings("ignore:Groups have levels")
def test_what_levels_of_groups_leave_to_means_is_taken_out() -> None:
    X, Z, label = panel(np.random.default_rng(0), 7)
    X += np.outer(Z["size"], [1, -1, 1])
    question = read_question(X, Z, label, "error")
    nodes, square = question.nodes(), question.inputs.Z.values["size"].to_numpy() ** 2
    taken = nodes.columns[:, nodes.mean_shares.min(axis=1) == 1]
    left = square - square.mean() - taken @ (taken.T @ square) / len(square)
    assert question.levels is not None
    assert question.levels.prefers
    assert left.var() < 1e-6 * square.var()


def test_fewer_groups_than_tests_of_dependence_need_are_enough_for_edges() -> None:
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(8), 20)
    X, Z = rng.normal(size=(160, 3)), pd.DataFrame({"age": rng.normal(size=8)[label]})
    assert gf.infer_edges(X, Z, groups=label).table.p_value.between(0, 1).all()


def test_which_graph_it_is_of_groups_with_levels_is_said(tmp_path) -> None:
    """Tests of edges are about what varies within groups, comparisons of graphs also about their levels."""
    rng = np.random.default_rng(0)
    who, arm = np.repeat(np.arange(60), 5), np.repeat(["a", "b"], 150)
    X, Z = rng.normal(size=(300, 4)) + 2 * rng.normal(size=(60, 4))[who], pd.DataFrame({"arm": arm})
    with pytest.warns(gf.DataWarning, match="levels of their own"):
        within = gf.infer_edges(X, Z, groups=who, covariates=[])
    about = "The graph is the one within groups: levels that these have of their own were subtracted."
    assert within.summary().startswith(f"{about} By 300 rows of 60 groups")
    page = tmp_path / "page.html"
    write_report(gf.RegGMM().fit(X, Z), page, edges=within)
    assert about in page.read_text()
    assert "within groups" not in gf.infer_edges(X, Z, in_order=False, covariates=[]).summary()
    beside = "Levels that groups have of their own are a part of these graphs; fits and tests of edges"
    assert beside in repr(gf.compare_graphs(X, Z, "arm", groups=who))
    assert beside not in repr(gf.compare_graphs(X, Z, "arm", in_order=False))


def test_covariates_may_be_called_like_a_column() -> None:
    X, Z = moving_chain(0, 100, p=3)
    found = gf.infer_edges(X, Z.rename(columns={"age": "value", "site": "varies"}))
    assert list(found.table.columns[7:]) == ["p_value_", "q_value_", "p_varies_", "q_varies_"]
    assert "value" in found.summary()


def test_a_copy_of_a_covariate_cannot_be_told_apart() -> None:
    X, Z = moving_chain(0, 100, p=3)
    same = gf.infer_edges(X, Z.assign(again=2 * Z.age))
    assert same.table.p_again.isna().all()
    assert np.isfinite(same.table.p_varies).all()


def assert_refused(words: str, X: pd.DataFrame, Z: pd.DataFrame, groups: np.ndarray | None = None) -> None:
    with pytest.raises(gf.DataError, match=words):
        gf.infer_edges(X, Z, groups=groups)


def test_bad_input_says_what_to_do() -> None:
    X, Z = moving_chain(0, 300, p=3)
    row = np.arange(300)
    assert_refused("At least 60 rows", X[:40], Z[:40])
    assert_refused("At least 153 rows", X[:100], pd.DataFrame(np.eye(100)[:, :50]))
    assert_refused("3 labels.*at least 5 groups", X, Z, row % 3)
    assert_refused("'rare'.*6 rows", X, Z.assign(site=np.where(row < 6, "rare", Z.site)))
    assert_refused("'c'.*one group only", X, Z.assign(site=np.where(row < 50, "c", "d")), row // 50)
    assert_refused("'u' has one value", X, pd.DataFrame({"u": (row < 50) + (row < 25) * 1.0}), row // 50)


def test_questions_that_make_no_sense(found: gf.EdgeInference) -> None:
    with pytest.raises(gf.DataError, match="no node called 'n9'"):
        found.bands("n9", "n1", "age")
    with pytest.raises(gf.DataError, match="no covariate called 'agee'"):
        found.bands("n0", "n1", "agee")
    with pytest.raises(gf.ParameterError, match="no edge to itself"):
        found.bands("n0", "n0", "age")
    with pytest.raises(gf.ParameterError, match="cannot be fixed"):
        found.bands("n0", "n1", "age", others={"age": 3})
    with pytest.raises(gf.DataError, match="'c'"):
        found.bands("n0", "n1", "age", others={"site": "c"})
    for value in (np.nan, np.inf, None):
        with pytest.raises(gf.DataError, match=rf"'age' must be finite, such as \d.*, got {value}"):
            found.bands("n0", "n1", "site", others={"age": value})
    for wrong in (0, 1, "a"):
        with pytest.raises(gf.ParameterError, match="fdr"):
            found.edges(wrong)  # type: ignore[arg-type]
    with pytest.raises(gf.DataError, match="covariates names 'agee'"):
        gf.infer_edges(*moving_chain(0, 100), covariates=["agee"])


def test_q_values_are_those_of_benjamini_and_hochberg() -> None:
    p_values = np.random.default_rng(0).uniform(size=50) ** 2
    np.testing.assert_allclose(q_values(p_values), false_discovery_control(p_values))


def test_combined_tests_keep_their_level() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(3, 20_000)) + rng.normal(size=20_000)
    p_values = list(2 * norm.sf(np.abs(noise) / np.sqrt(2)))
    for level in (0.01, 0.05):
        assert 0.6 * level < (combine_tests(p_values) <= level).mean() < 1.15 * level


@pytest.mark.parametrize(
    ("truth", "coef", "scale"),
    [(0.5, 0.5, 1.0), (0.5, 0.6, 1.0), (0.5, 0.5, 1.15), (0.9, 0.8, 1.0), (-0.9, -0.95, 0.9)],
)
def test_scores_forgive_a_small_error(truth: float, coef: float, scale: float) -> None:
    """In the coefficients, or in a scale: the mean stays the partial correlation, also of strong edges."""
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(np.array([[1, -truth], [-truth, 1]]))
    X = np.linalg.solve(root.T, rng.normal(size=(2, 100_000))).T
    left = X - X[:, ::-1] * coef
    scales = np.broadcast_to(np.sqrt(np.square(left).mean(axis=0)) * [scale, 1], X.shape)
    coefficients = np.array([[0, coef], [coef, 0]])[None, :, :, None]
    n, still = len(X), np.zeros(2, dtype=bool)
    scores = PairScores(
        left, scales, coefficients, np.zeros((1, n), int), np.ones((n, 1)), np.ones((2, 2)), still
    )
    assert scores.of(slice(0, 1)).values.mean() == pytest.approx(truth, abs=0.015)


def test_units_of_nodes_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    Z, X = pd.DataFrame({"z": rng.normal(size=120)}), rng.normal(size=(120, 3))
    X[:, 1] += X[:, 0]
    plain, other = (gf.infer_edges(values, Z, covariates=[]).table for values in (X, X * [1e30, 1e-30, 1]))
    np.testing.assert_allclose(other.estimate, plain.estimate, atol=1e-6)
    gf.compare_graphs(X * [1e30, 1e-30, 1], Z, {"z": -1}, {"z": 1})


def test_groups_of_one_row_are_rows() -> None:
    """The variance between groups is that of White with the corrections of HC2."""
    rng = np.random.default_rng(0)
    B, y = np.column_stack([np.ones(40), rng.normal(size=40)]), rng.normal(size=(40, 1))
    design = Design.of(B, np.arange(40))
    hat = B @ np.linalg.inv(B.T @ B) @ B.T
    squares = ((y - hat @ y)[:, 0] ** 2) / (1 - np.diag(hat))
    expected = np.linalg.inv(B.T @ B) @ (B.T * squares) @ B @ np.linalg.inv(B.T @ B)
    np.testing.assert_allclose(design.fit(y, np.ones_like(y), np.ones(1)).covariance[0], expected)
    left = (np.eye(40) - hat) * (design.reading[:, 1] / np.sqrt(1 - np.diag(hat)))
    shares = left.T @ left
    assert design.freedom(slice(1, 2)) == pytest.approx(np.trace(shares) ** 2 / np.trace(shares @ shares))


def test_where_regressions_may_or_may_not_move_an_edge_must_be_clear_either_way() -> None:
    """An edge that moves a little, of which 200 rows cannot say much: p-values of movement are the larger.

    Whether there is an edge on average is not in doubt: it is what it is where regressions may move.
    """
    doubted = 0
    for seed in (1, 2, 4):
        question = read_question(*moving_chain(seed, 200), None, "error")
        encoded = question.encoder.transform(question.inputs.Z)
        scores = scores_of(question, encoded, lambda: None)
        if scores.if_still is None:
            continue
        doubted += 1
        basis = learn_basis(question.encoder, encoded, question.degrees)
        both, moving, still = (
            edge_tests(own, basis, None, encoded, {})
            for own in (scores, replace(scores, if_still=None), scores.if_still)
        )
        np.testing.assert_array_equal(both.p_varies, np.maximum(moving.p_varies, still.p_varies))
        np.testing.assert_array_equal(both.p_average, moving.p_average)
        assert (both.p_value >= moving.p_value - 1e-12).all()
        assert (moving.p_varies != still.p_varies).any()
    assert doubted


def test_regressions_that_clearly_move_are_not_doubted() -> None:
    X, Z = moving_chain(0, 3_000)
    question = read_question(X, Z, None, "error")
    scores = scores_of(question, question.encoder.transform(question.inputs.Z), lambda: None)
    assert scores.if_still is None
    assert np.abs(scores.coef[:, 0, 1, 1:]).max() > 0.1


@pytest.mark.slow
def test_nominal_levels_hold() -> None:
    """60 sets: of p-values where nothing is there, about 5 % are below .05; most bands cover."""
    rates, covered = [], []
    for seed in range(60):
        X, Z = moving_chain(seed, 400, p=8)
        found = gf.infer_edges(X, Z, random_state=seed)
        table, constant = found.table, (found.table.source != "n0") | (found.table.target != "n1")
        far = table.source.str[1:].astype(int) + 1 < table.target.str[1:].astype(int)
        rates.append([(table.p_value[far] <= 0.05).mean(), (table.p_varies[constant] <= 0.05).mean(),
                      (table.p_site <= 0.05).mean()])  # fmt: skip
        band = found.bands("n0", "n1", "age")
        slope = (band.value - 50) / 30
        truth = slope / np.sqrt((1 + slope**2) * 1.25)
        covered.append(((band.low <= truth) & (truth <= band.high)).mean())
    assert (np.abs(np.mean(rates, axis=0) - 0.05) < 0.025).all()
    assert 0.83 < np.mean(covered) < 0.97


def two_groups(seed: int, n: int) -> tuple[np.ndarray, pd.DataFrame]:
    """The first edge is there in group a only, the second in both; ``age`` moves the third."""
    rng = np.random.default_rng(seed)
    Z = pd.DataFrame({"group": np.repeat(["a", "b"], n), "age": rng.uniform(-1, 1, 2 * n)})
    X = rng.normal(size=(2 * n, 6))
    X[:, 1] += np.where(Z.group == "a", 0.8, 0) * X[:, 0]
    X[:, 2] += 0.6 * X[:, 1]
    X[:, 4] += Z.age.to_numpy() * X[:, 3]
    return X, Z


def test_nodes_that_are_constant_at_a_level_are_named() -> None:
    X, Z = two_groups(0, 60)
    X[:60, 5] = 1.0
    with pytest.warns(gf.DataWarning, match=r"all rows of a level: 'x6' with group = 'a'\. Nothing is known"):
        gf.infer_edges(X, Z, covariates=[])
    with pytest.warns(gf.DataWarning, match="'x6' with group = 'a'"):
        gf.compare_graphs(X, Z, {"age": -0.5}, {"age": 0.5})
    with pytest.raises(gf.DataError, match="Node 'x6' has the same value in all 60 rows with group=a"):
        gf.compare_graphs(X, Z, "group")


def test_compares_two_levels_and_two_numbers() -> None:
    X, Z = two_groups(0, 200)
    found = gf.compare_graphs(X, Z, {"group": "a"}, {"group": "b"})
    assert list(found.columns) == ["source", "target", "difference", "low", "high", "p_value", "q_value"]
    assert len(found) == 15
    assert ((found.low <= found.difference) & (found.difference <= found.high)).all()
    clear = found[found.q_value <= 0.01]
    assert clear[["source", "target"]].to_numpy().tolist() == [["x1", "x2"]]
    assert clear.high.item() < 0
    said = repr(found).splitlines()[0]
    assert said.startswith(f"{(found.q_value <= 0.1).sum()} of 15 pairs differ")
    assert "between group=a and group=b, at a false-discovery level of 0.10" in said
    assert re.search(r"x1 - x2 \(\+0\.\d\d at group=a, [+-]?0\.\d\d at group=b\)", said)
    assert "Differences are group=b less group=a, with intervals of 90 %." in said
    assert "A test of all pairs together agrees (p < .001)." in said
    assert "rough" not in said
    assert type(clear) is pd.DataFrame
    back = gf.compare_graphs(X, Z, {"group": "b"}, {"group": "a"})
    np.testing.assert_allclose(back.difference, -found.difference, atol=1e-9)
    np.testing.assert_allclose(back.q_value, found.q_value, atol=1e-6)
    old = gf.compare_graphs(X, Z, {"age": 0.9}, {"age": -0.9})
    assert old.iloc[old.p_value.argmin()][["source", "target"]].tolist() == ["x4", "x5"]


def test_same_subjects_before_and_after() -> None:
    """What subjects have of their own in both samples makes no difference less certain than it is."""
    rng = np.random.default_rng(0)
    own = rng.normal(size=(150, 3))
    own[:, 1] += 0.7 * own[:, 0]
    before = own + 0.3 * rng.normal(size=own.shape)
    after = own + 0.3 * rng.normal(size=own.shape)
    X, Z = np.vstack([before, after]), pd.DataFrame({"time": np.repeat(["pre", "post"], 150)})
    sides = {"time": "pre"}, {"time": "post"}
    paired = gf.compare_graphs(X, Z, *sides, groups=np.tile(np.arange(150), 2))
    apart = gf.compare_graphs(X, Z, *sides)
    assert paired.high[0] - paired.low[0] < 0.8 * (apart.high[0] - apart.low[0])


@pytest.mark.parametrize(
    ("n_differ", "p_value", "said"),
    [
        (2, 0.3, ", but a test of all pairs together does not confirm it (p = .300): take them for hints"),
        (1, 0.3, ", but a test of all pairs together does not confirm it (p = .300): take it for a hint"),
        (2, 0.01, ": fewer than one of them is expected not to differ. A test of all pairs together agrees"),
        (0, 0.01, ", yet a test of all pairs together sees a difference (p = .010)"),
        (
            0,
            0.3,
            "; a test of all pairs together, which looks for single clear ones, sees no difference either "
            "(p = .300)",
        ),
    ],
)
def test_pairs_one_by_one_and_together_do_not_contradict_each_other(
    n_differ: int, p_value: float, said: str
) -> None:
    assert beside_all(np.full(n_differ, 0.1), p_value).startswith(said)


def test_the_clearest_pair_is_named_where_only_all_together_differ() -> None:
    columns = {"source": ["a", "a"], "target": ["b", "c"], "difference": [0.1, -0.74]}
    table = pd.DataFrame({**columns, "p_value": [0.4, 0.001], "q_value": [0.33, 0.1002]})
    table.attrs["p_value"] = 0.002
    said = "sees a difference (p = .002); the clearest is a - c (difference -0.74, p = .001, q = .1002). By"
    told = summary(table, ["g=u", "g=v"], None, "")
    assert said in told
    assert "By p-values alone (Benjamini-Hochberg) a - c (p = .001) would count all the same: q" in told
    table["p_value"] = [0.4, 0.2]
    assert "By p-values alone" not in summary(table, ["g=u", "g=v"], None, "")
    table.attrs["p_value"] = 0.2
    assert "clearest" not in summary(table, ["g=u", "g=v"], None, "")


def test_few_groups_or_rows_on_a_side_are_said() -> None:
    X, Z = two_groups(0, 60)
    who = np.repeat(np.arange(30), 4)
    rare = Z.assign(group=np.where(who < 8, "a", "b"))
    found = gf.compare_graphs(X, rare, "group", groups=who)
    assert "There are only 8 groups (32 rows) with group=a: estimates there are rough." in repr(found)
    found = gf.compare_graphs(X, rare.assign(group=np.where(np.arange(120) < 10, "a", "b")), "group")
    assert "There are only 10 rows for 6 nodes with group=a: estimates there are rough." in repr(found)
    for size in (49, 50):
        found = gf.compare_graphs(X, rare.assign(group=np.where(np.arange(120) < size, "a", "b")), "group")
        assert (f"There are only {size} rows for 6 nodes with group=a" in repr(found)) == (size < 50)
    kinds = pd.DataFrame(X[:, :3]).assign(yes=X[:, 3] > 0)
    assert "only 8 groups (32 rows) with group=a" in repr(gf.compare_graphs(kinds, rare, "group", groups=who))


def test_differences_of_few_groups_are_no_clearer_than_their_p_values() -> None:
    """Four standard errors say little where these come from a handful of groups."""
    rng = np.random.default_rng(0)
    estimates = 0.1 * rng.normal(size=(2, 45))
    estimates[:, 0] = 0.55, 0.0
    covariance = np.broadcast_to(np.eye(2) * 0.01, (45, 2, 2))
    sizes = np.abs(estimates[0] - estimates[1]) / np.sqrt(0.02)
    few, many = (
        q_values_of_differences(estimates, covariance, 2 * student.sf(sizes, freedom), dependent=True)
        for freedom in (4, 4_000)
    )
    assert many[0] < 0.1
    assert few[0] > 0.2


@pytest.mark.parametrize(
    ("a", "b", "error", "words"),
    [
        ({"group": "a"}, {"group": "c"}, gf.DataError, "'c'"),
        ({"grup": "a"}, {"grup": "b"}, gf.DataError, "Did you mean 'group'"),
        ({"group": "a"}, {"age": 0.0}, gf.ParameterError, "the same covariates"),
        ({"group": "a"}, {"group": "a"}, gf.ParameterError, "are the same"),
        ("a", "b", gf.ParameterError, "values of covariates"),
        ({"age": np.nan}, {"age": 0.0}, gf.DataError, "must be finite"),
        ({"age": 0.0}, {"age": -np.inf}, gf.DataError, "must be finite"),
    ],
)
def test_sides_that_make_no_sense(a: dict, b: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        gf.compare_graphs(*two_groups(0, 40), a, b)


@pytest.mark.slow
def test_zeros_make_differences_clearer_and_noise_does_not() -> None:
    """153 pairs of which 25 have an edge in one graph only, three standard errors from zero."""
    rng = np.random.default_rng(0)
    truth = np.zeros((2, 153))
    truth[0, :25], truth[:, 25:50] = 0.3, 0.4
    covariance = np.broadcast_to(np.eye(2) * 0.01, (153, 2, 2))
    found, plain, false, nothing = [], [], [], []
    for _ in range(8):
        noise = 0.1 * rng.normal(size=truth.shape)
        estimates, same = truth + noise, truth[1] + noise
        clear, none = (
            q_values_of_differences(values, covariance, p_of(values)) <= 0.1 for values in (estimates, same)
        )
        found.append(clear[:25].mean())
        plain.append((q_values(p_of(estimates)) <= 0.1)[:25].mean())
        false.append(clear[25:].sum() / max(1, clear.sum()))
        nothing.append(none.any())
        assert (p_of(estimates)[clear] <= 0.1).all()
    assert np.mean(found) > np.mean(plain) + 0.05
    assert np.mean(false) < 0.15
    assert np.mean(nothing) < 0.35


def p_of(estimates: np.ndarray) -> np.ndarray:
    return 2 * norm.sf(np.abs(estimates[0] - estimates[1]) / np.sqrt(0.02))


def test_covariates_that_the_others_determine_are_not_said_to_move_nothing() -> None:
    rng = np.random.default_rng(0)
    found = gf.infer_edges(rng.normal(size=(200, 3)), rng.normal(size=(200, 2)))
    first, second = found.covariates
    unknown = replace(found, table=found.table.assign(**{f"q_{second}": np.nan}))
    assert f"{first} 0, {second} 0." in found.summary()
    assert f"given the others: {first} 0. Of '{second}' that cannot be told" in unknown.summary()


def test_copies_are_named_and_values_that_no_row_reaches_are_refused():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(100, 3)), pd.DataFrame({"z": rng.uniform(size=100), "g": ["a", "b"] * 50})
    with pytest.warns(gf.DataWarning, match="'x1', 'x4' are the same up to scale"):
        gf.infer_edges(np.column_stack([X, 2 * X[:, 0]]), Z, covariates=[])
    low, high = Z.z.min(), Z.z.max()
    for beyond in (30, 1.05, low - 0.01):
        said = f"z={beyond:g} is beyond all rows, which have 'z' from {low:g} to {high:g}."
        with pytest.raises(gf.DataError, match=re.escape(said)):
            gf.compare_graphs(X, Z, {"z": 0.5}, {"z": beyond})
    ends = {"z": float(f"{low:.4g}")}, {"z": float(f"{high:.4g}")}
    assert "z=" in gf.compare_graphs(X, Z, *ends).attrs["summary"], "as messages round them"
    days = Z.assign(z=pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(100), unit="D"))
    with pytest.raises(
        gf.DataError, match="z=2021-01-01 is beyond all rows, which have 'z' from 2020-01-01 to"
    ):
        gf.compare_graphs(X, days, {"z": "2020-02-01"}, {"z": "2021-01-01"}, in_order=False)
    with pytest.raises(gf.DataError, match=r"Known: 'a', 'b'\.$"):
        gf.compare_graphs(X, Z, {"g": "a"}, {"g": "c"})


def three_groups(seed: int, n: int) -> tuple[np.ndarray, pd.DataFrame]:
    """The first edge is there in group c only, the second in all."""
    rng = np.random.default_rng(seed)
    Z = pd.DataFrame({"group": np.repeat(["a", "b", "c"], n)})
    X = rng.normal(size=(3 * n, 4))
    X[:, 1] += np.where(Z.group == "c", 0.8, 0) * X[:, 0]
    X[:, 2] += 0.6 * X[:, 1]
    return X, Z


def test_words_about_a_curve_are_nearer_to_the_truth_than_its_bands():
    """Single values of a curve that is rough enough to be covered are those of chance."""
    errors = {"words": [], "bands": []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        z, noise = np.round(rng.uniform(0, 24, 600), 3), rng.normal(size=(600, 3))
        X = pd.DataFrame(noise, columns=list("abc"))
        X["b"] += (z / 12 - 1) * X["a"]
        found = gf.infer_edges(X, pd.DataFrame({"z": z}))
        told = re.findall(r"([+-][\d.]+) at ([\d.]+)", found.movers()[0])
        assert len(told) >= 2
        bands = found.bands("a", "b", "z", n_points=200, simultaneous=True)
        for estimate, value in told:
            slope = float(value) / 12 - 1
            low, middle, high = (
                np.interp(float(value), bands["value"], bands[side]) for side in ("low", "estimate", "high")
            )
            assert low < float(estimate) < high
            truth = slope / np.sqrt(1 + slope**2)
            errors["words"].append(abs(float(estimate) - truth))
            errors["bands"].append(abs(middle - truth))
    assert np.mean(errors["words"]) < np.mean(errors["bands"])


def test_partial_correlations_that_are_compared_are_ones_that_can_be():
    rng = np.random.default_rng(0)
    z, noise = rng.uniform(size=400), rng.normal(size=(400, 3))
    rho = np.where(z < 0.15, 0.97, 0.2)
    X = pd.DataFrame(noise, columns=list("abc"))
    X["b"] = rho * X["a"] + np.sqrt(1 - rho**2) * X["b"]
    found = gf.compare_graphs(X, pd.DataFrame({"z": z}), {"z": 0.01}, {"z": 0.99})
    assert re.search(r"a - b \(\+0.9\d at z=0.01, ", found.attrs["summary"])  # 1.4 at first
    assert found.difference.abs().max() <= 1
    assert ((found.low <= found.difference) & (found.difference <= found.high)).all()


def test_compares_all_levels_of_a_category() -> None:
    X, Z = three_groups(0, 120)
    found = gf.compare_graphs(X, Z, "group")
    assert list(found.columns) == ["source", "target", "difference", "low", "high", "p_value", "q_value"]
    clear = found[found.q_value <= 0.01]
    assert clear[["source", "target"]].to_numpy().tolist() == [["x1", "x2"]]
    assert 0 < clear.low.item() < clear.difference.item() < clear.high.item()
    assert found.p_value.min() <= found.attrs["p_value"] <= 6 * found.p_value.min()
    assert "between group=a, group=b and group=c, at" in found.attrs["summary"]
    assert f"A test of all pairs together agrees ({p_text(found.attrs['p_value'])})" in repr(found)
    assert "the largest less the smallest, with intervals of 90 % that hold for any two" in repr(found)
    named = gf.compare_graphs(X, Z, {"group": "c"}, {"group": "a"}, {"group": "b"})
    np.testing.assert_allclose(named.difference, found.difference, atol=1e-9)
    np.testing.assert_allclose(named.p_value, found.p_value, rtol=1e-6)


def test_graphs_are_compared_where_others_overlap() -> None:
    """All of one group are old, and where both are their graphs are the same on average."""
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 400)
    age = np.where(group == "a", rng.uniform(20, 80, 800), rng.uniform(55, 80, 800))
    X, Z = rng.normal(size=(800, 3)), pd.DataFrame({"group": group, "age": age})
    X[:, 1] += np.where(group == "b", 0.06 * (age - 67.5), 0.0) * X[:, 0]
    found = gf.compare_graphs(X, Z, "group")
    assert re.search(r"Averaged over \d\d% of the rows, whose values of 'age' occur with all", repr(found))
    assert abs(found.difference[0]) < 0.15
    assert found.p_value[0] > 0.05
    encoder = CovariateEncoder().fit(as_frame(Z, "Z"))
    encoded = encoder.transform(as_frame(Z, "Z"))
    common = common_rows(encoder, encoded, [{"group": 0.0}, {"group": 1.0}])
    years = encoder.numeric[0].mean + encoder.numeric[0].scale * common.rows.numeric[:, 0]
    assert 53 < years.min() < 56
    assert abs(common.share - (age > 55).mean()) < 0.03
    bands = gf.infer_edges(X, Z).bands("x1", "x2", "group")
    assert abs(np.diff(bands.estimate)) < 0.2
    # At two numbers, rows near them count, and only combinations of levels that both have.
    site = np.where(age > 50, rng.choice(["s", "t"], 800), "t")
    found = gf.compare_graphs(X, Z.assign(site=site)[["age", "site"]], {"age": 30}, {"age": 70})
    assert "whose values of 'site' occur with all" in found.attrs["summary"]


def test_graphs_without_common_values_of_others_are_warned_of() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 150)
    age = np.where(group == "a", rng.uniform(20, 50, 300), rng.uniform(55, 80, 300))
    X, Z = rng.normal(size=(300, 3)), pd.DataFrame({"group": group, "age": age})
    with pytest.warns(
        gf.DataWarning, match="Hardly any rows have values of 'age' that occur with all values"
    ):
        gf.compare_graphs(X, Z, "group")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gf.compare_graphs(X, Z, {"group": "a", "age": 52}, {"group": "b", "age": 52})
        alike = gf.compare_graphs(X, Z.assign(age=rng.uniform(20, 80, 300)), "group")
    assert "Averaged" not in alike.attrs["summary"]


def test_levels_that_make_no_sense() -> None:
    X, Z = two_groups(0, 40)
    with pytest.raises(gf.ParameterError, match="'age' is a number"):
        gf.compare_graphs(X, Z, "age")
    with pytest.raises(gf.ParameterError, match="name each once"):
        gf.compare_graphs(X, Z, {"group": "a"}, {"group": "b"}, {"group": "a"})
    with pytest.raises(gf.DataError, match="Did you mean 'group'"):
        gf.compare_graphs(X, Z, "grup")


@pytest.mark.slow
@pytest.mark.parametrize("times", [2, 3])
def test_same_subjects_at_several_times_differ_by_chance_only(times: int) -> None:
    """60 sets of 80 subjects, heavy tails: about 5 % of p-values are below .05, and little is found."""
    rates, anything = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        own = rng.standard_t(4, size=(80, 6))
        X = np.vstack([0.7 * own + 0.7 * rng.standard_t(4, size=own.shape) for _ in range(times)])
        X[:, 1:4] += 0.5 * X[:, :1]
        Z = pd.DataFrame({"time": np.repeat([f"t{i}" for i in range(times)], 80)})
        found = gf.compare_graphs(X, Z, "time", groups=np.tile(np.arange(80), times))
        rates.append((found.p_value <= 0.05).mean())
        anything.append((found.q_value <= 0.1).any())
    assert 0.025 < np.mean(rates) < 0.08
    assert np.mean(anything) < 0.25


@pytest.mark.slow
def test_covariates_may_be_many() -> None:
    """Sixty covariates and 200 rows: the one that moves an edge is found, and no other."""
    rng = np.random.default_rng(0)
    Z = pd.DataFrame(rng.normal(size=(200, 60))).add_prefix("z")
    X = rng.normal(size=(200, 5))
    X[:, 1] += 0.8 * np.tanh(Z.z3.to_numpy()) * X[:, 0]
    found = gf.infer_edges(X, Z)
    q_of_covariates = found.table[[f"q_z{i}" for i in range(60)]].to_numpy()
    assert np.argwhere(q_of_covariates <= 0.01).tolist() == [[0, 3]]
    assert 0.02 < (found.table[[f"p_z{i}" for i in range(60)]].to_numpy() <= 0.05).mean() < 0.1
    assert found.table.p_varies.idxmin() == 0
    assert "rows for these covariates and levels" in found.summary()
    several = gf.infer_edges(X, Z, groups=np.arange(200) // 2, covariates=["z3"])
    assert several.table.p_z3[0] < 1e-4


@pytest.mark.slow
def test_a_product_that_all_edges_follow_makes_few_others() -> None:
    """40 sets of a chain that follows tanh(ab): .27 of pairs two steps apart once looked connected.

    Not valid (.05) yet: see the guide.
    """
    rates = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(2, 500))
        c = 0.6 * (a + b + rng.normal(size=500))
        X = rng.normal(size=(500, 8))
        for j in range(1, 8):
            X[:, j] += 0.8 * np.tanh(a * b) * X[:, j - 1]
        table = gf.infer_edges(X, pd.DataFrame({"a": a, "b": b, "c": c}), covariates=[]).table
        two = table.source.str[1:].astype(int) + 2 == table.target.str[1:].astype(int)
        rates.append((table.p_value[two] <= 0.05).mean())
    assert np.mean(rates) < 0.225


def near_copies(n: int = 300, noise: float = 0.5) -> tuple[np.ndarray, pd.DataFrame]:
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, n)
    X = rng.normal(size=(n, 3))
    X[:, 1] = X[:, 0] + (0.02 + noise * (z > 0)) * rng.normal(size=n)
    return X, pd.DataFrame({"z": z})


def copies_of_a_size(rng: np.random.Generator, sex: np.ndarray, tails: bool = False) -> np.ndarray:
    """Five measures of a size, correlations about .99; what is left of two of them goes together in males."""
    n = len(sex)
    left = rng.normal(size=(n, 5))
    left[:, 1] += np.where(sex == "M", 1.0, 0.0) * left[:, 0]
    X = rng.normal(size=(n, 1)) + left * [0.12, 0.12, 0.09, 0.1, 0.1]
    return np.sinh(3 * X) if tails else X * np.where(sex == "M", 1.3, 1.0)[:, None]


def test_near_copies_stay_as_they_are_unless_they_have_tails() -> None:
    """Ranks of 200 rows are as much noise as what is left of near copies."""
    rng = np.random.default_rng(0)
    sex = np.tile(["F", "M"], 100)
    level = Directions(np.where(sex == "M", 1.0, -1.0)[:, None], np.zeros(1), np.ones(1, dtype=int))

    def cleaned(X: np.ndarray) -> np.ndarray:
        return cleaned_nodes(X, level, np.arange(200)).values

    X = copies_of_a_size(rng, sex)
    assert np.abs(cleaned(X) - normal_scores(cleaned(X))).max() > 0.1
    for other in (copies_of_a_size(rng, sex, tails=True), rng.standard_t(3, (200, 5)), X[:, :1]):
        found = cleaned(other)
        np.testing.assert_allclose(found, normal_scores(found) / normal_scores(found).std(), atol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphfield.DataWarning")
def test_differences_of_near_copies_do_not_lean_to_zero() -> None:
    """Of the pair that differs, and of all others; the truth is that of many rows."""
    sex, found = np.tile(["F", "M"], 100), []
    for seed in range(8):
        X = copies_of_a_size(np.random.default_rng(seed), sex)
        found.append(gf.compare_graphs(X, pd.DataFrame({"sex": sex}), {"sex": "F"}, {"sex": "M"}))
    many = np.tile(["F", "M"], 50_000)
    X = copies_of_a_size(np.random.default_rng(100), many)
    precisions = [np.linalg.inv(np.cov(X[many == side].T)) for side in "FM"]
    first, last = (-own / np.sqrt(np.outer(np.diag(own), np.diag(own))) for own in precisions)
    truth = (last - first)[np.triu_indices(5, 1)]
    means = np.mean([one.difference for one in found], axis=0)
    assert 0.85 < means @ truth / (truth @ truth) < 1.15
    assert np.mean([(one.low <= truth) & (truth <= one.high) for one in found]) > 0.8


def test_curves_of_near_copies_stay_within_one() -> None:
    """A spline overshoots where a partial correlation is nearly one; the page reads the curve back."""
    bands = gf.infer_edges(*near_copies()).bands("x1", "x2", "z").dropna()
    assert bands.estimate.abs().max() < 1
    # There it is 0.89, and errors of the pair's own coefficients do not count.
    np.testing.assert_allclose(bands.estimate[bands.value > 0.2], 0.89, atol=0.15)
    assert ((bands.low <= bands.estimate) & (bands.estimate <= bands.high)).all()
    assert bands.low[bands.estimate > 0.99].min() > 0.5


def test_a_curve_ends_where_rows_are_too_few_to_tell_a_value_it_can_have(tmp_path) -> None:
    """It is not drawn at one, as a spline overshoots there: not in tables, words, pictures or pages."""
    X, Z = near_copies(80, 5.0)
    found = gf.infer_edges(X, Z)
    bands = found.bands("x1", "x2", "z")
    gone = bands.estimate.isna()
    assert 0 < gone.sum() < len(bands) / 2
    assert (bands.value[gone] < 0).all(), "where it is nearly one"
    assert bands[gone][["low", "high"]].isna().all(axis=None)
    assert bands[~gone].notna().all(axis=None)
    assert "nan" not in found.summary()
    assert "x1 - x2 with z (" in found.summary()
    axes = plot_edge_curves(found, "z", [("x1", "x2")])
    assert "gaps: too few rows, or no estimate within ±1" in axes.get_legend().get_title().get_text()
    record = EdgeRecord.of(found)
    curve = record.curves[0]
    assert None in curve.estimate
    assert all(low is None for low, known in zip(curve.low_all, curve.estimate, strict=True) if known is None)
    model = gf.RegGMM().fit(X, Z)
    for edges in (found, json.loads(record.to_json())):
        page = write_report(model, tmp_path / "page.html", Z=Z, edges=edges, overwrite=True)
        assert "; gaps: too few rows, or no estimate within ±1." in page.read_text(encoding="utf-8")


def test_intervals_near_one_end_there_and_not_at_minus_one() -> None:
    estimate, error = np.array([0.999, -0.99, 0.3, 0.0]), np.array([0.05, 0.05, 0.05, 0.9])
    low, high = Curve(list("abcd"), estimate, np.diag(error**2), 1e6).intervals(0.9, False, 0)
    assert low[0] == pytest.approx(0.999 - 1.645 * 0.05, abs=1e-3)
    assert high[0] == 1
    assert high[1] == pytest.approx(-0.99 + 1.645 * 0.05, abs=1e-3)
    # Elsewhere it is Fisher's scale.
    np.testing.assert_allclose(np.arctanh([low[2], high[2]]).mean(), np.arctanh(0.3))
    assert -1 < low[3] < high[3] < 1


def test_a_wider_interval_holds_a_narrower_one() -> None:
    estimate = np.linspace(-0.98, 0.98, 30)
    for size in (0.02, 0.05, 0.14, 0.3, 0.6):
        curve = Curve(list(estimate), estimate, np.diag(np.full(30, size**2)), 50.0)
        bands = [curve.intervals(level, False, 0) for level in (0.5, 0.8, 0.9, 0.95, 0.99)]
        bands.append(curve.intervals(0.99, True, 0))
        lows, highs = np.array(bands).swapaxes(0, 1)
        assert (np.diff(lows, axis=0) <= 0).all()
        assert (np.diff(highs, axis=0) >= 0).all()


def test_curves_along_a_number_are_of_rows_whose_other_covariates_occur_with_it() -> None:
    """Nobody is old in early years, and an edge follows the year alone: no curve goes where nobody is."""
    rng = np.random.default_rng(0)
    year = rng.uniform(0, 10, 1_500)
    age = 20 + year + rng.uniform(-2, 2, 1_500)
    X = rng.normal(size=(1_500, 3))
    X[:, 1] += (year / 5 - 1) * 0.8 * X[:, 0]
    found = gf.infer_edges(X, pd.DataFrame({"age": age, "year": year}), covariates=[])
    own = found.bands("x1", "x2", "age", n_points=9)
    assert own.estimate.iloc[-1] > 0.3
    assert own.estimate.iloc[0] < -0.3
    at_first = found.bands("x1", "x2", "age", others={"year": 1.0}, n_points=9)
    assert at_first.estimate.isna().iloc[-1]
    assert at_first.estimate.notna().iloc[0]


def test_edges_of_nodes_that_are_constant_at_a_level_are_not_tested() -> None:
    rng = np.random.default_rng(0)
    works, age = rng.choice(["no", "yes"], 600), rng.uniform(20, 60, 600)
    X = pd.DataFrame(rng.normal(size=(600, 4)), columns=["hours", "pay", "school", "iq"])
    X["pay"] += X["hours"]
    X["iq"] += X["school"]
    X.loc[works == "no", ["hours", "pay"]] = 0.0
    with pytest.warns(gf.DataWarning, match="not tested"):
        found = gf.infer_edges(X, pd.DataFrame({"works": works, "age": age}))
    of_these = found.table.source.isin(["hours", "pay"]) | found.table.target.isin(["hours", "pay"])
    tested = ["p_value", "q_value", "p_varies", "q_varies", "p_works", "p_age"]
    assert found.table.loc[of_these, tested].isna().all(axis=None)
    assert found.table.loc[~of_these, tested].notna().all(axis=None)
    assert not found.predict_graph(pd.DataFrame({"works": ["yes"], "age": [40.0]}))[0, 0].any()
    assert set(map(tuple, found.edges()[["source", "target"]].to_numpy())) == {("school", "iq")}
    assert "Edges of 'hours', 'pay' are not tested" in found.summary()
    with pytest.raises(gf.DataError, match="has one value in all rows of a level") as caught:
        found.bands("hours", "iq", "age")
    assert caught.value.parts["column"] == "hours"


def test_one_covariate_has_one_answer(data: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    table = gf.infer_edges(data[0], data[1][["age"]]).table
    np.testing.assert_array_equal(table.p_age, table.p_varies)
    np.testing.assert_array_equal(table.q_age, table.q_varies)


def test_values_that_few_rows_reach_are_named_where_graphs_are_compared() -> None:
    rng = np.random.default_rng(0)
    children = np.repeat([0, 1, 2, 3], [200, 100, 60, 3])
    Z = pd.DataFrame({"children": children, "age": rng.normal(size=363)})
    X = rng.normal(size=(363, 3))
    said = gf.compare_graphs(X, Z, {"children": 0}, {"children": 3}).attrs["summary"]
    assert "only 3 rows with children near 3 or beyond" in said
    assert "only" not in gf.compare_graphs(X, Z, {"children": 0}, {"children": 2}).attrs["summary"]


def test_errors_that_graphs_share_make_no_difference_of_their_own() -> None:
    """Points of one model: what is common to the errors of both does not blur how they differ."""
    rng = np.random.default_rng(1)
    truth = np.zeros((2, 15))
    truth[:, :6], truth[1, :3] = 0.45, 0.1
    covariance = np.array([[0.012, 0.008], [0.008, 0.012]])
    estimates = truth + np.linalg.cholesky(covariance) @ rng.normal(size=truth.shape)
    p_values = 2 * norm.sf(np.abs(estimates[1] - estimates[0]) / np.sqrt(0.008))
    together = np.broadcast_to(covariance, (15, 2, 2))
    found, blurred = (
        q_values_of_differences(estimates, own, p_values) for own in (together, together * np.eye(2))
    )
    assert (found >= p_values).all()
    assert found[:3].max() < 0.02
    assert (blurred[:3] > 3 * found[:3]).all()


def test_what_few_pairs_or_points_of_one_line_say_is_what_their_p_values_say() -> None:
    rng = np.random.default_rng(0)
    p_values = rng.random(10)
    few = q_values_of_differences(rng.normal(size=(2, 10)), np.stack([np.eye(2)] * 10), p_values)
    np.testing.assert_array_equal(few, q_values(p_values))
    line = np.column_stack([np.ones(5), np.arange(5.0)])
    own, p_values = 0.01 * line @ line.T, rng.random(45)
    found = q_values_of_differences(line @ rng.normal(size=(2, 45)), np.stack([own] * 45), p_values)
    np.testing.assert_array_equal(found, q_values(p_values))


def branches_and_countries(n_of_first: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Ten branches; in the first alone an edge differs between two of six countries."""
    rng = np.random.default_rng(0)
    branch = np.repeat([f"b{i}" for i in range(10)], [n_of_first] + [60] * 9)
    country = np.array(list("uvwxyz"))[np.arange(len(branch)) % 6]
    X = rng.normal(size=(len(branch), 4))
    X[:, 1] += np.where((branch == "b0") & (country == "x"), 1.2, 0.0) * X[:, 0]
    return X, pd.DataFrame({"branch": branch, "country": country})


def test_a_level_that_is_held_is_asked_of_its_own_rows() -> None:
    sides = [{"branch": "b0", "country": country} for country in ("x", "y")]
    found = gf.compare_graphs(*branches_and_countries(240), *sides)
    assert found.difference[0] < -0.5
    assert found.p_value[0] < 1e-3
    assert "add up" not in found.attrs["summary"]
    few = gf.compare_graphs(*branches_and_countries(54), *sides)
    assert few.difference[0] > -0.3
    assert "too few to tell how differences depend on 'branch': effects of covariates are taken" in repr(few)
    others = gf.compare_graphs(*branches_and_countries(54), "country")
    assert "add up" not in repr(others)


def test_curves_have_gaps_at_levels_that_rows_with_the_other_values_lack() -> None:
    X, Z = branches_and_countries(240)
    kept = ((Z.branch != "b0") | (Z.country != "z")).to_numpy()
    found = gf.infer_edges(X[kept], Z[kept], covariates=[])
    bands = found.bands("x1", "x2", "country", others={"branch": "b0"})
    assert np.isfinite(bands.estimate[[0, 5]]).tolist() == [True, False]


def test_of_many_levels_the_two_that_differ_most_clearly_are_named() -> None:
    """The edge of level e is that of ten rows, and those of a and b are known."""
    values, variances = np.array([0.5, 0.1, 0.3, 0.3, 0.9]), np.array([0.001, 0.001, 0.01, 0.01, 0.2])
    estimates = Estimates(values[:, None], np.diag(variances)[None])
    assert estimates.words(list("abcde"), 0) == "clearest of 5: +0.50 at a, +0.10 at b"
    columns = {"source": ["a"], "target": ["b"], "difference": [0.8], "p_value": [0.001], "q_value": [0.001]}
    table = pd.DataFrame(columns)
    table.attrs["p_value"] = 0.001
    said = summary(table, list("abcde"), estimates, "")
    assert "a - b (clearest of 5: +0.50 at a, +0.10 at b)." in said
    assert "Strongest" not in said


@pytest.mark.filterwarnings("ignore:Groups have levels")
def test_averages_have_intervals_that_cover_them() -> None:
    """Of 90 %, over pairs with an edge and without one, with and without groups."""
    covered = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 6))
        X[:, 1] += 0.5 * X[:, 0]
        Z = pd.DataFrame({"age": rng.uniform(size=300)})
        for groups in (None, np.arange(300) // 5):
            found = gf.infer_edges(X, Z, groups=groups, covariates=[])
            listed = found.edges(0.999)
            low, high = listed.low.to_numpy(), listed.high.to_numpy()
            assert ((low < listed.estimate) & (listed.estimate < high)).all()
            is_edge = (listed.source == "x1") & (listed.target == "x2")
            truth = np.where(is_edge, 0.5 / np.sqrt(1.25), 0.0)
            covered.append(((low <= truth) & (truth <= high)).mean())
    assert 0.84 < np.mean(covered) < 0.95
    assert list(listed.columns[:6]) == ["source", "target", "estimate", "low", "high", "p_value"]
    assert list(found.varying(0.999).columns[3:5]) == ["low", "high"]


def test_edges_that_neither_average_nor_movement_shows_alone_are_named() -> None:
    edges = pd.DataFrame(
        {
            "source": list("abc"),
            "target": list("xyz"),
            "low": [0.1, -0.1, -0.1],
            "high": [0.3, 0.1, 0.1],
            "q_varies": [0.9, 0.9, 0.01],
        }
    )
    said = words_of_unclear(edges, 0.1)
    assert said == (
        " Least clear: b - y; its average may be zero and movement is not clear by itself, only both "
        "together are."
    )
    assert words_of_unclear(edges.iloc[[0, 2]], 0.1) == ""
