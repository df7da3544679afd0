"""The convex half of a mixture: given the shares a(z), sparse patterns of coefficients.

Minimises, over patterns B_r with zero diagonals,

    mean over rows and nodes of (x_j - sum_r a_r sum_k B_rjk x_k)^2
      + penalty / p * sum_jk [ alpha sum_r s_rk |B_rjk| + (1 - alpha) sqrt(R) |(s_rk B_rjk)_r| ]

with ``s_rk`` the root mean square of ``a_r x_k``: a lasso in standard units (the first part lets a pattern
do without an edge), and a group lasso (the second lets all of them do without). Rows enter through
their second moments alone, which add up over folds, so one pass over the rows serves all penalties. A relaxed
problem has weights of their own for the penalties of each entry and each edge.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphfield.nn.threads import spread

# Share of the penalty on single entries; the rest is on edges as a whole.
ALPHA = 0.25
# Accuracy while penalties and rounds are compared, and of the result.
ROUGH, FINE = 1e-3, 1e-4
_ITERATIONS = 200
_CHECK_EVERY = 5
_BLOCK_ENTRIES = 2**24
# Pieces of a matrix of products, and responses that are solved for at a time: what is shared among cores.
_PIECES, _RESPONSES = 8, 32
# Directions in which the largest eigenvalue is looked for.
_DIRECTIONS = 4


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
            _add_products(gram, cross, features, part)
        return cls(_mirrored(gram), cross, x.square().sum(dim=0), n)

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
        # Of the penalties on entries (r, k, j), and on edges as a whole (k, j).
        self.weights: tuple[Tensor, Tensor] | None = None

    def relaxed(self, patterns: Tensor, size: float) -> PatternProblem:
        """The same problem with less penalty on what ``patterns`` have, half of it at this size.

        The size of an edge is the root mean square of what it adds to the prediction, and of both directions
        the mean; that of an entry is what the edge would be if all patterns had the like. Edges and entries
        that are not there keep the whole penalty.
        """
        flat = (_flat(patterns) * self.units[:, None]).view(self.rank, self.p, self.p)
        among = self.gram.view(self.rank, self.p, self.rank, self.p).diagonal(dim1=1, dim2=3)  # (r, s, k)
        sizes = torch.einsum("rkj,rsk,skj->kj", flat, among, flat).clamp(min=0).sqrt()
        other = copy.copy(self)
        other.weights = size / (self.rank**0.5 * flat.abs() + size), size / ((sizes + sizes.T) / 2 + size)
        return other

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
        """Patterns (R, p, p), from ``start``; blocks of responses, which do not touch, share the cores."""
        weights = torch.zeros_like(self.cross) if start is None else _flat(start) * self.units[:, None]

        def solve_block(block: slice) -> Tensor:
            return self._solve_responses(block, weights[:, block].contiguous(), penalty, tolerance)

        flat = torch.cat(spread(solve_block, self._blocks(), self.gram.device), dim=1) / self.units[:, None]
        return flat.view(self.rank, self.p, self.p).transpose(1, 2).contiguous()

    def _blocks(self) -> list[slice]:
        """Responses of about equal number; on a GPU all at once. The same on any number of cores."""
        count = 1 if self.gram.is_cuda else -(-self.p // _RESPONSES)
        ends = [self.p * i // count for i in range(count + 1)]
        return [slice(first, last) for first, last in itertools.pairwise(ends)]

    def _solve_responses(self, block: slice, weights: Tensor, penalty: float, tolerance: float) -> Tensor:
        """Accelerated proximal steps for some columns, in standard units.

        They end when the largest change is below ``tolerance`` times the largest entry. Momentum that leads
        uphill is dropped.
        """
        cross, off_diagonal = self.cross[:, block], self.off_diagonal[:, block]
        amount = penalty / 2 / self.curvature
        cuts: tuple[Any, Any] = self.alpha * amount, (1 - self.alpha) * self.rank**0.5 * amount
        if self.weights is not None:
            entries, edges = self.weights
            cuts = cuts[0] * entries[:, :, block], cuts[1] * edges[:, block]
        point, momentum = weights, 1.0
        for i in range(1, _ITERATIONS + 1):
            step = point - (self.gram @ point - cross) / self.curvature
            new = self._shrunk(step * off_diagonal, *cuts)
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
        return weights

    def _shrunk(self, values: Tensor, of_entries: float | Tensor, of_edges: float | Tensor) -> Tensor:
        """Entries, then edges as a whole, drawn towards zero by these amounts, of all or of each."""
        blocks = values.view(self.rank, self.p, -1)
        if isinstance(of_entries, Tensor):
            blocks = blocks - blocks.clamp(-of_entries, of_entries)
        else:
            blocks = torch.nn.functional.softshrink(blocks, of_entries)
        size = blocks.square().sum(dim=0).sqrt_()  # several times faster than vector_norm over this axis
        return (blocks * torch.clamp(1 - of_edges / size.clamp(min=1e-30), min=0)).view_as(values)


def _flat(patterns: Tensor) -> Tensor:
    """(R, j, k) to (R k, j)."""
    return patterns.transpose(1, 2).reshape(-1, patterns.shape[1])


def _pieces(size: int) -> list[slice]:
    step = -(-size // _PIECES)
    return [slice(first, min(first + step, size)) for first in range(0, size, step)]


def _add_products(gram: Tensor, cross: Tensor, features: Tensor, x: Tensor) -> None:
    """Add ``features' features`` from each piece of the diagonal to the right, and ``features' x``."""

    def add(piece: slice) -> None:
        own = features[:, piece].T
        gram[piece, piece.start :].addmm_(own, features[:, piece.start :])
        cross[piece].addmm_(own, x)

    spread(add, [slice(0, len(gram))] if gram.is_cuda else _pieces(len(gram)), gram.device)


def _mirrored(gram: Tensor) -> Tensor:
    """What lies left of the pieces on the diagonal, from the other side."""
    for piece in _pieces(len(gram)):
        gram[piece.stop :, piece] = gram[piece, piece.stop :].T
    return gram


def _largest_eigenvalue(gram: Tensor) -> float:
    """A bound just above it, by subspace iteration.

    From directions without any structure: nodes that are copies or opposites of each other put vectors such
    as that of ones into the null space, where nothing is to be found.
    """
    drawn = torch.randn(len(gram), min(_DIRECTIONS, len(gram)), generator=torch.Generator().manual_seed(0))
    basis = drawn.to(gram)
    for _ in range(15):
        basis = torch.linalg.qr(gram @ (gram @ basis)).Q
    return max(1.0, 1.02 * float(torch.linalg.eigvalsh(basis.T @ gram @ basis)[-1]))
