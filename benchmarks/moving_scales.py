"""Scales that move with the covariates are not edges that move.

    .venv/bin/python benchmarks/moving_scales.py [--methods dnncgm,reggmm] [--shapes exp,sin,levels]
        [--n 3000] [--seeds 0 1 2 3 4] [--device cpu] [--jobs 1] [--known] [--data FOLDER] [--out FILE.json]

A chain of six nodes, every true partial correlation 0.35 at every z. The scales of neighbours go opposite
ways: exp(+z) and exp(-z) ("exp"), exp(+-0.8 sin 8z) ("sin"), z uniform on [-1, 1]; or they are 1, 2 and 4
times as large in the levels of a category ("levels"). Says how far the edges are from 0.35 (the worst
of five edges at five values of z), the largest edge that is not there, and what AutoCGM says about z. With
--known, nodes are divided by their true scales first: what is left is chance.

With --data (tables as in benchmarks/real_data.py): DNNCGM and RegGMM with scales that may move and with fixed
ones, by the Gaussian log-likelihood of each node given all others in a quarter of the rows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from real_data import load
from seed_runs import write_lines

import graphfield as gf
from graphfield.estimators import neural_fit, reggmm

TRUE, SIGNS = 0.35, np.array([1, -1, 1, -1, 1, -1])
SHAPES = ("exp", "sin", "levels")
METHODS = ("dnncgm", "reggmm", "archetype", "auto", "static")
TABLES = ("nhanes_biomarkers", "sachs", "beijing_air", "abide_nyu_cc200", "sp100_2001_2023")
MOST_ROWS, MOST_NODES = 20_000, 100


def chain(shape: str, n: int, seed: int, known: bool) -> tuple[np.ndarray, pd.DataFrame, pd.DataFrame]:
    """Node values, covariates, and the covariates at which edges are looked at."""
    rng = np.random.default_rng(seed)
    precision = np.eye(6) - TRUE * (np.eye(6, k=1) + np.eye(6, k=-1))
    values = np.linalg.solve(np.linalg.cholesky(precision).T, rng.normal(size=(6, n))).T
    if shape == "levels":
        level = rng.integers(3, size=n)
        Z, at = (pd.DataFrame({"z": np.array(["a", "b", "c"])[which]}) for which in (level, np.arange(3)))
        log_scale = np.log(2) * level
    else:
        z = rng.uniform(-1, 1, n)
        Z, at = (pd.DataFrame({"z": own}) for own in (z, [-0.95, -0.5, 0.0, 0.5, 0.95]))
        log_scale = z if shape == "exp" else 0.8 * np.sin(8 * z)
    return values if known else values * np.exp(log_scale[:, None] * SIGNS), Z, at


def make(method: str, seed: int, device: str) -> Any:
    common = {"random_state": seed, "device": device}
    return {
        "dnncgm": lambda: gf.DNNCGM(**common),
        "reggmm": gf.RegGMM,
        "archetype": lambda: gf.ArchetypeCGM(**common),
        "auto": lambda: gf.AutoCGM(**common),
        "static": lambda: gf.GraphicalLasso(center="covariates"),
    }[method]()


def run(task: tuple[str, str, int, int, str, bool]) -> dict[str, Any]:
    method, shape, n, seed, device, known = task
    warnings.simplefilter("ignore")
    X, Z, at = chain(shape, n, seed, known)
    start = time.perf_counter()
    model = make(method, seed, device).fit(X, Z)
    seconds = time.perf_counter() - start
    partial = model.partial_correlations(at)
    edges = partial[:, np.arange(5), np.arange(1, 6)]
    line: dict[str, Any] = {"method": method, "shape": shape, "n": n, "seed": seed, "known": known}
    line |= {"off_by": round(float(np.abs(edges - TRUE).max()), 4)}
    line |= {"others": round(float(np.abs(np.triu(partial, 2)).max()), 4)}
    line |= {"means": edges.mean(axis=1).round(4).tolist(), "seconds": round(seconds, 1)}
    if method == "auto":
        line |= {"depends_on_z": bool(model.depends_on_covariates_), "chosen": list(model.chosen_)}
    return line


def compare_on_real(method: str, folder: Path, table: str, device: str) -> str:
    """With scales that may move, and with the same model if none is ever found to."""
    warnings.simplefilter("ignore")
    X, Z = load(folder, table)
    complete = X.notna().all(axis=1) & Z.notna().all(axis=1)
    rows = np.random.default_rng(0).permutation(np.flatnonzero(complete))[:MOST_ROWS]
    X, Z = (one.iloc[rows].reset_index(drop=True) for one in (X.iloc[:, :MOST_NODES], Z))
    n = len(X) * 3 // 4
    likely = {}
    for what in ("moving", "fixed"):
        with ExitStack() as stack:
            for module in (neural_fit, reggmm) if what == "fixed" else ():
                for name in ("learn_scales", "learn_node_scales"):
                    stack.enter_context(patch.object(module, name, lambda *_: None))
            model = make(method, 0, device).set_params(unknown="average").fit(X[:n], Z[:n])
        new = X[n:].reset_index(drop=True), Z[n:].reset_index(drop=True)
        scores = (
            model.field_.schema.scores.transform if model.field_.schema.scores is not None else np.asarray
        )
        scale = model.predict_scale(new[1])
        left = residuals(scores(new[0].to_numpy()), model, new[1])
        likely[what] = (-np.log(scale) - np.square(left / scale) / 2).mean(axis=1)
    gain = likely["moving"] - likely["fixed"]
    return f"{method:9s} {table:18s} {gain.mean():.4f} (standard error {gain.std() / np.sqrt(len(gain)):.4f})"


def residuals(values: np.ndarray, model: Any, Z: pd.DataFrame) -> np.ndarray:
    """What the model leaves of node values, or of normal scores where it is one of these."""
    centred = values - model.field_.at(Z).offsets
    return centred - np.einsum("njk,nk->nj", model.predict_coef(Z), centred)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--n", type=int, default=3_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.data:
        for table in TABLES:
            for method in arguments.methods.split(","):
                print(compare_on_real(method, arguments.data, table, arguments.device), flush=True)
        return
    tasks = [
        (method, shape, arguments.n, seed, arguments.device, arguments.known)
        for shape in arguments.shapes.split(",")
        for method in arguments.methods.split(",")
        for seed in arguments.seeds
    ]
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        write_lines(pool.imap_unordered(run, tasks, chunksize=1), arguments.out, {"true": TRUE})


if __name__ == "__main__":
    main()
