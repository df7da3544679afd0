"""Scales that move with the covariates are not edges that move.

    .venv/bin/python benchmarks/moving_scales.py [--methods dnncgm,reggmm] [--shapes exp,sin,levels]
        [--n 3000] [--seeds 0 1 2 3 4] [--device cpu] [--jobs 1] [--known]

A chain of six nodes, every true partial correlation 0.35 at every z. The scales of neighbours go opposite
ways: exp(+z) and exp(-z) ("exp"), exp(+-0.8 sin 8z) ("sin"), z uniform on [-1, 1]; or they are 1, 2 and 4
times as large in the levels of a category ("levels"). Says how far the edges are from 0.35 (the worst
of five edges at five values of z), the largest edge that is not there, and what AutoCGM says about z. With
--known, nodes are divided by their true scales first: what is left is chance.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd

import graphfield as gf

TRUE, SIGNS = 0.35, np.array([1, -1, 1, -1, 1, -1])
SHAPES = ("exp", "sin", "levels")
METHODS = ("dnncgm", "reggmm", "archetype", "auto", "static")


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


def run(task: tuple[str, str, int, int, str, bool]) -> str:
    method, shape, n, seed, device, known = task
    warnings.simplefilter("ignore")
    X, Z, at = chain(shape, n, seed, known)
    start = time.perf_counter()
    model = make(method, seed, device).fit(X, Z)
    seconds = time.perf_counter() - start
    partial = model.partial_correlations(at)
    edges = partial[:, np.arange(5), np.arange(1, 6)]
    others = np.abs(np.triu(partial, 2)).max()
    shown = " ".join(f"{value:.3f}" for value in edges.mean(axis=1))
    line = f"{method:9s} {shape:6s} n={n} seed {seed}  off by {np.abs(edges - TRUE).max():.3f}"
    line += f"  others {others:.3f}  means {shown}  {seconds:.1f} s"
    if method == "auto":
        line += f"  depends on z: {model.depends_on_covariates_} ({', '.join(model.chosen_)})"
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--n", type=int, default=3_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--known", action="store_true")
    arguments = parser.parse_args()
    tasks = [
        (method, shape, arguments.n, seed, arguments.device, arguments.known)
        for shape in arguments.shapes.split(",")
        for method in arguments.methods.split(",")
        for seed in arguments.seeds
    ]
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        for line in pool.imap_unordered(run, tasks, chunksize=1):
            print(line, flush=True)


if __name__ == "__main__":
    main()
