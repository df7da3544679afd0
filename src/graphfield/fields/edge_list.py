"""Edges of many graphs as one long table, without a dense n x p x p array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import DataError
from graphfield.fields.streaming import cache_slices
from graphfield.graphs.strength import apply_rule, directed_strengths, partial_correlations

DEFAULT_MAX_ROWS = 100_000_000  # 1.6 GB


@dataclass(frozen=True)
class EdgeBlock:
    """The edges of one graph: node positions j < k and signed partial correlations."""

    source: NDArray[np.int16]
    target: NDArray[np.int16]
    partial: NDArray[np.float32]


def edge_blocks(coef: NDArray, residual_scale: NDArray, cut: float | NDArray, rule: str) -> list[EdgeBlock]:
    """The edges of each graph whose strengths pass ``cut`` under ``rule``."""
    blocks: list[EdgeBlock] = []
    for part in cache_slices(len(coef), coef.shape[1]):
        directed = directed_strengths(coef[part], residual_scale[part])
        blocks += _above_diagonal(apply_rule(directed, cut, rule), directed)
    return blocks


def _above_diagonal(graphs: NDArray[np.bool_], directed: NDArray) -> list[EdgeBlock]:
    """Edges of several graphs; partial correlations are computed where there is an edge only."""
    n_nodes = graphs.shape[1]
    graphs &= np.triu(np.ones((n_nodes, n_nodes), dtype=bool), 1)
    graph, pair = np.divmod(np.flatnonzero(graphs), n_nodes**2)
    j, k = np.divmod(pair, n_nodes)
    partial = directed[graph, j, k] + directed[graph, k, j]
    partial /= 2
    kind = np.int16 if n_nodes < 2**15 else np.int32
    columns = (j.astype(kind), k.astype(kind), partial.astype(np.float32, copy=False))
    ends = np.cumsum(np.bincount(graph, minlength=len(graphs)))[:-1]
    split = zip(*(np.split(column, ends) for column in columns), strict=True)
    return [EdgeBlock(*block) for block in split]


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
    blocks: Sequence[EdgeBlock], index: NDArray[np.intp], names: Sequence[str], max_rows: int
) -> pd.DataFrame:
    """One row per sample and edge; sample i has the edges of ``blocks[index[i]]``."""
    lengths = np.array([len(block.source) for block in blocks], dtype=np.int64)
    ends = np.cumsum(lengths[index]) if len(index) else np.zeros(0, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    if total > max_rows:
        raise DataError(
            f"The edge list would have {total:,} rows ({16 * total / 1e9:.1f} GB), more than "
            f"max_rows={max_rows:,}. Use iter_edges to go through it in blocks, a higher threshold, "
            "or Z without repeated rows."
        ).about(argument="max_rows")
    kind = blocks[0].source.dtype if blocks else np.dtype(np.int16)
    sample = np.repeat(np.arange(len(index), dtype=np.int32), lengths[index])
    source, target = np.empty(total, dtype=kind), np.empty(total, dtype=kind)
    partial = np.empty(total, dtype=np.float32)
    for end, which in zip(ends, index, strict=True):
        block = blocks[which]
        rows = slice(end - len(block.source), end)
        source[rows], target[rows], partial[rows] = block.source, block.target, block.partial
    categories = pd.Index(list(names))
    columns = {
        "sample": sample,
        "source": pd.Categorical.from_codes(source, categories),
        "target": pd.Categorical.from_codes(target, categories),
        "weight": np.abs(partial),
        "partial_correlation": partial,
    }
    return pd.DataFrame(columns, copy=False)
