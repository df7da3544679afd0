"""Fits that train together: what each is, the weights it begins at, and their networks as one pack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.estimators.neural import network_name
from graphfield.exceptions import DataError, ParameterError, listing
from graphfield.fields import Schema
from graphfield.nn.fields import CoefField, Field, FieldConfig, MeanField, Samples
from graphfield.nn.pack import load_member_arrays, member_arrays, packed, unpacked
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.config import TrainingConfig
from graphfield.training.loop import TrainingResult, train
from graphfield.training.plan import Member, Seeds


@dataclass(frozen=True)
class StartingPoint:
    """What another fit takes over from a fitted model, and what must agree for it."""

    names: dict[str, list[str]]
    levels: list[list[str]]
    coef: CoefField
    mean: MeanField | None
    marginals: str
    mean_has_effects: bool  # main effects beside the network of the mean, or in its place
    additive: bool  # edges follow single covariates, with weights that were not trained: no place to begin

    @classmethod
    def of(cls, model: Any) -> StartingPoint:
        field = getattr(model, "field_", None)
        network = getattr(field, "network", None)
        if hasattr(field, "blocks"):
            raise ParameterError.of(
                "start", "must be a DNNCGM of nodes that are numbers; this one has others, too."
            )
        if not isinstance(network, CoefField):
            raise ParameterError.of(
                "start", f"must be a fitted DNNCGM, got {type(model).__name__} (not fitted?)."
            )
        schema, mean = model.field_.schema, model.field_.mean
        names, has_effects = (_names(schema), _levels(schema)), mean.effects is not None
        return cls(*names, network, mean.network, _marginals(schema), has_effects, model.additive_)

    def has_mean_like(self, network: MeanField | None, *, effects: bool) -> bool:
        """Whether its mean, if it moves, is of that kind: weights of edges are those of what it leaves."""
        own = self.mean is not None, self.mean_has_effects
        return not any(own) or own == (network is not None, effects)

    def gate(self) -> dict[str, Tensor] | None:
        """Weights of the network without its head."""
        if self.additive:
            return None
        arrays = member_arrays(self.coef)
        return {name: value for name, value in arrays.items() if not name.startswith("head.")}

    def check(self, schema: Schema, config: FieldConfig) -> None:
        """Raise unless a model of these nodes and covariates can begin at these weights."""
        for what, mine in _names(schema).items():
            if self.names[what] != mine:
                raise DataError.of(
                    "start",
                    f"was fitted to other {what}: {listing(self.names[what])} against {listing(mine)}.",
                )
        for known, own in zip(self.levels, _levels(schema), strict=True):
            if known != own:
                raise DataError.of(
                    "start",
                    f"knows other levels of a categorical covariate: {listing(known)} against "
                    f"{listing(own)}. Fit without start.",
                )
        own_marginals = _marginals(schema)
        if self.marginals != own_marginals:
            raise DataError.of(
                "start",
                f"is a model of {_KINDS[self.marginals]}, this one of {_KINDS[own_marginals]}, and weights "
                f"do not mean the same there. Use marginals={self.marginals!r}, or fit without start.",
            )
        for name, mine in _architecture(config).items():
            theirs = _architecture(self.coef.config)[name]
            if theirs != mine and not (self.additive and name == "rank"):
                raise ParameterError.of(
                    "start",
                    f"has {name}={theirs!r}, this model {mine!r}; training can only begin at the "
                    "weights of the same network.",
                )


# What the weights of a network speak of.
_KINDS = {
    "raw": "nodes as they are",
    "normal": "normal scores",
    "log1p": "logarithms",
    "clr": "log-ratios",
}


def _architecture(config: FieldConfig) -> dict[str, Any]:
    return {
        "network": network_name(config),
        "sharing": config.sharing,
        "hidden_size": config.hidden_size,
        "rank": config.rank,
    }


def _names(schema: Schema) -> dict[str, list[str]]:
    return {"node names": list(schema.node_names), "covariate names": list(schema.encoder.names)}


def _levels(schema: Schema) -> list[list[str]]:
    return [[str(level) for level in column.levels] for column in schema.encoder.categorical]


def _marginals(schema: Schema) -> str:
    return schema.marginals


F = TypeVar("F", bound=Field)


@dataclass(frozen=True)
class Job:
    """One of the fits: its network, its rows, its random streams, the weights to start from."""

    config: FieldConfig
    rows: Tensor
    held_out: Tensor  # may be empty
    mean_seeds: Seeds
    edge_seeds: Seeds
    start: StartingPoint | None
    rescale: bool  # nodes to unit variance once the mean is taken out
    parts: tuple[Tensor, ...]  # the rows again, in parts for cross-fitting
    penalty: float | None  # on patterns; None: chosen on held-out rows
    spares_held_out: bool  # the held-out rows are the user's own, which train nothing
    labels: NDArray | None = None  # of groups, one for each row of the samples
    nodes: Tensor | None = None  # the node that owns each column of x, where some own several
    answers: Tensor | None = None  # whether each column of x is explained by others, where some are not

    def units(self, n_rows: int) -> Tensor:
        """Labels of groups; without any, and among the user's own held-out rows, each row is on its own."""
        units = np.arange(n_rows)
        if self.labels is not None:
            units += len(self.labels)
            units[: len(self.labels)] = self.labels
        return torch.as_tensor(units, device=self.rows.device)


def begin_at(field: F, other: F) -> F:
    """With the weights of the other."""
    load_member_arrays(field, {name: value.cpu() for name, value in member_arrays(other).items()})
    return field


def train_fields(
    fields: list[F],
    data: Samples,
    members: list[Member],
    training: TrainingConfig,
    description: str,
    folder: CheckpointFolder | None,
    *,
    stage: str,
    compete: bool = False,
) -> tuple[list[F], list[TrainingResult]]:
    """Fields trained as one pack."""
    field = packed(fields).to(data.x.device)
    results = train(
        field,
        data,
        members,
        training,
        description=description,
        compete=compete,
        checkpoint=folder.stage(stage) if folder is not None else None,
    )
    fields = unpacked(field)
    for own, member in zip(fields, members, strict=True):
        own.embedding.settle_untrained(data.codes[member.rows])
    return fields, results
