"""Systolic and diastolic pressure by decade of age: which methods follow a relation that rises and falls.

    python benchmarks/pressure_by_age.py --data FOLDER [--methods static,linear] [--rows 6000] [--seed 0]

FOLDER holds nhanes_biomarkers.npz (see real_data.py). Nodes are its 22 numbers, the covariate is age: as a
number, as cubic splines of it (RegGMM), or as decades. Shown is the average over the rows of a decade of the
partial correlation at their age, beside what is known of the whole table.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from real_data import DECADES, KNOWN, load
from sklearn.preprocessing import SplineTransformer

import graphfield as gf

PAIR = "ln_sbp", "dbp"
# Starts of decades, and what a method sees of age.
STARTS = [low for low, _ in DECADES]
Form = Callable[[NDArray[np.float64]], pd.DataFrame]


def number(age: NDArray[np.float64]) -> pd.DataFrame:
    return pd.DataFrame({"age": age})


def splines(age: NDArray[np.float64]) -> pd.DataFrame:
    knots = np.linspace(20, 85, 5)[:, None]
    columns = SplineTransformer(knots=knots, extrapolation="constant", include_bias=False)
    found = columns.fit_transform(np.clip(age, 20, 85)[:, None])
    return pd.DataFrame(found, columns=[f"age {i + 1}" for i in range(found.shape[1])])


def decades(age: NDArray[np.float64]) -> pd.DataFrame:
    names = [f"from {low}" for low in STARTS]
    return pd.DataFrame({"decade": pd.Categorical.from_codes(place(age), names, ordered=True)})


def place(age: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.searchsorted(STARTS, age, side="right") - 1


METHODS: dict[str, tuple[Form, Callable[[], Any]]] = {
    "static": (number, lambda: gf.GraphicalLasso(center="covariates")),
    "linear": (number, lambda: gf.RegGMM()),
    "linear in splines": (splines, lambda: gf.RegGMM()),
    "linear in decades": (decades, lambda: gf.RegGMM()),
    "tree": (number, lambda: gf.TreeCGM()),
    "kernel": (number, lambda: gf.KernelCGM()),
    "kernel, nodewise": (number, lambda: gf.KernelCGM(method="nodewise")),
    "joint, chain of decades": (decades, lambda: gf.JointGraphicalLasso()),
    "joint, any two decades": (decades, lambda: gf.JointGraphicalLasso(levels="unordered")),
    "clusters: a fit per decade": (decades, lambda: gf.ByCluster()),
    "dnncgm": (number, lambda: gf.DNNCGM(device="cpu")),
    "archetype": (number, lambda: gf.ArchetypeCGM(device="cpu")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--methods", help="some of these, with ; between them: " + "; ".join(METHODS))
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    X, Z = load(arguments.data, "nhanes_biomarkers")
    age = Z["age"].to_numpy()
    whole = np.flatnonzero(np.isfinite(X.to_numpy()).all(axis=1) & (age >= STARTS[0]))
    rows = np.random.default_rng(arguments.seed).permutation(whole)[: arguments.rows]
    X, age = X.iloc[rows].reset_index(drop=True), age[rows]
    pair, known = [X.columns.get_loc(name) for name in PAIR], np.array(KNOWN[PAIR])
    print("| | " + " | ".join(f"from {low}" for low in STARTS) + " | mean distance | CPU seconds |")
    print("| --- " * (len(STARTS) + 3) + "|")
    print("| known | " + " | ".join(f"{value:.2f}" for value in known) + " | | |", flush=True)
    for name in METHODS if arguments.methods is None else arguments.methods.split(";"):
        form, make = METHODS[name]
        start = time.process_time()
        model = make()
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=arguments.seed)
        model.fit(X, form(age))
        seconds = time.process_time() - start
        partial = model.partial_correlations(form(age))[:, *pair]
        found = pd.Series(partial).groupby(place(age)).mean().to_numpy()
        cells = [f"{value:.2f}" for value in found]
        cells += [f"{np.abs(found - known).mean():.3f}", f"{seconds:.0f}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
