"""Figures of setting G1: accuracy by sample size, the paper's recipe, invariances, time and memory.

    .venv/bin/python benchmarks/foundation.py [--only NAME] [--seeds 0 1 2] [--out FILE.json]

Every fit chooses on its own held-out rows; the truth is only used to score. Prints one line per run
and the mean over seeds; writes all of it as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import graphfield as gf
from graphfield.experiments.specs import paper_recipe
from graphfield.metrics import auprc, auroc

N_TEST = 1_000


def score(model: Any, sim: gf.Simulation, n: int) -> dict[str, float]:
    Z, truth = sim.Z[n:], sim.skeleton[n:]
    weights = model.edge_weights(Z)
    return {
        "auprc": float(auprc(weights, truth).mean()),
        "auroc": float(auroc(weights, truth).mean()),
        "auprc_raw": float(auprc(np.abs(model.predict_coef(Z)), truth).mean()),
    }


def fit_and_score(
    seed: int, n: int, change: Callable[[gf.Simulation], np.ndarray] | None = None, **params: Any
) -> dict[str, float]:
    sim = gf.make_setting("G1", n_samples=n + N_TEST, random_state=seed)
    X = sim.X if change is None else change(sim)
    start = time.perf_counter()
    model = gf.DNNCGM(random_state=seed, **params).fit(X[:n], sim.Z[:n])
    seconds = time.perf_counter() - start
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        **score(model, sim, n),
        "seconds": seconds,
        "peak_mb": peak_mb,
        "mean_depends_on_z": float(model.mean_depends_on_covariates_),
    }


def recipe(seed: int) -> dict[str, float]:
    """The published training: 10,000 training rows, 1,000 rows to watch (not to choose)."""
    n = 10_000
    sim = gf.make_setting("G1", n_samples=n + 2 * N_TEST, random_state=seed)
    watch = slice(n + N_TEST, None)
    model = gf.DNNCGM(random_state=seed, **paper_recipe("G1", n))
    start = time.perf_counter()
    model.fit(sim.X[:n], sim.Z[:n], X_val=sim.X[watch], Z_val=sim.Z[watch])
    seconds = time.perf_counter() - start
    test = gf.make_setting("G1", n_samples=n + N_TEST, random_state=seed)
    return {**score(model, test, n), "seconds": seconds}


def compared(estimator: Any, seed: int, n: int) -> dict[str, float]:
    sim = gf.make_setting("G1", n_samples=n + N_TEST, random_state=seed)
    return score(estimator.fit(sim.X[:n], sim.Z[:n]), sim, n)


def clusters(seed: int, n: int) -> dict[str, float]:
    """Graphical lasso inside the true clusters: what being told the clusters is worth."""
    sim = gf.make_setting("G1", n_samples=n + N_TEST, random_state=seed)
    labels = pd.DataFrame({"cluster": [f"cluster {label}" for label in sim.regime]})
    model = gf.ByCluster(estimator=gf.GraphicalLasso()).fit(sim.X[:n], labels.iloc[:n])
    weights = model.edge_weights(labels.iloc[n:])
    truth = sim.skeleton[n:]
    return {"auprc": float(auprc(weights, truth).mean()), "auroc": float(auroc(weights, truth).mean())}


def rescaled(sim: gf.Simulation) -> np.ndarray:
    factor = np.exp(np.random.default_rng(1).normal(0, 0.7, sim.X.shape[1]))
    return sim.X * factor


def moved(sim: gf.Simulation) -> np.ndarray:
    """Every node gets its own smooth function of z, about as large as the node's own spread."""
    rng = np.random.default_rng(2)
    p, q = sim.X.shape[1], sim.Z.shape[1]
    size, phase = rng.normal(0, 1, p), rng.uniform(0, 2 * np.pi, p)
    direction = rng.normal(0, 3, (q, p))
    return sim.X + size * np.sin(sim.Z @ direction + phase)


RUNS: dict[str, Callable[[int], dict[str, float]]] = {
    "paper recipe, n = 10,000": recipe,
    "default, n = 10,000": lambda seed: fit_and_score(seed, 10_000),
    "default, n = 2,000": lambda seed: fit_and_score(seed, 2_000),
    "default, n = 1,000": lambda seed: fit_and_score(seed, 1_000),
    "static graphical lasso, n = 10,000": lambda seed: compared(gf.GraphicalLasso(), seed, 10_000),
    "static graphical lasso, n = 2,000": lambda seed: compared(gf.GraphicalLasso(), seed, 2_000),
    "static graphical lasso, n = 1,000": lambda seed: compared(gf.GraphicalLasso(), seed, 1_000),
    "linear in z (RegGMM), n = 10,000": lambda seed: compared(gf.RegGMM(), seed, 10_000),
    "linear in z (RegGMM), n = 2,000": lambda seed: compared(gf.RegGMM(), seed, 2_000),
    "linear in z (RegGMM), n = 1,000": lambda seed: compared(gf.RegGMM(), seed, 1_000),
    "told the clusters, n = 10,000": lambda seed: clusters(seed, 10_000),
    "told the clusters, n = 2,000": lambda seed: clusters(seed, 2_000),
    "told the clusters, n = 1,000": lambda seed: clusters(seed, 1_000),
    "columns rescaled": lambda seed: fit_and_score(seed, 10_000, rescaled),
    "mean moves with z": lambda seed: fit_and_score(seed, 10_000, moved),
    "mean moves with z, center='constant'": lambda seed: fit_and_score(
        seed, 10_000, moved, center="constant"
    ),
    "mean moves with z, center='none'": lambda seed: fit_and_score(seed, 10_000, moved, center="none"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="runs whose name contains this text")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results = {}
    for name, run in RUNS.items():
        if arguments.only not in name:
            continue
        rows = []
        for seed in arguments.seeds:
            rows.append({"seed": seed, **run(seed)})
            print(f"{name:38s} seed {seed}  " + _text(rows[-1]), flush=True)
        mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0] if key != "seed"}
        results[name] = {"rows": rows, "mean": mean}
        print(f"{name:38s} mean    " + _text(mean), flush=True)
    if arguments.out:
        machine = {
            "cores": os.cpu_count(),
            "machine": platform.machine(),
            "python": platform.python_version(),
        }
        arguments.out.write_text(json.dumps({"machine": machine, "runs": results}, indent=1) + "\n")


def _text(row: dict[str, float]) -> str:
    return "  ".join(f"{key} {value:.4g}" for key, value in row.items() if key != "seed")


if __name__ == "__main__":
    main()
