"""Small training problems for the tests of engines, forms of the head and packs."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from graphfield.nn.backbone import CovariateShape
from graphfield.nn.fields import CoefField, FieldConfig, Samples
from graphfield.nn.head_forms import HeadTask, coefficients
from graphfield.nn.losses import LOSSES
from graphfield.nn.pack import Pack, packed
from graphfield.training.config import TrainingConfig
from graphfield.training.plan import Member, Plan

FIELD = FieldConfig(
    n_nodes=6,
    covariates=CovariateShape(2, ((0.5, 0.3, 0.2),)),
    network="residual",
    sharing="all",
    hidden_size=8,
    dropout=0.3,
    batch_norm=True,
    loss="squared",
    penalty=0.02,
)
TRAINING = TrainingConfig(
    batch_size=20,
    max_steps=60,
    min_steps=0,
    evaluate_every=10,
    learning_rate=0.01,
    schedule="cosine",
    patience=None,
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def samples(n: int = 100, p: int = 6, seed: int = 0) -> Samples:
    g = generator(seed)
    numeric = torch.randn(n, 2, generator=g)
    codes = torch.randint(0, 3, (n, 1), generator=g)
    x = torch.randn(n, p, generator=g)
    x[:, 1] = 0.3 * x[:, 1] + numeric[:, 0] * x[:, 0]
    x[:, 3] = 0.3 * x[:, 3] + x[:, 2]
    return Samples(x, numeric, codes)


def field(seed: int = 0, **changes) -> CoefField:
    return CoefField(replace(FIELD, **changes), generator(seed))


def member(n: int = 100, seed: int = 0, held_out: int = 0) -> Member:
    rows = torch.randperm(n, generator=generator(seed + 1_000))
    return Member(rows[held_out:], rows[:held_out], 7 * seed + 1, 7 * seed + 2)


def pack_and_plan(
    members: int, device: str = "cpu", batch_size: int = 20, **changes
) -> tuple[Pack, Plan, Samples]:
    """A pack of fields with different weights and rows, its plan, and the data."""
    where = torch.device(device)
    data = samples(p=changes.get("n_nodes", 6)).to(where)
    together = packed([field(seed, **changes) for seed in range(members)]).to(where)
    config = replace(TRAINING, batch_size=batch_size)
    parts = [member(seed=seed) for seed in range(members)]
    parts = [replace(part, rows=part.rows.to(where), held_out=part.held_out.to(where)) for part in parts]
    plan = Plan(parts, together, config, where)
    together.train()
    return Pack(together), plan, data


def head_inputs(m: int, b: int, h: int, p: int, penalty: float | None, loss: str, device: str = "cpu"):
    """Hidden features, weights, room for their gradient, node values and the task."""
    g = generator(m + b + h + p)
    u = torch.rand(m, b, h, generator=g)
    weight = 0.3 * torch.randn(m, h + 1, p, p, generator=g)
    torch.diagonal(weight, dim1=2, dim2=3).zero_()
    x = torch.randn(m, b, p, generator=g)
    task = HeadTask(loss, None if penalty is None else torch.linspace(penalty, 2 * penalty, m).to(device))
    weight = weight.to(device)
    return u.to(device), weight, torch.full_like(weight, torch.nan), x.to(device), task


def reference(u: Tensor, weight: Tensor, grad: Tensor, x: Tensor, task: HeadTask) -> tuple[Tensor, Tensor]:
    """By autograd: loss (m,) and gradient of u (m, b, h); that of the weights is written into ``grad``."""
    p = weight.shape[-1]
    off_diagonal = 1 - torch.eye(p, device=weight.device)
    with torch.enable_grad():
        u, weight = u.detach().requires_grad_(), weight.detach().requires_grad_()
        coef = coefficients(u, weight * off_diagonal)
        error = x - torch.einsum("mbjk,mbk->mbj", coef, x.expand(len(coef), -1, -1))
        loss = LOSSES[task.loss].value(error).mean(dim=(1, 2))
        if task.penalty is not None:
            loss = loss + task.penalty * coef.abs().sum(dim=3).mean(dim=(1, 2))
        slopes = torch.autograd.grad(loss.sum(), (u, weight))
    grad.copy_(slopes[1])
    return loss.detach(), slopes[0]
