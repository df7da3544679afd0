"""Weighted averages of fitted models: what the estimators built so have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import features
from graphfield.data.marginals import NormalScores
from graphfield.data.nodes import NodeScaler
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import pack_members, unpack_members, with_typical_scale
from graphfield.estimators.inputs import Inputs
from graphfield.estimators.judged_pairs import KnownCut
from graphfield.estimators.training_set import TrainingSet
from graphfield.fields import GraphField, Schema
from graphfield.fields.average import AverageField, average
from graphfield.fields.base import Common, State
from graphfield.solvers.marginal_choice import MarginalCheck, prefer_normal_scores


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
        field = self._known()
        assert isinstance(field, AverageField)
        return field

    @property
    def weights_(self) -> NDArray[np.float64]:
        return self._members_field.shares

    @property
    def marginals_(self) -> str:
        return "raw" if self._known().schema.scores is None else "normal"

    def _learn_marginals(
        self, data: TrainingSet, schema: Schema, marginals: str
    ) -> tuple[Schema, TrainingSet]:
        """Nodes as all members are to see them: an average needs members on one scale."""
        self.marginal_check_ = None
        if marginals == "auto":
            W = features(schema.encoder, schema.encoder.transform(data.Z))
            self.marginal_check_ = prefer_normal_scores(data.X, W, data.labels)
            marginals = "normal" if self.marginal_check_.prefers else "raw"
        if marginals == "raw":
            return schema, data
        scores = NormalScores.learn(data.X)
        return schema.with_scores(scores), data.with_nodes(scores.transform)

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
