"""Our side of every comparison: the only place that knows how the training engine is called."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from graphfield.estimators.dnncgm import DNNCGM
from graphfield.experiments.bench.machine import synchronize
from graphfield.experiments.bench.problems import Problem, Table
from graphfield.experiments.bench.straightforward import (
    DROP_EVERY,
    DROP_FACTOR,
    LEARNING_RATE,
    WEIGHT_DECAY,
    StraightforwardField,
)
from graphfield.nn.backbone import CovariateShape
from graphfield.nn.fields import CoefField, FieldConfig, Samples
from graphfield.training.config import TrainingConfig
from graphfield.training.loop import _Run

_ENDLESS = 10**9


def our_step(problem: Problem, X: Table, Z: Table, device: torch.device) -> Callable[[int], None]:
    """Move the data to the device; the result runs that many training steps and waits for them."""
    config = TrainingConfig(
        batch_size=problem.batch,
        max_steps=_ENDLESS,
        min_steps=0,
        evaluate_every=_ENDLESS,
        learning_rate=LEARNING_RATE,
        weight_decay=WEIGHT_DECAY,
        schedule=("step", DROP_EVERY, DROP_FACTOR),
        patience=None,
    )
    field = CoefField(_field_config(problem), torch.Generator().manual_seed(0)).to(device)
    run = _Run(field, _samples(X, Z, device), None, config, (0, 1), None)

    def steps(count: int) -> None:
        run.module.train()
        for _ in range(count):
            run._one_step()
        synchronize(device)

    return steps


def our_curve(
    model: DNNCGM, X: Table, Z: Table, X_val: Table, Z_val: Table, device: torch.device, until: float
) -> list[tuple[float, float]]:
    """Seconds since the start and held-out loss at each evaluation, up to the first at ``until``.

    Trains as ``model`` is configured, but on x and z as they are (``center="none"``,
    ``standardize=False``), so that losses can be compared; the held-out loss has no penalty.
    """
    start = time.perf_counter()
    problem = Problem(len(X), X.shape[1], Z.shape[1], model.hidden_size, 0, dropout=model.dropout)
    field = CoefField(_field_config(problem, penalty=model.penalty), torch.Generator().manual_seed(0)).to(
        device
    )
    config = model._training_config(len(X))
    held_out = _samples(X_val, Z_val, device)
    run = _Run(field, _samples(X, Z, device), held_out, config, (0, 1), None)
    curve: list[tuple[float, float]] = []
    while not run.finished:
        run.window()
        loss = run.curve.held_out_loss[-1]
        curve.append((time.perf_counter() - start, loss))
        if loss <= until:
            break
    return curve


def our_packed_steps(
    problem: Problem, X: Table, Z: Table, device: torch.device, n_fits: int
) -> Callable[[int], None]:
    """Like :func:`our_step` for ``n_fits`` models that train together as one."""
    raise NotImplementedError("packed training is not part of this version")


def with_weights_of(reference: StraightforwardField, problem: Problem) -> nn.Module:
    """Our field with the weights of a straightforward one (with biases): same coefficients, same loss."""
    field = CoefField(_field_config(problem), torch.Generator().manual_seed(0))
    backbone: Any = field.backbone
    pairs = [
        (backbone.first.dense, reference.first),
        (backbone.narrow, reference.narrow),
        (backbone.second, reference.second),
        (field.head, reference.head),
    ]
    with torch.no_grad():
        for ours, theirs in pairs:
            ours.weight.copy_(theirs.weight.T.reshape(ours.weight.shape))
            ours.bias.copy_(theirs.bias.reshape(ours.bias.shape))
    if problem.batch_norm:
        backbone.first.norm.load_state_dict(reference.norm.state_dict(), strict=False)
    return field


def coefficients_of(field: nn.Module, Z: Table) -> torch.Tensor:
    """beta(z) of our field in evaluation mode, (n, p, p)."""
    samples = _samples(Z[:, :0], Z, torch.device("cpu"))
    with torch.no_grad():
        return field.eval()(samples.numeric, samples.codes)


def loss_of(field: nn.Module, X: Table, Z: Table) -> float:
    """Held-out loss of our field."""
    with torch.no_grad():
        return float(field.eval().loss(_samples(X, Z, torch.device("cpu"))))  # type: ignore[operator]


def _samples(X: Table, Z: Table, device: torch.device) -> Samples:
    codes = torch.zeros(len(Z), 0, dtype=torch.int64)
    return Samples(
        torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(Z, dtype=torch.float32), codes
    ).to(device)


def _field_config(problem: Problem, penalty: float = 0.0) -> FieldConfig:
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
