"""How much of a mixture's movement with z is kept: as much as stands clear of chance in rows it has not seen.

Where few groups are held out, those of training decide in turn: gate and patterns are found again without
each part of them.
"""

from __future__ import annotations

import torch
from scipy.stats import t as student
from torch import Tensor

from graphfield.nn.fields import FieldConfig, Samples
from graphfield.nn.gates import GateField, mixed_field
from graphfield.nn.pack import packed, unpacked
from graphfield.training.config import TrainingConfig
from graphfield.training.loop import train
from graphfield.training.mixture import MixtureTask, cross_fitted_table, new_gate, problems_without, shares_of
from graphfield.training.mixture_state import Mixture
from graphfield.training.plan import Member
from graphfield.training.relaxed_patterns import Recipe
from graphfield.training.sparse_patterns import Moments, total

# Held-out rows (or groups) below which their word is too uncertain.
FEW_UNITS = 200
# Of the rows that support movement. Those held out have chosen penalty, rounds and rank as well, and the
# others what the patterns are about, so it must be clear.
_CONFIDENCE = 0.975


def is_few(units: Tensor) -> bool:
    """Whether so few rows or groups are held out that those of training decide, by cross-fitting."""
    return len(torch.unique(units)) < FEW_UNITS


def supported_share(support: Tensor, units: Tensor) -> float:
    """The share s, 0 to 1, of the movement in ``average + s * (beta(z) - average)`` that is to be kept.

    Patterns differ by chance as well, so graphs move more with z than they should where there is little to
    find; 0 is one graph for all. With the share v that predicts rows best, its standard error e over units
    and Student's quantile c, it is ``v - (c e)^2 / v`` (a non-negative garrote): nothing where v is within
    chance of zero, nearly v where it is far from it. ``support`` is that of :func:`support_of`.
    """
    codes = torch.unique(units, return_inverse=True)[1]
    left, size = support.new_zeros(2, int(codes.max()) + 1).index_add_(1, codes, support)
    count, total = len(size), float(size.sum())
    if count < 2 or total <= 0:
        return 0.0
    best = float(left.sum()) / total
    error = float((left - best * size).square().sum()) ** 0.5 / total
    chance = float(student.ppf(_CONFIDENCE, count - 1)) * error
    return min(1.0, best - chance**2 / best) if best > chance else 0.0


@torch.no_grad()
def support_of(gate: GateField, patterns: Tensor, rows: Samples, mean: Tensor) -> Tensor:
    """Of each row, the product of movement and what the average graph leaves, and movement squared: (2, n).

    ``mean`` are the shares of the average graph.
    """
    average = torch.tensordot(mean, patterns, dims=1).expand_as(patterns)
    varying, still = (mixed_field(gate, own).fitted(rows)[0] for own in (patterns, average))
    left, moved = (rows.x[0] - still).double(), (varying - still).double()
    return torch.stack([(left * moved).sum(dim=1), moved.square().sum(dim=1)])


def cross_fitted_support(
    mixture: Mixture,
    config: FieldConfig,
    data: Samples,
    task: MixtureTask,
    recipe: Recipe,
    training: TrainingConfig,
    shares: Tensor,
) -> Tensor:
    """Of the training rows, part by part: gate and patterns come from the other parts, (2, rows)."""
    parts = [Moments.of(shares[rows], data.x[rows]) for rows in task.parts]
    without = problems_without(parts, total(parts))
    table = cross_fitted_table(data.x, task, without, mixture.patterns, mixture.penalty)
    support = []
    for rows, others, gate in _cross_fitted_gates(mixture.rank, config, data, task, training, table):
        own = shares_of(gate, data)[others]
        patterns = recipe.carry_out(Moments.of(own, data.x[others]), mixture.patterns)
        support.append(support_of(gate, patterns, data.take(rows[None]), own.mean(dim=0)))
    return torch.cat(support, dim=1)


def _cross_fitted_gates(
    rank: int, config: FieldConfig, data: Samples, task: MixtureTask, training: TrainingConfig, table: Tensor
) -> list[tuple[Tensor, Tensor, GateField]]:
    """Each part, the rows of the others, and a gate that was trained on these; they train together."""
    others = [
        torch.cat([rows for other, rows in enumerate(task.parts) if other != part])
        for part in range(len(task.parts))
    ]
    members = [
        Member(rows, task.held_out, task.seeds[1] + part, task.seeds[2] + part)
        for part, rows in enumerate(others)
    ]
    together = packed([new_gate(task, rank, config, data) for _ in members])
    train(together, Samples(table, data.numeric, data.codes), members, training, description=None)
    gates = [gate.eval() for gate in unpacked(together)]
    for gate, rows in zip(gates, others, strict=True):
        gate.embedding.settle_untrained(data.codes[rows])
    return list(zip(task.parts, others, gates, strict=True))
