"""The convex half of a mixture: given the shares a(z), sparse patterns of coefficients.

Minimises, over patterns B_r with zero diagonals,

    mean over rows and nodes of (x_j - sum_r a_r sum_k B_rjk x_k)^2
      + penalty / p * sum_jk [ alpha sum_r s_rk |B_rjk| + (1 - alpha) sqrt(R) |(s_rk B_rjk)_r| ]

with ``s_rk`` the root mean square of ``a_r x_k``: a lasso in standard units (the first part lets a pattern
do without an edge), and a group lasso (the second lets all of them do without). Rows enter through
their second moments alone, which add up over folds, so one pass over the rows serves all penalties.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Share of the penalty on single entries; the rest is on edges as a whole.
ALPHA = 0.25
# Accuracy while penalties and rounds are compared, and of the result.
ROUGH, FINE = 1e-3, 1e-4
_ITERATIONS = 200
_CHECK_EVERY = 5
_BLOCK_ENTRIES = 2**24


@dataclass(frozen=True)
class Moments:
    """Sums over rows of products of ``f = (a_r x_k)`` with itself and with x."""

    gram: Tensor  # (R p, R p)
    cross: Tensor  # (R p, p)
    power: Tensor  # (p,), of x_j^2
    count: int

    @classmethod
    def of(cls, shares: Tensor, x: Tensor) -> Moments:
        """Shares (n, R) and node values (n, p)."""
        n, rank = shares.shape
        p = x.shape[1]
        gram, cross = x.new_zeros(rank * p, rank * p), x.new_zeros(rank * p, p)
        step = max(1, _BLOCK_ENTRIES // (rank * p))
        for start in range(0, n, step):
            a, part = shares[start : start + step], x[start : start + step]
            features = (a[:, :, None] * part[:, None, :]).flatten(1)
            gram.addmm_(features.T, features)
            cross.addmm_(features.T, part)
        return cls(gram, cross, x.square().sum(dim=0), n)

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.gram + other.gram,
            self.cross + other.cross,
            self.power + other.power,
            self.count + other.count,
        )

    def without(self, other: Moments) -> Moments:
        return Moments(
            self.gram - other.gram,
            self.cross - other.cross,
            self.power - other.power,
            self.count - other.count,
        )

    @property
    def rank(self) -> int:
        return len(self.gram) // len(self.power)

    def error(self, patterns: Tensor) -> float:
        """Mean squared error over rows and nodes of patterns (R, p, p)."""
        flat = _flat(patterns)
        total = self.power.sum() - 2 * (flat * self.cross).sum() + (flat * (self.gram @ flat)).sum()
        return float(total) / (self.count * len(self.power))


class PatternProblem:
    """The problem above for given moments, in standard units; solved for one penalty after the other."""

    def __init__(self, moments: Moments, alpha: float = ALPHA) -> None:
        self.rank, self.p, self.alpha = moments.rank, len(moments.power), alpha
        gram, cross = moments.gram / moments.count, moments.cross / moments.count
        self.units = gram.diagonal().clamp(min=1e-10).sqrt()
        self.gram = gram / self.units[:, None] / self.units
        self.cross = cross / self.units[:, None]
        off = 1 - torch.eye(self.p, device=gram.device, dtype=gram.dtype)
        self.off_diagonal = off.repeat(self.rank, 1)
        self.curvature = _largest_eigenvalue(self.gram)

    def largest_penalty(self) -> float:
        """The smallest penalty at which all patterns are zero."""
        slope = (2 * self.cross * self.off_diagonal).view(self.rank, self.p, self.p)
        low, high = 0.0, float(slope.abs().max()) / max(self.alpha, 1 - self.alpha) + 1e-12
        for _ in range(30):
            middle = (low + high) / 2
            left = torch.clamp(slope.abs() - self.alpha * middle, min=0)
            zero = bool((left.norm(dim=0) <= (1 - self.alpha) * self.rank**0.5 * middle).all())
            low, high = (low, middle) if zero else (middle, high)
        return high

    def solve(self, penalty: float, start: Tensor | None = None, tolerance: float = ROUGH) -> Tensor:
        """Patterns (R, p, p) by accelerated proximal steps, from ``start``.

        They end when the largest change is below ``tolerance`` times the largest entry. Momentum that leads
        uphill is dropped.
        """
        weights = torch.zeros_like(self.cross) if start is None else _flat(start) * self.units[:, None]
        point, momentum = weights, 1.0
        for i in range(1, _ITERATIONS + 1):
            step = point - (self.gram @ point - self.cross) / self.curvature
            new = self._shrunk(step, penalty / 2 / self.curvature)
            change = new - weights
            if i % _CHECK_EVERY == 0:
                if change.abs().max() <= tolerance * new.abs().max():
                    weights = new
                    break
                if torch.dot((point - new).flatten(), change.flatten()) > 0:
                    momentum = 1.0
            following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
            point, momentum = torch.add(new, change, alpha=(momentum - 1) / following), following
            weights = new
        flat = weights / self.units[:, None]
        return flat.view(self.rank, self.p, self.p).transpose(1, 2).contiguous()

    def _shrunk(self, values: Tensor, amount: float) -> Tensor:
        values = torch.nn.functional.softshrink(values * self.off_diagonal, self.alpha * amount)
        blocks = values.view(self.rank, self.p, self.p)
        size = blocks.square().sum(dim=0).sqrt_()  # several times faster than vector_norm over this axis
        cut = (1 - self.alpha) * self.rank**0.5 * amount
        return (blocks * torch.clamp(1 - cut / size.clamp(min=1e-30), min=0)).view_as(values)


def _flat(patterns: Tensor) -> Tensor:
    """(R, j, k) to (R k, j)."""
    return patterns.transpose(1, 2).reshape(-1, patterns.shape[1])


def _largest_eigenvalue(gram: Tensor) -> float:
    vector = torch.ones(len(gram), 1, device=gram.device, dtype=gram.dtype)
    for _ in range(30):
        vector = gram @ vector
        vector = vector / vector.norm()
    return max(1.0, 1.02 * float(vector.T @ gram @ vector))
