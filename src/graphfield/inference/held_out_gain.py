"""By how much edges that follow the covariates lower the held-out error of regressions.

They are compared with the same regressions whose edges stay as they are: what is measured is an effect. What
a model must beat is another thing, the static graph of :mod:`graphfield.estimators.one_graph`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.estimators.held_out import Yardstick
from graphfield.inference.covariate_basis import Smooth
from graphfield.numbers import Gain
from graphfield.solvers.interaction import (
    coefficients_from_gram,
    interaction_fit,
    interaction_gram,
    squared_errors,
)

# Penalties that held-out rows choose from: on edges common to all z, and to begin with on how edges move.
# From there, the penalty of one covariate at a time is moved by a factor.
_COMMON = (0.3, 0.1, 0.03, 0.01, 0.001)
_MOVING, _FACTOR, _LEAST_PROGRESS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01), 3.0, 1e-5
# Operations that the search for penalties of one model may take (it always looks at a few).
_OPERATIONS, _LEAST_TRIALS = 1e11, 4
# The largest regression: nodes times functions of z.
MAX_WIDTH = 2_000

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True)
class Gains:
    """Of all covariates over edges that do not move and over linear ones, and of each beyond all others."""

    over_still: Gain
    over_linear: Gain | None
    of_covariate: dict[str, Gain]


def held_out_gains(
    nodes: NDArray[np.float64],
    covariates: list[Smooth],
    splits: list[Split],
    units: NDArray[np.intp],
    tick: Callable[[], None],
) -> Gains:
    """Ridge regressions of each node on all others, with coefficients that do not move or are functions of z.

    Penalties for the rows of a fold are chosen on the other folds, and so is whether to use all covariates,
    all but one, or none: a covariate without effect gains about nothing rather than losing. Nodes (n, p) are
    standardised; rows with equal ``units`` may go together in any way, for the standard errors; ``tick`` is
    called after each model, twice more than there are covariates.
    """
    comparison = _Comparison(nodes, covariates, splits, units)
    blocks = comparison.blocks()
    linear = comparison.errors([b[: s.n_linear] for b, s in zip(blocks.values(), covariates, strict=True)])
    tick()
    every = comparison.errors(list(blocks.values()))
    tick()
    without = {}
    for name in blocks:
        without[name] = comparison.errors([block for other, block in blocks.items() if other != name])
        tick()
    best = comparison.best([every, *without.values()])
    return Gains(
        comparison.gain(comparison.still, best),
        None if all(smooth.is_linear for smooth in covariates) else comparison.gain(linear, best),
        {name: comparison.gain(rest, comparison.best([rest, every])) for name, rest in without.items()},
    )


class _Comparison:
    """Models that differ in which functions of z they have, on the same folds.

    A model is a list of blocks, each the positions of some columns of W with one penalty.
    """

    def __init__(
        self, nodes: NDArray[np.float64], covariates: list[Smooth], splits: list[Split], units: NDArray
    ) -> None:
        self.nodes, self.splits, self.covariates = nodes, splits, covariates
        self.W = np.column_stack([np.ones(len(nodes)), *(smooth.columns for smooth in covariates)])
        self.held_out = [len(rows) * interaction_gram(nodes[rows], self.W[rows]) for _, rows in splits]
        total = np.sum(self.held_out, axis=0)
        self.train = [
            (total - part) / len(rows) for part, (rows, _) in zip(self.held_out, splits, strict=True)
        ]
        self.mean_squares = np.ones(nodes.shape[1])
        self.common = np.zeros(len(splits))
        tried = [self._fold_errors([], (), np.full(len(splits), ridge)) for ridge in _COMMON]
        self.common = np.array(_COMMON)[self._chosen(np.array(tried))]
        residuals = self._residuals([], [()] * len(splits))
        self.yardstick = Yardstick.of(residuals, units)
        self.mean_squares, self.still = self.yardstick.mean_squares, self.yardstick.errors(residuals)

    def blocks(self) -> dict[str, list[int]]:
        """The columns of W that stand for each covariate."""
        ends = 1 + np.cumsum([smooth.columns.shape[1] for smooth in self.covariates])
        return {
            smooth.name: list(range(end - smooth.columns.shape[1], end))
            for smooth, end in zip(self.covariates, ends, strict=True)
        }

    def errors(self, blocks: list[list[int]]) -> NDArray[np.float64]:
        """The relative squared error of every row when edges are functions of these columns of W, (n,)."""
        if not blocks:
            return self.still
        tried = self._search(blocks)
        penalties = list(tried)
        chosen = self._chosen(np.array([tried[penalty] for penalty in penalties]))
        residuals = self._residuals(blocks, [penalties[choice] for choice in chosen])
        return self.best([self.still, self.yardstick.errors(residuals)])

    def best(self, candidates: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Errors of the candidate that the other folds prefer, fold by fold."""
        errors, result = np.array(candidates), np.empty(len(self.nodes))
        by_fold = np.stack([errors[:, rows].sum(axis=1) for _, rows in self.splits], axis=1)
        for chosen, (_, rows) in zip(self._chosen(by_fold), self.splits, strict=True):
            result[rows] = errors[chosen][rows]
        return result

    def gain(self, before: NDArray[np.float64], after: NDArray[np.float64]) -> Gain:
        return self.yardstick.gain(before, after)

    def _search(self, blocks: list[list[int]]) -> dict[tuple[float, ...], NDArray[np.float64]]:
        """Penalties per block that were tried, and the errors of the folds with them."""
        tried: dict[tuple[float, ...], NDArray[np.float64]] = {}
        width = self.nodes.shape[1] * (1 + sum(len(block) for block in blocks))
        trials = max(_LEAST_TRIALS, int(_OPERATIONS / (2 * len(self.splits) * width**3)))

        def improves(penalties: tuple[float, ...]) -> bool:
            if penalties in tried or len(tried) >= trials:
                return False
            best = min((float(errors.sum()) for errors in tried.values()), default=np.inf)
            tried[penalties] = self._fold_errors(blocks, penalties, self.common)
            return float(tried[penalties].sum()) < best * (1 - _LEAST_PROGRESS)

        for ridge in _MOVING:
            if not improves((ridge,) * len(blocks)):
                break
        at = min(tried, key=lambda penalties: tried[penalties].sum())
        for block in range(len(blocks) if len(blocks) > 1 else 0):
            for factor in (_FACTOR, 1 / _FACTOR):
                while improves(moved := (*at[:block], at[block] * factor, *at[block + 1 :])):
                    at = moved
        return tried

    def _coef(
        self, fold: int, blocks: list[list[int]], penalties: tuple[float, ...], common: float
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Coefficients without the rows of ``fold``, (m, p, p), and the columns of W they belong to."""
        columns = np.array([0, *(column for block in blocks for column in block)])
        ridge = np.repeat([common, *penalties], [1, *(len(block) for block in blocks)])
        entries = self._entries(columns)
        gram = self.train[fold][np.ix_(entries, entries)]
        return coefficients_from_gram(gram, self.nodes.shape[1], ridge), columns

    def _entries(self, columns: NDArray[np.intp]) -> NDArray[np.intp]:
        p = self.nodes.shape[1]
        return (columns[:, None] * p + np.arange(p)).reshape(-1)

    def _fold_errors(
        self, blocks: list[list[int]], penalties: tuple[float, ...], common: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Squared errors of each fold, relative and averaged over nodes, from its Gram matrix alone."""
        errors = []
        for fold, gram in enumerate(self.held_out):
            coef, columns = self._coef(fold, blocks, penalties, common[fold])
            entries = self._entries(columns)
            squares = squared_errors(coef, gram[np.ix_(entries, entries)])
            errors.append(float(np.mean(squares / self.mean_squares)))
        return np.array(errors)

    def _residuals(self, blocks: list[list[int]], penalties: list[tuple[float, ...]]) -> NDArray[np.float64]:
        """What is left of every held-out node, (n, p), with penalties fold by fold."""
        left = np.empty_like(self.nodes)
        for fold, (_, rows) in enumerate(self.splits):
            coef, columns = self._coef(fold, blocks, penalties[fold], self.common[fold])
            values = self.nodes[rows]
            left[rows] = values - interaction_fit(values, self.W[np.ix_(rows, columns)], coef)
        return left

    @staticmethod
    def _chosen(errors: NDArray[np.float64]) -> list[int]:
        """For each fold (column) the line of ``errors`` that is smallest on all others together."""
        return [int(line) for line in np.argmin(errors.sum(axis=1, keepdims=True) - errors, axis=0)]
