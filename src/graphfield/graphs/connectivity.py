"""How connected a graph is: measures of one undirected graph, or of a stack of them at once.

``graphs`` are boolean adjacency matrices, (p, p) or (..., p, p); ``weights`` are the sizes of the edges,
zero where there is none. Both are symmetric, and their diagonals are ignored. All measures but path length
and greedy modularity are computed for the whole stack at once. Definitions are those of networkx.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, shortest_path

from graphfield.exceptions import ParameterError, check_choice
from graphfield.graphs.groups import group_order

# Entries of a stack that are worked on at a time by the measures that multiply matrices.
_BLOCK_ENTRIES = 2_000_000


def degrees(graphs: NDArray) -> NDArray[np.int64]:
    """Number of neighbours of every node, (..., p)."""
    return _adjacency(graphs).sum(axis=-1)


def strengths(weights: NDArray) -> NDArray[np.float64]:
    """Sum of the sizes of the edges of every node, (..., p)."""
    return _magnitudes(weights).sum(axis=-1)


def density(graphs: NDArray) -> NDArray[np.float64]:
    """Share of the pairs of nodes that have an edge, (...).

    >>> float(density(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)).round(3))
    0.667
    """
    return pair_means(_adjacency(graphs))


def pair_means(matrices: NDArray) -> NDArray[np.float64]:
    """Mean over the pairs of two nodes, whatever the diagonal holds, (...).

    >>> float(pair_means(np.array([[9, 1], [3, 9]])))
    2.0
    """
    values = np.asarray(matrices, dtype=np.float64)
    p = values.shape[-1]
    pairs = values.sum(axis=(-2, -1)) - np.trace(values, axis1=-2, axis2=-1)
    return pairs / max(1, p * (p - 1))


def clustering(graphs: NDArray) -> NDArray[np.float64]:
    """Share of the pairs of neighbours of a node that are neighbours themselves, (..., p); 0 below two."""
    links = _adjacency(graphs).astype(np.float64)
    return _triangles(links, links.sum(axis=-1))


def transitivity(graphs: NDArray) -> NDArray[np.float64]:
    """Share of the pairs of edges at one node that a third closes to a triangle, (...); 0 without any."""
    degree = degrees(graphs)
    pairs = degree * (degree - 1)
    return (clustering(graphs) * pairs).sum(axis=-1) / np.maximum(1, pairs.sum(axis=-1))


def weighted_clustering(weights: NDArray) -> NDArray[np.float64]:
    """Clustering with each triangle counted by the geometric mean of its weights, (..., p).

    Weights are divided by the largest of their graph first, so that graphs of weak edges do not look
    unclustered: this is the definition of Onnela and others that networkx has too.
    """
    sizes = _magnitudes(weights)
    largest = sizes.max(axis=(-2, -1), keepdims=True, initial=0.0)
    links = np.cbrt(np.divide(sizes, largest, out=np.zeros_like(sizes), where=largest > 0))
    return _triangles(links, (sizes > 0).sum(axis=-1))


def path_length(graphs: NDArray) -> NDArray[np.float64]:
    """Mean number of steps between two nodes of the largest connected part, (...).

    Nodes outside the largest part are left out: they have no distance to it. Where several parts are equally
    large, all their pairs count. NaN where no two nodes are connected. Read it together with
    :func:`largest_part`: a graph that falls apart into small pieces has short paths.
    """
    return _one_by_one(graphs, _mean_path)


def largest_part(graphs: NDArray) -> NDArray[np.float64]:
    """Share of the nodes that are in the largest connected part, (...)."""
    return _one_by_one(graphs, _largest_share)


def betweenness(graphs: NDArray) -> NDArray[np.float64]:
    """Share of the shortest paths between two other nodes that pass through a node, (..., p).

    Where several paths are equally short each counts by its share; pairs without a path count as zero.
    """
    links = _adjacency(graphs).astype(np.float64)
    p = links.shape[-1]
    through = np.concatenate(
        [_paths_through(block) for block in _blocks(links.reshape(-1, p, p))] or [np.zeros((0, p))]
    )
    # Each of the pairs is there twice, once from either end.
    return through.reshape(links.shape[:-1]) / max(1, (p - 1) * (p - 2))


def modularity(weights: NDArray, labels: Sequence[str] | None = None) -> NDArray[np.float64]:
    """How much more weight lies within groups than by chance, (...); NaN for a graph without edges.

    ``labels`` has the group of every node. Without it, groups are found for each graph by greedy
    maximisation, which is slow (milliseconds for 50 nodes) and tells how far a graph can be divided at all.
    """
    sizes = _magnitudes(weights)
    if labels is None:
        return _one_by_one(sizes, _greedy_modularity, np.float64)
    strength = sizes.sum(axis=-1)
    total = strength.sum(axis=-1)
    quality = np.zeros(total.shape)
    order, blocks = group_order(labels)
    for _, first, end in blocks:
        own = order[first:end]
        inside = sizes[..., own[:, None], own].sum(axis=(-2, -1))
        share = _ratio(strength[..., own].sum(axis=-1), total)
        quality += _ratio(inside, total) - share**2
    return quality


def within_between(
    weights: NDArray, labels: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean size over the pairs within groups and over those between groups: (...) each; NaN without pairs."""
    sizes = _magnitudes(weights)
    codes = np.unique(np.asarray(labels, dtype=object).astype(str), return_inverse=True)[1]
    same = codes[:, None] == codes
    apart = ~same
    np.fill_diagonal(same, False)
    flat = sizes.reshape(*sizes.shape[:-2], -1)
    within, between = (
        flat @ (pairs.ravel() / pairs.sum()) if pairs.any() else np.full(sizes.shape[:-2], np.nan)
        for pairs in (same, apart)
    )
    return within, between


@dataclass(frozen=True)
class Stack:
    """Graphs and the weights of their edges, both (..., p, p), and the groups of the nodes, if any."""

    graphs: NDArray
    weights: NDArray
    labels: Sequence[str] | None = None

    @cached_property
    def group_weights(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return within_between(self.weights, self.labels or [])

    @cached_property
    def betweenness(self) -> NDArray[np.float64]:
        return betweenness(self.graphs)


@dataclass(frozen=True)
class Measure:
    """One number per graph: what to call it in a picture and how it is computed."""

    words: str
    compute: Callable[[Stack], NDArray]
    needs_groups: bool = False

    def label(self, groups: str = "groups") -> str:
        """For a picture, with what groups of nodes are.

        >>> MEASURES["within"].label("sectors")
        'mean weight within sectors'
        """
        return self.words.format(groups=groups)


# Name of a measure to what it is.
MEASURES: dict[str, Measure] = {
    "density": Measure("density", lambda s: density(s.graphs)),
    "mean_degree": Measure("mean degree", lambda s: degrees(s.graphs).mean(axis=-1)),
    "mean_strength": Measure("mean strength", lambda s: strengths(s.weights).mean(axis=-1)),
    "clustering": Measure("clustering", lambda s: clustering(s.graphs).mean(axis=-1)),
    "transitivity": Measure("transitivity", lambda s: transitivity(s.graphs)),
    "weighted_clustering": Measure(
        "weighted clustering", lambda s: weighted_clustering(s.weights).mean(axis=-1)
    ),
    "path_length": Measure("mean path length", lambda s: path_length(s.graphs)),
    "largest_part": Measure("share of nodes in the largest part", lambda s: largest_part(s.graphs)),
    "mean_betweenness": Measure("mean betweenness", lambda s: s.betweenness.mean(axis=-1)),
    "max_betweenness": Measure("largest betweenness", lambda s: s.betweenness.max(axis=-1)),
    "greedy_modularity": Measure("modularity (greedy)", lambda s: modularity(s.weights)),
    "modularity": Measure("modularity of the {groups}", lambda s: modularity(s.weights, s.labels), True),
    "within": Measure("mean weight within {groups}", lambda s: s.group_weights[0], True),
    "between": Measure("mean weight between {groups}", lambda s: s.group_weights[1], True),
}
# Measures with one number per node.
NODE_MEASURES: dict[str, Callable[[Stack], NDArray]] = {
    "degree": lambda s: degrees(s.graphs),
    "strength": lambda s: strengths(s.weights),
    "clustering": lambda s: clustering(s.graphs),
    "weighted_clustering": lambda s: weighted_clustering(s.weights),
    "betweenness": lambda s: s.betweenness,
}


def measure_graphs(
    graphs: NDArray, weights: NDArray, measures: Sequence[str], labels: Sequence[str] | None = None
) -> dict[str, NDArray]:
    """The named measures of every graph of a stack; ``labels`` are the groups of the nodes.

    ``mean_strength`` is the mean over the nodes of :func:`strengths`, the sum of the sizes of the edges of a
    node: p - 1 times the average weight of all pairs of p nodes, pairs without an edge counted as zero.
    ``mean_degree`` is the same for numbers of neighbours; ``within`` and ``between`` are averages over pairs.

    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)
    >>> found = measure_graphs(path[None], 0.5 * path[None], ["density", "mean_strength"])
    >>> {name: values.round(2).tolist() for name, values in found.items()}
    {'density': [0.67], 'mean_strength': [0.67]}
    """
    check_measures(measures, labels is not None)
    stack = Stack(graphs, weights, labels)
    return {name: MEASURES[name].compute(stack) for name in measures}


def check_measures(measures: Sequence[str], has_groups: bool) -> None:
    """Known names only, and groups where a measure needs them."""
    for name in measures:
        check_choice("measures", name, MEASURES)
        if MEASURES[name].needs_groups and not has_groups:
            raise ParameterError(f"The measure {name!r} compares groups of nodes. Pass groups.").about(
                argument="groups"
            )


def _adjacency(graphs: NDArray) -> NDArray[np.bool_]:
    """Booleans, without the diagonal."""
    links = np.asarray(graphs) != 0
    return links & ~np.eye(links.shape[-1], dtype=bool)


def _magnitudes(weights: NDArray) -> NDArray[np.float64]:
    """Sizes, without the diagonal."""
    sizes = np.abs(np.asarray(weights, dtype=np.float64))
    diagonal = np.arange(sizes.shape[-1])
    sizes[..., diagonal, diagonal] = 0
    return sizes


def _ratio(part: NDArray, whole: NDArray) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)


def _blocks(stack: NDArray) -> list[NDArray]:
    step = max(1, _BLOCK_ENTRIES // max(1, stack.shape[-1] ** 2))
    return [stack[start : start + step] for start in range(0, len(stack), step)]


def _triangles(links: NDArray, degree: NDArray) -> NDArray[np.float64]:
    """Twice the weight of the triangles at a node over the ordered pairs of its neighbours."""
    p = links.shape[-1]
    flat = links.reshape(-1, p, p)
    closed = [np.einsum("bjk,bjk->bj", block @ block, block) for block in _blocks(flat)]
    found = np.concatenate(closed or [np.zeros((0, p))]).reshape(links.shape[:-1])
    pairs = degree * (degree - 1)
    return np.divide(found, pairs, out=np.zeros(found.shape), where=pairs > 0)


def _one_by_one(
    stack: NDArray, function: Callable[[NDArray], float], dtype: type = np.bool_
) -> NDArray[np.float64]:
    """``function`` of each graph; graphs that are there several times, as sparse ones often are, once."""
    values = _adjacency(stack) if dtype is np.bool_ else np.asarray(stack)
    p = values.shape[-1]
    known: dict[bytes, float] = {}
    found = []
    for one in values.reshape(-1, p, p):
        key = np.packbits(one).tobytes() if dtype is np.bool_ else one.tobytes()
        if key not in known:
            known[key] = function(one)
        found.append(known[key])
    return np.array(found, dtype=np.float64).reshape(values.shape[:-2])


def _largest_share(links: NDArray[np.bool_]) -> float:
    member = connected_components(csr_matrix(links), directed=False)[1]
    return np.bincount(member).max() / len(links)


def _mean_path(links: NDArray[np.bool_]) -> float:
    steps = shortest_path(csr_matrix(links, dtype=np.float64), method="D", unweighted=True)
    reached = np.isfinite(steps)
    sizes = reached.sum(axis=1)
    if sizes.max() < 2:
        return np.nan
    largest = sizes == sizes.max()
    pairs = reached & largest[:, None] & ~np.eye(len(links), dtype=bool)
    return float(steps[pairs].mean())


def _paths_through(links: NDArray) -> NDArray[np.float64]:
    """For each node, the sum over ordered pairs of others of the share of shortest paths through it.

    Brandes' two sweeps from all nodes of all graphs at once: outwards counting shortest paths, ring by ring,
    then back adding up what hangs on each node. ``[b, s, v]`` belongs to paths from s to v.
    """
    p = links.shape[-1]
    start = np.broadcast_to(np.eye(p), links.shape)
    rings, counts, reached = [start], start.copy(), start > 0
    while True:
        found = np.where(reached, 0.0, rings[-1] @ links)
        if not found.any():
            break
        rings.append(found)
        counts += found
        reached |= found > 0
    carried = np.zeros(links.shape)
    for depth in range(len(rings) - 1, 0, -1):
        outer = np.divide(1 + carried, counts, out=np.zeros(links.shape), where=rings[depth] > 0)
        carried += rings[depth - 1] * (outer @ links)
    return (carried * (1 - np.eye(p))).sum(axis=-2)


def _greedy_modularity(sizes: NDArray) -> float:
    graph = nx.from_numpy_array(sizes)
    if graph.number_of_edges() == 0:
        return np.nan
    found = nx.community.greedy_modularity_communities(graph, weight="weight")
    return float(nx.community.modularity(graph, found, weight="weight"))
