"""Measures of graphs: parity with networkx, one graph against a stack, invariance, groups."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from graphfield.exceptions import DataError, ParameterError
from graphfield.graphs import connectivity as cn
from graphfield.graphs.groups import block_means, group_labels, group_order, node_positions


def random_weights(n: int, p: int, density: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.uniform(0.05, 1, (n, p, p)) * (rng.random((n, p, p)) < density), 1)
    return upper + upper.swapaxes(1, 2)


@pytest.fixture(scope="module", params=[0.05, 0.15, 0.6], ids=["in pieces", "sparse", "dense"])
def weights(request) -> np.ndarray:
    return random_weights(6, 14, request.param)


def as_networkx(weights: np.ndarray) -> list[nx.Graph]:
    return [nx.from_numpy_array(w) for w in weights]


def largest_component_path(graph: nx.Graph) -> float:
    parts = list(nx.connected_components(graph))
    size = max(map(len, parts))
    if size < 2:
        return np.nan
    lengths = [
        length
        for part in parts
        if len(part) == size
        for a, row in nx.shortest_path_length(graph.subgraph(part))
        for b, length in row.items()
        if a != b
    ]
    return float(np.mean(lengths))


EXPECTED_PER_NODE = {
    "degree": lambda g: dict(g.degree()),
    "strength": lambda g: dict(g.degree(weight="weight")),
    "clustering": nx.clustering,
    "weighted_clustering": lambda g: nx.clustering(g, weight="weight"),
    "betweenness": nx.betweenness_centrality,
}
EXPECTED = {
    "density": nx.density,
    "clustering": nx.average_clustering,
    "transitivity": nx.transitivity,
    "path_length": largest_component_path,
    "largest_part": lambda g: max(map(len, nx.connected_components(g))) / len(g),
    "max_betweenness": lambda g: max(nx.betweenness_centrality(g).values()),
}


@pytest.mark.parametrize("measure", EXPECTED_PER_NODE)
def test_node_measures_agree_with_networkx(weights, measure):
    found = cn.NODE_MEASURES[measure](cn.Stack(weights > 0, weights))
    for graph, values in zip(as_networkx(weights), found, strict=True):
        expected = EXPECTED_PER_NODE[measure](graph)
        np.testing.assert_allclose(values, [expected[i] for i in range(len(graph))], atol=1e-12)


@pytest.mark.parametrize("measure", EXPECTED)
def test_measures_agree_with_networkx(weights, measure):
    found = cn.measure_graphs(weights > 0, weights, [measure])[measure]
    np.testing.assert_allclose(found, [EXPECTED[measure](g) for g in as_networkx(weights)], atol=1e-12)


def test_modularity_agrees_with_networkx(weights):
    labels = ["a"] * 5 + ["b"] * 4 + ["c"] * 5
    parts = [set(range(5)), set(range(5, 9)), set(range(9, 14))]
    expected = [nx.community.modularity(g, parts, weight="weight") for g in as_networkx(weights)]
    np.testing.assert_allclose(cn.modularity(weights, labels), expected, atol=1e-12)
    greedy = [
        nx.community.modularity(g, nx.community.greedy_modularity_communities(g, "weight"), weight="weight")
        for g in as_networkx(weights)
    ]
    np.testing.assert_allclose(cn.modularity(weights), greedy, atol=1e-12)


@pytest.mark.parametrize("measure", cn.MEASURES)
def test_one_graph_is_a_stack_of_one_and_the_order_of_nodes_does_not_matter(weights, measure):
    labels = np.array(list("aabbcc" + "a" * 8))
    stack = cn.measure_graphs(weights > 0, weights, [measure], labels.tolist())[measure]
    order = np.random.default_rng(1).permutation(14)
    for one, expected in zip(weights, stack, strict=True):
        alone = cn.measure_graphs(one > 0, one, [measure], labels.tolist())[measure]
        assert np.shape(alone) == ()
        np.testing.assert_allclose(alone, expected, equal_nan=True)
        if measure != "greedy_modularity":  # which breaks ties by the order of nodes
            moved = one[np.ix_(order, order)]
            found = cn.measure_graphs(moved > 0, moved, [measure], labels[order].tolist())[measure]
            np.testing.assert_allclose(found, expected, equal_nan=True)


@pytest.mark.parametrize("measure", cn.MEASURES)
def test_the_diagonal_and_signs_do_not_matter(measure):
    weights = random_weights(3, 8, 0.4)
    signed = weights * np.where(np.add.outer(np.arange(8), np.arange(8)) % 2, -1.0, 1.0) + 5 * np.eye(8)
    labels = list("aaaabbbb")
    found = cn.measure_graphs(signed != 0, signed, [measure], labels)[measure]
    expected = cn.measure_graphs(weights > 0, weights, [measure], labels)[measure]
    np.testing.assert_allclose(found, expected)


def test_graphs_without_edges():
    empty = np.zeros((2, 5, 5))
    found = cn.measure_graphs(empty > 0, empty, list(cn.MEASURES), list("aabbb"))
    unknown = {"path_length", "modularity", "greedy_modularity"}
    for name, values in found.items():
        expected = np.nan if name in unknown else 0.2 if name == "largest_part" else 0.0
        np.testing.assert_array_equal(values, expected, err_msg=name)


def test_two_equally_large_parts_both_count_for_path_length():
    graph = nx.disjoint_union(nx.path_graph(4), nx.complete_graph(4))
    assert cn.path_length(nx.to_numpy_array(graph) > 0) == pytest.approx((10 / 6 + 1) / 2)


def test_within_and_between_groups():
    weights = np.array([[0, 0.5, 0.1], [0.5, 0, 0.3], [0.1, 0.3, 0]])
    within, between = cn.within_between(weights, ["a", "a", "b"])
    assert (float(within), float(between)) == pytest.approx((0.5, 0.2))
    groups, means = block_means(weights, ["a", "a", "b"])
    assert groups == ["a", "b"]
    np.testing.assert_allclose(means, [[0.5, 0.2], [0.2, np.nan]])
    stacked = block_means(np.stack([weights, 2 * weights]), ["a", "a", "b"])[1]
    np.testing.assert_allclose(stacked, [means, 2 * means])


def test_groups_of_nodes():
    assert group_labels({"x": 1, "y": 2}, ["y", "x"]) == ["2", "1"]
    order, blocks = group_order(["b", "a", "b", "a"])
    assert order.tolist() == [0, 2, 1, 3]
    assert blocks == [("b", 0, 2), ("a", 2, 4)]
    with pytest.raises(DataError, match=r"lacks 'y'.*mean 'y' by 'Y'"):
        group_labels({"x": 1, "Y": 2}, ["x", "y"])
    with pytest.raises(DataError, match="each of the 3 nodes, got 2"):
        group_labels(["a", "b"], ["x", "y", "z"])
    with pytest.raises(DataError, match="each of the 3 nodes"):
        group_labels("abc", ["x", "y", "z"])
    with pytest.raises(DataError, match=r"no node called 'albumine'. Did you mean 'albumin'"):
        node_positions(["albumine"], ["albumin", "urea"])


def test_unknown_measures_and_missing_groups_are_refused():
    graph = np.ones((3, 3), dtype=bool)
    with pytest.raises(ParameterError, match=r"got 'densty'. Did you mean 'density'"):
        cn.measure_graphs(graph, graph, ["densty"])
    with pytest.raises(ParameterError, match="'within' compares groups"):
        cn.measure_graphs(graph, graph, ["within"])
