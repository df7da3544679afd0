"""Graphs that move with single covariates: one graph for all, and a few edges that follow a line or a level.

From few rows a network hardly learns what to look at, and a mixture, whose patterns are all drawn towards
zero, moves too little. Here what moves is a sparse problem of its own beside the one graph, in given features
of z; then those edges are found again without penalty, as far as rows they were found without like that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphfield.nn.fields import CoefField, FieldConfig, Samples
from graphfield.solvers.penalties import PathSearch, falling_penalties
from graphfield.training.additive_features import AdditiveFeatures
from graphfield.training.mixture import Again, MixtureTask
from graphfield.training.penalty_path import WORSE
from graphfield.training.relaxed_patterns import SingleGraph, best_step
from graphfield.training.sparse_patterns import FINE, Moments, PatternProblem, solve_each, total
from graphfield.training.supported_variation import errors_with, support_of, supported_share

# Features times nodes at most: beyond, the problems take longer than all the rest.
_MAX_COLUMNS = 1_200


@dataclass(frozen=True)
class AdditiveFit:
    """What was found, and how well rows are predicted that took no part in it."""

    judged: CoefField
    field: CoefField
    kept_share: float  # the share of its movement that is kept
    penalty: float
    errors: Tensor  # of each row of training, part by part
    again: Again

    @classmethod
    def of(
        cls, config: FieldConfig, data: Samples, task: MixtureTask, one_graph: SingleGraph
    ) -> AdditiveFit | None:
        """From the rows of a task; None where covariates are too many or do not move the graph clearly."""
        features = AdditiveFeatures.of(config, data, task.rows)
        if features is None or len(features.average) * data.x.shape[1] > _MAX_COLUMNS:
            return None
        shares = torch.nn.functional.pad(features.at(data), (1, 0), value=1.0)
        *parts, new = (task.moments(shares, data.x, rows) for rows in (*task.parts, task.held_out))
        recipe, found = AdditiveRecipe.choose(one_graph, parts)
        support = torch.cat(
            [
                support_of(features.field(own), one, data, rows)
                for rows, own, one in zip(task.parts, found, recipe.one_graphs(parts), strict=True)
            ],
            dim=1,
        )
        kept_share = supported_share(support, task.units(task.rows))
        if kept_share == 0:
            return None
        judged, field = (
            features.field(recipe.find(m, kept_share)) for m in (total(parts), total([*parts, new]))
        )
        again = Again(lambda: shares, lambda moments, _: features.field(recipe.find(moments, kept_share)))
        return cls(judged, field, kept_share, recipe.penalty, errors_with(support, kept_share), again)


@dataclass(frozen=True)
class AdditiveRecipe:
    """How movement is found beside one graph: the penalty for so many rows, and how far without any."""

    one_graph: SingleGraph
    count: int
    penalty: float
    share: float

    @classmethod
    def choose(cls, one_graph: SingleGraph, parts: Sequence[Moments]) -> tuple[AdditiveRecipe, list[Tensor]]:
        """By the parts in turn, each from the others; and the patterns (1 + m, p, p) of these there.

        Moments are of shares that are one, and then features.
        """
        together = total(parts)
        folds = [_Beside.of(one_graph, together.without(part)) for part in parts]

        def attempt(penalty: float, near: list[Tensor] | None) -> tuple[float, list[Tensor]]:
            moving = solve_each([fold.problem for fold in folds], penalty, near or [None] * len(folds))
            return _best_step(folds, moving, parts)[1], moving

        top = max(fold.problem.largest_penalty() for fold in folds)
        best = PathSearch(falling_penalties(top), attempt).walk(0, lambda s: s.worse >= WORSE).best
        share = _best_step(folds, best.solution, parts)[0]
        self = cls(one_graph, folds[0].problem.count, best.value, share)
        return self, [fold.finish(own, share) for fold, own in zip(folds, best.solution, strict=True)]

    def one_graphs(self, parts: Sequence[Moments]) -> list[Tensor]:
        """One graph for all without each of the parts, (p, p)."""
        still = [part.of_shares(slice(1)) for part in parts]
        return [self.one_graph.find(total(still).without(part))[0] for part in still]

    def find(self, moments: Moments, kept_share: float) -> Tensor:
        """Patterns (1 + m, p, p) of these rows; more rows ask for a lower penalty."""
        beside = _Beside.of(self.one_graph, moments)
        moving = beside.problem.solve((self.count / moments.count) ** 0.5 * self.penalty, None, FINE)
        found = beside.finish(moving, self.share)
        return torch.lerp(torch.cat([beside.still, torch.zeros_like(moving)]), found, kept_share)


@dataclass(frozen=True)
class _Beside:
    """What moves beside one graph, as a problem; and with the graph of those edges, once these are known."""

    still: Tensor  # (1, p, p)
    problem: PatternProblem
    whole: PatternProblem

    @classmethod
    def of(cls, one_graph: SingleGraph, moments: Moments) -> _Beside:
        still = one_graph.find(moments.of_shares(slice(1)))
        left = moments.after(still[0])
        return cls(still, PatternProblem(left.of_shares(slice(1, None))), PatternProblem(left))

    def finish(self, moving: Tensor, share: float) -> Tensor:
        """All patterns, so far towards the same edges without any penalty."""
        found = torch.cat([torch.zeros_like(self.still), moving])
        if share and bool(moving.any()):
            edges = torch.cat([moving.any(dim=0, keepdim=True), moving != 0])
            found = torch.lerp(found, self.whole.refit(edges), share)
        return torch.cat([self.still + found[:1], found[1:]])


def _best_step(
    folds: Sequence[_Beside], moving: Sequence[Tensor], parts: Sequence[Moments]
) -> tuple[float, float]:
    """How far towards edges without penalty the error of the parts is smallest, and that error."""
    ends = [(fold.finish(own, 0.0), fold.finish(own, 1.0)) for fold, own in zip(folds, moving, strict=True)]
    return best_step(
        *(
            sum(part.error(torch.lerp(*pair, share)) for part, pair in zip(parts, ends, strict=True))
            for share in (0.0, 0.5, 1.0)
        )
    )
