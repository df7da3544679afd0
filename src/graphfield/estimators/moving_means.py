"""Means of the nodes that move with z: whether they do, and by a network, by main effects, or by both.

Main effects (a line of each number, a mean of each level) are least squares, so that means of levels are
taken out as they are. A network stops before it has found them exactly, and what it leaves looks like edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.estimators.neural import evaluate_mean
from graphfield.estimators.training_jobs import Job, begin_at, train_fields
from graphfield.nn.fields import MeanField, Samples, mean_config
from graphfield.numbers import is_clear, mean_and_error
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.config import TrainingConfig
from graphfield.training.plan import Member
from graphfield.training.supported_variation import is_few, rows_without

# Rows that a main effect is held back by: the mean of a level with one row is halved.
_RIDGE = 1.0
# Main effects at most: levels beyond are for the network.
_MAX_EFFECTS = 500
# Rows looked at together.
_BLOCK_ROWS = 8_192


@dataclass(frozen=True)
class MovingMean:
    """mu(z), in units of the nodes that it was found from."""

    network: MeanField | None
    effects: NDArray[np.float64] | None  # of features of the covariates, (m, p)

    def at(self, data: Samples, features: NDArray[np.float64] | None) -> Tensor:
        """(n, p)."""
        mean = evaluate_mean(self.network, data)
        if self.effects is None:
            return mean
        assert features is not None
        return mean + torch.as_tensor(features @ self.effects, dtype=mean.dtype, device=mean.device)


@dataclass(frozen=True)
class _Judged:
    """A network, the rows that it was trained on, and others."""

    network: MeanField
    known: Tensor
    new: Tensor
    data: Samples

    def bears(self, n_effects: int) -> bool:
        """Whether the known rows are enough for main effects."""
        return n_effects <= min(_MAX_EFFECTS, len(self.known) // 2)

    def means(self, features: NDArray[np.float64] | None) -> list[MovingMean]:
        """The network, with main effects of what it leaves, and these alone, all from the known rows."""
        found = [MovingMean(self.network, None)]
        if features is not None:
            for network in (self.network, None):
                found.append(MovingMean(network, self._main_effects(network, features)))
        return found

    def gains(self, features: NDArray[np.float64] | None) -> list[Tensor]:
        """By how much each kind of mean lowers the squared error of the new rows, (rows,)."""
        return [self._gain(mean, features) for mean in self.means(features)]

    def _gain(self, mean: MovingMean, features: NDArray[np.float64] | None) -> Tensor:
        parts = []
        for block, own in self._blocks(self.new, features):
            left = block.x - mean.at(block, own)
            parts.append((block.x.square() - left.square()).mean(dim=1).double())
        return torch.cat(parts)

    def _main_effects(self, network: MeanField | None, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Least squares of what a network leaves, (m, p); all but the constant are held back a little."""
        m = features.shape[1]
        gram = np.diag(np.where(np.arange(m) == 0, 1e-9 * len(self.known), _RIDGE))
        products = np.zeros((m, self.data.x.shape[-1]))
        for block, W in self._blocks(self.known, features):
            assert W is not None
            left = block.x - evaluate_mean(network, block)
            gram += W.T @ W
            products += W.T @ left.double().cpu().numpy()
        return np.linalg.solve(gram, products)

    def _blocks(
        self, rows: Tensor, features: NDArray[np.float64] | None
    ) -> Iterator[tuple[Samples, NDArray[np.float64] | None]]:
        """Some rows at a time, so that what is computed from them does not grow with the table."""
        for part in rows.split(_BLOCK_ROWS):
            yield self.data.take(part), None if features is None else features[part.cpu().numpy()]


def fit_means(
    jobs: Sequence[Job],
    data: Samples,
    training: TrainingConfig,
    folder: CheckpointFolder | None,
    features: NDArray[np.float64] | None,
) -> list[MovingMean | None]:
    """mu(z), or None where rows that it was found without give no evidence that the mean moves with z."""
    fields = [_mean_field(job) for job in jobs]
    members = [Member(job.rows, job.held_out, job.mean_seeds.order, job.mean_seeds.dropout) for job in jobs]
    fields, _ = train_fields(fields, data, members, training, "Mean", folder, stage="mean")
    judged = _judged_means(jobs, fields, data, training, folder)
    return [
        _choose(_Judged(field, job.rows, job.held_out, data), own, features, job)
        for field, own, job in zip(fields, judged, jobs, strict=True)
    ]


def _mean_field(job: Job) -> MeanField:
    field = MeanField(mean_config(job.config), torch.Generator().manual_seed(job.mean_seeds.weights))
    return field if job.start is None or job.start.mean is None else begin_at(field, job.start.mean)


def _judged_means(
    jobs: Sequence[Job],
    fields: Sequence[MeanField],
    data: Samples,
    training: TrainingConfig,
    folder: CheckpointFolder | None,
) -> list[list[_Judged]]:
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
        Member(
            rows_without(job.parts, part),
            job.held_out,
            job.mean_seeds.order + part,
            job.mean_seeds.dropout + part,
        )
        for job, part in parts
    ]
    judged = [[_Judged(field, job.rows, job.held_out, data)] for field, job in zip(fields, jobs, strict=True)]
    if parts:
        means = [_mean_field(job) for job, _ in parts]
        means, _ = train_fields(means, data, members, training, "Mean, judged", folder, stage="judged mean")
    for i in few:
        judged[i] = [
            _Judged(means.pop(0), rows_without(jobs[i].parts, part), rows, data)
            for part, rows in enumerate(jobs[i].parts)
        ]
    return judged


def _choose(
    own: _Judged, judged: Sequence[_Judged], features: NDArray[np.float64] | None, job: Job
) -> MovingMean | None:
    """The kind of mean that predicts unseen rows best, found from all known rows; None: it does not move."""
    if features is not None and not all(one.bears(features.shape[1]) for one in (own, *judged)):
        features = None
    kinds = own.means(features)
    gains = [torch.cat(of_rows) for of_rows in zip(*(one.gains(features) for one in judged), strict=True)]
    like = [
        i
        for i, kind in enumerate(kinds)
        if job.start is None or job.start.has_mean_like(kind.network, effects=kind.effects is not None)
    ]
    best = max(like or [0], key=lambda kind: float(gains[kind].mean()) if len(gains[kind]) else 0.0)
    units = job.units(len(own.data))[torch.cat([one.new for one in judged])]
    return kinds[best] if _moves(gains[best], units) else None


def _moves(gain: Tensor, units: Tensor) -> bool:
    """Whether rows gain clearly; where there are next to none, a mean may move."""
    if len(gain) < 2:
        return True
    codes = np.unique(units.cpu().numpy(), return_inverse=True)[1]
    return bool(is_clear(*mean_and_error(gain.cpu().numpy(), codes)))
