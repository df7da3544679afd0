"""Commands that are killed at random file operations, what must be there afterwards, and the next run.

``python tests/kill_scenarios.py NAME KILLS SEED FOLDER`` prints one line of JSON: how many were killed and
what was wrong afterwards. Everything happens in forks of one process: to import torch takes seconds.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import graphfield as gf
from conftest import small_data
from graphfield.cli import main
from graphfield.experiments.folders import cell_folder, is_done, read_report
from graphfield.experiments.methods import TableCell
from kills import files_under, in_fork

SPEC = """
format_version = 1
title = "A small table"
n_train = 120
n_test = 5
columns = ["G1"]
metrics = ["auroc"]
[[rows]]
method = "reggmm"
evaluation = "published"
"""
FAST = ["rank=2", "max_steps=40", "hidden_size=16", "device=cpu"]


@dataclass(frozen=True)
class Scenario:
    """``run`` writes below a folder that ``fill`` has put earlier results into, or that is empty."""

    fill: Callable[[Path], None]
    run: Callable[[Path], None]
    again: Callable[[Path], None]
    check: Callable[[Path, bool], None]  # the folder, and whether only the new will do


def command(*words: object) -> None:
    code = main([str(word) for word in words])
    assert code == 0, f"{words[0]} ended with {code}"


def saved(base: Path) -> Scenario:
    """``save(overwrite=True)`` of a small model in the place of another."""
    X, Z = small_data(60, 5)
    old, new = (gf.GraphicalLasso(penalty=penalty).fit(X, Z) for penalty in (0.1, 0.3))

    def check(root: Path, only_new: bool) -> None:
        found = gf.load(root / "model").predict_coef(Z)
        known = [new] if only_new else [old, new]
        assert any(np.array_equal(found, model.predict_coef(Z)) for model in known)

    def run(root: Path) -> None:
        new.save(root / "model", overwrite=True)

    return Scenario(lambda root: old.save(root / "model"), run, run, check)


def fitted(base: Path) -> Scenario:
    """``graphfield fit --force`` with a checkpoint; the next run resumes to the same bits."""
    X, Z = small_data(60, 5)
    pd.concat([X, Z], axis=1).to_csv(base / "table.csv", index=False)
    words = ["fit", base / "table.csv", "--covariates", "age", "--nodes", "n*", "--force", "--no-verdict"]
    words += [word for setting in FAST for word in ("--set", setting)]
    command(*words, "--out", base / "whole")
    command(*words, "--out", base / "other", "--seed", "1")
    arrays = {name: (base / name / "arrays.safetensors").read_bytes() for name in ("whole", "other")}

    def check(root: Path, only_new: bool) -> None:
        gf.load(root / "model")
        found = (root / "model" / "arrays.safetensors").read_bytes()
        assert found == arrays["whole"] or (found == arrays["other"] and not only_new)

    def run(root: Path, *more: str) -> None:
        command(*words, "--out", root / "model", "--checkpoint", root / "c", *more)

    return Scenario(
        lambda root: shutil.copytree(base / "other", root / "model"),
        run,
        lambda root: run(root, "--resume"),
        check,
    )


def reported(base: Path) -> Scenario:
    """``graphfield report --force`` over an earlier page."""
    X, Z = small_data(60, 5)
    gf.GraphicalLasso(penalty=0.1).fit(X, Z).save(base / "model")
    command("report", base / "model", "--title", "the old page", "--out", base / "old.html")

    def check(root: Path, only_new: bool) -> None:
        page = (root / "page.html").read_text(encoding="utf-8")
        assert page.rstrip().endswith("</html>")
        assert "the new page" in page or ("the old page" in page and not only_new)

    def run(root: Path) -> None:
        command("report", base / "model", "--title", "the new page", "--force", "--out", root / "page.html")

    return Scenario(lambda root: shutil.copy(base / "old.html", root / "page.html"), run, run, check)


def reproduced(base: Path) -> Scenario:
    """``graphfield reproduce --force`` over the same cells."""
    (base / "small.toml").write_text(SPEC)
    words = ["reproduce", base / "small.toml", "--replicates", "2", "--jobs", "1", "--no-lines", "--force"]
    words += ["--methods", "reggmm"]
    command(*words, "--out", base / "old")

    def check(root: Path, _: bool) -> None:
        for seed in (0, 1):
            cell = TableCell("G1", "reggmm", 120, 5, seed)
            assert is_done(root / "out", cell)
            assert read_report(root / "out", cell)["seed"] == seed
            assert len(pd.read_parquet(cell_folder(root / "out", cell) / "samples.parquet"))
        assert set(pd.read_csv(root / "out" / "cells.csv")["seed"]) == {0, 1}

    def run(root: Path) -> None:
        command(*words, "--out", root / "out")

    return Scenario(lambda root: shutil.copytree(base / "old", root / "out"), run, run, check)


def exported(base: Path) -> Scenario:
    """``graphfield graph --out`` and ``graphfield simulate`` over earlier files."""
    X, Z = small_data(60, 5)
    gf.GraphicalLasso(penalty=0.1).fit(X, Z[["age"]]).save(base / "model")

    def write(root: Path, age: int, n: int) -> None:
        at = ["--at", f"age={age}", "--threshold", "none", "--force"]
        for ending in ("json", "parquet"):
            command("graph", base / "model", *at, "--out", root / f"graph.{ending}")
        command("simulate", "G1", "--n", n, "--out", root / "sim.npz", "--force")

    def check(root: Path, only_new: bool) -> None:
        assert json.loads((root / "graph.json").read_text())["nodes"]
        assert len(pd.read_parquet(root / "graph.parquet"))
        with np.load(root / "sim.npz") as stored:
            assert len(stored["X"]) in ((30,) if only_new else (20, 30))
            assert len(stored["truth_skeleton"]) == len(stored["X"])

    def run(root: Path) -> None:
        write(root, 40, 30)

    return Scenario(lambda root: write(root, 30, 20), run, run, check)


SCENARIOS = {
    "save": saved,
    "fit": fitted,
    "report": reported,
    "reproduce": reproduced,
    "export": exported,
}


def trial(scenario: Scenario, root: Path, draw: random.Random, most: int, expected: list[str]) -> str | None:
    """One kill; None where the work was over before, otherwise "" or what was wrong."""
    root.mkdir()
    filled = draw.random() < 0.75
    if filled:
        scenario.fill(root)
    options = {"exchange": draw.random() < 0.5}
    last = draw.randint(1, most)
    outcome = in_fork(lambda: scenario.run(root), root, last, **options)
    where = f"killed at operation {last} ({options}, filled: {filled}): "
    if outcome.kind == "done":
        return None
    if outcome.kind != "killed":
        return where + f"{outcome.kind}: {outcome.said}"
    if filled:
        looked = in_fork(lambda: scenario.check(root, False), root)
        if looked.kind != "done":
            return where + f"lost: {files_under(root)} {looked.said}"
    rerun = in_fork(lambda: scenario.again(root), root, **options)
    if rerun.kind != "done":
        return where + f"the next run {rerun.kind}: {rerun.said}"
    looked = in_fork(lambda: scenario.check(root, True), root)
    if looked.kind != "done":
        return where + f"the next run wrote something else: {looked.said}"
    left = sorted(set(files_under(root)) ^ set(expected))
    return where + f"left behind or missing: {left}" if left else ""


def run_kills(name: str, kills: int, seed: int, folder: Path) -> dict[str, object]:
    base = folder / "base"
    base.mkdir()
    scenario = SCENARIOS[name](base)
    draw = random.Random(seed)
    whole = folder / "whole"
    whole.mkdir()
    scenario.fill(whole)
    outcome = in_fork(lambda: scenario.run(whole), whole)
    assert outcome.kind == "done", outcome.said
    expected = files_under(whole)
    done, wrong, tried = 0, [], 0
    while done < kills:
        root = folder / f"trial{tried}"
        found = trial(scenario, root, draw, outcome.operations + 5, expected)  # two moves are more than one
        shutil.rmtree(root)
        tried += 1
        done += found is not None
        wrong += [found] if found else []
    return {"killed": done, "operations": outcome.operations, "wrong": wrong}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    name, kills, seed, folder = sys.argv[1:]
    terminal, sys.stdout = sys.stdout, sys.stderr
    result = run_kills(name, int(kills), int(seed), Path(folder))
    terminal.write(json.dumps(result) + "\n")
