"""What estimators do where some nodes are no plain numbers: columns in, a field of blocks out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks
from graphfield.data.covariates import features
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import ParameterError, listing
from graphfield.fields.base import GraphField
from graphfield.fields.blocks import BlockField, block_field, column_common
from graphfield.fields.linear import LinearField, StaticField
from graphfield.fields.schema import Schema
from graphfield.messages import Argument
from graphfield.solvers.interaction import linear_mean
from graphfield.solvers.working import FamilyRows, split_coefficients


def family_rows(
    data: TrainingSet, schema: Schema, ridge: float, *, moving_edges: bool, moving_means: bool
) -> FamilyRows:
    """Columns of the rows of a fit, after them those of the user's own held-out rows, and features of z."""
    types = data.inputs.types
    assert types is not None
    blocks, n = Blocks.learn(types, np.asarray(data.X, dtype=np.float64)), len(data.X)
    columns = blocks.columns(data.all_nodes)
    W, ones = features(schema.encoder, data.encode(schema.encoder)), np.ones((len(columns), 1))
    center = np.zeros_like(columns)
    if moving_means:
        center = W @ linear_mean(columns[:n], W[:n], ridge)
    return FamilyRows(blocks, columns, center, W if moving_edges else ones, W if moving_means else ones)


def family_field(schema: Schema, rows: FamilyRows, S: NDArray, data: TrainingSet, ridge: float) -> BlockField:
    """The field of the nodes from coefficients that were found in :func:`family_rows`."""
    B, base = split_coefficients(S, rows.W.shape[1])
    n, common = len(data.X), column_common(schema, rows.blocks)
    mean = None
    if rows.U.shape[1] > 1:
        mean = linear_mean(rows.columns[:n], rows.U[:n], ridge)
    columns: GraphField
    if rows.W.shape[1] > 1:
        nothing = np.zeros((rows.W.shape[1], rows.blocks.n_columns))
        columns = LinearField(common, B.transpose(0, 2, 1), nothing if mean is None else mean)
    else:
        columns = StaticField(common, B[0].T.astype(np.float32), mean)
    X = np.asarray(data.X, dtype=np.float64)
    return block_field(schema, rows.blocks, X, columns, base, columns.encode(data.Z))


def check_standard(model: object, data: TrainingSet) -> None:
    """Raise for hyper-parameters that make no sense unless all nodes are numbers."""
    types = data.inputs.types
    which = "numbers enter by curves"
    if types is not None:
        which = f"nodes are no plain numbers ({listing(types.others, most=4)})"
    plain = {
        "center": ("constant", "covariates"),
        "standardize": (True,),
        "marginals": ("auto", "raw"),
    }
    for name, allowed in plain.items():
        if (value := getattr(model, name, allowed[0])) not in allowed:
            raise ParameterError(
                "{argument} must be {allowed} where {which}, got {value!r}.",
                argument=Argument(name),
                allowed=" or ".join(map(repr, allowed)),
                which=which,
                value=value,
            )
