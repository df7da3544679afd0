"""``graphfield fit`` of tables that do not fit in the memory that it may take."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.cli import main


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(3_000, 4)), columns=list("abcd"))
    frame["b"] += frame["a"]
    frame["z"] = rng.uniform(size=len(frame))
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    return path


def fit(table: Path, *more: str) -> int:
    out = str(table.parent / "model")
    quick = ["--no-verdict", "--set", "max_steps=5", "--set", "rank=2"]
    return main(["fit", str(table), "--covariates", "z", "--out", out, "--force", *quick, *more])


def test_all_rows_are_fitted_and_a_sample_is_checked(table: Path, capsys) -> None:
    assert fit(table, "--memory", "500KB") == 0
    assert "of 1,250 of 3,000 rows, drawn at random" in capsys.readouterr().out
    folder = table.parent / "model"
    assert json.loads((folder / "fit.json").read_text())["rows"] == 3_000
    by_rows = gf.load(folder)
    assert fit(table, "--memory", "1GB") == 0
    assert "drawn at random" not in capsys.readouterr().out
    z = [[0.2], [0.8]]
    np.testing.assert_allclose(gf.load(folder).predict_coef(z), by_rows.predict_coef(z), atol=1e-6)


def test_a_folder_is_a_table(table: Path, capsys) -> None:
    (table.parent / "parts").mkdir()
    table.rename(table.parent / "parts" / "0.parquet")
    assert fit(table.parent / "parts") == 0
    assert "3,000 rows" in capsys.readouterr().out


@pytest.fixture
def parts(table: Path) -> Path:
    folder = table.parent / "parts"
    folder.mkdir()
    frame = pd.read_parquet(table).iloc[:300].assign(day=np.arange(300))
    for part in range(3):
        frame.iloc[part::3].to_parquet(folder / f"{part}.parquet")
    return folder


@pytest.mark.parametrize("command", ["check", "edges", "fit"])
def test_every_command_that_takes_a_table_takes_a_folder(parts: Path, capsys, command: str) -> None:
    """The same as one file, with what needs the whole table."""
    one = parts.parent / "one.parquet"
    pd.concat([pd.read_parquet(part) for part in sorted(parts.iterdir())]).to_parquet(one)
    more = ["--model", "linear", "--no-verdict"] if command == "fit" else []
    more += [] if command == "check" else ["--out", str(parts.parent / "out"), "--force"]
    said = []
    for path in (parts, one):
        assert main([command, str(path), "--covariates", "z", "--time", "day", *more]) == 0
        said.append(re.sub(r"[\d.]+ s\b", "", capsys.readouterr().out.replace(str(path), "TABLE")))
    assert "300 rows" in said[0]
    assert said[0] == said[1]


def test_a_folder_that_does_not_fit_says_what_to_do(parts: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("graphfield.data.room.free_memory", lambda: 10_000)
    assert main(["check", str(parts), "--covariates", "z"]) == 2
    said = capsys.readouterr().err
    assert "(300 rows of 6 columns) as a whole would take 14.4 kB of memory, but 10.0 kB are free" in said
    assert "'graphfield fit' takes it by rows" in said


def test_what_needs_the_whole_table_is_refused(table: Path, capsys) -> None:
    assert fit(table, "--memory", "500KB", "--rare", "20") == 2
    assert "--rare is for tables that are in memory" in capsys.readouterr().err
    assert fit(table, "--memory", "much") == 2
    assert "--memory must be a size such as '4GB'" in capsys.readouterr().err


@pytest.fixture
def fitted(table: Path) -> Path:
    out = table.parent / "model"
    args = ["fit", str(table), "--covariates", "z", "--out", str(out), "--no-verdict", "--model", "linear"]
    assert main(args) == 0
    return out


@pytest.mark.parametrize("kind", ["parquet", "folder", "csv"])
def test_edges_and_values_at_every_row(fitted: Path, table: Path, kind: str, capsys) -> None:
    frame, rows = pd.read_parquet(table), table
    if kind == "folder":
        rows = table.parent / "parts"
        rows.mkdir()
        for i in range(3):
            frame.iloc[i * 1_000 : (i + 1) * 1_000].to_parquet(rows / f"{i}.parquet")
    elif kind == "csv":
        rows = table.with_suffix(".csv")
        frame.to_csv(rows, index=False)
    model, out = gf.load(fitted), table.parent / "out"
    words = ["predict", str(fitted), str(rows), "--out", str(out)]
    assert main([*words, "--threshold", "0.2"]) == 0
    assert "Wrote the edges at 3,000 rows of" in capsys.readouterr().out
    expected = model.edges(frame[["z"]], threshold=0.2)
    found = pd.read_parquet(out)
    assert len(expected) >= 2_000
    np.testing.assert_array_equal(found["sample"], expected["sample"])
    np.testing.assert_allclose(found["weight"], expected["weight"], atol=1e-6)
    assert main([*words, "--values"]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main([*words, "--values", "--force"]) == 0
    expected = model.predict(frame[list("abcd")], frame[["z"]])
    np.testing.assert_allclose(pd.read_parquet(out), expected, atol=1e-6)


def test_edges_need_no_nodes_in_the_table(fitted: Path, table: Path, capsys) -> None:
    rows, out = table.parent / "z.parquet", str(table.parent / "out")
    pd.read_parquet(table)[["z"]].head(5).to_parquet(rows)
    assert main(["predict", str(fitted), str(rows), "--threshold", "none", "--out", out]) == 0
    assert pd.read_parquet(out)["sample"].nunique() == 5
    capsys.readouterr()
    assert main(["predict", str(fitted), str(rows), "--values", "--out", out, "--force"]) == 2
    assert "'a'" in capsys.readouterr().err
