"""Fields whose weights are mixed by an encoder: a plain network of the features of z."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import n_features
from graphfield.data.saved_arrays import MAX_COEFFICIENT, AtMost, SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.fields.base import Common, GraphField, State
from graphfield.fields.program import Features, Program, feature_inputs
from graphfield.fields.schema import Rows

# Layers of an encoder, and units of one, in a file.
_MOST_LAYERS, _MOST_UNITS = 32, 10_000
Layer = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False, repr=False)
class EncodedField(GraphField):
    """``x = B(z) x + c(z)`` in units of the nodes: B and c are patterns, mixed in amounts u(z).

    ``layers`` are the weights (d_in, d_out) and constants of the encoder u, with a ReLU between any two.
    Amounts are any numbers: they are no shares.
    """

    layers: Sequence[Layer]
    patterns: NDArray[np.float64]  # (R, p, p)
    constants: NDArray[np.float64]  # (R, p)

    kind: ClassVar[str] = "encoded"

    def amounts_at(self, rows: Rows) -> NDArray[np.float64]:
        """u(z), (n, R)."""
        u = self.schema.features(rows)[:, 1:]
        for which, (weights, constant) in enumerate(self.layers):
            u = (np.maximum(u, 0) if which else u)[:, None] @ weights  # a product per row: see LinearField
            u = u[:, 0] + constant
        return u

    def weights_at(self, rows: Rows) -> NDArray[np.float32]:
        return self._mixed(self.amounts_at(rows)).astype(np.float32)

    def _mixed(self, amounts: NDArray) -> NDArray[np.float64]:
        flat = self.patterns.reshape(len(self.patterns), -1)
        return (amounts[:, None] @ flat).reshape(-1, *self.patterns.shape[1:])

    def offsets_at(self, rows: Rows) -> NDArray[np.float64]:
        """The mean m for which ``m + B (x - m)`` is ``B x + c``."""
        amounts = self.amounts_at(rows)
        left, c = np.eye(self.n_nodes) - self._mixed(amounts), amounts @ self.constants
        return self.common.scaler.restore(np.stack([_solve(*one) for one in zip(left, c, strict=True)]))

    def own_program(self, reference: NDArray) -> Program:
        steps: list[tuple[Any, ...]] = []
        for which, (weights, constant) in enumerate(self.layers):
            steps += [("relu",)] * (which > 0) + [("affine", weights, constant)]
        features = Features(feature_inputs(self.schema.encoder), steps)
        return self.linear_program(features, self.patterns, reference)

    def own_state(self) -> State:
        arrays = {"patterns": self.patterns, "constants": self.constants}
        for which, (weights, constant) in enumerate(self.layers):
            arrays |= {f"layer/{which}/weights": weights, f"layer/{which}/constant": constant}
        return {"layers": len(self.layers)}, arrays

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> EncodedField:
        layers: list[Layer] = []
        most, p, width = MAX_COEFFICIENT, common.schema.n_nodes, n_features(common.schema.encoder) - 1
        for which in range(state["layers"].whole(1, _MOST_LAYERS)):
            own = arrays.below(f"layer/{which}/")
            weights = own.read("weights", (width, AtMost(_MOST_UNITS, 1)), low=-most, high=most)
            width = weights.shape[1]
            layers.append((weights, own.read("constant", (width,), low=-most, high=most)))
        patterns = arrays.read_coefficients("patterns", (width, p, p))
        return cls(common, layers, patterns, arrays.read_means("constants", (width, p)))


def _solve(left: NDArray, c: NDArray) -> NDArray[np.float64]:
    """The shortest solution where there are several; zeros have one."""
    try:
        return np.linalg.solve(left, c)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(left, c)[0]
