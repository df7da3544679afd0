"""The last step of a mixture, given its shares: patterns from all rows, neither too weak nor too lively.

Two things are decided on held-out rows. Edges that are there are found again with less penalty, as the one
that keeps the others out makes them too weak. Movement with z is kept as far as it stands clear of chance.
Then the patterns are found once more, in the same way, from training and held-out rows together.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy.stats import t as student
from torch import Tensor

from graphfield.nn.fields import CoefField, FieldConfig, Samples
from graphfield.nn.gates import GateField, mixed_field
from graphfield.training.mixture import MixtureTask, gate_of, shares_of
from graphfield.training.mixture_state import Mixture
from graphfield.training.penalty_path import best_penalty
from graphfield.training.sparse_patterns import FINE, Moments, PatternProblem

# Edges of this size, as a share of the penalty, keep half of it. A penalty takes half of itself off an edge.
_HALF_SIZE = 0.25
# More than the penalty that predicts best, as that one lets in edges that are not there.
_STRICTER = 1.2
# The step towards patterns with less penalty on strong edges is never made in full: what these leave at zero
# keeps its order.
_MOST_RELAXED = 0.9
# Of the rows that support movement. They have chosen penalty, rounds and rank as well, so it must be clear.
_CONFIDENCE = 0.975
# Of freedom, at least: a tenth of the groups may be two or three, whose quantile would let no movement pass.
_LEAST_DEGREES = 10


@dataclass(frozen=True)
class Finished:
    """A mixture as strong and as moving as held-out rows support: as they judged it, and from all rows."""

    judged: CoefField
    field: CoefField
    variation: float  # the share of its variation that was kept


def finished(mixture: Mixture, config: FieldConfig, data: Samples, task: MixtureTask) -> Finished:
    """Relax the patterns, take chance out of their variation, and find them again from all rows."""
    gate = gate_of(mixture.gate, mixture.rank, config, data)
    gate.embedding.settle_untrained(data.codes[task.rows])
    if not len(task.held_out):
        field = mixed_field(gate, mixture.patterns)
        return Finished(field, field, 1.0)
    shares = shares_of(gate, data)
    mean = shares[task.rows].mean(dim=0)
    known, new = (Moments.of(shares[rows], data.x[rows]) for rows in (task.rows, task.held_out))
    step = None if task.penalty is not None else _relaxation(mixture, PatternProblem(known), new)
    patterns, again = mixture.patterns, _found_again(mixture, known, new, step)
    if step is not None:
        patterns = step.taken
    variation = supported_variation(gate, patterns, data.take(task.held_out[None]), mean, task.units)
    judged, field = (mixed_field(gate, _nearer(p, mean, variation)) for p in (patterns, again))
    return Finished(judged, field, variation)


@dataclass(frozen=True)
class _Relaxation:
    """Which penalty to use once strong edges have less of it, and how far to go towards its patterns."""

    penalty: float
    share: float
    taken: Tensor  # the patterns after that step


def _relaxation(mixture: Mixture, problem: PatternProblem, held_out: Moments) -> _Relaxation:
    lighter = problem.relaxed(mixture.patterns, _HALF_SIZE * mixture.penalty)
    penalty, (found,) = best_penalty([(lighter, held_out)], mixture.penalty, relaxed=True)
    penalty *= _STRICTER
    found = lighter.solve(penalty, found)
    share = _best_share(mixture.patterns, found, held_out)
    return _Relaxation(penalty, share, torch.lerp(mixture.patterns, found, share))


def _best_share(patterns: Tensor, other: Tensor, held_out: Moments) -> float:
    """How far to go from the patterns to the others: the error is a parabola in between."""
    at_start, at_half, at_end = (held_out.error(torch.lerp(patterns, other, s)) for s in (0.0, 0.5, 1.0))
    curvature = 2 * (at_start + at_end - 2 * at_half)
    slope = at_end - at_start - curvature
    if curvature <= 0:
        return _MOST_RELAXED if slope < 0 else 0.0
    return min(_MOST_RELAXED, max(0.0, -slope / (2 * curvature)))


def _found_again(mixture: Mixture, known: Moments, new: Moments, step: _Relaxation | None) -> Tensor:
    """The patterns of all rows; penalties are lower, as the noise of more rows asks for."""
    problem = PatternProblem(known + new)
    less = (known.count / (known.count + new.count)) ** 0.5
    patterns = problem.solve(less * mixture.penalty, mixture.patterns, FINE)
    if step is None or step.share == 0:
        return patterns
    lighter = problem.relaxed(patterns, less * _HALF_SIZE * mixture.penalty)
    return torch.lerp(patterns, lighter.solve(less * step.penalty, step.taken, FINE), step.share)


@torch.no_grad()
def supported_variation(
    gate: GateField, patterns: Tensor, held_out: Samples, mean: Tensor, units: Tensor | None = None
) -> float:
    """The share s, 0 to 1, of the movement in ``average + s * (beta(z) - average)`` that is to be kept.

    Patterns differ by chance as well, so graphs move more with z than they should where there is little to
    find; 0 is one graph for all. With the share v that predicts held-out rows best, its standard error e over
    rows (or units) and Student's quantile c, it is ``v - (c e)^2 / v`` (a non-negative garrote): nothing
    where v is within chance of zero, nearly v where it is far from it.
    """
    varying, average = (
        mixed_field(gate, _nearer(patterns, mean, share)).fitted(held_out)[0] for share in (1.0, 0.0)
    )
    left, moved = (held_out.x[0] - average).double(), (varying - average).double()
    products = torch.stack([(left * moved).sum(dim=1), moved.square().sum(dim=1)])
    if units is not None:
        codes = torch.unique(units, return_inverse=True)[1]
        products = products.new_zeros(2, int(codes.max()) + 1).index_add_(1, codes, products)
    support, size = products
    count, total = len(size), float(size.sum())
    if count < 2 or total <= 0:
        return 0.0
    best = float(support.sum()) / total
    error = float((support - best * size).square().sum()) ** 0.5 / total
    chance = float(student.ppf(_CONFIDENCE, max(count - 1, _LEAST_DEGREES))) * error
    return min(1.0, best - chance**2 / best) if best > chance else 0.0


def _nearer(patterns: Tensor, mean: Tensor, variation: float) -> Tensor:
    """Patterns whose mixtures keep this share of their distance to the average mixture.

    As shares sum to one, this is the same as to move every mixture.
    """
    if variation == 1:
        return patterns
    average = torch.tensordot(mean, patterns, dims=1)
    return average + variation * (patterns - average)
