"""An estimator as a user would write it: one class, and one line of the registry."""

from __future__ import annotations

import numpy as np

from graphfield.data.nodes import NodeScaler
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.parameters import Number, hyper_parameters, parameter
from graphfield.estimators.registry import Entry
from graphfield.fields.base import Common
from graphfield.fields.linear import StaticField


@hyper_parameters
class Correlations(GraphEstimator):
    """A toy: the regressions that follow from the correlation matrix, shrunk to nothing by ``shrink``."""

    missing = "error"

    shrink: float = parameter(0.1, Number(0, 1, open_high=True))

    def _fit(self, data) -> StaticField:
        schema = self._learn_schema(data, standardize=True, unknown="average")
        scaler = NodeScaler.learn(data.X, center=True, scale=True)
        S = (1 - self.shrink) * np.corrcoef(data.X.T) + self.shrink * np.eye(schema.n_nodes)
        precision = np.linalg.inv(S)
        weights = -precision / np.diag(precision)[:, None]
        np.fill_diagonal(weights, 0)
        common = Common(schema, scaler, scaler.scale / np.sqrt(np.diag(precision)))
        return StaticField(common, weights.astype(np.float32), from_precision=True)


TOY = Entry(
    __name__, "correlations", "what correlates is joined", {}, chosen={"n_features_in_": "Correlated"}
)
