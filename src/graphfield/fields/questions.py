"""What a field says at many rows, in the user's units: arrays and tables, and node values beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray

from graphfield.data.frames import Frame, check_same_length
from graphfield.data.marginals import LogNodes
from graphfield.data.missing import check_complete, handle_missing
from graphfield.data.nodes import rescale_coef
from graphfield.data.ranges import check_reach
from graphfield.exceptions import DataError, first_few
from graphfield.fields.base import Conditionals, GraphField
from graphfield.fields.edge_list import DEFAULT_MAX_ROWS, EdgeColumns, find_edges, long_frame
from graphfield.fields.schema import Rows
from graphfield.fields.streaming import cache_slices, mean_r2
from graphfield.fields.walker import row_blocks
from graphfield.graphs.strength import (
    apply_rule,
    directed_strengths,
    edge_shrinkage,
    partial_correlations,
    precision_from_partial,
)

Cut = float | NDArray[np.float64]


def coefficients(field: GraphField, Z: Any) -> NDArray[np.float32]:
    """(n, p, p), in the user's units."""
    return _at_each(
        field, Z, lambda here: (here.units,), lambda weights, unit: _restored(field, weights, unit)
    )


def coefficient_blocks(field: GraphField, Z: Any) -> Iterator[NDArray[np.float32]]:
    """:func:`coefficients` of consecutive rows, in bounded memory."""

    def compute(rows: Rows) -> NDArray[np.float32]:
        here = field.at(rows)
        weights = here.weights
        for part in cache_slices(len(weights), field.n_nodes):
            weights[part] = _restored(field, weights[part], here.units[part])
        return weights

    for _, found, which in row_blocks(*field.distinct(field.rows(Z)), field.n_nodes, compute):
        yield found[which]


def correlations(field: GraphField, Z: Any) -> NDArray[np.float32]:
    """Signed partial correlations, (n, p, p)."""
    return _at_each(field, Z, lambda here: (here.scales,), partial_correlations)


def magnitudes(field: GraphField, Z: Any) -> NDArray[np.float32]:
    """Sizes of partial correlations, (n, p, p)."""
    sizes = correlations(field, Z)
    return np.abs(sizes, out=sizes)


def graphs(field: GraphField, Z: Any, cut: Cut, rule: str) -> NDArray[np.bool_]:
    """(n, p, p)."""

    def graph(weights: NDArray, scale: NDArray) -> NDArray:
        return apply_rule(directed_strengths(weights, scale), cut, rule)

    return _at_each(field, Z, lambda here: (here.scales,), graph, np.bool_)


def precisions(field: GraphField, Z: Any) -> NDArray[np.float64]:
    """Precision matrices in the user's units, (n, p, p)."""
    _check_numbers(field)

    def precision(weights: NDArray, scale: NDArray, unit: NDArray, node_scale: NDArray) -> NDArray:
        found = precision_from_partial(partial_correlations(weights, scale), scale, node_scale)
        return found / (unit[:, :, None] * unit[:, None, :])

    return _at_each(field, Z, lambda here: (here.scales, here.units, here.node_scales), precision, np.float64)


def shrinkages(field: GraphField, Z: Any) -> NDArray[np.float64]:
    """By which factor the edges of each of the :func:`precisions` were multiplied, (n,)."""
    _check_numbers(field)

    def shrinkage(weights: NDArray, scale: NDArray, node_scale: NDArray) -> NDArray:
        return edge_shrinkage(partial_correlations(weights, scale), scale, node_scale)

    return _at_each(field, Z, lambda here: (here.scales, here.node_scales), shrinkage, np.float64, shape=())


def _check_numbers(field: GraphField) -> None:
    """Raise where some nodes are no plain numbers, of which there is no precision matrix."""
    pairs = zip(field.schema.node_names, field.schema.node_kinds, strict=True)
    other = [f"{name!r} ({kind})" for name, kind in pairs if kind != "gaussian"]
    if other:
        why = f"numbers, and {first_few(other, 4)} cannot have one"
    elif field.n_columns > field.n_nodes:
        why = "lines between numbers, and these enter by curves"
    else:
        return
    advice = "Ask for edge_weights or predict_effect instead"
    raise DataError("A precision matrix is one of {why}. {advice}.", why=why, advice=advice)


def residual_scales(field: GraphField, Z: Any) -> NDArray[np.float64]:
    """In the user's units, (n, p)."""
    distinct, index = field.distinct(field.rows(Z))
    here = field.at(distinct)
    return (here.scales * here.units)[index]


def edge_table(field: GraphField, Z: Any, cut: Cut, rule: str, max_rows: int) -> pd.DataFrame:
    """One line per row of Z and edge."""
    distinct, index = field.distinct(field.rows(Z))
    return long_frame(_edges_at(field, distinct, cut, rule), index, field.schema.node_names, max_rows)


def edge_table_blocks(field: GraphField, Z: Any, cut: Cut, rule: str) -> Iterator[pd.DataFrame]:
    """:func:`edge_table` of consecutive rows, in bounded memory."""
    found = partial(_edges_at, field, cut=cut, rule=rule)
    for rows, edges, which in row_blocks(*field.distinct(field.rows(Z)), field.n_nodes, found):
        frame = long_frame(edges, which, field.schema.node_names, DEFAULT_MAX_ROWS)
        frame["sample"] = frame["sample"].to_numpy() + np.int32(rows.start)
        yield frame


def _edges_at(field: GraphField, rows: Rows, cut: Cut, rule: str) -> EdgeColumns:
    return EdgeColumns.joined(
        [find_edges(here.weights, here.scales, cut, rule) for here in field.chunks(rows)]
    )


def _at_each(
    field: GraphField,
    Z: Any,
    needed: Callable[[Conditionals], tuple[NDArray, ...]],
    function: Callable[..., NDArray],
    dtype: DTypeLike = np.float32,
    shape: tuple[int, ...] | None = None,
) -> NDArray:
    """``function`` of weights and of what else is ``needed`` at every row; equal rows are done once."""
    rows, p = field.rows(Z), field.n_nodes
    result = np.empty((len(rows), *((p, p) if shape is None else shape)), dtype=dtype)
    for group in field.walk(rows):
        here = field.at(group.distinct)
        group.fill(result, function, here.weights, *needed(here))
    return result


def _restored(field: GraphField, weights: NDArray[np.float32], unit: NDArray) -> NDArray[np.float32]:
    restored = rescale_coef(weights, unit)
    if not np.isfinite(restored).all():
        _, j, k = np.argwhere(~np.isfinite(restored))[0]
        names = field.schema.node_names
        raise DataError(
            f"The coefficient of node {names[k]!r} for node {names[j]!r} is too "
            "large for float32: their units differ too much. Use other units for one of them, or ask for "
            "partial_correlations, which need none."
        ).about(column=names[k])
    return restored


def match_rows(field: GraphField, X: Any, Z: Any) -> tuple[Frame, Frame]:
    """Both tables with the columns of ``fit``, row by row."""
    x_frame, z_frame = field.schema.match_nodes(X), field.schema.match_covariates(Z)
    check_same_length(x_frame, z_frame)
    return x_frame, z_frame


def read_values(field: GraphField, frame: Frame) -> NDArray[np.floating]:
    """Node values of new rows; those that are nowhere near the training rows are refused."""
    values, scaler = field.schema.node_values(frame), field.common.scaler
    check_reach(values, frame.names, scaler.center, scaler.scale, "X")
    scores = field.schema.scores
    if isinstance(scores, LogNodes):
        scores.check(values, frame.names)
    return values


def predict_values(field: GraphField, X: Any, Z: Any) -> NDArray[np.float64]:
    """Each node from all the others, (n, p)."""
    x_frame, z_frame = match_rows(field, X, Z)
    check_complete(x_frame, z_frame)
    fitted = np.empty(x_frame.values.shape)
    for rows, part in field.fit_values(read_values(field, x_frame), field.encode(z_frame)):
        fitted[rows] = part
    return fitted


def score_values(field: GraphField, X: Any, Z: Any, missing: str) -> float:
    """Mean over nodes of R^2."""
    x_frame, z_frame, _ = handle_missing(*match_rows(field, X, Z), missing)
    values = read_values(field, x_frame)
    if len(values) < 2:
        raise DataError(f"R^2 needs at least 2 rows, got {len(values)}.").about(argument="X")
    return mean_r2(values, field.fit_values(values, field.encode(z_frame)))
