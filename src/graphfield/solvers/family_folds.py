"""Sparse regressions of nodes of any kind on all others, for rows that took no part in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphfield.numbers import is_clear, mean_and_error
from graphfield.solvers.moving_lasso import MOVES
from graphfield.solvers.penalties import search_each_node
from graphfield.solvers.sparse_blocks import solve_path, zero_solution
from graphfield.solvers.working import FamilyRows

Array = NDArray[np.float64]
Attempt = tuple[list[Array], Array]  # solutions without each fold, and losses of its rows, (n, p)
# Penalties that are tried, in units of what the largest of d chance scores is.
_PENALTIES = np.geomspace(1.5, 0.1, 7)
# By how much coefficients in standard units change in the last round at most.
_TOLERANCE = 3e-3


def cross_fitted_families(
    rows: FamilyRows, fold: NDArray[np.intp], tick: Callable[[], None] = lambda: None
) -> Array:
    """Coefficients found without each fold, (folds, m d + u, d).

    ``fold``, (cuts, n), are the folds that hold each row out, in each of several cuts of the rows.
    Each node has the penalty at which rows of the folds are predicted best by those outside them. Its edges
    move only where these rows are clearly better predicted so, by more than a standard error, as in
    :func:`~graphfield.solvers.moving_lasso.cross_fitted_coefficients`. ``tick`` is called
    :func:`n_ticks` times at most.
    """
    size, d = rows.shape
    found, loss = _best_coefficients(rows, fold, tick)
    if rows.W.shape[1] == 1:
        return found
    still, loss_of_still = _best_coefficients(replace(rows, W=rows.W[:, :1]), fold, tick)
    gain = loss_of_still - loss
    clear = is_clear(*mean_and_error(gain, ddof=0), MOVES)[rows.blocks.nodes]
    wide = np.zeros((len(found), size, d))
    wide[:, :d], wide[:, rows.W.shape[1] * d :] = still[:, :d], still[:, d:]
    return np.where(clear, found, wide)


def n_ticks(n_folds: int) -> int:
    """How often :func:`cross_fitted_families` says that it has come further."""
    return 2 * n_folds * len(_PENALTIES)


def held_out_losses(rows: FamilyRows, fold: NDArray[np.intp]) -> Array:
    """Half the deviance of rows that took no part, at the penalty that the other folds prefer, (n, p).

    Of rows that are cut once, ``fold`` (1, n).
    """
    tried: list[Array] = []
    _search(rows, fold, lambda: None, lambda own, _: tried.append(own[1]))
    losses = np.stack(tried)
    found = np.empty_like(losses[0])
    for number in range(fold.max() + 1):
        own = fold[0] == number
        best = losses[:, ~own].mean(axis=1).argmin(axis=0)
        found[own] = np.take_along_axis(losses[:, own], best[None, None], axis=0)[0]
    return found


def _best_coefficients(
    rows: FamilyRows, fold: NDArray[np.intp], tick: Callable[[], None]
) -> tuple[Array, Array]:
    """At the best penalty of each node, and the losses of rows that took no part, (n, p)."""
    best = np.zeros((fold.max() + 1, *rows.shape))
    least = np.full((fold.shape[1], len(rows.blocks.slices)), np.inf)

    def keep(own: Attempt, better: NDArray[np.bool_]) -> None:
        nodes = better[rows.blocks.nodes]
        best[..., nodes] = np.array(own[0])[..., nodes]
        least[:, better] = own[1][:, better]

    _search(rows, fold, tick, keep)
    return best, least


def _search(
    rows: FamilyRows,
    fold: NDArray[np.intp],
    tick: Callable[[], None],
    keep: Callable[[Attempt, NDArray[np.bool_]], None],
) -> None:
    """From the largest penalty on, until no node gains."""
    start = zero_solution(rows, 1.0)[0]
    held_out = [(fold == number).any(axis=0) for number in range(fold.max() + 1)]
    parts = [(rows.take(~own), rows.take(own)) for own in held_out]
    near, least = [start] * len(parts), np.full(len(rows.blocks.slices), np.inf)

    def attempt(penalty: float) -> tuple[Attempt, Array]:
        losses = np.zeros((fold.shape[1], len(least)))
        for number, (known, new) in enumerate(parts):
            near[number] = solve_path(known, np.array([penalty]), near[number], tolerance=_TOLERANCE)[0]
            own = new.blocks.losses(new.predictors(near[number]), new.columns)
            losses[held_out[number]] += own / len(fold)
            tick()
        return (list(near), losses), losses.mean(axis=0)

    penalties = np.sqrt(2 * np.log(max(rows.shape[1], 2)) / fold.shape[1]) * _PENALTIES
    search_each_node(penalties, attempt, keep, least, lambda better, _: not better.any())
