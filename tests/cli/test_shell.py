"""What a person at a shell is told: of the check, of columns to leave out, in options and lines of files."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import FAST_FIT as FAST
from conftest import small_data
from graphfield.cli import main
from graphfield.cli.values import covariate_values
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.frames import as_frame

N = 120


def plain() -> pd.DataFrame:
    X, Z = small_data(N, p=4)
    return pd.concat([X, Z[["age"]]], axis=1)


@pytest.fixture
def shell(tmp_path, capsys):
    """Runs a command on a table; gives what it printed, and on stderr one line at most."""

    def run(command, table, *options, code=0, name="table.csv"):
        path = tmp_path / name
        if isinstance(table, str):
            path.write_text(table)
        elif isinstance(table, pd.DataFrame):
            table.to_csv(path, index=False)
        else:
            path = table
        capsys.readouterr()
        assert main([command, str(path), *map(str, options)]) == code
        said = capsys.readouterr()
        assert said.err.count("\n") <= 1
        return said.err if code else said.out

    return run


def test_evidence_looks_at_the_table_first(shell):
    table = plain().assign(subject=np.repeat([f"s{i}" for i in range(30)], 4))
    options = ["--covariates", "age", "--permutations", "19"]
    said = shell("evidence", table, *options)
    looks = said.index("Look: Column 'subject' is not used and has 30 different values")
    assert looks < said.index("rearrangements")
    assert "--group subject" in said
    assert "Look: Column" not in shell("evidence", table, *options, "--group", "subject")


def test_evidence_says_once_what_was_dropped(shell):
    table = plain()
    table.loc[5, "n1"] = np.nan
    said = shell("evidence", table, "--covariates", "age", "--permutations", "19", "--missing", "drop")
    assert said.count("Dropped 1 of 120 rows") == 1


def test_tables_without_missing_values():
    table = plain().assign(subject=np.arange(N) // 4, day=np.arange(N))
    table.loc[[3, 50], "n1"] = np.nan
    table.loc[50, "age"] = np.inf
    roles = {"covariates": ["age"], "nodes": ["n*"], "group": "subject", "time": "day"}
    with pytest.warns(gf.DataWarning, match="Dropped 2 of 120 rows"):
        data = gf.from_table(table, **roles, missing="drop")
    kept = np.delete(np.arange(N), [3, 50])
    for part in (data.X, data.Z, data.groups, data.time):
        assert len(part) == N - 2
        assert part.index.equals(data.X.index)
    assert data.time.tolist() == kept.tolist()
    assert data.groups.tolist() == (kept // 4).tolist()
    with pytest.warns(gf.DataWarning, match="Imputed 3 missing"):
        assert np.isfinite(gf.from_table(table, **roles, missing="impute").X.to_numpy()).all()
    with pytest.raises(gf.DataError, match="'n1' has 2"):
        gf.from_table(table, **roles, missing="error")
    assert gf.from_table(table, **roles).X["n1"].isna().sum() == 2


def test_dates_that_are_none(shell):
    days = ["2020-13-45"] * 3 + ["2020-01-01"] * 60 + ["2020-01-02"] * 56 + ["soon"]
    for covariates in ("day,age", "age"):
        said = shell("check", plain().assign(day=days), "--covariates", covariates)
        assert "Look: Column 'day' looks like dates, but some of its values are none" in said
        assert "'2020-13-45' in 3 rows, first at line 2; 'soon' in 1 row, first at line 121." in said
    codes = np.where(np.arange(N) % 2, "1234-56-78", "4321-65-87")
    assert "Nothing looks wrong" in shell("check", plain().assign(code=codes), "--covariates", "code,age")


@pytest.mark.parametrize("missing", ["error", "drop", "impute"])
def test_an_empty_column_is_named(shell, tmp_path, missing):
    table = plain().assign(e=np.nan)
    options = ["--covariates", "age", "--missing", missing]
    said = shell("check", table, *options)
    assert "nodes: 1 empty, 'e'; 120 missing" in said
    assert said.count("Look:") == 1
    assert "Node 'e' is empty: it has no value in any of 120 rows, and fit refuses it. Leave it out" in said
    assert "(--drop e)" in said
    told = shell("fit", table, *options, "--out", tmp_path / "m", code=2)
    assert "Node 'e' is empty" in told
    assert "--drop" in told
    with pytest.raises(gf.DataError, match=r"Covariate 'age' is empty: .* Leave it out\."):
        gf.RegGMM(missing=missing).fit(plain()[["n0", "n1"]], plain()[["age"]] * np.nan)


def test_columns_can_be_left_out(shell, tmp_path):
    table = plain().assign(const=3.0)
    assert "(--drop const)" in shell("check", table, "--covariates", "age")
    assert "Nothing looks wrong" in shell("check", table, "--covariates", "age", "--drop", "const")
    shell("fit", table, "--covariates", "age", "--drop", "const,n[23]", "--out", tmp_path / "m", *FAST)
    assert gf.load(tmp_path / "m").node_names_ == ["n0", "n1"]
    said = shell("check", table, "--covariates", "age", "--drop", "cnst", code=2)
    assert "no column 'cnst' to leave out. Did you mean 'const'?" in said
    said = shell("check", table, "--covariates", "age", "--drop", "age", code=2)
    assert "'age': a column cannot be left out (--drop) and be named for a covariate" in said


def test_columns_can_be_left_out_of_patterns():
    data = gf.from_table(plain(), covariates=["age"], nodes=["n*"], drop=["n2"])
    assert list(data.X.columns) == ["n0", "n1", "n3"]
    assert data.unused == ["n2"]
    assert list(gf.from_table(plain(), covariates="n[12]", drop="n2").Z.columns) == ["n1"]
    with pytest.raises(gf.DataError, match="No column is left for a node without 'n0'"):
        gf.from_table(plain(), covariates=["age"], nodes=["n*"], drop=["n?"])


def test_a_pattern_leaves_out_no_column_that_is_named(shell):
    table = plain().assign(
        age2=lambda t: t["age"] ** 2, agent=[f"{i % 9}.{i % 7}00" for i in range(len(plain()))]
    )
    said = shell("check", table, "--covariates", "age", "--group", "agent", "--drop", "age*")
    assert "left out by --drop: 'age2'" in said
    assert said.count("'age2'") == 1
    assert "covariate 'age': number" in said
    data = gf.from_table(table, covariates=["age"], group="agent", drop=["a*"])
    assert data.dropped == ["age2"]
    assert "left out: 'age2'" in repr(data)


def test_a_named_column_that_a_pattern_passes_over_is_read_as_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("a;age\n" + "".join(f"{i},5;1.{i + 100},5\n" for i in range(30)))
    data = gf.from_table(tmp_path / "t.csv", covariates=["age"], drop=["ag*"], thousands=".")
    assert data.Z["age"].tolist() == [1100.5 + i for i in range(30)]


@pytest.mark.parametrize("name", ["table.csv", "table.tsv"])
def test_rows_are_lines_of_the_file(shell, name):
    """Empty lines and lines within quotes count, as they do in an editor."""
    rows = [f"{i % 7},{i % 5},{20 + i},note" for i in range(40)]
    rows[3] = '1,2,23,"two\nlines"'
    rows[10] = "\n1e9,2,30,note"
    text = "\n\na,b,age,text\n" + "\n".join(rows) + "\n"
    line = next(i for i, own in enumerate(text.splitlines(), start=1) if own.startswith("1e9"))
    text = text.replace(",", "\t") if name.endswith("tsv") else text
    assert line == 16
    said = shell("check", text, "--covariates", "age", "--nodes", "a,b", name=name)
    assert (
        f"Node 'a' has a value more than 10 robust standard deviations from its median, 1e+09 in line {line}."
        in said
    )


def test_rows_of_other_tables_are_counted_from_one(shell, tmp_path):
    X, Z = small_data(N, p=3)
    values = X.to_numpy(copy=True)
    values[7, 1] = np.nan
    np.savez(tmp_path / "t.npz", X=values, Z=Z[["age"]].to_numpy())
    said = shell("check", tmp_path / "t.npz", "--covariates", "z1", "--missing", "drop")
    assert "(first at row 8)" in said


def test_rows_are_those_of_the_file_when_others_were_dropped(shell, tmp_path):
    table = plain()
    table.loc[3, "n0"] = np.nan
    table.loc[30, "n1"] = 1e120
    options = ["--covariates", "age", "--missing", "drop", "--out", tmp_path / "m"]
    assert "line 32 holds 1e+120" in shell("fit", table, *options, code=2)
    table.loc[30, "n1"] = 0.0
    table = table.assign(age=np.where(np.arange(N) == 40, "old", table["age"].astype(str)))
    assert "line 42 holds 'old'" in shell("fit", table, *options, code=2)


def test_the_file_has_the_words_of_the_screen(shell, tmp_path):
    table = plain()
    table.loc[17, "n1"] = 1e6
    said = shell("fit", table, "--covariates", "age", "--out", tmp_path / "m", *FAST)
    kept = json.loads((tmp_path / "m" / "data_check.json").read_text())
    told = [f"{one['message']} {one['advice']}" for one in kept["warnings"] if one["code"] == "outliers"]
    assert "from its median, 1e+06 in line 19." in told[0]
    assert f"Look: {told[0]}" in said


def test_of_two_values_no_other_is_asked_for(shell, tmp_path):
    """Nothing is between 0 and 1, or beyond them; a number that no row reaches is not compared."""
    table = plain().assign(inmetro=np.arange(N) // 2 % 2, year=np.where(np.arange(N) % 3, 2001, 2005))
    covariates = ["--covariates", "age,inmetro,year"]
    shell("fit", table, *covariates, "--out", tmp_path / "m", *FAST)
    for asked in ("inmetro=2", "inmetro=0.5"):
        said = shell("graph", tmp_path / "m", "--at", asked, code=2)
        assert f"'inmetro' has the values 0 and 1 only, but --at gives {asked[8:]}." in said
    assert "has the values 2001 and 2005 only" in shell("graph", tmp_path / "m", "--at", "year=2003", code=2)
    said = shell("differences", table, *covariates, "--between", "inmetro=1", "--and", "inmetro=2", code=2)
    assert "'inmetro' has the values 0 and 1 only, but --and gives 2." in said
    beyond = f"{table.age.max() + 5:g}"
    said = shell("differences", table, *covariates, "--between", f"age={beyond}", "--and", "age=50", code=2)
    assert f"age={beyond} is beyond all rows, which have 'age' from {table.age.min():g}" in said
    said = shell("differences", table, *covariates, "--between", "metro=1", "--and", "metro=0", code=2)
    assert "There is no covariate called 'metro'. Did you mean 'inmetro'? The covariates are" in said


def test_errors_speak_of_options(shell, tmp_path):
    said = shell("evidence", plain(), "--covariates", "age", "--permutations", "5", code=2)
    assert "--permutations must be a whole number of at least 19, got 5." in said
    assert "--rare must be" in shell("check", plain(), "--covariates", "age", "--rare", "1", code=2)
    shell("fit", plain(), "--covariates", "age", "--out", tmp_path / "m", *FAST)
    said = shell("graph", tmp_path / "m", "--at", "agee=3", code=2)
    assert "There is no covariate called 'agee'. Did you mean 'age'? The covariates are 'age'." in said
    table = plain().assign(const=2.0)
    said = shell("fit", table, "--covariates", "age", "--out", tmp_path / "n", code=2)
    assert "'const' has the same value in every training row" in said
    assert "--drop" in said
    table = plain().astype({"n0": object})
    table.loc[4, "n0"] = "high"
    said = shell("fit", table, "--covariates", "age", "--nodes", "n*", "--out", tmp_path / "n", code=2)
    assert "'n0' must hold numbers, but line 6 holds 'high'. Correct the value" in said


def test_errors_of_a_study_speak_of_options(shell, tmp_path):
    pytest.importorskip("matplotlib")
    days = pd.bdate_range("2020-01-01", periods=80)
    moves = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 4)), columns=["A", "B", "C", "I"])
    prices = np.exp(0.01 * moves.cumsum()).assign(date=days.strftime("%Y-%m-%d"))
    options = ["--index", "I", "--lookback", "20", "--out", tmp_path / "f", "--train-until"]
    said = shell("finance", prices, *options, "2020-03-31", "--valid-until", "2020-02-28", code=2)
    assert "--valid-until (2020-02-28) must not be before --train-until (2020-03-31)." in said
    assert "--train-until must be a date" in shell("finance", prices, *options, "soon", code=2)


def test_a_threshold_is_a_partial_correlation(shell, tmp_path):
    table = plain()
    shell("fit", table, "--covariates", "age", "--out", tmp_path / "m", *FAST)
    for cut in ("7", "1.01", "-0.1", "nan", "low"):
        said = shell("graph", tmp_path / "m", "--at", "age=50", f"--threshold={cut}", code=2)
        assert "--threshold must be 'auto', 'gap', 'none', or a partial correlation" in said
    model = gf.load(tmp_path / "m")
    for cut in (7, 1.01, -0.1, np.nan, np.float64(2), True, "low"):
        with pytest.raises(
            gf.ParameterError, match="threshold must be 'auto', 'gap', None, or a partial correlation"
        ):
            model.predict_graph(table[["age"]], threshold=cut)
    assert not model.predict_graph(table[["age"]], threshold=1).any()


def test_fewer_rows_than_a_fit_takes(shell):
    said = shell("check", plain().head(9), "--covariates", "age")
    assert "Look: 9 rows: fit refuses fewer than 10." in said
    assert "fit refuses fewer" not in shell("check", plain().head(10), "--covariates", "age")
    table = plain().head(30)
    table.loc[5:, "n0"] = np.nan
    said = shell("check", table, "--covariates", "age", "--missing", "drop")
    assert "5 rows without missing values: fit refuses fewer than 10." in said


def leaks(table):
    check = gf.check_data(table[["n0", "n1", "n2", "n3"]], table[["age"]])
    return [one.message for one in check.warnings if one.code == "leak"]


def test_copies_of_covariates_among_nodes():
    table = plain()
    table["n3"] = table["age"]
    table.loc[::4, "age"] = np.nan
    table.loc[1::5, "n3"] = np.nan
    assert leaks(table) == ["Covariate 'age' is the same as node 'n3'."]
    assert leaks(table.assign(n3=32 - 1.8 * table["n3"])) == [
        "Covariate 'age' is the same as node 'n3' up to scale."
    ]
    assert leaks(table.assign(n3=table["n3"] ** 2)) == [
        "Covariate 'age' is nearly a function of node 'n3' (rank correlation 1.000)."
    ]


def test_notes_are_for_people(shell, monkeypatch):
    """Warnings of other packages are no notes; ours are."""

    def check(*_, **__):
        warnings.simplefilter("always")  # as they are outside of tests
        warnings.warn("An input array is constant", RuntimeWarning, stacklevel=2)
        warnings.warn("Look here", gf.DataWarning, stacklevel=2)
        return found

    found = gf.check_data(plain()[["n0", "n1"]], plain()[["age"]])
    monkeypatch.setattr("graphfield.check.table.check_table", check)
    path = pd.io.common.StringIO()
    monkeypatch.setattr("sys.stderr", path)
    shell("check", plain(), "--covariates", "age")
    assert path.getvalue() == "graphfield: note: Look here\n"


def test_values_of_several_covariates_stand_behind_one_option():
    """A comma parts them only where another covariate follows: levels may have commas."""
    Z = pd.DataFrame({"sex": ["F", "M"] * 5, "age": np.arange(10.0), "town": ["Ulm, west", "Bonn"] * 5})
    encoder = CovariateEncoder().fit(as_frame(Z, "Z"))
    wanted = {"sex": "F", "age": 4.0, "town": "Ulm, west"}
    assert covariate_values(["sex=F,age=4", "town=Ulm, west"], encoder) == wanted
    assert covariate_values(["sex=F, town=Ulm, west,age=4"], encoder) == wanted
    with pytest.raises(gf.ParameterError, match="covariate=value"):
        covariate_values(["sex=F", "age"], encoder)
