"""Fields that are linear in the features of z, or the same for every z with means that may move."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import n_features
from graphfield.data.encoded import Encoded
from graphfield.data.frames import Frame
from graphfield.data.moving_scales import rectified
from graphfield.data.nodes import row_blocks
from graphfield.data.row_store import allocate_rows
from graphfield.data.saved_arrays import AtMost, SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.exceptions import ExtrapolationWarning
from graphfield.fields.base import Common, GraphField, State
from graphfield.fields.program import Features, Inputs, Program, feature_inputs
from graphfield.fields.schema import Rows

# In a file: bends at most, and the size of what makes columns of them.
_MOST_BENDS, _LARGEST_BEND = 100_000, 1e12


@dataclass(frozen=True, eq=False)
class Bends:
    """Features W of z and functions of numbers that bend: ``[W, max(0, W_1 @ weights + bias)] @ mix``.

    W_1 are the features without their one, which stays the first column.

    >>> bends = Bends(np.ones((1, 1)), np.zeros(1), np.eye(3))
    >>> bends.at(np.array([[1.0, -2.0], [1.0, 2.0]])).tolist()
    [[1.0, -2.0, 0.0], [1.0, 2.0, 2.0]]
    """

    weights: NDArray[np.float64]  # (m - 1, h), a one in each column
    bias: NDArray[np.float64]  # (h,)
    mix: NDArray[np.float64]  # (m + h, columns)

    def at(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        values = allocate_rows((len(W), self.mix.shape[1]), np.float64)
        for rows in row_blocks(*values.shape):
            wide = np.hstack([W[rows], rectified(W[rows, 1:], self.weights, self.bias)])
            values[rows] = (wide[:, None] @ self.mix)[:, 0]  # a product per row: see LinearField
        return values

    def steps(self) -> list[tuple[Any, ...]]:
        """The same of W_1, in a program."""
        behind = np.vstack([self.mix[1:], self.mix[:1]])  # where a program has the one
        last = ("affine", behind, np.zeros(self.mix.shape[1]))
        return [("affine", self.weights, self.bias), ("relu",), ("join",), ("one",), last]

    @classmethod
    def from_arrays(cls, arrays: SavedArrays, n_features: int) -> Bends:
        read = partial(arrays.read, low=-_LARGEST_BEND, high=_LARGEST_BEND)
        weights = read("weights", (n_features - 1, AtMost(_MOST_BENDS, 1)))
        h = weights.shape[1]
        return cls(weights, read("bias", (h,)), read("mix", (n_features + h, AtMost(n_features + h, 1))))


@dataclass(frozen=True, eq=False, repr=False)
class LinearField(GraphField):
    interactions: NDArray[np.float64]  # (m, p, p), on the features of z
    mean: NDArray[np.float64]  # (m, p)
    bends: Bends | None = field(default=None, kw_only=True)  # among these features

    kind: ClassVar[str] = "linear"

    def features(self, rows: Rows) -> NDArray[np.float64]:
        W = self.schema.features(rows)
        return W if self.bends is None else self.bends.at(W)

    def weights_at(self, rows: Rows) -> NDArray[np.float32]:
        W = self.features(rows)
        # One product per row: the graph at z has the same bits whatever else is asked for.
        weights = np.empty((len(W), *self.interactions.shape[1:]), dtype=np.float32)
        flat = self.interactions.reshape(len(self.interactions), -1)
        for row, own in enumerate(W):
            weights[row] = (own @ flat).reshape(weights.shape[1:])
        return weights

    def offsets_at(self, rows: Rows) -> NDArray[np.float64]:
        return self.common.scaler.restore(self.features(rows) @ self.mean)

    def own_program(self, reference: NDArray) -> Program:
        if self.bends is not None:
            bent = Features(feature_inputs(self.schema.encoder), self.bends.steps())
            return self.linear_program(bent, self.interactions, reference)
        constant, *others = self.interactions
        features = Features(feature_inputs(self.schema.encoder), [("one",)])
        return self.linear_program(features, np.stack([*others, constant]), reference)

    def own_state(self) -> State:
        bends = {} if self.bends is None else {f"bends/{name}": own for name, own in vars(self.bends).items()}
        return {}, {"interactions": self.interactions, "mean": self.mean, **bends}

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> LinearField:  # noqa: ARG003
        m, p = n_features(common.schema.encoder), common.schema.n_nodes
        bends = Bends.from_arrays(arrays.below("bends/"), m) if "bends/mix" in arrays else None
        m = m if bends is None else bends.mix.shape[1]
        interactions = arrays.read_coefficients("interactions", (m, p, p))
        return cls(common, interactions, arrays.read_means("mean", (m, p)), bends=bends)


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
