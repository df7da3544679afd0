"""Fits that train together: what each of them is, and their networks as one pack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.estimators.starting_point import StartingPoint
from graphfield.nn.fields import Field, FieldConfig, Samples
from graphfield.nn.pack import load_member_arrays, member_arrays, packed, unpacked
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.config import TrainingConfig
from graphfield.training.loop import TrainingResult, train
from graphfield.training.plan import Member

F = TypeVar("F", bound=Field)


@dataclass(frozen=True)
class Job:
    """One of the fits: its network, its rows, its random streams, the weights to start from."""

    config: FieldConfig
    rows: Tensor
    held_out: Tensor  # may be empty
    seeds: tuple[int, ...]  # mean: weights, order, dropout; edges: the same
    start: StartingPoint | None
    rescale: bool  # nodes to unit variance once the mean is taken out
    parts: tuple[Tensor, ...]  # the rows again, in parts for cross-fitting
    penalty: float | None  # on patterns; None: chosen on held-out rows
    spares_held_out: bool  # the held-out rows are the user's own, which train nothing
    labels: NDArray | None = None  # of groups, one for each row of the samples

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
