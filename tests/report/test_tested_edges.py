"""Edges that were tested one by one, on the page and in the folder of a model."""

from __future__ import annotations

import copy
import dataclasses
import io
import itertools
import json
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from browser import chromium
from conftest import change_threshold
from graphfield.analysis.averages import average_graph
from graphfield.cli import main
from graphfield.cli.one_graph import add_bands
from graphfield.graphs.threshold import Gap, Threshold
from graphfield.inference.edge_inference import EdgeInference
from graphfield.inference.edge_record import BandedCurve, EdgeRecord, MovesWith
from graphfield.report import words, write_report
from graphfield.report.html import _first_chosen
from graphfield.report.summary import _average_edges, _rule, _tested
from report_cases import fitted, model_and_tests, sign_change_table, table, upper

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")


def page_data(text: str) -> dict:
    return json.loads(re.search(r'id="page-data">(.*?)</script>', text, re.DOTALL)[1])


def test_tested_edges_are_those_of_the_page(tmp_path):
    model, Z, found = model_and_tests()
    text = write_report(model, tmp_path / "a.html", Z=Z, edges=found).read_text(encoding="utf-8")
    edges, moving = len(found.edges()), len(found.varying())
    assert (
        f"Each of 10 pairs of nodes was tested for an edge on 400 rows, at a false-discovery level of 0.10. "
        f"{edges} pairs" in text
    )
    assert f"{moving} edge is seen to move" in text or f"{moving} edges are seen to move" in text
    assert "with the covariates (tests of 10 pairs one by one, false-discovery level 0.10)." in text
    (what,) = [mover.removeprefix("c - d ") for mover in found.movers()]
    assert f"<li><strong>c \u2013 d</strong> <span>{what}</span></li>" in text
    assert text.count(what) == 1, "each thing once"
    never = page_data(text)["threshold"]["never"]
    assert never == np.flatnonzero(found.table["q_value"] > 0.1).tolist()
    assert "were not tested one by one" not in text
    own = json.loads(EdgeRecord.of(found).to_json())
    again = write_report(model, tmp_path / "b.html", Z=Z, edges=own).read_text(encoding="utf-8")
    assert again == text


def test_a_rate_just_above_the_level_stays_there_in_the_record():
    found = model_and_tests()[2]
    table = found.table.assign(q_value=0.10001, q_varies=0.10001)
    near = dataclasses.replace(found, table=table)
    record = EdgeRecord.from_json(json.loads(EdgeRecord.of(near).to_json()))
    assert len(near.edges()) == record.are_edges.sum() == 0
    assert len(near.varying()) == record.are_moving.sum() == 0
    assert EdgeRecord.of(found).q_value == tuple(found.table["q_value"])


def test_curves_on_the_page_are_those_of_bands(tmp_path):
    model, Z, found = model_and_tests()
    tests = page_data(write_report(model, tmp_path / "a.html", Z=Z, edges=found).read_text(encoding="utf-8"))[
        "tests"
    ]
    pair = [tuple(ends) == ("a", "b") for ends in found.table[["source", "target"]].to_numpy()].index(True)
    one, whole = (found.bands("a", "b", "age", 0.9, flag, n_points=25) for flag in (False, True))
    wanted = np.column_stack([one[["estimate", "low", "high"]], whole[["low", "high"]]])
    np.testing.assert_allclose(tests["curves"][str(pair)]["age"], wanted, atol=1e-4)
    np.testing.assert_allclose(tests["values"]["age"], one["value"])


def test_the_caption_says_whose_numbers_are_on_which_scale(tmp_path):
    model, Z, found = model_and_tests()
    scores = gf.GraphicalLasso(marginals="normal").fit(*sign_change_table())
    said = "The picture and the table have "
    by_model = "that of the model, of nodes as they are, which may differ."
    for fit, whose in ((model, by_model), (scores, "its average by the same tests.")):
        text = write_report(fit, tmp_path / "a.html", Z=Z, edges=found, overwrite=True).read_text("utf-8")
        assert "along one covariate by the tests, of normal scores of the nodes" in text
        assert f"{said}{whose}" in text, "one graph for all is best known by the tests"
    plain = write_report(model, tmp_path / "a.html", Z=Z, overwrite=True).read_text("utf-8")
    assert said not in plain


def test_curves_over_levels_say_which_rows_they_rest_on():
    curve = BandedCurve(0, "site", *[[0.1, 0.2, 0.3]] * 5)
    of_age, of = dataclasses.replace(curve, covariate="age"), "rows whose other covariates occur with "
    for curves, said in (
        ([curve], f"{of}all levels of a category. "),
        ([of_age], f"{of}that value. "),
        ([of_age, curve], f"{of}that value, or with all levels of a category. "),
    ):
        text = words.bands(fitted("linear"), 0.9, curves, moves=True)
        assert said in text
        assert text.count(". ") == 3, "a caption, no lecture"
        assert text.count("rows whose") == 1


def test_a_pair_of_which_nobody_can_tell_with_what_it_moves_has_its_sizes():
    rng = np.random.default_rng(0)
    age, X = rng.uniform(-1, 1, 600), rng.normal(size=(600, 3))
    X[:, 1] += age * X[:, 0]
    Z = pd.DataFrame({"age": age, "year": age + 0.02 * rng.normal(size=600)})
    record = EdgeRecord.of(gf.infer_edges(pd.DataFrame(X, columns=list("abc")), Z))
    assert record.movers == ("a - b (with which covariate cannot be told)",)


def test_without_tests_the_page_says_how_to_get_them(tmp_path):
    model, Z, _ = model_and_tests()
    text = write_report(model, tmp_path / "a.html", Z=Z, edges_command="graphfield edges x").read_text(
        "utf-8"
    )
    assert "<code>graphfield edges x</code> and write this page again" in text
    assert "infer_edges" not in text, "each in its own words"
    text = write_report(model, tmp_path / "c.html", Z=Z).read_text("utf-8")
    assert "pass what <code>graphfield.infer_edges</code> returns" in text
    refused = EdgeRecord(why_not="At least 60 rows are needed.")
    text = write_report(model, tmp_path / "b.html", Z=Z, edges=json.loads(refused.to_json())).read_text(
        "utf-8"
    )
    assert "could not be tested one by one: At least 60 rows are needed." in text
    assert "graphfield edges" not in text


def test_tests_of_other_nodes_are_refused(tmp_path):
    found = model_and_tests()[2]
    with pytest.raises(gf.DataError, match="not those of this model"):
        write_report(fitted("linear"), tmp_path / "a.html", edges=found)
    record = json.loads(EdgeRecord.of(found).to_json())
    with pytest.raises(gf.ModelFileError, match="do not fit together"):
        write_report(model_and_tests()[0], tmp_path / "a.html", edges={**record, "q_value": [0.5]})


@pytest.mark.parametrize(
    ("found", "rate", "said"),
    [
        (0, 0.1, "No pair passes its test."),
        (1, 0.1, "1 pair passes its test."),
        (3, 0.1, "fewer than one"),
        (36, 0.1, "36 pairs pass their tests: about 4 of them are expected to be false"),
        (36, 0.01, "36 pairs pass their tests: fewer than one of them is expected to be false"),
    ],
)
def test_how_many_edges_are_expected_to_be_false(found, rate, said):
    rates = tuple([rate] * found + [0.9] * (45 - found))
    record = EdgeRecord(tuple("abcdefghij"), 100, None, rates, rates)
    assert said in _tested(record, True)[0]


def test_a_number_with_two_values_is_chosen_from_these(tmp_path):
    model, Z, _ = model_and_tests()
    _, drug = page_data(write_report(model, tmp_path / "a.html", Z=Z).read_text(encoding="utf-8"))[
        "covariates"
    ]
    assert (drug["kind"], drug["levels"]) == ("category", ["0", "1"])
    assert drug["start"] in ("0", "1")


def test_pairs_that_are_never_strong_are_told_from_edges(tmp_path):
    model = copy.copy(fitted("linear"))
    some = upper(model.partial_correlations(table()[1]).astype(float))
    cut = float(np.sort(np.abs(some).max(axis=0))[-2]) + 1e-6  # one pair is above it in some row
    change_threshold(model, value=cut, clear=~np.eye(6, dtype=bool))
    text = write_report(model, tmp_path / "a.html", Z=table()[1]).read_text(encoding="utf-8")
    assert (
        "1 pair is an edge in at least one of these rows. 14 more stand clear of their noise but are never"
        in text
    )


def test_pairs_that_pass_but_are_weak_in_the_model_have_the_strength_of_the_tests():
    """The model may have 0.00 of what passes its test."""
    zeros, pairs = np.zeros(3), [("a", "b"), ("a", "c"), ("b", "c")]
    clear = np.array([[False, True, True], [True, False, False], [True, False, False]])
    field = SimpleNamespace(threshold=Threshold(0.1, clear, None, "", Gap(0.1, 1.0, True, "")))
    survey = SimpleNamespace(mean=zeros, spread=zeros, present=zeros)
    estimates = (0.123, -0.321, 0.01)
    tests = EdgeRecord(("a", "b", "c"), 100, None, (0.01, 0.01, 0.9), (0.9,) * 3, estimates)
    strongest = "a \u2013 c (\u22120.32), a \u2013 b (+0.12)."
    said = f" in the model, which draws weak ones towards zero; on average the tests estimate {strongest}"
    assert _rule(field, survey, pairs, tests).endswith(
        f"2 more pass their tests but are never that strong{said}"
    )
    survey.mean = np.array(estimates) * 0.1  # of the tests, where the average is shown
    assert _average_edges(field, survey, pairs, tests)["rule"] == (
        "2 more pass their tests but are weaker on average: a \u2013 c (\u22120.03), a \u2013 b (+0.01)."
    )


def test_where_there_are_tests_they_say_what_moves(tmp_path):
    model, Z, found = model_and_tests()
    alone = write_report(model, tmp_path / "a.html", Z=Z).read_text(encoding="utf-8")
    beside = write_report(model, tmp_path / "b.html", Z=Z, edges=found).read_text(encoding="utf-8")
    for said in (">The edges that vary most</h2>", "What moves the graph most"):
        assert said in alone
        assert said not in beside


def test_estimates_are_kept_with_the_tests_and_on_the_page(tmp_path):
    model, Z, found = model_and_tests()
    record = EdgeRecord.from_json(json.loads(EdgeRecord.of(found).to_json()))
    np.testing.assert_allclose(record.estimate, found.table["estimate"], atol=1e-4)
    page = write_report(model, tmp_path / "a.html", Z=Z, edges=found).read_text(encoding="utf-8")
    assert page_data(page)["tests"]["estimate"] == list(record.estimate)
    with pytest.raises(gf.ModelFileError, match="do not fit together"):
        EdgeRecord.from_json({**json.loads(record.to_json()), "estimate": [0.5]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with its tests, as the shell writes them."""
    X, Z = sign_change_table()
    path = tmp_path_factory.mktemp("tested")
    X.join(Z).to_csv(path / "table.csv", index=False)
    called = ["fit", str(path / "table.csv"), "--covariates", "age,drug", "--model", "linear", "--no-verdict"]
    assert main([*called, "--edges", "--out", str(path / "model")]) == 0
    return path / "model"


def test_the_shell_shows_the_edges_of_the_page(folder, capsys):
    assert main(["graph", str(folder), "--average"]) == 0
    said = capsys.readouterr()
    assert "by the tests in edges.json" in said.err
    assert {"a,b"} <= {",".join(line.split(",")[:2]) for line in said.out.splitlines()}
    for cut, by in (("auto", "of pairs that pass their tests"), ("0.2", "--threshold 0.2")):
        out = ["--threshold", cut, "--out", str(folder.parent / f"{cut}.csv")]
        assert main(["graph", str(folder), "--average", *out]) == 0
        assert f"of 5 nodes ({by}) to" in capsys.readouterr().out
    assert main(["report", str(folder), "--force"]) == 0
    assert "was tested for an edge on 400 rows" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("asked", [["--average"], ["--at", "age=50", "--at", "drug=0"]])
def test_pairs_that_pass_and_are_not_listed_are_named(folder, capsys, asked):
    assert main(["graph", str(folder), *asked]) == 0
    said = capsys.readouterr()
    found = int(re.search(r"edges are those of (\d+) pairs? by the tests", said.err)[1])
    weak = re.search(
        r"(\d+) of these pairs (?:is|are) not listed: the model has \w+ below its cut of [\d.]+ "
        r"here(, .*)?: ",
        said.err,
    )
    assert len(said.out.splitlines()) - 1 + (int(weak[1]) if weak else 0) == found
    if asked != ["--average"]:
        assert weak, "a - b changes its sign at 50"
        assert re.search(r"\(by the tests [+-]?\d\.\d\d \[[^]]+\] here\)", said.err)


def moving_by_sex(n=3_000):
    """An edge that is there with young women and old men alone, and one that stands still."""
    rng = np.random.default_rng(1)
    age, X = rng.uniform(20, 80, n), rng.normal(size=(n, 3))
    sex = rng.choice(["f", "m"], n)
    along = (age - 50) / 30 * np.where(sex == "m", 1.0, -1.0)
    X[:, 1] += 0.6 * along * X[:, 0]
    X[:, 2] += 0.5 * X[:, 0]
    return pd.DataFrame(X, columns=list("abc")), pd.DataFrame({"age": age, "sex": sex})


def test_what_moves_is_told_at_one_place_also_where_covariates_act_together():
    found = gf.infer_edges(*moving_by_sex())
    (mover,) = found.movers()
    told = re.fullmatch(
        r"a - b with age differently by sex \((.*) at (.*), (.*) at (.*) where sex=(.); "
        r"(.*) at (.*), (.*) at (.*) where sex=(.)\)",
        mover,
    )
    assert told, mover
    for i in (1, 6):
        side = 1 if told[i + 4] == "m" else -1
        assert float(told[i]) * side < -0.2
        assert float(told[i + 2]) * side > 0.2
    record = EdgeRecord.from_json(json.loads(EdgeRecord.of(found).to_json()))
    off = []
    for sex, side in (("f", -1), ("m", 1)):
        for age in (25.0, 50.0, 75.0):
            slope = 0.6 * side * (age - 50) / 30
            truth = slope / np.sqrt(1 + slope**2 + 0.25)  # c is a child of a: less is left of a
            value = record.moving_at({"age": age, "sex": sex})[0]
            off.append(abs(value.estimate - truth))
            assert value.low < value.estimate < value.high
    assert np.mean(off) < 0.1
    assert record.moving_at({"age": 81.0, "sex": "m"}) == {}, "beyond all rows"
    assert record.moving_at({"age": 50.0, "sex": "x"}) == {}, "a level that nobody has"
    at = record.values_at({"age": 75.0, "sex": "f"})
    pairs = [tuple(ends) for ends in found.table[["source", "target"]].to_numpy()]
    assert at[pairs.index(("a", "c"))].estimate == pytest.approx(found.table.estimate[1], abs=1e-4)
    assert at[0] == record.moving_at({"age": 75.0, "sex": "f"})[0]
    broken = json.loads(record.to_json())
    broken["at"]["coef"][0].pop()
    with pytest.raises(gf.ModelFileError, match="do not fit together"):
        EdgeRecord.from_json(broken).moving_at({"age": 50.0, "sex": "f"})


def test_averages_of_the_tests_stand_for_those_of_a_model():
    rates = {"q_value": (0.01,) * 3, "q_varies": (0.9,) * 3, "estimate": (0.1, 0.2, None)}
    tests = EdgeRecord(tuple("abc"), 99, **rates, low=(0.0, 0.1, None), high=(0.2, 0.3, None))
    assert tests.averaged(np.zeros(3)).tolist() == [0.1, 0.2, 0], "without a sign there is no interval"


def test_what_tests_find_wherever_one_looks_is_an_edge_of_any_strength():
    """Of five pairs that pass, one moves, one with one covariate, and the interval of one holds zero."""
    model = copy.copy(fitted("linear"))
    names, n_pairs = model.node_names_, 15
    rates, moving = [0.01] * 5 + [0.9] * 10, [0.9] * n_pairs
    moving[1] = 0.02
    low = [0.1, 0.1, 0.1, -0.1, 0.1] + [-0.1] * 10
    tests = EdgeRecord(
        tuple(names), 400, None, tuple(rates), tuple(moving), (0.2,) * n_pairs, tuple(low), (0.3,) * n_pairs,
        with_one=(MovesWith(2, "age", 0.05),),
    )  # fmt: skip
    assert np.flatnonzero(tests.are_steady).tolist() == [0, 4]
    threshold = tests.applied_to(model).threshold_
    assert threshold.pair_cuts[[0, 4]].tolist() == [0, 0]
    assert (threshold.pair_cuts[1:4] == threshold.value).all()
    assert np.isinf(threshold.pair_cuts[5:]).all()
    graphs = upper(tests.applied_to(model).predict_graph(table()[1]))
    strengths = np.abs(upper(model.partial_correlations(table()[1]).astype(float)))
    assert graphs[:, [0, 4]].mean() > 0.9
    assert not graphs[:, 1:4][strengths[:, 1:4] < 0.9 * threshold.value].any()
    assert not graphs[:, 5:].any()


def test_strengths_outside_the_bands_of_the_tests_are_counted(folder, tmp_path, capsys):
    def graph(*options):
        assert main(["graph", str(tmp_path / "model"), "--at", "age=60", "--at", "drug=1", *options]) == 0
        said = capsys.readouterr()
        return pd.read_csv(io.StringIO(said.out)).set_index(["source", "target"]), said.err

    shutil.copytree(folder, tmp_path / "model")
    capsys.readouterr()
    own, said = graph()
    inside = own["partial_correlation"].between(own["tested_low"], own["tested_high"])
    assert inside[("c", "d")], "which moves"
    (n_outside,) = re.findall(r"(\d+) of 2 edges lies? outside", said)
    assert int(n_outside) == (~inside).sum()
    assert said.count("note:") == 2, "each thing once"
    record = EdgeRecord.of(model_and_tests()[2])
    places, pairs = {"age": 60.0, "drug": "1"}, list(itertools.combinations(record.nodes, 2))
    expected = record.moving_at(places)[pairs.index(("c", "d"))]
    columns = ["tested", "tested_low", "tested_high"]
    assert own.loc[("c", "d"), columns].tolist() == pytest.approx(list(expected), abs=1e-3)
    tests = EdgeRecord.from_json(json.loads((folder / "edges.json").read_text()))
    off = json.loads(json.dumps(tests.at))
    off["coef"] = [[-0.95, *[0.0] * (len(own) - 1)] for own in off["coef"]]
    off = replace(tests, at=off)
    (tmp_path / "model" / "edges.json").write_text(off.to_json())
    moved, said = graph("--threshold", "0.1")
    n_moving = int(moved["tested_low"].notna().sum())
    assert n_moving >= 1
    assert f"{n_moving} of {n_moving} edge" in said
    assert "outside the interval of 90 % of the tests" in said
    assert "take normal scores" in said, "the model has nodes as they are"
    model = gf.load(folder)
    network = model.to_networkx({"age": 60, "drug": 1}, threshold=0.1)
    for marginals in ("normal", "raw"):
        model.marginals_ = marginals
        with pytest.warns(gf.DataWarning, match="outside the interval") as warned:
            add_bands(network, off, model, {"age": 60, "drug": 1})
        assert ("take normal scores" in str(warned[0].message)) == (marginals == "raw")
    for format in ("json", "graphml"):
        assert main(["graph", str(tmp_path / "model"), "--at", "age=70", "--format", format]) == 0
        assert capsys.readouterr().out.count("tested_low") >= 1


def test_averages_have_what_the_tests_find(folder, tmp_path, capsys):
    def average():
        assert main(["graph", str(tmp_path / "model"), "--average"]) == 0
        said = capsys.readouterr()
        return pd.read_csv(io.StringIO(said.out)).set_index(["source", "target"]), said.err

    shutil.copytree(folder, tmp_path / "model")
    capsys.readouterr()
    found = model_and_tests()[2].edges(0.999).set_index(["source", "target"])
    own, _ = average()
    columns = {"estimate": "partial_correlation", "low": "low", "high": "high"}
    expected = found.loc[own.index, list(columns)].rename(columns=columns)
    np.testing.assert_allclose(own[list(columns.values())], expected, atol=1e-3)
    model = gf.load(folder)
    rows = model_and_tests()[1]
    by_model = average_graph(model, rows, threshold=None)
    np.testing.assert_allclose(own["model"], [by_model.loc[ends] for ends in own.index], atol=1e-3)
    tests = EdgeRecord.from_json(json.loads((folder / "edges.json").read_text()))
    before = replace(tests, low=(), high=())
    (tmp_path / "model" / "edges.json").write_text(before.to_json())
    own, _ = average()
    assert "low" not in own, "a file from before there were intervals"
    (tmp_path / "model" / "edges.json").write_text(replace(tests, low=tests.low[1:]).to_json())
    assert main(["graph", str(tmp_path / "model")]) == 2
    assert "do not fit together" in capsys.readouterr().err


def test_tests_that_were_edited_are_refused(folder, tmp_path, capsys):
    own = folder / "edges.json"
    kept = own.read_text()
    own.write_text(kept.replace('"n_rows": 400', '"n_rows": 4000'))
    try:
        assert main(["report", str(folder), "--force"]) == 2
        assert "damaged or was edited" in capsys.readouterr().err
    finally:
        own.write_text(kept)


def test_the_command_writes_the_record(folder, tmp_path, capsys):
    called = ["edges", str(folder.parent / "table.csv"), "--covariates", "age,drug"]
    assert main([*called, "--out", str(tmp_path / "edges.json")]) == 0
    assert (tmp_path / "edges.json").read_text() == (folder / "edges.json").read_text()
    assert main([*called, "--fdr", "0.2", "--out", str(tmp_path / "b.json")]) == 2
    assert "leave --fdr out" in capsys.readouterr().err


def test_a_fit_goes_on_where_pairs_cannot_be_tested(folder, tmp_path, capsys):
    few = pd.read_csv(folder.parent / "table.csv").iloc[:50]
    few.to_csv(tmp_path / "few.csv", index=False)
    called = [
        "fit",
        str(tmp_path / "few.csv"),
        "--covariates",
        "age,drug",
        "--model",
        "linear",
        "--no-verdict",
    ]
    assert main([*called, "--edges", "--out", str(tmp_path / "model")]) == 0
    assert "Pairs could not be tested: At least 60 rows" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "model")]) == 0
    assert "At least 60 rows" in (tmp_path / "model" / "report.html").read_text(encoding="utf-8")


def test_the_curve_that_is_drawn_first_is_that_of_the_pair_that_moves():
    survey = SimpleNamespace(spread=np.zeros(3), mean=np.array([0.5, 0.4, 0.02]))
    edges, curves = np.array([True, True, False]), [SimpleNamespace(pair=pair) for pair in (2, 0)]
    tests = SimpleNamespace(curves=curves, are_named=np.array([False, False, True]))
    assert _first_chosen(survey, edges, tests) == [2]
    tests.are_named[:] = False
    assert _first_chosen(survey, edges, tests) == [0]
    assert _first_chosen(survey, edges, None) == [0, 1]


def moving_with_one() -> tuple[EdgeInference, int]:
    """No pair moves with all covariates together; c - d does with age given the others."""
    found = model_and_tests()[2]
    pair = int(found.table.index[(found.table["source"] == "c") & (found.table["target"] == "d")][0])
    table = found.table.assign(q_varies=0.117, q_age=0.9, q_drug=0.9)
    table.loc[pair, ["q_age", "q_value"]] = 0.026
    return replace(found, table=table), pair


def test_a_pair_that_moves_with_one_covariate_is_drawn_first_with_the_rate_that_decides(tmp_path):
    found, pair = moving_with_one()
    assert found.movers()[0].startswith("c - d with age")
    record = EdgeRecord.of(found)
    assert record.curves[0].pair == pair
    assert EdgeRecord.from_json(json.loads(record.to_json())) == record
    model, Z, _ = model_and_tests()
    page = page_data(write_report(model, tmp_path / "a.html", Z=Z, edges=found).read_text(encoding="utf-8"))
    assert page["tests"]["with_one"] == {str(pair): [["age", 0.026]]}
    assert page["chosen"] == [pair]
    broken = {**json.loads(record.to_json()), "with_one": [{"pair": 99, "covariate": "age", "rate": 0.026}]}
    with pytest.raises(gf.ModelFileError, match="do not fit together"):
        write_report(model, tmp_path / "b.html", Z=Z, edges=broken)
    broken["with_one"][0]["rate"] = "low"
    with pytest.raises(gf.ModelFileError, match="rate"):
        write_report(model, tmp_path / "b.html", Z=Z, edges=broken)


needs_browser = pytest.mark.skipif(chromium() is None, reason="no Chromium or Chrome on this machine")
BANDS = "document.querySelectorAll('#curve-panels .interval').length"


@needs_browser
def test_curves_have_bands_until_the_model_is_asked_for(opened):
    model, Z, found = model_and_tests()
    page = opened(model, Z, edges=found)
    assert len(page.run("window.graphfield.state().chosen")) == 1
    assert page.run(BANDS) == 2 + 4, "two bands along age, and two bars at each value of drug"
    titles = page.run(
        "[...document.querySelectorAll('#curve-panels .tick')].map((t) => t.firstChild.textContent)"
    )
    assert titles[-2:] == ["0", "1"]
    page.run("document.querySelectorAll('#chosen button').forEach((one) => one.click())")
    page.run("document.querySelector('#table td.draw button').click()")
    by_tests = float(found.table.set_index(["source", "target"])["estimate"]["a", "b"])
    chip = "document.getElementById('chosen').textContent"
    said = page.run(chip)
    assert f" in the model, +{by_tests:.2f} [+" in said
    assert "] by the tests on average" in said
    page.run("document.querySelector('#curve-kind input[value=model]').click()")
    assert "by the tests" not in page.run(chip)
    assert page.run(BANDS) == 0
    assert page.run("document.getElementById('curve-tested').hidden")


@needs_browser
def test_curves_end_where_they_are_not_known(opened):
    model, Z, found = model_and_tests()
    record = EdgeRecord.of(found)
    first, *others = record.curves
    names = ("estimate", "low", "high", "low_all", "high_all")
    ended = {name: [*getattr(first, name)[:-5], *[None] * 5] for name in names}
    short = replace(record, curves=(replace(first, **ended), *others))
    points = "[...document.querySelectorAll('#curve-panels > div:first-child polyline')]"
    right = f"Math.max(...{points}.flatMap((l) => l.getAttribute('points').split(' ').map(parseFloat)))"
    whole, cut = (opened(model, Z, edges=json.loads(one.to_json())).run(right) for one in (record, short))
    assert 0 < cut < whole - 20


@needs_browser
def test_rates_are_in_the_table_and_its_file(opened):
    model, Z, found = model_and_tests()
    page = opened(model, Z, edges=found)
    page.run("document.getElementById('only').click()")
    lines = pd.read_csv(io.StringIO(page.run("window.graphfield.csv()"))).set_index(["source", "target"])
    wanted = found.table.set_index(["source", "target"])[["q_value", "q_varies"]]
    np.testing.assert_allclose(
        lines.loc[wanted.index, ["q_value", "q_varies"]], wanted, rtol=0.01, atol=1e-30
    )
    page.run("document.querySelector('th[data-id=q_varies] button').click()")
    first = page.run("[...document.querySelectorAll('#table tbody tr')][0].textContent")
    assert "cd" in first, "what moves most clearly comes first"


@needs_browser
def test_the_rate_of_one_covariate_is_in_the_table_and_its_file(opened):
    model, Z, _ = model_and_tests()
    found, _ = moving_with_one()
    page = opened(model, Z, edges=found)
    page.run("document.getElementById('only').click()")
    page.run("document.querySelector('th[data-id=with_one] button').click()")
    first = page.run("[...document.querySelectorAll('#table tbody tr')][0].textContent")
    assert "0.117age\u00a00.026" in first
    lines = pd.read_csv(io.StringIO(page.run("window.graphfield.csv()"))).set_index(["source", "target"])
    assert lines["moves_with"].dropna().to_dict() == {("c", "d"): "age 0.026"}
    assert lines["tested_average"][("c", "d")] == pytest.approx(0.1164, abs=1e-3)
    assert lines["tested_interval"][("c", "d")] == "[+0.06, +0.17]"
    none = replace(found, table=found.table.assign(q_age=0.9))
    assert "moves_with" not in opened(model, Z, edges=none).run("window.graphfield.csv()")


@needs_browser
def test_the_partial_correlation_is_seen_on_a_phone(opened):
    model, Z, found = model_and_tests()
    page = opened(model, Z, edges=found)
    page.resize(390, 844)
    page.run("new Promise((done) => setTimeout(done, 300))")
    right = "document.querySelector('#table tbody td.number').getBoundingClientRect().right"
    assert page.run(right) <= 390


@needs_browser
def test_one_of_two_values_is_chosen_from_a_menu(opened):
    model, Z, _ = model_and_tests()
    page = opened(model, Z)
    menu = "document.querySelector('#covariates select')"
    other = str(1 - int(page.run("window.graphfield.state().z.drug")))
    page.run(f"{menu}.value = '{other}'; {menu}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    page.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 200)))")
    now = page.run("window.graphfield.state().z")
    assert now["drug"] == other
    wanted = upper(model.partial_correlations(pd.DataFrame([now])))[0]
    np.testing.assert_allclose(page.run("window.graphfield.shown()"), wanted, atol=1e-5)
    assert f"drug = {other}" in page.run("document.getElementById('state').textContent")


@pytest.mark.parametrize(
    ("moving", "said"),
    [
        ([0], "Of 3 pairs that are an edge in some rows only, none is seen to move"),
        ([1], "Of 3 pairs that are an edge in some rows only, 1 is seen to move"),
        ([1, 2, 3], ""),
        ([], ""),
    ],
)
def test_edges_that_come_and_go_and_do_not_move_are_near_the_cut(moving, said):
    rates = tuple(0.01 if pair in moving else 0.9 for pair in range(6))
    tests = EdgeRecord(tuple("abcd"), 100, None, (0.01,) * 6, rates)
    told = words.near_the_cut(tests, np.array([1, 0.5, 0.9, 0.1, 0, 1]))
    assert said in told
    assert bool(told) is bool(said)
    assert not words.near_the_cut(None, np.array([0.5]))


@pytest.mark.parametrize("n_crossing", [1, 3])
def test_shares_of_edges_are_not_drawn_for_one_edge_that_comes_and_goes(n_crossing):
    present = np.zeros(10)
    present[:n_crossing], present[8] = 0.25, 1.0
    pairs = [("a", f"n{i}") for i in range(10)]
    said = words.crossing(present, pairs)
    assert said == (
        "All rows have the same edges but for a \u2013 n0 (an edge in 25 % of the rows)."
        if n_crossing == 1
        else ""
    )


@needs_browser
def test_the_chip_of_a_pair_that_passes_has_the_strength_of_the_tests(opened):
    model, Z, found = model_and_tests()
    model = copy.copy(model)
    change_threshold(model, value=0.99)
    page = opened(
        model, Z, edges=json.loads(replace(EdgeRecord.of(found), n_rows=5, low=(), high=()).to_json())
    )
    chips = page.run("document.getElementById('chosen').textContent")
    assert "(no edge in the model; by the tests " in chips
