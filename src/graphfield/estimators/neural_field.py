"""Fields whose weights and means are networks of z."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.data.covariates import CovariateEncoder, features, n_features
from graphfield.data.nodes import NodeScaler, read_scale
from graphfield.data.saved_arrays import MAX_COEFFICIENT, AtMost, SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.moving_means import MovingMean
from graphfield.estimators.neural import (
    coef_blocks,
    covariate_shape,
    evaluate_coef,
    evaluate_mean,
    evaluate_mixed,
    from_arrays,
    make_samples,
    to_arrays,
)
from graphfield.fields.base import Common, GraphField, State
from graphfield.fields.program import Features, Inputs, NotExported, Precision, Program
from graphfield.fields.schema import Rows, Schema
from graphfield.graphs.strength import are_positive_definite, coef_from_precision
from graphfield.nn.backbone import NETWORKS as BACKBONES
from graphfield.nn.fields import SHARING, CoefField, FieldConfig, MeanField, mean_config
from graphfield.nn.gates import GateField
from graphfield.nn.losses import LOSSES
from graphfield.training.archetypes import NUMBERS
from graphfield.training.config import resolve_device

# torch's default, which the batch norm of our networks has.
_BATCH_NORM_EPS = 1e-5


@dataclass(frozen=True, eq=False)
class NeuralMean:
    """Means of the nodes given z, in units of ``scaler``: a network, main effects of z, both, or neither."""

    network: MeanField | None
    scaler: NodeScaler
    effects: NDArray[np.float64] | None = None  # (m, p), of the features of the covariates

    @classmethod
    def of(cls, mean: MovingMean | None, scaler: NodeScaler) -> NeuralMean:
        return cls(None, scaler) if mean is None else cls(mean.network, scaler, mean.effects)

    @property
    def moves(self) -> bool:
        return self.network is not None or self.effects is not None

    def at(self, rows: Rows, encoder: CovariateEncoder) -> NDArray[np.float64]:
        if not self.moves:
            return np.tile(self.scaler.center, (len(rows), 1))
        samples = make_samples(
            np.zeros((len(rows), len(self.scaler.scale))), rows.encoded, torch.device("cpu")
        )
        network = self.network.cpu() if self.network is not None else None
        mean = evaluate_mean(network, samples).numpy().astype(np.float64)
        if self.effects is not None:
            mean += features(encoder, rows.encoded) @ self.effects
        return self.scaler.restore(mean)

    def state(self) -> State:
        arrays = {} if self.network is None else to_arrays(self.network, "mean")
        if self.effects is not None:
            arrays["mean_effects"] = self.effects
        header = {"has_mean": self.network is not None, "has_effects": self.effects is not None}
        return header, {**arrays, "mean_scale": self.scaler.scale}

    @classmethod
    def from_state(cls, common: Common, config: FieldConfig, state: Saved, arrays: SavedArrays) -> NeuralMean:
        p, encoder = common.schema.n_nodes, common.schema.encoder
        scaler = NodeScaler(common.scaler.center, read_scale(arrays, "mean_scale", p))
        network = effects = None
        if state["has_mean"].flag():
            network = from_arrays(MeanField, mean_config(config), arrays.below("mean/"))
        if state["has_effects"].flag():
            effects = arrays.read(
                "mean_effects", (n_features(encoder), p), low=-MAX_COEFFICIENT, high=MAX_COEFFICIENT
            )
        return cls(network, scaler, effects)


@dataclass(frozen=True, eq=False, repr=False)
class NeuralField(GraphField):
    """Weights of edges from a network of z; ``device`` is where they are computed."""

    network: CoefField
    mean: NeuralMean
    device: str = "auto"

    kind: ClassVar[str] = "neural"

    def weights_at(self, rows: Rows) -> NDArray[np.float32]:
        return evaluate_coef(self.network, rows.encoded, resolve_device(self.device, fallback=True))

    def offsets_at(self, rows: Rows) -> NDArray[np.float64]:
        return self.mean.at(rows, self.schema.encoder)

    def pair_parts(self, values: NDArray, rows: Rows) -> Iterator[tuple[slice, Any, Any]]:
        """On a GPU tensors, which stay there: to bring coefficients here takes longer than to find them."""
        device = resolve_device(self.device, fallback=True)
        if device.type == "cpu" or self.schema.types is not None:
            yield from super().pair_parts(values, rows)
            return
        x, scales = (
            torch.as_tensor(part, dtype=torch.float32, device=device)
            for part in (self.standardize(values, rows), np.ascontiguousarray(self.scales_at(rows)))
        )
        for few, weights in coef_blocks(self.network, rows.encoded, device):
            own = scales[few]
            left = (x[few] - torch.einsum("bjk,bk->bj", weights, x[few])) / own
            yield few, left, (weights * (own[:, None, :] / own[:, :, None])).clamp_(-1, 1)

    def with_network(self, network: CoefField) -> NeuralField:
        return replace(self, network=network)

    def own_program(self, reference: NDArray) -> Program:
        config = self.network.config
        if config.sharing != "all":
            raise NotExported(f"it has one network per {config.sharing}")
        inner = network_features(self.network, self.schema.encoder)
        if config.rank is not None:
            inner.steps.append(("softmax",))
        patterns = (
            self.network.head.get_parameter("weight").detach().cpu().numpy()[0]
        )  # (h + 1, p, p), the last one constant
        if patterns[-1].any():
            inner.steps.append(("one",))
        else:
            patterns = patterns[:-1]
        return self.linear_program(inner, patterns.astype(np.float64), reference)

    def own_state(self) -> State:
        state, arrays = self.mean.state()
        return {"network": asdict(self.network.config), **state}, {
            **arrays,
            **to_arrays(self.network, "coef"),
        }

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> NeuralField:
        weights = arrays.below("coef/")
        config = read_config(state["network"], common.schema, weights.n_entries())
        network = from_arrays(CoefField, config, weights)
        return cls(common, network, NeuralMean.from_state(common, config, state, arrays))


def read_config(state: Saved, schema: Schema, n_entries: int) -> FieldConfig:
    """The configuration of a saved network, which must be that of these nodes and covariates.

    A file has ``n_entries`` of its weights: one that claims more must not be built.
    """
    n_nodes, covariates = schema.n_nodes, covariate_shape(schema.encoder)
    own = state["covariates"]
    own["n_numeric"].whole(covariates.n_numeric, covariates.n_numeric)
    shares = tuple(tuple(column.numbers(0, 1)) for column in own["level_shares"].listed())
    if shares != covariates.level_shares:
        own["level_shares"].refuse("those of the covariates")
    rank = state.known("rank")
    config = FieldConfig(
        n_nodes=state["n_nodes"].whole(n_nodes, n_nodes),
        covariates=covariates,
        network=state["network"].choice(BACKBONES),
        sharing=state["sharing"].choice(SHARING),
        hidden_size=state["hidden_size"].whole(1),
        dropout=state["dropout"].number(0, 1),
        batch_norm=state["batch_norm"].flag(),
        loss=state["loss"].choice(LOSSES),
        penalty=state["penalty"].number(0),
        rank=None if rank is None else rank.whole(1),
    )
    if config.rank is not None and config.sharing != "all":
        state["rank"].refuse("null where not all edges share a network")
    if config.least_weights > n_entries:
        state.refuse(
            f"a network of the {n_entries:,} weights in the file", f"{config.least_weights:,} or more"
        )
    return config


def network_features(network: Any, encoder: CovariateEncoder) -> Features:
    """A network up to its last hidden layer or, where it mixes, to the logits of the shares."""
    arrays = {name.removeprefix("field/"): value for name, value in to_arrays(network, "field").items()}
    tables = []
    for i, _ in enumerate(encoder.categorical):
        table = arrays[f"embedding.tables.{i}"]
        tables.append(np.vstack([table, arrays[f"embedding.shares_{i}"][None] @ table]))

    def affine(name: str) -> tuple[str, NDArray, NDArray]:
        return ("affine", arrays[f"{name}.weight"][0], arrays[f"{name}.bias"][0, 0])

    steps: list[tuple[Any, ...]] = []
    if network.config.network != "linear":
        steps += [_first(arrays, *affine("backbone.first.dense")), ("relu",)]
        if network.config.network == "residual":
            steps += [affine("backbone.narrow"), ("join",)]
        steps += [affine("backbone.second"), ("relu",)]
    if "bottleneck.weight" in arrays:
        steps.append(affine("bottleneck"))
    return Features(Inputs.of(encoder, tables), steps)


def _first(
    arrays: dict[str, NDArray], name: str, weight: NDArray, bias: NDArray
) -> tuple[str, NDArray, NDArray]:
    """The first layer with its batch norm, which is affine once training is over."""
    norm = {key: arrays.get(f"backbone.first.norm.{key}") for key in ("weight", "bias")}
    if norm["weight"] is None or norm["bias"] is None:
        return name, weight, bias
    mean = arrays["backbone.first.norm.running_mean"].astype(np.float64)
    spread = np.sqrt(arrays["backbone.first.norm.running_var"].astype(np.float64) + _BATCH_NORM_EPS)
    factor = norm["weight"] / spread
    return name, weight * factor, (bias - mean) * factor + norm["bias"]


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
            weights[start : start + len(precision)] = coef_from_precision(precision)
            start += len(precision)
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
        if not are_positive_definite(matrices):
            arrays.refuse("archetypes", "positive definite, each of them", "one that is not")
        state["network"]["rank"].whole(len(matrices), len(matrices))
        config = read_config(state["network"], common.schema, arrays.n_entries())
        gate = from_arrays(GateField, config, weights)
        mean = NeuralMean.from_state(common, config, state, arrays)
        return cls(common, gate, torch.from_numpy(order), torch.from_numpy(matrices), mean)
