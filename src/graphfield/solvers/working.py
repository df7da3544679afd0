"""Regressions of nodes of any kind on the columns of the others, each by the likelihood of its family.

With columns f in standard units (:mod:`graphfield.data.blocks`), features W and U of z, and centres c(z) of
the columns, node j has the natural parameters

    eta_j(z, x) = null_j + offset_j(z) + A_j' U(z) + sum_{k != j} (sum_w B_wjk W_w(z)) (f_k - c_k(z)) .

In each round the loss of a node is replaced by ``curvature_j / 2 (eta - y)^2`` with the working response
``y = eta + (f - mean(eta)) / curvature_j``: least squares, in which all nodes share one Gram matrix. A
curvature of 1 is that of the node where nothing is related to it. It is exact for numbers; the others begin
ahead of where their last step led (:mod:`graphfield.solvers.acceleration`). Where a loss did not fall, that
node's step is taken again without this, and if it had none (counts have no bound) its curvature is doubled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks
from graphfield.solvers.acceleration import next_momentum

Array = NDArray[np.float64]
# Rounds, and by how much coefficients (in standard units) change in the last of them at most.
_MAX_ROUNDS, _TOLERANCE = 100, 1e-5
# A curvature beyond this is no longer one of the loss but of rounding.
_MAX_CURVATURE = 1e6
# Loss that rounding may add.
_SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class FamilyRows:
    """Rows to fit: columns and their centres (n, d), features of edges (n, m) and of means (n, u).

    ``offset`` (n, d) is what natural parameters are known to begin with, if anything.
    """

    blocks: Blocks
    columns: Array
    center: Array
    W: Array
    U: Array
    offset: Array | None = None

    def take(self, rows: NDArray | slice) -> FamilyRows:
        columns, center, W, U = (part[rows] for part in (self.columns, self.center, self.W, self.U))
        offset = None if self.offset is None else self.offset[rows]
        return FamilyRows(self.blocks, columns, center, W, U, offset)

    @property
    def shape(self) -> tuple[int, int]:
        """Of coefficients: (m d + u, d), response by column; A is below B."""
        d = self.columns.shape[1]
        return self.W.shape[1] * d + self.U.shape[1], d

    @cached_property
    def neighbours(self) -> Array:
        return self.columns - self.center

    @cached_property
    def gram(self) -> Array:
        """Of all products of W and columns, and U, divided by n."""
        n, (size, d) = len(self.W), self.shape
        gram, step = np.zeros((size, size)), max(1, 20_000_000 // size)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            products = self.W[rows, :, None] * self.neighbours[rows, None, :]
            design = np.hstack([products.reshape(-1, self.W.shape[1] * d), self.U[rows]])
            gram += design.T @ design
        return gram / n

    @cached_property
    def largest_eigenvalue(self) -> float:
        """Of the Gram matrix."""
        return float(np.linalg.eigvalsh(self.gram)[-1])

    def predictors(self, S: Array) -> Array:
        """eta of every row and column, (n, d)."""
        B, A = split_coefficients(S, self.W.shape[1])
        eta = self.blocks.null + self.U @ A
        if self.offset is not None:
            eta += self.offset
        for feature, own in zip(self.W.T, B, strict=True):
            eta += feature[:, None] * (self.neighbours @ own)
        return eta

    def gradient(self, left: Array) -> Array:
        """Of the linear part: products of the design with what is ``left`` of the columns, (m d + u, d)."""
        parts = [self.neighbours.T @ (feature[:, None] * left) for feature in self.W.T]
        return np.vstack([*parts, self.U.T @ left]) / len(left)

    def losses(self, S: Array) -> Array:
        """Half the deviance of each node, its mean over rows, (p,)."""
        return self.blocks.losses(self.predictors(S), self.columns).mean(axis=0)


class Step(Protocol):
    """Solves the least squares problem of a round, with its penalty."""

    def solve(self, gram: Array, cross: Array, curvature: Array, start: Array) -> Array:
        """Minimise ``curvature / 2 S' gram S - cross' S`` and the penalty, column by column."""

    def penalty(self, S: Array) -> Array:
        """Of each node, (p,)."""


def split_coefficients(S: Array, n_features: int) -> tuple[Array, Array]:
    """B (m, d, d), by feature, neighbour and response, and A (u, d)."""
    d = S.shape[1]
    return S[: n_features * d].reshape(n_features, d, d), S[n_features * d :]


def own_columns(blocks: Blocks, shape: tuple[int, int], n_features: int) -> NDArray[np.bool_]:
    """Where a node would be in its own regression, (m d + u, d)."""
    own = np.zeros(shape, dtype=bool)
    same = blocks.nodes[:, None] == blocks.nodes
    own[: n_features * shape[1]] = np.tile(same, (n_features, 1))
    return own


def fit_families(
    rows: FamilyRows, step: Step, start: Array | None = None, tolerance: float = _TOLERANCE
) -> Array:
    """Coefficients (m d + u, d) that minimise loss and penalty of every node."""
    nodes, numbers = rows.blocks.nodes, rows.blocks.are_numbers
    S = np.zeros(rows.shape) if start is None else start
    curvature = momentum = np.ones(len(numbers))
    eta = rows.predictors(S)
    loss = rows.blocks.losses(eta, rows.columns).mean(axis=0) + step.penalty(S)
    before, before_eta = S, eta
    for _ in range(_MAX_ROUNDS):
        by_column, following = curvature[nodes], np.where(numbers, 1.0, next_momentum(momentum))
        ahead = ((momentum - 1) / following)[nodes]
        point, point_eta = S + ahead * (S - before), eta + ahead * (eta - before_eta)
        cross = rows.gradient(rows.columns - rows.blocks.means(point_eta)) + by_column * (rows.gram @ point)
        found = step.solve(rows.gram, cross, by_column, point)
        new_eta = rows.predictors(found)
        new_loss = rows.blocks.losses(new_eta, rows.columns).mean(axis=0) + step.penalty(found)
        fell = ~(new_loss > loss + _SLACK * (1 + np.abs(loss)))
        curvature = np.where(fell | (momentum > 1), curvature, 2 * curvature)
        momentum = np.where(fell, following, 1.0)
        change = np.abs(found - S).max(axis=0)
        taken = fell[nodes]
        before, before_eta = S, eta
        S, eta = np.where(taken, found, S), np.where(taken, new_eta, eta)
        loss = np.where(fell, new_loss, loss)
        going_on = np.where(taken, change > tolerance, curvature[nodes] < _MAX_CURVATURE)
        if not going_on.any():
            break
    return S


class RidgeStep:
    """``ridge / 2`` times the sum of squares of what differs from coefficients ``toward``."""

    def __init__(self, rows: FamilyRows, ridge: float, toward: Array | float = 0.0) -> None:
        self._blocks, self._ridge = rows.blocks, ridge
        self._toward = np.broadcast_to(toward, rows.shape)
        self._own = own_columns(rows.blocks, rows.shape, rows.W.shape[1])
        self._inverses: dict[float, Array] = {}

    def solve(self, gram: Array, cross: Array, curvature: Array, start: Array) -> Array:  # noqa: ARG002
        S = np.empty_like(cross)
        for block in self._blocks.slices:
            inverse = self._inverse(gram, float(curvature[block.start]))
            own = np.flatnonzero(self._own[:, block.start])
            target = (cross[:, block] + self._ridge * self._toward[:, block]) / curvature[block]
            target[own] = 0.0
            # The inverse of the matrix without own rows and columns, from that of all, as in interaction.py.
            solution = inverse @ target
            solution -= inverse[:, own] @ np.linalg.solve(inverse[np.ix_(own, own)], solution[own])
            solution[own] = 0.0
            S[:, block] = solution
        return S

    def penalty(self, S: Array) -> Array:
        squares = np.add.reduceat(np.square(S - self._toward).sum(axis=0), self._blocks.starts)
        return self._ridge / 2 * squares

    def _inverse(self, gram: Array, curvature: float) -> Array:
        if curvature not in self._inverses:
            ridge = self._ridge / curvature * np.eye(len(gram))
            self._inverses[curvature] = np.asarray(np.linalg.inv(gram + ridge), dtype=np.float64)
        return self._inverses[curvature]
