"""All methods on real tables, as ``graphfield compare`` has them: a table and a verdict each.

    python benchmarks/methods_on_tables.py --data FOLDER [--only nhanes,sachs] [--methods all] [--rows 3000]

FOLDER holds nhanes_biomarkers.npz and sachs.npz (see real_data.py).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from real_data import load

import graphfield as gf


def nhanes(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    X, Z = load(folder, "nhanes_biomarkers")
    whole = np.isfinite(X.to_numpy()).all(axis=1) & np.isfinite(Z["age"].to_numpy())
    return X[whole], Z.loc[whole, ["age", "sex"]]


def sachs(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    X, Z = load(folder, "sachs")
    return np.log(X), Z[["condition"]]


TABLES = {"nhanes": nhanes, "sachs": sachs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--methods", default="all")
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--folds", type=int, default=1)
    arguments = parser.parse_args()
    methods = arguments.methods if arguments.methods == "all" else arguments.methods.split(",")
    for name in arguments.only.split(","):
        X, Z = TABLES[name](arguments.data)
        rows = np.random.default_rng(0).permutation(len(X))[: arguments.rows]
        start = time.perf_counter()
        found = gf.compare_methods(
            X.iloc[rows].reset_index(drop=True),
            Z.iloc[rows].reset_index(drop=True),
            methods,
            n_folds=arguments.folds,
        )
        print(f"## {name}: {len(rows):,} rows, {time.perf_counter() - start:.0f} s in all\n")
        print(found.table.round(4).to_string(), "\n")
        print(found.summary, "\n", flush=True)


if __name__ == "__main__":
    main()
