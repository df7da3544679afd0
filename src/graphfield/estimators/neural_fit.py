"""From standardised samples to fitted neural fields, for one estimator or several together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from graphfield.estimators.neural import evaluate_mean
from graphfield.exceptions import DataError, ParameterError, listing
from graphfield.nn.fields import CoefField, Field, FieldConfig, MeanField, Samples, mean_config
from graphfield.nn.pack import load_member_arrays, member_arrays, packed, unpacked
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.config import TrainingConfig
from graphfield.training.loop import TrainingResult, train
from graphfield.training.plan import Member

# A mean that moves with z is kept when it lowers the held-out loss by this many standard errors.
_MEAN_EVIDENCE = 2.0

F = TypeVar("F", bound=Field)


@dataclass(frozen=True)
class Job:
    """One of the fits: its network, its rows, its random streams, the weights to start from."""

    config: FieldConfig
    rows: Tensor
    held_out: Tensor  # may be empty
    seeds: tuple[int, ...]  # mean: weights, order, dropout; edges: the same
    start: CoefField | None
    rescale: bool  # nodes to unit variance once the mean is taken out


@dataclass(frozen=True)
class Fitted:
    """What comes out for one job."""

    mean: MeanField | None
    coef: CoefField
    left: Tensor | None  # standard deviations after the mean was taken out, where x was divided by them
    data: Samples  # what the coefficient field was trained on
    training: TrainingResult


def fit_fields(
    jobs: Sequence[Job],
    data: Samples,
    training: TrainingConfig,
    center: str,
    folder: CheckpointFolder | None = None,
    *,
    compete: bool = False,
) -> list[Fitted]:
    """First the means, where they may move with z, then the coefficients, all jobs together."""
    means: list[MeanField | None] = [None] * len(jobs)
    if center == "covariates":
        means = _fit_means(jobs, data, training, folder)
    lefts, data = _centred(jobs, means, data)
    fields = [_coef_field(job) for job in jobs]
    members = [Member(job.rows, job.held_out, job.seeds[4], job.seeds[5]) for job in jobs]
    coefs, results = _train(fields, data, members, training, "Graphs", folder, stage="edges", compete=compete)
    own = [data] if len(jobs) == 1 else [_own(data, i) for i in range(len(jobs))]
    return [Fitted(*parts) for parts in zip(means, coefs, lefts, own, results, strict=True)]


def _coef_field(job: Job) -> CoefField:
    field = CoefField(job.config, torch.Generator().manual_seed(job.seeds[3]))
    if job.start is not None:
        load_member_arrays(field, {k: v.cpu() for k, v in member_arrays(job.start).items()})
    return field


def _train(
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
    return unpacked(field), results


def _fit_means(
    jobs: Sequence[Job], data: Samples, training: TrainingConfig, folder: CheckpointFolder | None
) -> list[MeanField | None]:
    """mu(z), or None where held-out rows give no evidence that the mean moves with z."""
    fields = [MeanField(mean_config(job.config), torch.Generator().manual_seed(job.seeds[0])) for job in jobs]
    members = [Member(job.rows, job.held_out, job.seeds[1], job.seeds[2]) for job in jobs]
    fields, _ = _train(fields, data, members, training, "Mean", folder, stage="mean")
    return [field if _moves(field, data, job) else None for field, job in zip(fields, jobs, strict=True)]


@torch.no_grad()
def _moves(field: MeanField, data: Samples, job: Job) -> bool:
    if len(job.held_out) < 2:
        return True
    held_out = data.take(job.held_out)
    moved = (held_out.x - evaluate_mean(field, held_out)).square().mean(dim=1)
    gain = held_out.x.square().mean(dim=1) - moved
    return float(gain.mean()) > _MEAN_EVIDENCE * float(gain.std()) / len(gain) ** 0.5


def _centred(
    jobs: Sequence[Job], means: Sequence[MeanField | None], data: Samples
) -> tuple[list[Tensor | None], Samples]:
    """Subtract mu(z); what is left is brought back to unit variance, so the penalty means the same."""
    if all(mean is None for mean in means):
        return [None] * len(jobs), data
    lefts: list[Tensor | None] = []
    values = []
    for job, mean in zip(jobs, means, strict=True):
        left = None
        x = data.x
        if mean is not None:
            x = x - evaluate_mean(mean, data)
            if job.rescale:
                left = x[job.rows].double().std(dim=0, correction=0)
                x /= left.to(torch.float32)
        lefts.append(left)
        values.append(x)
    x = values[0] if len(values) == 1 else torch.stack(values)
    return lefts, replace(data, x=x)


def check_start(start: Any, model: Any, config: FieldConfig) -> None:
    """Raise unless ``model`` can begin at the weights of ``start``."""
    field = getattr(start, "_coef_field", None)
    if not isinstance(field, CoefField):
        raise ParameterError(f"start must be a fitted DNNCGM, got {type(start).__name__}.")
    for what in ("node_names_", "covariate_names_"):
        if getattr(start, what) != getattr(model, what):
            raise DataError(
                f"start was fitted to other {what.strip('_').replace('_', ' ')}: "
                f"{listing(getattr(start, what))} against {listing(getattr(model, what))}."
            )
    mine, theirs = (_shape(c) for c in (config, field.config))
    for name, value in mine.items():
        if theirs[name] != value:
            raise ParameterError(
                f"start has {name}={theirs[name]!r}, this model {value!r}; training can only begin at "
                "the weights of the same network."
            )


def _shape(config: FieldConfig) -> dict[str, Any]:
    """What the weights depend on."""
    levels = [len(column) for column in config.covariates.level_shares]
    names = ("network", "sharing", "hidden_size", "rank", "batch_norm")
    return {name: getattr(config, name) for name in names} | {"levels per categorical covariate": levels}


def joined(data: Samples, more: Samples) -> Samples:
    """The rows of both."""
    return Samples(
        torch.cat([data.x, more.x]),
        torch.cat([data.numeric, more.numeric]),
        torch.cat([data.codes, more.codes]),
    )


def _own(data: Samples, member: int) -> Samples:
    return data if data.x.ndim == 2 else replace(data, x=data.x[member])
