"""Fields as values of JSON and arrays, and back: one registry, by kind."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariates import CovariateEncoder, Numeric, n_features
from graphfield.data.frames import Frame
from graphfield.data.moving_scales import MovingScales
from graphfield.data.nodes import NodeScaler, read_scale
from graphfield.data.ranges import MAX_MAGNITUDE
from graphfield.data.saved_arrays import AtMost, SavedArrays
from graphfield.data.saved_values import Saved, optional
from graphfield.exceptions import ExtrapolationWarning, listing
from graphfield.fields.base import Common, GraphField, State
from graphfield.fields.schema import Schema
from graphfield.graphs.strength import precision_from_partial
from graphfield.graphs.threshold import Gap, Threshold

# Of a cut: twice the noise of a correlation, of two rows.
_MAX_CUT = 2.0
# Entries of the graphs of a field from a file that are looked at; of at least so many rows.
_ENTRIES, _LEAST_ROWS = 4_000_000, 8
# Of a conditional mean: errors of predictions are squared.
_MAX_MEAN = 1e3 * MAX_MAGNITUDE
# Kinds that may be named in a file, and nothing else. Those that need torch lie beside their training.
_KINDS = {
    "static": ("graphfield.fields.linear", "StaticField"),
    "linear": ("graphfield.fields.linear", "LinearField"),
    "encoded": ("graphfield.fields.encoded", "EncodedField"),
    "posterior": ("graphfield.fields.posterior", "PosteriorField"),
    "blocks": ("graphfield.fields.blocks", "BlockField"),
    "average": ("graphfield.fields.average", "AverageField"),
    "tree": ("graphfield.fields.partition", "TreeField"),
    "grid": ("graphfield.fields.grid", "GridField"),
    "clusters": ("graphfield.fields.partition", "ClusterField"),
    "neural": ("graphfield.estimators.neural_field", "NeuralField"),
    "score": ("graphfield.estimators.score_field", "ScoreField"),
    "archetypes": ("graphfield.estimators.neural_field", "ArchetypeField"),
}


def unpack_field(header: Saved, arrays: SavedArrays) -> GraphField:
    """The field that :meth:`GraphField.state` took apart, with everything in it checked against the rest."""
    module, name = _KINDS[header["kind"].choice(_KINDS)]
    kind: type[GraphField] = getattr(import_module(module), name)
    common = _unpack_common(header, arrays.below("node/"))
    with np.errstate(all="ignore"):  # what overflows is found by whoever asks
        return kind.from_state(common, header["own"], arrays)


def _unpack_common(header: Saved, node: SavedArrays) -> Common:
    schema = Schema.from_state(header["schema"], node)
    p, m = schema.n_nodes, n_features(schema.encoder)
    threshold = header.known("threshold")
    return Common(
        schema,
        NodeScaler.from_arrays(node, p),
        read_scale(node, "residual_scale", p),
        _moving(node.below("scales/"), m, p),
        _moving(node.below("residual_scales/"), m, p),
        header["standardized"].flag(),
        None if threshold is None else _threshold(threshold, node, p),
    )


def _moving(arrays: SavedArrays, n_features: int, n_nodes: int) -> MovingScales | None:
    """None where they do not move."""
    return MovingScales.from_arrays(arrays, n_features, n_nodes) if "weights" in arrays else None


def pack_parts(fields: Sequence[GraphField]) -> tuple[list[dict[str, Any]], dict[str, NDArray]]:
    """Fields that another is made of."""
    return join_states([field.state() for field in fields], "part")


def join_states(states: Sequence[State], name: str) -> tuple[list[dict[str, Any]], dict[str, NDArray]]:
    """States of several things: a list of the values, and all arrays, below ``name`` and a number."""
    named = ((f"{name}/{which}/{key}", a) for which, (_, own) in enumerate(states) for key, a in own.items())
    return [values for values, _ in states], dict(named)


def unpack_parts(
    headers: Saved, arrays: SavedArrays, whole: Schema, covariates: list[str], *, some: bool = False
) -> list[GraphField]:
    """Inverse of :func:`pack_parts`, for parts that have the nodes of the whole and these covariates.

    Or ``some`` of these.
    """
    fields = []
    for which, header in enumerate(headers.listed(least=1)):
        field = unpack_field(header, arrays.below(f"part/{which}/"))
        schema = header["schema"]
        if field.schema.node_names != whole.node_names:
            schema["node_names"].refuse("those of the whole model", listing(field.schema.node_names, most=4))
        if field.schema.types != whole.types:
            schema["node_types"].refuse("those of the whole model", listing(field.schema.node_kinds, most=4))
        own = field.schema.encoder.names
        if own != ([name for name in covariates if name in own] if some else covariates):
            expected = listing(covariates, most=4) or "none"
            schema["encoder"]["names"].refuse(expected, listing(field.schema.encoder.names, most=4))
        fields.append(field)
    return fields


def _threshold(found: Saved, node: SavedArrays, p: int) -> Threshold:
    clear = np.zeros((p, p), dtype=bool)
    clear.flat[node.read("clear", (AtMost(p**2),), np.int64, low=0, high=p**2 - 1)] = True
    if (clear != clear.T).any() or clear.diagonal().any():
        node.refuse("clear", "pairs of two nodes, each in both orders", "others")
    n_edges = optional(found.known("n_edges"), lambda value: value.whole(high=p**2), None)
    value = found["value"].number(0, _MAX_CUT)
    return Threshold(value, clear, n_edges, found["reason"].text(), _gap(found["gap"]))


def _gap(found: Saved) -> Gap:
    return Gap(
        found["value"].number(0, _MAX_CUT),
        found["largest"].number(0),
        found["is_gap"].flag(),
        found["reason"].text(),
    )


def has_finite_answers(field: GraphField) -> bool:
    """Weights, residual scales, means and precision at the ends of every range and at every level.

    Numbers may be finite in a file and yet too large to be computed with.
    """
    most = max(_LEAST_ROWS, _ENTRIES // field.n_nodes**2)
    encoder = field.schema.encoder
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore", category=ExtrapolationWarning):
        rows = field.encode(Frame(_rows(encoder, most), named=encoder.named))
        here = field.at(field.distinct(rows)[0])
        partial, scale, unit = here.partial_correlations, here.scales, here.units
        finite = np.isfinite(here.weights).all() and np.isfinite(partial).all()
        if not (finite and (np.abs(here.offsets) < _MAX_MEAN).all()):
            return False
        if not ((scale > 0) & np.isfinite(scale) & (unit > 0) & np.isfinite(unit)).all():
            return False
        return bool(np.isfinite(precision_from_partial(partial, scale)).all())  # its eigenvalues need numbers


def _rows(encoder: CovariateEncoder, most: int) -> pd.DataFrame:
    """A row with ordinary values, and rows that differ from it in one covariate."""
    plain: dict[str, Any] = dict.fromkeys(encoder.names, 0.0)
    values: dict[str, list[Any]] = {}
    for column in encoder.columns:
        if isinstance(column, Numeric):
            middle = min(max(column.mean, column.low), column.high)
            plain[column.name], values[column.name] = middle, [column.low, column.high]
        else:
            plain[column.name], *values[column.name] = column.levels
    rows = [plain, *({**plain, name: value} for name, own in values.items() for value in own)]
    return pd.DataFrame(rows[:most], columns=pd.Index(encoder.names))
