"""Patterns of nodes of any kind, given how they are mixed: each node by the likelihood of its family.

Shares and penalties were chosen by squared errors of the columns, which is the first round of what follows: a
loss is replaced by ``(eta - y)^2 / 2`` with the working response ``y = eta + f - mean(eta)``, as in
:mod:`graphfield.solvers.working`, which at ``eta`` without any edge is the column itself. Later rounds have
other responses and are solved in the same way, each from a point ahead of the last one (momentum), as counts
with a long tail are hardly curved in these units. On the average over rows no loss is more curved than that;
a node whose loss rises all the same goes half as far.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfield.data.blocks import Blocks
from graphfield.nn.fields import CoefField, Samples
from graphfield.solvers.acceleration import next_momentum
from graphfield.training.mixture import Again
from graphfield.training.sparse_patterns import Moments

Array = NDArray[np.float64]
# Rounds, and by how much natural parameters (in standard units, root mean square) change in the last of them.
_MAX_ROUNDS, _TOLERANCE = 30, 2e-3
# A loss that rises by more than this part of itself has gone too far.
_RISE = 5e-3
# The shortest step, after which a node stays where it is.
_LEAST_STEP = 0.01


@dataclass(frozen=True)
class FamilyTable:
    """Columns of all rows, (n, d), natural parameters at their means given z, samples less these means."""

    blocks: Blocks
    columns: Array
    links: Array
    data: Samples
    nodes: Tensor | None  # the node that owns each column, where some own several


@dataclass(frozen=True)
class FamilyFit:
    """Coefficients that lead to natural parameters, and what z alone says of these.

    That is ``null + base + slopes (links - null)``, with one slope for all columns of a node.
    """

    coef: CoefField
    base: Array  # (d,)
    slopes: Array  # (p,)


def fit_families(table: FamilyTable, again: Again, rows: Tensor, start: CoefField) -> FamilyFit:
    """From these rows; ``start`` has the coefficients of the first round."""
    return _Rounds(table, again, rows).run(start)


class _Rounds:
    """What is known of some rows: columns, how far z alone moves them, moments without a response."""

    def __init__(self, table: FamilyTable, again: Again, rows: Tensor) -> None:
        own = rows.cpu().numpy()
        self.blocks, self.columns = table.blocks, table.columns[own]
        self.moved = table.links[own] - table.blocks.null
        self.samples, self.find = table.data.take(rows[None]), again.find
        x = self.samples.x[0]
        self.shares = (again.features()[rows], x.new_ones(len(x), 1))
        self.moments = [Moments.of(shares, x, table.nodes) for shares in self.shares]

    def run(self, coef: CoefField) -> FamilyFit:
        nodes, p = self.blocks.nodes, len(self.blocks.widths)
        fit, fitted = FamilyFit(coef, np.zeros(len(nodes)), np.ones(p)), self._fitted(coef)
        eta, step, momentum = self._base(fit) + fitted, np.ones(p), np.ones(p)
        losses, before = self._losses(eta), (eta, fitted)
        for _ in range(_MAX_ROUNDS):
            following = next_momentum(momentum)
            ahead = ((momentum - 1) / following)[nodes]
            whole = self._solve(eta + ahead * (eta - before[0]), fitted + ahead * (fitted - before[1]))
            new = _between(fit, whole, step, nodes)
            new_fitted = fitted + step[nodes] * (self._fitted(whole.coef) - fitted)
            new_eta = self._base(new) + new_fitted
            new_losses = self._losses(new_eta)
            fell = new_losses <= losses + _RISE * np.abs(losses)
            fit = new if fell.all() else _between(fit, new, fell.astype(np.float64), nodes)
            change = np.sqrt(np.square(new_eta - eta).mean(axis=0))
            taken = fell[nodes]
            before, momentum = (eta, fitted), np.where(fell, following, 1.0)
            fitted, eta = np.where(taken, new_fitted, fitted), np.where(taken, new_eta, eta)
            losses, step = np.where(fell, new_losses, losses), np.where(fell, step, step / 2)
            if not np.where(taken, change > _TOLERANCE, step[nodes] > _LEAST_STEP).any():
                break
        return fit

    def _solve(self, eta: Array, fitted: Array) -> FamilyFit:
        """The least squares problem of a round."""
        response = eta + self.columns - self.blocks.means(eta)
        response[:, ~self.blocks.answers] = 0.0
        base, slopes = self._fit_base(response - self.blocks.null - fitted)
        left = response - self.blocks.null - base - slopes[self.blocks.nodes] * self.moved
        x = self.samples.x[0]
        target = torch.as_tensor(left, dtype=x.dtype, device=x.device)
        pairs = zip(self.moments, self.shares, strict=True)
        return FamilyFit(self.find(*(own.with_target(a, x, target) for own, a in pairs)), base, slopes)

    def _fit_base(self, left: Array) -> tuple[Array, Array]:
        starts, center = self.blocks.starts, self.moved.mean(axis=0)
        moved = self.moved - center
        product, square = (np.add.reduceat((moved * other).sum(axis=0), starts) for other in (left, moved))
        slopes = np.divide(product, square, out=np.ones(len(starts)), where=square > 1e-9 * len(left))
        return left.mean(axis=0) - slopes[self.blocks.nodes] * center, slopes

    def _base(self, fit: FamilyFit) -> Array:
        return self.blocks.null + fit.base + fit.slopes[self.blocks.nodes] * self.moved

    @torch.no_grad()
    def _fitted(self, coef: CoefField) -> Array:
        return coef.fitted(self.samples)[0].double().cpu().numpy()

    def _losses(self, eta: Array) -> Array:
        return self.blocks.losses(eta, self.columns).mean(axis=0)


@torch.no_grad()
def _between(first: FamilyFit, second: FamilyFit, step: Array, nodes: NDArray[np.intp]) -> FamilyFit:
    """So far from the first to the second, node by node; both mix by the same shares."""
    if (step == 1).all():
        return second
    coef = copy.deepcopy(first.coef)
    weight, other = (fit.coef.head.get_parameter("weight") for fit in (first, second))
    by_response = torch.as_tensor(step[nodes], dtype=weight.dtype, device=weight.device)[:, None]
    coef.head.get_parameter("weight").copy_(torch.lerp(weight, other, by_response))
    base = first.base + step[nodes] * (second.base - first.base)
    return FamilyFit(coef, base, first.slopes + step * (second.slopes - first.slopes))
