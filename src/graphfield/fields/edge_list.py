"""Edges of many graphs as one long table, without a dense n x p x p array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import DataError
from graphfield.fields.streaming import cache_slices
from graphfield.graphs.strength import are_edges, pair_strengths, partial_correlations

DEFAULT_MAX_ROWS = 100_000_000  # 1.6 GB


@dataclass(frozen=True)
class EdgeColumns:
    """The edges of several graphs, one graph after the other.

    ``counts`` (m,) says how many each has; of each edge there are its nodes j < k by position, and its signed
    partial correlation.
    """

    counts: NDArray
    source: NDArray
    target: NDArray
    partial: NDArray

    @classmethod
    def joined(cls, parts: Sequence[EdgeColumns]) -> EdgeColumns:
        """Those of the graphs of all parts, which may be none."""
        kinds = (np.intp, np.int16, np.int16, np.float32)
        none = cls(*(np.empty(0, dtype=kind) for kind in kinds))
        columns = zip(*(vars(part).values() for part in (none, *parts)), strict=True)
        return cls(*map(np.concatenate, columns))

    def of(self, index: NDArray[np.intp] | slice) -> EdgeColumns:
        """Those of these graphs, in this order; a graph may be there twice."""
        if isinstance(index, slice):
            assert index == slice(None)
            return self
        counts = self.counts[index]
        starts, own = (np.cumsum(n) - n for n in (self.counts, counts))
        where = np.repeat(starts[index] - own, counts)
        where += np.arange(len(where))
        return EdgeColumns(counts, self.source[where], self.target[where], self.partial[where])


def find_edges(coef: NDArray, residual_scale: NDArray, cut: float | NDArray, rule: str) -> EdgeColumns:
    """The edges of each graph whose strengths pass ``cut`` under ``rule``; no other pair is looked at."""
    n_nodes = coef.shape[1]
    kind = np.int16 if n_nodes < 2**15 else np.int32
    cuts = np.broadcast_to(cut, (n_nodes, n_nodes))
    j, k = np.nonzero(np.triu(np.ones((n_nodes, n_nodes), dtype=bool), 1) & ~(cuts == np.inf))
    source, target, own_cuts = j.astype(kind), k.astype(kind), cuts[j, k]
    parts = []
    for part in cache_slices(len(coef), n_nodes):
        ahead, back = pair_strengths(coef[part], residual_scale[part], j, k)
        found = are_edges(ahead, back, own_cuts, rule)
        graph, pair = np.nonzero(found)
        partial = (ahead[graph, pair] + back[graph, pair]) / 2
        counts = np.bincount(graph, minlength=len(found))
        partial = partial.astype(np.float32, copy=False)
        parts.append(EdgeColumns(counts, source[pair], target[pair], partial))
    return EdgeColumns.joined(parts)


def pair_correlations(coef: NDArray, residual_scale: NDArray) -> NDArray[np.float32]:
    """The partial correlation of every pair j < k: (m, p (p - 1) / 2)."""
    n_graphs, p = coef.shape[:2]
    upper = np.flatnonzero(np.triu(np.ones((p, p), dtype=bool), 1))
    correlations = np.empty((n_graphs, len(upper)), dtype=np.float32)
    for part in cache_slices(n_graphs, p):
        found = partial_correlations(coef[part], residual_scale[part])
        correlations[part] = found.reshape(-1, p * p)[:, upper]
    return correlations


def long_frame(
    edges: EdgeColumns, index: NDArray[np.intp] | slice, names: Sequence[str], max_rows: int
) -> pd.DataFrame:
    """One row per sample and edge; sample i has the edges of graph ``index[i]``."""
    total = int(edges.counts[index].sum())
    if total > max_rows:
        raise DataError(
            f"The edge list would have {total:,} rows ({16 * total / 1e9:.1f} GB), more than "
            f"max_rows={max_rows:,}. Use iter_edges to go through it in blocks, a higher threshold, "
            "or Z without repeated rows."
        ).about(argument="max_rows")
    own, categories = edges.of(index), pd.Index(list(names))
    columns = {
        "sample": np.repeat(np.arange(len(own.counts), dtype=np.int32), own.counts),
        "source": pd.Categorical.from_codes(own.source, categories),
        "target": pd.Categorical.from_codes(own.target, categories),
        "weight": np.abs(own.partial),
        "partial_correlation": own.partial,
    }
    return pd.DataFrame(columns, copy=False)
