"""Weights and means that are linear in the features of z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import n_features
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.fields.base import Common, GraphField, State
from graphfield.fields.program import Features, Program, feature_inputs, linear_program
from graphfield.fields.schema import Rows


@dataclass(frozen=True, eq=False, repr=False)
class LinearField(GraphField):
    interactions: NDArray[np.float64]  # (m, p, p), on the features of z
    mean: NDArray[np.float64]  # (m, p)

    kind: ClassVar[str] = "linear"

    def weights_at(self, rows: Rows) -> NDArray[np.float32]:
        W = self.schema.features(rows)
        # One product per row: the graph at z has the same bits whatever else is asked for.
        weights = np.empty((len(W), *self.interactions.shape[1:]), dtype=np.float32)
        flat = self.interactions.reshape(len(self.interactions), -1)
        for row, own in enumerate(W):
            weights[row] = (own @ flat).reshape(weights.shape[1:])
        return weights

    def offsets_at(self, rows: Rows) -> NDArray[np.float64]:
        return self.common.scaler.restore(self.schema.features(rows) @ self.mean)

    def own_program(self, reference: NDArray) -> Program:
        constant, *others = self.interactions
        features = Features(feature_inputs(self.schema.encoder), [("one",)])
        return linear_program(self.common, features, np.stack([*others, constant]), reference)

    def own_state(self) -> State:
        return {}, {"interactions": self.interactions, "mean": self.mean}

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> LinearField:  # noqa: ARG003
        m, p = n_features(common.schema.encoder), common.schema.n_nodes
        interactions = arrays.read_coefficients("interactions", (m, p, p))
        return cls(common, interactions, arrays.read("mean", (m, p)))
