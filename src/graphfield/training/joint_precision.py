"""Precision matrices that are mixed in given shares: ``Theta(z) = sum_r a_r(z) Theta_r``.

Given the shares, the archetypes ``Theta_r`` are a convex problem. It minimises

    sum_r tr(M_r Theta_r) - sum_c w_c log det(sum_r a_cr Theta_r)
      + penalty * sum_(j != k) [ alpha sum_r s_r |Theta_rjk| + (1 - alpha) sqrt(R) |(s_r Theta_rjk)_r| ]

twice the negative Gaussian log-likelihood of a row plus a sparse-group penalty in standard units, ``s_r``
being the root mean square of the share. Rows enter the first term exactly, through the moments
``M_r = mean of a_r x x'``. For the second, rows with nearly equal shares are put into cells. Every
archetype is a cell of its own as well, with a small weight and the moments of its rows, which keeps it
positive definite; so is then every mixture.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from graphfield.solvers.acceleration import next_momentum
from graphfield.solvers.penalties import RATIO, PathSearch, falling_penalties
from graphfield.training.penalty_path import WORSE
from graphfield.training.sparse_patterns import go_ahead, shares_of_penalty, shrink

# Cells of rows with nearly equal shares, and rows from which they are found.
_CELLS, _CELL_ROWS = 64, 10_000
# Weight of an archetype as a cell of its own, as a part of the rows that belong to it.
_VERTEX = 0.02
# What a smaller penalty must gain on held-out rows, in units of -2 log-likelihood of one row.
_PROGRESS = 1e-3
# A path for a problem like one that was solved before begins so many powers above the penalty known.
_ABOVE = 2
_ITERATIONS, _FIRST_ITERATIONS = 100, 4
# What an iteration must gain, in units of -2 log-likelihood of one row.
_GAIN = 1e-4
_ROWS_AT_A_TIME = 512


def best_penalty(
    problem: JointProblem, held_out: tuple[Tensor, Tensor], known: float | None = None
) -> tuple[float, Tensor]:
    """The penalty that held-out rows (shares and node values) find most likely, and its archetypes.

    The path leads down from the empty graph, or from a little above a penalty that is ``known``.
    """

    def attempt(penalty: float, near: Tensor | None) -> tuple[float, Tensor]:
        point = problem.solve(penalty, problem.start() if near is None else near)
        return float(row_losses(problem.matrices(point), *held_out).mean()), point

    top = problem.largest_penalty(problem.start())
    if known is not None:
        top = min(top, known / RATIO**_ABOVE)
    search = PathSearch(falling_penalties(top), attempt, _PROGRESS)
    best = search.walk(0, lambda s: s.worse >= WORSE).best
    return best.value, problem.matrices(best.solution)


def row_losses(matrices: Tensor, shares: Tensor, x: Tensor) -> Tensor:
    """``x' Theta x - log det Theta`` of every row, (n,): -2 log-likelihood but for a constant."""
    p = x.shape[1]
    losses = []
    for a, rows in zip(shares.split(_ROWS_AT_A_TIME), x.split(_ROWS_AT_A_TIME), strict=True):
        root = torch.linalg.cholesky((a @ matrices.flatten(1)).view(-1, p, p))
        power = (rows[:, None, :] @ root).square().sum(dim=(1, 2))
        losses.append(power - log_det(root))
    return torch.cat(losses)


class JointProblem:
    """The problem above for given shares and node values, in standard units ``Phi_r = s_r Theta_r``."""

    def __init__(self, shares: Tensor, x: Tensor) -> None:
        n, rank = shares.shape
        p = x.shape[1]
        moments = torch.stack([(x * shares[:, r : r + 1]).T @ x for r in range(rank)]) / n
        mass = shares.mean(dim=0)
        own = moments / mass[:, None, None]
        cells, weights = cells_of(shares)
        self.moments = (moments + _VERTEX * mass[:, None, None] * own) / (1 + _VERTEX)
        self.cells = torch.cat([cells, torch.eye(rank, dtype=x.dtype, device=x.device)])
        self.weights = torch.cat([weights, _VERTEX * mass]) / (1 + _VERTEX)
        self.units = (self.weights[:, None] * self.cells.square()).sum(dim=0).sqrt()[:, None, None]
        self.own_variances = own.diagonal(dim1=1, dim2=2)
        self.rank, self.p = rank, p
        self.off_diagonal = 1 - torch.eye(p, dtype=x.dtype, device=x.device)
        self.step = 1.0

    def start(self) -> Tensor:
        """Without edges: the reciprocal variances of each archetype's rows."""
        return self.scaled(torch.diag_embed(1 / self.own_variances.clamp(min=1e-6)))

    def scaled(self, matrices: Tensor) -> Tensor:
        return matrices * self.units

    def matrices(self, point: Tensor) -> Tensor:
        return point / self.units

    def largest_penalty(self, start: Tensor) -> float:
        """At which ``start``, a solution without edges, gets none."""
        return float((self._at(start)[1].abs() * self.off_diagonal).max())

    def solve(self, penalty: float, point: Tensor) -> Tensor:
        """Accelerated proximal steps from ``point``. A step that would leave the positive definite matrices,
        or that the curvature does not allow, is halved."""
        here = ahead = (point, *self._at(point))
        total, momentum = here[1] + self._penalty(point, penalty), 1.0
        for i in range(_ITERATIONS):
            new = self._proximal_step(*ahead, penalty)
            new_total = new[1] + self._penalty(new[0], penalty)
            if new_total > total:
                if momentum == 1.0:
                    break
                ahead, momentum = here, 1.0
                continue
            settled = total - new_total < _GAIN and i + 1 >= _FIRST_ITERATIONS
            following = next_momentum(momentum)
            guess = go_ahead(new[0], new[0] - here[0], (momentum - 1) / following)
            momentum = following
            here, total = new, new_total
            if settled:
                break
            found = self._value_and_slope(guess)
            ahead, momentum = (here, 1.0) if found is None else ((guess, *found), momentum)
            self.step *= 1.1
        return here[0]

    def _proximal_step(
        self, ahead: Tensor, value: float, slope: Tensor, penalty: float
    ) -> tuple[Tensor, float, Tensor]:
        while True:
            new = self._shrunk(ahead - self.step * slope, self.step * penalty)
            change = new - ahead
            found = self._value_and_slope(new)
            allowed = value + float((slope * change).sum()) + float(change.square().sum()) / (2 * self.step)
            if (found is not None and found[0] <= allowed + 1e-9 * abs(value)) or self.step < 1e-12:
                return (new, *found) if found is not None else (ahead, value, slope)
            self.step /= 2

    def _at(self, point: Tensor) -> tuple[float, Tensor]:
        found = self._value_and_slope(point)
        if found is None:
            raise ValueError("The starting point is not positive definite.")
        return found

    def _value_and_slope(self, point: Tensor) -> tuple[float, Tensor] | None:
        """Of the smooth part; None where a cell is not positive definite."""
        matrices = self.matrices(point)
        mixed = (self.cells @ matrices.flatten(1)).view(-1, self.p, self.p)
        root, failed = torch.linalg.cholesky_ex(mixed)
        if bool(failed.any()):
            return None
        value = float((self.moments * matrices).sum() - (self.weights * log_det(root)).sum())
        inverse = torch.cholesky_inverse(root)
        pull = ((self.cells * self.weights[:, None]).T @ inverse.flatten(1)).view_as(self.moments)
        return value, (self.moments - pull) / self.units

    def _shrunk(self, values: Tensor, amount: float) -> Tensor:
        off = shrink(values * self.off_diagonal, *shares_of_penalty(amount, self.rank), dim=0)
        return off + values * (1 - self.off_diagonal)

    def _penalty(self, point: Tensor, penalty: float) -> float:
        off = point * self.off_diagonal
        of_entries, of_edges = shares_of_penalty(penalty, self.rank)
        return of_entries * float(off.abs().sum()) + of_edges * float(off.square().sum(dim=0).sqrt().sum())


def log_det(root: Tensor) -> Tensor:
    return 2 * root.diagonal(dim1=1, dim2=2).log().sum(dim=1)


def cells_of(shares: Tensor) -> tuple[Tensor, Tensor]:
    """Mean shares of groups of similar rows, (c, R), and the part of the rows in each."""
    from sklearn.cluster import KMeans

    some = shares[:: -(-len(shares) // _CELL_ROWS)].cpu().numpy()
    distinct = np.unique(some.round(6), axis=0)
    if len(distinct) > _CELLS:
        distinct = KMeans(_CELLS, n_init=1, max_iter=20, random_state=0).fit(some).cluster_centers_
    centres = torch.as_tensor(distinct, dtype=shares.dtype, device=shares.device)
    nearest = torch.cat([torch.cdist(part, centres).argmin(dim=1) for part in shares.split(2**16)])
    counts = torch.bincount(nearest, minlength=len(centres))
    sums = torch.zeros_like(centres).index_add_(0, nearest, shares)
    used = counts > 0
    return sums[used] / counts[used, None], counts[used].to(shares.dtype) / len(shares)
