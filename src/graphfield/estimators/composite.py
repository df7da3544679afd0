"""Estimators that fit others: what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.frames import Frame
from graphfield.data.nodes import NodeScaler
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import Inputs
from graphfield.estimators.judged_pairs import KnownCut
from graphfield.estimators.persistence import pack_shell, unpack_shell
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import GraphfieldError, ParameterError
from graphfield.fields import GraphField, Schema
from graphfield.fields.average import AverageField, average
from graphfield.fields.base import Common, State
from graphfield.fields.schema import Rows
from graphfield.fields.state import join_states
from graphfield.messages import Message
from graphfield.solvers.marginal_choice import MarginalCheck

F = TypeVar("F", bound=GraphField)


def fit_parts(
    models: Sequence[GraphEstimator],
    data: TrainingSet,
    part_of: Callable[[Frame], NDArray[np.intp]],
    covariates: Sequence[list[str]],
    groups: NDArray | None,
    names: Sequence[str],
) -> list[GraphField]:
    """Fit each model to rows and covariates of its own; ``names`` tell the user what an error is about."""
    part, part_of_own = part_of(data.Z), None if data.own is None else part_of(data.own[1])
    for which, (model, known, name) in enumerate(zip(models, covariates, names, strict=True)):
        rows = np.flatnonzero(part == which)
        own = None if groups is None else groups[rows]
        new = None if part_of_own is None else np.flatnonzero(part_of_own == which)
        X, Z = node_table(data.inputs, rows), covariate_table(data.Z, rows, known)
        try:
            model.fit(X, Z, groups=own, **own_tables(data, new, known))
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


def with_row_scale(field: F, X: NDArray, rows: Rows) -> F:
    """With the root mean square of what the others leave of each node, over these rows."""
    scores = field.schema.scores
    values = X if scores is None else scores.transform(X)
    units, left = field.units_at(rows), np.zeros(field.n_nodes)
    for part, fitted in field.regressions(values, rows):
        left += np.square((values[part] - fitted) / units[part]).sum(axis=0)
    scale = np.sqrt(np.maximum(left / len(values), 1e-12))
    return replace(field, common=replace(field.common, residual_scale=field.common.scaler.scale * scale))


def pack_members(models: Sequence[GraphEstimator]) -> State:
    """Fitted models without their fields, which are parts of another."""
    shells, arrays = join_states([pack_shell(model) for model in models], "member")
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
        raise ParameterError.of(
            "estimator",
            "must be an estimator of graphfield (an object, such as gf.RegGMM()) or None, "
            f"got {estimator!r}.",
        )
    return estimator


def own_tables(
    data: TrainingSet,
    rows: NDArray[np.intp] | slice | None = slice(None),
    covariates: list[str] | None = None,
) -> dict[str, Any]:
    """The user's own held-out rows, or some of them and of their covariates, as arguments of ``fit``."""
    if data.own is None or rows is None or len(data.own[0][rows]) == 0:
        return {}
    values, Z = data.own[:2]
    own = node_table(replace(data.inputs, X=values), rows)
    return {"X_val": own, "Z_val": covariate_table(Z, rows, covariates)}


def node_table(inputs: Inputs, rows: NDArray[np.intp] | slice) -> Any:
    """Some rows of X as the user gave it: with names and types where it had any."""
    values = inputs.X[rows]
    if inputs.types is not None:
        return inputs.types.decode(values, inputs.nodes_named)
    return pd.DataFrame(values, columns=inputs.node_names) if inputs.nodes_named else values


def covariate_table(Z: Frame, rows: NDArray[np.intp] | slice, covariates: list[str] | None = None) -> Frame:
    """Some rows of the covariates, or of some of these; messages of a fit to them name the user's rows."""
    values = Z.values if covariates is None else Z.values[covariates]
    return Frame(values, True, Z.rows).take(rows)


class AveragedGraph(GraphEstimator):
    """Base of the estimators that average fitted members, with weights that sum to one.

    Weights of edges, means and residual variances at z are the weighted averages of those of the members.
    A subclass fits the members and hands them to :meth:`_average`.

    Attributes
    ----------
    members_ : list of estimators
        The fitted models; those with weight zero are not kept.
    weights_ : ndarray of shape (n_members,)
        Their weights.
    """

    members_: list[GraphEstimator]
    marginal_check_: MarginalCheck | None = None

    @property
    def _members_field(self) -> AverageField:
        return self._known().of_kind(AverageField)

    @property
    def weights_(self) -> NDArray[np.float64]:
        return self._members_field.shares

    @property
    def marginals_(self) -> str:
        return self._known().schema.marginals

    def _learn_marginals(
        self, data: TrainingSet, schema: Schema, marginals: str
    ) -> tuple[Schema, TrainingSet]:
        """Nodes as all members are to see them: an average needs members on one scale."""
        if schema.types is not None:  # each node has the likelihood of its family, as it is
            marginals = "raw"
        schema, data, self.marginal_check_ = data.take_scores(schema, marginals)
        return schema, data

    def _average(
        self,
        members: Sequence[GraphEstimator],
        weights: Sequence[float] | NDArray,
        schema: Schema,
        seen: Inputs,
        drawn: Literal["seeds", "resamples"] | None = None,
    ) -> AverageField:
        """The average of ``members``, which were fitted to what is ``seen``.

        They are given the user's nodes from now on, whatever they were fitted to.
        """
        for member in members:
            member.field_ = member.field_.with_scores(schema.scores)
        scaler = NodeScaler.learn(seen.X, center=True, scale=True)
        common = Common(schema, scaler, scaler.scale)
        field = average(common, [member.field_ for member in members], weights)
        self.members_ = [member for member, weight in zip(members, weights, strict=True) if weight > 0]
        return with_typical_scale(replace(field, drawn=drawn), seen.Z)

    def _new_rows(self, field: GraphField, data: TrainingSet) -> KnownCut:  # noqa: ARG002
        """The average of the cuts of the members."""
        assert isinstance(field, AverageField)
        return KnownCut(float(field.shares @ [member.threshold_.value for member in self.members_]))

    def _get_learned(self) -> State:
        return pack_members(self.members_)

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:
        field = self._members_field
        self.members_ = unpack_members(state, arrays, field.members)
        self.field_ = replace(field, members=[member.field_ for member in self.members_])
