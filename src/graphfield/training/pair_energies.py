"""Sparse score matching: which pairs of nodes have a term in the log-density, as a convex problem.

The log-density is a sum of terms of one node, ``c_jm h_m(x_j)``, and of two, ``theta_jkmo h_m(x_j) h_o(x_k)``
with Hermite polynomials h and ``m + o`` up to a degree; all coefficients are linear in features w(z). Its
slope s along each node minimises

    mean over rows of  sum_j [ g (s_j^2 / 2 + ds_j / dx_j) + g' s_j ]
      + penalty * sum over pairs of the norm of theta_jk

with the weights g(x_j) of :func:`~graphfield.nn.energies.tail_weights`: it is quadratic in the coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import chdtrc
from torch import Tensor

from graphfield.graphs.false_discoveries import q_values
from graphfield.graphs.pair_tests import FALSE_SHARE
from graphfield.nn.energies import OWN_ORDERS, PairTerms, hermite_functions, tail_weights
from graphfield.nn.threads import spread
from graphfield.solvers.penalties import PathSearch, falling_penalties
from graphfield.training.column_blocks import remaining_share
from graphfield.training.penalty_path import WORSE
from graphfield.training.sparse_patterns import accelerate_lines

# Of the variances of own terms, which no penalty holds.
_RIDGE = 1e-3
_ITERATIONS, _CHECK_EVERY, _TOLERANCE = 300, 10, 1e-3
_POWER_STEPS = 30
_ROWS_AT_A_TIME = 4_096


@dataclass(frozen=True)
class ScoreMoments:
    """Sums over rows, for each node, of the products of its columns and of their slopes.

    Columns are those of pairs, (R, T, p), and then the node's own, (R, O).
    """

    gram: Tensor  # (p, C, C)
    slope: Tensor  # (p, C)
    count: int
    terms: PairTerms
    n_features: int

    @classmethod
    def of(cls, features: Tensor, x: Tensor, terms: PairTerms) -> ScoreMoments:
        """Features of the covariates (n, R), and nodes (n, p) near standard normal."""
        p, rank = x.shape[1], features.shape[1]
        width = rank * (terms.size * p + OWN_ORDERS)
        gram, slope = x.new_zeros(p, width, width), x.new_zeros(p, width)

        def add(node: int) -> None:
            for rows in torch.arange(len(x), device=x.device).split(_ROWS_AT_A_TIME):
                columns, bends = _columns(features[rows], x[rows], node, terms)
                gram[node].addmm_(columns.T, columns)
                slope[node] -= bends.sum(dim=0)

        spread(add, range(p), x.device)
        return cls(gram, slope, len(x), terms, rank)

    def __add__(self, other: ScoreMoments) -> ScoreMoments:
        together = self.gram + other.gram, self.slope + other.slope, self.count + other.count
        return ScoreMoments(*together, self.terms, self.n_features)

    @property
    def n_pairs(self) -> int:
        """How many of the columns are those of pairs."""
        return self.n_features * self.terms.size * len(self.slope)

    def loss(self, lines: Tensor) -> float:
        """Mean over rows and nodes for lines (p, C) of coefficients."""
        product = torch.bmm(self.gram, lines[:, :, None])[..., 0]
        return float((lines * (product / 2 - self.slope)).sum()) / self.count / len(lines)


def _columns(features: Tensor, x: Tensor, node: int, terms: PairTerms) -> tuple[Tensor, Tensor]:
    """What each coefficient adds to the slope along a node, and to the linear part of the loss, both (n, C).

    The first with the root of the weights, so that its products have these.
    """
    values, slopes, bends = hermite_functions(x, terms.highest)
    weight, slope = (part[:, [node]] for part in tail_weights(x))
    both = []
    linear = weight * bends[:, node] + slope * slopes[:, node]
    for own in (weight.sqrt() * slopes[:, node], linear):  # (n, orders)
        pairs = torch.stack([own[:, [m - 1]] * values[..., o - 1] for m, o in terms.orders], dim=1)
        pairs[..., node] = 0
        columns = [
            features[:, :, None] * pairs.flatten(1)[:, None],
            features[:, :, None] * own[:, None, :OWN_ORDERS],
        ]
        both.append(torch.cat([part.flatten(1) for part in columns], dim=1))
    return both[0], both[1]


class EnergyProblem:
    """The problem above for given moments; own terms are found along with those of pairs."""

    def __init__(self, moments: ScoreMoments) -> None:
        self.moments, self.terms = moments, moments.terms
        self.p, pairs = len(moments.slope), moments.n_pairs
        self.shape = (self.p, moments.n_features, self.terms.size, self.p)  # j, feature, kind, k
        gram, slope = moments.gram / moments.count, moments.slope / moments.count
        own = gram[:, pairs:, pairs:].clone()
        own.diagonal(dim1=1, dim2=2).mul_(1 + _RIDGE).add_(1e-8)
        across, self.of_own = gram[:, :pairs, pairs:], torch.linalg.cholesky(own)
        self.across = torch.cholesky_solve(across.mT, self.of_own)  # own terms that go with each pair term
        self.base = torch.cholesky_solve(slope[:, pairs:, None], self.of_own)[..., 0]
        powers = gram.diagonal(dim1=1, dim2=2)[0, pairs:].view(moments.n_features, -1)[:, 0]
        self.units = (powers[:, None] * self.terms.weights(gram.device)).sqrt().clamp(min=1e-6)  # (R, T)
        units = self.units[..., None].expand(*self.shape[1:]).reshape(-1)
        self.gram = torch.baddbmm(gram[:, :pairs, :pairs], across, self.across, alpha=-1)
        self.gram.div_(units[:, None]).div_(units)
        pull = slope[:, :pairs] - torch.bmm(across, self.base[..., None])[..., 0]
        self.pull = self._symmetric(pull / units)
        self.curvature = self._largest_eigenvalue()

    def _symmetric(self, lines: Tensor) -> Tensor:
        """The mean of both nodes' words about each pair."""
        of_pairs = lines.view(self.shape)
        return ((of_pairs + of_pairs.permute(3, 1, 2, 0)[:, :, self.terms.turned]) / 2).reshape(self.p, -1)

    def _largest_eigenvalue(self) -> float:
        drawn = torch.randn(self.pull.shape, generator=torch.Generator().manual_seed(0))
        vector = drawn.to(self.pull)[..., None]
        for _ in range(_POWER_STEPS):
            vector = torch.bmm(self.gram, vector / vector.norm(dim=1, keepdim=True).clamp(min=1e-12))
        return max(1e-3, 1.05 * float(vector.norm(dim=1).max()))

    def largest_penalty(self) -> float:
        """The smallest penalty at which no pair has a term."""
        return float(self._sizes(self.pull).max()) + 1e-12

    def _sizes(self, lines: Tensor) -> Tensor:
        return lines.view(self.p, -1, self.p).norm(dim=1, keepdim=True)

    def solve(self, penalty: float, start: Tensor | None = None) -> Tensor:
        """Lines (p, C) of coefficients in standard units, from ``start``, by accelerated proximal steps."""
        lines = torch.zeros_like(self.pull) if start is None else start

        def step(point: Tensor) -> Tensor:
            slope = self._symmetric(torch.bmm(self.gram, point[..., None])[..., 0]) - self.pull
            moved = point - slope / self.curvature
            keep = remaining_share(self._sizes(moved), penalty / self.curvature)
            return (moved.view(self.p, -1, self.p) * keep).reshape(self.p, -1)

        return accelerate_lines(lines, step, _TOLERANCE, _ITERATIONS, _CHECK_EVERY)

    def coefficients(self, lines: Tensor) -> Tensor:
        """With those of own terms, (p, C), of nodes as they are."""
        pairs = (lines.view(self.shape) / self.units[..., None]).reshape(self.p, -1)
        own = self.base - torch.bmm(self.across, pairs[..., None])[..., 0]
        return torch.cat([pairs, own], dim=1)


def best_energies(problem: EnergyProblem, held_out: ScoreMoments) -> tuple[float, Tensor]:
    """The penalty that held-out rows like best, from that of no pair down, and the lines there."""

    def attempt(penalty: float, near: Tensor | None) -> tuple[float, Tensor]:
        lines = problem.solve(penalty, near)
        return held_out.loss(problem.coefficients(lines)), lines

    search = PathSearch(falling_penalties(problem.largest_penalty()), attempt)
    search.walk(0, lambda s: s.worse >= WORSE)
    return search.best.value, search.best.solution


def moving_pairs(slopes: Tensor, x: Tensor, features: Tensor, terms: PairTerms) -> Tensor:
    """Pairs whose terms would move with a feature of z, (p, p), by tests that each see one feature.

    Given the slopes (n, p) of a fit, what a coefficient that moves with a feature would lower the loss by is
    a sum over rows; without any such movement it is a sum of chances.
    """
    values, first, second = hermite_functions(x, terms.highest)
    weight, slope = (part[..., None] for part in tail_weights(x))
    pushes = weight * (slopes[..., None] * first + second) + slope * first  # of h_m(x_j), (n, p, orders)
    p_values = []
    for feature in features.T:
        total = x.new_zeros(x.shape[1], x.shape[1])
        for m, o in terms.orders:
            total += _squared_z(feature[:, None], pushes, values, m - 1, o - 1)
        p_values.append(chdtrc(terms.size, total.double().cpu().numpy()))
    smallest = np.minimum(1.0, len(p_values) * np.min(p_values, axis=0))
    upper = np.triu_indices(x.shape[1], 1)
    passing = np.zeros(smallest.shape, dtype=bool)
    passing[upper] = q_values(smallest[upper]) <= FALSE_SHARE
    return torch.as_tensor(passing | passing.T, device=x.device)


def _squared_z(feature: Tensor, pushes: Tensor, values: Tensor, m: int, o: int) -> Tensor:
    """The square of a sum over rows in units of its standard error, for one kind of term: (p, p)."""
    push_j, push_k = feature * pushes[..., m], feature * pushes[..., o]
    value_j, value_k = values[..., m], values[..., o]
    total = push_j.T @ value_k + value_j.T @ push_k
    squares = push_j.square().T @ value_k.square() + value_j.square().T @ push_k.square()
    squares += 2 * (push_j * value_j).T @ (push_k * value_k)
    return total.square() / squares.clamp(min=1e-12)
