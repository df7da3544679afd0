"""The report page without a browser: what is in the file, and that its program is the model."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from functools import partial
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from jinja2 import UndefinedError

import graphfield as gf
from conftest import change_threshold
from graphfield.analysis.rows import typical_row
from graphfield.cli import main
from graphfield.cli.report import table_command
from graphfield.data.covariate_rows import parse_covariates
from graphfield.data.covariates import Numeric
from graphfield.estimators.registry import ESTIMATORS, Entry
from graphfield.fields.program import NotExported, evaluate
from graphfield.inference.edge_record import EdgeRecord
from graphfield.inference.verdict import Verdict
from graphfield.numbers import Gain
from graphfield.report import rows as report_rows
from graphfield.report import words, write_report
from graphfield.report.figures import survey
from graphfield.report.frames import frames_program
from graphfield.report.rows import Rows
from graphfield.report.summary import FIRST, LAST, summary, warnings
from graphfield.templates import render as render_from
from report_cases import MODELS, fitted, some_rows, table, upper

pytestmark = pytest.mark.filterwarnings(
    "ignore::graphfield.ExtrapolationWarning", "ignore::graphfield.ThresholdWarning"
)
render = partial(render_from, "graphfield.report")
NASTY = ["</script><b>bold", '"><img src=x onerror=alert(1)>', "{{ data }}{% x %}", "<b>&\"'&lt;", "<!--"]
NASTY += ["ünï\u2028cödé"]
EVIDENCE = {
    "format": "graphfield-evidence",
    "format_version": 1,
    "verdict": "no evidence",
    "sentence": "The graph need not <vary>.",
    "gain_over_static": {"value": -0.002, "standard_error": 0.001},
    "gain_over_linear": None,
    "p_value": 0.4,
    "n_permutations": 99,
    "scheme": "rows shuffled",
    "covariates": [
        {
            "name": "age",
            "gain": 0.01,
            "standard_error": 0.002,
            "p_value": 0.01,
            "adjusted_p_value": 0.042,
            "verdict": "evidence",
            "sentence": "s",
        }
    ],
    "n_rows": 500,
    "n_folds": 5,
    "notes": ["Seen & noted."],
}
CHECK = {
    "format": "graphfield-data-check",
    "format_version": 2,
    "n_rows": 500,
    "rows_left_out": 3,
    "columns": [
        {"name": "<age>", "role": "covariate", "kind": "number", "missing": 3, "distinct": 90, "note": "n"}
    ],
    "changes": ["3 rows were dropped."],
    "warnings": [{"code": "c", "columns": ["n1"], "message": "n1 & n2 are copies.", "advice": "Drop one."}],
}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self._in: str | None = None

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._in = dict(attrs).get("id") if tag == "script" else None

    def handle_data(self, data):
        if self._in:
            self.scripts[self._in] = data
            self._in = None


def parsed(text: str) -> _Tags:
    parser = _Tags()
    parser.feed(text)
    return parser


def page_data(text: str) -> dict:
    return json.loads(parsed(text).scripts["page-data"])


def visible(text: str) -> str:
    """Without the program, the data and the style."""
    return re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)


def section(text: str, name: str) -> str:
    return re.search(rf'<section id="{name}".*?</section>', text, flags=re.DOTALL)[0]


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    return write_report(fitted("linear"), path, Z=table()[1]).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["patterns", "full head", "linear", "static", "tree", "by cluster", "moving scales"]
)
def test_the_program_is_the_model(name):
    model, Z = fitted(name), some_rows()
    np.testing.assert_allclose(
        evaluate(model.field_.program(), Z), upper(model.partial_correlations(Z)), atol=2e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_program_is_its_model(name):
    model, Z = fitted(name), some_rows()
    truth = upper(model.partial_correlations(Z))
    np.testing.assert_allclose(evaluate(model.field_.program(), Z), truth, atol=1e-5)
    if name not in ("static", "nodewise"):
        assert np.ptp(truth, axis=0).max() > 0.05, "a test of nothing: the graphs do not vary"


def test_a_level_that_training_did_not_have_gets_the_average():
    X, Z = table()
    model = gf.RegGMM(unknown="average").fit(X, Z)
    new = pd.DataFrame({"age": [40.0], "site": ["elsewhere"]})
    np.testing.assert_allclose(
        evaluate(model.field_.program(), new), upper(model.partial_correlations(new)), atol=1e-6
    )


def test_nothing_is_loaded_from_anywhere(page):
    found = parsed(page)
    for tag, attributes in found.tags:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            value = attributes.get(name) or ""
            assert not value or value.startswith(("#", "data:")), (tag, name, value)
        assert not [name for name in attributes if name.startswith("on")], "no handlers in the markup"
    policy = next(a["content"] for t, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(|WebSocket|<iframe", page)
    assert set(re.findall(r"https?://[^\s\"'<)]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert page.startswith("<!DOCTYPE html>\n<html lang=")


def test_every_place_of_the_template_is_filled(page):
    assert "{{" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    ids = [a["id"] for _, a in parsed(page).tags if a.get("id")]
    assert len(ids) == len(set(ids))
    wanted = set(re.findall(r'byId\("([^"]+)"\)', page))
    assert wanted <= set(ids), wanted - set(ids)


def test_names_are_harmless(tmp_path):
    X, Z = table()
    X = X.set_axis(NASTY, axis=1)
    levels = dict(zip("ABC", ["</script><b>", "'x\"", "&lt;"], strict=True))
    Z = pd.DataFrame({"<i>age</i>": Z["age"], "</title>": Z["site"].map(levels)})
    model = gf.RegGMM().fit(X, Z)
    fit = {"table": "<b>.csv", "rows": 500, "unused": ["<b>"]}
    groups = ["<b>", "<b>", "g", "g", "g", "&"]
    path = write_report(
        model,
        tmp_path / "p.html",
        Z=Z,
        title="<b>",
        fit=fit,
        evidence=EVIDENCE,
        check=CHECK,
        node_groups=groups,
    )
    text = path.read_text(encoding="utf-8")
    found = parsed(text)
    assert not {"b", "i", "img", "vary", "age"} & {tag for tag, _ in found.tags}
    data = page_data(text)
    assert data["nodes"] == NASTY
    assert data["groups"] == groups
    assert [c["name"] for c in data["covariates"]] == ["<i>age</i>", "</title>"]
    assert sorted(data["covariates"][1]["levels"]) == sorted(levels.values())
    clean = write_report(fitted("linear"), tmp_path / "q.html", Z=table()[1]).read_text(encoding="utf-8")
    assert text.count("<script") == clean.count("<script") == 3
    told = unescape(section(text, "summary"))  # once: what was escaped twice would not read as it was written
    assert f"{NASTY[0]} \u2013 {NASTY[1]}</strong>" in told
    assert "<i>age</i> (" in told


@pytest.mark.parametrize("name", ["</script>", "{{ 7 * 7 }}{% x %}", "<b>&\"'", "&lt;"])
def test_a_card_shows_names_as_they_were_written(name):
    check = {**CHECK, "changes": [name], "columns": [{"name": name}]}
    card = render("data", data_card=words.data_card(check, {"group": name, "unused": [name]}))
    texts: list[str] = []
    parser = HTMLParser()
    parser.handle_data = texts.append
    parser.feed(card)
    parser.close()
    assert texts.count(name) == 4


def text_of(item) -> str:
    return item.read_text(encoding="utf-8")


def is_code(item) -> bool:
    return item.name.endswith(".py")


def test_html_is_in_the_templates_which_trust_nothing_but_program_and_style():
    with pytest.raises(UndefinedError, match="test"):
        render("evidence", evidence={})
    folders = [files("graphfield.report"), files("graphfield.experiments")]
    written = "".join(text_of(item) for folder in folders for item in folder.iterdir() if is_code(item))
    assert not re.search(
        r"escape\(|import (escape|html)\b|Markup|<(p|li|h\d|td|strong|span|a|div)\b", written
    )
    pages = [item for folder in folders for item in (folder / "page").iterdir() if "jinja" in item.name]
    trusted = re.findall(r"{{ ([^}]*?) \| safe", "".join(map(text_of, pages)))
    assert sorted(trusted) == ["data", 'source("page.css")', 'source("table.css")', 'source(name ~ ".js")']


def test_the_words_of_evidence_and_cards(tmp_path):
    model, Z = fitted("linear"), table()[1]
    text = write_report(model, tmp_path / "a.html", Z=Z, evidence=EVIDENCE, check=CHECK).read_text(
        encoding="utf-8"
    )
    told = section(text, "evidence")
    assert "One graph for all" in section(text, "verdict")
    assert "p = .400 from 99 rearrangements" in told
    row = [">age<", ">.010<", ">.042<", "+1.0 % (± 0.2)"]
    assert [text.find(cell) for cell in row] == sorted(text.find(cell) for cell in row)
    assert text.index(">p</th>") < text.index(">Adjusted p</th>")
    assert -1 not in [text.find(cell) for cell in row]
    assert "Seen &amp; noted." in text
    assert text.count("n1 &amp; n2 are copies.") == text.count("Drop one.") == 1
    assert "3 rows were dropped." in text
    without = write_report(model, tmp_path / "b.html", evidence_command="graphfield evidence x").read_text(
        encoding="utf-8"
    )
    assert "No permutation test was made." in without
    assert page_data(without)["verdict"]["supported"] is None
    assert "<code>graphfield evidence x</code>" in without
    assert "saved without a record of its data" in without
    assert "drawn from the ranges" in without


def test_the_summary_counts_what_python_counts(tmp_path):
    model, Z = fitted("linear"), table()[1].iloc[:200]
    text = write_report(model, tmp_path / "a.html", Z=Z).read_text(encoding="utf-8")
    edges = upper(model.predict_graph(Z)).sum(axis=1)
    assert f"has {edges.mean():,.1f} of 15 possible edges on average" in text
    partial = upper(model.partial_correlations(Z))
    most = int(partial.std(axis=0).argmax())
    j, k = np.triu_indices(6, 1)
    assert f"n{j[most]} \u2013 n{k[most]}</strong>" in text
    weakest = re.findall(r"<strong>n(\d) \u2013 n(\d)</strong> (?:\(|<span>)[^)<]*; an edge in (\d+)", text)
    assert weakest, "a test of nothing"
    shares = model.predict_graph(Z).mean(axis=0)
    assert [int(w[2]) for w in weakest] == [
        max(1, round(100 * shares[int(w[0]), int(w[1])])) for w in weakest
    ]
    assert page_data(text)["chosen"][0] == most


def gain_of(value: float, standard_error: float) -> gf.ModelGain:
    gain = Gain(value, standard_error)
    return gf.ModelGain(gain, gain, Gain(0.3, 0.02), n_rows=500, n_units=500, n_folds=5)


def written(model, tmp_path, **records) -> str:
    path = write_report(model, tmp_path / "s.html", Z=table()[1].iloc[:60], overwrite=True, **records)
    return visible(path.read_text(encoding="utf-8"))


def test_rows_that_were_left_out_are_not_counted(tmp_path):
    X, Z = (part.copy() for part in table())
    X.iloc[:20, 2] = np.nan
    Z.iloc[15:30, 0] = np.nan
    check = gf.check_data(X, Z, missing="drop", planned=False).to_json()
    with pytest.warns(gf.DataWarning, match="Dropped 30 of 500"):
        model = gf.RegGMM(missing="drop").fit(X, Z)
    fit = {"table": "t.csv", "rows": len(X)}
    path = write_report(model, tmp_path / "p.html", Z=Z.dropna(), check=check, fit=fit)
    text = path.read_text(encoding="utf-8")
    used = int((X.notna().all(axis=1) & Z.notna().all(axis=1)).sum())
    assert used == 470
    told = "470 rows of t.csv (30 left out: missing or infinite values)"
    assert f"fitted to {told}" in text
    assert "<dd>470 (30 left out" in section(text, "data")
    rows = "Rows: 485 of the table that have all covariates"
    assert rows in text
    assert "the fit used 470 rows and left out 30" in text
    assert "500 rows" not in visible(text.replace("30 of 500 rows", ""))


def test_warnings_of_the_data_check_are_at_the_top(tmp_path):
    told = section(written(fitted("linear"), tmp_path, check=CHECK), "look")
    assert "One thing in the data is worth a look" in told
    assert (
        "<li><details><summary><span>n1 &amp; n2 are copies.</span></summary>Drop one.</details></li>" in told
    )
    many = {**CHECK, "warnings": [{"message": f"Sign {i}."} for i in (*range(7), 3)]}
    told = section(written(fitted("linear"), tmp_path, check=many), "look")
    assert "7 things in the data are worth a look" in told
    assert re.findall(r"Sign \d|and \d more", told) == [
        *(f"Sign {i}" for i in range(5)),
        "and 2 more",
        "Sign 5",
        "Sign 6",
    ]
    shape = {**CHECK, "warnings": [{"code": "skewed-nodes", "message": "n1 is skewed."}]}
    told = written(fitted("linear"), tmp_path, check=shape)
    assert "n1 is skewed." in section(told, "data")
    for plain in (told, written(fitted("linear"), tmp_path)):
        assert "worth a look" not in plain


def test_what_may_make_the_graph_wrong_is_said_first():
    codes = ["rare-category", "something new", "few-rows", "skewed-nodes", "duplicate-nodes"]
    check = {"warnings": [{"code": code, "message": code} for code in codes]}
    first = [message for message, _ in warnings(check)]
    assert first == ["duplicate-nodes", "few-rows", "something new", "rare-category"]
    checks = "".join(text_of(item) for item in files("graphfield.check").iterdir() if is_code(item))
    assert [code for code in (*FIRST, *LAST) if f'"{code}"' not in checks] == []


def test_the_verdict_stands_first_and_once(tmp_path):
    told = written(fitted("linear"), tmp_path, evidence=EVIDENCE)
    first = told.index('<section id="verdict"')
    assert first < told.index("One graph for all") < told.index('<section id="summary"')
    assert told.count("One graph for all") == 1
    assert told.index("<canvas") < told.index('<section id="evidence"'), "the graph comes before the details"
    untested = written(fitted("linear"), tmp_path)
    assert "No permutation test was made" in section(untested, "verdict")
    assert re.search(r'<section id="evidence"[^>]* hidden>', untested)
    assert '<a href="#evidence" hidden>' in untested


def test_gains_of_the_test_are_told_from_those_of_the_verdict(tmp_path):
    told = section(written(fitted("linear"), tmp_path, evidence=EVIDENCE), "evidence")
    assert ">Gain of ridge regressions</th>" in told
    assert "other shares than those of the verdict, which are of the fitted model" in told


@pytest.mark.parametrize(
    ("known", "tests", "said"),
    [
        ({"supported": False}, None, "Held-out rows do not support this movement"),
        ({"test": "no"}, None, "Tests do not see that the graph moves"),
        ({}, EdgeRecord(), "Tests do not see that the graph moves"),
        ({"test": "yes"}, EdgeRecord(), "Tests do not tell with which covariate the graph moves"),
        ({"test": "yes", "matter": ("age",)}, None, "Tests see the graph move with age; along site, sex,"),
        ({"test": "no", "matter": ("age",)}, None, "Tests do not see that the graph moves"),
        (
            {"test": "no", "matter": ("age",)},
            EdgeRecord(movers=("a - b",), moved_by=("sex",)),
            "Tests of single pairs see the graph move with sex; along age, site,",
        ),
        ({}, EdgeRecord(movers=("a - b",), moved_by=("sex",)), "move with sex; along age, site, what is dr"),
        ({"test": "yes", "matter": ("age",), "unused": ("site", "sex")}, EdgeRecord(), ""),
        ({}, None, ""),
    ],
)
def test_movement_that_tests_do_not_see_is_doubted(known, tests, said):
    given = {"answer": "", "supported": True, "test": "not run", "model": "better", **known}
    verdict = Verdict(sentence="", reasons="", **given)
    told = words.unsure_movement(verdict, tests, ["age", "site", "sex"])
    assert said in told
    assert bool(told) is bool(said)


def test_pictures_of_connectivity_say_where_tests_see_nothing(tmp_path):
    seen = {**EVIDENCE, "p_value": 0.01}
    told = section(written(fitted("linear"), tmp_path, evidence=seen), "connectivity")
    assert "Tests see the graph move with age; along site, what is drawn may be noise of the fit." in told
    told = section(written(fitted("linear"), tmp_path, evidence=EVIDENCE), "connectivity")
    assert "Tests do not see that the graph moves: " in told, "the test of all together does not confirm age"
    assert "noise of the fit" not in section(written(fitted("linear"), tmp_path), "connectivity")


def test_the_picture_of_training_says_what_a_good_one_looks_like(tmp_path):
    told = section(written(fitted("patterns"), tmp_path), "training")
    assert "lower is better" in told
    assert "In a good fit both fall, level off and stay close together" in told


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"best_step_": 1200, "variation_": 1.0},
            "Kept: step 1,200, where held-out rows have the least loss (0.500). In",
        ),
        (
            {"best_step_": 600, "variation_": 0.6},
            "step 600, with 60 % of how its graph moves, where held-out rows have the least loss with 8 "
            "patterns (0.510): more patterns are not clearly better. In",
        ),
        ({"best_step_": 1800}, "Kept: step 1,800, the last. In"),
        ({"variation_": 0.0}, "None of these steps was kept, but one graph for all: "),
        ({"additive_": True}, "None of these steps was kept: edges that follow single covariates predict"),
    ],
)
def test_the_picture_of_training_says_what_was_kept(changed, said):
    model, losses = copy.copy(fitted("patterns")), [0.7, 0.51, 0.52, 0.5, 0.6]
    steps = {"step": [0, 600, 1200, 1200, 1800], "rank": [8, 8, 8, 16, 16]}
    history = pd.DataFrame({**steps, "train_loss": losses, "held_out_loss": losses})
    vars(model).update({"additive_": False, "variation_": 1.0, "training_": history, **changed})
    assert said in words.training(model)["note"]
    kept = [mark for mark in words.training_lines(model)["marks"] if mark[1] == "kept"]
    assert kept == ([[changed["best_step_"], "kept", 1]] if "best_step_" in changed else [])


def test_a_covariate_without_a_p_value_says_why():
    line = {"name": "site", "sentence": "site cannot be told apart."}
    told = words.evidence({"covariates": [{**line, "p_value": None, "adjusted_p_value": None}]})
    assert told["gains"] == [["site", "", "", "site cannot be told apart."]]
    assert words.evidence({"covariates": [{**line, "p_value": 0.2}]})["gains"] == [["site", ".200", "", ""]]


def test_a_gain_of_nothing_says_that_no_movement_was_chosen():
    line = {"name": "site", "p_value": 0.2, "gain": 0.0, "standard_error": 0.0}
    assert words.evidence({"covariates": [line]})["gains"] == [["site", ".200", "", "no movement chosen"]]


@pytest.mark.parametrize(
    ("p_value", "digits"), [(0.0009, "< .001"), (0.001, ".001"), (0.05, ".050"), (0.4, ".400"), (1, "1.000")]
)
def test_p_values_have_one_format(p_value, digits):
    found = {
        **EVIDENCE,
        "p_value": p_value,
        "covariates": [{**EVIDENCE["covariates"][0], "p_value": p_value}],
    }
    told = words.evidence(found)
    assert told["gains"][0][1] == digits
    assert told["test"][0] == f"p {'' if digits[0] == '<' else '= '}{digits} from 99 rearrangements"


def test_of_edges_that_stand_still_the_strongest_are_drawn_first(tmp_path):
    model = fitted("static")
    text = write_report(model, tmp_path / "p.html", Z=table()[1]).read_text(encoding="utf-8")
    sizes = np.abs(upper(model.partial_correlations(table()[1].iloc[:1]))[0])
    chosen = page_data(text)["chosen"]
    assert chosen
    assert sorted(sizes[chosen]) == sorted(sizes)[-len(chosen) :]


def test_pairs_that_are_too_weak_on_average_are_named(tmp_path):
    model = copy.copy(fitted("linear"))
    sizes = np.sort(np.abs(upper(model.partial_correlations(table()[1].iloc[:60])).mean(axis=0)))
    change_threshold(model, value=float(sizes[-2:].mean()), clear=~np.eye(6, dtype=bool))
    told = section(written(model, tmp_path, gain=gain_of(0.001, 0.001)), "summary")
    assert "The average graph has 1 of 15 possible edges" in told
    assert "14 more stand clear of their noise but are weaker on average: " in told
    assert f"{sizes[-2]:.2f})" in told


def test_movement_that_is_not_supported_is_not_described(tmp_path):
    told = section(written(fitted("linear"), tmp_path), "summary")
    assert re.search(r"age \(0\.\d+\)", told)
    assert "The edges that vary most" in told
    doubtful = section(written(fitted("linear"), tmp_path, gain=gain_of(0.001, 0.001)), "summary")
    assert "The average graph has" in doubtful
    assert not re.search("vary|moves the graph|nine rows in ten", doubtful)
    mean = upper(fitted("linear").partial_correlations(table()[1].iloc[:60])).mean(axis=0)
    most = int(np.abs(mean).argmax())
    j, k = np.triu_indices(6, 1)
    first = f"<li><strong>n{j[most]} \u2013 n{k[most]}</strong> <span>{words.number(mean[most])}</span></li>"
    assert first in doubtful.replace("\n", "").split("<ol")[1].split("</ol>")[0]
    assert ">The strongest edges</h2>" in doubtful


def test_the_verdict_comes_before_everything_and_decides_what_is_shown(tmp_path):
    model, Z = fitted("linear"), table()[1]
    for gain, supported in ((gain_of(0.05, 0.01), True), (gain_of(0.001, 0.01), False)):
        path = write_report(model, tmp_path / f"{supported}.html", Z=Z, gain=gain)
        text = path.read_text(encoding="utf-8")
        verdict = page_data(text)["verdict"]
        assert verdict["supported"] is supported
        assert verdict["gain"]["over_average"] == gain.over_average.to_json()
        assert verdict["sentence"] in unescape(section(text, "verdict"))
        assert ("Shown is the average graph" in section(text, "explore")) is not supported
        assert (">The average graph over the rows</h2>" in section(text, "explore")) is not supported
        assert (">The graph at one value of the covariates</h2>" in text) is supported


@pytest.mark.parametrize("supported", [True, False])
def test_pairs_that_are_drawn_first_are_edges_of_what_is_shown(tmp_path, supported):
    """Of the average graph where movement is not supported; else at typical covariates or in most rows."""
    model, Z = copy.copy(fitted("linear")), table()[1]
    partial, n_empty = upper(model.partial_correlations(Z)), 0
    for cut in (0.05, 0.2):
        change_threshold(model, value=cut)
        gain = gain_of(0.05 if supported else 0.001, 0.01)
        path = write_report(model, tmp_path / "p.html", Z=Z, gain=gain, overwrite=True)
        page = page_data(path.read_text(encoding="utf-8"))
        edges = (np.abs(partial.mean(axis=0)) > cut) & model.threshold_.clear_pairs
        if supported:
            typical = pd.DataFrame([{c["name"]: c["start"] for c in page["covariates"]}])
            share = upper(model.predict_graph(Z)).mean(axis=0)
            edges = upper(model.predict_graph(typical))[0] | (share > 0.5)
        assert edges[page["chosen"]].all()
        assert len(page["chosen"]) == min(3, edges.sum())
        rest = np.setdiff1d(np.flatnonzero(edges), page["chosen"])
        spread = partial.std(axis=0)
        assert not len(rest) or spread[rest].max() <= spread[page["chosen"]].min() + 1e-6
        n_empty += not edges.any()
    assert n_empty < 2


def test_an_edge_is_one_from_both_nodes(tmp_path):
    """As in Python: an edge whose weaker direction is below the threshold is none."""
    told = section(written(fitted("linear"), tmp_path), "explore")
    assert "above the threshold from both nodes" in told
    assert "either node" not in told


def test_a_model_without_an_edge_says_so(tmp_path):
    model = copy.copy(fitted("linear"))
    change_threshold(model, value=1.0)
    text = write_report(model, tmp_path / "a.html", Z=table()[1]).read_text(encoding="utf-8")
    told = section(text, "summary")
    assert "no edge that stands clear of its noise</strong>" in told
    most = np.abs(upper(model.partial_correlations(table()[1]))).max()
    assert f"the largest |partial correlation| of any pair is {most:.3f}" in told
    assert "vary most" not in told
    assert page_data(text)["chosen"] == []


def test_partial_correlations_at_the_end_of_the_scale_are_marked():
    model, Z = fitted("linear"), table()[1].iloc[:30]
    found, pairs = survey(model.field_, Z, None), [(f"a{i}", f"b{i}") for i in range(15)]
    rows = Rows.of(model.field_, Z)
    least, most = found.least.clip(-0.99, 0), found.most.clip(0, 0.99)
    told = summary(model.field_, rows, replace(found, least=least, most=most), {}, pairs)
    assert "end of the scale" not in render("summary", summary=told)
    most[3] = 0.996
    told = summary(model.field_, rows, replace(found, least=least, most=most), {}, pairs)
    sentence = "<strong>a3 \u2013 b3</strong> reaches the end of the scale (\u00b11.00) at some rows"
    assert sentence in render("summary", summary=told)
    least[4:] = -1
    told = summary(model.field_, rows, replace(found, least=least, most=most), {}, pairs)
    assert "b7</strong> and 7 more reach the end" in render("summary", summary=told)


def test_the_page_calls_the_average_over_pairs_no_strength(page):
    measures = {m["name"]: m["values"] for m in page_data(page)["connectivity"]["measures"]}
    assert not [name for name in measures if "strength" in name]
    partial = np.abs(upper(fitted("linear").partial_correlations(table()[1])))
    np.testing.assert_allclose(
        measures["Average |partial correlation| of all pairs"], partial.mean(axis=1), atol=2e-5
    )


def test_the_page_opens_where_the_shell_does(monkeypatch):
    """At the median of all rows, also where the page speaks of some of them only."""
    model, Z = fitted("linear"), table()[1]
    monkeypatch.setattr(report_rows, "MAX_ROWS", 7)
    rows = Rows.of(model.field_, Z)
    assert len(rows.Z) == 7
    assert rows.typical == typical_row(model.field_, Z)


def test_sliders_go_from_the_first_to_the_last_percentile(page):
    age, site = page_data(page)["covariates"]
    values = table()[1]["age"]
    assert values.min() < age["low"] <= values.quantile(0.01) + 0.1
    assert values.max() > age["high"] >= values.quantile(0.99) - 0.1
    assert age["low"] <= age["start"] <= age["high"]
    assert site["levels"] == ["A", "B", "C"]


def test_a_field_has_a_page(tmp_path):
    """What the page draws is that of its model; who fitted it, and how, a field does not know."""
    model, Z = fitted("linear"), table()[1]
    of_model, of_field = (
        write_report(given, tmp_path / f"{i}.html", Z=Z).read_text(encoding="utf-8")
        for i, given in enumerate((model, model.field_))
    )
    assert page_data(of_field) == page_data(of_model)
    assert section(of_field, "summary") == section(of_model, "summary")
    assert "<strong>LinearField</strong>: a fitted model." in of_field


def test_the_same_model_gives_the_same_file(tmp_path):
    Z, model = table()[1], fitted("patterns")
    first, again = (write_report(model, tmp_path / f"{i}.html", Z=Z).read_bytes() for i in (1, 2))
    assert first == again


def test_a_model_that_is_too_large_is_rounded_or_shown_as_a_grid(tmp_path):
    model, Z = fitted("full head"), table()[1]
    size = model.field_.program().size()
    kinds, notes = [], []
    for budget in (4 * size, 2 * size, 2 * size - 1):
        text = write_report(model, tmp_path / f"{budget}.html", Z=Z, max_bytes=budget).read_text(
            encoding="utf-8"
        )
        program = page_data(text)["program"]
        kinds.append(program.get("part", program)["forward"]["type"])  # inside its residual scales
        notes.append(text)
    assert kinds == ["float32", "float16", "int16"]
    assert "half precision" in notes[1]
    assert "its weights would make the file too large" in notes[2]
    assert "half precision" not in notes[0]


def test_a_grid_is_exact_at_its_knots_and_close_between_them():
    model = fitted("one network per node")
    with pytest.raises(NotExported, match="one network per node"):
        model.field_.program()
    typical, ranges = {"age": 50.0, "site": "A"}, {"age": [20.0, 80.0], "site": ["A", "B", "C"]}
    program, moving = frames_program(model.field_, typical, ranges, ["site", "age"], budget=30 * 45)
    assert sorted(moving) == ["age", "site"]
    knots = pd.DataFrame({"age": np.repeat(np.linspace(20, 80, 15), 3), "site": ["A", "B", "C"] * 15})
    np.testing.assert_allclose(evaluate(program, knots), upper(model.partial_correlations(knots)), atol=1e-6)
    between = pd.DataFrame({"age": [33.3, 61.8], "site": ["B", "C"]})
    np.testing.assert_allclose(
        evaluate(program, between), upper(model.partial_correlations(between)), atol=0.03
    )


def test_a_small_grid_moves_fewer_covariates_and_less_finely():
    model = fitted("linear")
    ranges = {"age": [20.0, 80.0], "site": ["A", "B", "C"]}
    grid = [
        frames_program(model.field_, {"age": 50.0, "site": "A"}, ranges, ["age", "site"], budget=30 * n)[
            0
        ].patterns.shape[1]
        for n in (1000, 20, 9, 5, 2)
    ]
    assert grid == [45, 18, 9, 5, 1]


def test_node_groups_must_fit(tmp_path):
    model = fitted("linear")
    with pytest.raises(gf.exceptions.DataError, match="one entry for each of the 6 nodes, got 2"):
        write_report(model, tmp_path / "a.html", node_groups=["a", "b"])
    with pytest.raises(gf.exceptions.DataError, match="every node a group, but it lacks 'n1'"):
        write_report(
            model, tmp_path / "a.html", node_groups={"n0": "x"} | {f"n{i}": "x" for i in range(2, 6)}
        )


@pytest.fixture
def folder(tmp_path):
    path = fitted("linear").save(tmp_path / "model")
    table()[1].iloc[:50].to_csv(path / "covariates.csv", index=False)
    (path / "fit.json").write_text(json.dumps({"table": "t.csv", "rows": 500, "covariates": ["age", "site"]}))
    return path


def test_the_command_writes_one_file(folder, tmp_path, capsys):
    assert main(["report", str(folder)]) == 0
    assert "report.html" in capsys.readouterr().out
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "Graphs of t.csv" in text
    assert "Rows: 50 of the training table" in text
    assert f"graphfield evidence t.csv --covariates age,site --out {folder}/evidence.json" in text
    assert main(["report", str(folder)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main(["report", str(folder), "--force", "--title", "Mine"]) == 0
    assert "<h1>Mine</h1>" in (folder / "report.html").read_text(encoding="utf-8")
    assert main(["report", str(folder), "--out", str(tmp_path / "x.pdf")]) == 2


def test_the_command_to_test_names_what_the_fit_was_given(tmp_path):
    fit = {
        "table": "my table.csv",
        "covariates": ["age"],
        "nodes": ["a", "b"],
        "unused": ["id"],
        "group": "id",
    }
    told = table_command("evidence", fit, tmp_path / "evidence.json")
    wanted = "graphfield evidence 'my table.csv' --covariates age --nodes a,b --group id --out"
    assert told == f"{wanted} {tmp_path}/evidence.json"
    assert "--covariates ..." in table_command("edges", None, tmp_path / "edges.json")


def test_the_command_reads_what_the_folder_holds(folder, tmp_path, capsys):
    (folder / "evidence.json").write_text(json.dumps(EVIDENCE))
    (folder / "data_check.json").write_text(json.dumps(CHECK))
    groups = tmp_path / "groups.csv"
    pd.DataFrame({"node": [f"n{i}" for i in range(6)], "group": list("aabbcc")}).to_csv(groups, index=False)
    out = tmp_path / "page.html"
    assert main(["report", str(folder), "--out", str(out), "--node-groups", str(groups)]) == 0
    text = out.read_text(encoding="utf-8")
    assert "One graph for all" in text
    assert "worth a look" in text
    assert page_data(text)["groups"] == list("aabbcc")
    (folder / "evidence.json").write_text("{")
    assert main(["report", str(folder), "--out", str(tmp_path / "y.html")]) == 2
    assert "evidence.json is damaged" in capsys.readouterr().err


@pytest.mark.parametrize("written", [[0.0, 1.0], ["0.0", "1.0"], [0, 1]])
def test_two_numbers_are_levels_of_a_page_however_they_are_written(written):
    """Beside a missing cell pandas has 0.0 and 1.0, and so has the file of rows in a model's folder."""
    rng = np.random.default_rng(0)
    smoke, X = rng.integers(0, 2, 200), rng.normal(size=(200, 3))
    field = gf.RegGMM(ridge=0.1).fit(X, pd.DataFrame({"smoke": smoke.astype(float)})).field_
    rows = Rows.of(field, pd.DataFrame({"smoke": np.array(written)[smoke]}))
    (told,) = rows.describe_covariates(field)
    assert told["levels"] == ["0", "1"]
    assert told["counts"] == np.bincount(smoke).tolist()
    assert told["start"] in told["levels"]
    read = parse_covariates(b"smoke\n0.0\n1.0\n", Path("covariates.csv"), field.schema.encoder)
    assert read["smoke"].tolist() == ["0", "1"]


def test_levels_that_read_as_numbers_stay_levels(tmp_path):
    X, Z = table()
    Z = pd.DataFrame({"age": Z["age"], "arm": Z["site"].map({"A": "01", "B": "1", "C": "02"})})
    path = gf.RegGMM().fit(X, Z).save(tmp_path / "model")
    Z.to_csv(path / "covariates.csv", index=False)
    assert main(["report", str(path)]) == 0
    arm = page_data((path / "report.html").read_text(encoding="utf-8"))["covariates"][1]
    assert dict(zip(arm["levels"], arm["counts"], strict=True)) == Z["arm"].value_counts().to_dict()


@pytest.mark.skipif("date" not in Numeric.__dataclass_fields__, reason="dates are no covariates here")
def test_a_date_is_a_date_in_the_page(tmp_path):
    X, Z = table()
    Z = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=len(Z)), "site": Z["site"]})
    model = gf.RegGMM().fit(X, Z)
    text = write_report(model, tmp_path / "p.html", Z=Z).read_text(encoding="utf-8")
    day = page_data(text)["covariates"][0]
    assert day["date"]
    assert pd.Timestamp(day["start"], unit="D").year == 2020
    assert abs(day["low"] - 18262 - 0.01 * 500) <= 2
    folder = model.save(tmp_path / "model")
    Z.to_csv(folder / "covariates.csv", index=False)
    assert main(["report", str(folder)]) == 0


def test_no_covariates_one_graph(tmp_path):
    X, Z = table()
    model = gf.GraphicalLasso(n_penalties=3).fit(X, Z[[]])
    text = write_report(model, tmp_path / "p.html", Z=Z[[]]).read_text(encoding="utf-8")
    assert page_data(text)["covariates"] == []
    assert "one graph for all" in text


def test_the_parts_of_the_page_are_in_the_package():
    folder = files("graphfield.report") / "page"
    names = {item.name for item in folder.iterdir()}
    assert {"report.html.jinja", "page.css", "model.js", "main.js"} <= names


def test_the_subtitle_says_what_the_model_is(tmp_path):
    """A model of a kind that may move, and does not, is not called by how it would."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(80, 4)), pd.DataFrame({"age": rng.uniform(20, 80, 80)})
    still = gf.TreeCGM(max_leaves=1).fit(X, Z)
    text = write_report(still, tmp_path / "a.html", Z=Z).read_text(encoding="utf-8")
    assert "</strong>: one graph for everybody; such a model may follow the covariates, this one d" in text
    text = write_report(fitted("static"), tmp_path / "b.html", Z=table()[1]).read_text(encoding="utf-8")
    assert "</strong>: one sparse graph for everybody." in text
    text = write_report(fitted("linear"), tmp_path / "c.html", Z=table()[1]).read_text(encoding="utf-8")
    assert "</strong>: edges are linear in the covariates." in text
    assert all(entry.how != Entry.how for entry in ESTIMATORS.values()), "a new one has words of its own"


def test_objects_and_what_their_files_hold_make_the_same_page(tmp_path):
    model, (X, Z) = fitted("linear"), table()
    found, check = gf.dependence_test(X, Z, n_permutations=19, random_state=0), gf.check_data(X, Z)
    files = {"evidence": json.loads(found.to_json()), "check": check.to_json()}
    pages = [
        write_report(model, tmp_path / f"{i}.html", Z=Z, **parts).read_text(encoding="utf-8")
        for i, parts in enumerate([{"evidence": found, "check": check}, files])
    ]
    assert pages[0] == pages[1]
    assert "from 19 rearrangements" in section(pages[0], "evidence")
    with pytest.raises(gf.ModelFileError, match="must be a mapping"):
        write_report(model, tmp_path / "other.html", Z=Z, evidence=check)


@pytest.mark.parametrize("theme", [":root {", ":root[data-theme=dark] {"])
def test_words_stand_out_from_what_is_behind_them(theme):
    """By the ratio of WCAG 2.1, level AA: 4.5 for text, 3 for lines that mean something."""
    style = (Path(words.__file__).parent / "page" / "page.css").read_text(encoding="utf-8")
    block = style[style.index(theme) :].split("}")[0]
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]+)", block))

    def light(colour):
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = np.array([int(digits[i : i + 2], 16) for i in (0, 2, 4)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    def ratio(one, other):
        dark, bright = sorted((light(colours[one]), light(colours[other])))
        return (bright + 0.05) / (dark + 0.05)

    texts = [(text, behind) for text in ("ink", "soft", "accent") for behind in ("paper", "pale")]
    texts += [("ink", behind) for behind in ("note", "yes", "press")]
    assert {pair: ratio(*pair) for pair in texts if ratio(*pair) < 4.5} == {}
    marks = [(mark, "paper") for mark in ("plus", "minus", "neutral", "node", "axis")]
    assert {pair: ratio(*pair) for pair in marks if ratio(*pair) < 3} == {}
