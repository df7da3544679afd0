"""What each row says about the edge of each pair of nodes, where nodes are of several kinds.

Given all other nodes and z, two nodes with columns f and g have the joint law

    p(f, g) proportional to exp(a' f + b' g + f' B(z) g)

with a and b functions of the other nodes and of z, which regressions of both nodes give. The score of B is
``u g'`` with u what the regression of f leaves of it. Less what u alone explains of that, given the others,

    S = u g' - G' u,    G = E[V]^-1 E[V g'],    V = the variance of f given g and the others,

it does not mind small errors in a (nor, at B = 0, in either of a and b unless both are wrong): it is the
efficient score of B. With its variance I(z) at z, ``B0(z) + I(z)^-1 S`` has the mean B(z), but for products
of two errors, and stands for the row in regressions on functions of z. Laws over g are sums over its values,
so one of the nodes has to have some; two numbers have the score of :mod:`graphfield.inference.pair_scores`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, softmax

from graphfield.data.blocks import Blocks, block_power
from graphfield.inference.kind_differences import at_least
from graphfield.inference.pair_columns import PairColumns
from graphfield.inference.pair_scores import left_by_others, score_values, score_variances
from graphfield.solvers.node_likelihood import NUMBERS
from graphfield.solvers.working import FamilyRows, split_coefficients

Array = NDArray[np.float64]
# Values of a count that laws are summed over, at most.
_MOST_VALUES = 40
# Information at some z is no smaller or larger than its mean by more than this factor.
_MOST_RATIO = 4.0
# And its mean is no smaller than this share of what it is where both nodes vary as their laws say: less is
# said only by laws that are wrong.
_LEAST_INFORMATION = 1e-3
_MOST_PARTIAL = 0.95
# Probabilities of pairs of values that are held at a time.
_ENTRIES = 4_000_000


@dataclass(frozen=True)
class KindScores:
    """Values whose means at z are edges at z, in units of what both nodes have left: (n, columns of pairs).

    ``variances``, (n, width, width) of each pair, are what rows add to those of sums of values, but for a
    factor of all rows; ``inflation`` (pairs,) says by how much they are larger since means of nodes were
    fitted.
    """

    pairs: PairColumns
    values: Array
    variances: tuple[Array, ...]
    inflation: Array

    @property
    def n_pairs(self) -> int:
        return len(self.pairs)

    def of_pair(self, pair: int) -> Array:
        """(n, width)"""
        return self.values[:, self.pairs.of_pair(pair)]


@dataclass(frozen=True)
class _Values:
    """The values that a node may have: ``log p = eta' points + base``, but for a constant."""

    points: Array  # (values, width)
    base: Array

    def logs(self, eta: Array) -> Array:
        return np.asarray(eta @ self.points.T + self.base)


def _values_of(blocks: Blocks, node: int) -> _Values | None:
    """None of a number."""
    one = blocks.types.types[node]
    if one.kind in NUMBERS:
        return None
    if one.kind != "count":
        codes = np.arange(len(one.levels))
        base = np.zeros(len(codes))
    else:
        codes = np.unique(np.linspace(0, blocks.most[node] + 1, _MOST_VALUES).round())
        base = np.log(np.gradient(codes)) - gammaln(codes + 1)
    X = np.zeros((len(codes), len(blocks.slices)))
    X[:, node] = codes
    return _Values(blocks.columns(X)[:, blocks.slices[node]], base)


def kind_scores(
    rows: FamilyRows, coef: Array, fold: NDArray[np.intp], functions: Array, inflation: Array
) -> KindScores:
    """From coefficients that were found without each fold.

    ``functions`` (n, m), the first one, uncorrelated with mean square one, are what information may follow;
    ``inflation`` (p, p) that of numbers.
    """
    found = _Regressions.of(rows, coef, fold)
    pairs = PairColumns.of(rows.blocks.widths)
    values, variances = np.empty((len(rows.W), len(pairs.first))), []
    n_folds = len(coef) // len(fold)
    shared, factors = _shared_errors(rows.blocks, coef, len(values), n_folds), np.empty(len(pairs))
    for pair in range(len(pairs)):
        own = pairs.of_pair(pair)
        j, k = (int(rows.blocks.nodes[side[own.start]]) for side in (pairs.first, pairs.second))
        factors[pair] = 1 + shared[j, k]
        if found.laws[j] is None and found.laws[k] is None:
            values[:, own], variance = found.of_numbers(j, k)
            factors[pair] *= inflation[j, k]
        else:
            values[:, own], variance = found.of_pair(j, k, functions)
        variances.append(variance)
    return KindScores(pairs, values, tuple(variances), factors)


def _shared_errors(blocks: Blocks, coef: Array, n: int, n_folds: int) -> Array:
    """What products of the errors of two regressions add to a variance, as a share of it, (p, p).

    Such an error is a sum over coefficients, and its products have no mean; but they are the same in all rows
    of a fold, so that rows do not show how they vary. Of those that both regressions have, each adds what one
    row does, and more, since folds are fitted without their own rows.
    """
    there = np.maximum.reduceat(coef != 0, blocks.starts, axis=2).astype(np.float64)  # (folds, size, p)
    larger = np.square(n_folds / max(1, n_folds - 1))
    return np.asarray(larger * np.einsum("fsj,fsk->jk", there, there) / len(coef) / n)


@dataclass(frozen=True)
class _Regressions:
    """What regressions say of rows that took no part in them."""

    blocks: Blocks
    columns: Array  # (n, d)
    eta: Array  # (n, d)
    left: Array  # (n, d)
    W: Array
    B: Array  # (folds, m, d, d), by neighbour and response
    fold: NDArray[np.intp]  # (n, cuts)
    units: Array  # (d, d), roots of the variances of what is left
    laws: list[_Values | None]

    @classmethod
    def of(cls, rows: FamilyRows, coef: Array, fold: NDArray[np.intp]) -> _Regressions:
        blocks, eta = rows.blocks, np.zeros_like(rows.columns)
        for number, S in enumerate(coef):
            own = (fold == number).any(axis=0)
            eta[own] += rows.take(own).predictors(S) / len(fold)
        left = rows.columns - blocks.means(eta)
        B = np.stack([split_coefficients(S, rows.W.shape[1])[0] for S in coef])
        units = block_power(left.T @ left / len(left), blocks.slices, 0.5)
        laws = [_values_of(blocks, node) for node in range(len(blocks.slices))]
        return cls(blocks, rows.columns, eta, left, rows.W, B, fold.T, units, laws)

    def effects(self, response: int, neighbour: int) -> Array:
        """Of the columns of a neighbour on the natural parameters of a node at each row, (n, v, w)."""
        v, w = self.blocks.slices[response], self.blocks.slices[neighbour]
        found = np.einsum("nm,ncmkj->njk", self.W, self.B[:, :, w, v][self.fold], optimize=True)
        return found / (self.fold.shape[1] * self._variance(response))

    def _variance(self, node: int) -> float:
        """What natural parameters of a number are to be divided by; one for others."""
        start = self.blocks.slices[node].start
        return float(self.units[start, start] ** 2) if self.laws[node] is None else 1.0

    def of_numbers(self, j: int, k: int) -> tuple[Array, Array]:
        """As in :class:`~graphfield.inference.pair_scores.PairScores`: values (n, 1), variances (n, 1, 1)."""
        a, b = self.blocks.starts[j], self.blocks.starts[k]
        scale = self.units[a, a] * self.units[b, b]
        on_second, on_first = (self.effects(*pair)[:, 0, 0] * scale for pair in ((j, k), (k, j)))
        partial = np.clip((on_second + on_first) / 2, -_MOST_PARTIAL, _MOST_PARTIAL)
        u, v = (self.left[:, column] / self.units[column, column] for column in (a, b))
        left = left_by_others(u, v, on_second, on_first)
        first, second = (own / np.sqrt(np.mean(own**2)) for own in left)
        values = score_values(first, second, partial)
        return values[:, None], score_variances(first, -second, partial)[:, None, None]

    def of_pair(self, j: int, k: int, functions: Array) -> tuple[Array, Array]:
        """Values (n, width) and variances (n, width, width) of a pair, of which one at least is no number."""
        sizes = [np.inf if law is None else len(law.points) for law in (self.laws[j], self.laws[k])]
        v, w = self.blocks.slices[j], self.blocks.slices[k]
        if sizes[0] < sizes[1]:
            turned = (
                np.arange((v.stop - v.start) * (w.stop - w.start)).reshape(w.stop - w.start, -1).T.ravel()
            )
            values, variances = self.of_pair(k, j, functions)
            return values[:, turned], variances[:, turned[:, None], turned]
        first = self.effects(j, k)
        parts = [self._take(rows)._scores(j, k, first[rows]) for rows in self._row_parts(j, k)]
        score, information, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
        n, width = len(score), score[0].size
        units = np.asarray(np.kron(self.units[v, v], self.units[w, w]), dtype=np.float64)
        at_z = _smoothed(information.reshape(n, width, width), functions, units)
        step = units @ np.linalg.inv(at_z)
        values = first.reshape(n, -1) @ units + np.einsum("nab,nb->na", step, score.reshape(n, -1))
        return values, step @ variance.reshape(n, width, width) @ step.transpose(0, 2, 1)

    def _row_parts(self, j: int, k: int) -> Iterator[slice]:
        """Rows whose joint laws of two nodes are held at a time."""
        sizes = [1 if law is None else len(law.points) for law in (self.laws[j], self.laws[k])]
        n, step = len(self.left), max(1, _ENTRIES // (sizes[0] * sizes[1]))
        return (slice(start, start + step) for start in range(0, n, step))

    def _take(self, rows: slice) -> _Regressions:
        names = ("columns", "eta", "left", "W", "fold")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def _scores(self, j: int, k: int, B: Array) -> tuple[Array, Array, Array]:
        """S, (n, v, w), its variance given the other nodes, (n, v, w, v, w), and given the second as well.

        Sums of S over rows are those of independent terms given the second node, whose variance is known.
        """
        v, w, law = self.blocks.slices[j], self.blocks.slices[k], self.laws[k]
        assert law is not None
        left, g = self.left[:, v], self.columns[:, w]
        alone = self.eta[:, v] / self._variance(j) - np.einsum("nvw,nw->nv", B, g)
        other = self.eta[:, w] - np.einsum("nwv,nv->nw", self.effects(k, j), self.columns[:, v])
        points = law.points
        whole, variances = self._moments(j, alone[:, None] + np.einsum("nvw,lw->nlv", B, points))
        shares = softmax(law.logs(other) + whole, axis=1)
        mean = np.einsum("nl,nlab->nab", shares, variances, optimize=True)
        with_g = np.einsum("nl,nlab,lc->nabc", shares, variances, points, optimize=True)
        squares = np.einsum("nl,nlab,lc,ld->nacbd", shares, variances, points, points, optimize=True)
        steady = mean + 1e-9 * np.eye(mean.shape[1])
        G = np.linalg.solve(steady, with_g.reshape(*mean.shape[:2], -1)).reshape(with_g.shape)
        by_left = np.einsum("xa,nb->nxab", np.eye(left.shape[1]), g) - G
        own = self._moments(j, (self.eta[:, v] / self._variance(j))[:, None])[1][:, 0]
        given = np.einsum("nxab,nxy,nycd->nabcd", by_left, own, by_left, optimize=True)
        score = np.einsum("nx,nxab->nab", left, by_left)
        return score, squares - np.einsum("nxab,nxcd->nabcd", with_g, G), given

    def _moments(self, node: int, eta: Array) -> tuple[Array, Array]:
        """Of a node at eta (n, l, v): log of the sum over its values, (n, l), and variance, (n, l, v, v)."""
        law = self.laws[node]
        if law is None:
            variance = self._variance(node)
            whole = variance / 2 * np.square(eta[:, :, 0])
            return whole, np.full((*eta.shape, 1), variance)
        logs = law.logs(eta)
        shares = softmax(logs, axis=2)
        mean = shares @ law.points
        squares = np.einsum("nls,sa,sb->nlab", shares, law.points, law.points, optimize=True)
        return np.asarray(logsumexp(logs, axis=2)), squares - mean[..., :, None] * mean[..., None, :]


def _smoothed(information: Array, functions: Array, units: Array) -> Array:
    """What functions of z explain of matrices (n, w, w), and bounded."""
    n, w, _ = information.shape
    flat = information.reshape(n, -1)
    mean = at_least(flat.mean(axis=0).reshape(w, w), _LEAST_INFORMATION * units @ units)
    root = block_power(mean, [slice(0, w)], 0.5)
    inverse = block_power(mean, [slice(0, w)], -0.5)
    at_z = (functions @ (functions.T @ flat / n)).reshape(n, w, w)
    values, vectors = np.linalg.eigh(inverse @ at_z @ inverse)
    bounded = np.clip(values, 1 / _MOST_RATIO, _MOST_RATIO)
    return np.asarray(root @ (vectors * bounded[:, None]) @ vectors.transpose(0, 2, 1) @ root)
