"""How much levels gain from each other: AUPRC and score of S2 by how strongly they are held together.

python benchmarks/joint_levels.py [--seeds 0 1] [--rows 400 1000]
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from real_data import DECADES, KNOWN, load

import graphfield as gf
from graphfield.metrics import auprc

MODELS = {
    "fused": lambda: gf.JointGraphicalLasso(),
    "group": lambda: gf.JointGraphicalLasso(coupling="group"),
    "a fit per level": lambda: gf.JointGraphicalLasso(strength=0),
    "one graph": lambda: gf.JointGraphicalLasso(strength=1),
    "tree": lambda: gf.TreeCGM(random_state=0),
    "bayes": lambda: gf.BayesianCGM(random_state=0),
}


ORDERED = {
    "chain": lambda: gf.JointGraphicalLasso(),
    "any two levels": lambda: gf.JointGraphicalLasso(levels="unordered"),
    "group": lambda: gf.JointGraphicalLasso(coupling="group"),
    "a fit per level": lambda: gf.JointGraphicalLasso(strength=0),
    "one graph": lambda: gf.JointGraphicalLasso(strength=1),
}


def print_decades(folder: Path, n_rows: int = 6_000) -> None:
    X, Z = load(folder, "nhanes_biomarkers")
    age = Z["age"].to_numpy()
    whole = np.flatnonzero(np.isfinite(X.to_numpy()).all(axis=1) & (age >= DECADES[0][0]))
    rows = np.random.default_rng(0).permutation(whole)[:n_rows]
    names = [f"from {low}" for low, _ in DECADES]
    place = np.searchsorted([low for low, _ in DECADES], age[rows], side="right") - 1
    decade = pd.DataFrame({"decade": pd.Categorical.from_codes(place, names, ordered=True)})
    at = pd.DataFrame({"decade": pd.Categorical(names, names, ordered=True)})
    pair = [X.columns.get_loc(name) for name in ("ln_sbp", "dbp")]
    print("known           ", KNOWN["ln_sbp", "dbp"])
    for name, make in ORDERED.items():
        start = time.perf_counter()
        model = make().fit(X.iloc[rows], decade)
        seconds, likelihood = time.perf_counter() - start, model.held_out_["log_likelihood"].max()
        found = model.partial_correlations(at)[:, *pair].round(2).tolist()
        print(
            f"{name:16s}",
            found,
            f"log-likelihood {likelihood:.3f}, strength {model.strength_}, {seconds:.1f} s",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--rows", type=int, nargs="+", default=[400, 1000])
    parser.add_argument("--new", type=int, default=1000, help="rows that judge")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.data is not None:
        print_decades(arguments.data)
        return
    for seed in arguments.seeds:
        for n in arguments.rows:
            sim = gf.make_setting("S2", n_samples=n + arguments.new, random_state=seed)
            X, Z, new_X, new_Z = sim.X[:n], sim.Z.iloc[:n], sim.X[n:], sim.Z.iloc[n:]
            for name, make in MODELS.items():
                start = time.perf_counter()
                model = make().fit(X, Z)
                seconds = time.perf_counter() - start
                found = float(np.mean(auprc(model.edge_weights(new_Z), sim.skeleton[n:])))
                strength = getattr(model, "strength_", float("nan"))
                scores = f"AUPRC {found:.3f}  score {model.score(new_X, new_Z):.4f}"
                print(f"seed {seed}  {n} rows  {name:16s} {scores}  strength {strength:.2f}  {seconds:.1f} s")


if __name__ == "__main__":
    main()
