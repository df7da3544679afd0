"""A regression tree of cross products: where in the covariate space does the covariance change?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor

from graphfield.fields.tree import Tree

# Up to this many cross products (91 nodes) the tree sees all of them, beyond it random sketches.
_MAX_PRODUCTS = 4_186
_SKETCHES = 2_048
# Entries of the table of cross products (512 MB); of longer tables a random part of the rows is used.
_MAX_ENTRIES = 2**26
# Standard deviations beyond which a node's value is cut off while the tree is grown: products of
# outliers would decide the splits otherwise.
_CLIP = 2.0


def grow_covariance_tree(
    X: NDArray[np.float64], features: NDArray[np.float64], max_leaves: int, min_leaf_rows: int, seed: int
) -> Tree:
    """Split on ``features`` so that the products x_j x_k of standardised ``X`` differ most between leaves.

    ``X`` is clipped at two standard deviations first. A multi-output regression tree with squared error,
    grown best split first. The sum of squares over all products is the squared Frobenius distance
    between covariance matrices, which random sketches ``(a'x)(b'x)`` preserve on average: that is what
    is used with many nodes.
    """
    if max_leaves < 2 or len(X) < 2 * min_leaf_rows:
        none = np.array([-1])
        return Tree(none, none, none, np.zeros(1))
    X, rng = np.clip(X, -_CLIP, _CLIP), np.random.default_rng(seed)
    n_products = X.shape[1] * (X.shape[1] + 1) // 2
    n_outputs = n_products if n_products <= _MAX_PRODUCTS else _SKETCHES
    if len(X) * n_outputs > _MAX_ENTRIES:
        rows = np.sort(rng.choice(len(X), _MAX_ENTRIES // n_outputs, replace=False))
        min_leaf_rows = max(1, min_leaf_rows * len(rows) // len(X))
        X, features = X[rows], features[rows]
    products = _products(X) if n_outputs == n_products else _sketches(X, rng)
    model = DecisionTreeRegressor(
        max_leaf_nodes=max_leaves, min_samples_leaf=min_leaf_rows, random_state=seed % 2**32
    ).fit(features, products)
    tree = model.tree_
    return Tree(
        tree.children_left.astype(np.int64),
        tree.children_right.astype(np.int64),
        tree.feature.astype(np.int64),
        tree.threshold.astype(np.float64),
    )


def _products(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """x_j x_k for j <= k."""
    n, p = X.shape
    products = np.empty((n, p * (p + 1) // 2))
    start = 0
    for j in range(p):
        np.multiply(X[:, j : j + 1], X[:, j:], out=products[:, start : start + p - j])
        start += p - j
    return products


def _sketches(X: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    a, b = rng.choice([-1.0, 1.0], (2, X.shape[1], _SKETCHES))
    sketches = X @ a
    sketches *= X @ b
    return sketches
