"""Edges, dependence and verdicts where nodes are binary, categorical, counts and numbers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from test_compare_kinds import KINDS, mixed_table, pair

import graphfield as gf
from conftest import REAL_DATA
from graphfield.data.blocks import Blocks
from graphfield.data.families import Count
from graphfield.data.frames import as_frame
from graphfield.data.node_types import read_node_types
from graphfield.inference.edge_inference import EdgeInference
from graphfield.inference.edge_record import EdgeRecord
from graphfield.inference.kind_scores import KindScores, kind_scores
from graphfield.inference.verdict import reach_verdict
from graphfield.solvers.working import FamilyRows


@pytest.fixture(scope="module")
def found() -> EdgeInference:
    """income - calls does not move; income - mood changes its sign, yes - type is there in group b alone."""
    X, Z = mixed_table(0, 200)
    return gf.infer_edges(X, Z, node_types=KINDS, random_state=0)


def test_finds_edges_between_all_kinds_and_which_of_them_move(found: EdgeInference) -> None:
    table = found.table
    assert list(table.columns[-2:]) == ["p_group", "q_group"]
    assert np.isfinite(table.iloc[:, 2:].to_numpy(dtype=float)).all()
    there = {tuple(one) for one in found.edges(0.01)[["source", "target"]].to_numpy()}
    assert there == {("income", "mood"), ("income", "calls"), ("yes", "type")}
    moving = {tuple(one) for one in found.varying(0.01)[["source", "target"]].to_numpy()}
    assert moving == {("income", "mood"), ("yes", "type")}
    assert 0.25 < pair(table, "income", "calls").estimate < 0.6
    assert "income - mood with group (+0." in found.summary()
    assert "yes - type with group (0." in found.summary()  # several numbers have no sign


def test_an_edge_is_there_about_as_clearly_as_it_moves(found: EdgeInference) -> None:
    for one in (pair(found.table, "income", "mood"), pair(found.table, "yes", "type")):
        assert one.p_value < 3.3 * one.p_varies < 1e-4


def test_graphs_and_bands_follow_the_group(found: EdgeInference) -> None:
    a, b = found.predict_graph(pd.DataFrame({"group": ["a", "b"]}), fdr=0.01)
    income, mood, calls, yes, kind = range(5)
    for graph, typed in ((a, False), (b, True)):
        there = graph[[income, income, yes], [mood, calls, kind]]
        assert there.tolist() == [True, True, typed]
    assert found.predict_graph(pd.DataFrame({"group": []})).shape == (0, 5, 5)
    band = found.bands("income", "mood", "group").set_index("value")
    assert band.low["a"] > 0.2  # true partial correlations are about .5 and -.5
    assert band.high["b"] < -0.2
    assert ((band.low < band.estimate) & (band.estimate < band.high)).all()


def test_variances_of_scores_are_those_of_the_laws(found: EdgeInference) -> None:
    """Squares of what groups leave of scores are as large as laws say, more so where these say so."""
    scores, groups = found.scores, found.encoded.codes[:, 0]
    assert isinstance(scores, KindScores)
    ratios = []
    for number in range(scores.n_pairs):
        values = scores.of_pair(number)
        means = np.stack([values[groups == code].mean(axis=0) for code in (0, 1)])
        squares = np.square(values - means[groups]).sum(axis=1)
        expected = np.trace(scores.variances[number], axis1=1, axis2=2)
        ratios.append([squares.mean() / expected.mean(), (squares @ expected) / (expected @ expected)])
    np.testing.assert_allclose(np.median(ratios, axis=0), 1, atol=0.1)


@pytest.mark.slow
def test_laws_that_are_wrong_make_no_edges() -> None:
    """Counts in units of a million vary by far more than counts do, and are no surer for it."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"calls": rng.poisson(2, 200) * 10**6, "yes": rng.random(200) < 0.3})
    X["type"] = rng.choice(["x", "y", "z"], 200)
    Z = pd.DataFrame({"age": rng.normal(size=200), "site": rng.choice(["m", "f"], 200)})
    table = gf.infer_edges(X, Z, node_types={"calls": "count"}, random_state=0).table
    assert table[["p_value", "p_varies"]].to_numpy().min() > 1e-3


def test_an_edge_that_is_several_numbers_has_no_band(found: EdgeInference) -> None:
    with pytest.raises(gf.ParameterError, match="several numbers, since a node has three levels"):
        found.bands("yes", "type", "group")
    drawn = {(curve.pair, curve.covariate) for curve in EdgeRecord.of(found).curves}
    assert (0, "group") in drawn  # income - mood
    assert (9, "group") not in drawn  # yes - type


def test_levels_may_be_called_anything() -> None:
    X, Z = mixed_table(0, 100)
    X = X[["income", "yes", "type"]]
    renamed = X.assign(type=X["type"].map({"red": "z", "green": "a", "blue": "m"}), yes=~X["yes"])
    one, other = (gf.infer_edges(own, Z, covariates=[]).table for own in (X, renamed))
    assert np.allclose(other.p_varies, one.p_varies, atol=0.02)
    signed = pair(one, "income", "yes").estimate
    assert pair(other, "income", "yes").estimate == pytest.approx(-signed, abs=0.01)


def test_ordinal_nodes_are_numbers_here() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 4, (80, 3)), columns=list("abc"))
    Z = pd.DataFrame({"z": rng.normal(size=80)})
    ordinal = gf.infer_edges(X, Z, covariates=[], node_types=dict.fromkeys("abc", "ordinal")).table
    assert ordinal.equals(gf.infer_edges(X, Z, covariates=[]).table)


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ({"x1": "foo"}, "column 'x1' must be one of 'gaussian', 'binary', .*, got 'foo'"),
        ("foo", "node_types must be 'auto' or say what some columns are.*got 'foo'"),
    ],
)
def test_kinds_that_there_are_not_are_refused(kinds: str | dict[str, str], words: str) -> None:
    X, Z = np.random.default_rng(0).normal(size=(2, 100, 3))
    for ask in (gf.infer_edges, gf.dependence_test, partial(gf.compare_graphs, a={"z1": 0}, b={"z1": 1})):
        with pytest.raises(gf.ParameterError, match=words):
            ask(X, Z, node_types=kinds)


def test_too_many_covariates_are_refused_by_name() -> None:
    X, Z = mixed_table(0, 40)
    many = Z.assign(**{f"z{i}": np.random.default_rng(i).normal(size=80) for i in range(9)})
    with pytest.raises(gf.DataError, match="80 rows for 10 covariates, and edges of nodes that are no num"):
        gf.infer_edges(X, many, node_types=KINDS)


# Log-odds of two binary nodes where the other is 0, and their log-odds ratio.
_ALONE, _RATIO = np.array([-2.0, 0.4]), 1.8


def pair_rows(off: float) -> tuple[float, float]:
    """Mean of the scores of a pair less the truth, and its error, with log-odds that are off in all rows."""
    rng, n = np.random.default_rng(0), 40_000
    odds = np.exp([0.0, _ALONE[0], _ALONE[1], _ALONE.sum() + _RATIO])  # of 00, 10, 01, 11
    cell = rng.choice(4, size=n, p=odds / odds.sum())
    X = pd.DataFrame({"a": cell % 2 == 1, "b": cell >= 2})
    types = read_node_types(as_frame(X, "X"), "auto")
    assert types is not None
    codes = X.to_numpy(dtype=np.float64)
    blocks, ones = Blocks.learn(types, codes), np.ones((n, 1))
    root, columns = np.diagonal(blocks.root), blocks.columns(codes)
    S = np.zeros((3, 2))  # of a and b as neighbours, and of means, in standard units
    S[1, 0] = S[0, 1] = _RATIO / root.prod()
    S[2] = (_ALONE + _RATIO * blocks.center[::-1] + off) / root - blocks.null
    rows = FamilyRows(blocks, columns, np.zeros_like(columns), ones, ones)
    scores = kind_scores(rows, S[None], np.zeros((1, n), dtype=int), ones, np.ones((2, 2)))
    left = codes - expit(codes[:, ::-1] * _RATIO + _ALONE + off)
    # In units of what is left of both.
    values = scores.values[:, 0] - _RATIO * np.sqrt(np.square(left).mean(axis=0).prod())
    return float(values.mean()), float(values.std() / np.sqrt(n))


def test_scores_do_not_mind_small_errors_of_regressions() -> None:
    mean, error = pair_rows(0.0)
    assert abs(mean) < 3 * error
    # To first order, an error of .15 in both log-odds would matter four standard errors.
    assert abs(pair_rows(0.15)[0] - mean) < error


def test_a_count_of_none_has_a_loss() -> None:
    count = Count(np.array([3.0]))
    assert np.isfinite(count.loss(np.zeros((1, 1)), np.full((1, 1), -1e-17))).all()


def test_dependence_is_tested_and_told_in_the_same_words() -> None:
    X, Z = mixed_table(0, 100)
    X = X[["income", "mood", "yes"]]
    moving = gf.dependence_test(X, Z, covariates=[], n_permutations=99)
    assert moving.verdict == "strong evidence"
    assert moving.sentence.startswith("The graph depends on group: in sparse regressions, letting edges vary")
    assert "held-out deviance" in moving.sentence
    assert moving.scheme == "what each row says for or against movement gets a random sign"
    again = gf.Evidence.from_json(moving.to_json())
    assert (again.error, again.regressions) == ("deviance", "sparse regressions")
    assert reach_verdict(evidence=moving).test == "yes"


def test_a_model_of_numbers_alone_is_refused_by_name() -> None:
    X, Z = mixed_table(0, 30)
    with pytest.raises(gf.DataError, match="GraphicalLasso takes numbers alone as nodes, and 'yes' are none"):
        gf.dependence_test(
            X[["income", "yes"]], Z, covariates=[], n_permutations=19, model=gf.GraphicalLasso()
        )


@pytest.mark.slow
def test_means_that_move_are_no_dependence() -> None:
    """Ten tables: one may be unlucky, and which one it is depends on the machine."""
    p_values, moving = [], 0
    for seed in range(1, 11):
        rng = np.random.default_rng(seed)
        z = rng.uniform(-1, 1, 400)
        first = rng.random(400) < expit(2 * z)
        X = pd.DataFrame({"a": first, "b": rng.random(400) < expit(2 * z + 1.2 * first - 0.6)})
        X = X.assign(c=rng.normal(size=400) + z, d=rng.random(400) < expit(-2 * z))
        Z = pd.DataFrame({"z": z})
        p_values.append(gf.dependence_test(X, Z, covariates=[], n_permutations=99).p_value)
        moving += len(gf.infer_edges(X, Z, covariates=[]).varying(0.1)) > 0
    assert (np.array(p_values) <= 0.05).sum() <= 3
    assert np.mean(p_values) > 0.2
    assert moving <= 3


def test_the_verdict_compares_models_of_kinds_by_deviance() -> None:
    X, Z = mixed_table(0, 400)
    X = X[["income", "mood", "yes"]]
    model = gf.RegGMM().fit(X, Z)
    found = gf.judge(model, X, Z, n_folds=1)
    assert found.gain is not None
    assert (found.answer, found.gain.error) == ("moves", "deviance")
    assert "the deviance of the fitted model is" in found.sentence
    assert "beyond the covariates, the other nodes explain" in found.paragraph
    assert found.gain.explained is not None
    assert 0.05 < found.gain.explained.value < 0.5


@pytest.mark.slow
def test_a_level_that_a_fold_lacks_is_left_out() -> None:
    X, Z = mixed_table(0, 40)
    X = X[["income", "type"]].copy()
    X.loc[0, "type"] = "odd"  # in one row alone: the fold of this row is fitted without it
    gain = gf.gain_over_one_graph(gf.RegGMM(), X, Z, n_folds=2)
    assert gain.n_rows == len(X) - 1


@pytest.mark.slow
@pytest.mark.skipif(not (REAL_DATA / "mixed" / "group_mixed.csv").exists(), reason="the data are not there")
def test_known_edges_of_a_mixed_table_in_three_groups() -> None:
    """Five edges and no other; two of them differ between groups (README beside the data)."""
    table = pd.read_csv(REAL_DATA / "mixed" / "group_mixed.csv")
    X, Z = table.drop(columns="x7"), table[["x7"]].astype(str)
    found = gf.infer_edges(X, Z, node_types={"x3": "binary", "x5": "categorical"})
    there, moving = (own[["source", "target"]].to_numpy() for own in (found.edges(), found.varying()))
    assert {s + t for s, t in there} == {"x1x2", "x1x3", "x3x4", "x3x5", "x4x6"}
    assert {s + t for s, t in moving} == {"x1x2", "x3x5"}


@pytest.mark.slow
def test_p_values_of_nothing_are_even() -> None:
    """Means move with z and edges do not; at .05, shares within three standard errors of it."""
    absent, moving = [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        z, n = rng.uniform(-1, 1, 400), 400
        a = rng.random(n) < expit(np.sin(2 * z))
        b = rng.random(n) < expit(z + 1.2 * a - 0.6)
        c = b + 0.5 * z + rng.normal(size=n)
        d = rng.poisson(np.exp(0.5 + 0.3 * c - 0.3 * z))
        odds = np.exp(np.outer(z, [0, 1, -1])).cumsum(axis=1)
        e = (rng.random(n)[:, None] * odds[:, -1:] >= odds[:, :-1]).sum(axis=1)
        X = pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "e": np.array(list("uvw"))[e]})
        table = gf.infer_edges(X, pd.DataFrame({"z": z}), covariates=[], node_types={"d": "count"}).table
        edge = [s + t in ("ab", "bc", "cd") for s, t in zip(table.source, table.target, strict=True)]
        absent += table.p_value[~np.array(edge)].tolist()
        moving += table.p_varies.tolist()
    for p_values in (absent, moving):
        error = np.sqrt(0.05 * 0.95 / len(p_values))
        assert abs(np.mean(np.array(p_values) <= 0.05) - 0.05) < 3 * error


def test_within_groups_nodes_that_are_yes_or_no_have_no_edges_between_groups() -> None:
    """Subjects have levels of their own, which go together; rows of a subject have nothing in common."""
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(60), 6)
    level = rng.normal(size=60)[subject]
    X = pd.DataFrame({name: 1.5 * level + rng.normal(size=len(subject)) for name in "abcd"})
    X = X.assign(c=X.c > 0, d=X.d > 0)
    Z = pd.DataFrame({"age": rng.uniform(size=len(subject))})
    with pytest.warns(gf.DataWarning, match="Groups have levels of their own"):
        found = gf.infer_edges(X, Z, groups=subject)
    assert found.edges(0.01).empty
    assert pair(found.table, "c", "d").p_value > 0.1
    assert "'c', 'd' count as numbers here" in found.summary()
    text = X.assign(c=np.where(X.c, "yes", np.where(X.a > 0, "no", "never")))
    with pytest.warns(gf.DataWarning, match="Groups have levels of their own"):
        kept = gf.infer_edges(text, Z, groups=subject)
    assert "the others keep theirs, so edges between these are about" in kept.summary()


def wide_table(n: int = 500) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Visits that have a cause in common and vary by ten times their mean; a flag follows the first."""
    rng = np.random.default_rng(0)
    cause = rng.normal(size=n)
    X = pd.DataFrame(
        {
            "visits": rng.poisson(np.exp(1 + 0.8 * cause + 0.9 * rng.normal(size=n))),
            "calls": rng.poisson(np.exp(1 + 0.8 * cause + 0.9 * rng.normal(size=n))),
            "events": rng.poisson(2, n),
        }
    )
    X["flag"] = np.log1p(X.visits) + rng.normal(size=n) > 1.3
    return X, pd.DataFrame({"age": rng.uniform(20, 80, n)})


WIDE = {"visits": "count", "calls": "count", "events": "count"}


def test_counts_whose_law_is_wrong_are_numbers_in_tests() -> None:
    """By the law of counts, two that share a cause pull each other without bound: estimates came out as 1."""
    X, Z = wide_table()
    told, plain = (gf.infer_edges(X, Z, covariates=[], node_types=types) for types in (WIDE, "auto"))
    np.testing.assert_allclose(told.table.estimate, plain.table.estimate, atol=0.05)
    assert 0.15 < pair(told.table, "visits", "calls").estimate < 0.5
    said = told.summary()
    assert "take some counts as numbers" in said
    assert "'visits'" in said
    assert "'events'" not in said
    assert "counts as numbers" not in plain.summary()


def test_differences_and_evidence_say_so_too() -> None:
    X, Z = wide_table()
    site = pd.DataFrame({"site": np.where(Z.age > 50, "a", "b")})
    table = gf.compare_graphs(X, site, {"site": "a"}, {"site": "b"}, node_types=WIDE)
    assert "take some counts as numbers" in table.attrs["summary"]
    evidence = gf.dependence_test(X, Z, covariates=[], n_permutations=19, node_types=WIDE, random_state=0)
    assert any("take some counts as numbers" in note for note in evidence.notes)


def test_the_check_says_of_counts_that_their_law_is_wrong() -> None:
    X, Z = wide_table()
    (one,) = (f for f in gf.check_data(X, Z, typed=WIDE).warnings if f.code == "wide-counts")
    assert set(one.columns) == {"visits", "calls"}
    assert not [f for f in gf.check_data(X, Z).warnings if f.code == "wide-counts"]
    shares = [f for f in gf.check_data(X * 10, Z).warnings if f.code == "zero-counts"]
    assert all("can take" not in str(f.message) for f in shares)
