"""Does a node that is yes or no hide movement of the numbers from the test of dependence?

    .venv/bin/python benchmarks/beside_levels.py TABLE.csv --covariates age --nodes a,b,c [--coins 4]

The nodes of a table are numbers. The p-value of dependence of them alone, and with the toss of a coin beside
them, as text and as 0 and 1, for several coins; then of samples of the rows, alone and with a coin as text.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

import graphfield as gf


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table")
    parser.add_argument("--covariates", required=True)
    parser.add_argument("--nodes", required=True)
    parser.add_argument("--coins", type=int, default=4)
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--rows", type=int, default=1500)
    arguments = parser.parse_args()
    names = (arguments.covariates.split(","), arguments.nodes.split(","))
    table = pd.read_csv(arguments.table)[[*names[0], *names[1]]].dropna()
    Z, X = (table[own].reset_index(drop=True) for own in names)
    print(f"{len(X):,} rows, {X.shape[1]} nodes; the numbers alone: p = {p_value(X, Z):.3f}")
    for seed in range(arguments.coins):
        coin = np.random.default_rng(seed).integers(2, size=len(X))
        told = p_value(X.assign(coin=np.array(["no", "yes"])[coin]), Z), p_value(X.assign(coin=coin), Z)
        print("coin {}: p = {:.3f} as text, {:.3f} as 0 and 1".format(seed, *told), flush=True)
    found = []
    for seed in range(arguments.samples):
        rng = np.random.default_rng(100 + seed)
        rows = np.sort(rng.choice(len(X), min(arguments.rows, len(X)), replace=False))
        few, z = X.iloc[rows].reset_index(drop=True), Z.iloc[rows].reset_index(drop=True)
        coin = np.array(["no", "yes"])[rng.integers(2, size=len(rows))]
        found.append((p_value(few, z), p_value(few.assign(coin=coin), z)))
    alone, beside = (np.array(found) <= 0.05).sum(axis=0) if found else (0, 0)
    told = f"p up to .05 in {alone} and, with a coin, {beside} of {len(found)}"
    print(f"samples of {arguments.rows:,} rows: {told}")


def p_value(X: pd.DataFrame, Z: pd.DataFrame) -> float:
    """Rows count as independent: whether they are is another question."""
    return float(gf.dependence_test(X, Z, in_order=False, random_state=0).p_value)


if __name__ == "__main__":
    main()
