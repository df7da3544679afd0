"""Edges of many graphs as one long table, without a dense n x p x p array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import DataError
from graphfield.graphs.strength import apply_rule, directed_strengths, symmetrise

DEFAULT_MAX_ROWS = 100_000_000  # 1.6 GB


@dataclass(frozen=True)
class EdgeBlock:
    """The edges of one graph: node positions j < k and signed partial correlations."""

    source: NDArray[np.int16]
    target: NDArray[np.int16]
    partial: NDArray[np.float32]


def edge_block(graph: NDArray[np.bool_], partial: NDArray) -> EdgeBlock:
    j, k = np.nonzero(np.triu(graph, 1))
    kind = np.int16 if len(graph) < 2**15 else np.int32
    return EdgeBlock(j.astype(kind), k.astype(kind), partial[j, k].astype(np.float32))


def edge_blocks(coef: NDArray, residual_scale: NDArray, cut: float, rule: str) -> list[EdgeBlock]:
    """The edges of each graph whose strengths pass ``cut`` under ``rule``."""
    directed = directed_strengths(coef, residual_scale)
    graphs = apply_rule(directed, cut, rule)
    return [edge_block(g, r) for g, r in zip(graphs, symmetrise(directed), strict=True)]


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
        )
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
