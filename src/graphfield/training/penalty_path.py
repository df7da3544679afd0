"""Which penalty on the patterns do held-out rows like best?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from graphfield.training.sparse_patterns import Moments, PatternProblem, solve_each

# Penalties are the smallest one that leaves no edge, times powers of this.
_RATIO = 0.7
_LONGEST = 20
# A path ends when this many penalties in a row are worse than the best one; one that begins near the best,
# after the first.
_WORSE = 2


def best_penalty(
    folds: Sequence[tuple[PatternProblem, Moments]], known: float | None, *, relaxed: bool = False
) -> tuple[float, list[Tensor]]:
    """The penalty with the smallest error on held-out rows, and the patterns of each fold there.

    The path leads from the empty graph down until the error has risen for good; where a penalty is
    ``known`` from a similar problem, it begins there; for a ``relaxed`` problem, whose empty graph is far
    away, it has the known one in its middle.
    """
    path = _Path(folds, known / _RATIO ** (_LONGEST // 2) if relaxed and known else None)
    if known is None:
        path.walk(0, _WORSE)
    else:
        path.walk(max(0, path.nearest(known) - 1), 1)
        path.walk_back()
    return path.chosen()


def best_refit(
    folds: Sequence[tuple[PatternProblem, Moments]], known: float, starts: Sequence[Tensor], weights: Tensor
) -> tuple[float, list[Tensor]]:
    """The penalty whose edges, found again without any, have the smallest error on held-out rows.

    Also the coefficients of each fold there. All penalties from the ``known`` one up are looked at, as edges
    come and go one by one; ``weights`` are those of the nodes in the error.
    """
    problems, best = [problem for problem, _ in folds], (math.inf, known, list(starts))
    for step in range(_LONGEST):
        starts = solve_each(problems, known / _RATIO**step, starts)
        found = [problem.refit(own) for problem, own in zip(problems, starts, strict=True)]
        error = sum(part.error(own, weights) for (_, part), own in zip(folds, found, strict=True))
        best = min(best, (error, known / _RATIO**step, found), key=lambda one: one[0])
    return best[1:]


class _Path:
    def __init__(self, folds: Sequence[tuple[PatternProblem, Moments]], top: float | None) -> None:
        self.folds = folds
        self.top = top or max(problem.largest_penalty() for problem, _ in folds)
        self.solved: dict[int, tuple[float, list[Tensor]]] = {}

    def nearest(self, penalty: float) -> int:
        return min(_LONGEST - 1, max(0, round(math.log(penalty / self.top) / math.log(_RATIO))))

    def walk(self, first: int, worse: int) -> None:
        for step in range(first, _LONGEST):
            self._solve(step)
            if step - self._best() >= worse:
                break

    def walk_back(self) -> None:
        while min(self.solved) == self._best() > 0:
            self._solve(min(self.solved) - 1)

    def chosen(self) -> tuple[float, list[Tensor]]:
        best = self._best()
        return self.top * _RATIO**best, self.solved[best][1]

    def _best(self) -> int:
        return min(self.solved, key=lambda step: self.solved[step][0])

    def _solve(self, step: int) -> None:
        penalty = self.top * _RATIO**step
        near = min(self.solved, key=lambda other: abs(other - step), default=None)
        starts: Sequence[Tensor | None] = [None] * len(self.folds) if near is None else self.solved[near][1]
        patterns = solve_each([problem for problem, _ in self.folds], penalty, starts)
        errors = [part.error(found) for (_, part), found in zip(self.folds, patterns, strict=True)]
        self.solved[step] = (sum(errors) / len(errors), patterns)
