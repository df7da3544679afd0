"""AutoCGM with and without KernelCGM among its candidates: R^2 of new rows, what is kept, CPU seconds.

    python benchmarks/auto_kernel.py --table S1 --rows 1000 [--covariates 1] [--seed 0]
    python benchmarks/auto_kernel.py --table nhanes --data FOLDER --rows 2000 [--covariates 2]

With OMP_NUM_THREADS=1. Tables: a setting, S1 with as many covariates as asked, or nhanes (age, sex). The
other candidates are fitted once, with the same seeds, for both.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from methods_on_tables import nhanes

import graphfield as gf
from graphfield.estimators.auto_candidates import Fits
from graphfield.estimators.registry import candidates
from graphfield.simulate import smooth

N_NEW = 3_000


def read(arguments: argparse.Namespace) -> tuple[Any, Any, Any, Any]:
    n, seed = arguments.rows, arguments.seed
    if arguments.table == "nhanes":
        X, Z = nhanes(arguments.data)
        rows = np.random.default_rng(seed).permutation(len(X))[: n + N_NEW]
        X, Z = X.iloc[rows], Z.iloc[rows, : arguments.covariates]
    else:
        smooth.N_COVARIATES = arguments.covariates or smooth.N_COVARIATES
        sim = gf.make_setting(arguments.table, n_samples=n + N_NEW, random_state=seed)
        X, Z = sim.X, sim.Z
    return X[:n], Z[:n], X[n:], Z[n:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--table", default="S1")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--covariates", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    known: dict[tuple[str, bool], Any] = {}
    seconds: dict[tuple[str, bool], float] = {}
    fit = Fits._fit

    def fit_once(self: Fits, name: str, fitted: Any, part: Any) -> Any:
        key = name, isinstance(part.rows, slice)  # to some rows, or to all
        if key not in known:
            start = time.thread_time()
            known[key] = fit(self, name, fitted, part)
            seconds[key] = time.thread_time() - start
        return known[key]

    Fits._fit = fit_once
    X, Z, new_X, new_Z = read(arguments)
    for names in ([name for name in candidates() if name != "kernel"], [*candidates()]):
        model = gf.AutoCGM(candidates=names, random_state=arguments.seed, device="cpu").fit(X, Z)
        print(
            f"{len(names)} candidates: R^2 {model.score(new_X, new_Z):.4f}, kept {model.chosen_}", flush=True
        )
    print(model.held_out_.drop(columns=["seconds", "note"]).round(4).to_string())
    print({name: round(own, 1) for (name, whole), own in seconds.items() if not whole}, "CPU seconds")


if __name__ == "__main__":
    main()
