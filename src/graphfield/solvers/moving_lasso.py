"""Sparse regressions of every node on all others, with coefficients that move with functions of z.

For every node j, with m functions of z of which the first is one, minimise

    |x_j - sum_{k != j} (c_jk' w(z)) x_k|^2 / (2n) + penalty_j sum_k (|c_jk1| + weight |c_jk2, ..., c_jkm|_2)

by block coordinate descent on Gram matrices, and again with penalties of each coefficient divided by one plus
its size in units of the penalty, so that large ones are hardly drawn to zero (one step towards the logarithm
as a penalty; Candes, Wakin and Boyd, 2008). All nodes are updated at once, neighbour by neighbour, so that a
sweep is p small matrix products and nothing is compiled. Where nodes are nearly linear in each other, a small
penalty is large beside what they leave of one another, and descent is slow. So with enough rows least squares
is tried as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.numbers import is_clear, mean_and_error
from graphfield.solvers.interaction import interaction_gram
from graphfield.solvers.penalties import search_each_node
from graphfield.solvers.shrinkage import remaining_share, shrink_entries

# Penalties that are tried, in units of what the largest of p chance correlations is.
_PENALTIES = np.geomspace(2.0, 0.1, 9)
_SWEEPS, _PRECISION = 40, 2e-3
# Rows for each coefficient with which least squares is tried, and what keeps exact copies apart.
_LEAST_ROWS, _RIDGE = 2, 1e-9
# Smaller penalties are not tried where so few nodes gained from the last.
_FEW = 0.05
# Standard errors by which held-out rows of a node must be better predicted for its edges to move: one, as
# tests of movement follow; and for that to be beyond doubt.
MOVES, _BEYOND_DOUBT = 1.0, 3.0


@dataclass(frozen=True)
class MovingCoefficients:
    """Coefficients found without each fold, (folds, j, k, m), and the folds that hold a row out, (cuts, n).

    Rows may be cut into folds several times: each has the mean of what was found without it.
    ``if_still`` are those where such of which it is in doubt whether they move do not; None without doubt.
    """

    coef: NDArray[np.float64]
    fold: NDArray[np.intp]
    if_still: NDArray[np.float64] | None = None

    def residuals(self, X: NDArray[np.float64], W: NDArray[np.float64]) -> NDArray[np.float64]:
        """What they leave of every node, (n, p), in rows that took no part in them."""
        left = X.copy()
        for number, coef in enumerate(self.coef / len(self.fold)):
            rows = (self.fold == number).any(axis=0)
            for column, own in zip(W[rows].T, coef.transpose(2, 0, 1), strict=True):
                left[rows] -= column[:, None] * (X[rows] @ own.T)
        return left


def cross_fitted_coefficients(
    X: NDArray[np.float64],
    W: NDArray[np.float64],
    fold: NDArray[np.intp],
    tick: Callable[[], None] = lambda: None,
) -> MovingCoefficients:
    """Solve the problem at the head of this module without each fold in turn.

    Each node has the penalty at which rows of the folds are predicted best by those outside them. Its
    coefficients move only where rows of the folds are clearly better predicted so (by more than a standard
    error): average and movement share one penalty, and where a node has many neighbours the best one is small
    and would let movement in that is noise. What such noise has in common in two nodes looks like an edge
    that moves. So where rows are not better by several standard errors, also those are returned that do not
    move. Nodes have mean zero and variance one; W are functions of z, the first one, uncorrelated with
    mean square one. ``tick`` is called :func:`n_ticks` times at most.
    """
    m = W.shape[1]
    held_out = [np.flatnonzero((fold == number).any(axis=0)) for number in range(fold.max() + 1)]
    counts = np.array([len(rows) for rows in held_out])
    parts = np.stack([len(rows) * _gram(X[rows], W[rows]) for rows in held_out])
    moving = MovingCoefficients(_best_coefficients(parts, counts, X, tick), fold)
    if m == 1:
        return moving
    coef = np.zeros_like(moving.coef)
    coef[..., :1] = _best_coefficients(parts[:, ::m, ::m], counts, X)
    still = MovingCoefficients(coef, fold)
    gain = np.square(still.residuals(X, W)) - np.square(moving.residuals(X, W))
    better, error = mean_and_error(gain, ddof=0)
    found, certain = (
        np.where(is_clear(better, error, times)[:, None, None], moving.coef, still.coef)
        for times in (MOVES, _BEYOND_DOUBT)
    )
    return MovingCoefficients(found, fold, None if np.array_equal(found, certain) else certain)


def _best_coefficients(
    parts: NDArray[np.float64],
    counts: NDArray[np.intp],
    X: NDArray[np.float64],
    tick: Callable[[], None] = lambda: None,
) -> NDArray[np.float64]:
    """(folds, j, k, m), from the sums of products in each fold, at the best penalty of each node."""
    (n, p), n_cuts = X.shape, counts.sum() // len(X)
    total = parts.sum(axis=0) / n_cuts
    problems = _Regressions((total - parts) / (n - counts)[:, None, None], p)
    unit, m = np.sqrt(2 * np.log(max(p, 2)) / n), len(total) // p
    best = np.zeros((len(counts), p, p, m))
    least = n_cuts * np.diag(total)[::m]  # the error of no coefficient at all
    empty = least.sum()

    def attempt(penalty: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        found = problems.solve(penalty)
        tick()
        return found, errors(found)

    def errors(found: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sum([squared_errors(*both) for both in zip(found, parts, strict=True)], axis=0)

    def keep(found: NDArray[np.float64], better: NDArray[np.bool_]) -> None:
        best[:, better] = found[:, better]

    def ends(better: NDArray[np.bool_], losses: NDArray[np.float64]) -> bool:
        return bool(better.mean() < _FEW and losses.sum() < empty)

    search_each_node(unit * _PENALTIES, attempt, keep, least, ends)
    if len(total) * _LEAST_ROWS <= n - counts.max():
        found = problems.least_squares()
        keep(found, errors(found) < errors(best))
    return best


def n_ticks() -> int:
    """How often :func:`cross_fitted_coefficients` says that it has come further."""
    return len(_PENALTIES)


def _gram(X: NDArray[np.float64], W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of all products, those of one neighbour side by side, (p m, p m)."""
    p, m = X.shape[1], W.shape[1]
    gram = interaction_gram(X, W).reshape(m, p, m, p)
    return np.ascontiguousarray(gram.transpose(1, 0, 3, 2).reshape(p * m, p * m))


class _Regressions:
    """The regressions of all nodes for some Gram matrices; each solution starts from the one before.

    All are solved side by side: of few nodes, one small step of all costs hardly more than that of one.
    """

    def __init__(self, grams: NDArray[np.float64], p: int) -> None:
        m = grams.shape[1] // p
        self.grams, self.p, self.m = grams, p, m
        blocks = grams.reshape(-1, p, m, p, m)[:, np.arange(p), :, np.arange(p), :]  # (p, folds, m, m)
        largest = np.linalg.eigvalsh(blocks)[..., -1]
        self.steps = np.where(largest > 0, largest, np.inf)  # (p, folds); a constant node moves nowhere
        self.coef = np.zeros((len(grams), p, p, m))
        self.left = grams[:, ::m].copy()  # what remains of the covariances with x_j, (folds, j, k m)
        # The size of chance in m - 1 directions beside that in one, for the largest of p.
        spread = np.sqrt(2 * np.log(max(p, 2)))
        self.weight = (np.sqrt(m - 1) + spread) / spread

    def solve(self, penalty: float) -> NDArray[np.float64]:
        even = np.full(2, penalty) * (1, self.weight)
        self._descend(np.broadcast_to(even, (*self.coef.shape[:3], 2)))
        start = self.coef.copy(), self.left.copy()
        sizes = np.stack([np.abs(self.coef[..., 0]), np.linalg.norm(self.coef[..., 1:], axis=3)], axis=3)
        self._descend(even / (1 + sizes / even))
        found = self.coef
        self.coef, self.left = start
        return found

    def least_squares(self) -> NDArray[np.float64]:
        """Without any penalty, of all nodes from one inverse for each Gram matrix."""
        p, m, size = self.p, self.m, self.p * self.m
        ridge = _RIDGE * np.trace(self.grams, axis1=1, axis2=2)[:, None, None] / size * np.eye(size)
        inverse = np.linalg.inv(self.grams + ridge).reshape(-1, p, m, p, m)
        own = inverse[:, np.arange(p), :, np.arange(p), :]  # (p, folds, m, m)
        first = np.linalg.inv(own)[:, :, 0]  # of the m products of a node, the first is the node
        found = -np.einsum("jfa,fjakb->fjkb", first, inverse)
        found[:, np.arange(p), np.arange(p)] = 0.0
        return found

    def _descend(self, penalties: NDArray[np.float64]) -> None:
        for _ in range(_SWEEPS):
            if max(self._update(k, penalties[:, :, k]) for k in range(self.p)) < _PRECISION:
                break

    def _update(self, k: int, penalties: NDArray[np.float64]) -> float:
        own, step = slice(k * self.m, (k + 1) * self.m), self.steps[k, :, None]
        new = self.coef[:, :, k] + self.left[:, :, own] / step[..., None]
        new[:, k] = 0.0
        new[..., 0] = shrink_entries(new[..., 0], penalties[..., 0] / step)
        size = np.linalg.norm(new[..., 1:], axis=2)
        new[..., 1:] *= remaining_share(size, penalties[..., 1] / step)[..., None]
        change = new - self.coef[:, :, k]
        moved = np.flatnonzero(change.any(axis=(0, 2)))
        if not len(moved):
            return 0.0
        self.left[:, moved] -= change[:, moved] @ self.grams[:, own]
        self.coef[:, :, k] = new
        return float(np.abs(change).max())


def squared_errors(coef: NDArray[np.float64], gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each node, by the Gram matrix of other rows, for coefficients (j, k, m)."""
    flat = coef.reshape(len(coef), -1)
    own = np.arange(len(coef)) * coef.shape[2]
    return gram[own, own] + (flat * (flat @ gram - 2 * gram[own])).sum(axis=1)
