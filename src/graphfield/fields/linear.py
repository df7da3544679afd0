"""Fields that are linear in the features of z, or the same for every z with means that may move."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import n_features
from graphfield.data.encoded import Encoded
from graphfield.data.frames import Frame
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.exceptions import ExtrapolationWarning
from graphfield.fields.base import Common, GraphField, State
from graphfield.fields.program import Features, Inputs, Program, feature_inputs
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
        return self.linear_program(features, np.stack([*others, constant]), reference)

    def own_state(self) -> State:
        return {}, {"interactions": self.interactions, "mean": self.mean}

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> LinearField:  # noqa: ARG003
        m, p = n_features(common.schema.encoder), common.schema.n_nodes
        interactions = arrays.read_coefficients("interactions", (m, p, p))
        return cls(common, interactions, arrays.read_means("mean", (m, p)))


@dataclass(frozen=True, eq=False, repr=False)
class StaticField(GraphField):
    """The same weights everywhere; means are those of the nodes, or linear in the features of z."""

    weights: NDArray[np.float32]  # (p, p)
    mean: NDArray[np.float64] | None = None  # (m, p), on the features of z
    from_precision: bool = False

    kind: ClassVar[str] = "static"

    @property
    def definite(self) -> bool:  # type: ignore[override]
        return self.from_precision

    @property
    def uses_covariates(self) -> bool:
        return self.mean is not None

    def encode(self, frame: Frame) -> Rows:
        with warnings.catch_warnings():
            if not self.uses_covariates:  # no range matters to this graph
                warnings.simplefilter("ignore", ExtrapolationWarning)
            return super().encode(frame)

    def alike(self, rows: Rows) -> Encoded:
        return super().alike(rows) if self.uses_covariates else Encoded.same(len(rows))

    def weights_at(self, rows: Rows) -> NDArray[np.float32]:
        return np.broadcast_to(self.weights, (len(rows), *self.weights.shape)).copy()

    def offsets_at(self, rows: Rows) -> NDArray[np.float64]:
        if self.mean is not None:
            return self.common.scaler.restore(self.schema.features(rows) @ self.mean)
        return np.broadcast_to(self.common.scaler.center, (len(rows), self.n_nodes)).copy()

    def own_program(self, reference: NDArray) -> Program:
        constant = Features(Inputs([], []), [("one",)])
        return self.linear_program(constant, self.weights[None].astype(np.float64), reference)

    def own_state(self) -> State:
        mean = {} if self.mean is None else {"mean": self.mean}
        return {"from_precision": self.from_precision}, {"weights": self.weights, **mean}

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> StaticField:
        p = common.schema.n_nodes
        weights = arrays.read_coefficients("weights", (p, p), dtype=np.float32)
        mean = arrays.read_means("mean", (n_features(common.schema.encoder), p)) if "mean" in arrays else None
        return cls(common, weights, mean, state["from_precision"].flag())
