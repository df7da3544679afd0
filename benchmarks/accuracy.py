"""Accuracy of the defaults: AUPRC, AUROC and F1 at the automatic threshold, time and memory, by setting.

    .venv/bin/python benchmarks/accuracy.py [--methods dnncgm,auto] [--settings G1,S1] [--n 10000]
        [--seeds 0 1 2 3 4] [--device cpu] [--jobs 1] [--out FILE.json] [--tables]

Methods: names of estimators on the command line (dnncgm, tree, kernel, ...), dnncgm-raw (without the choice
of normal scores), or "all": every estimator that is not made of others; --settings all, too. Each fit sees
its training rows alone; the truth is used to score the graphs of 1,000 other rows. With several jobs their
fits share the machine, so the seconds mean something with one job only (those of the CPU always). Fits that
FILE.json holds already are not done again; a method that cannot be fitted is a line with the reason.
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
import pandas as pd
import torch

import graphfield as gf
from graphfield.estimators.registry import ESTIMATORS, find_estimator
from graphfield.exceptions import GraphfieldError
from graphfield.inference.method_fits import count_memory, peak_memory
from graphfield.metrics import auprc, auroc
from graphfield.simulate.settings import SETTINGS as ALL_SETTINGS

N_TEST = 1_000
SETTINGS = ("G1", "G2", "N1", "N2", "D1", "D2", "S1", "S2")
NOTED = ("rank", "penalty", "variation", "marginals", "n_archetypes", "n_leaves", "chosen")
CELL = ("method", "setting", "n")
SHOWN = ("auprc", "auroc", "f1", "seconds", "cpu_seconds", "memory_mb")


def make(method: str, seed: int, device: str) -> Any:
    common = {"random_state": seed, "device": device}
    if method == "dnncgm-raw":
        return gf.DNNCGM(marginals="raw", **common)
    if method == "ensemble":
        return gf.Ensemble(estimator=gf.DNNCGM(device=device), random_state=seed)
    model = find_estimator(next(name for name, entry in ESTIMATORS.items() if entry.command == method))()
    known = model.get_params(deep=False)
    return model.set_params(**{name: value for name, value in common.items() if name in known})


def run(task: tuple[str, str, int, int, str]) -> dict[str, Any]:
    method, setting, n, seed, device = task
    warnings.simplefilter("ignore")  # where there is no gap, the noise level is the threshold
    sim = gf.make_setting(setting, n_samples=n + N_TEST, random_state=seed)
    cell = {"method": method, "setting": setting, "n": n, "seed": seed}
    before, start, worked = count_memory(), time.perf_counter(), time.process_time()
    try:
        model = make(method, seed, device).fit(sim.X[:n], sim.Z[:n])
    except GraphfieldError as error:
        return {**cell, "why": str(error)}
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - worked
    memory = peak_memory(before)
    Z, truth = sim.Z[n:], sim.skeleton[n:]
    weights, graphs = model.edge_weights(Z), model.predict_graph(Z)
    both = (graphs & truth).sum(axis=(1, 2))
    f1 = 2 * both / np.maximum(1, graphs.sum(axis=(1, 2)) + truth.sum(axis=(1, 2)))
    return {
        **cell,
        "auprc": float(auprc(weights, truth).mean()),
        "auroc": float(auroc(weights, truth).mean()),
        "f1": float(f1.mean()),
        "threshold": model.threshold_.value,
        **{name: getattr(model, f"{name}_", None) for name in NOTED},
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "memory_mb": memory,
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
    parser.add_argument("--tables", action="store_true", help="means of all fits as tables, one per score")
    arguments = parser.parse_args()
    all_methods = [entry.command for entry in ESTIMATORS.values() if entry.is_there and not entry.composite]
    methods = all_methods if arguments.methods == "all" else arguments.methods.split(",")
    settings = ALL_SETTINGS if arguments.settings == "all" else arguments.settings.split(",")
    out = arguments.out
    rows = json.loads(out.read_text())["rows"] if out is not None and out.exists() else []
    done = {tuple(row[key] for key in (*CELL, "seed")) for row in rows}
    tasks = [
        (method, setting, n, seed, arguments.device)
        for method in methods
        for n in arguments.n
        for setting in settings
        for seed in arguments.seeds
        if (method, setting, n, seed) not in done
    ]
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        for row in pool.imap_unordered(run, tasks, chunksize=1):
            rows.append(row)
            print(_line(row, f"seed {row['seed']}"), flush=True)
            if out is not None:
                kind = "cuda" if torch.cuda.is_available() and arguments.device != "cpu" else "cpu"
                record = {"device": kind, "torch": torch.__version__, "jobs": arguments.jobs, "rows": rows}
                out.write_text(json.dumps(record, indent=1) + "\n")
    print()
    if arguments.tables:
        print_tables(rows)
        return
    for cell in dict.fromkeys(tuple(row[key] for key in CELL) for row in rows):
        own = [row for row in rows if tuple(row[key] for key in CELL) == cell and "why" not in row]
        if own:
            mean = {key: float(np.mean([row.get(key, np.nan) for row in own])) for key in SHOWN}
            print(_line({**dict(zip(CELL, cell, strict=True)), **mean}, f"mean of {len(own)}"))


def print_tables(rows: list[dict[str, Any]]) -> None:
    """Methods by settings, for each number of rows; a star where fewer seeds were fitted than elsewhere."""
    fits = pd.DataFrame([row for row in rows if "why" not in row])
    order = {name: list(dict.fromkeys(fits[name])) for name in ("method", "setting")}
    order["setting"].sort(key=list(ALL_SETTINGS).index)
    for n, of_n in fits.groupby("n"):
        cells = of_n.groupby(["method", "setting"])
        most = cells.size()
        for key, digits in (("auprc", 2), ("f1", 2), ("cpu_seconds", 1), ("memory_mb", 0)):
            mean = cells[key].mean()
            print(f"| {key}, {n:,} rows | " + " | ".join(order["setting"]) + " |")
            print("| --- " * (1 + len(order["setting"])) + "|")
            for method in (one for one in order["method"] if one in set(of_n["method"])):
                texts = []
                for setting in order["setting"]:
                    value = mean.get((method, setting), np.nan)
                    star = "*" if most.get((method, setting), 0) < most.max() else ""
                    texts.append("" if np.isnan(value) else f"{value:.{digits}f}{star}".removeprefix("0"))
                print(f"| {method} | " + " | ".join(texts) + " |")
            print()


def _line(row: dict[str, Any], what: str) -> str:
    scores = row.get("why") or "  ".join(f"{key} {row.get(key, np.nan):.3f}" for key in SHOWN)
    return f"{row['method']:10s} {row['setting']} n={row['n']:<6d} {what:10s} {scores}"


if __name__ == "__main__":
    main()
