"""Coefficients that mix a few sparse patterns, which are found in turn with their shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd

from graphfield.estimators.neural_fit import Edges, Way, member_samples
from graphfield.estimators.training_jobs import Job
from graphfield.nn.fields import Samples
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.finished_mixture import finished
from graphfield.training.mixture import MixtureTask, fit_mixtures


@dataclass(frozen=True)
class MixedPatterns(Way):
    """``training`` is that of the network that gives the shares; ``ranks`` are the numbers to try."""

    ranks: tuple[int, ...]
    additive: bool = False  # whether few rows may prefer edges that follow single covariates

    name: ClassVar[str] = "patterns"

    @property
    def rank(self) -> int:
        """How many patterns there will be is not known yet: the first number to try."""
        return self.ranks[0]

    def fit(
        self,
        jobs: Sequence[Job],
        data: Samples,
        folder: CheckpointFolder | None,
        *,
        compete: bool,  # noqa: ARG002
    ) -> list[Edges]:
        tasks = [
            MixtureTask(
                job.parts,
                job.held_out,
                (job.seeds[3], job.seeds[4], job.seeds[5]),
                job.penalty,
                None if job.start is None else job.start.gate(),
                job.units(len(data)),
            )
            for job in jobs
        ]
        stage = folder.stage("edges") if folder is not None else None
        config = replace(jobs[0].config, rank=None)
        standings = fit_mixtures(config, data, tasks, self.training, self.ranks, stage)
        fitted = []
        for i, (job, task, standing) in enumerate(zip(jobs, tasks, standings, strict=True)):
            chosen = standing.chosen
            assert chosen is not None
            own = member_samples(data, i)
            done = finished(chosen, job.config, own, task, self.training, additive=self.additive)
            history = pd.DataFrame(vars(standing.trace)).astype({"held_out_loss": float})
            steps = standing.trace.step[-1], chosen.step
            coef = done.judged if job.spares_held_out else done.field
            fitted.append(
                Edges(
                    coef, done.judged, history, *steps, done.penalty, done.variation, additive=done.additive
                )
            )
        return fitted
