"""Many graphs at once: how edges vary, how connected the graphs are, in which order nodes stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from graphfield.fields import GraphField
from graphfield.fields import questions as ask
from graphfield.graphs.connectivity import density, pair_means, transitivity, within_between
from graphfield.graphs.threshold import chosen_cut

_BLOCK = 50
DENSITY = "Density: share of all pairs that have an edge"
SIZE = "Average |partial correlation| of all pairs"  # the one measure that is no share
STILL = 1e-4  # a standard deviation below which nothing varies
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


def survey(field: GraphField, Z: pd.DataFrame, groups: Sequence[str] | None) -> Survey:
    """Go through the graphs at the rows of Z once."""
    j, k = np.triu_indices(field.n_nodes, 1)
    cut = chosen_cut("auto", field.threshold)
    partial = np.empty((len(Z), len(j)), dtype=np.float32)
    present = np.empty((len(Z), len(j)), dtype=bool)
    measured = []
    for start in range(0, len(Z), _BLOCK):
        rows = slice(start, start + _BLOCK)
        matrices = ask.correlations(field, Z.iloc[rows])
        graphs = ask.graphs(field, Z.iloc[rows], cut, "and")
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
        SIZE: pair_means(np.abs(partial)),
        "Share of edges that are negative": negative / np.where(edges > 0, edges, 1.0),
        "Clustering: share of connected triples that are triangles": transitivity(graphs),
    }
    if groups is not None:
        for name, shares in zip(("within", "between"), within_between(graphs, groups), strict=True):
            if not np.isnan(shares).any():
                found[f"Density {name} groups"] = shares
    return found


def effects(
    field: GraphField, typical: dict[str, Any], covariates: Sequence[dict[str, Any]]
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
        partial = ask.correlations(field, Z)
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


def _square(pairs: NDArray) -> NDArray[np.float64]:
    """Values of pairs j < k as a symmetric matrix."""
    p = round((1 + float(np.sqrt(1 + 8 * len(pairs)))) / 2)
    matrix = np.zeros((p, p))
    matrix[np.triu_indices(p, 1)] = pairs
    return matrix + matrix.T
