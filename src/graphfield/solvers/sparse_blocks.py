"""Penalties on whole blocks of coefficients: all effects of one node on another vanish together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks
from graphfield.solvers.acceleration import accelerate
from graphfield.solvers.penalties import PathSearch, PenaltyChoice, smallest_penalty, too_dense
from graphfield.solvers.shrinkage import remaining_share
from graphfield.solvers.working import FamilyRows, fit_families, own_columns, split_coefficients

Array = NDArray[np.float64]
# Steps within a round; in the last of them coefficients change by a tenth of what rounds are to.
_MAX_STEPS = 300
# How exact solutions are, and those that only compare penalties.
_TOLERANCE, _PATH_TOLERANCE = 1e-5, 1e-3


class SparseStep:
    """``penalty (mix sum_wk sqrt(size) |B_wjk|_F + (1 - mix) sum_c sqrt(size) |B_jc|_F)`` for each node j.

    The first sum is over features w of z and neighbours k, the second over covariates c, each with all its
    effects on the edges of j, as in :mod:`graphfield.solvers.sparse_group`; what does not depend on
    covariates, w = 0, is in the first alone. Where every node has one column, the first is an L1 norm. Means
    are free.
    """

    def __init__(
        self,
        rows: FamilyRows,
        penalty: float,
        mix: float = 1.0,
        covariate: NDArray | None = None,
        tolerance: float = _TOLERANCE,
    ) -> None:
        self._tolerance = tolerance / 10
        self._blocks, self._m = rows.blocks, rows.W.shape[1]
        self._own = own_columns(rows.blocks, rows.shape, self._m)
        self._largest = rows.largest_eigenvalue
        covariate = np.zeros(self._m, dtype=np.intp) if covariate is None else covariate
        self._groups = [np.flatnonzero(covariate == c) for c in np.unique(covariate[1:])] if mix < 1 else []
        widths = rows.blocks.widths
        self._entry = penalty * mix * np.sqrt(np.outer(widths, widths))  # (k, j)
        per_feature = widths * (rows.blocks.n_columns - widths)
        self._group = [penalty * (1 - mix) * np.sqrt(len(own) * per_feature) for own in self._groups]

    def solve(self, gram: Array, cross: Array, curvature: Array, start: Array) -> Array:
        """By proximal gradients with momentum, from ``start``."""
        length = 1 / (curvature * self._largest)

        def step(S: Array) -> Array:
            return self._shrink(S - length * (curvature * (gram @ S) - cross), length)

        def is_settled(change: Array, _: Array) -> bool:
            return bool(np.abs(change).max() < self._tolerance)

        found: Array = accelerate(start, step, is_settled, _MAX_STEPS)
        return found

    def penalty(self, S: Array) -> Array:
        squares = block_squares(split_coefficients(S, self._m)[0], self._blocks)
        total = (self._entry * np.sqrt(squares)).sum(axis=(0, 1))
        for own, weight in zip(self._groups, self._group, strict=True):
            total += weight * np.sqrt(squares[own].sum(axis=(0, 1)))
        return total

    def _shrink(self, S: Array, length: Array) -> Array:
        S[self._own] = 0.0
        B, _ = split_coefficients(S, self._m)
        of_node = length[self._blocks.starts]
        squares = block_squares(B, self._blocks)
        factor = remaining_share(np.sqrt(squares), self._entry * of_node)
        for own, weight in zip(self._groups, self._group, strict=True):
            left = (squares[own] * np.square(factor[own])).sum(axis=(0, 1))
            factor[own] *= remaining_share(np.sqrt(left), weight * of_node)
        nodes = self._blocks.nodes
        B *= factor[:, nodes[:, None], nodes]  # in place, also in S
        return S


def block_squares(B: Array, blocks: Blocks) -> Array:
    """Sums of squares over the blocks of (m, d, d): (m, p, p)."""
    return np.add.reduceat(np.add.reduceat(np.square(B), blocks.starts, axis=1), blocks.starts, axis=2)


def zero_solution(rows: FamilyRows, mix: float) -> tuple[Array, float]:
    """Coefficients where there is no edge, and a penalty from which on there is none."""
    S = fit_families(rows, SparseStep(rows, 1e12))
    left = rows.gradient(rows.columns - rows.blocks.means(rows.predictors(S)))
    left[own_columns(rows.blocks, rows.shape, rows.W.shape[1])] = 0.0
    norms = np.sqrt(block_squares(split_coefficients(left, rows.W.shape[1])[0], rows.blocks))
    widths = rows.blocks.widths
    # A hair above the edge, so that rounding lets nothing in.
    return S, float((norms / (mix * np.sqrt(np.outer(widths, widths)))).max()) * (1 + 1e-9)


def solve_path(
    rows: FamilyRows,
    penalties: Array,
    start: Array,
    mix: float = 1.0,
    covariate: NDArray | None = None,
    tolerance: float = _PATH_TOLERANCE,
) -> Array:
    """Solutions at falling penalties, each found from the last one."""
    found = []
    for penalty in penalties:
        start = fit_families(rows, SparseStep(rows, penalty, mix, covariate, tolerance), start, tolerance)
        found.append(start)
    return np.array(found)


def held_out_losses(
    rows: FamilyRows,
    folds: NDArray[np.intp],
    penalties: Array,
    start: Array,
    mix: float = 1.0,
    covariate: NDArray | None = None,
    patience: int = 4,
) -> Array:
    """Mean over nodes of the loss of held-out rows, (tried, folds), until it rises for ``patience`` steps.

    ``folds`` (n,) says which fold holds a row out, -1 for rows that none does.
    """
    pairs = [(rows.take(folds != f), rows.take(folds == f)) for f in range(folds.max() + 1)]

    def attempt(penalty: float, near: list[Array] | None) -> tuple[float, list[Array]]:
        begun = [start] * len(pairs) if near is None else near
        both = zip(pairs, begun, strict=True)
        found = [solve_path(known, np.array([penalty]), S, mix, covariate)[0] for (known, _), S in both]
        tried.append([float(new.losses(S).mean()) for (_, new), S in zip(pairs, found, strict=True)])
        return float(np.mean(tried[-1])), found

    tried: list[list[float]] = []
    PathSearch(penalties, attempt).walk(0, lambda search: search.worse >= patience)
    return np.array(tried)


def choose_blocks(
    rows: FamilyRows,
    known: FamilyRows,
    given: float | None,
    folds: NDArray[np.intp] | None,
    n_penalties: int,
    ebic_gamma: float,
) -> PenaltyChoice:
    """One graph for everybody, at a penalty that is given, or chosen by ``folds``, or else by the EBIC.

    ``rows`` are all, of which folds hold some out, and ``known`` are the rows to fit. The solution has the
    shape of :func:`fit_families`.
    """
    start, top = zero_solution(known, 1.0)
    if given is not None:
        solution = solve_path(known, np.array([given]), start, tolerance=_TOLERANCE)
        return _choose(solution, np.array([given]), np.array([np.nan]), known.blocks)
    ratio = min(0.1, smallest_penalty(len(known.W)) / top)
    penalties = np.geomspace(top, top * ratio, n_penalties)
    if folds is not None:
        scores = held_out_losses(rows, folds, penalties, start).mean(axis=1)
        solutions = solve_path(known, penalties[: len(scores)], start)
    else:
        solutions = solve_path(known, penalties, start)
        scores = np.array([block_ebic(S, known, ebic_gamma) for S in solutions])
    chosen = _choose(solutions, penalties[: len(scores)], scores, known.blocks)
    exact = solve_path(known, np.array([chosen.penalty]), chosen.solution, tolerance=_TOLERANCE)[0]
    return PenaltyChoice(exact, chosen.penalty, chosen.path)


def block_ebic(S: Array, rows: FamilyRows, gamma: float) -> float:
    """The EBIC of :func:`~graphfield.solvers.lasso.nodewise_ebic`, with the likelihood of each family.

    Degrees of freedom are the entries of blocks that are there.
    """
    n, losses, blocks = len(rows.W), rows.losses(S), rows.blocks
    fit = np.where(blocks.are_numbers, np.log(np.maximum(2 * losses, np.finfo(np.float64).tiny)), 2 * losses)
    degrees = np.count_nonzero(split_coefficients(S, 1)[0][0])
    most = np.count_nonzero(split_coefficients(S, 1)[0][0], axis=0).max()
    if too_dense(float(most), n):
        return np.inf
    return float(n * fit.sum() + degrees * (np.log(n) + 2 * gamma * np.log(max(len(losses) - 1, 1))))


def _choose(solutions: Array, penalties: Array, scores: Array, blocks: Blocks) -> PenaltyChoice:
    there = np.array([block_squares(split_coefficients(S, 1)[0], blocks)[0] > 0 for S in solutions])
    return PenaltyChoice.best(solutions, penalties, scores, there)
