"""The last step of a mixture, given its shares: patterns from all rows, neither too weak nor too lively.

Strong edges lose most of their penalty as far as held-out rows like that, and movement with z is kept as far
as it stands clear of chance. What does not move is one graph, found as such: the mixture, which is free to
move, has to shrink its edges far more. Then all is found once more, in the same way, from training and
held-out rows together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from graphfield.nn.fields import CoefField, FieldConfig, Samples
from graphfield.nn.gates import GateField, mixed_field
from graphfield.numbers import CLEAR
from graphfield.training.additive_movement import AdditiveFit
from graphfield.training.config import TrainingConfig
from graphfield.training.mixture import MixtureTask, gate_of, shares_of
from graphfield.training.mixture_state import Mixture
from graphfield.training.relaxed_patterns import Recipe, SingleGraph, relax
from graphfield.training.sparse_patterns import Moments, PatternProblem, total
from graphfield.training.supported_variation import (
    Copy,
    cross_fitted_copies,
    errors_with,
    is_few,
    supported_share,
)

# Held-out rows that support a smaller share of the movement than so many times that of the others missed it.
_MISSED = 0.5


@dataclass(frozen=True)
class Finished:
    """A mixture as strong and as moving as held-out rows support: as they judged it, and from all rows."""

    judged: CoefField
    field: CoefField
    variation: float  # the share of its variation that was kept
    penalty: float  # of the one graph, where none was
    additive: bool = False  # not a mixture: edges that follow single covariates


def finished(
    mixture: Mixture,
    config: FieldConfig,
    data: Samples,
    task: MixtureTask,
    training: TrainingConfig,
    *,
    additive: bool = False,
) -> Finished:
    """Relax the patterns, take chance out of their variation, and find them again from all rows.

    Few rows may prefer ``additive`` movement to any mixture.
    """
    gate = gate_of(mixture.gate, mixture.rank, config, data.x.device)
    gate.embedding.settle_untrained(data.codes[task.rows])
    if not len(task.held_out):
        field = mixed_field(gate, mixture.patterns)
        return Finished(field, field, 1.0, mixture.penalty)
    moving = _Moving.of(gate, mixture, data, task)
    copies: list[Copy] = []
    if is_few(task.units(task.held_out)):
        moving, copies = _judge_copies(moving, mixture, config, data, task, training)
    one = _OneGraph(data, task)
    done = moving.finish(mixture, one)
    if copies and additive and one.single is not None:
        found = AdditiveFit.of(config, data, task, one.single)
        if found is not None and _is_better(found, done, one.errors_of(copies, done.variation), data, task):
            return Finished(found.judged, found.field, found.variation, found.penalty, additive=True)
    return done


@dataclass(frozen=True)
class _Moving:
    """A gate with its patterns from the rows of training, and how much of its movement is kept."""

    copy: Copy
    recipe: Recipe  # how the patterns were found
    known: Moments
    new: Moments
    variation: float

    @classmethod
    def of(cls, gate: GateField, mixture: Mixture, data: Samples, task: MixtureTask) -> _Moving:
        """As held-out rows like it."""
        mean, known, new = _moments(gate, data, task)
        recipe, patterns = Recipe(known.count, mixture.penalty), mixture.patterns
        if task.penalty is None:
            recipe, patterns = relax(PatternProblem(known), new, mixture.patterns, mixture.penalty)
        copy = Copy(gate, patterns, mean, data.take(task.held_out[None]))
        return cls(copy, recipe, known, new, supported_share(copy.support(), task.units(task.held_out)))

    def with_gate(
        self, gate: GateField, variation: float, mixture: Mixture, data: Samples, task: MixtureTask
    ) -> _Moving:
        """Patterns found in the same way for another gate."""
        mean, known, new = _moments(gate, data, task)
        patterns = self.recipe.carry_out(known, mixture.patterns)
        return _Moving(Copy(gate, patterns, mean, self.copy.rows), self.recipe, known, new, variation)

    def finish(self, mixture: Mixture, one: _OneGraph) -> Finished:
        """As it was judged, and from all rows; what does not move is one graph."""
        patterns, kept = self.copy.patterns, self.variation
        again = self.recipe.carry_out(self.known + self.new, mixture.patterns, patterns)
        both, penalty = [patterns, again], mixture.penalty
        if kept < 1:
            single, still = one.find([torch.tensordot(self.copy.mean, own, dims=1)[None] for own in both])
            both = [torch.lerp(one, own, kept) for one, own in zip(still, both, strict=True)]
            penalty = penalty if kept or single is None else single
        judged, field = (mixed_field(self.copy.gate, own) for own in both)
        return Finished(judged, field, kept, penalty)


def _moments(gate: GateField, data: Samples, task: MixtureTask) -> tuple[Tensor, Moments, Moments]:
    """Average shares, and moments of training and held-out rows."""
    shares = shares_of(gate, data)
    known, new = (Moments.of(shares[rows], data.x[rows]) for rows in (task.rows, task.held_out))
    return shares[task.rows].mean(dim=0), known, new


def _judge_copies(
    moving: _Moving,
    mixture: Mixture,
    config: FieldConfig,
    data: Samples,
    task: MixtureTask,
    training: TrainingConfig,
) -> tuple[_Moving, list[Copy]]:
    """Where few rows are held out, the others, which have chosen nothing, are asked as well.

    Either may miss what moves: few rows held out by chance, the others since gate and patterns are found
    again without a third of them. Where those held out miss most of it, the gate is found again as it was
    judged. Of few groups, those held out have no say.
    """
    shares, units = shares_of(moving.copy.gate, data), task.units(task.held_out)
    copies, gate = cross_fitted_copies(mixture, config, data, task, moving.recipe, training, shares)
    support = torch.cat([copy.support() for copy in copies], dim=1)
    again = supported_share(support, task.units(task.rows))
    if len(torch.unique(units)) < len(units) or moving.variation < _MISSED * again:
        moving = moving.with_gate(gate, again, mixture, data, task)
    return replace(moving, variation=max(moving.variation, again)), copies


@torch.no_grad()
def _is_better(
    found: AdditiveFit, mixture: Finished, errors: Tensor, data: Samples, task: MixtureTask
) -> bool:
    """Whether rows of training, each without its part, are predicted better by more than a standard error.

    Copies of a mixture from fewer rows may be much worse than it: rows held out must not contradict clearly.
    """
    held_out = data.take(task.held_out[None])
    ours, theirs = ((held_out.x[0] - own.fitted(held_out)[0]) for own in (found.judged, mixture.judged))
    opposite = (ours.square() - theirs.square()).double().sum(dim=1)
    return (
        _in_errors(errors - found.errors, task.units(task.rows)) > 1
        and _in_errors(opposite, task.units(task.held_out)) < CLEAR
    )


def _in_errors(gains: Tensor, units: Tensor) -> float:
    """The sum over rows, in standard errors of a sum over independent units."""
    codes = torch.unique(units, return_inverse=True)[1]
    sums = gains.new_zeros(int(codes.max()) + 1).index_add_(0, codes, gains)
    return float(sums.sum() / (sums.std() * len(sums) ** 0.5).clamp(min=1e-12))


class _OneGraph:
    """One graph for all: how it is found, where no penalty is given."""

    def __init__(self, data: Samples, task: MixtureTask) -> None:
        self.data, self.task = data, task

    @cached_property
    def parts(self) -> list[Moments]:
        """Of the parts of training, and of the rows held out."""
        one, x = self.data.x.new_ones(len(self.data.x), 1), self.data.x
        return [Moments.of(one[rows], x[rows]) for rows in (*self.task.parts, self.task.held_out)]

    @cached_property
    def single(self) -> SingleGraph | None:
        is_chosen = self.task.penalty is None and len(self.task.parts) > 1
        return SingleGraph.choose(self.parts[:-1]) if is_chosen else None

    def find(self, averages: list[Tensor]) -> tuple[float | None, list[Tensor]]:
        """Its penalty; the graph of the rows of training, and of all, each (1, p, p).

        With a penalty that the user gives it is the average of the patterns.
        """
        if self.single is None:
            return None, averages
        known, new = total(self.parts[:-1]), self.parts[-1]
        return self.single.penalty, [self.single.find(known), self.single.find(known + new)]

    def errors_of(self, copies: Sequence[Copy], variation: float) -> Tensor:
        """Of the rows of training, each by the copy that was found without it, with so much movement."""
        assert self.single is not None
        known = total(self.parts[:-1])
        stills = [self.single.find(known.without(part))[0] for part in self.parts[:-1]]
        supports = [copy.support(still) for copy, still in zip(copies, stills, strict=True)]
        return errors_with(torch.cat(supports, dim=1), variation)
