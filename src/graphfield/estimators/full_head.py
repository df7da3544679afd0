"""Coefficients with weights of their own for every edge, trained step by step: the model of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch

from graphfield.estimators.neural_fit import Edges, Way
from graphfield.estimators.training_jobs import Job, begin_at, train_fields
from graphfield.nn.fields import CoefField, Samples
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.plan import Member


@dataclass(frozen=True)
class FullHead(Way):
    """Every edge has weights of its own on all hidden units."""

    name: ClassVar[str] = "full head"

    def fit(
        self, jobs: Sequence[Job], data: Samples, folder: CheckpointFolder | None, *, compete: bool
    ) -> list[Edges]:
        fields = [_coef_field(job) for job in jobs]
        members = [Member(job.rows, job.held_out, job.seeds[4], job.seeds[5]) for job in jobs]
        fields, results = train_fields(
            fields, data, members, self.training, "Graphs", folder, stage="edges", compete=compete
        )
        found = []
        for job, coef, result in zip(jobs, fields, results, strict=True):
            history, steps = pd.DataFrame(vars(result.curve)), (result.n_steps, result.best_step)
            found.append(Edges(coef, coef, history, *steps, job.config.penalty, lost=result.lost))
        return found


def _coef_field(job: Job) -> CoefField:
    field = CoefField(job.config, torch.Generator().manual_seed(job.seeds[3]))
    return field if job.start is None or job.start.additive else begin_at(field, job.start.coef)
