"""How central every node of a weighted graph is, as psychologists and qgraph have it.

``weights`` are sizes of edges, (..., p, p), zero where there is none. A path is as long as the sum of
1 / weight along it: strong edges are short. (``graphs.connectivity.betweenness`` counts steps.)
"""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from graphfield.graphs.connectivity import strengths


def closeness(weights: NDArray) -> NDArray[np.float64]:
    """One over the mean length of shortest paths to nodes that can be reached, times their share, (..., p).

    Zero for a node without edges. The definition of Wasserman and Faust, which networkx has too.

    >>> chain = 0.5 * np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> closeness(chain).round(3)
    array([0.333, 0.5  , 0.333])
    """
    return _one_by_one(weights, _closeness)


def path_betweenness(weights: NDArray) -> NDArray[np.float64]:
    """Share of the shortest paths between two other nodes that pass through a node, (..., p).

    >>> path_betweenness(0.5 * np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    array([0., 1., 0.])
    """
    return _one_by_one(weights, _betweenness)


# What is called central, by the names that users of networks know.
CENTRALITIES: dict[str, Callable[[NDArray], NDArray[np.float64]]] = {
    "strength": strengths,
    "closeness": closeness,
    "betweenness": path_betweenness,
}


def _one_by_one(weights: NDArray, measure: Callable[[NDArray], NDArray]) -> NDArray[np.float64]:
    sizes = np.abs(np.asarray(weights, dtype=np.float64))
    p = sizes.shape[-1]
    found = [measure(one) for one in sizes.reshape(-1, p, p)]
    return np.array(found, dtype=np.float64).reshape(sizes.shape[:-1])


def _lengths(sizes: NDArray) -> NDArray[np.float64]:
    return np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)


def _closeness(sizes: NDArray) -> NDArray[np.float64]:
    length = shortest_path(csr_matrix(_lengths(sizes)), method="D", directed=False)
    reached = np.isfinite(length).sum(axis=1) - 1
    total = np.where(np.isfinite(length), length, 0.0).sum(axis=1)
    share = reached / max(1, len(sizes) - 1)
    return np.divide(reached * share, total, out=np.zeros(len(sizes)), where=total > 0)


def _betweenness(sizes: NDArray) -> NDArray[np.float64]:
    graph = nx.from_numpy_array(_lengths(sizes))
    return np.array(list(nx.betweenness_centrality(graph, weight="weight").values()))
