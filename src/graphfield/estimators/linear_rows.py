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
from graphfield.fields.linear import Bends, LinearField
from graphfield.fields.schema import Schema
from graphfield.solvers.interaction import interaction_residuals, linear_mean, subtract_mean
from graphfield.solvers.scale_choice import learn_node_scales, learn_scales

# With fewer rows for each weight of a regression, residuals are small where the fit follows single rows,
# which says nothing about scales.
_ROWS_PER_WEIGHT = 5
# A function of a number of which those before it leave less than this share is one of them.
_COPY = 1e-8


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
    bends: Bends | None  # among these, but not where scales are concerned
    covariate: NDArray[np.intp]  # to which each feature belongs, counted from 1; 0 is the one
    scales: MovingScales | None
    may_move: bool  # whether scales may move with z
    standardized: bool

    @classmethod
    def learn(
        cls,
        data: TrainingSet,
        schema: Schema,
        center: str,
        standardize: bool,
        ridge: float,
        n_bends: int = 0,
    ) -> Self:
        """Center is "covariates", "constant" or "none"; the ridge is that of the mean."""
        scaler = NodeScaler.learn(data.X, center=center != "none", scale=standardize)
        features_of_all, n = features(schema.encoder, data.encode(schema.encoder)), len(data.X)
        linear, covariate, bends = features_of_all, covariate_of_feature(schema.encoder), None
        if n_bends:
            bends, covariate = learn_bends(schema.encoder, linear[:n], n_bends)
            features_of_all = bends.at(linear)
        W = features_of_all[:n]
        left = scaler.transform(data.all_nodes)
        mean = np.zeros((W.shape[1], left.shape[1]))
        if center == "covariates":
            mean = linear_mean(left[:n], W, ridge)
            subtract_mean(left, features_of_all, mean)
        may_move = center == "covariates" and bool(standardize)
        scales = (
            learn_node_scales(data.scale_rows(left[:n], linear[:n], schema.encoder)) if may_move else None
        )
        if scales is not None:
            scales.divide(left, linear)
        chosen = scales, may_move, bool(standardize)
        return cls(data, schema, scaler, left, features_of_all, mean, bends, covariate, *chosen)

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
            W = self.W if self.bends is None else features(self.encoder, self.encoder.transform(self.data.Z))
            residual_scales = learn_scales(self.data.scale_rows(residual, W, self.encoder))
        left = self.scaler.scale * NodeScaler.learn(residual, center=True, scale=True).scale
        common = Common(self.schema, self.scaler, left, self.scales, residual_scales, self.standardized)
        return LinearField(common, interactions, self.mean, bends=self.bends)


def learn_bends(
    encoder: CovariateEncoder, W: NDArray[np.float64], n_bends: int
) -> tuple[Bends, NDArray[np.intp]]:
    """Functions of each number that bend at its quantiles; also to which covariate each feature belongs.

    Over the rows of W they are uncorrelated with the number and with one another, with mean square one, so
    that a prior means of them what it means of a number.
    """
    own_covariate, m = covariate_of_feature(encoder), W.shape[1]
    found = [(number, *_bends_of(W[:, number], n_bends)) for number in range(1, 1 + len(encoder.numeric))]
    weights, mix = np.zeros((m - 1, 0)), np.eye(m)
    for number, knots, turn in found:
        known, (h, n_columns) = mix.shape, (len(knots), turn.shape[1])
        weights = np.hstack([weights, np.zeros((m - 1, h))])
        weights[number - 1, -h:] = 1.0
        mix = np.block([[mix, np.zeros((known[0], n_columns))], [np.zeros((h, known[1])), turn[2:]]])
        mix[[0, number], known[1] :] = turn[:2]
    covariate = np.concatenate([own_covariate, *(np.full(turn.shape[1], who) for who, _, turn in found)])
    order = np.argsort(covariate, kind="stable")  # each number, then its bends
    bias = -np.concatenate([knots for _, knots, _ in found])
    return Bends(weights, bias, np.ascontiguousarray(mix[:, order])), covariate[order].astype(np.intp)


def _bends_of(values: NDArray[np.float64], n_bends: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Knots (h,), and what mixes a one, a number and ``max(0, number - knots)`` to functions, (2 + h, b)."""
    knots = np.unique(np.quantile(values, np.linspace(0, 1, n_bends + 2)[1:-1]))
    columns = np.column_stack([np.ones(len(values)), values, np.maximum(values[:, None] - knots, 0)])
    size = np.sqrt(np.square(columns).mean(axis=0))
    columns /= np.maximum(size, _COPY)
    left = np.square(np.diag(np.linalg.qr(columns, mode="r"))) / len(values)
    kept = np.flatnonzero(left > _COPY)
    triangle = np.linalg.qr(columns[:, kept], mode="r") / np.sqrt(len(values))
    turn = np.zeros((len(size), len(kept)))
    turn[kept] = np.linalg.inv(triangle) / size[kept][:, None]
    return knots, turn[:, 2:]


def covariate_of_feature(encoder: CovariateEncoder) -> NDArray[np.intp]:
    """Which covariate each column of :func:`features` belongs to, counted from 1; 0 is the one: (m,)."""
    widths = [1] + [1] * len(encoder.numeric) + [len(c.levels) - 1 for c in encoder.categorical]
    return np.repeat(np.arange(len(widths)), widths)
