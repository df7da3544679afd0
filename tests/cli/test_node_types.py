"""Nodes that are no plain numbers, from the shell to the page."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from browser import chromium
from graphfield.cli import main


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


def test_types_lead_from_the_table_to_the_graph(table, tmp_path, capsys):
    out = tmp_path / "model"
    types = ["--node-types", "kind=categorical, visits=count"]
    assert fit(table, out, "--model", "linear", *types) == 0
    assert "few different values" not in capsys.readouterr().out
    model = gf.load(out)
    kinds = {"number": "gaussian", "answer": "binary", "kind": "categorical", "visits": "count"}
    assert model.node_kinds_ == kinds
    assert main(["graph", str(out), "--at", "age=50"]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(zip(found.source, found.target, strict=True)) == [("number", "answer")]
    assert found.partial_correlation[0] > 0.3


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--model", "tree", "--node-types", "kind=categorical"], "Use --model linear or nodewise"),
        (["--model", "linear", "--node-types", "kind"], "--node-types expects column=kind, got 'kind'"),
        (["--model", "linear", "--node-types", "kind=cat"], "--node-types: column 'kind' must be one of"),
        (["--model", "linear", "--node-types", "kinds=count"], "Did you mean 'kind'?"),
        (["--model", "linear", "--node-types", "number=count"], "to be a count, a whole number from 0 on"),
        (["--model", "static"], "fit --model linear or nodewise, whose nodes may be levels"),
    ],
)
def test_types_that_make_no_sense(table, tmp_path, capsys, more, said):
    assert fit(table, tmp_path / "model", *more) == 2
    assert said in capsys.readouterr().err


@pytest.mark.skipif(chromium() is None, reason="no Chromium or Chrome on this machine")
def test_kinds_have_shapes_in_the_page(table, opened):
    frame = pd.read_csv(table)
    types = {"kind": "categorical", "visits": "count"}
    model = gf.RegGMM(node_types=types).fit(frame.drop(columns="age"), frame[["age"]])
    page = opened(model, frame[["age"]])
    drawn = page.run("[...document.querySelectorAll('#net g.node > .node')].map((s) => s.tagName)")
    assert drawn == ["circle", "path", "path", "path"]
    assert page.run("document.getElementById('net-shapes').textContent") == (
        "Circle: number; square: yes or no; diamond: levels without an order; triangle: count."
    )
