"""Deviances of rows that took no part in a fit, by a model and by one graph: nodes of several kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from graphfield.data.blocks import Blocks
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.held_out import HeldOut
from graphfield.estimators.inputs import Inputs
from graphfield.estimators.registry import kind_parameters
from graphfield.exceptions import DataError, listing
from graphfield.fields import GraphField
from graphfield.fields.blocks import BlockField


def kind_table(inputs: Inputs, rows: NDArray[np.intp]) -> pd.DataFrame:
    """Some rows of X with levels by their names, as a fit reads them that is told their kinds."""
    types = inputs.types
    assert types is not None
    table: dict[str, Any] = {}
    for name, one, values in zip(types.names, types.types, inputs.X[rows].T, strict=True):
        table[name] = values
        if one.levels:
            codes, ordered = values.astype(np.intp), one.kind == "ordinal"
            table[name] = pd.Categorical.from_codes(codes, pd.Index(one.levels), ordered=ordered)
    return pd.DataFrame(table)


def with_known_types(model: GraphEstimator, inputs: Inputs) -> GraphEstimator:
    """An unfitted copy that knows what each node is."""
    types = inputs.types
    assert types is not None
    copied: GraphEstimator = clone(model)
    if not (parameters := kind_parameters(copied)):
        raise DataError(
            f"{type(model).__name__} takes numbers alone as nodes, and {listing(types.others, most=4)} are "
            "none. Give a model that has node_types, such as RegGMM()."
        ).about(argument="model")
    kinds = dict(zip(types.names, types.kinds, strict=True))
    return copied.set_params(**dict.fromkeys(parameters, kinds))


def known_rows(field: GraphField, inputs: Inputs, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Those of the rows that have no level which the field has never seen."""
    types = field.schema.types
    assert types is not None
    table, known = kind_table(inputs, rows), np.full(len(rows), True)
    for name, one in zip(types.names, types.types, strict=True):
        if one.levels:
            known &= table[name].isin(one.levels).to_numpy()
    return rows[known]


def known_part(field: GraphField, inputs: Inputs, rows: NDArray[np.intp]) -> HeldOut:
    """Rows of the table as ``field`` codes them."""
    values = field.schema.node_values(field.schema.match_nodes(kind_table(inputs, rows)))
    return HeldOut(values, inputs.Z.take(rows), np.arange(len(rows)))


def null_deviances(field: BlockField, rows: HeldOut) -> NDArray[np.float64]:
    """By how frequent levels are and how large numbers on average, and nothing else, (n, p)."""
    at_mean = field.blocks.to_links(np.tile(field.blocks.null, (len(rows.values), 1)))
    return Blocks.of_links(field.blocks.types).deviance_residuals(at_mean, rows.values)
