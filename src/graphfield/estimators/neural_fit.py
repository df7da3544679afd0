"""From standardised samples to fitted neural fields, for one estimator or several together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.data.moving_scales import MovingScales
from graphfield.data.nodes import row_blocks
from graphfield.data.row_store import take_rows
from graphfield.estimators.moving_means import MovingMean, fit_means
from graphfield.estimators.neural import residual_scale, residuals
from graphfield.estimators.training_jobs import Job
from graphfield.estimators.ways import Edges, Way
from graphfield.nn.fields import Samples
from graphfield.nn.long_rows import ROWS_AT_A_TIME, empty_rows, gather
from graphfield.nn.threads import one_thread_each
from graphfield.solvers.scale_choice import ScaleRows, learn_node_scales, learn_scales, row_step
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.config import TrainingConfig


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
        job, own = jobs[i], data.member(i)
        scale = residual_scale(edges.judged, own, job.rows, job.held_out)
        moving = _moving_scales(learn_scales, job, own, features, partial(residuals, edges.judged, own))
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
    found = [_prepared(job, data, mean, features) for job, mean in zip(jobs, means, strict=True)]
    lefts, scales, values = zip(*found, strict=True)
    if any(x is not data.x for x in values):
        data = replace(data, x=values[0] if len(values) == 1 else torch.stack(values))
    return means, list(lefts), list(scales), data


def _prepared(
    job: Job, data: Samples, mean: MovingMean | None, features: NDArray[np.float64] | None
) -> tuple[Tensor | None, MovingScales | None, Tensor]:
    """Subtract mu(z) and divide by scales that move with z; where neither is there, all stays as it is.

    What the mean leaves is brought back to unit variance, so that the penalty means the same.
    """
    left, x = None, data.x
    if mean is not None:
        x = empty_rows(len(x), x.shape[1], x)
        for rows in row_blocks(*x.shape):
            own = None if features is None else features[rows]
            x[rows] = data.x[rows] - mean.at(data.take(rows), own)
        if job.rescale:
            left = _spread(x, job.rows)
            for rows in row_blocks(*x.shape):
                x[rows] /= left.to(torch.float32)
    scales = _moving_scales(learn_node_scales, job, data, features, partial(gather, x))
    if scales is not None:
        assert features is not None
        whole, x = x, empty_rows(len(x), x.shape[1], x)
        for rows in row_blocks(*x.shape):
            x[rows] = whole[rows] / torch.as_tensor(scales.at(features[rows]), dtype=x.dtype, device=x.device)
    return left, scales, x


def _spread(x: Tensor, rows: Tensor) -> Tensor:
    """Standard deviations at these rows, in double precision, (p,)."""
    parts, total = rows.split(ROWS_AT_A_TIME), x.new_zeros(2, x.shape[1], dtype=torch.float64)
    for part in parts:
        total[0] += x[part].double().sum(dim=0)
    for part in parts:
        total[1] += (x[part].double() - total[0] / len(rows)).square().sum(dim=0)
    return (total[1] / len(rows)).sqrt()


def _moving_scales(
    learn: Callable[[ScaleRows], MovingScales | None],
    job: Job,
    data: Samples,
    features: NDArray[np.float64] | None,
    values: Callable[[Tensor], Tensor],
) -> MovingScales | None:
    """Of values at the rows that they are asked for."""
    if features is None:
        return None
    step = row_step(len(job.rows), data.x.shape[1])
    parts = [part[::step] for part in job.parts]
    fold = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    chosen = torch.cat(parts)
    rows = chosen.cpu().numpy()
    units = rows if job.labels is None else job.labels[rows]  # copies of a row go together
    nodes, n_numeric = values(chosen).cpu().numpy(), data.numeric.shape[1]
    return learn(ScaleRows(nodes, take_rows(features, rows), n_numeric, fold, units))
