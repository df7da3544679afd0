"""Which pairs of nodes stand clear of their noise: one test per pair, and how many of all pairs pass.

With residuals e (in units of their standard deviations) and directed strengths d, the score of a row

    t_jk = e_j e_k + d_kj e_j^2 + d_jk e_k^2

has the partial correlation at z as its mean, and errors of d reach it in second order only: what a penalty
takes away from an edge, its score gives back (Liu, Annals of Statistics 2013, for one graph). A pair is
judged by its average score and by its scores along its own course over z, so that an edge which is there for
some z alone, or changes its sign, is not lost in its average.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtr

from graphfield.cores import side_by_side
from graphfield.graphs.false_discoveries import q_values

# The false discovery rate at which pairs pass: as ``infer_edges(...).edges()`` has by default.
FALSE_SHARE = 0.1
# A field of graphs whose variation is less than this share of its squares does not vary.
_STILL = 1e-5
# Squares of residuals, in units of what they should be, that count as none.
_NO_POWER = 1e-12
# Entries of arrays that stay in a processor's cache, and for which threads are worth their start.
_STRIPE_ENTRIES, _WORTH_THREADS = 2**17, 2_000_000


@dataclass(frozen=True)
class PairTests:
    """A p-value for every pair of "no edge at any z", (p, p), and what scores are measured in.

    Pairs of columns, where nodes own several.
    """

    p_values: NDArray[np.float64]
    standard_error: float  # of the partial correlation of a typical pair, averaged over z
    scales: NDArray[np.float64]  # (p, p), what scores are to be divided by
    used: NDArray[np.bool_]  # (p, p), pairs that the model has an estimate for that is not zero

    def rates(self, starts: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """The q-values of the pairs, (p, p), symmetric; those up to :data:`FALSE_SHARE` pass.

        All pairs are tested, also those that the model has as zero, but these cannot be edges: 1. Where tests
        are of columns, of which nodes own several from ``starts`` on, a pair of nodes has the smallest
        p-value of its columns times their number.
        """
        p_values, used = self.p_values, self.used
        if starts is not None and len(starts) < len(p_values):
            widths = np.diff(starts, append=len(p_values))
            p_values = np.minimum(1.0, _by_blocks(np.minimum, p_values, starts) * np.outer(widths, widths))
            used = _by_blocks(np.logical_or, used, starts)
        upper = np.triu_indices(len(p_values), 1)
        rates = np.ones(used.shape)
        rates[upper] = rates.T[upper] = q_values(p_values[upper])
        return np.where(used, rates, 1.0)


def _by_blocks(function: np.ufunc, values: NDArray, starts: NDArray[np.intp]) -> NDArray:
    return np.asarray(function.reduceat(function.reduceat(values, starts, axis=0), starts, axis=1))


class PairScores:
    """Sums over units: rows, or groups of rows, which may go together in any way.

    Of a pair one side is computed, and of some nodes at a time: their arrays stay in a processor's cache, and
    cores may share them. Tensors on a GPU are summed there, those of all nodes at once.
    """

    def __init__(self, n_nodes: int) -> None:
        # Of the scores of a unit: their sum, its square, its product with the number of its rows; of the
        # scores times the course of the pair: their sum and its square.
        self._sums: Any = np.zeros((5, n_nodes, n_nodes))
        self._used: Any = np.zeros((n_nodes, n_nodes), dtype=bool)
        self._powers: Any = np.zeros(n_nodes)  # of the residuals: their squares
        self._n_rows = self._n_units = self._square_sizes = 0
        self._last: _Open | None = None  # a unit that may go on

    def add(self, residuals: Any, directed: Any, units: NDArray[np.intp]) -> None:
        """More rows, (b, p) and (b, p, p); those of one unit come without others between them.

        Arrays, or, always, tensors of one device.
        """
        on_device = not isinstance(directed, np.ndarray)
        if on_device and isinstance(self._sums, np.ndarray):
            self._sums, self._used, self._powers = (
                _like(directed, part, part.dtype.name) for part in (self._sums, self._used, self._powers)
            )
        self._powers += (residuals * residuals).sum(axis=0)
        starts = np.flatnonzero(np.diff(units, prepend=units[0] - 1))
        sizes = np.diff(starts, append=len(units))
        before, goes_on = self._last, self._last is not None and self._last.name == units[0]
        if before is not None and goes_on:
            sizes[0] += before.size
        elif before is not None:
            self._count_sizes(np.array([before.size]))
        self._count_sizes(sizes[:-1])
        nodes = directed.shape[1]
        self._last = _Open(units[-1], sizes[-1], _like(directed, np.zeros((2, nodes, nodes))))
        block = _Block(_like(directed, residuals), directed, starts, sizes, before, goes_on, self._last)
        if on_device:
            self._add_stripe(block, slice(0, nodes))
            return
        step = max(1, _STRIPE_ENTRIES // (len(units) * nodes))
        stripes = [slice(start, min(start + step, nodes)) for start in range(0, nodes, step)]
        work = partial(self._add_stripe, block)
        if directed.size < _WORTH_THREADS:
            for own in stripes:
                work(own)
        else:
            side_by_side(work, stripes)

    def _add_stripe(self, block: _Block, own: slice) -> None:
        """Pairs of some nodes with these and all later ones."""
        later = slice(own.start, None)
        ahead, back = block.directed[:, own, later], block.directed[:, later, own].swapaxes(1, 2)
        course = ahead + back
        course /= 2
        self._used[own, later] |= (course != 0).any(axis=0)
        scores = pair_scores(block.left[:, own, None], block.left[:, None, later], ahead, back)
        course *= scores
        if len(block.starts) < len(scores):
            scores, course = (_unit_sums(part, block.starts) for part in (scores, course))
        sums = self._sums[:, own, later]
        if block.before is not None:
            begun = block.before.sums[:, None, own, later]
            if block.goes_on:
                scores[:1] += begun[0]
                course[:1] += begun[1]
            else:
                _count(sums, begun[0], begun[1], np.array([block.before.size]))
        _count(sums, scores[:-1], course[:-1], block.sizes[:-1])
        block.last.sums[0, own, later], block.last.sums[1, own, later] = scores[-1], course[-1]

    def _count_sizes(self, sizes: NDArray[np.intp]) -> None:
        self._n_rows, self._n_units = self._n_rows + int(sizes.sum()), self._n_units + len(sizes)
        self._square_sizes += int(np.square(sizes).sum())

    def tests(self, freedom: float) -> PairTests:
        """The tests where fields of graphs vary in so many directions, one of them the average.

        The rows that the fit has used up, one for each direction of each edge of a node, do not count.
        """
        if self._last is not None:
            size = np.array([self._last.size])
            _count(self._sums, self._last.sums[:1], self._last.sums[1:], size)
            self._count_sizes(size)
            self._last = None
        total, all_squares, sized, along, along_squares = map(_both_sides, as_array(self._sums))
        used = _both_sides(as_array(self._used))
        n, units = self._n_rows, self._n_units
        left = 1.0 - freedom * float(used.sum(axis=1).mean()) / n
        if left <= 0 or units < 2:
            return PairTests(np.ones_like(total), np.inf, np.ones_like(total), used)
        # A residual of a row that the fit has used is too small by its leverage (HC3 in regressions).
        mean, small = total / n, units / (units - 1) / left**2
        squares = all_squares - 2 * mean * sized + mean**2 * self._square_sizes
        variance = small * np.maximum(squares, 0.0) / n**2
        off = ~np.eye(len(mean), dtype=bool)
        with np.errstate(divide="ignore", invalid="ignore"):
            average = np.abs(mean) / np.sqrt(variance)
            own = np.square(np.maximum(along, 0.0)) / (small * along_squares)
        rest = max(1.0, (units - 1) * left)
        p_values = 2 * stdtr(rest, -average)
        if freedom > 1:  # the course was found in the same rows: it had so many directions to choose from
            p_values = np.minimum(1.0, 2 * np.fmin(p_values, fdtrc(freedom, rest, own / freedom)))
        p_values = np.where(off & np.isfinite(p_values), p_values, 1.0)
        # Residuals are in units of what the model takes for their scale, which a penalty makes larger.
        power = np.maximum(as_array(self._powers) / n, _NO_POWER)
        scales = np.sqrt(power[:, None] * power)
        # No correlation is off by more than one, also where others explain a node to the last bit.
        error = min(1.0, float(np.nan_to_num(np.median((np.sqrt(variance) / scales)[off]), nan=1.0)))
        return PairTests(p_values, error, scales, used)


@dataclass
class _Open:
    """A unit that may go on in rows to come: of its scores, and of these times their course, the sums."""

    name: int
    size: int
    sums: Any  # (2, p, p)


@dataclass(frozen=True)
class _Block:
    """Rows that are added: residuals, directed strengths, where units begin and how many rows they have."""

    left: Any
    directed: Any
    starts: NDArray[np.intp]
    sizes: NDArray[np.intp]
    before: _Open | None
    goes_on: bool  # whether the first unit is the one before
    last: _Open


def _count(sums: Any, scores: Any, along: Any, sizes: NDArray) -> None:
    # A few rows at a time, so their own precision does for the sums over them.
    einsum = sys.modules[type(scores).__module__].einsum
    total = scores.sum(axis=0)
    sums[0] += total
    sums[1] += einsum("ujk,ujk->jk", scores, scores)
    sums[2] += total if (sizes == 1).all() else einsum("u,ujk->jk", _like(scores, sizes), scores)
    sums[3] += along.sum(axis=0)
    sums[4] += einsum("ujk,ujk->jk", along, along)


def as_array(values: Any) -> NDArray:
    """An array, or what a tensor has, here."""
    return values if isinstance(values, np.ndarray) else values.cpu().numpy()


def _like(array: Any, values: Any, dtype: str | None = None) -> Any:
    """These values where ``array`` lies, in its precision or in the named one: an array, or a tensor."""
    if isinstance(array, np.ndarray):
        return np.asarray(values, dtype=dtype or array.dtype)
    torch = sys.modules["torch"]  # whose tensors came here; nothing of graphs needs it
    return torch.asarray(values, dtype=getattr(torch, dtype) if dtype else array.dtype, device=array.device)


def _unit_sums(values: Any, starts: NDArray[np.intp]) -> Any:
    """Sums over the rows of each unit, which begin at ``starts``."""
    if isinstance(values, np.ndarray):
        return np.add.reduceat(values, starts, axis=0)
    of_unit = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(values)))
    own = _like(values, np.equal.outer(np.arange(len(starts)), of_unit))  # a product has the same bits again
    return (own @ values.flatten(1)).view(-1, *values.shape[1:])


def _both_sides(upper: NDArray) -> NDArray:
    """A symmetric matrix of which one side is known."""
    return np.where(np.tri(len(upper), k=-1, dtype=bool), upper.T, upper)


def pair_scores(e_j: Any, e_k: Any, d_jk: Any, d_kj: Any) -> Any:
    """``e_j e_k + d_kj e_j^2 + d_jk e_k^2``, whose mean is the partial correlation of j and k.

    The same bits from both sides.
    """
    return e_j * e_k + (d_kj * (e_j * e_j) + d_jk * (e_k * e_k))


def n_directions(correlations: NDArray, index: NDArray[np.intp]) -> float:
    """In how many directions graphs vary over rows, one of them the average: 1 is one graph for all.

    ``correlations`` (m, pairs) are the partial correlations at the distinct covariate values, ``index`` the
    value that each row has. The others are counted by the participation ratio of the variances. Every pair
    that moves has the same say: one that moves much would hide in how many directions the rest could go.

    >>> n_directions(np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([0, 0, 1, 1]))
    2.0
    >>> strong, weak = np.array([3.0, -3.0, 3.0, -3.0]), np.array([0.1, 0.1, -0.1, -0.1])
    >>> n_directions(np.stack([strong, weak], axis=1) / 10, np.arange(4))
    3.0
    """
    shares = np.bincount(index, minlength=len(correlations)) / len(index)
    course = correlations - (shares @ correlations).astype(correlations.dtype)
    variances = shares @ np.square(course)
    if variances.sum() <= _STILL * (shares @ np.square(correlations)).sum():
        return 1.0
    moves = variances > _STILL * variances.max()
    course = course[:, moves] / np.sqrt(variances[moves]).astype(course.dtype)
    products = (course @ course.T).astype(np.float64) * np.sqrt(np.outer(shares, shares))
    return 1.0 + float(np.trace(products) ** 2 / np.square(products).sum())
