"""The two ways of fitting coefficients: weights of their own for every edge, or patterns that are mixed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd
import torch

from graphfield.estimators.training_jobs import Job, begin_at, train_fields
from graphfield.nn.fields import CoefField, Samples
from graphfield.training.checkpoint import CheckpointFolder
from graphfield.training.config import TrainingConfig
from graphfield.training.finished_mixture import LastStep
from graphfield.training.mixture import Again, MixtureFits, MixtureTask
from graphfield.training.plan import Member


@dataclass(frozen=True)
class Edges:
    """Coefficients of one job, and how they were found."""

    coef: CoefField
    judged: CoefField  # as held-out rows judged it: without these, where ``coef`` has them
    history: pd.DataFrame
    n_steps: int
    best_step: int
    penalty: float
    kept_share: float = 1.0  # the share of the patterns' variation that was kept
    lost: bool = False
    additive: bool = False  # edges follow single covariates
    again: Again | None = None  # how patterns are found from other responses


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
class FullHead(Way):
    """Every edge has weights of its own on all hidden units."""

    name: ClassVar[str] = "full head"

    def fit(
        self, jobs: Sequence[Job], data: Samples, folder: CheckpointFolder | None, *, compete: bool
    ) -> list[Edges]:
        fields = [_coef_field(job) for job in jobs]
        members = [
            Member(job.rows, job.held_out, job.edge_seeds.order, job.edge_seeds.dropout) for job in jobs
        ]
        fields, results = train_fields(
            fields, data, members, self.training, "Graphs", folder, stage="edges", compete=compete
        )
        found = []
        for job, coef, result in zip(jobs, fields, results, strict=True):
            history, steps = pd.DataFrame(vars(result.curve)), (result.n_steps, result.best_step)
            found.append(Edges(coef, coef, history, *steps, job.config.penalty, lost=result.lost))
        return found


def _coef_field(job: Job) -> CoefField:
    field = CoefField(job.config, torch.Generator().manual_seed(job.edge_seeds.weights))
    return field if job.start is None or job.start.additive else begin_at(field, job.start.coef)


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
                job.edge_seeds,
                job.penalty,
                None if job.start is None else job.start.gate(),
                job.units(len(data)),
                job.nodes,
                job.answers,
            )
            for job in jobs
        ]
        stage = folder.stage("edges") if folder is not None else None
        config = replace(jobs[0].config, rank=None)
        standings = MixtureFits(config, data, tasks, self.training, self.ranks, stage).run()
        fitted = []
        for i, (job, task, standing) in enumerate(zip(jobs, tasks, standings, strict=True)):
            chosen = standing.chosen
            assert chosen is not None
            last = LastStep(chosen, job.config, data.member(i), task, self.training)
            done = last.finish(additive=self.additive)
            history = pd.DataFrame(vars(standing.trace)).astype({"held_out_loss": float})
            steps = standing.trace.step[-1], chosen.step
            coef = done.judged if job.spares_held_out else done.field
            kept, how = (done.penalty, done.kept_share), (done.additive, done.again)
            fitted.append(Edges(coef, done.judged, history, *steps, *kept, False, *how))
        return fitted
