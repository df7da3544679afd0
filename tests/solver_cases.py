"""Tables, and answers by hand, that tests of solvers share with tests of estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.linear_model import Lasso

from graphfield.data.blocks import Blocks
from graphfield.data.covariates import CovariateEncoder, features
from graphfield.data.frames import as_frame
from graphfield.data.node_types import read_node_types
from graphfield.solvers.marginal_choice import MarginalCheck, prefer_normal_scores


def band(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a Gaussian whose precision matrix has 0.4 next to the diagonal, and its graph."""
    precision = np.eye(p) + 0.4 * (np.eye(p, k=1) + np.eye(p, k=-1))
    X = np.random.default_rng(seed).multivariate_normal(np.zeros(p), np.linalg.inv(precision), n)
    return X, (precision != 0) & ~np.eye(p, dtype=bool)


def standard(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def raw_lasso(X: np.ndarray, penalty: float) -> np.ndarray:
    """scikit-learn's Lasso on the rows themselves, node by node."""
    p = X.shape[1]
    coef = np.zeros((p, p))
    for j in range(p):
        others = np.arange(p) != j
        model = Lasso(alpha=penalty, tol=1e-12, max_iter=100_000, random_state=0)
        coef[j, others] = model.fit(X[:, others], X[:, j]).coef_
    return coef


def two_regimes(n: int = 800, p: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Below z1 = 0.3, node 1 follows node 0; above, node 2 does, with half the noise. z2 is noise."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(0, 1, (n, 2))
    X = rng.normal(size=(n, p))
    low = Z[:, 0] <= 0.3
    X[low, 1] += 1.5 * X[low, 0]
    X[~low, 2] = 0.8 * X[~low, 0] + 0.5 * X[~low, 2]
    return X, Z


def still_rows(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A chain that is the same at every z: rows, covariates that do not matter, partial correlations."""
    rng = np.random.default_rng([seed, n, p])
    precision = np.eye(p) - 0.4 * (np.eye(p, k=1) + np.eye(p, k=-1))
    X = np.linalg.solve(np.linalg.cholesky(precision).T, rng.normal(size=(p, n))).T
    return X, rng.uniform(-1, 1, (n, 2)), np.eye(p) - precision


def chain(n: int = 1_500, p: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian nodes, each following the one before it; covariates that change the strength a little."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1, 1, (n, 2))
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] += (0.6 + 0.3 * Z[:, 0]) * X[:, j - 1]
    return X, Z


def as_fitted(model, X: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows in the order that a fit of ``model`` puts them in, which splits are drawn in."""
    rows = model._read_rows(X, Z, None, None, None).inputs.rows
    return X[rows], Z[rows]


def preferred(X: np.ndarray, Z: object = None, groups: np.ndarray | None = None) -> MarginalCheck:
    """The check as a model makes it; without Z, of relations that are the same for all rows."""
    if Z is None:
        return prefer_normal_scores(X, np.ones((len(X), 1)), groups)
    frame = as_frame(Z, "Z")
    encoder = CovariateEncoder().fit(frame)
    return prefer_normal_scores(X, features(encoder, encoder.transform(frame)), groups)


LEVELS = np.array(["low", "mid", "high"])


def four_kinds(
    rng: np.random.Generator, number: np.ndarray, effect: np.ndarray, odds: float
) -> dict[str, np.ndarray]:
    """A number, and a flag, a group and a count that follow it; the flag by the effect of its row."""
    n = len(number)
    flag = rng.random(n) < 1 / (1 + np.exp(-effect * number))
    shares = np.exp(np.outer(number, [odds, 0.0, -odds]))
    shares /= shares.sum(axis=1, keepdims=True)
    level = (rng.random(n)[:, None] > np.cumsum(shares, axis=1)).sum(axis=1)
    events = rng.poisson(np.exp(0.5 + 0.4 * number))
    group = np.array(["a", "b", "c"])[level]
    return {"number": 10 + 3 * number, "flag": flag, "group": group, "events": events}


def mixed_table(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Edges number-flag (grows with z), number-group, number-count; "alone" and "scale" have none."""
    rng = np.random.default_rng(seed)
    z, number = rng.uniform(-1, 1, n), rng.normal(size=n)
    nodes = four_kinds(rng, number, 1 + 1.5 * z, 1.2)
    scale = pd.Categorical(rng.choice(LEVELS, n), LEVELS, ordered=True)
    return pd.DataFrame({**nodes, "scale": scale, "alone": rng.normal(size=n)}), pd.DataFrame({"z": z})


COUNTED = {"events": "count"}


def blocks_of(X: pd.DataFrame, types: dict[str, str]) -> tuple[Blocks, np.ndarray]:
    frame = as_frame(X, "X")
    found = read_node_types(frame, types)
    codes = found.codes(found.with_categories(frame))
    return Blocks.learn(found, codes), codes
