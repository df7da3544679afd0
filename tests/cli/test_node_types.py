"""Nodes that are no plain numbers, from the shell to the page."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from browser import chromium
from graphfield.cli import main
from graphfield.cli.check import _named_kinds


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """An answer and a kind that follow a number, a count alone."""
    rng = np.random.default_rng(0)
    number = rng.normal(size=300)
    frame = pd.DataFrame(
        {
            "number": number,
            "answer": np.where(rng.random(300) < 1 / (1 + np.exp(-2 * number)), "yes", "no"),
            "kind": rng.integers(0, 3, 300),
            "visits": rng.poisson(2, 300),
            "age": rng.uniform(20, 80, 300),
        }
    )
    path = tmp_path_factory.mktemp("kinds") / "table.csv"
    frame.to_csv(path, index=False)
    return path


def fit(table, out, *more):
    nodes = ["--nodes", "number,answer,kind,visits", "--no-verdict"]
    return main(["fit", str(table), "--covariates", "age", *nodes, "--out", str(out), *more])


@pytest.mark.parametrize(
    "model",
    [
        ["--model", "linear"],
        pytest.param(["--set", "rank=2", "--set", "max_steps=5"], marks=pytest.mark.slow),
    ],
)
def test_types_lead_from_the_table_to_the_graph(table, tmp_path, capsys, model):
    out = tmp_path / "model"
    types = ["--node-types", "kind=categorical, visits=count"]
    assert fit(table, out, *model, *types) == 0
    assert "few different values" not in capsys.readouterr().out
    model = gf.load(out)
    kinds = {"number": "gaussian", "answer": "binary", "kind": "categorical", "visits": "count"}
    assert model.node_kinds_ == kinds
    assert main(["graph", str(out), "--at", "age=50"]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(zip(found.source, found.target, strict=True)) == [("number", "answer")]
    assert found.partial_correlation[0] > 0.3


def test_columns_with_a_type_are_nodes(table, capsys):
    """Text is a node where it is said what it is; other columns without numbers are none."""
    types = ["--node-types", "answer=binary"]
    assert main(["check", str(table), "--covariates", "age", *types]) == 0
    said = capsys.readouterr().out
    assert "300 rows, 4 nodes, 1 covariate" in said
    assert "'answer'" in said
    assert main(["check", str(table), "--covariates", "age", "--nodes", "number,visits", *types]) == 2
    assert "answer" in capsys.readouterr().err


def test_edges_and_differences_of_kinds(table, tmp_path, capsys):
    nodes = ["--nodes", "number,answer,visits", "--node-types", "visits=count"]
    assert main(["edges", str(table), "--covariates", "age", *nodes]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert next(zip(found.source, found.target, strict=True)) == ("number", "answer")
    frame = pd.read_csv(table)
    frame["age"] = np.where(frame.age > 50, "old", "young")
    frame.loc[frame.age == "old", "number"] *= -1
    frame.to_csv(tmp_path / "t.csv", index=False)
    sides = ["--between", "age=young", "--and", "age=old"]
    assert main(["differences", str(tmp_path / "t.csv"), "--covariates", "age", *nodes, *sides]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert found[["source", "target"]].to_numpy().tolist() == [["number", "answer"]]
    assert found.difference[0] < -0.5


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--model", "kernel", "--node-types", "kind=categorical"], "Use --model linear or tree"),
        (["--model", "linear", "--node-types", "kind"], "--node-types expects column=kind, got 'kind'"),
        (["--model", "linear", "--node-types", "kind=cat"], "--node-types: column 'kind' must be one of"),
        (["--model", "linear", "--node-types", "kinds=count"], "Did you mean 'kind'?"),
        (["--model", "linear", "--node-types", "number=count"], "to be a count, a whole number from 0 on"),
        (
            ["--model", "static"],
            "fit --model dnncgm, linear, tree, auto or nodewise, whose nodes may be levels",
        ),
    ],
)
def test_types_that_make_no_sense(table, tmp_path, capsys, more, said):
    assert fit(table, tmp_path / "model", *more) == 2
    assert said in capsys.readouterr().err


def test_models_inside_others_are_told_the_types(table, tmp_path, capsys):
    out = tmp_path / "model"
    inside = ["--model", "ensemble", "--set", "estimator=linear", "--set", "resample=true"]
    assert fit(table, out, *inside, "--set", "n_members=2", "--node-types", "kind=categorical") == 0
    assert gf.load(out).node_kinds_["kind"] == "categorical"
    capsys.readouterr()
    assert main(["graph", str(out), "--at", "age=50"]) == 0
    assert "number,answer" in capsys.readouterr().out


def test_the_check_asks_in_the_words_of_the_shell(table, capsys):
    check = ["check", str(table), "--covariates", "age", "--nodes", "number,kind,visits"]
    assert main(check) == 0
    said = capsys.readouterr().out
    assert "if these are told (--node-types)" in said
    assert "node_types" not in said
    assert main([*check, "--node-types", "kind=categorical,visits=count"]) == 0
    assert "Nothing looks wrong" in capsys.readouterr().out
    assert main([*check, "--node-types", "kinds=categorical"]) == 2
    assert "--node-types names 'kinds', which is no node. Did you mean 'kind'?" in capsys.readouterr().err


@pytest.mark.skipif(chromium() is None, reason="no Chromium or Chrome on this machine")
def test_kinds_have_shapes_in_the_page(table, opened):
    frame = pd.read_csv(table)
    types = {"kind": "categorical", "visits": "count"}
    model = gf.RegGMM(node_types=types).fit(frame.drop(columns="age"), frame[["age"]])
    page = opened(model, frame[["age"]])
    drawn = page.run("[...document.querySelectorAll('#net g.node > .node')].map((s) => s.tagName)")
    assert drawn == ["circle", "path", "path", "path"]
    assert page.run("[...document.querySelectorAll('#net-shapes .group-key')].map((s) => s.textContent)") == [
        "number",
        "yes or no",
        "levels without an order",
        "count",
    ]


@pytest.mark.skipif(chromium() is None, reason="no Chromium or Chrome on this machine")
def test_an_edge_without_a_sign_is_not_drawn_as_a_positive_one(opened):
    rng = np.random.default_rng(0)
    number = rng.normal(size=300)
    kind = np.digitize(number + 0.5 * rng.normal(size=300), [-0.5, 0.5])
    nodes = pd.DataFrame(
        {"number": number, "other": number + rng.normal(size=300), "kind": np.array(["a", "b", "c"])[kind]}
    )
    model = gf.RegGMM().fit(nodes, rng.normal(size=(300, 1)))
    page = opened(model)
    lines = "[...document.querySelectorAll('#net line.edge')]"
    drawn = page.run(f"{lines}.map((line) => [line.pair, line.getAttribute('stroke')])")
    assert dict(drawn) == {0: "#b2182b", 1: "#57606a"}  # number-other and number-kind
    page.run(f"{lines}.find((line) => line.pair === 1).dispatchEvent(new Event('pointerenter'))")
    said = page.run("document.getElementById('net-says').textContent")
    assert "+" not in said
    assert "(edge, no sign)" in said
    assert "no sign" in page.run("document.getElementById('legend').textContent")


def test_tests_are_not_asked_what_was_told(table, capsys):
    """A node is what --node-types says; advice has options that the command has."""
    nodes = ["--nodes", "number,answer,kind,visits"]
    types = ["--node-types", "answer=binary,visits=count"]
    assert main(["edges", str(table), "--covariates", "age", *nodes, *types]) == 0
    said = capsys.readouterr().err
    for line in (
        "nodes: 2 numbers, 'number', 'kind'",
        "nodes: 1 binary, 'answer'",
        "nodes: 1 count, 'visits'",
    ):
        assert f"  {line}\n" in said
    assert "Node 'kind' (3 whole numbers" in said
    assert "'visits' (" not in said
    assert "Levels and counts may be nodes of the tests, if these are told (--node-types)" in said
    assert main(["edges", str(table), "--covariates", "age", *nodes, "--node-types", "answer=count"]) == 2
    said = capsys.readouterr().err
    assert "'answer' is to be a count, but line 2 holds" in said
    assert "If it has levels, say so (--node-types answer=binary); else leave it out." in said
    assert "--model" not in said
    X = pd.read_csv(table)[["number", "answer"]].assign(
        answer=lambda T: T.answer + T.index.astype(str).str[-1]
    )
    with pytest.raises(gf.DataError, match=r"node_types={'answer': 'categorical'}"):
        gf.RegGMM(node_types={"answer": "gaussian"}).fit(X, np.arange(300.0)[:, None])


def test_patterns_of_kinds_stand_for_columns():
    """What is named itself is as named; what no column matches is left for the error that names it."""
    columns = ["a1", "a2", "b", "c[1]"]
    assert _named_kinds("a*=ordinal,a2=count", columns) == "a1=ordinal,a2=count"
    assert _named_kinds("a2=count,a*=ordinal,c[1]=binary", columns) == "a2=count,a1=ordinal,c[1]=binary"
    assert _named_kinds("d*=count", columns) == "d*=count"
