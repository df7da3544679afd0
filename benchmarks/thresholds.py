"""Graphs at threshold="auto" against the paper's gap: F1 in simulations, numbers of edges on real tables.

    .venv/bin/python benchmarks/thresholds.py [--methods dnncgm,reggmm] [--settings G1,S1] [--n 1000 10000]
        [--seeds 0 1] [--data FOLDER] [--tables sachs,nhanes] [--device cpu] [--jobs 1] [--minutes 60]
        [--out FILE.json]

Simulations: F1 against the true graphs of 1,000 other rows at "auto", at "gap" and at the best of all cuts
(which needs the truth), and the share of false ones among the pairs that stand clear of their noise. Tables
(where --data names the folder that benchmarks/real_data.py describes): edges of the average row with all
rows, and with five random samples of 75 % of them (of the subjects, where there are subjects).
Methods: dnncgm, archetype, auto, tree, reggmm, glasso, nodewise.
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
from numpy.typing import NDArray

import graphfield as gf

N_TEST, N_SAMPLES = 1_000, 5
SETTINGS = "G1,G2,N1,N2,D1,D2,S1,S2"
SIX = ("G1", "G2", "N2", "D1", "D2", "S1")
TABLES = {
    "sachs": "sachs",
    "beijing": "beijing_air",
    "nhanes": "nhanes_biomarkers",
    "abide": "abide_nyu_cc200",
}
LOGS = {"sachs": np.log, "beijing": np.log1p}
CUTS = np.concatenate([np.arange(0, 0.1, 0.005), np.arange(0.1, 0.5, 0.01)])


def make(method: str, seed: int, device: str) -> Any:
    common = {"random_state": seed, "device": device}
    return {
        "dnncgm": lambda: gf.DNNCGM(**common),
        "archetype": lambda: gf.ArchetypeCGM(**common),
        "auto": lambda: gf.AutoCGM(**common),
        "tree": lambda: gf.TreeCGM(random_state=seed),
        "reggmm": gf.RegGMM,
        "glasso": gf.GraphicalLasso,
        "nodewise": gf.NodewiseLasso,
    }[method]()


def f1(graphs: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    both = (graphs & truth).sum(axis=(1, 2))
    return float((2 * both / np.maximum(1, graphs.sum(axis=(1, 2)) + truth.sum(axis=(1, 2)))).mean())


def simulated(method: str, setting: str, n: int, seed: int, device: str) -> dict[str, Any]:
    sim = gf.make_setting(setting, n_samples=n + N_TEST, random_state=seed)
    start = time.perf_counter()
    model = make(method, seed, device).fit(sim.X[:n], sim.Z[:n])
    seconds = time.perf_counter() - start
    Z, truth = sim.Z[n:], sim.skeleton[n:]
    found = {name: f1(model.predict_graph(Z, threshold=name), truth) for name in ("auto", "gap")}
    found["best"] = max(f1(model.predict_graph(Z, threshold=float(cut)), truth) for cut in CUTS)
    clear, ever = np.triu(model.threshold_.clear), truth.any(axis=0)
    false = (clear & ~ever).sum() / max(1, clear.sum())
    cut = {"cut": model.threshold_.value, "pairs": int(clear.sum()), "false": false}
    what = {"method": method, "setting": setting, "n": n, "seed": seed}
    return {**what, **found, **cut, "gap_cut": model.threshold_.gap.value, "seconds": seconds}


def table_of(folder: Path, name: str) -> tuple[pd.DataFrame, pd.DataFrame, NDArray | None]:
    """Complete rows: nodes, covariates, subjects."""
    with np.load(folder / f"{TABLES[name]}.npz", allow_pickle=False) as file:
        data = {key: file[key] for key in file.files}
    X = pd.DataFrame(data["x"].astype(float), columns=[str(c) for c in data["x_names"]])
    X = LOGS.get(name, lambda values: values)(X)
    Z = pd.DataFrame(data["z_num"].astype(float), columns=[str(c) for c in data["z_num_names"]])
    for i, key in enumerate(map(str, data["z_cat_names"])):
        levels = np.append(data[f"z_cat_levels__{key}"], "unknown")
        Z[key] = levels[data["z_cat"][:, i]].astype(str)
    whole = (X.notna().all(axis=1) & Z.notna().all(axis=1)).to_numpy()
    return X[whole], Z[whole], data["unit"][whole] if "unit" in data else None


def on_table(method: str, name: str, sample: int, folder: Path, device: str) -> dict[str, Any]:
    """Edges of the average row; sample 0 has all rows."""
    X, Z, subjects = table_of(folder, name)
    rng = np.random.default_rng(sample)
    units = np.arange(len(X)) if subjects is None else np.unique(subjects, return_inverse=True)[1]
    n_units = units.max() + 1
    drawn = rng.permutation(n_units)[: n_units if sample == 0 else int(0.75 * n_units)]
    rows = np.isin(units, drawn)
    groups = None if subjects is None else subjects[rows]
    model = make(method, 0, device).fit(X[rows], Z[rows], groups=groups)
    asked = Z[rows].iloc[:: max(1, int(rows.sum()) // 300)]
    edges = {
        t: float(model.predict_graph(asked, threshold=t).sum(axis=(1, 2)).mean() / 2) for t in ("auto", "gap")
    }
    pairs = int(model.threshold_.clear.sum()) // 2
    return {
        "method": method,
        "table": name,
        "sample": sample,
        **edges,
        "pairs": pairs,
        "cut": model.threshold_.value,
    }


def run(task: tuple[Any, ...]) -> dict[str, Any] | None:
    kind, until, *rest = task
    if time.time() > until:
        return None
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    return simulated(*rest) if kind == "simulated" else on_table(*rest)


def summarise(found: pd.DataFrame) -> None:
    if "setting" in found:
        means = (
            found.dropna(subset="setting").groupby(["method", "n", "setting"])[["auto", "gap", "best"]].mean()
        )
        for (method, n), part in means.groupby(level=[0, 1]):
            part = part.droplevel([0, 1])
            print(f"\n{method}, n = {n:.0f}\n{part.round(3).to_string()}")
            six = part[part.index.isin(SIX)].mean().round(3).to_dict()
            print(f"mean of all {part.mean().round(3).to_dict()}; of {', '.join(SIX)} {six}")
            own = found[found["method"].eq(method) & found["n"].eq(n) & found["setting"].isin(["G2", "N2"])]
            print(f"lowest single one of G2 and N2: auto {own['auto'].min():.3f}, gap {own['gap'].min():.3f}")
    if "table" in found:
        for (method, name), part in found.dropna(subset="table").groupby(["method", "table"]):
            part = part.sort_values("sample")
            for rule in ("auto", "gap"):
                share = (part[rule] / part[rule].iloc[0] - 1).iloc[1:]
                print(f"{method}, {name}, {rule}: {part[rule].round(1).tolist()} "
                      f"({100 * share.min():+.0f} to {100 * share.max():+.0f} %)")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--methods", default="dnncgm")
    parser.add_argument("--settings", default=SETTINGS)
    parser.add_argument("--n", type=int, nargs="*", default=[10_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0, help="no fit begins later")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    until, methods = time.time() + 60 * asked.minutes, asked.methods.split(",")
    tasks: list[tuple[Any, ...]] = [
        ("simulated", until, method, setting, n, seed, asked.device)
        for seed in asked.seeds
        for n in asked.n
        for method in methods
        for setting in asked.settings.split(",")
    ]
    if asked.data is not None:
        tasks += [
            ("table", until, method, name, sample, asked.data, asked.device)
            for sample in range(N_SAMPLES + 1)
            for method in methods
            for name in asked.tables.split(",")
        ]
    found = []
    with multiprocessing.get_context("spawn").Pool(asked.jobs) as pool:
        for line in pool.imap_unordered(run, tasks):
            if line is not None:
                found.append(line)
                print(
                    *(f"{k}={v:.3f}" if isinstance(v, float) else f"{k}={v}" for k, v in line.items()),
                    flush=True,
                )
                if asked.out:
                    asked.out.write_text(json.dumps(found, indent=1) + "\n")
    summarise(pd.DataFrame(found))


if __name__ == "__main__":
    main()
