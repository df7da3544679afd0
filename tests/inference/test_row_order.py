"""Rows that are like those before them: said first, claimed of nothing, and counted in time blocks."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.cli import main
from graphfield.inference.edge_record import EdgeRecord
from graphfield.inference.verdict import Fitted, reach_verdict
from graphfield.numbers import Gain
from graphfield.report.summary import _tested

FIRST = "Rows are not independent"


def series(n: int, memory: float, seed: int = 0, p: int = 5) -> pd.DataFrame:
    """Independent nodes that remember; random walks where the memory is one."""
    values = np.random.default_rng(seed).normal(size=(n, p))
    for row in range(1, n):
        values[row] += memory * values[row - 1]
    return pd.DataFrame(values, columns=list("abcdefgh"[:p]))


def test_random_walks_get_no_claims_about_edges():
    X, Z = series(600, 1.0), pd.DataFrame({"day": np.arange(600.0)})
    with pytest.warns(gf.DataWarning, match=FIRST):
        found = gf.infer_edges(X, Z, random_state=0)
    text = found.summary()
    assert len(found.edges()) > 5, "each is false"
    assert text.startswith(FIRST)
    assert "no errors can be promised" in text
    assert "take changes from row to row" in text
    assert "expected" not in text
    assert "as if they were independent" in text
    record = EdgeRecord.from_json(json.loads(EdgeRecord.of(found).to_json()))
    assert record.caveat == found.caveat
    assert "expected" not in _tested(record, True)[0]


def test_random_walks_are_not_known_to_depend_with_and_without_their_time():
    X, Z = series(600, 1.0), pd.DataFrame({"day": np.arange(600.0)})
    plain, timed = (gf.dependence_test(X, Z, time=time, n_permutations=19) for time in (None, Z["day"]))
    assert plain.verdict == timed.verdict == "not known"
    assert plain.sentence == timed.sentence
    assert str(plain).startswith(FIRST)
    assert not timed.caveat
    taken = gf.dependence_test(X, Z, in_order=False, n_permutations=19)
    assert taken.verdict == "weak evidence", "the user knows that rows are independent"


def test_what_holds_only_for_independent_rows_is_no_answer():
    """Nodes that remember a little, and a covariate that changes once: it cannot be shifted."""
    X, Z = series(400, 0.8), pd.DataFrame({"late": np.repeat(["no", "yes"], 200)})
    X.loc[200:, "b"] += 0.7 * X.loc[200:, "a"]
    found = gf.dependence_test(X, Z, n_permutations=99)
    assert found.p_value <= 0.05
    assert found.verdict == found.per_covariate[0].verdict == "not known"
    assert found.sentence.startswith("As if rows were independent: The graph depends on late")
    assert found.paragraph.startswith(FIRST)
    assert "hold only if they were" in found.caveat
    assert gf.Evidence.from_json(found.to_json()) == found
    for known in (found, json.loads(found.to_json())):
        verdict = reach_verdict(evidence=known)
        assert (verdict.answer, verdict.test) == ("not known", "not known")
        assert verdict.paragraph.startswith(FIRST)


def test_edges_of_rows_in_order_decide_no_verdict():
    gain = gf.ModelGain(Gain(0.0, 0.01), None, None, n_rows=90, n_units=50, n_folds=5, unit="row block")
    tested = {"nodes": tuple("abc"), "n_rows": 90, "q_value": (0.001,) * 3, "q_varies": (0.001, 0.4, 0.9)}
    fitted = Fitted(("day",), moves=True)
    sure, doubtful = (
        reach_verdict(fitted, gain, None, EdgeRecord(**tested, caveat=said)) for said in ("", "Beware.")
    )
    assert (sure.answer, doubtful.answer) == ("edges", "not known")
    assert sure.paragraph.startswith(FIRST), "of the rows that were held out in blocks"
    assert "(50 blocks of rows, in 5 folds)" in sure.paragraph
    assert doubtful.paragraph.startswith("Beware. ")
    assert "Yet as if rows were independent, one edge moves" in doubtful.paragraph
    assert doubtful.moving_pairs == ()


@pytest.mark.slow
def test_edges_of_a_series_with_its_time_are_seldom_false():
    """Of independent nodes with memory .8 about .05 of p-values are below .05, not half of them."""
    plain, timed = [], []
    for seed in range(4):
        X = series(800, 0.8, seed, p=7)
        order = np.random.default_rng(seed).permutation(len(X))
        known, mixed = gf.infer_edges(X.iloc[:, :6], X[["g"]], in_order=False), X.iloc[order]
        plain += known.table["p_value"].tolist()
        timed += gf.infer_edges(mixed.iloc[:, :6], mixed[["g"]], time=order).table["p_value"].tolist()
    assert np.mean(np.array(plain) < 0.05) > 0.3
    assert np.mean(np.array(timed) < 0.05) < 0.15


@pytest.mark.slow
def test_edges_of_a_series_are_found_in_blocks_of_time():
    X = series(500, 0.6)
    X["b"] += 0.6 * X["a"]
    Z, time = pd.DataFrame({"heat": np.random.default_rng(1).normal(size=500)}), np.arange(500)
    found = gf.infer_edges(X, Z, time=time, random_state=0)
    assert found.edges()[["source", "target"]].to_numpy().tolist()[0] == ["a", "b"]
    assert " time blocks, at a false-discovery level" in found.summary()
    assert EdgeRecord.of(found).cut == 2 / np.sqrt(500), "blocks are for errors; a graph has all rows"
    with pytest.warns(gf.DataWarning, match="no errors can be promised"):
        walks = gf.infer_edges(series(500, 1.0), Z, time=time, random_state=0)
    assert walks.summary().startswith("Nodes change so slowly")


def test_the_shell_uses_time_and_says_first_what_is_missing(tmp_path, capsys):
    table, asked = tmp_path / "t.csv", ["--covariates", "heat", "--nodes", "a,b,c,d,e", "--all"]
    frame = series(300, 0.9).assign(day=np.arange(300), heat=np.random.default_rng(1).normal(size=300))
    frame.to_csv(table, index=False)
    said = {}
    for name, more in (("plain", []), ("timed", ["--time", "day"])):
        assert not main(["edges", str(table), *asked, *more])
        said[name] = capsys.readouterr()
    assert said["plain"].out != said["timed"].out
    assert f"\n{FIRST}" in said["plain"].err
    assert "--time COLUMN" in said["plain"].err
    assert FIRST not in said["timed"].err


@pytest.mark.slow
def test_differences_say_the_same_of_rows_in_order_as_tests_of_edges(tmp_path, capsys):
    X, Z = series(300, 0.9), pd.DataFrame({"late": np.repeat(["no", "yes"], 150)})
    with pytest.warns(gf.DataWarning, match=FIRST):
        edges = gf.infer_edges(X, Z, random_state=0, covariates=[])
    with pytest.warns(gf.DataWarning, match=FIRST):
        plain = gf.compare_graphs(X, Z, "late")
    assert repr(plain).startswith(str(edges.caveat))
    assert "as if rows were independent, at a false-discovery level" in plain.attrs["summary"]
    assert "expected" not in plain.attrs["summary"]
    assert FIRST not in gf.compare_graphs(X, Z, "late", in_order=False).attrs["summary"]
    X.join(Z).assign(t=range(300)).to_csv(tmp_path / "t.csv", index=False)
    asked = [str(tmp_path / "t.csv"), "--covariates", "late", "--nodes", "a,b,c,d,e"]
    said = []
    for command in (["edges"], ["differences", "--between", "late"]):
        assert main([command[0], *asked, *command[1:]]) == 0
        said.append(next(line for line in capsys.readouterr().err.splitlines() if line.startswith(FIRST)))
    assert said[1].startswith(said[0].split(" By ")[0])
    assert "Name the column with the time (--time COLUMN)" in said[1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["number", "binary"])
def test_stretches_of_time_make_differences_careful(kind):
    """Nodes and a covariate that both remember: rows that are no news make differences that are none."""
    rng = np.random.default_rng(1)
    X, z = series(600, 0.9, p=4), series(600, 0.9, seed=9, p=1)["a"]
    X = X if kind == "number" else (X + rng.normal(size=X.shape) > 0)
    Z = pd.DataFrame({"z": np.where(z > 0, "high", "low")})
    by_rows = gf.compare_graphs(X, Z, "z", in_order=False)
    by_time = gf.compare_graphs(X, Z, "z", time=np.arange(600))
    width = [(found["high"] - found["low"]).mean() for found in (by_rows, by_time)]
    assert width[1] > 1.3 * width[0]
    assert by_time.p_value.min() > 0.05 / 6
    assert FIRST not in by_time.attrs["summary"]
    turned = gf.compare_graphs(X[::-1], Z[::-1], "z", time=np.arange(600)[::-1])
    np.testing.assert_allclose(turned.p_value, by_time.p_value)


def independent_rows(n: int = 120) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes of which two are alike, a rounded number, and a category."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd")).round(1)
    Z = pd.DataFrame({"age": rng.integers(20, 70, n), "site": rng.choice(["u", "v"], n)})
    return X.assign(b=X["b"] + 0.5 * X["a"]), Z


def test_the_order_of_independent_rows_decides_nothing():
    X, Z = independent_rows()
    order = np.random.default_rng(1).permutation(len(X))
    shuffled = X.iloc[order].reset_index(drop=True), Z.iloc[order].reset_index(drop=True)
    found, compared, tested = [], [], []
    for table in ((X, Z), shuffled):
        found.append(gf.infer_edges(*table).table)
        compared.append(gf.compare_graphs(*table, {"site": "u"}, {"site": "v"}))
        tested.append(gf.dependence_test(*table, n_permutations=39, random_state=0))
    pd.testing.assert_frame_equal(*found)
    pd.testing.assert_frame_equal(*compared)
    assert tested[0].p_value == tested[1].p_value
    assert tested[0].gain_over_static == tested[1].gain_over_static


@pytest.mark.filterwarnings("ignore::graphfield.DataWarning")
def test_several_cuts_of_few_rows_agree_better_than_one(monkeypatch):
    """Rows in order stay where they are, so each order is another cut."""
    X, Z = independent_rows()

    def spread() -> float:
        orders = (np.random.default_rng(seed).permutation(len(X)) for seed in range(4))
        tables = [gf.infer_edges(X.iloc[o], Z[["age"]].iloc[o], in_order=True).table for o in orders]
        return float(np.std([table["estimate"] for table in tables], axis=0).mean())

    several = spread()
    monkeypatch.setattr("graphfield.inference.enough_rows._MOST_CUTS", 1)
    assert several < 0.8 * spread()
