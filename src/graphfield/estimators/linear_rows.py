"""Rows of a fit whose coefficients are linear in z: nodes in standard units, less their mean at z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import CovariateEncoder, features
from graphfield.data.moving_scales import MovingScales
from graphfield.data.nodes import NodeScaler
from graphfield.estimators.training_set import TrainingSet
from graphfield.fields.base import Common
from graphfield.fields.linear import LinearField
from graphfield.fields.schema import Schema
from graphfield.solvers.interaction import interaction_residuals, linear_mean, subtract_mean
from graphfield.solvers.scale_choice import learn_node_scales, learn_scales

# With fewer rows for each weight of a regression, residuals are small where the fit follows single rows,
# which says nothing about scales.
_ROWS_PER_WEIGHT = 5


@dataclass(frozen=True, eq=False)
class LinearRows:
    """What regressions on the nodes, with coefficients linear in the features W of z, are given.

    ``all_nodes`` and ``all_features`` go on with the user's own held-out rows.
    """

    data: TrainingSet
    schema: Schema
    scaler: NodeScaler
    all_nodes: NDArray[np.float64]
    all_features: NDArray[np.float64]
    mean: NDArray[np.float64]  # (m, p), on the features of z
    scales: MovingScales | None
    may_move: bool  # whether scales may move with z
    standardized: bool

    @classmethod
    def learn(cls, data: TrainingSet, schema: Schema, center: str, standardize: bool, ridge: float) -> Self:
        """Center is "covariates", "constant" or "none"; the ridge is that of the mean."""
        scaler = NodeScaler.learn(data.X, center=center != "none", scale=standardize)
        features_of_all, n = features(schema.encoder, data.encode(schema.encoder)), len(data.X)
        W = features_of_all[:n]
        left = scaler.transform(data.all_nodes)
        mean = np.zeros((W.shape[1], left.shape[1]))
        if center == "covariates":
            mean = linear_mean(left[:n], W, ridge)
            subtract_mean(left, features_of_all, mean)
        may_move = center == "covariates" and bool(standardize)
        scales = learn_node_scales(data.scale_rows(left[:n], W, schema.encoder)) if may_move else None
        if scales is not None:
            scales.divide(left, features_of_all)
        return cls(data, schema, scaler, left, features_of_all, mean, scales, may_move, bool(standardize))

    @property
    def encoder(self) -> CovariateEncoder:
        return self.schema.encoder

    @property
    def nodes(self) -> NDArray[np.float64]:
        """Of the training rows."""
        return self.all_nodes[: len(self.data.X)]

    @property
    def W(self) -> NDArray[np.float64]:
        return self.all_features[: len(self.data.X)]

    def field(self, interactions: NDArray[np.float64]) -> LinearField:
        """With these coefficients (m, p, p), and the scales of what they leave."""
        residual = interaction_residuals(self.nodes, self.W, interactions)
        residual_scales = None
        if self.may_move and len(residual) >= _ROWS_PER_WEIGHT * self.W.shape[1] * residual.shape[1]:
            residual_scales = learn_scales(self.data.scale_rows(residual, self.W, self.encoder))
        left = self.scaler.scale * NodeScaler.learn(residual, center=True, scale=True).scale
        common = Common(self.schema, self.scaler, left, self.scales, residual_scales, self.standardized)
        return LinearField(common, interactions, self.mean)


def covariate_of_feature(encoder: CovariateEncoder) -> NDArray[np.intp]:
    """Which covariate each column of :func:`features` belongs to, counted from 1; 0 is the one: (m,)."""
    widths = [1] + [1] * len(encoder.numeric) + [len(c.levels) - 1 for c in encoder.categorical]
    return np.repeat(np.arange(len(widths)), widths)
