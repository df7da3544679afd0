"""Nodes of any kind: families beside the same nodes taken as numbers, one graph beside edges linear in z.

    .venv/bin/python benchmarks/kinds.py [--settings I1 M1] [--n 1000] [--seeds 0 1] [--table group_mixed.csv]

AUPRC against the true graphs, explained deviance (R^2 where all are numbers) of new rows, and seconds. With
``--table`` (x3 binary, x5 of three levels, x7 the group), also the edges of each group.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import graphfield as gf
from graphfield.metrics import auprc

N_TEST = 500


def compare_kinds(setting: str, n: int, seed: int) -> None:
    sim = gf.make_setting(setting, n + N_TEST, seed)
    types = {f"x{j + 1}": kind for j, kind in enumerate(sim.node_types)}
    models = {
        "static, numbers": gf.NodewiseLasso(),
        "static, families": gf.NodewiseLasso(node_types=types),
        "linear, numbers": gf.RegGMM(),
        "linear, families": gf.RegGMM(node_types=types),
        "sparse linear, families": gf.RegGMM(penalty="sparse-group", node_types=types),
    }
    for name, model in models.items():
        start = time.perf_counter()
        model.fit(sim.X[:n], sim.Z[:n])
        seconds = time.perf_counter() - start
        found = auprc(model.edge_weights(sim.Z[n:]), sim.skeleton[n:]).mean()
        score = model.score(sim.X[n:], sim.Z[n:])
        line = f"{setting} n={n} seed={seed} {name:24s} AUPRC {found:.3f} score {score:.3f} {seconds:.1f} s"
        print(line, flush=True)


def show_groups(path: Path) -> None:
    table = pd.read_csv(path)
    X, Z = table.drop(columns="x7"), table[["x7"]].astype(str)
    at = Z.drop_duplicates().sort_values("x7")
    for penalty in ("ridge", "sparse-group"):
        start = time.perf_counter()
        model = gf.RegGMM(penalty=penalty, node_types={"x3": "binary", "x5": "categorical"}).fit(X, Z)
        print(f"{path.name} {penalty}, {time.perf_counter() - start:.1f} s")
        strength = model.partial_correlations(at)
        present = np.triu(model.predict_graph(at).any(axis=0))
        for j, k in np.argwhere(present):
            values = " / ".join(f"{value:+.3f}" for value in strength[:, j, k])
            print(f"  {X.columns[j]}-{X.columns[k]} {values}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", nargs="*", default=["I1", "M1"])
    parser.add_argument("--n", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", gf.ThresholdWarning)
    for setting in arguments.settings:
        for seed in arguments.seeds:
            compare_kinds(setting, arguments.n, seed)
    if arguments.table is not None:
        show_groups(arguments.table)


if __name__ == "__main__":
    main()
