"""Edges that are no lines: D2 (bent structural equations) and S3 (squares), methods side by side.

    .venv/bin/python benchmarks/edge_shapes.py [--settings D2 S3] [--rows 1000 2000] [--methods ...]
        [--seeds 2] [--device cpu] [--jobs 1]

For each setting, number of rows and method: AUPRC and AUROC of the edge weights at 500 new z against the
true graph there, precision and recall of the graphs of ``threshold="auto"``, R^2 of new rows (``score``), and
processor seconds of the fit.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from seed_runs import Line, run_cases, seed_options

import graphfield as gf
from graphfield.metrics import ranking_scores

_NEW = 500
METHODS: dict[str, Callable[[int, str], Any]] = {
    "static": lambda seed, device: gf.NodewiseLasso(),  # noqa: ARG005
    "linear": lambda seed, device: gf.DNNCGM(random_state=seed, device=device),
    "spline": lambda seed, device: gf.DNNCGM(features="spline", random_state=seed, device=device),
    "hermite": lambda seed, device: gf.DNNCGM(features="hermite", random_state=seed, device=device),
    "score": lambda seed, device: gf.ScoreCGM(random_state=seed, device=device),
    "score-2": lambda seed, device: gf.ScoreCGM(degree=2, random_state=seed, device=device),
    "score-3": lambda seed, device: gf.ScoreCGM(degree=3, random_state=seed, device=device),
}


def compare(setting: str, n: int, method: str, seed: int, device: str) -> Line:
    sim = gf.make_setting(setting, n_samples=n + _NEW, random_state=seed)
    X, Z = np.asarray(sim.X), np.asarray(sim.Z)
    start = time.process_time()
    model = METHODS[method](seed, device).fit(X[:n], Z[:n])
    seconds = time.process_time() - start
    truth, graph = sim.field.skeleton(Z[n:]), model.predict_graph(Z[n:])
    found = ranking_scores(model.edge_weights(Z[n:]), truth)
    right = float((graph & truth).sum())
    return {
        "auprc": float(np.nanmean(found.auprc)),
        "auroc": float(np.nanmean(found.auroc)),
        "precision": right / max(1.0, float(graph.sum())),
        "recall": right / float(truth.sum()),
        "r2": model.score(X[n:], Z[n:]),
        "fit": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--settings", nargs="+", default=["D2", "S3"])
    parser.add_argument("--rows", nargs="+", type=int, default=[1000, 2000])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    seed_options(parser, seeds=2)
    arguments = parser.parse_args()
    cases = [
        (f"{setting} {n} {method}", compare, (setting, n, method))
        for setting in arguments.settings
        for n in arguments.rows
        for method in arguments.methods
    ]
    run_cases(cases, arguments)


if __name__ == "__main__":
    main()
