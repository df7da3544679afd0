"""Which penalties to try, the one search over them, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from graphfield.numbers import is_clear, mean_and_error

# A penalty this many times smaller than the noise of a correlation, 1/sqrt(n), is as good as none.
_BELOW_NOISE = 0.1
# With more neighbours than this share of the rows a regression explains everything, held-out rows
# excepted, and takes very long to solve.
_MOST_NEIGHBOURS = 0.5
# Where there is no number of penalties to try: each is this share of the one before, so many at most.
RATIO, LONGEST = 0.7, 20

# The simplest of some models that is not behind the best one by more than one standard error is taken: the
# usual rule of cross-validation, which asks less than "clear" does so that little is lost by it.
_BEHIND = 1.0


@dataclass(frozen=True)
class PenaltyChoice:
    """The solution at one penalty and the search that led to it.

    ``path`` (m, 3): penalty, score and number of edges of everything that was tried, largest penalty first;
    NaN or infinity stands for what is not known.
    """

    solution: NDArray[np.float64]  # (p, p), coefficients or precision of standardised nodes
    penalty: float
    path: NDArray[np.float64]

    @classmethod
    def best(cls, solutions: NDArray, penalties: NDArray, scores: NDArray, there: NDArray) -> PenaltyChoice:
        """The lowest score; the larger penalty where two are equal. Edges are ``there`` (m, p, p) twice."""
        n_edges = (there & there.swapaxes(1, 2)).sum(axis=(1, 2)) // 2
        place, path = int(np.argmin(scores)), np.column_stack([penalties, scores, n_edges])
        return cls(solutions[place], float(penalties[place]), path)


class Tried(NamedTuple):
    """A value, its place on the path, its loss and its solution."""

    value: Any
    step: int
    loss: float
    solution: Any


class PathSearch:
    """Values tried one after the other, away from the simplest model: penalties from the largest down.

    ``attempt`` leads from a value, and the solution of the nearest value tried before (or None), to a loss
    and a solution; a loss is better if it is smaller by more than ``progress``.
    """

    def __init__(
        self, values: Any, attempt: Callable[[Any, Any], tuple[float, Any]], progress: float = 0.0
    ) -> None:
        self.values, self._attempt, self._progress = values, attempt, progress
        self.tried: dict[int, Tried] = {}
        self.best = self.last = Tried(None, -1, np.inf, None)

    @property
    def worse(self) -> int:
        """How many steps beyond the best one the last one is."""
        return self.last.step - self.best.step

    def walk(self, first: int, ends: Callable[[Self], bool]) -> Self:
        """Try values from the place ``first`` on until ``ends`` says so."""
        for step in range(first, len(self.values)):
            self._try(step)
            if ends(self):
                break
        return self

    def walk_back(self) -> Self:
        """Towards simpler models, as long as these are better."""
        while min(self.tried) == self.best.step > 0:
            self._try(self.best.step - 1)
        return self

    def _try(self, step: int) -> None:
        near = min(self.tried, key=lambda other: abs(other - step), default=None)
        found = self._attempt(self.values[step], None if near is None else self.tried[near].solution)
        self.last = self.tried[step] = Tried(self.values[step], step, *found)
        if near is None or self.last.loss < self.best.loss - self._progress:
            self.best = self.last


def search_each_node(
    values: Any,
    attempt: Callable[[Any], tuple[Any, NDArray[np.float64]]],
    keep: Callable[[Any, NDArray[np.bool_]], None],
    least: NDArray[np.float64],
    ends: Callable[[NDArray[np.bool_], NDArray[np.float64]], Any],
) -> None:
    """A :class:`PathSearch` in which each node has its own best value.

    ``attempt`` leads from a value to a solution and the losses of nodes, (p,). ``keep`` is given the solution
    and which nodes gain by it: those whose loss is below the ``least`` so far. ``ends`` is given the latter
    two, and says whether to stop.
    """

    def attempt_all(value: Any, _: Any) -> tuple[float, NDArray[np.bool_]]:
        nonlocal least
        found, losses = attempt(value)
        better = losses < least
        least = np.where(better, losses, least)
        keep(found, better)
        return float(least.sum()), better

    PathSearch(values, attempt_all).walk(0, lambda search: ends(search.last.solution, least))


def compare_rows(
    rows: Iterable[NDArray], units: NDArray[np.intp] | None = None, ddof: int = 1
) -> tuple[NDArray, int]:
    """Likelihoods of the same held-out rows under several models, the simplest first.

    Returns the mean, how far it is behind the best one and the standard error of that (columns, one row per
    model), and which is the simplest model that is not clearly behind. Rows of one unit may go together. A
    model without a likelihood is infinitely far behind.
    """
    likelihood = np.array(list(rows))
    mean = likelihood.mean(axis=1)
    with np.errstate(invalid="ignore"):
        behind, error = mean_and_error((likelihood[np.argmax(mean)] - likelihood).T, units, ddof)
    close = np.isfinite(behind) & ~is_clear(behind, error, _BEHIND)
    return np.column_stack([mean, behind, error]), int(np.argmax(close))


def falling_penalties(top: float) -> list[float]:
    """From ``top`` down."""
    return [top * RATIO**step for step in range(LONGEST)]


def zero_penalty(gradient: NDArray[np.floating], size: float, mix: float) -> float:
    """The largest t with ``|soft(row, t mix)|_2 = t (1 - mix) sqrt(size)``, over rows along axis 1."""
    low, high = 0.0, float(gradient.max()) / max(mix, 1 - mix) + 1e-12
    for _ in range(30):
        middle = (low + high) / 2
        norm = np.sqrt(np.square(np.maximum(gradient - mix * middle, 0)).sum(axis=1).max())
        is_zero = norm <= (1 - mix) * size**0.5 * middle
        low, high = (low, middle) if is_zero else (middle, high)
    return high


def penalty_path(S: NDArray[np.float64], n_penalties: int, ratio: float = 0.1) -> NDArray[np.float64]:
    """Penalties from the largest off-diagonal entry of ``S`` down to ``ratio`` times it.

    Geometric and descending, the convention of R's huge. The first gives the empty graph, in the
    nodewise and in the graphical lasso.

    >>> penalty_path(np.array([[1.0, -0.5], [-0.5, 1.0]]), 3, ratio=0.01).round(3).tolist()
    [0.5, 0.05, 0.005]
    """
    top = float(np.abs(S - np.diag(np.diag(S))).max())
    # Without any correlation every penalty gives the empty graph.
    path = np.geomspace(top or 1.0, (top or 1.0) * ratio, n_penalties)
    path[0] = top or 1.0  # not one rounding below: the empty graph is exact
    return path


def search_path(S: NDArray[np.float64], n_samples: int, n_penalties: int) -> NDArray[np.float64]:
    """:func:`penalty_path` from the empty graph to a tenth of the noise of a correlation matrix.

    The range covers one decade at least.
    """
    top = penalty_path(S, 1)[0]
    return penalty_path(S, n_penalties, ratio=min(0.1, smallest_penalty(n_samples) / top))


def smallest_penalty(n_samples: int) -> float:
    """Below which a search has nothing to gain but the copies among the nodes, which have no end."""
    return float(_BELOW_NOISE / np.sqrt(n_samples))


def too_dense(n_neighbours: float, n_samples: int) -> bool:
    """Whether a node has more neighbours than a search with so many rows should consider.

    A search ends where this holds for the average node.
    """
    return n_neighbours > _MOST_NEIGHBOURS * n_samples


def between_neighbours(penalties: NDArray, best: int, n_penalties: int) -> NDArray[np.float64]:
    """``n_penalties`` new ones between the neighbours of the best of a descending path."""
    high, low = penalties[max(best - 1, 0)], penalties[min(best + 1, len(penalties) - 1)]
    return np.geomspace(high, low, n_penalties + 2)[1:-1]
