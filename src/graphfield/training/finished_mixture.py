"""The last step of a mixture, given its shares: patterns from all rows, neither too weak nor too lively.

Strong edges lose most of their penalty as far as held-out rows like that, and movement with z is kept as far
as it stands clear of chance. What does not move is one graph, found as such: the mixture, which is free to
move, has to shrink its edges far more. Then all is found once more, in the same way, from training and
held-out rows together.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphfield.nn.fields import CoefField, FieldConfig, Samples
from graphfield.nn.gates import GateField, mixed_field
from graphfield.training.config import TrainingConfig
from graphfield.training.mixture import MixtureTask, gate_of, shares_of
from graphfield.training.mixture_state import Mixture
from graphfield.training.relaxed_patterns import Recipe, SingleGraph, relax
from graphfield.training.sparse_patterns import Moments, PatternProblem, total
from graphfield.training.supported_variation import (
    cross_fitted_support,
    is_few,
    support_of,
    supported_share,
)


@dataclass(frozen=True)
class Finished:
    """A mixture as strong and as moving as held-out rows support: as they judged it, and from all rows."""

    judged: CoefField
    field: CoefField
    variation: float  # the share of its variation that was kept
    penalty: float  # of the one graph, where none was


def finished(
    mixture: Mixture, config: FieldConfig, data: Samples, task: MixtureTask, training: TrainingConfig
) -> Finished:
    """Relax the patterns, take chance out of their variation, and find them again from all rows."""
    gate = gate_of(mixture.gate, mixture.rank, config, data)
    gate.embedding.settle_untrained(data.codes[task.rows])
    if not len(task.held_out):
        field = mixed_field(gate, mixture.patterns)
        return Finished(field, field, 1.0, mixture.penalty)
    shares = shares_of(gate, data)
    known, new = (Moments.of(shares[rows], data.x[rows]) for rows in (task.rows, task.held_out))
    recipe, patterns = Recipe(known.count, mixture.penalty), mixture.patterns
    if task.penalty is None:
        recipe, patterns = relax(PatternProblem(known), new, mixture.patterns, mixture.penalty)
    again = recipe.carry_out(known + new, mixture.patterns, patterns)
    variation = _variation(gate, mixture, patterns, config, data, task, recipe, training, shares)
    if variation == 1:
        return Finished(mixed_field(gate, patterns), mixed_field(gate, again), 1.0, mixture.penalty)
    mean = shares[task.rows].mean(dim=0)
    penalty, still = _single_graphs(mixture, (patterns, again), mean, data, task)
    judged, field = (
        mixed_field(gate, torch.lerp(one, own, variation))
        for one, own in zip(still, (patterns, again), strict=True)
    )
    return Finished(judged, field, variation, mixture.penalty if variation else penalty)


def _variation(
    gate: GateField,
    mixture: Mixture,
    patterns: Tensor,
    config: FieldConfig,
    data: Samples,
    task: MixtureTask,
    recipe: Recipe,
    training: TrainingConfig,
    shares: Tensor,
) -> float:
    """By the held-out rows and, where these are few, by the others as well, which have chosen nothing.

    Either may miss what moves: few rows held out by chance, the others since gate and patterns are found
    again without a third of them. Of few groups, those held out have no say.
    """
    units = task.units(task.held_out)
    rows, mean = data.take(task.held_out[None]), shares[task.rows].mean(dim=0)
    share = supported_share(support_of(gate, patterns, rows, mean), units)
    if not is_few(units):
        return share
    support = cross_fitted_support(mixture, config, data, task, recipe, training, shares)
    again = supported_share(support, task.units(task.rows))
    return again if len(torch.unique(units)) < len(units) else max(share, again)


def _single_graphs(
    mixture: Mixture, patterns: tuple[Tensor, Tensor], mean: Tensor, data: Samples, task: MixtureTask
) -> tuple[float, tuple[Tensor, Tensor]]:
    """Its penalty, and one graph for all as it was judged and from all rows, each (1, p, p).

    With a penalty that the user gives it is the average of the patterns.
    """
    if task.penalty is not None or len(task.parts) < 2:
        judged, all_rows = (torch.tensordot(mean, own, dims=1)[None] for own in patterns)
        return mixture.penalty, (judged, all_rows)
    one = data.x.new_ones(len(data.x), 1)
    *parts, new = (Moments.of(one[rows], data.x[rows]) for rows in (*task.parts, task.held_out))
    single = SingleGraph.choose(parts)
    return single.penalty, (single.find(total(parts)), single.find(total([*parts, new])))
