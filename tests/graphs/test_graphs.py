"""Strengths, thresholds and files, without any model."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.fields.edge_list import EdgeColumns, find_edges
from graphfield.graphs.export import edge_frame, graph_text, to_networkx, write_graph
from graphfield.graphs.strength import (
    apply_rule,
    directed_strengths,
    edge_shrinkage,
    partial_correlations,
    partial_from_precision,
    precision_from_partial,
    symmetrise,
)
from graphfield.graphs.threshold import find_gap


def random_precision(p: int = 6, seed: int = 0) -> np.ndarray:
    a = np.random.default_rng(seed).normal(size=(p, 2 * p))
    return a @ a.T / p


def test_partial_correlations_of_a_gaussian():
    theta = random_precision()
    diagonal = np.diag(theta)
    coef = -theta / diagonal[:, None]
    np.fill_diagonal(coef, 0)
    partial = partial_correlations(coef[None], 1 / np.sqrt(diagonal))[0]
    np.testing.assert_allclose(partial, partial_from_precision(theta), atol=1e-12)


def test_and_needs_both_directions_and_or_needs_one():
    directed = np.array([[[0, 0.3, -0.4], [0.1, 0, 0.05], [-0.5, 0.3, 0]]])
    pairs = {rule: apply_rule(directed, 0.2, rule)[0] for rule in ("and", "or")}
    assert pairs["and"].tolist() == [[False, False, True], [False, False, False], [True, False, False]]
    assert pairs["or"].tolist() == [[False, True, True], [True, False, True], [True, True, False]]


def test_precision_from_partial_undoes_it():
    theta = random_precision()
    partial = partial_from_precision(theta)[None]
    again = precision_from_partial(partial, 1 / np.sqrt(np.diag(theta)))[0]
    np.testing.assert_allclose(again, theta, atol=1e-12)


def test_an_impossible_set_of_partial_correlations_becomes_positive_definite():
    partial = 0.9 * (1 - np.eye(5))[None]
    assert np.linalg.eigvalsh(np.eye(5) - partial[0])[0] < 0
    theta = precision_from_partial(partial, np.ones(5))[0]
    assert np.linalg.eigvalsh(theta)[0] > 0
    ratio = theta[~np.eye(5, dtype=bool)]
    np.testing.assert_allclose(ratio, ratio[0])


def test_no_implied_variance_is_far_from_that_of_the_data():
    """.99 beside another edge: positive definite after a shrinkage to .999, with a variance of hundreds."""
    partial = np.zeros((3, 3))
    partial[0, 1] = partial[1, 0] = 0.99
    partial[1, 2] = partial[2, 1] = 0.4
    several = np.stack([partial, partial / 2])
    loose = np.linalg.inv(precision_from_partial(several, np.ones(3)))[0]
    assert np.diag(loose).max() > 400
    node = np.full(3, 2.0)
    factor = edge_shrinkage(several, np.ones(3), node)
    sane = np.linalg.inv(precision_from_partial(several, np.ones(3), node))
    assert factor[1] == 1
    assert 0.8 < factor[0] < 0.95
    assert np.diag(sane[0]).max() == pytest.approx(4 * 2.0**2), "no smaller factor than needed"
    np.testing.assert_allclose(sane[1], np.linalg.inv(np.eye(3) - partial / 2))


@pytest.mark.parametrize("copy", [0.9, 0.99, 0.9999])
def test_near_copies_that_the_data_has_do_not_shrink(copy):
    """Their variance is 1 / (1 - copy^2) times that of the residuals, and so it is in the data."""
    partial = np.array([[[0, copy], [copy, 0]]])
    residual, node = np.ones(2), np.full(2, 1 / np.sqrt(1 - copy**2))
    assert edge_shrinkage(partial, residual, node).tolist() == [1]
    assert edge_shrinkage(partial, residual, node / 10)[0] < 1
    exact = np.array([[1, -copy], [-copy, 1]])
    np.testing.assert_allclose(precision_from_partial(partial, residual, node)[0], exact)


def magnitudes(edge: float, n_edges: int = 60, rows: int = 50) -> np.ndarray:
    rng = np.random.default_rng(0)
    weights = np.abs(rng.normal(0, 0.02, (rows, 600)))
    weights[:, :n_edges] = np.abs(rng.normal(edge, 0.03, (rows, n_edges)))
    return weights


def test_the_gap_lies_between_noise_and_edges():
    found = find_gap(magnitudes(0.4), n_samples=1000)
    assert found.is_gap
    assert 0.05 < found.value < 0.3


def test_the_gap_follows_the_scale():
    plain, doubled = (find_gap(s * magnitudes(0.4), n_samples=1000) for s in (1, 2))
    assert doubled.value == pytest.approx(2 * plain.value)
    assert doubled.value / doubled.largest == pytest.approx(plain.value / plain.largest)


def test_a_sparse_estimate_is_cut_at_the_sampling_noise():
    """Its median is zero, which says nothing of the noise in the edges it kept."""
    weights = np.zeros((20, 600))
    weights[:, :150] = np.geomspace(0.001, 0.3, 150)
    found = find_gap(weights, n_samples=10_000)
    assert not found.is_gap
    assert found.value == pytest.approx(0.02)


def test_a_dense_graph_is_not_taken_for_noise():
    """Six nodes, all related to their neighbours: the median pair is an edge."""
    weights = np.abs(np.random.default_rng(0).normal(0.45, 0.06, size=(200, 15)))
    weights[:, :5] *= 0.2
    found = find_gap(weights, n_samples=600)
    assert not found.is_gap
    assert found.value < 0.41
    assert find_gap(weights, n_samples=8).value <= 1, "a partial correlation"


def test_no_gap_in_pure_noise():
    noise = np.abs(np.random.default_rng(0).normal(0, 0.02, (50, 600)))
    found = find_gap(noise, n_samples=1000)
    assert not found.is_gap
    assert (noise > found.value).mean() < 1e-3
    assert "no gap" in found.reason


def test_few_pairs_or_no_edge_at_all():
    assert not find_gap(np.array([[0.5, 0.01, 0.02]]), n_samples=400).is_gap
    assert find_gap(np.zeros((5, 45)), n_samples=400).value == 0


@pytest.fixture
def network() -> nx.Graph:
    partial = np.array([[0, 0.5, -0.2], [0.5, 0, 0.01], [-0.2, 0.01, 0]])
    return to_networkx(np.abs(partial) > 0.1, partial, ["a", "b", "lone wolf"], {"age": 60})


def test_every_format_reads_back(network, tmp_path):
    frame = edge_frame(network)
    assert frame.weight.tolist() == [0.5, 0.2]
    csv = pd.read_csv(write_graph(network, tmp_path / "g.csv"))
    pd.testing.assert_frame_equal(csv, frame, check_dtype=False)
    pytest.importorskip("pyarrow")
    parquet = pd.read_parquet(write_graph(network, tmp_path / "g.parquet"))
    pd.testing.assert_frame_equal(parquet, frame)
    graphml = nx.read_graphml(write_graph(network, tmp_path / "g.graphml"))
    assert set(graphml.nodes) == {"a", "b", "lone wolf"}
    assert graphml["a"]["b"]["partial_correlation"] == 0.5
    again = nx.node_link_graph(
        json.loads((write_graph(network, tmp_path / "g.json")).read_text()), edges="edges"
    )
    assert nx.utils.graphs_equal(again, network)


def test_files_that_cannot_be_written(network, tmp_path):
    with pytest.raises(gf.ParameterError, match="names no known format"):
        write_graph(network, tmp_path / "graph.txt")
    (tmp_path / "file").write_text("precious")
    with pytest.raises(gf.OutputError, match="Cannot write"):
        write_graph(network, tmp_path / "file" / "graph.csv")
    with pytest.raises(gf.OutputError, match="there is no folder"):
        write_graph(network, tmp_path / "new" / "graph.csv")
    with pytest.raises(gf.ParameterError, match="binary"):
        graph_text(network, "parquet")


@pytest.mark.parametrize("rule", ["and", "or"])
@pytest.mark.parametrize("known", [True, False])
def test_edges_that_are_looked_for_among_pairs_are_those_of_the_whole_matrix(rule, known):
    rng = np.random.default_rng(0)
    coef, scale = rng.normal(size=(7, 6, 6)).astype(np.float32), rng.uniform(0.5, 2, (7, 6))
    clear = np.triu(rng.random((6, 6)) < 0.5, 1)
    cut = np.where(clear | clear.T, 0.3, np.inf) if known else 0.3
    directed = directed_strengths(coef, scale)
    graphs = apply_rule(directed, cut, rule)
    found = find_edges(coef, scale, cut, rule)
    graph, j, k = np.nonzero(np.triu(graphs, 1))
    np.testing.assert_array_equal(found.counts, np.bincount(graph, minlength=7))
    np.testing.assert_array_equal(np.stack([found.source, found.target]), [j, k])
    np.testing.assert_array_equal(found.partial, symmetrise(directed)[graph, j, k])


def test_graphs_that_are_asked_for_twice_have_their_edges_twice():
    found = EdgeColumns(np.array([2, 0, 1]), *np.array([[0, 1, 0], [1, 2, 2]]), np.array([0.1, 0.2, 0.3]))
    again = found.of(np.array([2, 0, 1, 2]))
    assert again.counts.tolist() == [1, 2, 0, 1]
    assert again.partial.tolist() == [0.3, 0.1, 0.2, 0.3]
    assert len(EdgeColumns.joined([]).counts) == 0
