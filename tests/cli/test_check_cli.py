"""From a table with everything that tables have to a model, on the command line."""

from __future__ import annotations

import gzip
import io
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import FAST_FIT as FAST
from conftest import small_data
from graphfield.analysis import edge_curves
from graphfield.check.findings import DataCheck
from graphfield.cli import main
from graphfield.cli.report import table_command
from graphfield.data.rare_levels import pool_rare
from graphfield.data.roles import from_table, time_values
from graphfield.data.splits import last_in_time, time_blocks
from graphfield.report.folder import read_rows

N = 160


def messy() -> pd.DataFrame:
    """Dates, codes, rare levels, a subject, gaps, a column nobody uses."""
    X, Z = small_data(N, p=4)
    table = pd.concat([X, Z], axis=1)
    table["day"] = pd.date_range("2020-01-01", periods=N).strftime("%Y-%m-%d")
    table["month"] = np.arange(N) % 12 + 1
    table["clinic"] = np.where(
        np.arange(N) % 40 == 1, "tiny", np.where(np.arange(N) % 40 == 2, "small", "big")
    )
    table["remark"] = "none"
    return table


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    messy().to_csv(path, index=False)
    return str(path)


def run(*arguments, code=0):
    assert main([str(argument) for argument in arguments]) == code


def nodes(*more):
    return ["--nodes", "n[0-3]", *more]


def test_check_alone(table, capsys):
    run("check", table, "--covariates", "age,site", *nodes(), "--time", "day")
    said = capsys.readouterr()
    assert said.err == ""
    assert "Nothing looks wrong." in said.out
    run("check", table, "--covariates", "age,clinic", *nodes(), "--time", "day", "--strict", code=1)
    said = capsys.readouterr().out
    assert "'clinic' has 2 levels with fewer than 20 rows: 'tiny' 4, 'small' 4" in said
    assert "--rare" not in said, "a pool of eight rows helps nobody"
    run("check", table, "--covariates", "age,clinic", *nodes(), "--time", "day")


def test_a_skewed_node_is_a_note_and_nothing_wrong(tmp_path, capsys):
    path = tmp_path / "skewed.csv"
    messy().assign(n0=np.random.default_rng(0).exponential(size=len(messy())) ** 2).to_csv(path, index=False)
    run("check", path, "--covariates", "age,site", *nodes(), "--time", "day", "--strict")
    said = capsys.readouterr().out
    (note,) = [line for line in said.splitlines() if "is skewed" in line]
    assert note.startswith("Note: 1 node is skewed (skewness 'n0' ")
    assert note.endswith("try normal scores; for others a logarithm may help.")
    assert "Nothing looks wrong." in said
    assert "Look:" not in said


def test_check_lists_every_column_on_request(table, capsys):
    run("check", table, "--covariates", "age,clinic", *nodes(), "--time", "day", "--columns")
    lines = capsys.readouterr().out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("name "))
    listed = [line.split()[0] for line in lines[start + 1 : start + 11]]
    assert listed == ["n0", "n1", "n2", "n3", "age", "clinic", "day", "site", "month", "remark"]
    assert lines[start + 6].endswith("rare-category")
    run("check", table, "--covariates", "age,clinic", *nodes(), "--time", "day")
    assert "distinct" not in capsys.readouterr().out


def test_one_node_is_refused_after_all_is_said(table, capsys):
    run("check", table, "--covariates", "age", "--nodes", "n0", code=2)
    said = capsys.readouterr()
    assert "1 node" in said.out
    assert "a graph needs at least 2 nodes" in said.err


def test_advice_is_in_the_words_of_the_command_line(table, tmp_path, capsys):
    frame = messy()
    frame.loc[3, "n1"] = np.nan
    frame.to_csv(table, index=False)
    run("check", table, "--covariates", "age", *nodes())
    said = capsys.readouterr().out
    assert "--missing drop" in said
    assert "missing='drop'" not in said


def test_a_check_drops_nothing_and_says_so(table, tmp_path, capsys):
    frame = messy()
    frame.loc[[3, 7], "n1"] = np.nan
    frame.loc[3, "age"] = np.nan
    frame.to_csv(table, index=False)
    about = [table, "--covariates", "age", *nodes(), "--missing", "drop"]
    counts = "node 'n1' has 2 (first at line 5); covariate 'age' has 1 (first at line 5)."
    rows = f"2 of {N} rows with missing or infinite values"
    run("check", *about)
    assert f"In a fit: {rows} would be dropped: {counts}" in capsys.readouterr().out
    run("fit", *about, "--out", tmp_path / "m", *FAST)
    assert f"Changed: Dropped {rows}: {counts}" in capsys.readouterr().out
    told = json.loads((tmp_path / "m" / "data_check.json").read_text())
    assert told["changes"] == [f"Dropped {rows}: {counts}"]
    assert len(pd.read_csv(tmp_path / "m" / "covariates.csv")) == N - 2, "only rows that were fitted"


def test_files_of_a_fit(table, tmp_path, capsys):
    out = tmp_path / "m"
    run("fit", table, "--covariates", "age,site,day", *nodes(), "--out", out, *FAST)
    assert "Changed: Covariate 'day' is taken as a date" in capsys.readouterr().out
    check = DataCheck.from_json(json.loads((out / "data_check.json").read_text()))
    data = from_table(table, ["age", "site", "day"], ["n[0-3]"])
    assert check == gf.check_data(data.X, data.Z, rest=data.rest)
    model = gf.load(out)
    rows = read_rows(out, model.encoder_)
    assert len(rows) == N
    np.testing.assert_allclose(model.predict_coef(rows), model.predict_coef(data.Z), atol=1e-6)
    run("graph", out, "--at", "age=50", "--at", "site=A", "--at", "day=2020-03-01", "--threshold", "0.01")
    printed = pd.read_csv(pd.io.common.StringIO(capsys.readouterr().out))
    expected = model.to_networkx({"age": 50, "site": "A", "day": "2020-03-01"}, threshold=0.01)
    assert len(printed) == expected.number_of_edges()
    run("graph", out, "--at", "age=50", "--at", "site=A", "--at", "day=March", code=2)
    assert "'day' is a date such as 2020-01-01, got 'March'" in capsys.readouterr().err
    run("fit", table, "--covariates", "age", *nodes(), "--out", tmp_path / "n", "--no-rows", *FAST)
    assert not (tmp_path / "n" / "covariates.csv").exists()
    assert read_rows(tmp_path / "n", model.encoder_) is None


def test_rows_of_covariates_are_complete_few_and_what_they_were(tmp_path):
    from graphfield.data.covariate_rows import covariate_rows

    n = 2_500
    Z = pd.DataFrame({"code": [f"0{i % 3}" for i in range(n)], "x": np.random.default_rng(0).normal(size=n)})
    Z["flag"] = Z.x > 0
    Z.loc[5, "x"] = np.nan
    X = np.random.default_rng(1).normal(size=(n, 3))
    with pytest.warns(gf.DataWarning):
        model = gf.RegGMM(missing="drop").fit(X, Z)
    folder = model.save(tmp_path / "m")
    (folder / "covariates.csv").write_text(covariate_rows(Z, seed=1))
    rows = read_rows(folder, model.encoder_)
    assert len(rows) == 2_000
    assert set(rows.code) == {"00", "01", "02"}
    both = rows.merge(Z.assign(flag=Z.flag.astype(str)), on=["code", "x", "flag"])
    assert len(both) == 2_000
    assert covariate_rows(Z, seed=1) == covariate_rows(Z, seed=1) != covariate_rows(Z, seed=2)
    model.predict_coef(rows)


def test_rare_levels_are_pooled_and_graph_says_so(table, tmp_path, capsys):
    out = tmp_path / "m"
    run("fit", table, "--covariates", "age,clinic", "--rare", "5", *nodes(), "--out", out, *FAST)
    assert "Changed: Covariate 'clinic': 'small', 'tiny' pooled into 'other'" in capsys.readouterr().out
    at = ["--at", "age=50", "--threshold", "0.01"]
    run("graph", out, *at, "--at", "clinic=tiny")
    pooled = capsys.readouterr()
    assert "'clinic': 'tiny' had few rows and was pooled into 'other' when fitting" in pooled.err
    run("graph", out, *at, "--at", "clinic=other")
    other = capsys.readouterr()
    assert other.out == pooled.out
    assert other.err.count("\n") == 1
    assert "clinic = 'other' had 8 training rows" in other.err
    run("graph", out, *at, "--at", "clinic=huge", code=2)


def test_pooling():
    Z = pd.DataFrame({"site": ["A"] * 5 + ["B", "C", None, "other"], "age": range(9)})
    pooled, which = pool_rare(Z, 2)
    assert which == {"site": ["B", "C"]}
    assert pooled.site.dropna().tolist() == ["A"] * 5 + ["other"] * 3
    assert pooled.site.isna().tolist() == Z.site.isna().tolist()
    assert pooled.age.equals(Z.age)
    assert pool_rare(Z.iloc[:5], 3)[1] == {}
    for rare in (1, 2.5, True):
        with pytest.raises(gf.ParameterError, match="rare must be a whole number of rows"):
            pool_rare(Z, rare)
    both = Z.assign(town=["x"] * 7 + ["y"] * 2)
    assert pool_rare(both, 3)[1] == {"site": ["B", "C"], "town": ["y"]}
    assert pool_rare(both, {"town": 3})[1] == {"town": ["y"]}
    assert pool_rare(both, {"town": 2, "site": 2})[1] == {"site": ["B", "C"]}
    with pytest.raises(gf.DataError, match="'sitee' whose levels could be pooled"):
        pool_rare(both, {"sitee": 3})
    with pytest.raises(gf.DataError, match="'age' is no category"):
        pool_rare(both, {"age": 3})
    with pytest.raises(gf.ParameterError, match="rare must be a whole number of rows, 2 or more, got 1"):
        pool_rare(both, {"site": 1})


def test_rare_levels_of_one_covariate(table, tmp_path, capsys):
    out = tmp_path / "m"
    called = ["fit", table, "--covariates", "age,clinic", *nodes(), "--out", out, *FAST]
    run(*called, "--rare", "clinic=5")
    assert "Changed: Covariate 'clinic': 'small', 'tiny' pooled into 'other'" in capsys.readouterr().out
    fit = json.loads((out / "fit.json").read_text())
    assert fit["rare"] == {"clinic": 5}
    assert "--rare clinic=5 " in table_command("edges", fit, out)
    run(*called, "--force", "--rare", "age=5", code=2)
    said = capsys.readouterr().err
    assert "no levels to pool (--rare). If its numbers are codes, say so (--categories)." in said
    for wrong in ("clinic=few", "=5", "clinic=5,clinic=6", "many"):
        with pytest.raises(SystemExit):
            main([str(word) for word in [*called, "--rare", wrong]])
        assert "argument --rare: expects " in capsys.readouterr().err


def test_numbers_as_categories(table, tmp_path, capsys):
    run("check", table, "--covariates", "month", *nodes(), "--time", "day")
    assert "--categories month" in capsys.readouterr().out
    out = tmp_path / "m"
    run("fit", table, "--covariates", "month", "--categories", "month", *nodes(), "--out", out, *FAST)
    assert gf.load(out).encoder_.categorical[0].levels[:3] == ("1", "2", "3"), "in the order of numbers"
    run("graph", out, "--at", "month=12", "--threshold", "0.01")
    data = from_table(table, ["month"], ["n[0-3]"], categories=["month"])
    assert gf.load(out).predict_coef(data.Z).shape == (N, 4, 4)


def test_the_last_rows_are_held_out(table, tmp_path, capsys, monkeypatch):
    given = {}

    def fit(self, X, Z, **options):
        given.update(options, X=X, Z=Z)
        return original(self, X, Z, **options)

    original = gf.DNNCGM.fit
    monkeypatch.setattr(gf.DNNCGM, "fit", fit)
    run("fit", table, "--covariates", "age", *nodes(), "--time", "day", "--out", tmp_path / "m", *FAST)
    said = capsys.readouterr().out
    assert "Held out: the last 16 rows, from day 2020-05-24 on." in said
    assert list(given["X_val"].index) == list(given["Z_val"].index) == list(range(144, 160))
    assert list(given["X"].index) == list(range(144))
    given.clear()
    run("fit", table, "--covariates", "age,day", *nodes(), "--time", "day", "--out", tmp_path / "n", *FAST)
    assert "whole stretches of time" in capsys.readouterr().out
    assert len(np.unique(given["groups"])) == 50
    assert "X_val" not in given
    told = json.loads((tmp_path / "n" / "fit.json").read_text())
    assert told["time"] == "day"


def test_times_that_are_none(table, capsys):
    for column, message in (("site", "must hold dates"), ("nope", "no column 'nope' for a time")):
        run("check", table, "--covariates", "age", *nodes(), "--time", column, code=2)
        assert message in capsys.readouterr().err
    with pytest.raises(gf.DataError, match="1 missing value"):
        time_values(pd.Series([1.0, None], name="t"))


def test_splits_in_time_keep_moments_together():
    moments = np.repeat(np.arange(20.0), 3)[np.random.default_rng(0).permutation(60)]
    train, held_out = last_in_time(moments, 0.1)
    assert moments[train].max() < moments[held_out].min()
    assert len(held_out) == 6
    blocks = time_blocks(moments, 7)
    assert blocks.min() == 0
    assert blocks.max() == 6
    for moment in np.unique(moments):
        assert len(set(blocks[moments == moment])) == 1
    order = np.argsort(moments, kind="stable")
    assert (np.diff(blocks[order]) >= 0).all()
    assert len(last_in_time(np.array([1.0, 2.0, 2.0, 2.0]), 0.9)[0]) == 1, "something is left to train on"


@pytest.mark.slow
def test_archetypes_from_the_command_line(table, tmp_path, capsys):
    out = tmp_path / "m"
    options = [
        "--model",
        "archetype",
        "--set",
        "n_archetypes=2",
        "--set",
        "max_steps=2",
        "--set",
        "device=cpu",
        "--no-verdict",
        "--details",
    ]
    run("fit", table, "--covariates", "age", *nodes(), "--time", "day", "--out", out, *options)
    said = capsys.readouterr()
    assert "The graph mixes 2 archetypes" in said.out
    assert json.loads((out / "fit.json").read_text())["archetypes"] == 2
    assert isinstance(gf.load(out), gf.ArchetypeCGM)


def test_lists_are_words_with_commas(table, tmp_path, capsys):
    for text, names in (
        ("static,linear", ("static", "linear")),
        ("linear", ("linear",)),
        ("['linear']", ["linear"]),
    ):
        out = tmp_path / str(len(text))
        run(
            "fit",
            table,
            "--covariates",
            "age",
            "--no-verdict",
            *nodes(),
            "--model",
            "auto",
            "--out",
            out,
            "--set",
            f"candidates={text}",
        )
        assert tuple(gf.load(out).candidates) == tuple(names)


def european(folder):
    """The messy table as a European spreadsheet writes it, with a gap and dates of both kinds."""
    frame = messy()
    days = pd.to_datetime(frame["day"])
    frame = frame.assign(day=days.dt.strftime("%d.%m.%Y"), visit=days.dt.strftime("%d/%m/%Y"), site="Köln")
    frame.loc[3, "n1"] = np.nan
    path = folder / "table.csv"
    frame.to_csv(path, index=False, sep=";", decimal=",", encoding="cp1252")
    return path


def test_a_european_table_is_read_and_it_is_said_how(tmp_path, capsys):
    path, out = european(tmp_path), tmp_path / "m"
    about = ["--covariates", "age,day,visit", *nodes(), "--missing", "drop"]
    run("fit", path, *about, "--out", out, *FAST)
    said = capsys.readouterr().out
    assert (
        "read as: semicolons, decimal commas, Windows-1252 (latin-1), dates of 'visit' as dd/mm/yyyy" in said
    )
    assert "first at line 5" in said
    told = json.loads((out / "fit.json").read_text())
    assert told["read_as"] == {"kind": "csv", "encoding": "cp1252", "sep": ";", "decimal": ","}
    assert told["dates"] == {"visit": "dd/mm/yyyy"}
    printed = []
    for visit in ("2020-02-01", "01/02/2020", "01.02.2020"):
        run(
            "graph",
            out,
            "--at",
            "age=50",
            "--at",
            "day=01.02.2020",
            "--at",
            f"visit={visit}",
            "--threshold",
            "0",
        )
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] == printed[2]
    run("graph", out, "--at", "age=50", "--at", "day=02/01/2020", "--at", "visit=2020-01-01", code=2)
    assert "'day' is a date such as 2020-01-01" in capsys.readouterr().err


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(tmp_path, capsys, monkeypatch, pack):
    path = european(tmp_path)
    about = ["--covariates", "age,day", *nodes(), "--missing", "drop"]
    run("check", path, *about)
    expected = capsys.readouterr().out.replace(str(path), "-")
    buffer = io.BytesIO(pack(path.read_bytes()))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=buffer, isatty=lambda: False, closed=False))
    run("check", "-", *about)
    assert capsys.readouterr().out == expected
    run("check", "-", *about, code=2)
    assert "'-' is empty" in capsys.readouterr().err


def test_nothing_on_standard_input(capsys, monkeypatch):
    for stdin in (None, SimpleNamespace(isatty=lambda: True, closed=False)):
        monkeypatch.setattr("sys.stdin", stdin)
        run("check", "-", "--covariates", "age", code=2)
        assert "nothing comes from there" in capsys.readouterr().err


def test_questions_name_options_of_the_command_line(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a;b;z\n1.234;1;01/02/2020\n2.345;2;03/04/2020\n")
    run("check", path, "--covariates", "z", code=2)
    assert "--decimal . or --thousands ." in capsys.readouterr().err
    run("check", path, "--covariates", "z", "--thousands", ".", code=2)
    assert "--date-format dd/mm/yyyy or --date-format mm/dd/yyyy" in capsys.readouterr().err
    run("check", path, "--covariates", "z", "--thousands", ".", "--date-format", "mm/dd/yyyy")
    said = capsys.readouterr().out
    assert "points between thousands, dates of 'z' as mm/dd/yyyy" in said
    assert "2020-01-02 to 2020-03-04" in said


def test_a_second_value_of_an_option_is_refused(table, capsys):
    for option, first, second in (
        ("--sep", ",", ";"),
        ("--decimal", ".", ","),
        ("--encoding", "utf-8", "cp1252"),
    ):
        with pytest.raises(SystemExit, match="2"):
            run("check", table, "--covariates", "age", option, first, option, second)
        assert f"argument {option}: given twice" in capsys.readouterr().err
    run("check", table, "--covariates", "age,site", *nodes(), "--time", "day", "--sep", ",", "--sep", ",")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_blanks_around_levels_are_removed_and_said_before_rare_ones_are_pooled(tmp_path, capsys, ending):
    path = tmp_path / f"t.{ending}"
    sex = np.where(np.arange(N) < 6, " F", np.where(np.arange(N) < 9, "m", np.array(["F", "M"] * (N // 2))))
    written = messy().assign(sex=sex)
    written.to_csv(path, index=False) if ending == "csv" else written.to_parquet(path)
    assert gf.read_table(path).sex.tolist() == sex.tolist()
    data = from_table(str(path), ["sex"], nodes=["n[0-3]"], rare=20)
    assert data.trimmed == {"sex": {" F": 6}}
    assert data.pooled == {}, "'m' beside 'M' is to be written alike, and no rare level"
    run("check", path, "--covariates", "sex", *nodes(), "--rare", "20")
    said = capsys.readouterr().out
    assert "Column 'sex': blanks at the ends of ' F' are removed (6 rows)." in said
    assert "'m' (3 rows) beside 'M'" in said
    assert "fewer than 20 rows" not in said


def test_blanks_after_every_separator_are_no_part_of_the_cells(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a, sex, note\n" + "".join(f'{i}, {"FM"[i % 2]}, "x, y"\n' for i in range(20)))
    assert set(gf.read_table(path).sex) == {"F", "M"}
    assert from_table(path, ["sex"], ["a"]).trimmed == {}


def test_ordered_categories_keep_their_order_without_blanks():
    pain = pd.Categorical(["low", " low", "high "] * 5, ["low", " low", "high "], ordered=True)
    data = from_table(pd.DataFrame({"a": range(15), "pain": pain}), ["pain"], ["a"])
    assert list(data.Z.pain.dtype.categories) == ["low", "high"]
    assert data.Z.pain.dtype.ordered


@pytest.mark.parametrize("kind", ["plain", "ensemble", "clusters"])
def test_a_model_knows_which_levels_were_pooled(tmp_path, kind):
    data = from_table(pd.concat([messy()] * 3, ignore_index=True), ["age", "clinic"], ["n[0-3]"], rare=13)
    model = {
        "plain": gf.RegGMM(),
        "ensemble": gf.Ensemble(estimator=gf.RegGMM(), n_members=2, resample=True, random_state=0),
        "clusters": gf.ByCluster(by="clinic"),
    }[kind]
    again = gf.load(model.fit(data.X, data.Z, groups=data.groups).save(tmp_path / "m"))
    known, raw = (pd.DataFrame({"age": [50.0] * 2, "clinic": ["big", level]}) for level in ("other", "tiny"))
    with pytest.warns(gf.DataWarning, match="'clinic': 'tiny' had few rows and was pooled into 'other'"):
        found = again.predict_coef(raw)
    np.testing.assert_array_equal(found, again.predict_coef(known))
    with pytest.warns(gf.DataWarning, match="pooled into 'other'"):
        curves = edge_curves(again, "age", data.Z, others={"clinic": "tiny"}, n_points=2)
    assert curves.equals(edge_curves(again, "age", data.Z, others={"clinic": "other"}, n_points=2))
    with pytest.raises(gf.DataError, match="'huge', "):
        again.predict_coef(raw.assign(clinic="huge"))


def test_lines_with_too_few_cells_are_named_once(tmp_path, capsys):
    rows = [
        ",".join(f"{value:.4f}" for value in row) for row in np.random.default_rng(0).normal(size=(60, 4))
    ]
    rows[10] = rows[10].rsplit(",", 2)[0]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,c,z", *rows]))
    main(["check", str(path), "--covariates", "z"])
    assert capsys.readouterr().err.count("1 line (12) has fewer cells than the header, which has 4") == 1


def test_rows_of_nothing_are_no_copies_and_make_no_outliers(tmp_path, capsys):
    X, Z = small_data(200, p=4)
    table = pd.concat([X, Z[["age"]]], axis=1)
    table.iloc[:80] = np.nan
    table.to_csv(tmp_path / "t.csv", index=False)
    run("check", tmp_path / "t.csv", "--covariates", "age", "--missing", "drop")
    said = capsys.readouterr().out
    assert "copies" not in said
    assert "robust standard deviations" not in said


def test_columns_that_can_have_no_role_are_in_nobodys_way(tmp_path, capsys):
    """Lists and names with blanks, as Parquet may have them, and several empty columns."""
    path = tmp_path / "t.parquet"
    messy().rename(columns={"age": " age "}).assign(parts=[[1, 2]] * N).to_parquet(path)
    run("check", path, "--covariates", "age", *nodes())
    assert "'parts'" in capsys.readouterr().out
    run("check", path, "--covariates", "parts", *nodes(), code=2)
    assert "must hold one value" in capsys.readouterr().err
    messy().assign(e=np.nan, f=np.nan).to_parquet(path)
    fit = ["--model", "linear", "--out", tmp_path / "m"]
    run("fit", path, "--covariates", "age", "--nodes", "n0,n1,e,f", "--missing", "drop", *fit, code=2)
    assert "Nodes 'e', 'f' are empty" in (said := capsys.readouterr().err)
    assert "Leave them out with --drop" in said
    (tmp_path / "empty").mkdir()
    run("check", tmp_path / "empty", "--covariates", "age", code=2)
    assert "is a folder. Name the table in it" in capsys.readouterr().err


def series(path, n=160):
    """Nodes and a covariate that wander, in their order and sorted by the covariate."""
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(n, 4))
    for row in range(1, n):
        steps[row] += 0.8 * steps[row - 1]
    frame = pd.DataFrame(steps, columns=["a", "b", "c", "heat"])
    frame.to_csv(path / "series.csv", index=False)
    frame.assign(heat=np.arange(n) // (n // 2)).to_csv(path / "sorted.csv", index=False)
    return frame


def test_rows_that_look_like_a_series_are_tested_as_one(tmp_path, capsys):
    series(tmp_path)
    run("evidence", tmp_path / "series.csv", "--covariates", "heat", "--permutations", "19")
    said = capsys.readouterr().out
    assert "the covariates are shifted in time against the nodes" in said
    assert "sorted by what is not used. They were tested as a series" in said
    run("evidence", tmp_path / "sorted.csv", "--covariates", "heat", "--permutations", "19")
    said = capsys.readouterr().out
    assert "Rows are not independent" in said
    assert "As if rows were independent: " in said


def test_rows_in_order_are_judged_in_blocks(tmp_path):
    frame = series(tmp_path)
    X, Z = frame[["a", "b"]], frame[["heat"]]
    found = gf.gain_over_one_graph(gf.RegGMM(), X, Z, in_order=True, n_folds=1)
    assert found.unit == "row block"
    assert 10 <= found.n_units <= 20


@pytest.mark.slow
def test_rows_sorted_by_a_column_that_is_left_out_are_no_series_to_any_command(tmp_path, capsys):
    rng = np.random.default_rng(0)
    score = np.sort(rng.normal(size=200))
    score[[20, 90]] = score[[150, 5]]
    frame = pd.DataFrame(score[:, None] + rng.normal(size=(200, 4)), columns=["a", "b", "c", "heat"])
    frame.assign(score=score).to_csv(table := tmp_path / "sorted.csv", index=False)
    roles = (table, "--covariates", "heat", "--drop", "score")
    run("check", *roles, "--strict")
    run("evidence", *roles, "--permutations", "19")
    run("edges", *roles)
    run("fit", *roles, "--model", "reggmm", "--evidence", "--edges", "--out", tmp_path / "m")
    run("report", tmp_path / "m", "--out", tmp_path / "m.html")
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    said = "".join(capsys.readouterr())
    assert "Note: Rows are sorted by 'score'" in said
    for text in (said, page):
        assert "series" not in text.replace("they are no series", "")
        assert "row block" not in text
        assert "p-values are too small" not in text


@pytest.mark.slow
def test_a_verdict_on_rows_that_look_like_a_series_counts_blocks(tmp_path, capsys):
    series(tmp_path)
    table, model = tmp_path / "series.csv", tmp_path / "m"
    run("fit", table, "--covariates", "heat", "--model", "reggmm", "--details", "--out", model)
    said = capsys.readouterr().out
    assert "160 held-out rows (50 blocks of rows, in 5 folds)" in said
    assert "judges the recipe, not this one fit: 5 fits of the same kind without some of the rows" in said
    assert "as in a series over time" in said
