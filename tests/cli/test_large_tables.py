"""``graphfield fit`` of tables that do not fit in the memory that it may take."""

from __future__ import annotations

import json
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


def test_what_needs_the_whole_table_is_refused(table: Path, capsys) -> None:
    assert fit(table, "--memory", "500KB", "--rare", "20") == 2
    assert "--rare is for tables that are in memory" in capsys.readouterr().err
    assert fit(table, "--memory", "much") == 2
    assert "--memory must be a size such as '4GB'" in capsys.readouterr().err
