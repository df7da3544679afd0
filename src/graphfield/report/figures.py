"""Many graphs at once: how edges vary, how connected the graphs are, where nodes are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from graphfield.estimators.base import GraphEstimator
from graphfield.graphs.connectivity import density, pair_means, transitivity, within_between

_BLOCK = 50
DENSITY = "Density: share of all pairs that have an edge"
_OFTEN, _BOND = 0.2, 0.1  # share of rows that makes an edge count, and the bond of a node to all others
_PUSHES = 60  # rounds of moving nodes apart
_STEPS = 9  # values along a covariate by which its effect is judged


@dataclass(frozen=True)
class Survey:
    """Partial correlations over rows: (pairs,) each; measures of whole graphs: (rows,) each."""

    mean: NDArray
    spread: NDArray
    least: NDArray
    most: NDArray
    present: NDArray  # share of the rows that have the edge
    measures: dict[str, NDArray]
    limit: float  # where a colour scale should end


def survey(model: GraphEstimator, Z: pd.DataFrame, groups: Sequence[str] | None) -> Survey:
    """Go through the graphs at the rows of Z once."""
    p = len(model.node_names_)
    j, k = np.triu_indices(p, 1)
    partial = np.empty((len(Z), len(j)), dtype=np.float32)
    present = np.empty((len(Z), len(j)), dtype=bool)
    measured = []
    for start in range(0, len(Z), _BLOCK):
        rows = slice(start, start + _BLOCK)
        matrices = model.partial_correlations(Z.iloc[rows])
        graphs = model.predict_graph(Z.iloc[rows], threshold="auto")
        partial[rows], present[rows] = matrices[:, j, k], graphs[:, j, k]
        measured.append(_measures(matrices, graphs, groups))
    measures = {name: np.concatenate([block[name] for block in measured]) for name in measured[0]}
    sizes = np.abs(partial)
    largest = np.quantile(sizes.max(axis=0), 0.995) if sizes.size else 1.0
    return Survey(
        partial.mean(axis=0, dtype=np.float64),
        partial.std(axis=0, dtype=np.float64),
        partial.min(axis=0),
        partial.max(axis=0),
        present.mean(axis=0),
        measures,
        float(np.clip(np.ceil(largest * 10) / 10, 0.1, 1.0)),
    )


def _measures(
    partial: NDArray, graphs: NDArray[np.bool_], groups: Sequence[str] | None
) -> dict[str, NDArray[np.float64]]:
    """What the page shows of each graph, by the title that it has there."""
    edges = density(graphs)
    negative = density(graphs & (partial < 0))
    found = {
        DENSITY: edges,
        "Average |partial correlation| of all pairs": pair_means(np.abs(partial)),
        "Share of edges that are negative": negative / np.where(edges > 0, edges, 1.0),
        "Clustering: share of connected triples that are triangles": transitivity(graphs),
    }
    if groups is not None:
        for name, shares in zip(("within", "between"), within_between(graphs, groups), strict=True):
            if not np.isnan(shares).any():
                found[f"Density {name} groups"] = shares
    return found


def effects(
    model: GraphEstimator, typical: dict[str, Any], covariates: Sequence[dict[str, Any]]
) -> dict[str, float]:
    """How far each covariate alone moves the edges, others typical (root mean square), most first."""
    found = {}
    for covariate in covariates:
        values: list[Any] = (
            np.linspace(covariate["low"], covariate["high"], _STEPS).tolist()
            if covariate["kind"] == "number"
            else covariate["levels"]
        )
        Z = pd.DataFrame([{**typical, covariate["name"]: value} for value in values])
        partial = model.partial_correlations(Z)
        found[covariate["name"]] = float(np.sqrt(pair_means(partial.var(axis=0, dtype=np.float64))))
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def node_order(mean: NDArray, groups: Sequence[str] | None) -> list[int]:
    """An order that puts nodes of one group, or else nodes with similar edges, beside each other."""
    if groups is not None:
        return sorted(range(len(groups)), key=lambda node: (groups[node], node))
    size = _square(np.abs(mean))
    p = len(size)
    if p < 3:
        return list(range(p))
    distance = 1 - size / max(float(size.max()), 1e-12)
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=p <= 150)
    return [int(node) for node in leaves_list(tree)]


def node_layout(survey: Survey, p: int, groups: Sequence[str] | None, order: Sequence[int]) -> NDArray:
    """Places in [0, 1] x [0, 1], (p, 2): a circle by groups, or springs on the average graph."""
    if groups is not None or p < 3:
        return _circle(order, groups)
    # A weak bond between all keeps parts without an edge between them in one picture.
    often = survey.present >= min(_OFTEN, survey.present.max(initial=0.0))
    graph = nx.from_numpy_array(_square(np.abs(survey.mean) * often + _BOND / p))
    start = {node: tuple(place) for node, place in enumerate(_circle(order, None) * 2 - 1)}
    places = nx.spring_layout(graph, pos=start, k=2 / np.sqrt(p), iterations=150, weight="weight", seed=0)
    return _apart(np.array([places[node] for node in range(p)]))


def _apart(xy: NDArray) -> NDArray:
    """Shared out over the unit square: a far node must not press the others together, none hides another."""
    p = len(xy)
    ranks = xy.argsort(axis=0).argsort(axis=0) / (p - 1)
    spans = np.ptp(xy, axis=0)
    xy = (ranks + (xy - xy.min(axis=0)) / np.where(spans > 0, spans, 1)) / 2
    least = 0.75 / np.sqrt(p) if p <= 60 else 0.55 / np.sqrt(p)
    for _ in range(_PUSHES):
        gap = xy[:, None, :] - xy[None, :, :]
        distance = np.sqrt((gap**2).sum(axis=2)) + np.eye(p)
        push = np.clip(least - distance, 0, None) / np.maximum(distance, 1e-9) / 2
        xy = np.clip(xy + (gap * push[:, :, None]).sum(axis=1), 0, 1)
    return xy


def _circle(order: Sequence[int], groups: Sequence[str] | None) -> NDArray:
    """Nodes in this order around a circle, with a gap between groups."""
    steps = np.ones(len(order))
    if groups is not None:
        for place, node in enumerate(order):
            steps[place] += 1.0 if groups[node] != groups[order[place - 1]] else 0.0
    angle = 2 * np.pi * np.cumsum(steps) / steps.sum()
    places = np.empty((len(order), 2))
    places[list(order)] = np.column_stack([0.5 + 0.5 * np.sin(angle), 0.5 - 0.5 * np.cos(angle)])
    return places


def _square(pairs: NDArray) -> NDArray[np.float64]:
    """Values of pairs j < k as a symmetric matrix."""
    p = round((1 + float(np.sqrt(1 + 8 * len(pairs)))) / 2)
    matrix = np.zeros((p, p))
    matrix[np.triu_indices(p, 1)] = pairs
    return matrix + matrix.T
