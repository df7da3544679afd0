"""Models that the tests of the report page share, fitted once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import graphfield as gf
from conftest import small_data

SMALL = {"max_steps": 60, "hidden_size": 16, "device": "cpu", "random_state": 0}
FULL = {**SMALL, "rank": None}


def resampled() -> gf.Ensemble:
    return gf.Ensemble(
        estimator=gf.DNNCGM(**{**SMALL, "rank": 2, "penalty": 0.01}),
        n_members=2,
        resample=True,
        random_state=0,
    )


MODELS = {
    "patterns": lambda: gf.DNNCGM(**{**SMALL, "max_steps": 20, "rank": 2, "penalty": 0.01}),
    "full head": lambda: gf.DNNCGM(**FULL),
    "without batch norm": lambda: gf.DNNCGM(**FULL, network="residual-plain"),
    "two plain layers": lambda: gf.DNNCGM(**FULL, network="mlp"),
    "linear network": lambda: gf.DNNCGM(**FULL, network="linear"),
    "raw units": lambda: gf.DNNCGM(**FULL, standardize=False, center="none", marginals="raw"),
    "normal scores": lambda: gf.DNNCGM(**FULL, marginals="normal"),
    "linear": lambda: gf.RegGMM(),
    "bends": lambda: gf.BayesianCGM(bends=3, n_sweeps=100, n_draws=40, random_state=0),
    "static": lambda: gf.GraphicalLasso(n_penalties=3, n_folds=3),
    "nodewise": lambda: gf.NodewiseLasso(n_penalties=5, n_folds=3),
    "archetypes": lambda: gf.ArchetypeCGM(**SMALL, n_archetypes=2, penalty=0.02),
    "ensemble": resampled,
    "tree": lambda: gf.TreeCGM(random_state=0),
    "auto": lambda: gf.AutoCGM(candidates=("static", "linear", "tree"), random_state=0),
    "moving scales": lambda: gf.Ensemble(estimator=gf.RegGMM(), n_members=2, resample=True, random_state=0),
    "by cluster": lambda: gf.ByCluster(estimator=gf.RegGMM(), by="site"),
    "archetypes in an average": lambda: gf.Ensemble(
        estimator=gf.ArchetypeCGM(**{**SMALL, "max_steps": 20}, n_archetypes=2, penalty=0.02),
        n_members=2,
        random_state=0,
    ),
}
# Not evaluated in the page: a grid of frames.
GRID = {"one network per node": lambda: gf.DNNCGM(**FULL, sharing="node")}


@cache
def table() -> tuple[pd.DataFrame, pd.DataFrame]:
    return small_data(n=500, p=6)


@cache
def fitted(name: str) -> Any:
    X, Z = table()
    if name == "auto":  # graphs move so much that whichever rows are held out say so
        X = X.assign(
            n3=X["n3"] + X["n3"].std() * (Z["age"] - 50) / 12 * (X["n2"] - X["n2"].mean()) / X["n2"].std()
        )
    if name == "moving scales":
        X = X.copy()
        X.iloc[:, 1:4] = X.iloc[:, 1:4].to_numpy() + 5 * X.iloc[:, [0]].to_numpy()
        X = X * np.exp((Z["age"].to_numpy()[:, None] / 30 - 1.7) * [1, -1, 1, -1, 0, 0])
    return {**MODELS, **GRID}[name]().fit(X, Z)


def some_rows() -> pd.DataFrame:
    """Rows of the table, the ends of its range, and far outside it."""
    Z = table()[1].iloc[:12].copy()
    ends = pd.DataFrame({"age": [20.0, 80.0, 85.5, -40.0, 300.0], "site": ["A", "B", "C", "A", "B"]})
    return pd.concat([Z, ends], ignore_index=True)


def upper(matrices: np.ndarray) -> np.ndarray:
    j, k = np.triu_indices(matrices.shape[-1], 1)
    return matrices[..., j, k]


@cache
def sign_change_table() -> tuple[pd.DataFrame, pd.DataFrame]:
    """One edge in all rows, one that changes its sign with age, a covariate of zeros and ones."""
    rng = np.random.default_rng(0)
    Z = pd.DataFrame({"age": rng.uniform(20, 80, 400), "drug": rng.integers(0, 2, 400)})
    X = pd.DataFrame(rng.normal(size=(400, 5)), columns=list("abcde"))
    X["b"] += 0.8 * X["a"]
    X["d"] += (Z["age"] - 50) / 25 * X["c"]
    return X, Z


@cache
def model_and_tests() -> tuple[Any, pd.DataFrame, gf.EdgeInference]:
    X, Z = sign_change_table()
    return gf.RegGMM().fit(X, Z), Z, gf.infer_edges(X, Z, random_state=0)
