"""Commands that made the published numbers still run: the smallest case of each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

INFERENCE = (
    "coverage --n 300 --p 7",
    "fdr --settings G1 --n 300",
    "null --designs static-300-10",
    "permuted --tables iris",
    "same --n 60 --noise normal",
    "kinds --n 150",
    "kinds-null --n 400",
    "moderated --n 280",
    "time --n 300 --p 10",
)


def run(command: str, *options: str) -> None:
    script, *words = command.split()
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / f"{script}.py"), *words, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", INFERENCE)
def test_inference_prints_and_keeps_its_lines(command: str, tmp_path: Path) -> None:
    out = tmp_path / "lines.json"
    run(f"inference {command}", "--sets", "1", "--out", str(out))
    lines = json.loads(out.read_text())["lines"]
    assert lines
    assert all(np.isfinite(value) for line in lines for value in line.values() if isinstance(value, float))


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "dependence_validity null --designs mean-wave --sets 1",
        "dependence_validity power --designs one-edge-300 --sets 1",
        "thresholds --methods glasso,reggmm --settings G2,S1 --n 300 --seeds 0 --device cpu",
        "moving_scales --methods reggmm,static --n 300 --seeds 0 --device cpu",
    ],
)
def test_others_run(command: str) -> None:
    run(command)


@pytest.mark.slow
@pytest.mark.skipif(not (BENCHMARKS.parent / ".git").exists(), reason="needs the history")
def test_two_states_of_the_code_are_held_against_each_other(tmp_path: Path) -> None:
    out = tmp_path / "lines.json"
    run("same_answers HEAD HEAD --only RegGMM", "--out", str(out))
    lines = json.loads(out.read_text())
    assert len(lines) == 3
    assert {line["largest"] for line in lines} == {0.0}


@pytest.mark.slow
def test_answers_on_tables_are_compared_with_folds_made_outside(tmp_path: Path) -> None:
    (tmp_path / "mixed").mkdir()
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(500, 6)), columns=[f"x{j}" for j in range(1, 7)])
    table.assign(x7=rng.integers(3, size=500)).to_csv(tmp_path / "mixed" / "group_mixed.csv", index=False)
    out = tmp_path / "lines.json"
    options = ("--data", str(tmp_path), "--only", "groups3", "--rows", "250", "--model", "linear")
    run("first_answers", *options, "--out", str(out))
    (line,) = json.loads(out.read_text())
    claimed, outside = line["gain"]["explained"]["value"], [line["folds"][1], line["rest"][1]]
    assert outside == pytest.approx([claimed] * 2, abs=0.05)


def test_every_benchmark_finds_what_it_imports() -> None:
    """All of them in one process: a name that moved is seen before somebody asks for the numbers."""
    names = sorted(path.stem for path in BENCHMARKS.glob("*.py"))
    code = f"import importlib\nfor name in {names}:\n    importlib.import_module(name)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
