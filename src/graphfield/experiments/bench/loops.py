"""Simulators and scores one sample after the other, as the published code does them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from graphfield.simulate import banded, dags

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
