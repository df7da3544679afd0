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

from graphfield.training.sparse_patterns import ALPHA

# Cells of rows with nearly equal shares, and rows from which they are found.
_CELLS, _CELL_ROWS = 64, 10_000
# Weight of an archetype as a cell of its own, as a part of the rows that belong to it.
_VERTEX = 0.02
# Penalties are the smallest one that leaves no edge, times powers of this; the path ends when this many in a
# row are worse than the best.
_RATIO, _LONGEST, _WORSE = 0.7, 20, 2
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
    point = problem.start()
    penalty = problem.largest_penalty(point)
    if known is not None:
        penalty = min(penalty, known / _RATIO**_ABOVE)
    best: tuple[float, float, Tensor] | None = None
    worse = 0
    for _ in range(_LONGEST):
        point = problem.solve(penalty, point)
        loss = float(row_losses(problem.matrices(point), *held_out).mean())
        if best is None or loss < best[0] - _PROGRESS:
            best, worse = (loss, penalty, point), 0
        else:
            worse += 1
            if worse == _WORSE:
                break
        penalty *= _RATIO
    assert best is not None
    return best[1], problem.matrices(best[2])


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
        value, slope = self._at(point)
        total = value + self._penalty(point, penalty)
        ahead, ahead_value, ahead_slope, momentum = point, value, slope, 1.0
        for i in range(_ITERATIONS):
            new, new_value, new_slope = self._proximal_step(ahead, ahead_value, ahead_slope, penalty)
            new_total = new_value + self._penalty(new, penalty)
            if new_total > total:
                if momentum == 1.0:
                    break
                ahead, ahead_value, ahead_slope, momentum = point, value, slope, 1.0
                continue
            settled = total - new_total < _GAIN and i + 1 >= _FIRST_ITERATIONS
            change = new - point
            point, value, slope, total = new, new_value, new_slope, new_total
            if settled:
                break
            following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
            ahead = point + (momentum - 1) / following * change
            momentum = following
            found = self._value_and_slope(ahead)
            if found is None:
                ahead, ahead_value, ahead_slope, momentum = point, value, slope, 1.0
            else:
                ahead_value, ahead_slope = found
            self.step *= 1.1
        return point

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
        diagonal = values * (1 - self.off_diagonal)
        off = values * self.off_diagonal
        off = off.sign() * (off.abs() - ALPHA * amount).clamp(min=0)
        size = off.square().sum(dim=0).sqrt()
        cut = (1 - ALPHA) * self.rank**0.5 * amount
        return off * (1 - cut / size.clamp(min=1e-30)).clamp(min=0) + diagonal

    def _penalty(self, point: Tensor, penalty: float) -> float:
        off = point * self.off_diagonal
        entries, edges = float(off.abs().sum()), float(off.square().sum(dim=0).sqrt().sum())
        return penalty * (ALPHA * entries + (1 - ALPHA) * self.rank**0.5 * edges)


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
