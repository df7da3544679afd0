"""Edges that are not too weak: those that are there are found again with less penalty, or none.

The penalty that keeps other edges out makes those that are there too weak. With how much less they are found
again, and how far to go, is decided on rows that they were found without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphfield.training.penalty_path import best_penalty, best_refit
from graphfield.training.sparse_patterns import FINE, Moments, PatternProblem, total

# Edges of this size, as a share of the penalty, keep half of it. A penalty takes half of itself off an edge.
_HALF_SIZE = 0.25
# More than the penalty that predicts best, as that one lets in edges that are not there.
_STRICTER = 1.2
# The step towards patterns with less penalty on strong edges is never made in full: what these leave at zero
# keeps its order.
_MOST_RELAXED = 0.9


@dataclass(frozen=True)
class Recipe:
    """Penalties for so many rows: on all edges, then less of it on strong ones; how far that way."""

    count: int
    penalty: float
    relaxed: float = 0.0
    share: float = 0.0

    def carry_out(self, moments: Moments, start: Tensor, near: Tensor | None = None) -> Tensor:
        """Patterns of other rows in the same way, from ``start``, and relaxed ones from ``near``.

        More rows have less noise, which asks for lower penalties.
        """
        problem, less = PatternProblem(moments), (self.count / moments.count) ** 0.5
        patterns = problem.solve(less * self.penalty, start, FINE)
        if self.share == 0:
            return patterns
        lighter = problem.relaxed(patterns, less * _HALF_SIZE * self.penalty)
        found = lighter.solve(less * self.relaxed, patterns if near is None else near, FINE)
        return torch.lerp(patterns, found, self.share)


def relax(
    problem: PatternProblem, held_out: Moments, patterns: Tensor, penalty: float
) -> tuple[Recipe, Tensor]:
    """What held-out rows like best, given the patterns at this penalty; and the patterns after that step."""
    lighter = problem.relaxed(patterns, _HALF_SIZE * penalty)
    relaxed, (found,) = best_penalty([(lighter, held_out)], penalty, relaxed=True)
    relaxed *= _STRICTER
    found = lighter.solve(relaxed, found)
    share, _ = best_step(*(held_out.error(torch.lerp(patterns, found, at)) for at in (0.0, 0.5, 1.0)))
    return Recipe(problem.count, penalty, relaxed, share), torch.lerp(patterns, found, share)


def best_step(at_start: float, at_half: float, at_end: float) -> tuple[float, float]:
    """How far to go to the end, and the error there: it is a parabola in between."""
    curvature = 2 * (at_start + at_end - 2 * at_half)
    slope = at_end - at_start - curvature
    if curvature > 0:
        share = min(_MOST_RELAXED, max(0.0, -slope / (2 * curvature)))
    else:
        share = _MOST_RELAXED if slope < 0 else 0.0
    return share, at_start + slope * share + curvature * share**2


@dataclass(frozen=True)
class SingleGraph:
    """How one graph for all z is found: sparse, then its edges again without penalty, and how far that way.

    Nodes that the others nearly determine have small residuals, beside which a penalty is large. So
    penalties are in proportion to a node's residuals, and each node counts by its error relative to them.
    """

    count: int
    penalty: float
    stricter: float  # penalty that says which edges are there
    residuals: Tensor  # root mean squares, (p,)
    share: float

    @classmethod
    def choose(cls, parts: Sequence[Moments]) -> SingleGraph:
        """By the parts in turn, each from the others; moments of rows whose only share is one."""
        together = total(parts)
        folds = [(PatternProblem(together.without(part)), part) for part in parts]
        penalty, found = best_penalty(folds, None)
        errors = torch.stack([part.node_errors(own) for part, own in zip(parts, found, strict=True)])
        errors = errors.mean(dim=0).clamp(min=1e-8)
        self = cls(folds[0][0].count, penalty, 0.0, errors.sqrt(), 0.0)
        lighter = [self._lighter(problem, own, 1.0) for (problem, _), own in zip(folds, found, strict=True)]
        stricter, again = best_refit(list(zip(lighter, parts, strict=True)), penalty, found, 1 / errors)
        at = [
            sum(
                part.error(torch.lerp(own, other, share), 1 / errors)
                for part, own, other in zip(parts, found, again, strict=True)
            )
            for share in (0.0, 0.5, 1.0)
        ]
        return cls(self.count, penalty, stricter, self.residuals, best_step(*at)[0])

    def _lighter(self, problem: PatternProblem, patterns: Tensor, less: float) -> PatternProblem:
        nodes = self.residuals / self.residuals.mean()
        return problem.relaxed(patterns, less * _HALF_SIZE * self.penalty, nodes)

    def find(self, moments: Moments) -> Tensor:
        """The graph of these rows, (1, p, p); more rows ask for lower penalties."""
        problem, less = PatternProblem(moments), (self.count / moments.count) ** 0.5
        sparse = problem.solve(less * self.penalty, None, FINE)
        edges = self._lighter(problem, sparse, less).solve(less * self.stricter, sparse, FINE)
        return torch.lerp(sparse, problem.refit(edges), self.share)
