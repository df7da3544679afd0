"""Fields of precision matrices that mix a few archetypes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.data.saved_arrays import AtMost, SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.neural import evaluate_mixed, from_arrays, to_arrays
from graphfield.estimators.neural_field import NeuralMean, network_features, read_config
from graphfield.fields.base import Common, GraphField, State
from graphfield.fields.program import Precision, Program
from graphfield.fields.schema import Rows
from graphfield.nn.gates import GateField
from graphfield.training.archetypes import NUMBERS


@dataclass(frozen=True, eq=False, repr=False)
class ArchetypeField(GraphField):
    """Precision matrices ``matrices`` (R, p, p) of standardised nodes, mixed in shares of a gate."""

    gate: GateField
    order: Tensor  # of the gate's shares
    matrices: Tensor
    mean: NeuralMean

    kind: ClassVar[str] = "archetypes"
    definite: ClassVar[bool] = True

    def mixed(self, rows: Rows) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Shares and precision matrices in standard units, in blocks of rows."""
        return evaluate_mixed(self.gate, self.order, self.matrices, rows.encoded)

    def shares_at(self, rows: Rows) -> NDArray[np.float64]:
        return np.concatenate(
            [np.empty((0, len(self.matrices))), *(shares for shares, _ in self.mixed(rows))]
        )

    def weights_at(self, rows: Rows) -> NDArray[np.float32]:
        p = self.n_nodes
        weights, start = np.empty((len(rows), p, p), dtype=np.float32), 0
        for _, precision in self.mixed(rows):
            part = -precision / precision.diagonal(axis1=1, axis2=2)[:, :, None]
            part[:, np.arange(p), np.arange(p)] = 0
            weights[start : start + len(part)] = part
            start += len(part)
        return weights

    def scales_at(self, rows: Rows) -> NDArray[np.float64]:
        diagonals = [precision.diagonal(axis1=1, axis2=2) for _, precision in self.mixed(rows)]
        return 1 / np.sqrt(np.concatenate([np.empty((0, self.n_nodes)), *diagonals]))

    def offsets_at(self, rows: Rows) -> NDArray[np.float64]:
        return self.mean.at(rows, self.schema.encoder)

    def own_program(self, reference: NDArray) -> Program:
        features = network_features(self.gate, self.schema.encoder)
        name, weight, bias = features.steps[-1]
        order = self.order.numpy()
        features.steps[-1] = (name, weight[:, order], bias[order])
        features.steps.append(("softmax",))
        unit = reference / self.common.scaler.scale
        return Precision(features, self.matrices.numpy() * unit[:, None] * unit)

    def own_state(self) -> State:
        state, arrays = self.mean.state()
        own = {"archetypes": self.matrices.numpy(), "order": self.order.numpy()}
        return {"network": asdict(self.gate.config), **state}, {
            **arrays,
            **own,
            **to_arrays(self.gate, "gate"),
        }

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> ArchetypeField:
        p, weights = common.schema.n_nodes, arrays.below("gate/")
        matrices = arrays.read("archetypes", (AtMost(NUMBERS[-1], 1), p, p))
        order = arrays.read("order", (len(matrices),), np.int64)
        if not np.array_equal(np.sort(order), np.arange(len(matrices))):
            arrays.refuse("order", f"the numbers below {len(matrices)} in some order", str(order))
        if not _are_positive_definite(matrices):
            arrays.refuse("archetypes", "positive definite, each of them", "one that is not")
        state["network"]["rank"].whole(len(matrices), len(matrices))
        config = read_config(state["network"], common.schema, arrays.n_entries())
        gate = from_arrays(GateField, config, weights)
        mean = NeuralMean.from_state(common, config, state, arrays)
        return cls(common, gate, torch.from_numpy(order), torch.from_numpy(matrices), mean)


def _are_positive_definite(matrices: NDArray[np.float64]) -> bool:
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return False
    return bool(np.allclose(matrices, matrices.swapaxes(1, 2)))  # which the decomposition does not look at
