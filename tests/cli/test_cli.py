"""The command line: the contract's commands, exit codes, one line per error, nothing half-written."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import small_data
from graphfield.analysis import intervals_at
from graphfield.cli import commands, main
from graphfield.cli.values import model_name
from graphfield.estimators import registry
from graphfield.graphs.export import edge_frame
from graphfield.inference.model_gain import ModelGain
from graphfield.inference.verdict import Fitted
from graphfield.numbers import Gain
from graphfield.report.folder import gain_record
from model_edits import signed

FAST = [
    "--set",
    "rank=None",
    "--set",
    "max_steps=20",
    "--set",
    "hidden_size=16",
    "--set",
    "device=cpu",
    "--no-verdict",
]


@pytest.fixture
def table(tmp_path):
    X, Z = small_data(90)
    path = tmp_path / "table.csv"
    pd.concat([X, Z], axis=1).assign(subject=np.repeat(np.arange(30), 3)).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    X, Z = small_data(90)
    pd.concat([X, Z], axis=1).to_csv(folder / "table.csv", index=False)
    out = folder / "model"
    assert main(["fit", str(folder / "table.csv"), "--covariates", "age,site", "--out", str(out), *FAST]) == 0
    return out


def fails(capsys, arguments, *messages, code=2):
    """The command fails with ``code`` and exactly one line on stderr that holds the messages."""
    try:
        got = main([str(a) for a in arguments])
    except SystemExit as stop:
        got = stop.code
    captured = capsys.readouterr()
    assert got == code
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1, captured.err
    for message in messages:
        assert message in lines[0]


def written_weights(text: str) -> list[float]:
    """To the last bit: pandas 2 reads numbers less exactly by default."""
    return [float(line["weight"]) for line in csv.DictReader(text.splitlines())]


def test_fit_then_graph(model, tmp_path, capsys):
    names = ["arrays.safetensors", "covariates.csv", "data_check.json", "fit.json", "gain.json", "model.json"]
    assert sorted(f.name for f in model.iterdir()) == names
    assert json.loads((model / "fit.json").read_text())["covariates"] == ["age", "site"]
    at = ["--at", "age=60", "--at", "site=B", "--threshold", "0.02"]
    capsys.readouterr()
    assert main(["graph", str(model), *at]) == 0
    printed = written_weights(capsys.readouterr().out)
    expected = gf.load(model).to_networkx({"age": 60, "site": "B"}, threshold=0.02)
    assert len(printed) == expected.number_of_edges() > 0
    exact = edge_frame(expected).weight
    assert printed == [float(f"{weight:.4g}") for weight in exact] != exact.tolist()
    assert main(["graph", str(model), *at, "--format", "csv"]) == 0
    asked = written_weights(capsys.readouterr().out)
    assert asked == exact.tolist()
    for ending in ("csv", "parquet", "graphml", "json"):
        out = tmp_path / f"g.{ending}"
        assert main(["graph", str(model), *at, "--format", ending, "--out", str(out)]) == 0
        assert out.stat().st_size > 0
    assert written_weights((tmp_path / "g.csv").read_text()) == exact.tolist()


def test_fit_uses_the_roles(table, tmp_path, capsys):
    out = tmp_path / "m"
    arguments = ["--covariates", "age", "--nodes", "n[0-2]", "--group", "subject", "--out", str(out)]
    assert main(["fit", str(table), *arguments, *FAST]) == 0
    fitted = gf.load(out)
    assert fitted.node_names_ == ["n0", "n1", "n2"]
    assert fitted.covariate_names_ == ["age"]
    said = capsys.readouterr().out
    assert "groups by 'subject'" in said
    assert "not used: 'n3'" in said


def test_models_can_be_compared_from_the_command_line(table, tmp_path, capsys):
    out = tmp_path / "m"
    arguments = ["fit", str(table), "--covariates", "age,site", "--group", "subject", "--out", str(out)]
    chosen = ["--model", "auto", "--set", "candidates=static,linear", "--no-verdict", "--details"]
    assert main([*arguments, *chosen]) == 0
    fitted = gf.load(out)
    assert fitted.summary_ in capsys.readouterr().out
    told = json.loads((out / "fit.json").read_text())
    assert told["chosen"] == fitted.chosen_
    assert [line["model"] for line in told["held_out"][:2]] == ["static", "linear"]
    fails(capsys, [*arguments, *chosen, "--force", "--checkpoint", tmp_path / "c"], "--model dnncgm")
    known = [f"{name} ({kind})" for name, kind in registry.short_names().items()]
    fails(capsys, [*arguments, "--force", "--model", "forest"], "there is no model 'forest'", *known)
    fails(capsys, [*arguments, "--force", "--model", "liner"], "Did you mean 'linear'?")
    fails(
        capsys,
        [*arguments, "--force", "--model", "auto", "--set", "rank=2"],
        "Unknown hyper-parameter 'rank'",
    )


def test_every_estimator_has_a_name():
    assert sorted(registry.short_names().values()) == sorted(registry.ESTIMATORS)
    for name, kind in registry.short_names().items():
        assert model_name(name) == model_name(kind) == model_name(kind.upper()) == name


@pytest.mark.parametrize(
    ("model", "kind", "options"),
    [
        ("linear", gf.RegGMM, []),
        ("TreeCGM", gf.TreeCGM, ["--set", "max_leaves=2", "--no-verdict"]),
        ("static", gf.GraphicalLasso, ["--set", "n_penalties=2"]),
        ("nodewise", gf.NodewiseLasso, ["--set", "penalty=0.1", "--no-verdict"]),
        ("clusters", gf.ByCluster, ["--set", "by=site", "--set", "estimator=linear", "--no-verdict"]),
        ("ensemble", gf.Ensemble, ["--set", "estimator=RegGMM", "--set", "resample=True", "--no-verdict"]),
    ],
)
def test_any_model_can_be_fitted(table, tmp_path, capsys, model, kind, options):
    out = tmp_path / "m"
    arguments = ["fit", str(table), "--covariates", "age,site", "--nodes", "n*", "--out", str(out)]
    assert main([*arguments, "--model", model, *options, "--details"]) == 0
    said = capsys.readouterr().out
    assert "Fitted " in said
    fitted = gf.load(out)
    assert isinstance(fitted, kind)
    assert json.loads((out / "fit.json").read_text())["model"] == kind.__name__
    assert main(["graph", str(out), "--threshold", "0.05"]) == 0
    noted = capsys.readouterr().err
    assert ("one graph for all" in noted) == (
        not Fitted.of(fitted, pd.read_csv(table)[["age", "site"]]).moves
    )
    if kind is gf.Ensemble:
        assert "The average of 5 fits of RegGMM to rows drawn with replacement" in said
        assert {type(member) for member in fitted.members_} == {gf.RegGMM}


@pytest.mark.parametrize("model", ["static", "nodewise"])
def test_one_graph_from_the_shell_is_not_made_of_means(tmp_path, model):
    """Two kinds, whose means go down where within each kind both nodes go up together."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"kind": np.repeat(["a", "b"], 60), "x1": rng.normal(size=120)})
    table["x2"] = table["x1"] + rng.normal(size=120) - 6 * (table["kind"] == "b")
    table.loc[table["kind"] == "b", "x1"] += 6
    table.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", str(tmp_path / "t.csv"), "--covariates", "kind", "--model", model, "--no-verdict", "--out"]
    assert (
        main([*fit, str(tmp_path / "m")])
        == main([*fit, str(tmp_path / "o"), "--set", "center=constant"])
        == 0
    )
    own, ignoring = (
        gf.load(tmp_path / name).partial_correlations(pd.DataFrame({"kind": ["a"]}))[0, 0, 1] for name in "mo"
    )
    assert own > 0.4
    assert ignoring < -0.4


def test_a_graph_without_covariates_is_that_of_typical_ones(model, tmp_path, capsys):
    def graph(*options, folder=model):
        capsys.readouterr()
        assert main(["graph", str(folder), "--threshold", "0.02", *options]) == 0
        return capsys.readouterr()

    Z = pd.read_csv(model / "covariates.csv")
    age, site = Z.age.median(), Z.site.mode()[0]
    typical = graph()
    assert f"typical values (median or most common level): age={age:g}, site={site}." in typical.err
    asked = graph("--at", f"age={age}", "--at", f"site={site}")
    assert typical.out == asked.out
    some = graph("--at", f"age={age}")
    assert some.out == asked.out
    assert f"--at does not name are at typical values (median or most common level): site={site}." in some.err
    assert "typical" not in asked.err
    assert asked.err == ""
    bare = tmp_path / "bare"
    shutil.copytree(model, bare)
    (bare / "covariates.csv").unlink()
    assert f"typical values (mean or most common level): age={Z.age.mean():g}" in graph(folder=bare).err


def test_movement_that_is_not_supported_gives_the_average_graph(model, tmp_path, capsys):
    """Without a place the average is shown and said; a place that is asked for comes with a note."""

    def graph(*options, value=0.001):
        gain = ModelGain(Gain(value, 0.01), None, None, n_rows=90, n_units=90, n_folds=5)
        (folder / "gain.json").write_text(json.dumps(gain_record(gain)))
        header = json.loads((folder / "model.json").read_text())
        header["files_sha256"].pop("gain.json", None)  # as if it had not been written with the model
        (folder / "model.json").write_text(signed(header))
        capsys.readouterr()
        assert main(["graph", str(folder), "--threshold", "0.02", *options]) == 0
        said = capsys.readouterr()
        return said.out, said.err.splitlines()

    folder = tmp_path / "m"
    shutil.copytree(model, folder)
    at = ["--at", "age=60", "--at", "site=B"]
    (plain, notes), (average, none), (placed, warned) = graph(), graph("--average"), graph(*at)
    assert (len(notes), len(none), len(warned)) == (1, 0, 1)
    assert "this is the average graph over the training rows: held-out rows do not support" in notes[0]
    assert "do not support how this model moves with 'age', 'site'; --average gives" in warned[0]
    assert plain == average != placed
    Z = pd.read_csv(folder / "covariates.csv")
    mean = gf.load(folder).partial_correlations(Z).mean(axis=0)
    expected = np.abs(mean[np.triu_indices(len(mean), 1)])
    assert written_weights(average) == pytest.approx(sorted(expected[expected > 0.02])[::-1], rel=1e-3)
    (typical, notes), supported = graph(value=0.05), graph(*at, value=0.05)
    assert typical != average
    assert "typical values" in notes[0]
    assert supported == (placed, [])
    fails(capsys, ["graph", folder, *at, "--average"], "Leave one of them out")


@pytest.mark.slow
def test_typical_dates(tmp_path, capsys):
    X, Z = small_data(90)
    day = pd.date_range("2020-01-01", periods=90).strftime("%Y-%m-%d")
    X.assign(age=Z.age, day=day).to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "m"
    command = ["fit", str(tmp_path / "t.csv"), "--covariates", "age,day", "--model", "linear"]
    for rows in ([], ["--no-rows", "--force"]):
        assert main([*command, "--no-verdict", "--out", str(out), *rows]) == 0
        assert main(["graph", str(out), "--threshold", "0.02"]) == 0
        assert "day=2020-02-14" in capsys.readouterr().err


def test_a_graph_where_no_row_is_near_says_so(tmp_path, capsys):
    """People of more than 50 came from July on; with --no-rows, nobody knows."""
    rng = np.random.default_rng(0)
    day, X = rng.integers(0, 364, 400), rng.normal(size=(400, 3))
    age = np.where(day >= 181, rng.integers(20, 81, 400), rng.integers(20, 51, 400))
    X[:, 1] += (age - 50) / 20 * X[:, 0]
    X[:, 2] += (day - 180) / 180 * X[:, 0]
    dates = (pd.Timestamp("2020-01-01") + pd.to_timedelta(day, unit="D")).strftime("%Y-%m-%d")
    pd.DataFrame(X, columns=list("abc")).assign(age=age, day=dates).to_csv(tmp_path / "t.csv", index=False)
    command = ["fit", str(tmp_path / "t.csv"), "--covariates", "age,day", "--model", "linear"]

    def told(*at):
        capsys.readouterr()
        named = [word for value in at for word in ("--at", value)]
        assert main(["graph", str(tmp_path / "m"), "--threshold", "0.02", *named]) == 0
        return capsys.readouterr().err

    assert main([*command, "--no-verdict", "--out", str(tmp_path / "m")]) == 0
    said = told("age=75", "day=2020-02-15")
    assert "no training row is near age=75 together with day=2020-02-15 (near the former, most have" in said
    assert re.search(r"most have day from 2020-0[78]-\d\d to 2020-12-\d\d\): the graph there is extra", said)
    for at in (["age=30", "day=2020-02-15"], ["age=75", "day=2020-11-15"], ["age=80"], []):
        assert "no training row" not in told(*at)
    assert main([*command, "--no-verdict", "--no-rows", "--force", "--out", str(tmp_path / "m")]) == 0
    assert "no training row" not in told("age=75", "day=2020-02-15")


def test_intervals_from_the_shell(table, model, tmp_path, capsys):
    out = tmp_path / "m"
    arguments = ["fit", str(table), "--covariates", "age,site", "--nodes", "n*", "--out", str(out)]
    fit = [*arguments, "--model", "linear", "--no-verdict"]
    assert main([*fit, "--intervals", "--members", "4", "--details"]) == 0
    said = capsys.readouterr().out
    assert "The average of 4 fits of RegGMM to rows drawn with replacement" in said
    assert "For bands that cover, add --edges, or run 'graphfield edges'" in said
    z = {"age": 60, "site": "B"}
    at = ["--at", "age=60", "--at", "site=B", "--threshold", "0.05", "--intervals"]
    assert main(["graph", str(out), *at, "--format", "csv"]) == 0
    printed = pd.read_csv(io.StringIO(capsys.readouterr().out))
    expected = intervals_at(gf.load(out), z).set_index(["source", "target"])
    assert len(printed) > 3
    for line in printed.itertuples():
        own = expected.loc[(line.source, line.target)]
        assert line.interval_low == pytest.approx(own.interval_low)
        assert line.interval_high == pytest.approx(own.interval_high)
        assert line.interval_low < line.partial_correlation < line.interval_high
    assert main(["graph", str(out), "--average", *at[4:], "--format", "csv"]) == 0
    average = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert len(average) > 3
    assert average.partial_correlation.between(average.interval_low, average.interval_high).all()
    assert main(["graph", str(out), *at, "--out", str(tmp_path / "g.graphml")]) == 0
    assert "interval_high" in (tmp_path / "g.graphml").read_text()
    capsys.readouterr()
    fails(capsys, ["graph", model, *at], "fit again with --intervals")
    fails(
        capsys,
        [*arguments, "--force", "--intervals", "--checkpoint", tmp_path / "c"],
        "--checkpoint is for one fit",
    )
    fails(capsys, [*arguments, "--force", "--intervals", "--model", "ensemble"], "--members")
    fails(capsys, [*arguments, "--force", "--intervals", "--members", "1"], "n_members must be")


def test_missing_values(table, tmp_path, capsys):
    frame = pd.read_csv(table)
    frame.loc[4, "n1"] = np.nan
    frame.to_csv(table, index=False)
    arguments = ["fit", table, "--covariates", "age", "--out", tmp_path / "m", *FAST]
    fails(capsys, arguments, "'n1' has 1 (first at line 6)", "--missing drop")
    assert not (tmp_path / "m").exists()
    assert main([*map(str, arguments), "--missing", "drop"]) == 0
    said = capsys.readouterr()
    assert said.out.count("Dropped 1 of 90 rows") == 1
    assert said.err == ""


def test_simulate_then_fit(tmp_path, capsys):
    out = tmp_path / "g1.npz"
    assert main(["simulate", "G1", "--n", "60", "--seed", "3", "--out", str(out)]) == 0
    sim = gf.make_setting("G1", 60, 3)
    with np.load(out) as stored:
        np.testing.assert_array_equal(stored["X"], sim.X)
        np.testing.assert_array_equal(stored["truth_skeleton"], sim.skeleton)
    assert main(["fit", str(out), "--covariates", "z1,z2", "--out", str(tmp_path / "m"), *FAST]) == 0
    assert len(gf.load(tmp_path / "m").node_names_) == 50
    capsys.readouterr()
    fails(capsys, ["simulate", "G1", "--n", "60", "--out", out], "already exists", "--force")
    assert main(["simulate", "G1", "--n", "70", "--out", str(out), "--force"]) == 0


def test_simulate_a_categorical_covariate_then_fit(tmp_path):
    out = tmp_path / "s2.npz"
    assert main(["simulate", "S2", "--n", "60", "--out", str(out)]) == 0
    arguments = ["fit", str(out), "--covariates", "site,age", "--out", str(tmp_path / "m"), *FAST]
    assert main(arguments) == 0
    fitted = gf.load(tmp_path / "m")
    assert fitted.covariate_names_ == ["site", "age"]
    assert len(fitted.node_names_) == 50


def test_simulate_nodes_of_several_kinds(tmp_path, capsys):
    out = tmp_path / "m1.npz"
    assert main(["simulate", "M1", "--n", "20", "--out", str(out)]) == 0
    assert "20 nodes (8 gaussian, 6 binary, 3 categorical, 3 count)" in capsys.readouterr().out
    sim = gf.make_setting("M1", 20, 0)
    with np.load(out) as stored:
        assert stored["truth_node_types"].tolist() == list(sim.node_types)
        np.testing.assert_array_equal(stored["truth_column_nodes"], sim.column_nodes)
    table = gf.read_table(out)
    assert list(table.columns) == [*(f"x{i + 1}" for i in range(20)), "z1", "z2"], "kinds are no column"


@pytest.mark.slow
def test_demo(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out), "--n", "300", "--n-test", "40"]) == 0
    said = capsys.readouterr().out
    for part in ("DNNCGM (defaults)", "graphical lasso", "told the clusters", "published", "0.980"):
        assert part in said
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["lines"][0]["method"] == "DNNCGM (defaults)"
    assert (out / "graphs.png").read_bytes()[:4] == b"\x89PNG"
    assert "graphfield demo: setting G1" in (out / "report.html").read_text(encoding="utf-8")
    assert gf.load(out / "model").node_names_[0] == "x1"
    fails(capsys, ["demo", "--out", out], "already exists", "--force")


def test_a_killed_fit_resumes_from_the_command_line(table, tmp_path, monkeypatch, capsys):
    from graphfield.training.checkpoint import StageFile

    arguments = ["fit", str(table), "--covariates", "age", "--checkpoint", str(tmp_path / "c"), *FAST]
    assert main([*arguments[:4], *FAST, "--out", str(tmp_path / "whole")]) == 0
    saved = StageFile.save

    def save_then_die(self, snapshot):
        saved(self, snapshot)
        if self.path.stem == "edges" and snapshot.step < 20:
            raise KeyboardInterrupt

    monkeypatch.setattr(StageFile, "save", save_then_die)
    capsys.readouterr()
    fails(capsys, [*arguments, "--out", tmp_path / "m"], "interrupted", code=130)
    monkeypatch.undo()
    assert not (tmp_path / "m").exists()
    assert main([*arguments, "--out", str(tmp_path / "m"), "--resume"]) == 0
    one, two = ((tmp_path / d / "arrays.safetensors").read_bytes() for d in ("whole", "m"))
    assert one == two


def test_training_that_breaks_down_is_a_failure(table, tmp_path, capsys):
    arguments = ["fit", table, "--covariates", "age", "--nodes", "n*", "--out", tmp_path / "m", *FAST]
    fails(capsys, [*arguments, "--set", "rank=None", "--set", "learning_rate=1e30"], "at step", code=1)
    assert not (tmp_path / "m").exists()


def test_extreme_values_that_are_used_as_they_are_are_refused(table, tmp_path, capsys):
    frame = pd.read_csv(table)
    frame[[f"n{i}" for i in range(6)]] *= 1e30
    frame.to_csv(table, index=False)
    arguments = ["fit", table, "--covariates", "age", "--nodes", "n*", "--out", tmp_path / "m", *FAST]
    fails(capsys, [*arguments, "--set", "standardize=False"], "cannot be computed with")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--covariates", "agee"], "Did you mean 'age'"),
        (["--covariates", "age", "--nodes", "age,n0"], "node or a covariate"),
        (["--covariates", "age", "--nodes", "site,n0", "--model", "static"], "'site' must hold numbers"),
        (["--covariates", "age", "--nodes", "n0"], "at least 2 nodes"),
        (["--covariates", "age", "--group", "sbject"], "Did you mean 'subject'"),
        (["--covariates", "age", "--set", "dropuot=0.1"], "Did you mean 'dropout'"),
        (["--covariates", "age", "--set", "dropout=-0.1"], "dropout must be a number in [0, 1)"),
        (["--covariates", "age", "--set", "dropout"], "--set expects name=value"),
        (["--covariates", "age", "--mising", "drop"], "Did you mean '--missing'"),
        (["--covariates", "age", "--missing", "ignore"], "invalid choice: 'ignore'"),
        ([], "required: --covariates"),
    ],
)
def test_bad_fit_requests(table, tmp_path, capsys, change, message):
    fails(capsys, ["fit", table, "--out", tmp_path / "m", *change], message)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.csv", None, "There is no file"),
        ("empty.csv", b"", "is empty"),
        ("photo.png", b"\x89PNG", "is not a table"),
        ("few.csv", b"a,b,z\n1,2,3\n2,1,4\n", "At least 10 rows are needed, got 2"),
        (
            "constant.csv",
            b"a,b,z\n" + b"".join(b"1,%d,%d\n" % (i, i * i) for i in range(20)),
            "Node 'a' has the same",
        ),
        ("double.csv", b"a,a,z\n1,2,3\n", "more than one column called"),
    ],
)
def test_bad_tables(tmp_path, capsys, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    fails(capsys, ["fit", tmp_path / name, "--covariates", "z", "--out", tmp_path / "m"], message)
    assert not (tmp_path / "m").exists()


def test_an_existing_or_unwritable_output(table, model, tmp_path, capsys):
    before = {f.name: f.read_bytes() for f in model.iterdir()}
    fails(capsys, ["fit", table, "--covariates", "age", "--out", model], "already exists", "--force")
    assert {f.name: f.read_bytes() for f in model.iterdir()} == before
    (tmp_path / "file").write_text("precious")
    fails(capsys, ["fit", table, "--covariates", "age", "--out", tmp_path / "file" / "m"], "Cannot write")
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--at", "age=60", "--at", "sight=A"], "no covariate called 'sight'"),
        (["--at", "age=60", "--at", "site=Z"], "'site' has 'Z'"),
        (["--at", "age=old", "--at", "site=A"], "'age' is numeric"),
        (["--at", "age=nan", "--at", "site=A"], "'age' is numeric"),
        (["--at", "age"], "--at expects covariate=value"),
        (["--at", "age=1", "--at", "age=2"], "twice"),
        (["--at", "sex=F", "--at", "age=60", "--at", "site=A"], "no covariate called 'sex'"),
        (["--at", "age=60", "--at", "site=A", "--threshold", "low"], "--threshold must be"),
        (
            ["--at", "age=60", "--at", "site=A", "--threshold", "-1"],
            "or a partial correlation, a number from 0 to 1",
        ),
        (["--at", "age=60", "--at", "site=A", "--threshold", "0.1", "--format", "parquet"], "binary"),
        (
            ["--at", "age=60", "--at", "site=A", "--threshold", "0.1", "--out", "g.txt"],
            "names no known format",
        ),
    ],
)
def test_bad_graph_requests(model, capsys, arguments, message):
    fails(capsys, ["graph", model, *arguments], message)


def test_only_options_of_the_command_are_suggested(table, capsys):
    """'--n-test' is one of 'demo'."""
    arguments = ["evidence", table, "--covariates", "age", "--test", "x"]
    fails(capsys, arguments, "arguments: --test x. See 'graphfield evidence --help'.")


def test_a_value_without_its_option(model, capsys):
    with pytest.raises(SystemExit):
        main(["graph", str(model), "--at", "age=60", "site=A"])
    said = capsys.readouterr().err
    assert "site=A. Each NAME=VALUE has the option before it, as in --at a=1 --at b=2." in said


def test_sizes_seeds_and_resuming_nothing(table, tmp_path, capsys):
    out = tmp_path / "demo"
    fails(capsys, ["demo", "--n", "-5", "--out", out], "--n must be at least 50")
    fails(capsys, ["demo", "--n-test", "0", "--out", out], "--n-test must be at least 1")
    fails(capsys, ["demo", "--seed", "-1", "--out", out], "--seed")
    fails(capsys, ["simulate", "G1", "--seed", "-1", "--out", tmp_path / "a.npz"], "must not be negative")
    fails(
        capsys, ["fit", table, "--covariates", "age", "--out", out, "--resume"], "--resume needs --checkpoint"
    )
    assert not out.exists()


def test_force_keeps_files_of_others(table, tmp_path, capsys):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "thesis.txt").write_text("precious")
    arguments = ["fit", table, "--covariates", "age", "--out", victim, "--force"]
    fails(capsys, arguments, "holds other files")
    assert (victim / "thesis.txt").read_text() == "precious"


def test_a_folder_as_table(tmp_path, capsys):
    (tmp_path / "dir.csv").mkdir()
    fails(capsys, ["fit", tmp_path / "dir.csv", "--covariates", "z", "--out", tmp_path / "m"], "is a folder")


def test_other_bad_requests(tmp_path, capsys):
    fails(capsys, ["graph", tmp_path], "is not a graphfield model")
    fails(capsys, ["simulate", "G9", "--out", tmp_path / "a.npz"], "Unknown setting 'G9'")
    fails(capsys, ["simulate", "G1", "--n", "0", "--out", tmp_path / "a.npz"], "n_samples")
    fails(capsys, ["simulate", "G1", "--out", tmp_path / "a.csv"], ".npz")
    fails(capsys, ["simulat"], "invalid choice: 'simulat'")
    fails(capsys, [], "required")
    assert not list(tmp_path.iterdir())


def test_the_installed_command_and_module_run():
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    command = Path(sys.executable).with_name("graphfield")
    commands = [[sys.executable, "-m", "graphfield"], *([[str(command)]] if command.exists() else [])]
    for start in commands:
        done = subprocess.run(
            [*start, "--version"], capture_output=True, text=True, env=environment, check=True
        )
        assert done.stdout.strip() == f"graphfield {gf.__version__}"


@pytest.mark.parametrize(
    ("called", "expected"), [("/x/graphfield/__main__.py", "python -m graphfield"), ("bin/gf", "bin/gf")]
)
def test_the_next_command_can_be_copied(monkeypatch, called, expected):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", [called])
    assert commands._program() == expected
