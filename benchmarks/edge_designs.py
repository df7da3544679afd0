"""Data with known edges, movements and differences for ``benchmarks/inference.py``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from graphfield.simulate.node_kinds import Binary, Categorical, Count, Gaussian, NodeKind
from graphfield.simulate.pairwise import PairwiseField

# Noise with mean zero and variance about one; heavy or skewed ones make nodes so.
NOISE: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "t5": lambda rng, size: rng.standard_t(5, size) / np.sqrt(5 / 3),
    "t3": lambda rng, size: rng.standard_t(3, size) / np.sqrt(3),
    "skewed": lambda rng, size: rng.exponential(size=size) - 1,
}


def gaussian_rows(rng: np.random.Generator, precision: np.ndarray) -> np.ndarray:
    """One row for each precision matrix, (n, p)."""
    root = np.linalg.cholesky(precision)
    return np.linalg.solve(root.transpose(0, 2, 1), rng.normal(size=(*precision.shape[:2], 1)))[:, :, 0]


def symmetric(values: np.ndarray, pairs: np.ndarray, p: int) -> np.ndarray:
    """Matrices (n, p, p) with values (n, pairs) at pairs (pairs, 2)."""
    found = np.zeros((len(values), p, p))
    found[:, pairs[:, 0], pairs[:, 1]] = found[:, pairs[:, 1], pairs[:, 0]] = values
    return found


def six_pairs(rng: np.random.Generator, p: int) -> np.ndarray:
    """Pairs of nodes of which none is in more than two."""
    while True:
        all_pairs = np.transpose(np.triu_indices(p, 1))
        pairs = all_pairs[rng.choice(len(all_pairs), 6, replace=False)]
        if np.bincount(pairs.ravel()).max() <= 2:
            return pairs


def moderated(rng: np.random.Generator, n: int) -> tuple[np.ndarray, pd.DataFrame, np.ndarray, np.ndarray]:
    """The design of Haslbeck, Borsboom and Waldorp: 12 nodes, a moderator, six edges, effects of .2.

    Two edges do not move, two have an effect beside the moderation, two are moderated only. Nodes,
    moderator, pairs of the fourth to sixth kind (3 x 2, 2): moderations beside an effect, then without one.
    """
    pairs = six_pairs(rng, 12)
    fixed, moves = 0.2 * np.array([1, 1, 1, 1, 0, 0]), 0.2 * np.array([0, 0, 1, 1, 1, 1])
    # Conditional variances are one; values of the moderator without a joint distribution do not occur.
    z = rng.normal(size=4 * n)
    precision = np.eye(12) - symmetric(fixed + moves * z[:, None], pairs, 12)
    possible = np.flatnonzero(np.linalg.eigvalsh(precision)[:, 0] > 0.05)[:n]
    return gaussian_rows(rng, precision[possible]), pd.DataFrame({"z": z[possible]}), pairs[2:4], pairs[4:]


def many_covariates(rng: np.random.Generator, n: int, p: int, q: int) -> tuple[np.ndarray, pd.DataFrame]:
    """The design of SAGE: the first edge follows -.3 of each of the first two of q covariates.

    Conditional variances of its nodes are one; other nodes are a chain whose edges do not move.
    """
    Z = rng.normal(size=(2 * n, q))
    Z = Z[np.abs(0.3 * Z[:, :2].sum(axis=1)) < 0.95][:n]  # others have no joint distribution
    edge = symmetric(-0.3 * Z[:, :2].sum(axis=1, keepdims=True), np.array([[0, 1]]), 2)
    X = rng.normal(size=(n, p))
    X[:, :2] = gaussian_rows(rng, np.eye(2) - edge)
    for j in range(3, p):
        X[:, j] += 0.4 * X[:, j - 1]
    return X, pd.DataFrame(Z).add_prefix("z")


def random_graphs(
    rng: np.random.Generator, p: int, density: float, share: float, removed: bool, n_graphs: int = 2
) -> list[np.ndarray]:
    """Partial correlations of graphs, (p, p) each, that differ from the first in a share of all pairs.

    By .2, or with ``removed`` by edges that are absent from the others.
    """
    pairs = np.transpose(np.triu_indices(p, 1))
    m = len(pairs)
    while True:
        first = np.where(rng.random(m) < density, rng.uniform(0.1, 0.4, m), 0) * rng.choice(
            [-1, 1], m, p=[0.2, 0.8]
        )
        among = np.flatnonzero(first) if removed else np.arange(m)
        changed = rng.permutation(among)[: round(share * m)]
        others = np.repeat(first[None], n_graphs - 1, axis=0)
        signs = rng.choice([-1, 1], (n_graphs - 1, len(changed)))
        others[:, changed] = 0 if removed else others[:, changed] + 0.2 * signs
        graphs = symmetric(np.vstack([first, others]), pairs, p)
        if np.linalg.eigvalsh(np.eye(p) - graphs).min() > 0.1:
            return list(graphs)


def rows_of_graph(rng: np.random.Generator, partial: np.ndarray, n: int, noise: str = "normal") -> np.ndarray:
    """Linear in independent noise, with covariances that belong to these partial correlations."""
    root = np.linalg.cholesky(np.linalg.inv(np.eye(len(partial)) - partial))
    return NOISE[noise](rng, (n, len(partial))) @ root.T


def paired_rows(
    rng: np.random.Generator, graphs: list[np.ndarray], n: int, noise: str, own: float
) -> tuple[np.ndarray, pd.DataFrame, np.ndarray]:
    """Subjects with one row in each graph, correlated between graphs by ``own``; nodes, times, subjects."""
    p = len(graphs[0])
    common = NOISE[noise](rng, (n, p))
    parts = []
    for partial in graphs:
        mixed = np.sqrt(own) * common + np.sqrt(1 - own) * NOISE[noise](rng, (n, p))
        parts.append(mixed @ np.linalg.cholesky(np.linalg.inv(np.eye(p) - partial)).T)
    times = np.repeat([f"t{i}" for i in range(len(graphs))], n)
    return np.vstack(parts), pd.DataFrame({"time": times}), np.tile(np.arange(n), len(graphs))


def ising_rows(rng: np.random.Generator, weights: np.ndarray, thresholds: np.ndarray, n: int) -> np.ndarray:
    """Nodes 0 or 1, log p = sum_j h_j x_j + sum_j<k w_jk x_j x_k + constant; exact draws, not a chain."""
    p = len(thresholds)
    states = ((np.arange(2**p)[:, None] >> np.arange(p)) & 1).astype(np.float32)
    energies = states @ thresholds.astype(np.float32)
    energies += np.einsum("sj,sj->s", states @ np.triu(weights, 1).astype(np.float32), states)
    reached = np.cumsum(np.exp((energies - energies.max()).astype(np.float64)))
    return states[np.searchsorted(reached, rng.random(n) * reached[-1])].astype(bool)


def dense_ising(
    rng: np.random.Generator, p: int = 12, density: float = 0.5, share: float = 0.1
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights and thresholds of two Ising models with the same edges, a share of pairs by .5 weaker or not.

    No edge is absent from one of them alone, which is what tests that look for few edges expect.
    """
    pairs = np.transpose(np.triu_indices(p, 1))
    sizes = np.where(rng.random(len(pairs)) < density, rng.uniform(0.3, 0.9, len(pairs)), 0.0)
    changed = rng.permutation(np.flatnonzero(sizes))[: round(share * len(pairs))]
    larger = sizes.copy()
    larger[changed] += 0.5
    signs = rng.choice([-1, 1], len(pairs))
    both = [sizes * signs, larger * signs]
    swap = rng.random(len(pairs)) < 0.5  # either may be the stronger one
    both = [np.where(swap, both[1], both[0]), np.where(swap, both[0], both[1])]
    own = rng.uniform(-0.5, 0.5, p)  # nodes are about as often 0 as 1
    weights = [symmetric(values[None], pairs, p)[0] for values in both]
    return [(matrix, own - matrix.sum(axis=1) / 2) for matrix in weights]


def mixed_rows(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Nine nodes of all kinds in a chain, each drawn given the one before."""
    table, before = {}, rng.normal(size=n)
    kinds = ["number", "binary", "levels", "count", "binary", "number", "levels", "count", "rare"]
    for position, kind in enumerate(kinds):
        pull = 0.7 * before
        if kind == "number":
            own = pull + rng.normal(size=n)
        elif kind in ("binary", "rare"):
            own = rng.random(n) < 1 / (1 + np.exp((2.5 if kind == "rare" else 0.0) - pull))
        elif kind == "count":
            own = rng.poisson(np.exp(0.5 + pull / 2))
        else:
            odds = np.exp(np.outer(pull, [0.0, 0.7, -0.7]) + np.array([0.0, 0.3, -0.5])).cumsum(axis=1)
            own = (rng.random(n)[:, None] * odds[:, -1:] >= odds[:, :-1]).sum(axis=1)
        before = (own - np.mean(own)) / np.std(own)
        table[f"{kind}{position}"] = np.array(list("uvw"))[own] if kind == "levels" else own
    return pd.DataFrame(table)


# Nodes of a graph whose edges do not move, a chain and two triangles. The last node is rare. A count has no
# edge to a number: such pairs have no joint distribution.
STILL_KINDS = {
    "mixed": [Gaussian(), Binary(), Count(), Categorical(3)] * 2 + [Binary()],
    "binary": [Binary()] * 9,
}
STILL_PAIRS = [*((j, j + 1) for j in range(8)), (1, 3), (6, 8)]
_RARE = -1.5


class StillPairs(PairwiseField):
    """Edges that are the same at all z, and log-odds, rates and means that move with a number and a level."""

    def __init__(self, rng: np.random.Generator, kinds: list[NodeKind]) -> None:
        super().__init__(kinds)
        nodes, own = self.column_nodes, rng.normal(size=(len(self.column_nodes), 2))
        units = np.array([kind.unit for kind in kinds])[nodes]
        self.slopes, self.weights = 0.6 * own * np.minimum(1, 2 * units)[:, None], np.zeros((len(nodes),) * 2)
        self.base = np.array([kind.base for kind in kinds])[nodes] + _RARE * (nodes == nodes[-1])
        for j, k in STILL_PAIRS:
            a, b = np.flatnonzero(nodes == j), np.flatnonzero(nodes == k)
            signs = rng.choice([-1, 1], (len(a), len(b)))
            self.weights[np.ix_(a, b)] = 0.6 * signs * np.outer(units[a], units[b])
        self.weights += self.weights.T

    def covariates(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        return np.column_stack([rng.uniform(-1, 1, n_samples), rng.integers(0, 2, n_samples)])

    def regime(self, Z: np.ndarray) -> np.ndarray:
        return np.zeros(len(Z), dtype=np.int64)

    def offsets(self, Z: np.ndarray) -> np.ndarray:
        return self.base + np.column_stack([np.sin(2.5 * Z[:, 0]), Z[:, 1]]) @ self.slopes.T

    def interactions(self, Z: np.ndarray) -> np.ndarray:
        return np.broadcast_to(self.weights, (len(Z), *self.weights.shape))

    def skeleton(self, Z: np.ndarray) -> np.ndarray:
        there = np.zeros((9, 9), dtype=bool)
        there[tuple(np.transpose(STILL_PAIRS))] = True
        return np.broadcast_to(there | there.T, (len(Z), 9, 9))


def still_kinds(rng: np.random.Generator, n: int, kinds: str) -> tuple[pd.DataFrame, pd.DataFrame, dict]:
    """Nodes whose edges do not move, covariates that their means follow, and types of the nodes."""
    field = StillPairs(rng, STILL_KINDS[kinds])
    Z = field.covariates(n, rng)
    types = {f"{kind.name}{j}": kind.name for j, kind in enumerate(field.kinds)}
    X = pd.DataFrame(field.sample(Z, rng), columns=list(types))
    return X, pd.DataFrame({"z": Z[:, 0], "level": np.where(Z[:, 1] > 0, "a", "b")}), types
