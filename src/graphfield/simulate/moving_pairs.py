"""I1 and M1: p = 20 nodes, binary or of four kinds, two covariates; edges that come and go smoothly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphfield.simulate.field import Waves, random_directions
from graphfield.simulate.node_kinds import Binary, Categorical, Count, Gaussian, NodeKind
from graphfield.simulate.pairwise import PairwiseField

N_NODES, N_EDGES, N_COVARIATES = 20, 25, 2
FREQUENCY = np.pi  # over the square of z an edge goes, comes and goes again: no line in z follows it
# More neighbours and the Gaussian part would have no finite integral, chains of binary nodes would be slow.
MAX_NEIGHBOURS = 3
# How far the levels of the nodes move with z, in units of their kinds: no edge, and easily taken for one.
LEVEL_SLOPE = 0.4
MIXED_KINDS = (*[Gaussian()] * 8, *[Binary()] * 6, *[Categorical(3)] * 3, *[Count()] * 3)


class MovingPairs(PairwiseField):
    """B_e(z) = M_e max(0, sin(pi v_e.z + f_e)) on random pairs e; a(z) is linear in z.

    The entries of M_e are the product of the units of the two kinds, each with a random sign. There are no
    clusters: the regime of every sample is 0.
    """

    def __init__(self, kinds: Sequence[NodeKind], n_edges: int, rng: np.random.Generator) -> None:
        super().__init__(kinds)
        pair_rng, sign_rng, wave_rng, level_rng = rng.spawn(4)
        self.pairs = random_pairs(kinds, n_edges, pair_rng)
        self.waves = Waves(len(self.pairs), N_COVARIATES, FREQUENCY, wave_rng)
        self._edge_of = edge_numbers(self.pairs, len(kinds))
        units = np.array([kind.unit for kind in kinds])[self.column_nodes]
        signs = np.triu(sign_rng.choice([-1.0, 1.0], (len(units), len(units))), 1)
        there = self._of_columns(self._edge_of) < len(self.pairs)
        self.candidates = (np.outer(units, units) * (signs + signs.T) * there)[None]
        self._base = np.array([kind.base for kind in kinds])[self.column_nodes]
        self._slopes = LEVEL_SLOPE * units[:, None] * random_directions(len(units), N_COVARIATES, level_rng)

    def _of_columns(self, of_nodes: NDArray) -> NDArray:
        """(..., p, p) to (..., columns, columns)."""
        return of_nodes[..., self.column_nodes[:, None], self.column_nodes]

    def _heights(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, p, p), zero where there is no edge."""
        heights = np.maximum(0.0, self.waves.at(Z))
        return np.pad(heights, ((0, 0), (0, 1)))[:, self._edge_of]

    def covariates(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.uniform(-1, 1, (n_samples, N_COVARIATES))

    def offsets(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._base + Z @ self._slopes.T

    def interactions(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._of_columns(self._heights(Z)) * self.candidates[0]

    def skeleton(self, Z: NDArray[np.float64]) -> NDArray[np.bool_]:
        return self._heights(Z) > 0


def make_i1(rng: np.random.Generator, *, clip: bool) -> MovingPairs:
    """I1: an Ising model, nodes 0 or 1."""
    del clip  # nothing is mixed
    return MovingPairs([Binary()] * N_NODES, N_EDGES, rng)


def make_m1(rng: np.random.Generator, *, clip: bool) -> MovingPairs:
    """M1: 8 Gaussian nodes, 6 binary, 3 of three levels, 3 counts."""
    del clip  # nothing is mixed
    return MovingPairs(MIXED_KINDS, N_EDGES, rng)


def random_pairs(kinds: Sequence[NodeKind], n_edges: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Pairs that may be edges in random order, as long as no node has too many; (edges, 2)."""
    pairs = np.column_stack(np.triu_indices(len(kinds), 1))
    degree = np.zeros(len(kinds), dtype=np.int64)
    chosen: list[NDArray[np.int64]] = []
    for pair in rng.permutation(pairs):
        may = has_density(*(kinds[j].name for j in pair)) and (degree[pair] < MAX_NEIGHBOURS).all()
        if may and len(chosen) < n_edges:
            chosen.append(pair)
            degree[pair] += 1
    return np.array(chosen)


def has_density(first: str, second: str) -> bool:
    """A count must not pull what is unbounded: exp(b x y) outgrows 1 / x!, so that nothing can be drawn."""
    return "count" not in (first, second) or bool({first, second} & {"binary", "categorical"})


def edge_numbers(pairs: NDArray[np.int64], n_nodes: int) -> NDArray[np.int64]:
    """The number of each pair's edge, the number of edges where there is none; (p, p)."""
    numbers = np.full((n_nodes, n_nodes), len(pairs))
    numbers[pairs[:, 0], pairs[:, 1]] = numbers[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs))
    return numbers
