"""Several methods on the same rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.cli import main
from graphfield.inference import compare_methods as module
from graphfield.inference import method_fits
from graphfield.inference.method_comparison import COLUMNS
from graphfield.plots import plot_methods
from graphfield.report import write_report


def moving_edge(n: int = 250) -> tuple[pd.DataFrame, pd.DataFrame]:
    """x1 follows x0 by age, x3 follows x2 always."""
    rng = np.random.default_rng(0)
    age, X = rng.uniform(20, 80, n), rng.normal(size=(n, 4))
    X[:, 1] += (age - 50) / 15 * X[:, 0]
    X[:, 3] += X[:, 2]
    return pd.DataFrame(X, columns=list("abcd")), pd.DataFrame({"age": age})


METHODS = {
    "linear": gf.RegGMM(ridge=0.1),
    "lasso": gf.GraphicalLasso(penalty=0.1),
    "joint": gf.JointGraphicalLasso(),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("methods") / "done"


@pytest.fixture(scope="module")
def found(folder):
    return gf.compare_methods(*moving_edge(), METHODS, n_folds=1, folder=folder)


def test_the_method_that_follows_the_covariate_is_best(found):
    table = found.table.set_index("method")
    assert found.best == "linear" == table.index[0]
    assert table.loc["linear", "gain"] > 2 * table.loc["linear", "standard_error"] > 0
    assert table.loc["static", ["gain", "standard_error"]].tolist() == [0, 0]
    assert table.loc[["linear", "static", "lasso"], "moves"].tolist() == ["better", "one graph", "one graph"]
    assert (table.loc[["linear", "static"], ["seconds", "n_edges"]] > 0).all(axis=None)
    assert found.close == []
    assert found.verdict.answer == "moves"
    assert "linear predicts best" in found.summary
    assert found.verdict.sentence in found.summary


def test_a_method_that_cannot_be_fitted_is_a_line_with_the_reason(found):
    last = found.table.iloc[-1]
    assert (last["method"], last["estimator"]) == ("joint", "JointGraphicalLasso")
    assert "needs covariates with levels" in last["note"]
    assert np.isnan(last["gain"])
    assert "Not fitted: joint" in found.summary


def test_numbers_are_those_of_the_rest_of_the_product(found):
    """The same gain as that of the verdict of a fit, and the score of held-out rows."""
    X, Z = moving_edge()
    alone = gf.gain_over_one_graph(METHODS["linear"], X, Z, n_folds=1)
    fit = next(one for one in found.fits if one.name == "linear")
    assert fit.gain.over_average == alone.over_average
    assert fit.gain.over_static == alone.over_static
    model = gf.RegGMM(ridge=0.1).fit(X, Z)
    assert fit.n_edges == pytest.approx(model.predict_graph(Z).sum() / 2 / len(Z), abs=0.2)
    assert found.over("linear", "static").value == -found.over("static", "linear").value


def curved_means(n: int = 300) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A graph that does not move; the mean of a is a wave of age."""
    rng = np.random.default_rng(1)
    age, X = rng.uniform(20, 80, n), rng.normal(size=(n, 3))
    X[:, 1] += X[:, 0]
    X[:, 0] += 2 * np.sin(age / 8)
    return pd.DataFrame(X, columns=list("abc")), pd.DataFrame({"age": age})


def test_what_means_gain_is_not_what_a_moving_graph_gains():
    """The single graph that movement is judged against has the means of the method, and is in the table."""
    found = gf.compare_methods(*curved_means(), {"kernel": gf.KernelCGM(bandwidth=0.5)}, n_folds=1)
    line = found.table.set_index("method").loc["kernel"]
    assert found.best == "kernel"
    assert line["gain"] > 0.1
    assert line["gain_one_graph"] > 0.1
    assert line["moves"] != "better"
    assert np.isnan(found.table.set_index("method").loc["static", "gain_one_graph"])
    assert "That of one graph with the means and scales of kernel is" in found.summary
    assert "what is beyond comes from a graph that moves" in found.summary
    own = next(fit for fit in found.fits if fit.name == "kernel")
    fits = [fit if fit is not own else replace(own, left_by_one_graph=0.9 * own.left) for fit in found.fits]
    by_means = replace(found, fits=tuple(fits)).summary
    assert "kernel is ahead by these, not by a graph that moves." in by_means
    assert "what is beyond" not in by_means
    assert "best single graph (" in found.summary


def test_one_graph_by_two_methods_has_the_same_means():
    X, Z = moving_edge()
    X["c"] += Z["age"] / 5
    gain = gf.compare_methods(X[["c", "d"]], Z, ["nodewise"], n_folds=1).table["gain"]
    assert gain.abs().max() < 0.02


def test_a_node_that_others_determine_counts_in_gains_like_any_other(found):
    """Why scores and gains may order methods differently, as the comparison says."""
    static = next(one for one in found.fits if one.name == "static")
    left = np.random.default_rng(0).normal(size=static.left.shape) * [0.1, 1, 1, 1]
    values = left + np.random.default_rng(1).normal(size=left.shape) * [10, 1, 1, 1]
    known = replace(static, left=left, values=values)
    first = replace(known, name="first", left=left * [0.5, 1, 1, 1])
    second = replace(known, name="second", left=left * [1, 0.9, 1, 1])
    table = gf.MethodComparison((known, first, second), ()).table.set_index("method")
    assert table.index[0] == "first"
    assert table.loc["first", "score"] < table.loc["second", "score"]
    assert "They may order methods differently" in found.reading


def test_a_method_that_is_ahead_by_chance_is_named_and_not_best(found):
    static = next(one for one in found.fits if one.name == "static")
    left = np.random.default_rng(0).normal(size=static.left.shape)
    known = replace(static, left=left, values=left)
    clear = left * 0.97
    lucky = left * np.where(np.arange(len(left))[:, None] % 2, 0.3, 1.32)  # much better and much worse
    fits = (known, replace(known, name="steady", left=clear), replace(known, name="lucky", left=lucky))
    compared = gf.MethodComparison(fits, ())
    gains = compared.table.set_index("method")["gain"]
    assert gains["lucky"] > gains["steady"]
    assert compared.best == "steady"
    assert "steady is the best of those that predict clearly better" in compared.ranking
    assert "lucky is ahead of it, but not clearly better" in compared.ranking


def test_memory_is_that_of_one_method_and_not_of_those_before():
    for megabytes in (60, 20):
        before = method_fits.count_memory()
        if np.isnan(before):
            pytest.skip("this machine does not tell")
        held = np.ones(megabytes * 2**17)
        assert method_fits.peak_memory(before) == pytest.approx(megabytes, abs=5)
        del held


def test_agreement_is_about_edges_and_their_sizes(found):
    lines = found.agreement.set_index(["one", "other"])
    assert len(lines) == 3
    assert lines["edges_in_common"].between(0, 1).all()
    alike = found.agreement[~found.agreement[["one", "other"]].isin(["linear"]).any(axis=1)].iloc[0]
    assert alike["edges_in_common"] == 1
    assert alike["correlation"] > 0.99 > found.agreement["correlation"].min()


def test_without_movement_no_method_is_better_than_one_graph():
    X, _ = moving_edge(120)
    Z = pd.DataFrame({"age": np.random.default_rng(1).normal(size=len(X))})
    found = gf.compare_methods(X.drop(columns=["a", "b"]), Z, {"linear": gf.RegGMM(ridge=0.1)}, n_folds=1)
    assert found.best == "static"
    assert "none predicts clearly better than static" in found.summary
    assert found.verdict.answer == "one graph"


def test_a_gain_that_is_not_clear_makes_no_method_the_best(found):
    static = next(one for one in found.fits if one.name == "static")
    turns = np.where(np.arange(len(static.left)) % 2, 0.9, 1.08)[:, None]  # 1.2 % less error, by chance
    other = replace(static, name="other", left=static.left * turns)
    both = gf.MethodComparison((static, other), ())
    assert both.table["method"].tolist() == ["other", "static"]
    assert both.best == "static"
    assert both.close == ["other"]
    assert "No clear difference to it: other" in both.summary


def test_no_method_is_better_than_the_one_that_others_are_behind(found):
    static = next(one for one in found.fits if one.name == "static")
    lines = gf.MethodComparison((static, replace(static, name="little", left=0.999 * static.left)), ()).table
    assert lines["behind_first"].tolist()[0] == 0 < lines["behind_first"].tolist()[1]


def test_what_is_called_clearly_behind_is_in_the_table(found):
    table = found.table.set_index("method")
    assert table.loc["linear", ["behind_first", "behind_error"]].tolist() == [0, 0]
    gain = found.over("linear", "static")
    assert table.loc["static", ["behind_first", "behind_error"]].tolist() == [gain.value, gain.standard_error]
    assert gain.is_clear
    assert (
        "All others are clearly behind linear, by more than two standard errors of the difference."
        in found.summary
    )
    assert "behind_first is by how much the error is above that of the first method" in found.reading


def test_a_method_that_predicts_worse_than_one_graph_has_a_note(found, tmp_path):
    static = next(one for one in found.fits if one.name == "static")
    worse = replace(static, name="worse", left=1.5 * static.left)
    few = np.where(np.arange(len(static.left)) == 0, 1e3, 1.0)[:, None]  # one row that is far off
    wild = replace(static, name="wild", left=static.left * few)
    both = gf.MethodComparison((static, worse, wild), ())
    notes = both.table.set_index("method")["note"]
    assert not both.over("wild", "static").is_clear_loss
    assert notes.to_dict() == {
        "static": "",
        "worse": "predicts worse than one graph",
        "wild": "more than twice the error of one graph",
    }
    assert found.table.set_index("method").loc["linear", "note"] == ""
    assert len(plot_methods(both)[0].get_yticklabels()) == 3
    X, Z = moving_edge()
    page = write_report(gf.RegGMM(ridge=0.1).fit(X, Z), tmp_path / "page.html", Z=Z, methods=both).read_text()
    assert "Worse than static, by more than two standard errors: worse (" in both.ranking
    assert "wild has more than twice the error of static, which rests on few rows." in both.ranking
    assert "No clear difference" not in both.ranking
    assert ">Behind the first</th>" in page
    assert page.count('data-label="Behind the first">') == 3


def test_graphs_without_edges_have_none_in_common(found):
    static = next(one for one in found.fits if one.name == "static")
    graph = np.zeros_like(static.graph)
    few, many = graph.copy(), graph.copy()
    few[..., :1], many[..., :2] = True, True
    graphs = {"static": many, "empty": graph, "few": few, "same": many}
    fits = tuple(replace(static, name=name, graph=own) for name, own in graphs.items())
    assert (
        "Any two of these have 50 % to 100 % of their edges in common, half of these pairs 50 % or more. "
        "No edge at all: empty." in gf.MethodComparison(fits, ()).summary
    )
    both = gf.MethodComparison((fits[0], fits[2]), ())
    assert "Any two of these have 50 % of their edges in common." in both.summary


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch, found, folder):
    X, Z = moving_edge()
    asked: list[str] = []
    monkeypatch.setattr(module.MethodTask, "run", lambda _, name: asked.append(name) or found.failed[0])
    again = gf.compare_methods(X, Z, METHODS, n_folds=1, folder=folder)
    assert asked == ["joint"]  # what failed is tried again
    pd.testing.assert_frame_equal(again.table, found.table)
    pd.testing.assert_frame_equal(again.agreement, found.agreement)
    assert again.summary == found.summary
    for rows, methods in ((X, {"linear": gf.RegGMM()}), (2 * X, {"linear": METHODS["linear"]})):
        with pytest.raises(KeyError):  # nothing stands for what is asked here
            gf.compare_methods(rows, Z, methods, n_folds=1, folder=folder)
    assert asked == ["joint", "linear", "static", "linear"]
    monkeypatch.setattr(module.MethodTask, "run", lambda _, name: replace(found.fits[0], name=name))
    gf.compare_methods(2 * X, Z, {"linear": gf.RegGMM()}, n_folds=1, folder=folder)  # in place of the others
    monkeypatch.setattr(module.MethodTask, "run", lambda *_: pytest.fail("fitted again"))
    gf.compare_methods(2 * X, Z, {"linear": gf.RegGMM()}, n_folds=1, folder=folder)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(gf.OutputError, match=r"notes\.txt"):
        gf.compare_methods(X, Z, METHODS, folder=tmp_path)


def test_methods_are_told_and_kept_as_they_are_finished(tmp_path, monkeypatch, found):
    X, Z = moving_edge()

    def stop(_, name):
        if name == "lasso":
            raise KeyboardInterrupt
        return replace(found.fits[0], name=name)

    monkeypatch.setattr(module.MethodTask, "run", stop)
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        gf.compare_methods(X, Z, METHODS, n_folds=1, folder=tmp_path / "done", say=told.append)
    assert [line.split(",")[0] for line in told] == [
        "static is done (1 of 4 methods",
        "linear is done (2 of 4 methods",
    ]
    assert sorted(one.name for one in (tmp_path / "done").iterdir()) == ["linear", "static"]


def test_groups_and_time_stay_together(monkeypatch):
    X, Z = moving_edge()
    tasks = []
    monkeypatch.setattr(module, "in_processes", lambda run, *_, **__: tasks.append(run.__self__) or [])
    groups, moments = {"groups": np.arange(250) // 10}, {"time": np.arange(250)}
    for rows in (groups, moments, {}, {"in_order": True}, groups | {"in_order": True}):
        with pytest.raises(KeyError):  # nothing was fitted
            gf.compare_methods(X, Z, ["linear"], **rows)
    units = [task.units for task in tasks]
    assert [own.unit for own in units] == ["group", "time block", "row", "row block", "group"]
    assert [len(np.unique(own.labels)) for own in units[:2]] == [25, 50]
    assert units[3].labels is None  # fits do not know of them
    assert len(np.unique(units[3].blocks)) == 50
    assert units[4].blocks is None


def test_names_of_methods():
    everything = module.read_methods("all", 0)
    assert next(iter(everything)) == "static"
    assert {"tree", "kernel", "joint", "dnncgm"} < set(everything)
    assert not {"auto", "ensemble"} & set(everything)
    assert everything["tree"].random_state == 0
    assert everything.keys() - module.read_methods("quick", 0) == {"dnncgm", "archetype", "score"}
    assert everything["nodewise"].center == everything["static"].center == "covariates"
    assert [*module.read_methods(["TreeCGM", "linear"], 0)] == ["static", "tree", "linear"]
    X, Z = moving_edge()
    with pytest.raises(gf.ParameterError, match=r"no method 'tre'\. Did you mean 'tree'"):
        gf.compare_methods(X, Z, ["tre"])
    for methods in ("tree", [], 3):
        with pytest.raises(gf.ParameterError, match="methods must be 'all', 'quick', a list of names"):
            gf.compare_methods(X, Z, methods)
    for name in ("static", "../x", 3):
        with pytest.raises(gf.ParameterError, match="Names of methods"):
            gf.compare_methods(X, Z, {name: gf.RegGMM()})
    with pytest.raises(gf.DataError, match="40 rows are too few to compare methods"):
        gf.compare_methods(X[:40], Z[:40], ["linear"])


def test_the_picture_has_every_method(found):
    gains, agreement = plot_methods(found)
    names = [label.get_text().split()[0] for label in gains.get_yticklabels()]
    assert sorted(names) == ["lasso", "linear", "static"]
    edges = found.table.set_index("method")["n_edges"]
    shown = next(label.get_text() for label in gains.get_yticklabels() if "linear" in label.get_text())
    assert edges["linear"] % 1 > 0
    assert f"({edges['linear']:.3g} edges on average, " in shown
    assert len(agreement.texts) == 9
    assert agreement.images[0].colorbar.ax.get_ylabel() == "share of edges in common"


def test_a_section_of_the_page(found, tmp_path):
    X, Z = moving_edge()
    model = gf.RegGMM(ridge=0.1).fit(X, Z)
    page = write_report(model, tmp_path / "page.html", Z=Z, gain=found.gain, methods=found).read_text()
    section = page[page.index('<section id="methods"') :]
    section = section[: section.index("</section>")]
    assert found.ranking in section
    assert section.count("<tr>") == 1 + len(found.fits)
    assert "joint: JointGraphicalLasso needs covariates with levels" in section
    assert "data:image/png;base64,iVBOR" in section
    assert found.verdict.headline in page
    assert 'id="methods"' not in write_report(model, tmp_path / "plain.html", Z=Z).read_text()


def test_from_the_shell(tmp_path, capsys):
    X, Z = moving_edge(60)
    pd.concat([X, Z], axis=1).to_csv(tmp_path / "table.csv", index=False)
    command = ["compare", str(tmp_path / "table.csv"), "--covariates", "age", "--folds", "1"]
    picture = tmp_path / "methods.png"
    assert main([*command, "--methods", "joint", "--picture", str(picture)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{','.join(COLUMNS)}\n")
    said = (
        "Each method is fitted twice. --folder DIR keeps methods that are done, so that a killed run goes on"
    )
    assert said in err
    assert "static is done (1 of 2 methods, " in err
    assert "joint cannot be fitted (2 of 2 methods, " in err
    assert err.index("2 of 2 methods") < err.index("none predicts") < err.index("score is the share")
    assert "joint,JointGraphicalLasso" in out
    assert "none predicts clearly better than static" in err
    assert picture.stat().st_size > 5_000
    page = tmp_path / "page.html"
    assert main([*command, "--methods", "linear", "--report", str(page)]) == 0
    text = page.read_text()
    assert "Graphs of table.csv" in text
    assert "<strong>GraphicalLasso</strong>" in text
    assert "Of 2 methods, on 12 rows" in text
    assert "--out DIR --model static --edges &amp;&amp; graphfield report DIR</code>" in text
    assert "write_report(" not in text, "a shell user has no Python"
    assert main([*command, "--methods", "linear", "--report", str(page)]) == 2
    with pytest.raises(SystemExit) as ended:
        main([*command, "--methods", "linear,tre"])
    assert ended.value.code == 2
    assert "Did you mean 'tree'" in capsys.readouterr().err


def test_how_long_it_takes_and_what_is_faster_is_said_before(tmp_path, monkeypatch, capsys):
    X, Z = moving_edge(60)
    pd.concat([X, Z], axis=1).to_csv(tmp_path / "table.csv", index=False)
    asked = []

    def stop(_X, _Z, methods, **_):
        asked.append(methods)
        raise gf.DataError("Stop.")

    monkeypatch.setattr(module, "compare_methods", stop)
    command = ["compare", str(tmp_path / "table.csv"), "--covariates", "age"]
    said = "Each method is fitted 6 times."
    for options, told in {
        (): f"{said} Neural ones (dnncgm, archetype, score) take longest, here about 3 minutes of computing: "
        "--quick leaves them out, --folds 1 fits each method twice. --folder DIR",
        ("--quick",): f"{said} --folder DIR",
        ("--folds", "1", "--methods", "dnncgm"): "Each method is fitted twice. Neural ones (dnncgm) take "
        "longest, here about 1 minute of computing: --quick leaves them out. --folder DIR",
    }.items():
        assert main([*command, *options]) == 2
        assert told in capsys.readouterr().err
    assert asked == ["all", "quick", ["dnncgm"]]
    with pytest.raises(SystemExit):
        main([*command, "--quick", "--methods", "tree"])
    assert "not allowed with" in capsys.readouterr().err


@pytest.mark.slow
def test_rows_in_order_count_in_blocks_as_in_a_fit(tmp_path, capsys):
    """Of rows that look like a series, errors are those of blocks."""
    X, Z = moving_edge(200)
    walk = np.random.default_rng(2).normal(size=(200, 2)).cumsum(axis=0)
    pd.concat([X[["c", "d"]] + walk / 2, Z], axis=1).to_csv(tmp_path / "table.csv", index=False)
    command = [str(tmp_path / "table.csv"), "--covariates", "age"]
    assert main(["compare", *command, "--methods", "linear"]) == 0
    assert "(50 blocks of rows, in 5 folds)" in capsys.readouterr().err
    assert main(["fit", *command, "--model", "linear", "--out", str(tmp_path / "model")]) == 0
    assert "(50 blocks of rows, in 5 folds)" in capsys.readouterr().out


@pytest.mark.slow
def test_notes_name_the_method_what_it_needs_and_what_it_got():
    X, Z = moving_edge(60)
    X = X[["c", "d"]]
    methods = {
        "joint": gf.JointGraphicalLasso(),
        "clusters": gf.ByCluster(),
        "narrow": gf.KernelCGM(bandwidth=0),
        "wide": gf.KernelCGM(),
    }
    corners = Z.assign(**{f"z{k}": np.random.default_rng(k).normal(size=60) for k in range(9)})
    notes = gf.compare_methods(X, corners, methods, n_folds=1).table.set_index("method")["note"]
    assert notes["joint"].startswith("JointGraphicalLasso needs covariates with levels")
    assert "'age'" in notes["joint"]
    assert notes["clusters"].startswith("ByCluster needs one categorical covariate")
    assert notes["narrow"] == (
        "bandwidth of KernelCGM must be 'auto' or a number above 0 (infinity: one graph for all), got 0."
    )
    assert notes["wide"].startswith("KernelCGM needs a grid")
    rare = pd.DataFrame({"site": ["A"] * 30 + ["B"] * 29 + ["C"]})
    notes = gf.compare_methods(X, rare, list(methods)[:2], n_folds=1).table.set_index("method")["note"]
    assert "needs 2 rows of a level at least, and 'C' of 'site' has one" in notes["joint"]
    assert "ByCluster needs at least 10 rows of each cluster" in notes["clusters"]
    assert "'C' has 1" in notes["clusters"]
