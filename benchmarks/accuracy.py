"""Accuracy of the defaults: AUPRC, AUROC and F1 at the automatic threshold, by setting and sample size.

    .venv/bin/python benchmarks/accuracy.py [--methods dnncgm,auto] [--settings G1,S1] [--n 10000]
        [--seeds 0 1 2 3 4] [--device cpu] [--jobs 1] [--out FILE.json]

Methods: dnncgm (the default), dnncgm-raw (without the choice of normal scores), archetype, tree, static,
auto, ensemble (five default networks). Each fit sees its training rows alone; the truth is used to score the
graphs of 1,000 other rows. With several jobs their fits share the machine, so the seconds mean something with
one job only.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graphfield as gf
from graphfield.metrics import auprc, auroc

N_TEST = 1_000
SETTINGS = ("G1", "G2", "N1", "N2", "D1", "D2", "S1", "S2")
NOTED = ("rank", "penalty", "variation", "marginals", "n_archetypes", "n_leaves", "chosen")
CELL = ("method", "setting", "n")
SHOWN = ("auprc", "auroc", "f1", "seconds")


def make(method: str, seed: int, device: str) -> Any:
    common = {"random_state": seed, "device": device}
    return {
        "dnncgm": lambda: gf.DNNCGM(**common),
        "dnncgm-raw": lambda: gf.DNNCGM(marginals="raw", **common),
        "archetype": lambda: gf.ArchetypeCGM(**common),
        "tree": lambda: gf.TreeCGM(random_state=seed),
        "static": gf.GraphicalLasso,
        "auto": lambda: gf.AutoCGM(**common),
        "ensemble": lambda: gf.Ensemble(estimator=gf.DNNCGM(device=device), random_state=seed),
    }[method]()


def run(task: tuple[str, str, int, int, str]) -> dict[str, Any]:
    method, setting, n, seed, device = task
    warnings.simplefilter("ignore")  # where there is no gap, the noise level is the threshold
    sim = gf.make_setting(setting, n_samples=n + N_TEST, random_state=seed)
    start = time.perf_counter()
    model = make(method, seed, device).fit(sim.X[:n], sim.Z[:n])
    seconds = time.perf_counter() - start
    Z, truth = sim.Z[n:], sim.skeleton[n:]
    weights, graphs = model.edge_weights(Z), model.predict_graph(Z)
    both = (graphs & truth).sum(axis=(1, 2))
    f1 = 2 * both / np.maximum(1, graphs.sum(axis=(1, 2)) + truth.sum(axis=(1, 2)))
    return {
        "method": method,
        "setting": setting,
        "n": n,
        "seed": seed,
        "auprc": float(auprc(weights, truth).mean()),
        "auroc": float(auroc(weights, truth).mean()),
        "f1": float(f1.mean()),
        "threshold": model.threshold_.value,
        **{name: getattr(model, f"{name}_", None) for name in NOTED},
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--methods", default="dnncgm")
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--n", type=int, nargs="+", default=[10_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    tasks = [
        (method, setting, n, seed, arguments.device)
        for method in arguments.methods.split(",")
        for n in arguments.n
        for setting in arguments.settings.split(",")
        for seed in arguments.seeds
    ]
    rows = []
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        for row in pool.imap_unordered(run, tasks, chunksize=1):
            rows.append(row)
            print(_line(row, f"seed {row['seed']}"), flush=True)
    print()
    for cell in dict.fromkeys(tuple(row[key] for key in CELL) for row in rows):
        own = [row for row in rows if tuple(row[key] for key in CELL) == cell]
        mean = {key: float(np.mean([row[key] for row in own])) for key in SHOWN}
        print(_line({**dict(zip(CELL, cell, strict=True)), **mean}, f"mean of {len(own)}"))
    if arguments.out:
        kind = "cuda" if torch.cuda.is_available() and arguments.device != "cpu" else "cpu"
        record = {"device": kind, "torch": torch.__version__, "jobs": arguments.jobs, "rows": rows}
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


def _line(row: dict[str, Any], what: str) -> str:
    scores = "  ".join(f"{key} {row[key]:.3f}" for key in SHOWN)
    return f"{row['method']:10s} {row['setting']} n={row['n']:<6d} {what:10s} {scores}"


if __name__ == "__main__":
    main()
