"""Nodes as they are or as scores, for estimators that work from correlations."""

from __future__ import annotations

from graphfield.data.marginals import MARGINALS, SKEPTIC
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.parameters import Choice
from graphfield.estimators.training_set import TrainingSet
from graphfield.fields.schema import Schema
from graphfield.solvers.marginal_choice import MarginalCheck

MARGINAL_OF_RANKS = Choice((*MARGINALS, SKEPTIC))


class OfScores(GraphEstimator):
    """With a parameter ``marginals``, where "skeptic" is normal scores with correlations from ranks."""

    marginals: str
    marginal_check_: MarginalCheck | None = None

    @property
    def marginals_(self) -> str:
        return SKEPTIC if self.by_rank else self._known().schema.marginals

    @property
    def by_rank(self) -> bool:
        return self.marginals == SKEPTIC

    def _take_scores(self, schema: Schema, data: TrainingSet) -> tuple[Schema, TrainingSet]:
        schema, data, self.marginal_check_ = data.take_scores(schema, self.marginals)
        return schema, data
