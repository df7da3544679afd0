"""From standardised samples to fitted neural fields, for one estimator or several together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.data.moving_scales import MovingScales
from graphfield.data.nodes import row_blocks
from graphfield.estimators.neural import evaluate_mean, residual_scale, residuals
from graphfield.estimators.starting_point import StartingPoint
from graphfield.nn.fields import CoefField, Field, FieldConfig, MeanField, Samples, mean_config
from graphfield.nn.pack import load_member_arrays, member_arrays, packed, unpacked
from graphfield.nn.threads import one_thread_each
from graphfield.solvers.node_scales import learn_node_scales
from graphfield.solvers.scale_choice import ScaleRows, learn_scales, row_step, standard_errors
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.config import TrainingConfig
from graphfield.training.loop import TrainingResult, train
from graphfield.training.plan import Member
from graphfield.training.supported_variation import is_few

# A mean that moves with z is kept when it lowers the loss of rows that it was found without by so many
# standard errors.
_MEAN_EVIDENCE = 2.0

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


@dataclass(frozen=True)
class Edges:
    """Coefficients of one job, and how they were found."""

    coef: CoefField
    judged: CoefField  # as held-out rows judged it: without these, where ``coef`` has them
    history: pd.DataFrame
    n_steps: int
    best_step: int
    penalty: float
    variation: float = 1.0  # the share of the patterns' variation that was kept
    lost: bool = False


@dataclass(frozen=True)
class Way(ABC):
    """How coefficients are fitted, once nodes have no mean and one scale; and why in this way."""

    training: TrainingConfig
    reason: str

    name: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})"

    @property
    def rank(self) -> int | None:
        """Patterns, where there are any."""
        return None

    @abstractmethod
    def fit(
        self, jobs: Sequence[Job], data: Samples, folder: CheckpointFolder | None, *, compete: bool
    ) -> list[Edges]:
        """All jobs together; one that competes may be dropped for another."""


@dataclass(frozen=True)
class Fitted:
    """What comes out for one job."""

    mean: MeanField | None
    left: Tensor | None  # standard deviations after the mean was taken out, where x was divided by them
    scales: MovingScales | None  # what x was divided by then
    edges: Edges
    scale: NDArray[np.float64]  # residual standard deviations, in standard units
    residual_scales: MovingScales | None  # in units of ``scale``


@one_thread_each()
def fit_fields(
    jobs: Sequence[Job],
    data: Samples,
    way: Way,
    training: TrainingConfig,
    center: str,
    folder: CheckpointFolder | None = None,
    *,
    features: NDArray[np.float64] | None = None,
    compete: bool = False,
) -> list[Fitted]:
    """First the means and scales, where they may move with z, then the coefficients, all jobs together.

    ``training`` is that of the means. Scales may move with ``features`` of the covariates.
    """
    means: list[MeanField | None] = [None] * len(jobs)
    if center == "covariates":
        means = _fit_means(jobs, data, training, folder)
    lefts, data = _centred(jobs, means, data)
    scales, data = _scaled(jobs, data, features)
    fitted = []
    for i, edges in enumerate(way.fit(jobs, data, folder, compete=compete)):
        job, own = jobs[i], member_samples(data, i)
        scale = residual_scale(edges.judged, own, job.rows, job.held_out)
        moving = _residual_scales(job, edges.judged, own, features)
        fitted.append(Fitted(means[i], lefts[i], scales[i], edges, scale, moving))
    return fitted


def _mean_field(job: Job) -> MeanField:
    field = MeanField(mean_config(job.config), torch.Generator().manual_seed(job.seeds[0]))
    return field if job.start is None or job.start.mean is None else begin_at(field, job.start.mean)


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


def _fit_means(
    jobs: Sequence[Job], data: Samples, training: TrainingConfig, folder: CheckpointFolder | None
) -> list[MeanField | None]:
    """mu(z), or None where rows that it was found without give no evidence that the mean moves with z."""
    fields = [_mean_field(job) for job in jobs]
    members = [Member(job.rows, job.held_out, job.seeds[1], job.seeds[2]) for job in jobs]
    fields, _ = train_fields(fields, data, members, training, "Mean", folder, stage="mean")
    judged = _judged_means(jobs, fields, data, training, folder)
    return [
        field if _moves(own, data, job.units(len(data))) else None
        for field, own, job in zip(fields, judged, jobs, strict=True)
    ]


def _judged_means(
    jobs: Sequence[Job],
    fields: Sequence[MeanField],
    data: Samples,
    training: TrainingConfig,
    folder: CheckpointFolder | None,
) -> list[list[tuple[MeanField, Tensor]]]:
    """For each job, means and the rows that judge them: those held out or, where these are few, the others.

    They do so part by part, by means that were trained without that part.
    """
    few = [
        i
        for i, job in enumerate(jobs)
        if len(job.held_out) > 1 and is_few(job.units(len(data))[job.held_out])
    ]
    parts = [(jobs[i], part) for i in few for part in range(len(jobs[i].parts))]
    members = [
        Member(_rows_without(job, part), job.held_out, job.seeds[1] + part, job.seeds[2] + part)
        for job, part in parts
    ]
    judged = [[(field, job.held_out)] for field, job in zip(fields, jobs, strict=True)]
    if parts:
        means = [_mean_field(job) for job, _ in parts]
        means, _ = train_fields(means, data, members, training, "Mean, judged", folder, stage="judged mean")
    for i in few:
        judged[i] = [(means.pop(0), rows) for rows in jobs[i].parts]
    return judged


def _rows_without(job: Job, part: int) -> Tensor:
    return torch.cat([rows for other, rows in enumerate(job.parts) if other != part])


@torch.no_grad()
def _moves(judged: Sequence[tuple[MeanField, Tensor]], data: Samples, units: Tensor) -> bool:
    gains = []
    for field, rows in judged:
        held_out = data.take(rows)
        moved = (held_out.x - evaluate_mean(field, held_out)).square().mean(dim=1)
        gains.append(held_out.x.square().mean(dim=1) - moved)
    gain, own = torch.cat(gains).double().cpu().numpy(), units[torch.cat([rows for _, rows in judged])]
    if len(gain) < 2:
        return True
    error = standard_errors(gain[:, None], np.unique(own.cpu().numpy(), return_inverse=True)[1])[0]
    return float(gain.mean()) > _MEAN_EVIDENCE * error


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


def _scaled(
    jobs: Sequence[Job], data: Samples, features: NDArray[np.float64] | None
) -> tuple[list[MovingScales | None], Samples]:
    """Divide by scales that move with z; where none does, all stays as it is."""
    if features is None:
        return [None] * len(jobs), data
    members = [member_samples(data, i) for i in range(len(jobs))]
    scales = [
        _moving_scales(learn_node_scales, job, own, features, own.x.__getitem__)
        for job, own in zip(jobs, members, strict=True)
    ]
    if all(own is None for own in scales):
        return scales, data
    values = []
    for member, own in zip(members, scales, strict=True):
        x = member.x
        if own is not None:
            x = x.clone()
            for rows in row_blocks(*x.shape):
                x[rows] /= torch.as_tensor(own.at(features[rows]), dtype=x.dtype, device=x.device)
        values.append(x)
    return scales, replace(data, x=values[0] if len(values) == 1 else torch.stack(values))


def _residual_scales(
    job: Job, coef: CoefField, data: Samples, features: NDArray[np.float64] | None
) -> MovingScales | None:
    if features is None:
        return None
    return _moving_scales(learn_scales, job, data, features, lambda rows: residuals(coef, data, rows))


def _moving_scales(
    learn: Callable[[ScaleRows], MovingScales | None],
    job: Job,
    data: Samples,
    features: NDArray[np.float64],
    values: Callable[[Tensor], Tensor],
) -> MovingScales | None:
    """Of values at the rows that they are asked for."""
    step = row_step(len(job.rows), data.x.shape[1])
    parts = [part[::step] for part in job.parts]
    fold = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    chosen = torch.cat(parts)
    rows = chosen.cpu().numpy()
    units = rows if job.labels is None else job.labels[rows]  # copies of a row go together
    nodes, n_numeric = values(chosen).cpu().numpy(), data.numeric.shape[1]
    return learn(ScaleRows(nodes, features[rows], n_numeric, fold, units))


def member_samples(data: Samples, member: int) -> Samples:
    """The rows as one of several jobs has them."""
    return data if data.x.ndim == 2 else replace(data, x=data.x[member])
