"""Fits to a Parquet folder that is larger than memory, beside a fit of a part of its rows in memory.

    .venv/bin/python benchmarks/large_tables.py [--rows 10000000] [--nodes 50] [--subset 1000000]
        [--memory 2GB] [--folder build/large] [--set max_steps=600] [--out FILE.json]

The folder is made if it is not there: a chain whose edges turn with the covariate z, and not with w. Each fit
has a process of its own. Printed are seconds (of the processor, too), microseconds of the processor per row,
the peak of its resident memory (VmHWM), how far edges are from those of the truth and, for the part, how far
both ways of reading it are apart.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import graphfield as gf

PART_ROWS = 500_000
ASKED = pd.DataFrame({"z": np.linspace(-0.9, 0.9, 7), "w": np.zeros(7)})


def turn(j: int, z: np.ndarray) -> np.ndarray | float:
    """The coefficient of node j on the node before it."""
    return 0.6 * z if j % 3 == 0 else 0.5


def make_folder(folder: Path, n_rows: int, n_nodes: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, n_rows, PART_ROWS):
        file = folder / f"part-{start // PART_ROWS:04d}.parquet"
        if file.exists():
            continue
        rng, n = np.random.default_rng(start), min(PART_ROWS, n_rows - start)
        z, w, X = rng.uniform(-1, 1, n), rng.normal(size=n), rng.normal(size=(n, n_nodes))
        for j in range(1, n_nodes):
            X[:, j] = turn(j, z) * X[:, j - 1] + 0.8 * X[:, j]
        table = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(n_nodes)]).assign(z=z, w=w)
        table.to_parquet(file, row_group_size=100_000)


def peak_memory() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e9


def run_fit(folder: Path, memory: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """In this process; without ``memory`` from a table in it."""
    before, start, busy = peak_memory(), time.perf_counter(), time.process_time()
    model = gf.DNNCGM(random_state=0, device="cpu", **options)
    if memory is None:
        data = gf.from_table(pd.read_parquet(folder), covariates=["z", "w"])
        n_rows = len(data.X)
        model.fit(data.X, data.Z)
    else:
        source = gf.open_table(folder, covariates=["z", "w"], memory=memory)
        n_rows = len(source)
        model.fit(source)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    coef = model.predict_coef(ASKED)
    found = {"rows": n_rows, "seconds": seconds, "busy": busy, "before": before, "peak": peak_memory()}
    return found | {"error": error_of(coef), "coef": coef.tolist()}


def error_of(coef: np.ndarray) -> float:
    """The largest difference of a coefficient from the truth."""
    z, p = ASKED["z"].to_numpy(), coef.shape[1]
    B = np.zeros_like(coef)
    for j in range(1, p):
        B[:, j, j - 1] = turn(j, z)
    noise = np.where(np.arange(p) == 0, 1.0, 0.8**2)
    left = np.eye(p) - B
    precision = left.swapaxes(1, 2) @ (left / noise[:, None])
    truth = -precision / np.diagonal(precision, axis1=1, axis2=2)[:, :, None]
    truth[:, np.arange(p), np.arange(p)] = 0.0
    return float(np.abs(coef - truth).max())


def in_own_process(folder: Path, memory: str | None, options: dict[str, Any]) -> dict[str, Any]:
    words = [sys.executable, __file__, "--one", json.dumps([str(folder), memory, options])]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--subset", type=int, default=1_000_000)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--folder", type=Path, default=Path("build/large"))
    parser.add_argument("--set", action="append", default=[], help="a hyper-parameter, as max_steps=600")
    parser.add_argument("--out", type=Path, help="write what is printed there as well, as JSON")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        folder, memory, options = json.loads(arguments.one)
        print(json.dumps(run_fit(Path(folder), memory, options)))
        return
    options = {name: json.loads(value) for name, value in (one.split("=") for one in arguments.set)}
    whole, part = (arguments.folder / f"{n}x{arguments.nodes}" for n in (arguments.rows, arguments.subset))
    make_folder(whole, arguments.rows, arguments.nodes)
    make_folder(part, arguments.subset, arguments.nodes)
    cases = {
        "part, in memory": (part, None),
        "part, from files": (part, arguments.memory),
        "all, from files": (whole, arguments.memory),
    }
    found = {}
    heads = {"rows": 12, "seconds": 9, "busy": 9, "us per row": 11, "peak, GB": 9, "error": 7}
    print(" ".join([" " * 18, *(f"{head:>{width}s}" for head, width in heads.items())]))
    for name, case in cases.items():
        one = found[name] = in_own_process(*case, options)
        times = f"{one['seconds']:9.1f} {one['busy']:9.1f} {1e6 * one['busy'] / one['rows']:11.1f}"
        print(f"{name:18s} {one['rows']:12,} {times} {one['peak']:9.2f} {one['error']:7.4f}", flush=True)
    apart = np.abs(np.subtract(found["part, in memory"]["coef"], found["part, from files"]["coef"])).max()
    print(f"largest difference of a coefficient, part in memory and from files: {apart:.1e}")
    if arguments.out is not None:
        figures = {name: {k: v for k, v in one.items() if k != "coef"} for name, one in found.items()}
        record = {
            "memory": arguments.memory,
            "options": options,
            **figures,
            "largest difference": float(apart),
        }
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
