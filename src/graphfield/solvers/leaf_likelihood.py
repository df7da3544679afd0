"""A tree over covariates; how many leaves and which penalties predict held-out rows best, by likelihood."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor

from graphfield.exceptions import TrainingError
from graphfield.fields.tree import Tree
from graphfield.solvers.glasso_admm import SEARCH_ACCURACY, PrecisionSolver
from graphfield.solvers.penalties import RATIO, PathSearch, compare_rows

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


# Penalties are factor * sqrt(log(p) / rows), with factors on a geometric grid.
LARGEST = 3.0
_STEPS = 10
# Trees larger than the best so far that are tried before the search ends: these many and a half more.
_PATIENCE = 4


def penalty_of(factor: float, n_rows: float, n_nodes: int) -> float:
    """A factor means the same in leaves of different sizes."""
    return float(factor * np.sqrt(np.log(n_nodes) / n_rows))


Nodes = tuple[int, ...]


@dataclass(frozen=True)
class _Fit:
    """Log-likelihood of the held-out rows of some nodes of the tree, at the best step of the grid."""

    rows: NDArray[np.float64]
    step: int
    usable: bool = True


class HeldOutSearch:
    """Held-out log-likelihood of the first 1, 2, 3, ... splits of a tree.

    Trees of different sizes share most of their leaves, so each node is fitted once. ``train`` and
    ``held_out`` are node values in standard units, (n, p), and the features that ``tree`` splits on;
    ``nodes`` those of training as they are, where ``train`` has them less their means: a leaf in which one
    of them never varies is no leaf.
    """

    def __init__(
        self,
        tree: Tree,
        train: tuple[NDArray, NDArray],
        held_out: tuple[NDArray, NDArray],
        nodes: NDArray | None = None,
    ) -> None:
        self._tree, self._nodes = tree, train[0] if nodes is None else nodes
        self._train, self._held_out = train[0], held_out[0]
        self._in_train, self._in_held_out = tree.members(train[1]), tree.members(held_out[1])
        self._fits: dict[Nodes, _Fit] = {}

    def best_size(self) -> tuple[pd.DataFrame, int]:
        """The table of sizes and their likelihoods, and the size that is chosen."""

        def attempt(size: int, _: NDArray | None) -> tuple[float, NDArray]:
            rows = self._row_likelihood(size)
            return -float(rows.mean()), rows

        search = PathSearch(range(1, len(self._tree.leaves) + 1), attempt)
        search.walk(0, lambda s: s.worse >= _PATIENCE + s.best.value // 2)
        found, chosen = compare_rows((one.solution for one in search.tried.values()), ddof=0)
        table = pd.DataFrame(found, columns=["log_likelihood", "behind", "standard_error"])
        table.insert(0, "leaves", np.arange(1, len(table) + 1))
        return table, chosen + 1

    def merged(self, leaves: Iterable[int]) -> list[Nodes]:
        """Leaves that are better off with one graph in common, by held-out likelihood; pair by pair."""
        parts: list[Nodes] = [(int(leaf),) for leaf in leaves]
        while len(parts) > 1:
            gains = {pair: self._gain(*pair) for pair in combinations(parts, 2)}
            (first, second), gain = max(gains.items(), key=lambda item: item[1])
            if not gain > 0:
                break
            parts = [part for part in parts if part not in (first, second)]
            parts.append(tuple(sorted(first + second)))
        return sorted(parts)

    def factor(self, nodes: Nodes) -> float:
        """The penalty factor that was best on the held-out rows of these nodes."""
        return factor_of(self._fit(nodes).step)

    def _gain(self, first: Nodes, second: Nodes) -> float:
        union = self._fit(tuple(sorted(first + second)))
        return float(union.rows.sum() - self._fit(first).rows.sum() - self._fit(second).rows.sum())

    def _row_likelihood(self, size: int) -> NDArray[np.float64]:
        rows = np.empty(len(self._held_out))
        for leaf in self._tree.first(size).leaves:
            fit = self._fit((int(leaf),))
            if not fit.usable:
                return np.full(len(rows), -np.inf)
            rows[self._in_held_out[:, leaf]] = fit.rows
        return rows

    def _fit(self, nodes: Nodes) -> _Fit:
        if nodes not in self._fits:
            columns = list(nodes)
            rows = self._in_train[:, columns].any(axis=1)
            train = self._train[rows]
            # A node may vary by its mean alone, which the values to fit are without.
            varies = all(np.ptp(values, axis=0).min() > 0 for values in (self._nodes[rows], train))
            held_out = self._held_out[self._in_held_out[:, columns].any(axis=1)]
            # There are many pairs of leaves to try, so their unions keep the penalty of their parts.
            start = self._start(nodes)
            unusable = _Fit(np.full(len(held_out), -np.inf), start, usable=False)
            walk = len(nodes) == 1
            self._fits[nodes] = _best_step(train, held_out, start, walk=walk) if varies else unusable
        return self._fits[nodes]

    def _start(self, nodes: Nodes) -> int:
        if len(nodes) > 1:
            return int(np.median([self._fit((node,)).step for node in nodes]))
        if nodes == (0,):
            return _STEPS // 2
        return self._fit((self._tree.parent(nodes[0]),)).step


def factor_of(step: int) -> float:
    return LARGEST * RATIO**step


def _best_step(train: NDArray, held_out: NDArray, start: int, *, walk: bool = True) -> _Fit:
    """The likelihood at step ``start`` of the grid of penalties, or walk from there as long as it rises."""
    center, scale = train.mean(axis=0), train.std(axis=0)
    if len(held_out) == 0:
        return _Fit(np.empty(0), start)
    train, held_out = (train - center) / scale, (held_out - center) / scale
    covariance = train.T @ train / len(train)
    solver = PrecisionSolver(covariance)
    constant = -np.log(scale).sum() - len(scale) * np.log(2 * np.pi) / 2

    def attempt(step: int, _: NDArray | None) -> tuple[float, NDArray]:
        penalty = penalty_of(factor_of(step), len(train), len(scale))
        try:
            precision = solver.solve(penalty, SEARCH_ACCURACY)
        except TrainingError:  # the penalty is too small for such a covariance
            return np.inf, np.full(len(held_out), -np.inf)
        quadratic = np.einsum("ij,jk,ik->i", held_out, precision, held_out, optimize=True)
        rows = constant + (np.linalg.slogdet(precision)[1] - quadratic) / 2
        return -float(rows.sum()), rows

    search = PathSearch(range(_STEPS), attempt).walk(start, lambda _: True)
    if walk and search.walk_back().best.step == start:
        search.walk(start + 1, lambda s: s.worse >= 1)
    return _Fit(search.best.solution, search.best.step)
