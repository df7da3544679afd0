"""Sparse precision matrices of several levels, found together: what they have in common is held together.

With shares w_k of the rows and a_k in proportion to sqrt(w_k) with sum one, this minimises over all levels

    sum_k w_k (-log det T_k + tr(S_k T_k)) + penalty sum_{i != j} sum_k a_k |T_k,ij| + what couples them,

    fused:  penalty f sum_{i, j} sum_{k < l} a_k a_l |T_k,ij - T_l,ij|                  (Danaher et al., 2014)
    chain:  the same for neighbours k, l = k + 1 only, with A_k (1 - A_k) for a_k a_l, where A_k is the sum of
            a up to k: equal to the line above where entries rise or fall along the chain
    group:  (1 - f) of the sum of absolute values, and f sqrt(sum_k a_k T_k,ij^2)        (Guo et al., 2011;
            Danaher et al., 2014)

The noise of the gradient of level k is in proportion to sqrt(w_k): with these weights a penalty stands as far
above the noise of a rare level as above that of a frequent one. A level on its own has the penalty
``penalty a_k / w_k``; all fused, it is one graphical lasso of ``sum_k w_k S_k`` at the penalty.
The alternating direction method of multipliers in the metric a_k has an exact proximal step for each of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from graphfield.solvers.glasso_admm import Alternation, PrecisionSolver
from graphfield.solvers.kernel_graphs import Local
from graphfield.solvers.shrinkage import shrink_entries

Array = NDArray[np.float64]
# Leads from values (K, m), the sizes a (K,) and an amount to the values that are held together.
Pull = Callable[[Array, Array, float], Array]


def rise(values: Array, sizes: Array) -> Array:
    """The nearest (K, m) that do not fall along the first axis, where ``sizes`` (K, m) weigh the squares.

    >>> rise(np.array([[2.0], [0.0], [3.0]]), np.ones((3, 1))).ravel().tolist()
    [1.0, 1.0, 3.0]
    """
    total, weight = np.cumsum(sizes * values, axis=0), np.cumsum(sizes, axis=0)
    found = np.full(values.shape, -np.inf)
    for first in range(len(values)):
        before = (total[first - 1], weight[first - 1]) if first else (0.0, 0.0)
        means = (total[first:] - before[0]) / (weight[first:] - before[1])
        lowest = np.minimum.accumulate(means[::-1], axis=0)[::-1]
        found[first:] = np.maximum(found[first:], lowest)
    return found


def fuse_pairs(values: Array, sizes: Array, amount: float) -> Array:
    """Minimise ``sum_k a_k (t_k - y_k)^2 / 2 + amount sum_{k < l} a_k a_l |t_k - t_l|`` for each column.

    The order of the values is that of the solution, in which the penalty is linear.

    >>> fuse_pairs(np.array([[0.0], [1.0]]), np.array([0.5, 0.5]), 0.4).round(2).ravel().tolist()
    [0.2, 0.8]
    """
    order = np.argsort(values, axis=0, kind="stable")
    a = sizes[order]
    below = np.cumsum(a, axis=0) - a
    pulled = np.take_along_axis(values, order, axis=0) - amount * (2 * below + a - a.sum(axis=0))
    found = np.empty(values.shape)
    np.put_along_axis(found, order, rise(pulled, a), axis=0)
    return found


def fuse_chain(values: Array, sizes: Array, amount: float) -> Array:
    """Minimise ``sum_k a_k (t_k - y_k)^2 / 2 + amount sum_k A_k (1 - A_k) |t_k+1 - t_k|`` for each column.

    By dynamic programming (Johnson, 2013): the derivative of the best cost of levels up to k, as a function
    of t_k, is made of straight lines between knots, and is cut at plus and minus what the next link can hold.
    """
    up_to = np.cumsum(sizes)[:-1]
    holds = [*(amount * up_to * (1 - up_to)), 0.0]
    knots, heights = np.empty((0, values.shape[1])), np.empty((0, values.shape[1]))
    ends = []
    for y, size, hold in zip(values, sizes, holds, strict=True):
        heights = heights + size * (knots - y)
        low, high = (_crossing(knots, heights, level, y, size) for level in (-hold, hold))
        ends.append((low, high))
        knots = np.concatenate([knots, [low, high]])
        heights = np.concatenate([np.clip(heights, -hold, hold), np.full((2, len(y)), [[-hold], [hold]])])
    found = [ends[-1][0]]
    for low, high in ends[-2::-1]:
        found.append(np.clip(found[-1], low, high))
    return np.array(found[::-1])


def _crossing(knots: Array, heights: Array, level: float, y: Array, size: float) -> Array:
    """Where a rising line through the knots, in no order, reaches this level; beyond them it rises by
    ``size``."""
    if len(knots) == 0:
        return y + level / size
    m = np.arange(knots.shape[1])
    below = np.where(heights <= level, knots, -np.inf)
    above = np.where(heights > level, knots, np.inf)
    left, right = np.argmax(below, axis=0), np.argmin(above, axis=0)
    a, b = below[left, m], above[right, m]
    at_a, at_b = heights[left, m], heights[right, m]
    with np.errstate(invalid="ignore", divide="ignore"):
        between = a + (b - a) * (level - at_a) / (at_b - at_a)
    outside = np.where(np.isinf(a), b - (at_b - level) / size, a + (level - at_a) / size)
    return np.where(np.isinf(a) | np.isinf(b), outside, between)


def shrink_groups(values: Array, sizes: Array, amount: float) -> Array:
    """Minimise ``sum_k a_k (t_k - y_k)^2 / 2 + amount sqrt(sum_k a_k t_k^2)`` for each column."""
    norm = np.sqrt(sizes @ np.square(values))
    return values * (np.maximum(norm - amount, 0) / np.maximum(norm, np.finfo(float).tiny))


COUPLINGS: dict[str, Pull] = {"fused": fuse_pairs, "chain": fuse_chain, "group": shrink_groups}


class _Levels(Alternation):
    """The matrices of all levels, each found from the ones before."""

    def __init__(self, covariances: Array, penalty: float, solver: JointSolver, strength: float) -> None:
        super().__init__(covariances, penalty, solver.sparse, solver.pull, solver.weight)
        self.metric = (solver.sizes / solver.shares)[:, None, None]
        self._sizes, self._group = solver.sizes, solver.coupling == "group"
        self._hold, self._strength = COUPLINGS[solver.coupling], strength
        j, k = np.triu_indices(covariances.shape[-1])
        self._upper, self._edges = (slice(None), j, k), j != k

    def shrink(self, ahead: Array) -> Array:
        """Entries on and above the diagonal, (K, m), where nothing but differences is penalised on it."""
        found, by = ahead[self._upper].copy(), self.penalty / self.weight
        if self._group:
            edges = shrink_entries(found[:, self._edges], by * (1 - self._strength))
            found[:, self._edges] = self._hold(edges, self._sizes, by * self._strength)
        else:
            found = self._hold(found, self._sizes, by * self._strength)
            found[:, self._edges] = shrink_entries(found[:, self._edges], by)
        result = np.empty(ahead.shape)
        result[self._upper] = result.swapaxes(1, 2)[self._upper] = found
        return result

    def violation(self) -> float:
        """The pull is a subgradient of the penalty; of the likelihood it is one at the solution."""
        try:
            np.linalg.cholesky(self.sparse)
        except np.linalg.LinAlgError:
            return np.inf
        apart = np.linalg.inv(self.sparse) - self.covariance - self.pull
        return float((np.abs(apart) / self.metric).max())


class JointSolver:
    """Precision matrices of correlation matrices (K, p, p), of levels with so many rows (K,).

    ``strength`` of a coupling is from 0, levels on their own, to 1: one matrix for all, or, of "group", edges
    that are there in all levels or in none. The fused penalty has ``f = strength / (1 - strength)``.
    """

    def __init__(self, correlations: Array, n_rows: Array, coupling: str) -> None:
        self.correlations, self.coupling = correlations, coupling
        self.shares = n_rows / n_rows.sum()
        self.sizes = np.sqrt(self.shares) / np.sqrt(self.shares).sum()
        self.sparse = np.tile(np.eye(correlations.shape[-1]), (len(correlations), 1, 1))
        self.pull, self.weight = np.zeros_like(correlations), 1.0
        self._alone = [PrecisionSolver(own) for own in correlations]
        self._pooled = PrecisionSolver(np.einsum("k,kij->ij", self.shares, correlations))

    def level_penalties(self, penalty: float) -> Array:
        """What the penalty is for a level on its own, (K,)."""
        return penalty * self.sizes / self.shares

    def solve(self, penalty: float, strength: float, accuracy: float) -> Array:
        if strength == 0:
            own = zip(self._alone, self.level_penalties(penalty), strict=True)
            return np.array([solver.solve(float(at), accuracy) for solver, at in own])
        if strength == 1 and self.coupling != "group":
            return np.tile(self._pooled.solve(penalty, accuracy), (len(self.shares), 1, 1))
        by = strength if self.coupling == "group" else strength / (1 - strength)
        problem = _Levels(self.correlations, penalty, self, by)
        found = problem.solve(accuracy)
        self.sparse, self.pull, self.weight = problem.sparse, problem.pull, problem.weight
        return found.copy()


def level_likelihood(matrices: Array, local: Local, values: Array, level: NDArray[np.intp]) -> Array:
    """Of rows (n, p), each of a level, but for a constant."""
    left = (values - local.centers[level]) / local.scales[level]
    log_scales = np.linalg.slogdet(matrices)[1] / 2 - np.log(local.scales).sum(axis=1)
    found = log_scales[level]
    for which in np.unique(level):
        own = level == which
        found[own] -= np.einsum("nj,jk,nk->n", left[own], matrices[which], left[own], optimize=True) / 2
    return found
