"""``graphfield stability`` and ``graphfield plan``: lists that can be piped, files, bad options."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.cli import main

FEW = ["--pairs", "2", "--drops", "1", "--bootstraps", "2", "--covariates", "age"]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    X[:, 1] += 1.5 * X[:, 0]
    return pd.DataFrame(X, columns=list("abcd")).assign(age=rng.uniform(20, 80, 120))


@pytest.fixture(scope="module")
def table(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("stability") / "table.csv"
    frame.to_csv(path, index=False)
    return path


def test_the_list_is_all_that_goes_to_the_output(table, capsys, tmp_path):
    command = ["stability", str(table), *FEW, "--folder", str(tmp_path / "fits")]
    assert main(command) == 0
    said = capsys.readouterr()
    found = pd.read_csv(io.StringIO(said.out))
    assert ("a", "b") in set(zip(found.source, found.target, strict=True))
    assert (found.frequency >= 0.9).all()
    assert "RegGMM on 120 rows" in said.err
    assert len(gf.Stability.read(tmp_path / "fits").graphs) == 1 + 4 + 6 + 2
    out = tmp_path / "nodes.csv"
    assert main([*command, "--centrality", "strength", "--out", str(out)]) == 0
    assert set(pd.read_csv(out).node[:2]) == {"a", "b"}
    assert "CS coefficient" in capsys.readouterr().out


def test_at_one_value(table, capsys):
    assert main(["stability", str(table), *FEW, "--drops", "0", "--at", "age=50", "--all"]) == 0
    said = capsys.readouterr()
    assert "at age=50" in said.err
    assert len(pd.read_csv(io.StringIO(said.out))) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--frequency", "2"], "--frequency must be from 0 to 1"),
        (["--pairs", "-1"], "--pairs must be"),
        (["--at", "age=old"], "'age' is numeric"),
        (["--at", "size=3"], "no covariate called 'size'"),
    ],
)
def test_options_that_make_no_sense(table, capsys, options, message):
    assert main(["stability", str(table), *FEW, *options]) == 2
    assert message in capsys.readouterr().err


def test_a_plan_from_a_model(table, capsys, tmp_path):
    folder = tmp_path / "model"
    fit = [
        "fit",
        str(table),
        "--covariates",
        "age",
        "--model",
        "linear",
        "--no-verdict",
        "--out",
        str(folder),
    ]
    assert main(fit) == 0
    capsys.readouterr()
    options = ["--sets", "2", "--most-rows", "60", "--least", "0.3"]
    assert main(["plan", str(folder), *options]) == 0
    said = capsys.readouterr()
    assert "of the fitted model at a false discovery rate of 10%" in said.err
    assert pd.read_csv(io.StringIO(said.out)).n.tolist() == [60]


def test_a_plan_says_that_the_movement_it_takes_as_true_is_not_supported(table, capsys, tmp_path):
    fit = [
        "fit",
        str(table),
        "--covariates",
        "age",
        "--model",
        "linear",
        "--no-edges",
        "--out",
        str(tmp_path / "m"),
    ]
    assert main(fit) == 0
    for question, doubted in ((["--varying"], True), ([], False)):
        capsys.readouterr()
        options = ["--sets", "2", "--most-rows", "60", "--threshold", "0.01", *question]
        assert main(["plan", str(tmp_path / "m"), *options]) == 0
        assert ("Held-out rows do not support" in capsys.readouterr().err) is doubted


def test_a_source_that_is_none(capsys, tmp_path):
    assert main(["plan", str(tmp_path / "nothing")]) == 2
    assert "no setting ('G1'" in capsys.readouterr().err
