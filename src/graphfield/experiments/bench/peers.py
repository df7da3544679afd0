"""Other ways on the same data: loops as in the published code, scikit-learn, contextualized-ml."""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from graphfield.estimators.dnncgm import DNNCGM
from graphfield.estimators.nodewise_lasso import NodewiseLasso
from graphfield.estimators.reggmm import RegGMM
from graphfield.experiments.bench.records import NotMeasuredError, Record, Timing, interleaved, timed
from graphfield.metrics import auprc
from graphfield.simulate import banded, dags, make_setting

Samples = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]


def simulate_g1(n_samples: int, rng: np.random.Generator) -> Samples:
    """X, Z and true graphs of G1: mix, invert, draw from the normal distribution, for every sample."""
    psi = [banded.banded_precision(offset) for offset in (1, 2, 3)]
    p = banded.N_NODES
    X, Z = np.empty((n_samples, p)), np.empty((n_samples, 2))
    graphs = np.empty((n_samples, p, p), dtype=bool)
    for i in range(n_samples):
        Z[i] = rng.random(2)
        weight = min(max(Z[i, 0], banded.CLIP[0]), banded.CLIP[1])
        first, second = banded.PAIRS[min(int(3 * Z[i, 1]), 2)]
        precision = weight * psi[first] + (1 - weight) * psi[second]
        X[i] = rng.multivariate_normal(np.zeros(p), np.linalg.inv(precision))
        graphs[i] = precision != 0
        np.fill_diagonal(graphs[i], False)
    return X, Z, graphs


def simulate_d1(n_samples: int, trees: NDArray[np.float64], rng: np.random.Generator) -> Samples:
    """X, Z and moral graphs of D1; ``trees`` (2, child, parent) are the coefficients that are mixed."""
    p = trees.shape[1]
    X, Z = np.empty((n_samples, p)), np.empty((n_samples, 2))
    graphs = np.zeros((n_samples, p, p), dtype=bool)
    for i in range(n_samples):
        Z[i] = rng.uniform(-1, 1, 2)
        share = _share_of_first_tree(*Z[i])
        weights = share * trees[0] + (1 - share) * trees[1]
        for child in range(p):
            parents = np.flatnonzero(weights[child])
            X[i, child] = weights[child, parents] @ X[i, parents] + rng.standard_normal()
            for a, b in [(child, parent) for parent in parents] + list(combinations(parents, 2)):
                graphs[i, a, b] = graphs[i, b, a] = True
    return X, Z, graphs


def _share_of_first_tree(z1: float, z2: float) -> float:
    if 0 < z1 < 0.5:
        return 1.0
    if -0.5 < z1 <= 0:
        return 0.0
    return min(max(z2**2, dags.CLIP[0]), dags.CLIP[1])


def scores(weights: NDArray, skeleton: NDArray[np.bool_]) -> tuple[NDArray, NDArray]:
    """AUROC and AUPRC of every sample by scikit-learn, the diagonal left in as published."""
    roc, precision = np.empty((2, len(weights)))
    for i, (w, truth) in enumerate(zip(weights, skeleton, strict=True)):
        roc[i] = roc_auc_score(truth.ravel(), w.ravel())
        precision[i] = average_precision_score(truth.ravel(), w.ravel())
    return roc, precision


def reggmm(quick: bool, rounds: int) -> list[Record]:
    """Coefficients linear in z: one solve for all nodes against one ``Ridge`` per node."""
    from sklearn.linear_model import Ridge

    n = 2_000 if quick else 10_000
    sim = make_setting("G1", n, 0)
    features = np.column_stack([np.ones(n), sim.Z])
    design = (features[:, :, None] * sim.X[:, None, :]).reshape(n, -1)  # (n, features * nodes)
    nodes = np.tile(np.arange(sim.X.shape[1]), features.shape[1])

    def per_node() -> None:
        for j in range(sim.X.shape[1]):
            Ridge(alpha=1.0, fit_intercept=False).fit(design[:, nodes != j], sim.X[:, j])

    def ours() -> None:
        RegGMM(center="none", standardize=False).fit(sim.X, sim.Z)

    timing = interleaved(ours, per_node, min(rounds, 5))
    title = f"RegGMM against scikit-learn's Ridge per node, G1, n={n:,}"
    return [timing.record("reggmm", title, "s")]


def nodewise_lasso(quick: bool) -> list[Record]:
    """Neighbourhood selection with 30 penalties and 5 folds against one ``LassoCV`` per node."""
    from sklearn.linear_model import LassoCV

    n = 1_000 if quick else 10_000
    sim = make_setting("G1", n, 0)

    def per_node() -> None:
        for j in range(sim.X.shape[1]):
            LassoCV(alphas=30, cv=5).fit(np.delete(sim.X, j, axis=1), sim.X[:, j])

    timing = interleaved(lambda: NodewiseLasso().fit(sim.X, sim.Z), per_node, 3)
    title = f"NodewiseLasso against scikit-learn's LassoCV per node, G1, n={n:,}"
    return [timing.record("nodewise-lasso", title, "s")]


def contextualized(quick: bool) -> list[Record]:
    """Both packages' defaults on the same rows; the graphs' accuracy stands in the details."""
    if find_spec("contextualized") is None:
        raise NotMeasuredError("the package contextualized-ml is not installed")
    easy: Any = import_module("contextualized.easy")
    n, n_test = (2_000, 500) if quick else (10_000, 1_000)
    sim = make_setting("G1", n + n_test, 0)
    found: dict[str, NDArray] = {}

    def theirs() -> None:
        model = easy.ContextualizedMarkovNetworks()
        with warnings.catch_warnings(action="ignore"), torch.random.fork_rng():
            model.fit(sim.Z[:n], sim.X[:n])
            found["reference"] = np.abs(np.asarray(model.predict_networks(sim.Z[n:])))

    def ours() -> None:
        model = DNNCGM(random_state=0).fit(sim.X[:n], sim.Z[:n])
        found["ours"] = model.edge_weights(sim.Z[n:])

    timing = Timing([timed(ours)], [timed(theirs)])
    scores = {side: float(auprc(weights, sim.skeleton[n:]).mean()) for side, weights in found.items()}
    title = f"DNNCGM against contextualized-ml's Markov networks, both defaults, G1, n={n:,}"
    return [timing.record("contextualized", title, "s", details={"auprc": scores})]
