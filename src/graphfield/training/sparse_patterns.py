"""The convex half of a mixture: given the shares a(z), sparse patterns of coefficients.

Minimises, over patterns B_r with zero diagonals,

    mean over rows and nodes of (x_j - sum_r a_r sum_k B_rjk x_k)^2
      + penalty / p * sum_jk [ alpha sum_r s_rk |B_rjk| + (1 - alpha) sqrt(R) |(s_rk B_rjk)_r| ]

with ``s_rk`` the root mean square of ``a_r x_k``: a lasso in standard units (the first part lets a pattern
do without an edge), and a group lasso (the second lets all of them do without). Rows enter through
their second moments alone, which add up over folds, so one pass over the rows serves all penalties. A relaxed
problem has weights of their own for the penalties of each entry and each edge.

Where nodes own several columns each, p counts columns, entries and edges are blocks of columns, with
penalties that grow with the root of their size, and no column is explained by others of its own node.
"""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from graphfield.nn.processes import ALONE, Processes, current
from graphfield.nn.threads import spread
from graphfield.solvers.acceleration import accelerate
from graphfield.solvers.penalties import zero_penalty
from graphfield.training.column_blocks import ColumnBlocks, remaining_share

# Share of the penalty on single entries; the rest is on edges as a whole.
ALPHA = 0.25
# Accuracy while penalties and rounds are compared, and of the result.
ROUGH, FINE = 1e-3, 1e-4
_ITERATIONS = 200
_CHECK_EVERY = 5
_BLOCK_ENTRIES = 2**23
# What is shared among cores: pieces of the pairs of nodes, and blocks of responses. A block has at least so
# many responses, and so many multiplications in each step; smaller ones cost more than they gain.
_PIECES, _LEAST_RESPONSES, _BLOCK_WORK = 8, 25, 4_000_000
# Added to variances where nothing else is: nodes may be copies of each other.
_COPIES = 1e-6
# Directions in which the largest eigenvalue is looked for.
_DIRECTIONS = 4


@dataclass(frozen=True)
class Moments:
    """Sums over rows of products of ``f = (a_r x_k)`` with itself and with x."""

    gram: Tensor  # (R p, R p)
    cross: Tensor  # (p, R p)
    power: Tensor  # (p,), of x_j^2
    count: int
    nodes: Tensor | None = None  # (p,), the node that owns each column, where some own several

    @classmethod
    def of(
        cls, shares: Tensor, x: Tensor, nodes: Tensor | None = None, rows: Tensor | None = None
    ) -> Moments:
        """Shares (n, R) and node values (n, p), of all rows or of some, which are not copied.

        ``a_r x_k a_s x_l`` is a product of two shares times one of two nodes: sums over rows for pairs of
        either hold each moment once, a quarter of the gram.
        """
        rank, p = shares.shape[1], x.shape[1]
        sums = _sums_of_pairs(shares, x, rows)
        of_shares, of_nodes = (_places(size, x.device) for size in (rank + 1, p))
        sums = sums.index_select(1, of_nodes.flatten())
        gram = sums.index_select(0, of_shares[:rank, :rank].flatten()).view(rank, rank, p, p)
        cross = sums.index_select(0, of_shares[:rank, rank]).view(rank, p, p)
        return cls(
            gram.transpose(1, 2).reshape(rank * p, rank * p),
            cross.transpose(0, 1).reshape(p, rank * p),
            sums[-1].view(p, p).diagonal().contiguous(),
            len(x) if rows is None else len(rows),
            nodes,
        )

    def with_target(self, shares: Tensor, x: Tensor, target: Tensor) -> Moments:
        """Of the same rows, with ``target`` (n, p) in place of x as what is to be explained."""
        cross = torch.stack([target.T @ (own[:, None] * x) for own in shares.T], dim=1)  # (j, r, k)
        return replace(self, cross=cross.flatten(1), power=target.square().sum(dim=0))

    def answered_by(self, columns: Tensor) -> Moments:
        """As if the others were nothing to be explained."""
        return replace(self, cross=self.cross * columns[:, None], power=self.power * columns)

    def __add__(self, other: Moments) -> Moments:
        return self._joined(other, operator.add)

    def without(self, other: Moments) -> Moments:
        return self._joined(other, operator.sub)

    def _joined(self, other: Moments, join: Callable[[Any, Any], Any]) -> Moments:
        names = ("gram", "cross", "power", "count")
        return replace(self, **{name: join(getattr(self, name), getattr(other, name)) for name in names})

    def of_shares(self, shares: slice) -> Moments:
        """As if there were only these shares."""
        p = len(self.power)
        own = slice((shares.start or 0) * p, None if shares.stop is None else shares.stop * p)
        return replace(self, gram=self.gram[own, own], cross=self.cross[:, own])

    def after(self, first: Tensor) -> Moments:
        """Of what a first pattern (p, p) leaves of x, with the same shares."""
        p = len(self.power)
        power = self.power + (first * (first @ self.gram[:p, :p] - 2 * self.cross[:, :p])).sum(dim=1)
        return replace(self, cross=self.cross - first @ self.gram[:p], power=power)

    @property
    def rank(self) -> int:
        return len(self.gram) // len(self.power)

    def error(self, patterns: Tensor, weights: Tensor | None = None) -> float:
        """Mean squared error over rows and nodes of patterns (R, p, p); nodes may have weights."""
        errors = self.node_errors(patterns)
        return float((errors if weights is None else errors * weights).mean())

    def node_errors(self, patterns: Tensor) -> Tensor:
        """Mean squared errors over rows, (p,)."""
        lines = _lines(patterns)
        return (self.power + (lines * (lines @ self.gram - 2 * self.cross)).sum(dim=1)) / self.count


def total(parts: Sequence[Moments]) -> Moments:
    together = parts[0]
    for part in parts[1:]:
        together = together + part
    return together


class PatternProblem:
    """The problem above for given moments, in standard units; solved for one penalty after the other."""

    def __init__(self, moments: Moments, alpha: float = ALPHA) -> None:
        self.rank, self.p, self.alpha = moments.rank, len(moments.power), alpha
        self.count = moments.count
        self.owners = None if moments.nodes is None else ColumnBlocks(moments.nodes)
        self.units = (moments.gram.diagonal() / moments.count).clamp(min=1e-10).sqrt()
        if self.owners is not None:  # one unit for a node: columns may be turned into each other
            self.units = self.owners.common(self.units.view(self.rank, self.p).square()).sqrt().flatten()
        self.gram = moments.gram / (self.units * moments.count)[:, None] / self.units
        self.cross = moments.cross / (self.units * moments.count)
        own = torch.eye(self.p, device=self.gram.device, dtype=self.gram.dtype)
        if moments.nodes is not None:
            own = (moments.nodes[:, None] == moments.nodes).to(own)
        self.off_diagonal = (1 - own).repeat(1, self.rank)
        self.curvature = _largest_eigenvalue(self.gram)
        # Of the penalties on entries (j, r, k), and on edges as a whole (j, k).
        self.weights: tuple[Tensor, Tensor] | None = None

    def relaxed(self, patterns: Tensor, size: float, nodes: Tensor | None = None) -> PatternProblem:
        """The same problem with less penalty on what ``patterns`` have, half of it at this size.

        ``nodes`` (p,) are factors of the penalties by response.

        The size of an edge is the root mean square of what it adds to the prediction, and of both directions
        the mean; that of an entry is what the edge would be if all patterns had the like. Edges and entries
        that are not there keep the whole penalty.
        """
        lines = (_lines(patterns) * self.units).view(self.p, self.rank, self.p)
        among = self.gram.view(self.rank, self.p, self.rank, self.p).diagonal(dim1=1, dim2=3)  # (r, s, k)
        if self.owners is not None:
            among = self.owners.common(among)
        sizes = torch.einsum("jrk,rsk,jsk->jk", lines, among, lines).clamp(min=0).sqrt()
        if self.owners is not None:
            lines, sizes = self.owners.sizes(lines), self.owners.sizes(sizes[:, None])[:, 0]
        other = copy.copy(self)
        entries, edges = size / (self.rank**0.5 * lines.abs() + size), size / ((sizes + sizes.T) / 2 + size)
        if nodes is not None and self.owners is not None:
            nodes = self.owners.averages(nodes)
        if nodes is not None:
            entries, edges = nodes[:, None, None] * entries, nodes[:, None] * edges
        other.weights = entries, edges
        return other

    def refit(self, patterns: Tensor) -> Tensor:
        """Least squares without any penalty, (R, p, p), for what ``patterns`` have either way."""
        edges = patterns != 0
        edges = _lines(edges | edges.mT)
        gram, cross = self.gram.double().cpu(), self.cross.double().cpu()
        lines, edges = torch.zeros_like(cross), edges.cpu()
        mine = self.processes.own_part(self.p)
        for response in range(mine.start, mine.stop):
            own = edges[response]
            among = gram[own][:, own]
            among.diagonal().add_(_COPIES)
            lines[response, own] = torch.linalg.solve(among, cross[response, own])
        found = lines.to(self.cross)
        self.processes.fill_rows(found)
        return self._patterns(found)

    def _patterns(self, lines: Tensor) -> Tensor:
        """From one line for each response, in standard units."""
        return (lines / self.units).view(self.p, self.rank, self.p).transpose(0, 1).contiguous()

    def largest_penalty(self) -> float:
        """The smallest penalty at which all patterns are zero."""
        slope = (2 * self.cross * self.off_diagonal).view(self.p, self.rank, self.p).abs()
        if self.owners is not None:
            slope = self.owners.sizes(slope)
        return zero_penalty(slope.cpu().numpy(), self.rank, self.alpha)

    def solve(self, penalty: float, start: Tensor | None = None, tolerance: float = ROUGH) -> Tensor:
        """Patterns (R, p, p), from ``start``."""
        return solve_each([self], penalty, [start], tolerance)[0]

    @property
    def work(self) -> int:
        """Multiplications of a step."""
        return len(self.gram) ** 2 * self.p

    @property
    def processes(self) -> Processes:
        """Those that are worth asking: a small problem is solved by each of them alike."""
        return current() if self.work >= _BLOCK_WORK else ALONE

    def blocks(self) -> list[slice]:
        """Responses of about equal number; on a GPU one for each process. The same on any number of cores.

        Columns of a node are not parted.
        """
        work = 0 if self.owners is not None else self.work
        wanted = self.processes.size if self.gram.is_cuda else work // _BLOCK_WORK
        count = max(1, min(work, wanted, self.p // _LEAST_RESPONSES))
        ends = [self.p * i // count for i in range(count + 1)]
        return [slice(first, last) for first, last in itertools.pairwise(ends)]

    def solve_block(self, block: slice, weights: Tensor, penalty: float, tolerance: float) -> Tensor:
        """Accelerated proximal steps for the lines of some responses, in standard units.

        They end when the largest change is below ``tolerance`` times the largest entry.
        """
        pull, off_diagonal = self.cross[block] / self.curvature, self.off_diagonal[block]
        cuts = shares_of_penalty(penalty / 2 / self.curvature, self.rank, self.alpha)
        if self.weights is not None:
            entries, edges = self.weights
            cuts = cuts[0] * entries[block], cuts[1] * edges[block]

        def step(point: Tensor) -> Tensor:
            lines = torch.addmm(point + pull, point, self.gram, alpha=-1 / self.curvature)
            edges = lines.mul_(off_diagonal).view(-1, self.rank, self.p)
            return self._shrink(edges, *cuts).view_as(lines)

        return accelerate_lines(weights, step, tolerance, _ITERATIONS, _CHECK_EVERY)

    def _shrink(self, edges: Tensor, of_entries: float | Tensor, of_edges: float | Tensor) -> Tensor:
        if self.owners is None:
            return shrink(edges, of_entries, of_edges, dim=1)
        return self.owners.shrink(edges, of_entries, of_edges)


def solve_each(
    problems: Sequence[PatternProblem],
    penalty: float,
    starts: Sequence[Tensor | None],
    tolerance: float = ROUGH,
) -> list[Tensor]:
    """The patterns (R, p, p) of each problem.

    Blocks of responses, which do not touch, are divided among processes and cores.
    """
    lines = [
        torch.zeros_like(problem.cross) if start is None else _lines(start) * problem.units
        for problem, start in zip(problems, starts, strict=True)
    ]
    blocks = [(i, block) for i, problem in enumerate(problems) for block in problem.blocks()]

    def solve(piece: tuple[int, slice]) -> None:
        i, block = piece
        lines[i][block] = problems[i].solve_block(block, lines[i][block], penalty, tolerance)

    processes = problems[0].processes if len(blocks) >= current().size else ALONE
    spread(solve, processes.own_items(blocks), problems[0].gram.device)
    for number, (i, block) in enumerate(blocks):
        processes.copy_from(number % processes.size, lines[i][block])
    return [problem._patterns(own) for problem, own in zip(problems, lines, strict=True)]


def shares_of_penalty(amount: float, rank: int, alpha: float = ALPHA) -> tuple[Any, Any]:
    """The amounts on each entry, and on each edge as a whole, which has ``rank`` entries."""
    return alpha * amount, (1 - alpha) * rank**0.5 * amount


def shrink(values: Tensor, of_entries: float | Tensor, of_edges: float | Tensor, dim: int) -> Tensor:
    """Entries, then edges as a whole (along ``dim``), drawn towards zero by these amounts, of all or each."""
    if isinstance(of_entries, Tensor):
        values = values - values.clamp(-of_entries, of_entries)
    else:
        values = torch.nn.functional.softshrink(values, of_entries)
    size = values.square().sum(dim=dim).sqrt_()  # several times faster than vector_norm over this axis
    return values.mul_(remaining_share(size, of_edges).unsqueeze(dim))


def accelerate_lines(
    start: Tensor, step: Callable[[Tensor], Tensor], tolerance: float, n_steps: int, check_every: int
) -> Tensor:
    """Until the largest change is below ``tolerance`` times the largest entry."""

    def is_settled(change: Tensor, new: Tensor) -> Tensor:
        return change.abs().max() <= tolerance * new.abs().max()

    found: Tensor = accelerate(start, step, is_settled, n_steps, check_every=check_every, ahead=go_ahead)
    return found


def go_ahead(new: Tensor, change: Tensor, share: float) -> Tensor:
    """Beyond a point, by a share of the change that led to it, in one pass."""
    return torch.add(new, change, alpha=share)


def _lines(patterns: Tensor) -> Tensor:
    """(R, j, k) to (j, R k): one line for each response."""
    return patterns.transpose(0, 1).flatten(1)


def _sums_of_pairs(a: Tensor, x: Tensor, rows: Tensor | None) -> Tensor:
    """``sum over rows of a_r a_s x_k x_l``, a line for each pair r, s and a column for each pair k, l.

    The last share, which ``a`` lacks, is one.
    """
    sizes = a.shape[1] + 1, x.shape[1]
    shares, nodes = (torch.triu_indices(size, size, device=x.device) for size in sizes)
    pieces = [nodes] if x.is_cuda else nodes.chunk(_PIECES, dim=1)
    sums = [x.new_zeros(shares.shape[1], piece.shape[1]) for piece in pieces]
    step, n = max(1, _BLOCK_ENTRIES // (shares.shape[1] + nodes.shape[1])), len(x if rows is None else rows)
    own = current().own_part(n)
    for start in range(own.start, own.stop, step):
        block = slice(start, min(start + step, own.stop))
        some = block if rows is None else rows[block]
        with_one = torch.nn.functional.pad(a[some], (0, 1), value=1.0)
        _add_products(sums, _products(with_one, shares).T, x[some], pieces)
    together = torch.cat(sums, dim=1)
    current().add_up(together)
    return together


def _add_products(sums: Sequence[Tensor], factor: Tensor, x: Tensor, pieces: Sequence[Tensor]) -> None:
    def add(i: int) -> None:
        sums[i].addmm_(factor, _products(x, pieces[i]))

    spread(add, range(len(sums)), x.device)


def _products(values: Tensor, pairs: Tensor) -> Tensor:
    first, second = pairs
    return values.index_select(1, first).mul_(values.index_select(1, second))


def _places(size: int, device: torch.device) -> Tensor:
    """(size, size): the place of each pair in the order of ``triu_indices``."""
    number = torch.arange(size, device=device)
    low, high = torch.minimum(number[:, None], number), torch.maximum(number[:, None], number)
    return low * (2 * size - low - 1) // 2 + high


def _largest_eigenvalue(gram: Tensor) -> float:
    """A bound just above it, by subspace iteration.

    From directions without any structure: nodes that are copies or opposites of each other put vectors such
    as that of ones into the null space, where nothing is to be found.
    """
    drawn = torch.randn(len(gram), min(_DIRECTIONS, len(gram)), generator=torch.Generator().manual_seed(0))
    image, value = drawn.to(gram), 0.0
    for _ in range(30):
        basis = torch.linalg.qr(image).Q
        image, before = gram @ basis, value
        value = float(torch.linalg.eigvalsh(basis.T @ image)[-1])
        if value - before <= 1e-4 * value:
            break
    return max(1.0, 1.02 * value)
