"""How much of a mixture's movement with z is kept: as much as stands clear of chance in rows it has not seen.

Where few groups are held out, those of training decide in turn: gate and patterns are found again without
each part of them (:class:`Copy`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from scipy.stats import t as student
from torch import Tensor

from graphfield.nn.fields import CoefField, Samples, by_parts
from graphfield.nn.gates import GateField, mixed_field
from graphfield.numbers import is_clear

# Held-out rows (or groups) below which their word is too uncertain.
FEW_UNITS = 200
# Of the rows that support movement. Those held out have chosen penalty, rounds and rank as well, and the
# others what the patterns are about, so it must be clear.
_CONFIDENCE = 0.975


def is_few(units: Tensor) -> bool:
    """Whether so few rows or groups are held out that those of training decide, by cross-fitting."""
    return len(torch.unique(units)) < FEW_UNITS


def supported_share(support: Tensor, units: Tensor, n_errors: float | None = None) -> float:
    """The share s, 0 to 1, of the movement in ``average + s * (beta(z) - average)`` that is to be kept.

    Patterns differ by chance as well, so graphs move more with z than they should where there is little to
    find; 0 is one graph for all. With the share v that predicts rows best, its standard error e over units
    and Student's quantile c, it is ``v - (c e)^2 / v`` (a non-negative garrote): nothing where v is within
    chance of zero, nearly v where it is far from it. ``support`` is that of :func:`support_of`; another c
    is ``n_errors``.
    """
    codes = torch.unique(units, return_inverse=True)[1]
    left, size = support.new_zeros(2, int(codes.max()) + 1).index_add_(1, codes, support[:2])
    count, total = len(size), float(size.sum())
    if count < 2 or total <= 0:
        return 0.0
    best = float(left.sum()) / total
    error = float((left - best * size).square().sum()) ** 0.5 / total
    if n_errors is None:
        n_errors = float(student.ppf(_CONFIDENCE, count - 1))
    return min(1.0, best - (n_errors * error) ** 2 / best) if is_clear(best, error, n_errors) else 0.0


@torch.no_grad()
def support_of(moving: CoefField, still: CoefField | Tensor, data: Samples, rows: Tensor) -> Tensor:
    """Of each row, what speaks for movement beside one graph (p, p), summed over nodes, (3, n).

    The product of the movement and what the one graph leaves, the movement squared, what it leaves squared.
    In place of one graph there may be another field, from which the other differs.
    """

    def support(batch: Samples) -> Tensor:
        fitted = batch.x[0] @ still.T if isinstance(still, Tensor) else still.fitted(batch)[0]
        left, moved = (batch.x[0] - fitted).double(), (moving.fitted(batch)[0] - fitted).double()
        return torch.stack([(left * moved).sum(dim=1), moved.square().sum(dim=1), left.square().sum(dim=1)])

    return by_parts(support, data, rows, dim=1)


def about(still: Tensor, patterns: Tensor, share: float) -> Tensor:
    """Patterns (r, p, p) with so much of their difference from one graph."""
    return torch.lerp(still.expand_as(patterns), patterns, share)


def errors_with(support: Tensor, share: float) -> Tensor:
    """The squared error of each row with so much of the movement."""
    product, moved, left = support
    return left - 2 * share * product + share**2 * moved


@dataclass(frozen=True)
class Copy:
    """A gate with its patterns, found without some of the rows of training."""

    gate: GateField
    patterns: Tensor
    mean: Tensor  # shares of the average graph, of the rows that it was found from
    data: Samples
    rows: Tensor  # the others

    @property
    def average(self) -> Tensor:
        """The average graph, (p, p)."""
        return torch.tensordot(self.mean, self.patterns, dims=1)

    def brought_to(self, still: Tensor, step: float) -> Copy:
        """The same movement about an average that is so far on the way to one graph."""
        return replace(self, patterns=self.patterns + step * (still - self.average))

    def support_of_one(self, still: Tensor, kept_share: float) -> Tensor:
        """What speaks for an average that is the one graph's, with so much of the movement."""
        near, own = (
            mixed_field(self.gate, about(still, copy.patterns, kept_share))
            for copy in (self.brought_to(still, 1.0), self)
        )
        return support_of(near, own, self.data, self.rows)

    def support(self, still: Tensor | None = None) -> Tensor:
        """Beside one graph, or its own average."""
        field = mixed_field(self.gate, self.patterns)
        return support_of(field, self.average if still is None else still, self.data, self.rows)


def rows_without(parts: Sequence[Tensor], part: int) -> Tensor:
    return torch.cat([rows for other, rows in enumerate(parts) if other != part])
