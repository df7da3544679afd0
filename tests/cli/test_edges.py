"""``graphfield edges``: a list that can be piped, a file, options that make no sense."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from graphfield.cli import main
from graphfield.inference.edge_tests import edge_table


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """One edge in all rows, one that changes its sign with age, three nodes alone."""
    rng = np.random.default_rng(0)
    age = rng.uniform(-1, 1, 400)
    X = rng.normal(size=(400, 6))
    X[:, 1] += 0.8 * X[:, 0]
    X[:, 3] += 0.9 * age * X[:, 2]
    frame = pd.DataFrame(X, columns=[f"n{i}" for i in range(6)]).assign(age=age)
    path = tmp_path_factory.mktemp("edges") / "table.csv"
    frame.to_csv(path, index=False)
    return path


def test_the_list_is_all_that_goes_to_the_output(table, capsys):
    assert main(["edges", str(table), "--covariates", "age"]) == 0
    said = capsys.readouterr()
    found = pd.read_csv(io.StringIO(said.out))
    assert {("n0", "n1"), ("n2", "n3")} <= set(zip(found.source, found.target, strict=True))
    assert (found.q_value <= 0.1).all()
    assert "15 pairs of nodes" in said.err
    assert main(["edges", str(table), "--covariates", "age", "--varying", "--fdr", "0.01"]) == 0
    moving = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(zip(moving.source, moving.target, strict=True)) == [("n2", "n3")]


def test_a_node_that_is_constant_at_a_level_is_named(table, tmp_path, capsys):
    """Though the level has too few rows for the data check to speak of it."""
    frame = pd.read_csv(table).assign(site=["b"] * 15 + ["a"] * 385)
    frame.loc[frame.site == "b", "n5"] = 0.0
    frame.to_csv(tmp_path / "table.csv", index=False)
    said = "graphfield: note: Nodes that have the same value in all rows of a level: 'n5' with site = 'b'."
    for asked in (["edges"], ["differences", "--between", "age=-0.5", "--and", "age=0.5"]):
        assert main([*asked, str(tmp_path / "table.csv"), "--covariates", "age,site"]) == 0
        assert capsys.readouterr().err.count(said) == 1


def test_where_to_ask_for_two_values_is_said_in_words_of_the_shell(table, tmp_path, capsys):
    site = np.where(np.arange(400) % 3, "north", "far south")
    pd.read_csv(table).assign(site=site).to_csv(tmp_path / "table.csv", index=False)
    said = "may see other pairs: "
    said += "graphfield differences TABLE ... --between 'site=far south' --and site=north."
    asked = ["edges", str(tmp_path / "table.csv"), "--covariates", "site"]
    assert main(asked) == 0
    assert said in capsys.readouterr().err
    assert main([*asked, "--out", str(tmp_path / "edges.json")]) == 0
    assert said in (tmp_path / "edges.json").read_text()


def test_a_file_and_all_pairs(table, tmp_path, capsys):
    out = tmp_path / "edges.csv"
    assert main(["edges", str(table), "--covariates", "age", "--all", "--out", str(out)]) == 0
    assert f"Wrote {out}." in capsys.readouterr().out
    found = pd.read_csv(out)
    assert len(found) == 15
    assert list(found.columns[2:5]) == ["estimate", "low", "high"], "as the notes say"
    assert found.estimate.between(found.low, found.high).all()
    assert main(["edges", str(table), "--covariates", "age", "--out", str(out)]) == 2
    assert "--force" in capsys.readouterr().err


def test_a_rate_just_above_the_level_stays_there_in_a_list(table, tmp_path, monkeypatch, capsys):
    def near(*tests):
        return edge_table(*tests).assign(q_value=0.1000012)

    monkeypatch.setattr("graphfield.inference.edges.edge_table", near)
    out = tmp_path / "edges.csv"
    asked = ["edges", str(table), "--covariates", "age", "--all"]
    assert main([*asked, "--out", str(out)]) == 0
    assert "none has an edge" in capsys.readouterr().out
    assert (pd.read_csv(out).q_value == 0.1000012).all(), "all digits in a file"
    assert main(asked) == 0
    assert (pd.read_csv(io.StringIO(capsys.readouterr().out)).q_value == 0.100001).all()


@pytest.mark.parametrize("fdr", ["0", "1", "nan"])
@pytest.mark.parametrize("command", [["edges"], ["differences", "--between", "age=0", "--and", "age=1"]])
def test_a_rate_that_is_none(table, capsys, command, fdr):
    assert main([command[0], str(table), "--covariates", "age", *command[1:], "--fdr", fdr]) == 2
    said = f"--fdr must be above 0 and below 1, got {fdr}. For every pair, use --all."
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("other", "said"), [("age=0.5", "are the same"), ("n5=1", "must name the same")])
def test_two_sides_are_called_by_their_options(table, capsys, other, said):
    asked = ["--covariates", "age,n5", "--between", "age=0.5", "--and", other]
    assert main(["differences", str(table), *asked]) == 2
    assert f"graphfield: --between and --and {said}" in capsys.readouterr().err


def test_differences_between_two_values_and_between_levels(table, tmp_path, capsys):
    sides = ["--between", "age=-0.7", "--and", "age=0.7"]
    assert main(["differences", str(table), "--covariates", "age", *sides]) == 0
    said = capsys.readouterr()
    found = pd.read_csv(io.StringIO(said.out))
    assert next(zip(found.source, found.target, strict=True)) == ("n2", "n3")
    assert found.difference[0] > 0.5
    assert "between age=-0.7 and age=0.7" in said.err
    assert "Tests of all edges and covariates ('graphfield edges') ask another question, and" in said.err
    assert "A test of all pairs together agrees (p < .001)." in said.err
    frame, out = pd.read_csv(table), tmp_path / "differences.csv"
    frame.assign(age=np.where(frame.age > 0, "old", "young")).to_csv(tmp_path / "t.csv", index=False)
    asked = ["--covariates", "age", "--between", "age", "--all", "--out", str(out)]
    assert main(["differences", str(tmp_path / "t.csv"), *asked]) == 0
    assert "between age=old and age=young" in capsys.readouterr().out
    assert len(pd.read_csv(out)) == 15


def test_differences_at_another_rate_are_counted_beside_those_of_the_summary(table, capsys):
    asked = ["differences", str(table), "--covariates", "age", "--between", "age=-0.7", "--and", "age=0.7"]
    assert main([*asked, "--fdr", "0.9"]) == 0
    said = capsys.readouterr()
    n_listed = len(said.out.splitlines()) - 1
    assert n_listed > 1
    assert f"Listed: {n_listed} pairs, at a false-discovery level of 0.9." in said.err
    assert main(asked) == 0
    assert "Listed" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--between", "age=1"], "give the other with --and NAME=VALUE"),
        (
            ["--between", "age"],
            "'age' is a number: give the values to compare, for example --between age=... --and age=....",
        ),
        (["--between", "age=a", "--and", "age=1"], "is numeric, but --between gives 'a'"),
        (["--between", "age=1", "--and", "1"], "--and expects covariate=value, got '1'"),
        (["--between", "age=1", "--and", "ages=2"], "Did you mean 'age'?"),
    ],
)
def test_differences_that_make_no_sense(table, capsys, more, said):
    assert main(["differences", str(table), "--covariates", "age", *more]) == 2
    assert said in capsys.readouterr().err
