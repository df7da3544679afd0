"""What one node does to another, and what fields of nodes of any kind say in their natural parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks
from graphfield.data.families import contrasts, ordered_shares
from graphfield.data.missing import check_complete, handle_missing
from graphfield.data.node_types import NodeTypes
from graphfield.exceptions import DataError, ParameterError, listing, suggestion
from graphfield.fields.base import GraphField
from graphfield.fields.questions import coefficients, match_rows, read_values, score_values
from graphfield.fields.schema import Rows
from graphfield.fields.walker import row_blocks


def find_node(field: GraphField, node: Any) -> int:
    """Its position, by name."""
    names = field.schema.node_names
    if node not in names:
        raise ParameterError(
            f"There is no node {node!r}.{suggestion(str(node), names)} Nodes are {listing(names)}."
        ).about(argument="node")
    return names.index(node)


def natural_coefficients(field: GraphField, Z: Any) -> Iterator[NDArray[np.float32]]:
    """Coefficients of nodes with one column each, (n, p, p), block of rows by block of rows.

    On the mean of a number, the log-odds of a binary node, the logarithm of a count; per unit of the other.
    """
    _check_single_columns(field)

    def compute(rows: Rows) -> NDArray[np.float32]:
        return field.links_at(rows)[0].astype(np.float32)

    for _, found, which in row_blocks(*field.distinct(field.rows(Z)), field.n_nodes, compute):
        yield found[which]


def _check_single_columns(field: GraphField) -> None:
    """Raise where a node owns more than one column."""
    names, widths = field.schema.node_names, np.diff(np.append(field.column_starts, field.n_columns))
    wide = np.flatnonzero(widths > 1)
    if len(wide):
        types, node = field.schema.types, int(wide[0])
        levels = types is not None and types.types[node].levels
        raise DataError(
            f"Node {names[node]!r} {'has more than two levels' if levels else 'enters by a curve'}, so no "
            "single coefficient leads to or from it. Use predict_effect(Z, source, target), a table by level "
            "or value, or edge_weights(Z)."
        ).about(column=names[node])


def effects(field: GraphField, Z: Any, source: Any, target: Any) -> pd.DataFrame:
    """What ``source`` does to ``target`` at each row of Z, one line per level of either."""
    k, j = find_node(field, source), find_node(field, target)
    if k == j:
        raise ParameterError(f"source and target must be two nodes, got {source!r} twice.").about(
            argument="target"
        )
    types = field.schema.types
    if types is None:
        found = coefficients(field, Z)[:, j, k][:, None, None]
        return _effect_table(found, np.full((len(found), 1), "", dtype=object), [""])
    ahead, of_target = _levels(types, j)
    rows = slice(types.starts[j], types.starts[j] + types.widths[j])
    distinct, index = field.distinct(field.rows(Z))
    of_rows = _curve if field.is_curve(k) else _per_level
    parts = [of_rows(field, here.at, rows, k) for here in field.chunks(distinct)]
    found, of_source = (np.concatenate(own) for own in zip(*parts, strict=True))
    return _effect_table((ahead @ found)[index], of_source[index], of_target)  # (n, of target, of source)


def _per_level(field: GraphField, rows: Rows, links: slice, source: int) -> tuple[NDArray, NDArray]:
    """What a source does to some links at these rows, and of which of its levels that is told."""
    types, start = field.schema.types, field.column_starts[source]
    assert types is not None
    back, names = _levels(types, source)
    weights = field.links_at(rows)[0][:, links, start : start + types.widths[source]]
    return weights @ back.T, np.broadcast_to(np.array(names, dtype=object), (len(rows), len(names)))


def _curve(field: GraphField, rows: Rows, links: slice, source: int) -> tuple[NDArray, NDArray]:
    """The same of a number that enters by a curve, at some of its values."""
    values = field.curve_values_at(rows, source)
    names = np.array([[f"{value:.6g}" for value in own] for own in values], dtype=object)
    return field.curves_at(rows, source, values)[:, links], names


def _levels(types: NodeTypes, node: int) -> tuple[NDArray[np.float64], list[str]]:
    """Of which mixtures of the columns of a node an effect is told, and what they are called."""
    one = types.types[node]
    if one.kind == "categorical":
        return contrasts(len(one.levels)), list(one.levels)
    return np.eye(1), [""]


def _effect_table(found: NDArray, of_source: NDArray[np.object_], of_target: list[str]) -> pd.DataFrame:
    """(n, of target, of source) as a long table; what the levels of a source are called at each row, too."""
    n, b, a = found.shape
    return pd.DataFrame(
        {
            "sample": np.repeat(np.arange(n), a * b),
            "source_level": np.repeat(of_source.reshape(-1), b),
            "target_level": np.tile(np.array(of_target, dtype=object), n * a),
            "effect": found.transpose(0, 2, 1).reshape(-1).astype(np.float64),
        }
    )


def probabilities(field: GraphField, X: Any, Z: Any, node: Any) -> pd.DataFrame:
    """Of the levels of a node given all others, one column per level."""
    j, types = find_node(field, node), field.schema.types
    kind = field.schema.node_kinds[j]
    if types is None or not types.types[j].levels:
        raise ParameterError(
            f"Node {node!r} is {kind}, and probabilities are of levels, of binary, categorical and ordinal "
            "nodes. Use predict(X, Z) for its mean, or say what it is with node_types."
        ).about(argument="node", column=node)
    x_frame, z_frame = match_rows(field, X, Z)
    check_complete(x_frame, z_frame)
    levels, blocks = types.types[j].levels, Blocks.of_links(types)
    found = np.empty((len(x_frame.values), len(levels)))
    at = field.encode(z_frame)
    scale = (field.scales_at(at) * field.units_at(at))[:, j]
    for rows, links in field.fit_links(read_values(field, x_frame), at):
        if kind == "ordinal":
            shares, mean = np.array(types.types[j].shares), links[:, types.starts[j]]
            found[rows] = ordered_shares(shares, mean, scale[rows])
        else:
            found[rows] = blocks.probabilities(links, j)
    return pd.DataFrame(found, columns=pd.Index(levels), index=x_frame.values.index)


def explained(field: GraphField, X: Any, Z: Any, missing: str) -> float:
    """Mean over nodes of the share of the deviance that the others explain: R^2 of numbers."""
    if field.schema.types is None:
        return score_values(field, X, Z, missing)
    x_frame, z_frame, _ = handle_missing(*match_rows(field, X, Z), missing)
    values, blocks = read_values(field, x_frame), Blocks.of_links(field.schema.types)
    if len(values) < 2:
        raise DataError(f"Explained deviance needs at least 2 rows, got {len(values)}.").about(argument="X")
    columns, left = blocks.columns(values), np.zeros(field.n_nodes)
    for rows, links in field.fit_links(values, field.encode(z_frame)):
        left += blocks.losses(links, columns[rows]).sum(axis=0)
    at_mean = np.tile(blocks.null_at(columns.mean(axis=0)), (len(columns), 1))
    whole = blocks.losses(at_mean, columns).sum(axis=0)
    # A node that never changes is explained in full or not at all, as in scikit-learn's r2_score.
    least = 1e-9 * np.square(field.common.scaler.scale)
    share = np.divide(left, whole, out=(left > least).astype(np.float64), where=whole > least)
    return float(np.mean(1 - share))
