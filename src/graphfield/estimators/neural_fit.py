"""From standardised samples to fitted neural fields, for one estimator or several together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.data.moving_scales import MovingScales
from graphfield.data.nodes import row_blocks
from graphfield.estimators.moving_means import MovingMean, fit_means
from graphfield.estimators.neural import residual_scale, residuals
from graphfield.estimators.training_jobs import Job
from graphfield.nn.fields import CoefField, Samples
from graphfield.nn.threads import one_thread_each
from graphfield.solvers.node_scales import learn_node_scales
from graphfield.solvers.scale_choice import ScaleRows, learn_scales, row_step
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.config import TrainingConfig


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
    additive: bool = False  # edges follow single covariates


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

    mean: MovingMean | None
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
    means, lefts, scales, data = take_out_levels(jobs, data, training, center, folder, features)
    fitted = []
    for i, edges in enumerate(way.fit(jobs, data, folder, compete=compete)):
        job, own = jobs[i], member_samples(data, i)
        scale = residual_scale(edges.judged, own, job.rows, job.held_out)
        moving = _residual_scales(job, edges.judged, own, features)
        fitted.append(Fitted(means[i], lefts[i], scales[i], edges, scale, moving))
    return fitted


def take_out_levels(
    jobs: Sequence[Job],
    data: Samples,
    training: TrainingConfig,
    center: str,
    folder: CheckpointFolder | None,
    features: NDArray[np.float64] | None,
) -> tuple[list[MovingMean | None], list[Tensor | None], list[MovingScales | None], Samples]:
    """Means and scales of each job, where they may move with z, and the rows without them."""
    means: list[MovingMean | None] = [None] * len(jobs)
    if center == "covariates":
        means = fit_means(jobs, data, training, folder, features)
    lefts, data = _centred(jobs, means, data, features)
    scales, data = _scaled(jobs, data, features)
    return means, lefts, scales, data


def _centred(
    jobs: Sequence[Job],
    means: Sequence[MovingMean | None],
    data: Samples,
    features: NDArray[np.float64] | None,
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
            x = x - mean.at(data, features)
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
