"""What one node does to another, and what fields of nodes of any kind say in their natural parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks
from graphfield.data.families import contrasts
from graphfield.data.missing import check_complete, handle_missing
from graphfield.exceptions import DataError, ParameterError, listing, suggestion
from graphfield.fields.base import GraphField
from graphfield.fields.blocks import BlockField
from graphfield.fields.questions import coefficients, match_rows, read_values, score_values
from graphfield.fields.schema import Rows
from graphfield.fields.walker import row_blocks


def find_node(field: GraphField, node: Any) -> int:
    """Its position, by name."""
    names = field.schema.node_names
    if node not in names:
        raise ParameterError(
            f"There is no node {node!r}.{suggestion(str(node), names)} Nodes are {listing(names)}."
        )
    return names.index(node)


def natural_coefficients(field: GraphField, Z: Any) -> Iterator[NDArray[np.float32]]:
    """Coefficients of nodes with one column each, (n, p, p), block of rows by block of rows.

    On the mean of a number, the log-odds of a binary node, the logarithm of a count; per unit of the other.
    """
    blocks = _single_columns(field)
    unit = np.diagonal(blocks.root)
    numbers = np.array([kind in ("gaussian", "ordinal") for kind in blocks.types.kinds])
    ratio = np.where(numbers, 1 / unit, unit)[:, None] * unit

    def compute(rows: Rows) -> NDArray[np.float32]:
        weights = field.of_kind(BlockField).columns.at(rows).weights
        return (weights * ratio).astype(np.float32)

    for _, found, which in row_blocks(*field.distinct(field.rows(Z)), field.n_nodes, compute):
        yield found[which]


def _single_columns(field: GraphField) -> Blocks:
    """The blocks of a field; raises where one is wider than a column."""
    blocks = field.of_kind(BlockField).blocks
    wide = [name for name, w in zip(blocks.types.names, blocks.widths, strict=True) if w > 1]
    if wide:
        raise DataError(
            f"Node {wide[0]!r} has more than two levels, so no single coefficient leads to or from it. Use "
            "predict_effect(Z, source, target), a table by level, or edge_weights(Z)."
        )
    return blocks


def effects(field: GraphField, Z: Any, source: Any, target: Any) -> pd.DataFrame:
    """What ``source`` does to ``target`` at each row of Z, one line per level of either."""
    k, j = find_node(field, source), find_node(field, target)
    if k == j:
        raise ParameterError(f"source and target must be two nodes, got {source!r} twice.")
    if not isinstance(field, BlockField):
        return _effect_table(coefficients(field, Z)[:, j, k][:, None, None], [""], [""])
    blocks, (distinct, index) = field.blocks, field.distinct(field.rows(Z))
    ahead, back = _to_natural(blocks, j), _from_values(blocks, k)
    here = field.columns.at(distinct)
    found = ahead @ here.weights[:, blocks.slices[j], blocks.slices[k]] @ back  # (m, of target, of source)
    return _effect_table(found[index], _labels(blocks, k), _labels(blocks, j))


def _to_natural(blocks: Blocks, j: int) -> NDArray[np.float64]:
    """From standard units of a node's natural parameters to those of its levels, its mean or its log-odds."""
    root = blocks.root[blocks.slices[j], blocks.slices[j]]
    one = blocks.types.types[j]
    if one.kind == "categorical":
        return contrasts(len(one.levels)) @ root
    return 1 / root if one.kind in ("gaussian", "ordinal") else root


def _from_values(blocks: Blocks, k: int) -> NDArray[np.float64]:
    """From a unit of a node, or its levels, to standard units of its columns."""
    root = blocks.root[blocks.slices[k], blocks.slices[k]]
    one = blocks.types.types[k]
    return root @ contrasts(len(one.levels)).T if one.kind == "categorical" else root


def _labels(blocks: Blocks, node: int) -> list[str]:
    one = blocks.types.types[node]
    return list(one.levels) if one.kind == "categorical" else [""]


def _effect_table(found: NDArray, of_source: list[str], of_target: list[str]) -> pd.DataFrame:
    """(n, of target, of source) as a long table."""
    n, (a, b) = len(found), (len(of_source), len(of_target))
    return pd.DataFrame(
        {
            "sample": np.repeat(np.arange(n), a * b),
            "source_level": np.tile(np.repeat(np.array(of_source, dtype=object), b), n),
            "target_level": np.tile(np.array(of_target, dtype=object), n * a),
            "effect": found.transpose(0, 2, 1).reshape(-1).astype(np.float64),
        }
    )


def probabilities(field: GraphField, X: Any, Z: Any, node: Any) -> pd.DataFrame:
    """Of the levels of a node given all others, one column per level."""
    j = find_node(field, node)
    kind = field.schema.node_kinds[j]
    if not isinstance(field, BlockField) or kind not in ("binary", "categorical"):
        raise ParameterError(
            f"Node {node!r} is {kind}, and probabilities are of levels, of binary and categorical nodes. Use "
            "predict(X, Z) for its mean, or say what it is with node_types."
        )
    x_frame, z_frame = match_rows(field, X, Z)
    check_complete(x_frame, z_frame)
    levels = field.blocks.types.types[j].levels
    found = np.empty((len(x_frame.values), len(levels)))
    for rows, eta in field.fit_parameters(read_values(field, x_frame), field.encode(z_frame)):
        found[rows] = field.blocks.probabilities(eta, j)
    return pd.DataFrame(found, columns=pd.Index(levels), index=x_frame.values.index)


def explained(field: GraphField, X: Any, Z: Any, missing: str) -> float:
    """Mean over nodes of the share of the deviance that the others explain: R^2 of numbers."""
    if not isinstance(field, BlockField):
        return score_values(field, X, Z, missing)
    x_frame, z_frame, _ = handle_missing(*match_rows(field, X, Z), missing)
    values, blocks = read_values(field, x_frame), field.blocks
    if len(values) < 2:
        raise DataError(f"Explained deviance needs at least 2 rows, got {len(values)}.")
    columns, left = blocks.columns(values), np.zeros(field.n_nodes)
    for rows, eta in field.fit_parameters(values, field.encode(z_frame)):
        left += blocks.losses(eta, columns[rows]).sum(axis=0)
    at_mean = np.tile(blocks.null_at(columns.mean(axis=0)), (len(columns), 1))
    whole = blocks.losses(at_mean, columns).sum(axis=0)
    # A node that never changes is explained in full or not at all, as in scikit-learn's r2_score.
    share = np.divide(left, whole, out=(left > 1e-9).astype(np.float64), where=whole > 1e-9)
    return float(np.mean(1 - share))
