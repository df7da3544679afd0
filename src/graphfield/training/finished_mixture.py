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

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.nn.fields import CoefField, FieldConfig, Samples
from graphfield.nn.gates import GateField, mixed_field
from graphfield.nn.long_rows import mean_of_rows
from graphfield.nn.pack import packed, unpacked
from graphfield.numbers import is_clear, mean_and_error
from graphfield.training.additive_movement import AdditiveFit
from graphfield.training.config import TrainingConfig
from graphfield.training.loop import train
from graphfield.training.mixture import (
    Again,
    MixtureTask,
    cross_fitted,
    gate_of,
    gate_table,
    new_gate,
    problems_without,
    shares_of,
)
from graphfield.training.mixture_state import Mixture
from graphfield.training.plan import Member
from graphfield.training.relaxed_patterns import Recipe, SingleGraph, relax
from graphfield.training.sparse_patterns import Moments, PatternProblem, total
from graphfield.training.supported_variation import (
    Copy,
    about,
    errors_with,
    is_few,
    rows_without,
    supported_share,
)

# Held-out rows that support a smaller share of the movement than so many times that of the others missed it.
_MISSED = 0.5
# Standard errors by which a step to the one graph's average is to be sure, and the longest step: what the
# mixture leaves at zero keeps its order.
_SURE, _MOST_TO_ONE = 1.0, 0.9


@dataclass(frozen=True)
class Finished:
    """A mixture as strong and as moving as held-out rows support: as they judged it, and from all rows."""

    judged: CoefField
    field: CoefField
    kept_share: float  # the share of its variation that was kept
    penalty: float  # of the one graph, where none was
    again: Again
    additive: bool = False  # not a mixture: edges that follow single covariates


@dataclass(frozen=True)
class _Moving:
    """A gate with its patterns from the rows of training, and how much of its movement is kept about what."""

    copy: Copy
    recipe: Recipe  # how the patterns were found
    known: Moments
    new: Moments
    kept_share: float
    to_one: float = 0.0  # how far its average is brought to the one graph


@dataclass(frozen=True)
class LastStep:
    """Of a mixture, and what it was found with: relax the patterns, take chance out of their variation."""

    mixture: Mixture
    config: FieldConfig
    data: Samples
    task: MixtureTask
    training: TrainingConfig

    def finish(self, *, additive: bool = False) -> Finished:
        """Find the patterns again from all rows. Few rows may prefer ``additive`` movement to any mixture."""
        mixture, task = self.mixture, self.task
        gate = gate_of(mixture.gate, mixture.rank, self.config, self.data.x.device)
        gate.embedding.settle_untrained(self.data.codes[task.rows])
        if not len(task.held_out):
            field = mixed_field(gate, mixture.patterns)
            recipe = Recipe(len(task.rows), mixture.penalty)
            return Finished(field, field, 1.0, mixture.penalty, self._again(gate, recipe, 1.0))
        moving = self._moving(gate)
        copies: list[Copy] = []
        if is_few(task.units(task.held_out)):
            moving, copies = self._judge_copies(moving)
        moving = replace(moving, to_one=self._step_to_one(moving, copies))
        done = self._done(moving)
        if copies and additive and self.one_graph is not None:
            found = AdditiveFit.of(self.config, self.data, task, self.one_graph)
            if found is not None and self._is_better(found, done, self._errors_of(copies, moving)):
                return Finished(
                    found.judged, found.field, found.kept_share, found.penalty, found.again, additive=True
                )
        return done

    def _moving(self, gate: GateField) -> _Moving:
        """As held-out rows like it."""
        mixture, task = self.mixture, self.task
        mean, known, new = self._moments(gate)
        recipe, patterns = Recipe(known.count, mixture.penalty), mixture.patterns
        if task.penalty is None:
            recipe, patterns = relax(PatternProblem(known), new, mixture.patterns, mixture.penalty)
        copy = Copy(gate, patterns, mean, self.data, task.held_out)
        return _Moving(copy, recipe, known, new, supported_share(copy.support(), task.units(task.held_out)))

    def _moments(self, gate: GateField) -> tuple[Tensor, Moments, Moments]:
        """Average shares, and moments of training and held-out rows."""
        shares, rows = shares_of(gate, self.data), (self.task.rows, self.task.held_out)
        known, new = (self.task.moments(shares, self.data.x, own) for own in rows)
        return mean_of_rows(shares, self.task.rows), known, new

    def _judge_copies(self, moving: _Moving) -> tuple[_Moving, list[Copy]]:
        """Where few rows are held out, the others, which have chosen nothing, are asked as well.

        Either may miss what moves: few rows held out by chance, the others since gate and patterns are found
        again without a third of them. Where those held out miss most of it, the gate is found again as it was
        judged. Of few groups, those held out have no say.
        """
        units = self.task.units(self.task.held_out)
        copies, gate = self._cross_fitted_copies(moving)
        support = torch.cat([copy.support() for copy in copies], dim=1)
        again = supported_share(support, self.task.units(self.task.rows))
        if len(torch.unique(units)) < len(units) or moving.kept_share < _MISSED * again:
            # Patterns found in the same way for the other gate.
            mean, known, new = self._moments(gate)
            patterns = moving.recipe.carry_out(known, self.mixture.patterns)
            copy = replace(moving.copy, gate=gate, patterns=patterns, mean=mean)
            moving = _Moving(copy, moving.recipe, known, new, again)
        return replace(moving, kept_share=max(moving.kept_share, again)), copies

    def _cross_fitted_copies(self, moving: _Moving) -> tuple[list[Copy], GateField]:
        """For each part of the training rows, gate and patterns from the others; and such a gate from all."""
        mixture, data, task = self.mixture, self.data, self.task
        shares = shares_of(moving.copy.gate, data)
        parts = [task.moments(shares, data.x, rows) for rows in task.parts]
        without = problems_without(parts, total(parts))
        found = cross_fitted(without, mixture.patterns, mixture.penalty)
        others = [rows_without(task.parts, part) for part in range(len(parts))]
        *gates, whole = self._train_gates([*others, task.rows], found)
        copies = []
        for rows, known, gate in zip(task.parts, others, gates, strict=True):
            own = shares_of(gate, data)
            patterns = moving.recipe.carry_out(task.moments(own, data.x, known), mixture.patterns)
            copies.append(Copy(gate, patterns, mean_of_rows(own, known), data, rows))
        return copies, whole

    def _train_gates(self, each: Sequence[Tensor], found: Sequence[Tensor]) -> list[GateField]:
        """A gate for each of these sets of rows, with patterns of each part; they train together."""
        data, task = self.data, self.task
        members = [
            Member(rows, task.held_out, task.seeds.order + i, task.seeds.dropout + i)
            for i, rows in enumerate(each)
        ]
        together = packed([new_gate(task, self.mixture.rank, self.config, data) for _ in members])
        table, members = gate_table(data, members, self.training, [(data.x, task, found)])
        train(together, table, members, self.training, description=None)
        gates = [gate.eval() for gate in unpacked(together)]
        for gate, rows in zip(gates, each, strict=True):
            gate.embedding.settle_untrained(data.codes[rows])
        return gates

    def _step_to_one(self, moving: _Moving, copies: Sequence[Copy]) -> float:
        """How far the average of the mixture is to be brought to the one graph, whose edges are stronger.

        As left-out rows like it: of few rows those of training, by the copies that were found without them.
        """
        if self.one_graph is None or moving.kept_share == 0:
            return 0.0
        known, rows = total(self.parts[:-1]), self.task.rows if copies else self.task.held_out
        others = [known.without(part) for part in self.parts[:-1]] if copies else [known]
        support = [
            copy.support_of_one(self.one_graph.find(own)[0], moving.kept_share)
            for copy, own in zip(copies or [moving.copy], others, strict=True)
        ]
        share = supported_share(torch.cat(support, dim=1), self.task.units(rows), _SURE)
        return min(_MOST_TO_ONE, share)

    def _done(self, moving: _Moving) -> Finished:
        """As it was judged, and from all rows; what does not move is one graph."""
        patterns, kept, mixture = moving.copy.patterns, moving.kept_share, self.mixture
        again = moving.recipe.carry_out(moving.known + moving.new, mixture.patterns, patterns)
        both, penalty = [patterns, again], mixture.penalty
        if kept < 1 or moving.to_one:
            copies = [replace(moving.copy, patterns=own) for own in both]
            # With a penalty that the user gives, the one graph is the average of the patterns.
            stills = [copy.average for copy in copies]
            if self.one_graph is not None:
                known, new = total(self.parts[:-1]), self.parts[-1]
                stills = [self.one_graph.find(rows)[0] for rows in (known, known + new)]
                penalty = penalty if kept else self.one_graph.penalty
            both = [
                about(still, copy.brought_to(still, moving.to_one).patterns, kept)
                for still, copy in zip(stills, copies, strict=True)
            ]
        judged, field = (mixed_field(moving.copy.gate, own) for own in both)
        again_as = self._again(moving.copy.gate, moving.recipe, kept, moving.to_one)
        return Finished(judged, field, kept, penalty, again_as)

    def _again(self, gate: GateField, recipe: Recipe, kept: float, to_one: float = 0.0) -> Again:
        """With the shares of the gate, in the same way as before."""

        def shares() -> Tensor:
            return shares_of(gate, self.data)

        def find(moments: Moments, of_one: Moments) -> CoefField:
            patterns = recipe.carry_out(moments, self.mixture.patterns)
            if kept < 1 or to_one:
                mean = mean_of_rows(shares(), self.task.rows)
                copy = Copy(gate, patterns, mean, self.data, self.task.held_out)
                still = copy.average if self.one_graph is None else self.one_graph.find(of_one)[0]
                patterns = about(still, copy.brought_to(still, to_one).patterns, kept)
            return mixed_field(gate, patterns)

        return Again(shares, find)

    @cached_property
    def parts(self) -> list[Moments]:
        """For one graph for all: of the parts of training, and of the rows held out."""
        one, x = self.data.x.new_ones(len(self.data.x), 1), self.data.x
        return [self.task.moments(one, x, rows) for rows in (*self.task.parts, self.task.held_out)]

    @cached_property
    def one_graph(self) -> SingleGraph | None:
        """How one graph for all is found, where no penalty is given."""
        is_chosen = self.task.penalty is None and len(self.task.parts) > 1
        return SingleGraph.choose(self.parts[:-1]) if is_chosen else None

    def _errors_of(self, copies: Sequence[Copy], moving: _Moving) -> Tensor:
        """Of the rows of training, each by the copy that was found without it, with so much movement."""
        assert self.one_graph is not None
        known = total(self.parts[:-1])
        stills = [self.one_graph.find(known.without(part))[0] for part in self.parts[:-1]]
        supports = [
            copy.brought_to(still, moving.to_one).support(still)
            for copy, still in zip(copies, stills, strict=True)
        ]
        return errors_with(torch.cat(supports, dim=1), moving.kept_share)

    @torch.no_grad()
    def _is_better(self, found: AdditiveFit, mixture: Finished, errors: Tensor) -> bool:
        """Whether rows of training, each without its part, are predicted better, by over a standard error.

        Copies of a mixture from fewer rows may be much worse than it: rows held out must not contradict
        clearly.
        """
        held_out = self.data.take(self.task.held_out[None])
        ours, theirs = ((held_out.x[0] - own.fitted(held_out)[0]) for own in (found.judged, mixture.judged))
        opposite = (ours.square() - theirs.square()).double().sum(dim=1)
        better = _per_unit(errors - found.errors, self.task.units(self.task.rows))
        worse = _per_unit(opposite, self.task.units(self.task.held_out))
        contradicts = len(worse) < 2 or is_clear(*mean_and_error(worse))  # one unit says nothing
        return bool(is_clear(*mean_and_error(better), n_errors=1)) and not contradicts


def _per_unit(gains: Tensor, units: Tensor) -> NDArray[np.float64]:
    """Sums over the rows of independent units."""
    codes = torch.unique(units, return_inverse=True)[1]
    return gains.new_zeros(int(codes.max()) + 1).index_add_(0, codes, gains).cpu().numpy()
