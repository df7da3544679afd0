"""The experiment runner: specs, evaluation as published, run folders, tables."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError
from sklearn import metrics as reference

import graphfield as gf
from graphfield import cores
from graphfield.cli import main
from graphfield.data.marginals import normal_scores
from graphfield.experiments import evaluation, methods, runner
from graphfield.experiments.evaluation import Evaluation, score_samples, summarise
from graphfield.experiments.folders import cell_folder, cell_spec, is_done, read_report
from graphfield.experiments.methods import LINES, METHODS, Data, Method, TableCell, simulate
from graphfield.experiments.specs import TABLES, Published, Row, load_table, paper_recipe, published
from graphfield.experiments.tables import (
    Entry,
    as_frame,
    as_sheet,
    entries,
    printed_lines,
    with_lines,
)
from graphfield.messages import Argument
from graphfield.solvers.lasso import nodewise_lasso_path

SMALL = """
format_version = 1
title = "A small table"
n_train = 300
n_test = 20
columns = ["G1", "D1", "D1-pseudo"]
metrics = ["auroc", "auprc"]
[[rows]]
method = "reggmm"
evaluation = "published"
auprc = { G1 = [0.79, 0.004], D1 = [0.74] }
[[rows]]
method = "glasso-by-cluster"
evaluation = "corrected"
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def reproduce(spec, out, *more) -> int:
    """Without the lines unless they are named: they take most of the time."""
    options = ["--replicates", "1", "--jobs", "1", "--no-lines", "--out", str(out)]
    return main(["reproduce", str(spec), *options, *more])


# -- specs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_every_table_names_known_methods_and_its_own_columns(name):
    table = load_table(name)
    assert {row.method for row in table.rows} <= set(METHODS)
    assert any(row.published for row in table.rows)
    for row in table.rows:
        assert all(metric in table.metrics for metric, _ in row.published)


def test_published_values_as_printed():
    """Spot checks against the paper's tables, one per method."""
    assert published("table1", "lasso-by-cluster", "N2") == {"auroc": 0.93, "auprc": 0.37}
    assert published("table4", "glasso-by-cluster", "D2-pseudo") == {"auroc": 0.94, "auprc": 0.44}
    assert published("table5", "lasso", "D1-pseudo") == {"auroc": 0.97, "auprc": 0.62}
    assert published("remark30k", "dnn-cgm", "D2") == {"auroc": 0.95, "auprc": 0.75}
    rows = {r.threshold: r for r in load_table("table3").rows if r.method == "dnn-cgm" and r.published}
    assert rows[0.05].published["f1", "N1"] == Published(0.89, None)
    assert rows[0.1].published["balanced_accuracy", "D2"] == Published(0.51, None)
    assert load_table("table1").rows[0].published["auprc", "D1"] == Published(0.76, 0.026)


@pytest.mark.parametrize("method", ["dnn-cgm", "dnn-cgm-code", "reggmm-adam"])
def test_recipes_are_valid_parameters(method):
    known = set(gf.DNNCGM().get_params())
    for setting in load_table("table1").settings:
        recipe = paper_recipe(setting, 10_000, method)
        assert set(recipe) <= known
        gf.DNNCGM(**recipe).check_parameters()
    with pytest.raises(gf.ParameterError, match="No recipe for setting 'S1'"):
        paper_recipe("S1", 10_000, method)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("n_train = 300", "n_trian = 300"), "unknown key 'n_trian'. Did you mean 'n_train'"),
        (("n_train = 300", "n_train = 0"), "n_train must be a whole number >= 1, got 0"),
        (
            ("format_version = 1", "format_version = 9"),
            "format_version 9; this version of graphfield reads 1",
        ),
        (('"G1", "D1"', '"G7", "D1"'), "unknown setting 'G7'"),
        (('"auroc", "auprc"', '"auroc", "auprs"'), "unknown metric 'auprs'. Did you mean 'auprc'"),
        (('"reggmm"', '"regmm"'), "Unknown method 'regmm'. Did you mean 'reggmm'"),
        (('"corrected"', '"correct"'), "unknown evaluation 'correct'. Did you mean 'corrected'"),
        (("D1 = [0.74]", "D2 = [0.74]"), "unknown column 'D2'"),
        (("D1 = [0.74]", "D1 = 0.74"), "auprc.D1 must be [mean] or [mean, sd]"),
        (("D1 = [0.74]", 'D1 = ["a"]'), "auprc.D1 must be [mean] or [mean, sd]"),
        (("auprc = { G1 = [0.79, 0.004], D1 = [0.74] }", "auprc = 0.5"), "auprc must be a table of columns"),
        (('columns = ["G1", "D1", "D1-pseudo"]', 'columns = "G1"'), "columns must be a list of names"),
        (('"G1", "D1", ', '"G1", 3, '), "columns must be a list of names"),
        (('"D1-pseudo"', '"G1-pseudo"'), "unknown setting 'G1'"),
        (('evaluation = "corrected"', 'evaluation = "corrected"\nthreshold = 0.05'), "threshold is for 'f1'"),
        (('"auroc", "auprc"', '"f1"'), "threshold must be one of '0.01'"),
        (('evaluation = "published"', 'evaluation = "best"'), "Unknown evaluation of 'reggmm' 'best'"),
        (("columns =", "columns = ]"), "not valid TOML"),
    ],
)
def test_a_wrong_spec_is_refused_before_any_work(spec, tmp_path, capsys, change, message):
    spec.write_text(SMALL.replace(*change))
    assert reproduce(spec, tmp_path / "out") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tabel1"], "Unknown table 'tabel1'. Did you mean 'table1'"),
        (["nowhere.toml"], "Cannot read nowhere.toml"),
        (["table1", "--settings", "g1"], "Unknown setting 'g1'. Did you mean 'G1'"),
        (["table1", "--settings", ""], "No setting was named"),
        (["table4", "--settings", "G1"], "Unknown setting 'G1'"),
        (["table1", "--methods", "dnn_cgm"], "Unknown method 'dnn_cgm'. Did you mean 'dnn-cgm'"),
        (["all", "--methods", "nothing"], "Unknown method 'nothing'"),
        (["table1", "--replicates", "0"], "--replicates must be at least 1"),
        (["table1", "--replicates", "1000000000"], "at most 1,000"),
        (["table1", "--jobs", "0"], "--jobs must be at least 1"),
        (["table1", "--seed", "-1"], "--seed must not be negative"),
        (["table1", "--device", "tpu"], "device must be 'auto', 'cpu' or 'cuda'"),
        (["figures", "--settings", "S1"], "Unknown setting 'S1'"),
        (["figures", "--device", "tpu"], "device must be 'auto', 'cpu' or 'cuda'"),
        (["figures", "--methods", "tree"], "--methods does not apply"),
    ],
)
def test_bad_input(arguments, message, tmp_path, capsys):
    assert main(["reproduce", *arguments, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


# -- evaluation -----------------------------------------------------------------------------------


def test_scores_of_samples_and_their_mean():
    rng = np.random.default_rng(0)
    weights, skeleton = rng.random((4, 6, 6)), rng.random((4, 6, 6)) < 0.3
    samples = score_samples({"raw": Evaluation(weights, diagonal=True)}, {"skeleton": skeleton})
    pairs = list(zip(weights, skeleton, strict=True))
    expected = [reference.average_precision_score(s.ravel(), w.ravel()) for w, s in pairs]
    np.testing.assert_allclose(samples["auprc"], expected)
    off = ~np.eye(6, dtype=bool)
    f1 = [reference.f1_score(s[off], w[off] > 0.1) for w, s in pairs]
    np.testing.assert_allclose(samples["f1@0.1"], f1)
    assert summarise(samples)["raw"]["skeleton"]["auprc"] == pytest.approx(np.mean(expected))


def test_the_diagonal_left_in_spoils_a_perfect_estimate():
    """Why the published glasso rows are low: p false positives stand on top of the ranking."""
    sim = gf.make_setting("G1", 30, random_state=0)
    noise = np.random.default_rng(0).normal(size=sim.skeleton.shape)
    precision = sim.precision * (1 + 1e-6 * noise)  # as an estimate, without ties
    truths = {"skeleton": sim.skeleton}
    left_in = score_samples({"e": Evaluation(np.abs(precision), diagonal=True)}, truths)
    left_out = score_samples({"e": Evaluation(np.abs(precision))}, truths)
    assert left_out["auprc"].min() == pytest.approx(1.0)
    assert left_in["auprc"].max() < 0.62


@pytest.mark.parametrize(
    "solve", [pytest.param(evaluation.glasso_path, marks=pytest.mark.slow), evaluation.lasso_path]
)
def test_path_evaluations_pick_the_best_penalty_against_the_truth(solve):
    cell = TableCell("D1", "glasso-by-cluster", 900, 30, seed=0)
    data = simulate(cell)
    X, regime, truths = data.sim.X[data.train], data.sim.regime, data.truths()
    found, chosen = evaluation.oracle_evaluations(solve, X, regime[data.train], regime[data.test], truths)
    scores = summarise(score_samples(found, truths))
    assert scores["best"]["skeleton"]["auprc"] >= scores["corrected"]["skeleton"]["auprc"]
    for part, label in enumerate(np.unique(regime[data.test])):
        S = np.corrcoef(X[regime[data.train] == label].T)
        penalties = evaluation.penalty_path(S, 19, 0.01)
        as_published, _ = solve(S, penalties)
        truth = truths["skeleton"][regime[data.test] == label][0]
        roc = [reference.roc_auc_score(truth.ravel(), w.ravel()) for w in as_published[:10]]
        assert chosen["published"][part] == pytest.approx(penalties[int(np.argmax(roc))])


def test_the_best_penalty_counts_every_skeleton_of_a_cluster():
    """In S1 every sample has a graph of its own: the first must not decide for all."""
    rng = np.random.default_rng(0)
    path = rng.random((5, 6, 6))
    skeletons = rng.random((7, 6, 6)) < 0.4
    mean = [
        np.mean([reference.average_precision_score(s.ravel(), w.ravel()) for s in skeletons]) for w in path
    ]
    assert evaluation._best(path, evaluation.auprc, True, skeletons) == int(np.argmax(mean))
    path[int(np.argmax(mean))] = np.nan  # a penalty that could not be solved is not chosen
    assert evaluation._best(path, evaluation.auprc, True, skeletons) == int(np.argsort(mean)[-2])


def test_a_skeleton_counts_as_often_as_there_are_samples_of_it():
    rare, common = np.zeros((2, 6, 6), dtype=bool)
    rare[0, 1:4] = common[3, :3] = common[4, :3] = True
    for_common, for_both = common * 1.0, rare * 1.0 + common * 0.5
    skeletons = np.array([rare] + 8 * [common])
    assert evaluation._best(np.array([for_both, for_common]), evaluation.auprc, True, skeletons) == 1
    assert evaluation._best(np.array([for_both, for_common]), evaluation.auprc, True, skeletons[:2]) == 0


def test_the_published_lasso_graph_is_joined_by_or():
    data = simulate(TableCell("G1", "lasso", 150, 5, seed=0))
    S = np.corrcoef(data.sim.X[data.train].T)
    penalties = evaluation.penalty_path(S, 6)
    graph, strength = evaluation.lasso_path(S, penalties)
    coef = nodewise_lasso_path(S, penalties)
    one_way = (coef != 0) & (coef.transpose(0, 2, 1) == 0)
    assert one_way.any()
    assert graph[one_way].all()
    np.testing.assert_array_equal(graph > 0, strength > 0)


def test_normal_scores_do_not_see_increasing_transforms():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    np.testing.assert_array_equal(normal_scores(X), normal_scores(np.exp(3 * X)))
    np.testing.assert_allclose(normal_scores(X).mean(axis=0), 0, atol=1e-12)


# -- run folders ----------------------------------------------------------------------------------


def test_a_run_leaves_whole_folders_and_resumes(spec, tmp_path, capsys):
    out = tmp_path / "out"
    assert reproduce(spec, out, "--methods", "reggmm,static") == 0
    cell = TableCell("D1", "reggmm", 300, 20, seed=0)
    folder = cell_folder(out, cell)
    assert sorted(f.name for f in folder.iterdir()) == ["DONE", "report.json", "samples.parquet", "spec.json"]
    report = read_report(out, cell)
    samples = pd.read_parquet(folder / "samples.parquet")
    assert len(samples) == 2 * 2 * 20  # two evaluations, two truths
    assert {"fit", "predict", "score", "simulate"} <= set(report["seconds"])
    assert report["config"] == gf.RegGMM().get_params()
    assert report["environment"]["packages"]["numpy"] == np.__version__
    pseudo = samples.query("evaluation == 'published' and truth == 'pseudo'")
    assert report["metrics"]["published"]["pseudo"]["auprc"] == pytest.approx(pseudo["auprc"].mean())
    printed = capsys.readouterr().out
    assert "RegGMM, exact least squares" in printed
    assert "static: graphical lasso without z" in printed
    for suffix in ("md", "csv", "html"):
        assert (out / f"small.{suffix}").is_file()
    cells = pd.read_csv(out / "cells.csv")
    line = cells.query("setting == 'D1' and method == 'reggmm' and evaluation == 'published'").iloc[0]
    assert line["auprc"] == pytest.approx(report["metrics"]["published"]["skeleton"]["auprc"], abs=1e-4)

    before = (folder / "report.json").stat().st_mtime_ns
    assert reproduce(spec, out, "--methods", "reggmm,static") == 0
    assert (folder / "report.json").stat().st_mtime_ns == before
    assert reproduce(spec, out, "--methods", "reggmm", "--settings", "D1", "--force") == 0
    assert (folder / "report.json").stat().st_mtime_ns > before
    assert "static: graphical lasso" in (out / "small.md").read_text()  # earlier cells stay in the table


def test_other_parameters_under_the_same_name_are_not_mixed_in(spec, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ("--methods", "reggmm", "--settings", "G1")
    assert reproduce(spec, out, *arguments) == 0
    folder = cell_folder(out, TableCell("G1", "reggmm", 300, 20, seed=0))
    stored = json.loads((folder / "spec.json").read_text())
    stored["parameters"]["ridge"] = 0.5
    (folder / "spec.json").write_text(json.dumps(stored))
    assert reproduce(spec, out, *arguments) == 2
    assert "was run with other parameters. Add --force" in capsys.readouterr().err
    assert reproduce(spec, out, *arguments, "--force") == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run.json", '{"format": "graphfield-reproduction", "format_version": 99}', "format version 99"),
        ("run.json", "{", "is damaged"),
        ("thesis.tex", "years of work", "holds other files"),
    ],
)
def test_a_folder_of_something_else_is_refused(spec, tmp_path, capsys, name, content, message):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text(content)
    assert reproduce(spec, out) == 2
    assert message in capsys.readouterr().err
    assert [f.name for f in out.iterdir()] == [name]


def test_a_failed_cell_is_reported_and_the_others_are_kept(spec, tmp_path, capsys, monkeypatch):
    def fail(cell, data, parameters, device):
        if cell.setting == "G1":
            raise FloatingPointError("no luck")
        return METHODS["reggmm"].run(cell, data, {}, device)

    monkeypatch.setitem(METHODS, "static", Method("static", ("strength",), lambda _: {}, fail))
    out = tmp_path / "out"
    assert reproduce(spec, out, "--methods", "static,reggmm") == 1
    error = capsys.readouterr().err
    assert "1 cell failed: G1/static/n300-test20-seed0: FloatingPointError: no luck" in error
    assert is_done(out, TableCell("D1", "static", 300, 20, 0))
    assert is_done(out, TableCell("G1", "reggmm", 300, 20, 0))
    assert not is_done(out, TableCell("G1", "static", 300, 20, 0))


def test_an_interrupt_leaves_no_done_and_the_next_run_goes_on(spec, tmp_path, capsys, monkeypatch):
    original = METHODS["reggmm"]
    ran = []

    def interrupted(cell, data, parameters, device):
        ran.append(cell.setting)
        if cell.setting == "D1" and len(ran) == 2:
            raise KeyboardInterrupt
        return original.run(cell, data, parameters, device)

    monkeypatch.setitem(METHODS, "reggmm", dataclasses.replace(original, run=interrupted))
    out = tmp_path / "out"
    assert reproduce(spec, out, "--methods", "reggmm") == 130
    assert "interrupted" in capsys.readouterr().err
    assert [f.parent.parent.parent.name for f in out.rglob("DONE")] == ["G1"]
    assert reproduce(spec, out, "--methods", "reggmm") == 0
    assert ran == ["G1", "D1", "D1"]


@pytest.mark.slow
def test_cells_in_parallel_are_the_same_cells(spec, tmp_path):
    table = load_table(str(spec))
    cells = runner.plan([table], ["G1"], ["reggmm", "glasso-by-cluster"], [0], lines=False)
    for name, jobs in (("one", 1), ("two", 2)):
        assert runner.run_cells(cells, tmp_path / name, force=False, jobs=jobs, device="cpu") == []
    for cell in cells:
        one, two = (read_report(tmp_path / which, cell)["metrics"] for which in ("one", "two"))
        for name, by_truth in one.items():
            for truth, values in by_truth.items():
                assert two[name][truth] == pytest.approx(values, abs=1e-9)


def test_methods_that_draw_are_seeded_by_the_replicate():
    """A cell run twice must give the same numbers."""
    for method in ("tree", "dnn-cgm", "dnn-cgm-code", "dnn-cgm-default", "reggmm-adam"):
        assert METHODS[method].parameters(TableCell("G1", method, 1_000, 10, seed=3))["random_state"] == 3


def test_the_lines_come_along_with_any_method():
    tables = [load_table(name) for name in TABLES]
    cells = runner.plan(tables, ["D1"], ["reggmm"], [0])
    assert {cell.method for cell in cells} == {"reggmm", *LINES}
    assert {cell.n_train for cell in cells} == {10_000, 30_000}
    assert len(cells) == len(set(cells)) == 8  # once each, though five tables share them


def test_every_method_has_parameters_that_json_can_hold():
    for method in METHODS:
        cell = TableCell("G1", method, 1_000, 10, seed=3)
        assert json.loads(json.dumps(cell_spec(cell))) == cell_spec(cell)


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted(set(METHODS) - {"reggmm-sparse-group"}))
def test_every_method_runs_and_scores_above_chance(method, monkeypatch):
    monkeypatch.setattr(methods, "paper_recipe", _short_recipe)
    cell = TableCell("G1", method, 600, 15, seed=0)
    data = simulate(cell)
    parameters = METHODS[method].parameters(cell)
    if method == "dnn-cgm-default":
        parameters = {**parameters, "rank": 4, "max_steps": 200, "hidden_size": 16}
    outcome = METHODS[method].run(cell, data, parameters, "cpu")
    scores = summarise(score_samples(outcome.evaluations, data.truths()))
    shown = {row.evaluation for name in TABLES for row in load_table(name).rows if row.method == method}
    assert shown | ({LINES[method]} if method in LINES else set()) <= set(scores)
    assert set(METHODS[method].evaluations) == set(scores)
    assert all(by_truth["skeleton"]["auroc"] > 0.55 for by_truth in scores.values())


def _short_recipe(setting, n_train, method):
    recipe = paper_recipe(setting, n_train, method)
    return {**recipe, "max_steps": 150, "learning_rate": 5e-3, "batch_size": 128}


def test_the_pseudo_truth_is_kept_only_where_it_differs():
    for setting, names in (("G1", ["skeleton"]), ("D1", ["skeleton", "pseudo"])):
        sim = gf.make_setting(setting, 1_101, random_state=0)  # one test row, whatever its cluster
        assert list(Data(sim, slice(100), slice(100, 1_100), slice(1_100, None)).truths()) == names


# -- tables ---------------------------------------------------------------------------------------


def test_entries_average_over_replicates(tmp_path, monkeypatch):
    table = load_table("table4")
    values = {0: 0.80, 1: 0.84}
    monkeypatch.setattr("graphfield.experiments.folders.is_done", lambda _, cell: cell.method == "dnn-cgm")
    monkeypatch.setattr(
        "graphfield.experiments.folders.read_report",
        lambda _, cell: {"metrics": {"published": {"pseudo": {"auprc": values[cell.seed]}}}},
    )
    found = entries(table, tmp_path, [0, 1])
    entry = next(
        e for e in found if e.metric == "auprc" and e.row.method == "dnn-cgm" and e.column == "D1-pseudo"
    )
    assert (entry.mean, entry.replicates) == (pytest.approx(0.82), 2)
    assert entry.sd == pytest.approx(np.std([0.80, 0.84], ddof=1))
    assert entry.difference == pytest.approx(0.01)
    frame = as_frame(table, found)
    line = frame.query("method == 'dnn-cgm' and metric == 'auprc' and setting == 'D1'").iloc[0]
    assert (line["published"], line["published_sd"]) == (0.81, 0.028)
    markdown = as_sheet(table, found, "graphfield reproduce table4").markdown()
    assert "| 0.820 (0.028) | 0.820 (0.028) |" in markdown
    assert "| _difference_ | +0.010 | +0.080* |" in markdown  # 0.74 (0.032) published for D2
    page = as_sheet(table, found, "graphfield reproduce table4 --out <here>").html()
    assert page.count("0.820 (0.028)") == 2
    assert "<code>graphfield reproduce table4 --out &lt;here&gt;</code>" in page
    assert "http" not in page


def test_a_row_that_is_also_a_line_stands_once(spec, tmp_path):
    spec.write_text(SMALL.replace('"glasso-by-cluster"', '"static"').replace('"corrected"', '"strength"'))
    table = load_table(str(spec))
    found = [
        Entry("auprc", row, column, 0.5, None, 1) for row in with_lines(table) for column in table.columns
    ]
    lines = list(printed_lines("auprc", table, found))
    assert [line.label for line in lines if line.label.startswith("static")] == [
        "static: graphical lasso without z (by strength)"
    ]
    assert all(len(line.cells) == 3 for line in lines)
    assert [line.kind for line in lines][:4] == ["ours", "published", "difference", "heading"]


def test_a_damaged_cell_does_not_block_the_others(spec, tmp_path, capsys):
    out = tmp_path / "out"
    assert reproduce(spec, out, "--methods", "reggmm,static", "--settings", "G1") == 0
    (cell_folder(out, TableCell("G1", "static", 300, 20, 0)) / "report.json").write_text("{")
    assert reproduce(spec, out, "--methods", "reggmm", "--settings", "G1") == 0
    said = capsys.readouterr()
    assert "leaves out G1/static" in said.err
    assert "RegGMM, exact least squares" in said.out


def test_only_columns_with_numbers_are_shown(spec, tmp_path, capsys):
    assert reproduce(spec, tmp_path / "out", "--methods", "reggmm", "--settings", "G1") == 0
    assert "D1" not in capsys.readouterr().out
    assert "| | G1 |" in (tmp_path / "out" / "small.md").read_text()


def test_the_command_in_a_table_can_be_pasted(spec, tmp_path):
    odd = spec.rename(tmp_path / "my spec.toml")
    assert reproduce(odd, tmp_path / "out", "--methods", "reggmm", "--settings", "G1") == 0
    command = f"graphfield reproduce '{odd}' --replicates 1 --settings G1 --methods reggmm --no-lines"
    assert command in (tmp_path / "out" / "my spec.md").read_text()


def test_a_spec_must_not_take_the_name_of_a_table(spec, tmp_path, capsys):
    assert reproduce(spec.rename(tmp_path / "table1.toml"), tmp_path / "out") == 2
    assert "would take the name of a table of ours" in capsys.readouterr().err


def test_a_killed_worker_is_a_failure_of_its_cells(spec, tmp_path, monkeypatch):
    class Broken:
        def __init__(self, **_):
            pass

        def __call__(self, _):
            raise TerminatedWorkerError("killed")
            yield

    monkeypatch.setattr(cores.joblib, "Parallel", Broken)
    cells = runner.plan([load_table(str(spec))], ["G1"], ["reggmm", "static"], [0], lines=False)
    failures = runner.run_cells(cells, tmp_path / "out", force=False, jobs=2, device="cpu")
    assert [failure.cell for failure in failures] == cells
    assert failures[0].reason.parts["jobs"] == Argument("jobs")


def test_a_deviation_is_beyond_one_standard_deviation_and_rounding():
    row = Row("dnn-cgm", "published", None, {("auprc", "G1"): Published(0.92, 0.024)})
    assert not Entry("auprc", row, "G1", 0.945, None, 1).deviates
    assert Entry("auprc", row, "G1", 0.955, None, 1).deviates
    exact = Row("dnn-cgm", "published", None, {("auprc", "G1"): Published(0.92, None)})
    assert not Entry("auprc", exact, "G1", 0.924, None, 1).deviates
    assert Entry("auprc", exact, "G1", 0.9, None, 1).deviates


def test_rows_without_numbers_are_not_printed():
    table = load_table("table1")
    row = table.rows[0]
    found = [Entry("auprc", row, column, 0.5, None, 1) for column in table.columns]
    labels = [line.kind for line in printed_lines("auprc", table, found)]
    assert labels == ["ours", "published", "difference"]
