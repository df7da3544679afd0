"""Accuracy of the defaults: AUPRC, AUROC and F1 at the automatic threshold, by setting and sample size.

    .venv/bin/python benchmarks/accuracy.py [--settings G1,S1] [--n 10000] [--seeds 0 1 2 3 4]
        [--device cpu] [--jobs 1] [--out FILE.json]

Each fit sees its training rows alone; the truth is used to score the graphs of 1,000 other rows. With
several jobs their fits share the machine, so the seconds mean something with one job only.
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
SHOWN = ("auprc", "auroc", "f1", "seconds")


def run(task: tuple[str, int, int, str]) -> dict[str, Any]:
    setting, n, seed, device = task
    warnings.simplefilter("ignore")  # where there is no gap, the noise level is the threshold
    sim = gf.make_setting(setting, n_samples=n + N_TEST, random_state=seed)
    start = time.perf_counter()
    model = gf.DNNCGM(random_state=seed, device=device).fit(sim.X[:n], sim.Z[:n])
    seconds = time.perf_counter() - start
    Z, truth = sim.Z[n:], sim.skeleton[n:]
    weights, graphs = model.edge_weights(Z), model.predict_graph(Z)
    both = (graphs & truth).sum(axis=(1, 2))
    f1 = 2 * both / np.maximum(1, graphs.sum(axis=(1, 2)) + truth.sum(axis=(1, 2)))
    return {
        "setting": setting,
        "n": n,
        "seed": seed,
        "auprc": float(auprc(weights, truth).mean()),
        "auroc": float(auroc(weights, truth).mean()),
        "f1": float(f1.mean()),
        "threshold": model.threshold_.value,
        "rank": model.rank_,
        "penalty": model.penalty_,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--n", type=int, nargs="+", default=[10_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    tasks = [
        (setting, n, seed, arguments.device)
        for n in arguments.n
        for setting in arguments.settings.split(",")
        for seed in arguments.seeds
    ]
    rows = []
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        for row in pool.imap(run, tasks):
            rows.append(row)
            print(_line(row, f"seed {row['seed']}"), flush=True)
    print()
    for setting, n in dict.fromkeys((row["setting"], row["n"]) for row in rows):
        own = [row for row in rows if (row["setting"], row["n"]) == (setting, n)]
        mean = {key: float(np.mean([row[key] for row in own])) for key in SHOWN}
        print(_line({"setting": setting, "n": n, **mean}, f"mean of {len(own)}"))
    if arguments.out:
        kind = "cuda" if torch.cuda.is_available() and arguments.device != "cpu" else "cpu"
        record = {"device": kind, "torch": torch.__version__, "jobs": arguments.jobs, "rows": rows}
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


def _line(row: dict[str, Any], what: str) -> str:
    scores = "  ".join(f"{key} {row[key]:.3f}" for key in SHOWN)
    return f"{row['setting']} n={row['n']:<6d} {what:10s} {scores}"


if __name__ == "__main__":
    main()
