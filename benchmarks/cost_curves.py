"""Is ``gf.estimate_cost`` right, and how does the time of a default fit grow with n, p, q and patterns?

    .venv/bin/python benchmarks/cost_curves.py [--sizes 500,10,1 2000,50,2] [--tables chain null G1]
        [--device cuda] [--out docs/results/speed/cost-curves.json]

Fits a default ``DNNCGM`` to tables of each size: a chain whose edges move with the first covariate, from
which the constants of the estimate were taken; and, to verify it, noise without any edge, and the setting G1,
which has 50 nodes and its own covariates whatever was asked for. Measured is the time of the processor (of
the clock on a GPU), as the estimate is that of a machine without other work. Prints predicted / measured, and
exponents by regression of log seconds on log n, p, q and patterns; with ``--out`` also a picture beside it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import graphfield as gf

SIZES = ("500,10,1", "2000,50,2", "5000,30,5", "20000,10,1", "500,100,10", "10000,50,2", "1000,200,2")
TABLES = ("chain", "null", "G1")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="n,p,q each")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=["chain"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for size in arguments.sizes:
        for table in arguments.tables:
            found.append(measure(table, *map(int, size.split(",")), arguments.device))
            print(found[-1], flush=True)
            exponents = fit_exponents(found)
            if arguments.out:  # after each fit: the next may take long
                arguments.out.write_text(json.dumps({"fits": found, "exponents": exponents}, indent=1) + "\n")
    print("exponents:", exponents)
    if arguments.out:
        draw(found, arguments.out.with_suffix(".png"))


def make_table(table: str, n: int, p: int, q: int) -> tuple[Any, Any]:
    if table == "G1":
        sim = gf.make_setting("G1", n_samples=n, random_state=0)
        return np.asarray(sim.X), np.asarray(sim.Z)
    rng = np.random.default_rng(0)
    Z, X = rng.uniform(-1, 1, (n, q)), rng.normal(size=(n, p))
    if table == "chain":
        X[:, 1:] += 0.6 * np.tanh(2 * Z[:, :1]) * X[:, :-1]
    return X, Z


def measure(table: str, n: int, p: int, q: int, device: str) -> dict[str, Any]:
    X, Z = make_table(table, n, p, q)
    now = time.process_time if device == "cpu" else time.perf_counter
    started = now()
    model = gf.DNNCGM(random_state=0, device=device).fit(X, Z)
    seconds, (p, q) = now() - started, (X.shape[1], Z.shape[1])
    predicted = gf.estimate_cost(n, p, q, device=device).seconds
    config = getattr(model.field_, "network", None)
    found = {"table": table, "n": n, "p": p, "q": q, "patterns": config and config.config.rank}
    measured = {"seconds": round(seconds, 1), "predicted": round(predicted, 1)}
    return {**found, **measured, "ratio": round(predicted / seconds, 2)}


def fit_exponents(found: list[dict[str, Any]]) -> dict[str, float]:
    """Of n, p, q and patterns; nothing where these are too few fits."""
    names = ("n", "p", "q", "patterns")
    sizes = np.array([[one[name] or 1 for name in names] for one in found], dtype=float)
    design = np.column_stack([np.ones(len(found)), np.log(sizes)])
    unknown = design.shape[1]
    if len(found) < 2 * unknown or np.linalg.matrix_rank(design) < unknown:
        return {}
    slopes = np.linalg.lstsq(design, np.log([one["seconds"] for one in found]), rcond=None)[0][1:]
    return dict(zip(names, slopes.round(2).tolist(), strict=True))


def draw(found: list[dict[str, Any]], path: Path) -> None:
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(5, 4), layout="constrained")
    for table in dict.fromkeys(one["table"] for one in found):
        own = [one for one in found if one["table"] == table]
        ax.scatter([one["seconds"] for one in own], [one["predicted"] for one in own], label=table)
    ends = np.array([min(one["seconds"] for one in found), max(one["seconds"] for one in found)])
    for factor, style in ((1, "-"), (2, ":"), (0.5, ":")):
        ax.plot(ends, factor * ends, style, color="grey")
    ax.set(xscale="log", yscale="log", xlabel="seconds measured", ylabel="seconds predicted")
    ax.legend()
    plt.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
