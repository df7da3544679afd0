"""Estimators that fit others: what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.frames import Frame
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import Inputs
from graphfield.estimators.persistence import pack_shell, unpack_shell
from graphfield.exceptions import GraphfieldError, ParameterError
from graphfield.fields import GraphField
from graphfield.fields.base import State
from graphfield.messages import Message

F = TypeVar("F", bound=GraphField)


def fit_parts(
    models: Sequence[GraphEstimator],
    inputs: Inputs,
    Z: Frame,
    part: NDArray[np.intp],
    groups: NDArray | None,
    names: Sequence[str],
) -> list[GraphField]:
    """Fit each model to its own rows; ``names`` tell the user which part an error is about."""
    for which, (model, name) in enumerate(zip(models, names, strict=True)):
        rows = np.flatnonzero(part == which)
        own = None if groups is None else groups[rows]
        try:
            model.fit(node_table(inputs, rows), covariate_table(Z.values, rows), groups=own)
        except GraphfieldError as error:
            raise type(error)(
                Message("In {name} ({n} rows): {error}", name=name, n=len(rows), error=error.message)
            ) from error
    return [model.field_ for model in models]


def with_typical_scale(field: F, Z: Frame) -> F:
    """With the root mean square over these rows of what is left of each node given the others."""
    rows, unit = field.encode(Z), field.common.scaler.scale
    scale = field.scales_at(rows) * (field.units_at(rows) / unit)
    typical = unit * np.sqrt((scale**2).mean(axis=0))
    return replace(field, common=replace(field.common, residual_scale=typical))


def pack_members(models: Sequence[GraphEstimator]) -> State:
    """Fitted models without their fields, which are parts of another."""
    shells: list[dict[str, Any]] = []
    arrays: dict[str, NDArray] = {}
    for which, model in enumerate(models):
        shell, own = pack_shell(model)
        shells.append(shell)
        arrays |= {f"member/{which}/{name}": array for name, array in own.items()}
    return {"members": shells}, arrays


def unpack_members(state: Saved, arrays: SavedArrays, fields: Sequence[GraphField]) -> list[GraphEstimator]:
    """Inverse of :func:`pack_members`, with these fields."""
    shells = state["members"].listed(len(fields), len(fields))
    return [
        unpack_shell(shell, arrays.below(f"member/{which}/"), field)
        for which, (shell, field) in enumerate(zip(shells, fields, strict=True))
    ]


def check_estimator(estimator: Any) -> None:
    if estimator is not None:
        given_estimator(estimator)


def given_estimator(estimator: Any) -> GraphEstimator:
    """The estimator that the user passed to be cloned and fitted."""
    if not isinstance(estimator, GraphEstimator):
        raise ParameterError(
            "estimator must be an estimator of graphfield (an object, such as gf.RegGMM()) or None, "
            f"got {estimator!r}."
        )
    return estimator


def node_table(inputs: Inputs, rows: NDArray[np.intp] | slice) -> Any:
    """Some rows of X as the user gave it: with names where it had any."""
    values = inputs.X[rows]
    return pd.DataFrame(values, columns=inputs.node_names) if inputs.nodes_named else values


def covariate_table(frame: pd.DataFrame, rows: NDArray[np.intp] | slice) -> pd.DataFrame:
    """Some rows of the covariates, numbered from 0."""
    return frame.iloc[rows].reset_index(drop=True)
