"""D1 and D2: p = 50 nodes, a mixture of two random trees as a structural equation model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from math import factorial, pi

import numpy as np
from numpy.typing import NDArray
from scipy.special import eval_hermite

from graphfield.simulate.field import Field, without_diagonal

N_NODES = 50
CHILDREN = (1, 3)
COEF_RANGE = (0.1, 0.5)
# Magnitudes of the coefficients of the Hermite functions of order 1, 2, 3.
HERMITE_RANGES = ((0.1, 0.5), (0.05, 0.1), (0.02, 0.05))
CLIP = (0.25, 0.75)


class Dag(Field):
    """x_j = sum_l w_l(z) sum_k f_l,jk(x_k) + noise over the parents k of j in tree l.

    Tree 1 where 0 < z_1 < 1/2, tree 2 where -1/2 < z_1 <= 0, else both, with weight z_2^2 (clipped)
    for the first. Nodes are numbered in the order the trees grow, so parents come before children.
    """

    def __init__(self, rng: np.random.Generator, *, clip: bool) -> None:
        self.clip = clip
        tree_rng, self._value_rng = rng.spawn(2)
        self.trees = np.stack([random_tree(N_NODES, tree_rng) for _ in range(2)])  # (2, child, parent)

    def covariates(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.uniform(-1, 1, (n_samples, 2))

    def regime(self, Z: NDArray[np.float64]) -> NDArray[np.int64]:
        first = (Z[:, 0] > 0) & (Z[:, 0] < 0.5)
        second = (Z[:, 0] > -0.5) & (Z[:, 0] <= 0)
        return np.select([first, second], [0, 1], default=2)

    def mixing(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weight of each tree, (n, 2)."""
        share = Z[:, 1] ** 2
        share = np.clip(share, *CLIP) if self.clip else share
        weight = np.choose(self.regime(Z), [np.ones_like(share), np.zeros_like(share), share])
        return np.column_stack([weight, 1 - weight])

    def skeleton(self, Z: NDArray[np.float64]) -> NDArray[np.bool_]:
        return self._by_regime(Z, moral_graph)

    def pseudo_skeleton(self, Z: NDArray[np.float64]) -> NDArray[np.bool_]:
        return self._by_regime(Z, lambda dag: dag | dag.T)

    def _by_regime(
        self, Z: NDArray[np.float64], to_graph: Callable[[NDArray[np.bool_]], NDArray[np.bool_]]
    ) -> NDArray[np.bool_]:
        used = self.mixing(Z) > 0
        patterns, index = np.unique(used, axis=0, return_inverse=True)
        graphs = [to_graph((self.trees & p[:, None, None]).any(axis=0)) for p in patterns]
        return without_diagonal(np.stack(graphs))[index.ravel()]

    def sample(self, Z: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        noise = rng.standard_normal((len(Z), N_NODES))
        mixing = self.mixing(Z)
        X = np.empty_like(noise)
        for j in range(N_NODES):
            pull = np.column_stack([self.pull(tree, j, X) for tree in range(2)])
            X[:, j] = (mixing * pull).sum(axis=1) + noise[:, j]
        return X

    @abstractmethod
    def pull(self, tree: int, child: int, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the parents of ``child`` in one tree, (n,)."""


class LinearDag(Dag):
    """D1: f(x) = b x with b of random sign and magnitude U(.1, .5)."""

    def __init__(self, rng: np.random.Generator, *, clip: bool) -> None:
        super().__init__(rng, clip=clip)
        self.candidates = signed_uniform(self.trees, COEF_RANGE, self._value_rng)

    def pull(self, tree: int, child: int, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return X[:, :child] @ self.candidates[tree, child, :child]

    def precision(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """(I - A)' (I - A): the noise has unit variance."""
        A = np.einsum("il,ljk->ijk", self.mixing(Z), self.candidates)
        residual = np.eye(N_NODES) - A
        return np.einsum("ijk,ijl->ikl", residual, residual)


class HermiteDag(Dag):
    """D2: f(x) = sum of three Hermite functions of order 1, 2, 3 with small random coefficients."""

    def __init__(self, rng: np.random.Generator, *, clip: bool) -> None:
        super().__init__(rng, clip=clip)
        values = [signed_uniform(self.trees, r, self._value_rng) for r in HERMITE_RANGES]
        self.hermite_coef = np.stack(values)  # (order, tree, child, parent)
        self.candidates = self.hermite_coef[0]

    def pull(self, tree: int, child: int, X: NDArray[np.float64]) -> NDArray[np.float64]:
        parents = np.flatnonzero(self.trees[tree, child])
        total = np.zeros(len(X))
        for parent in parents:
            for order, coef in enumerate(self.hermite_coef[:, tree, child, parent], start=1):
                total += coef * hermite_function(order, X[:, parent])
        return total


def hermite_function(order: int, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Orthonormal Gauss-Hermite function psi_order."""
    scale = (2.0**order * factorial(order)) ** -0.5 * pi**-0.25
    return scale * eval_hermite(order, x) * np.exp(-(x**2) / 2)


def random_tree(n_nodes: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Grown breadth first from node 0, each node with 1 to 3 children; (child, parent)."""
    tree = np.zeros((n_nodes, n_nodes), dtype=bool)
    parent, grown = 0, 1
    while grown < n_nodes:
        for _ in range(rng.integers(CHILDREN[0], CHILDREN[1] + 1)):
            if grown < n_nodes:
                tree[grown, parent] = True
                grown += 1
        parent += 1
    return tree


def signed_uniform(
    where: NDArray[np.bool_], size: tuple[float, float], rng: np.random.Generator
) -> NDArray[np.float64]:
    values = rng.choice([-1.0, 1.0], where.shape) * rng.uniform(*size, where.shape)
    return np.where(where, values, 0.0)


def moral_graph(dag: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Undirected edges plus edges between parents of a common child; ``dag`` is (child, parent)."""
    counts = dag.astype(np.int64)
    return dag | dag.T | (counts.T @ counts > 0)
