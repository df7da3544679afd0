"""Which penalty on the patterns do held-out rows like best?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from graphfield.solvers.penalties import LONGEST, RATIO, PathSearch, falling_penalties
from graphfield.training.sparse_patterns import Moments, PatternProblem, solve_each

# A path ends when this many penalties in a row are worse than the best one; one that begins near the best,
# after the first.
WORSE = 2


def best_penalty(
    folds: Sequence[tuple[PatternProblem, Moments]], known: float | None, *, relaxed: bool = False
) -> tuple[float, list[Tensor]]:
    """The penalty with the smallest error on held-out rows, and the patterns of each fold there.

    The path leads from the empty graph down until the error has risen for good; where a penalty is
    ``known`` from a similar problem, it begins there; for a ``relaxed`` problem, whose empty graph is far
    away, it has the known one in its middle.
    """
    problems, parts = zip(*folds, strict=True)
    top = known / RATIO ** (LONGEST // 2) if relaxed and known else None
    top = top or max(problem.largest_penalty() for problem in problems)

    def attempt(penalty: float, near: list[Tensor] | None) -> tuple[float, list[Tensor]]:
        patterns = solve_each(problems, penalty, near or [None] * len(problems))
        errors = [part.error(found) for part, found in zip(parts, patterns, strict=True)]
        return sum(errors) / len(errors), patterns

    search = PathSearch(falling_penalties(top), attempt)
    if known is None:
        search.walk(0, lambda s: s.worse >= WORSE)
    else:
        nearest = min(LONGEST - 1, max(0, round(math.log(known / top) / math.log(RATIO))))
        search.walk(max(0, nearest - 1), lambda s: s.worse >= 1).walk_back()
    return search.best.value, search.best.solution


def best_refit(
    folds: Sequence[tuple[PatternProblem, Moments]], known: float, starts: Sequence[Tensor], weights: Tensor
) -> tuple[float, list[Tensor]]:
    """The penalty whose edges, found again without any, have the smallest error on held-out rows.

    Also the coefficients of each fold there. All penalties from the ``known`` one up are looked at, as edges
    come and go one by one; ``weights`` are those of the nodes in the error.
    """
    problems, best = [problem for problem, _ in folds], (math.inf, known, list(starts))
    for step in range(LONGEST):
        starts = solve_each(problems, known / RATIO**step, starts)
        found = [problem.refit(own) for problem, own in zip(problems, starts, strict=True)]
        error = sum(part.error(own, weights) for (_, part), own in zip(folds, found, strict=True))
        best = min(best, (error, known / RATIO**step, found), key=lambda one: one[0])
    return best[1:]
