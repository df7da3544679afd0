"""Our side of every comparison: the only place that knows how the training engine is called."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import torch

from graphfield.data.splits import cross_parts
from graphfield.estimators.dnncgm import DNNCGM
from graphfield.estimators.dnncgm_setup import DEFAULT_PENALTY, chosen_penalty, gate_training, training_config
from graphfield.experiments.bench.machine import synchronize
from graphfield.experiments.bench.problems import Problem, Table
from graphfield.experiments.bench.straightforward import DROP_EVERY, DROP_FACTOR, LEARNING_RATE
from graphfield.nn.backbone import CovariateShape
from graphfield.nn.fields import CoefField, FieldConfig, Samples
from graphfield.nn.pack import Pack, packed
from graphfield.training.checkpoint import Snapshot
from graphfield.training.config import TrainingConfig
from graphfield.training.engines import make_engine
from graphfield.training.loop import TrainingRun
from graphfield.training.mixture import RANKS, MixtureFits, MixtureTask
from graphfield.training.plan import Member, Plan, Seeds

_ENDLESS = 10**9


def our_steps(
    problem: Problem, X: Table, Z: Table, device: torch.device, penalty: float = 0.0, n_fits: int = 1
) -> Callable[[int], None]:
    """Move the data to the device; the result runs that many training steps and waits for them.

    Several fits train together, each with batches of its own.
    """
    config = TrainingConfig(
        batch_size=problem.batch,
        max_steps=_ENDLESS,
        min_steps=0,
        evaluate_every=_ENDLESS,
        learning_rate=LEARNING_RATE,
        schedule=("step", DROP_EVERY, DROP_FACTOR),
        patience=None,
    )
    shape = field_config(problem, penalty)
    fields = [CoefField(shape, torch.Generator().manual_seed(seed)) for seed in range(n_fits)]
    field = packed(fields).to(device).train()
    data = make_samples(X, Z, device)
    rows = torch.arange(len(data), device=device)
    members = [Member(rows, rows[:0], 2 * i, 2 * i + 1) for i in range(n_fits)]
    engine = make_engine(Pack(field), data, config)
    plan = Plan(members, field, config, device)
    done = 0

    def steps(count: int) -> None:
        nonlocal done
        last = done + count
        while done < last:
            now = min(plan.chunk, last - done)
            engine.run(plan.draw(done, now))
            done += now
        synchronize(device)

    return steps


class _ReachedError(Exception):
    """The loss that was asked for."""


class _Watch:
    """Takes the place of a checkpoint: notes time and loss of every round, the gate's training included."""

    def __init__(self, start: float, until: float) -> None:
        self.start, self.until = start, until
        self.curve: list[tuple[float, float]] = []

    def load(self, device: torch.device) -> None:
        """Nothing was kept."""

    def save(self, snapshot: Snapshot) -> None:
        loss = float(snapshot.record["standings"][0]["trace"]["held_out_loss"][-1])
        self.curve.append((time.perf_counter() - self.start, loss))
        if loss <= self.until:
            raise _ReachedError


def our_curve(
    model: DNNCGM, X: Table, Z: Table, X_val: Table, Z_val: Table, device: torch.device, until: float
) -> list[tuple[float, float]]:
    """Seconds since the start and held-out loss at each evaluation, up to the first at ``until``.

    Trains as ``model`` is configured, but on x and z as they are (``center="none"``,
    ``standardize=False``), so that losses can be compared; the held-out loss has no penalty.
    """
    start = time.perf_counter()
    problem = Problem(len(X), X.shape[1], Z.shape[1], model.hidden_size, 0, dropout=model.dropout)
    penalty = chosen_penalty(model)
    shape = field_config(problem, DEFAULT_PENALTY if penalty is None else penalty)
    data = make_samples(np.concatenate([X, X_val]), np.concatenate([Z, Z_val]), device)
    rows = torch.arange(len(data), device=device)
    train, held_out = rows[: len(X)], rows[len(X) :]
    if model.rank is not None:
        watch = _Watch(start, until)
        parts = tuple(train[torch.as_tensor(part)] for part in cross_parts(np.arange(len(X)), None))
        task = MixtureTask(parts, held_out, Seeds(0, 1, 2), penalty)
        with suppress(_ReachedError):
            MixtureFits(shape, data, [task], gate_training(model, len(X)), RANKS, watch).run()
        return watch.curve
    field = CoefField(shape, torch.Generator().manual_seed(0)).to(device)
    member = Member(train, held_out, 0, 1)
    run = TrainingRun(field, data, [member], training_config(model, len(X)), False, None)
    curve: list[tuple[float, float]] = []
    while run.active:
        run.window()
        loss = run.results[0].curve.held_out_loss[-1]
        curve.append((time.perf_counter() - start, loss))
        if loss <= until:
            break
    return curve


def make_samples(X: Table, Z: Table, device: torch.device) -> Samples:
    codes = torch.zeros(len(Z), 0, dtype=torch.int64)
    return Samples(
        torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(Z, dtype=torch.float32), codes
    ).to(device)


def field_config(problem: Problem, penalty: float = 0.0) -> FieldConfig:
    return FieldConfig(
        n_nodes=problem.n_nodes,
        covariates=CovariateShape(problem.n_covariates, ()),
        network="residual",
        sharing="all",
        hidden_size=problem.hidden,
        dropout=problem.dropout,
        batch_norm=problem.batch_norm,
        loss="squared",
        penalty=penalty,
    )
