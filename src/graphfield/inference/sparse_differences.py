"""Which pairs differ between graphs, where most pairs have no edge in any of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from graphfield.graphs.false_discoveries import q_values
from graphfield.inference.pair_columns import PairColumns

# No rate is above so many times that of p-values alone.
_TEN_TIMES = 10.0
# Pairs that are thought of beforehand: without an edge, with the same edge (weak, strong), with edges of
# their own. They keep few pairs from making differences up.
_BEFOREHAND, _AT_FIRST = (5.0, 2.5, 2.5, 3.0), (0.6, 0.1, 0.1, 0.2)
# Of differing pairs, those that share an edge beside, for one of each other kind.
_ALSO_SHARED = 0.25
# Variances of the same edges are this, or one, times the mean one: many are weak.
_WEAK = 0.1
_LEAST, _MOST, _START, _STARTS = 0.005, 0.3, 0.04, 2.0
# Chains of draws side by side; rounds that are forgotten and that count.
_CHAINS, _FORGOTTEN, _ROUNDS = 24, 25, 40
# Products of two errors of regressions of p nodes add about this times p / n to a variance of 1 / n.
_PRODUCTS = 1.5
# With more pairs, they are taken as independent of each other: matrices would not fit.
_MOST_TOGETHER = 2_000
# Partial correlations are drawn to zero until no eigenvalue of their matrix is smaller.
_LEAST_EIGENVALUE = 0.05
# Of the largest variance that graphs have together, what any direction has at least; of the variance of a
# graph, what the others leave.
_LEAST_SHARE, _LEAST_OWN = 1e-6, 0.5


def q_values_of_differences(
    estimates: NDArray[np.float64],
    covariance: Sequence[NDArray[np.float64]] | NDArray[np.float64],
    p_values: NDArray[np.float64],
    *,
    dependent: bool = False,
    pairs: PairColumns | None = None,
) -> NDArray[np.float64]:
    """The false discovery rate among pairs that differ at least as clearly as each.

    A pair without an edge in any graph and a pair with the same edge in all do not differ; one whose edge
    is there in some graphs only does, and one whose edge is stronger in some. With f an edge and d a
    difference (normal, mean zero), the truth of two graphs is one of

        0, 0    f, f    f, 0    0, f    f, f'    f + d, f + d'

    How many pairs are of each kind, and how large edges are, is learned from all pairs. Estimates are normal
    around the truth. Those of different pairs of one graph go together as correlations of Gaussian variables
    do (Pearson and Filon, 1898), so what is known to be zero makes its neighbours clearer: this is where most
    is gained over p-values. A pair's chance not to differ comes from draws of all pairs given the data (Gibbs
    sampling), and the mean of these chances over pairs that are as clear is the rate (local false discovery
    rate, Efron et al., 2001). No rate is below the pair's own p-value: neighbours alone prove nothing. And
    none is above ten times that of p-values alone: what is clear by itself is found, whatever all pairs say.
    So of a list a tenth more may be false.

    What is learned from all pairs is little where these are fewer than those thought of beforehand, and what
    edges are at each value is little where graphs, as points of one model, have most errors in common: then
    rates are those of p-values alone (Benjamini and Hochberg, 1995), which find more.

    Estimates, in units of partial correlations, are (graphs, columns), where wide pairs have several columns
    (``pairs``; by default each has one), with the covariance (graphs * width, graphs * width) of each pair;
    p-values say that a pair is the same in all graphs. Where graphs share subjects (``dependent``), pairs are
    taken as independent of each other, and covariances, which may come from few subjects, are made larger
    until normal estimates differ no more clearly than p-values say.
    """
    pairs = pairs or PairColumns.of(np.ones(_n_nodes(estimates.shape[1]), dtype=np.intp))
    if len(pairs) < sum(_BEFOREHAND) or (not dependent and _mostly_shared(covariance, pairs)):
        return q_values(p_values)
    if dependent:
        covariance = _as_clear_as(p_values, estimates, covariance, pairs)
    order = np.argsort(estimates.sum(axis=1))  # draws do not depend on which graph is named first
    same = _chance_of_same(estimates[order], [_in_order(own, order) for own in covariance], dependent, pairs)
    order = np.argsort(same, kind="stable")
    rates = np.empty(len(same))
    rates[order] = np.cumsum(same[order]) / np.arange(1, len(same) + 1)
    by_p_values_alone = _TEN_TIMES * q_values(p_values)
    return np.minimum(np.maximum(np.minimum(rates, by_p_values_alone), p_values), 1.0)


def _mostly_shared(
    covariance: Sequence[NDArray[np.float64]] | NDArray[np.float64], pairs: PairColumns
) -> bool:
    """Whether graphs leave less than half of the variances of errors of any of them."""
    left = []
    for own, width in zip(covariance, pairs.widths, strict=True):
        for column in _over_graphs(own[None], width)[0]:
            size = np.sqrt(np.maximum(np.diag(column), 1e-20))
            apart = column / size / size[:, None] + _LEAST_SHARE * np.eye(len(size))
            left.append((1 / np.diag(np.linalg.inv(apart))).min())
    return float(np.median(left)) < _LEAST_OWN


def _as_clear_as(
    p_values: NDArray[np.float64],
    estimates: NDArray[np.float64],
    covariance: Sequence[NDArray[np.float64]] | NDArray[np.float64],
    pairs: PairColumns,
) -> list[NDArray[np.float64]]:
    """Covariances with which normal differences between graphs have no smaller p-values than these."""
    found, k = [], len(estimates)
    for pair, own in enumerate(covariance):
        width = pairs.widths[pair]
        apart = np.kron(np.column_stack([-np.ones(k - 1), np.eye(k - 1)]), np.eye(width))
        off = apart @ estimates[:, pairs.of_pair(pair)].reshape(-1)
        clear = off @ np.linalg.pinv(apart @ own @ apart.T) @ off
        found.append(own * max(1.0, clear / max(chdtri(len(apart), p_values[pair]), 1e-3)))
    return found


def _in_order(covariance: NDArray[np.float64], order: NDArray[np.intp]) -> NDArray[np.float64]:
    """Of one pair, graphs in another order."""
    k, size = len(order), len(covariance)
    apart = covariance.reshape(k, size // k, k, size // k)
    return apart[order][:, :, order].reshape(size, size)


@dataclass(frozen=True)
class _Kinds:
    """Of pairs: covariances of the truth over graphs are ``same * shared + other * diag(own)``.

    The last kind has both; the variances are learned from those that have one of them.
    """

    shared: NDArray[np.float64]  # (kinds,)
    own: NDArray[np.float64]  # (kinds, graphs)
    beforehand: NDArray[np.float64]
    at_first: NDArray[np.float64]

    @classmethod
    def of(cls, n_graphs: int) -> _Kinds:
        sizes = range(1, n_graphs + 1) if n_graphs <= 3 else (1, n_graphs - 1, n_graphs)
        chosen = [which for size in sizes for which in combinations(range(n_graphs), size)]
        chosen.append(tuple(range(n_graphs)))  # beside a shared edge
        own = np.zeros((3 + len(chosen), n_graphs))
        for row, which in zip(own[3:], chosen, strict=True):
            row[list(which)] = 1.0
        parts = np.append(np.ones(len(chosen) - 1), _ALSO_SHARED)
        counts = [np.append(three[:3], three[3] * parts / parts.sum()) for three in (_BEFOREHAND, _AT_FIRST)]
        shared = np.zeros(len(own))
        shared[[1, 2, -1]] = _WEAK, 1.0, 1.0
        return cls(shared, own, counts[0], counts[1])

    def roots(self, same: float, other: float) -> NDArray[np.float64]:
        """Of the covariances, (kinds, graphs, graphs)."""
        found = np.sqrt(other) * self.own[:, :, None] * np.eye(self.own.shape[1])
        found[1:3, :, 0] = np.sqrt(same * self.shared[1:3, None])
        found[-1] = np.linalg.cholesky(same + found[-1] ** 2)
        return found


def _chance_of_same(
    estimates: NDArray[np.float64],
    covariance: Sequence[NDArray[np.float64]],
    dependent: bool,
    pairs: PairColumns,
) -> NDArray[np.float64]:
    """By draws from a fixed seed."""
    rng, kinds = np.random.default_rng(0), _Kinds.of(len(estimates))
    apart = dependent or estimates.shape[1] > _MOST_TOGETHER
    draws = _Draws(estimates, covariance, pairs, together=not apart)
    weights, same, other, total = kinds.at_first, _START, _START, np.zeros(len(pairs))
    for number in range(_FORGOTTEN + _ROUNDS):
        roots = kinds.roots(same, other)
        chances, kind = draws.sweep(rng, weights, roots)
        if number >= _FORGOTTEN:
            total += chances[:, :3].sum(axis=1)
        weights = (chances.sum(axis=0) + kinds.beforehand) / (len(chances) + kinds.beforehand.sum())
        shared, own = kinds.shared[kind], kinds.own[kind].transpose(2, 0, 1)
        squares = np.add.reduceat(np.square(draws.truth), pairs.starts[:-1], axis=1)
        one, differs = shared > 0, own.any(axis=0)
        same = _variance((squares[0] / np.where(one, shared, 1))[one & ~differs])
        other = _variance(squares[(own > 0) & ~one])
    return total / _ROUNDS


def _variance(squares: NDArray[np.float64]) -> float:
    """Over all chains; some pairs are thought of beforehand."""
    total, count = squares.sum() / _CHAINS + _STARTS * _START, len(squares) / _CHAINS + _STARTS
    return float(np.clip(total / count, _LEAST, _MOST))


class _Draws:
    """The truth of all pairs in some chains, (graphs, columns, chains), and how to draw it again."""

    def __init__(
        self,
        estimates: NDArray[np.float64],
        covariance: Sequence[NDArray[np.float64]],
        pairs: PairColumns,
        together: bool,
    ) -> None:
        self.pairs, self.estimates, self.noise = pairs, estimates, {}
        self.place = np.empty(len(pairs), np.intp)
        over_graphs = np.empty((estimates.shape[1], len(estimates), len(estimates)))
        for width in np.unique(pairs.widths):
            which, columns = pairs.with_width(width)
            self.place[which] = np.arange(len(which))
            self.noise[width] = np.stack([covariance[pair] for pair in which])
            over_graphs[columns] = _over_graphs(self.noise[width], width)
        variances = np.maximum(np.einsum("cgg->gc", over_graphs), 1e-20)
        # Clear ones are nearly themselves, others nearly zero.
        first = estimates * np.maximum(0, 1 - 2 * variances / np.maximum(np.square(estimates), 1e-20))
        self.errors = _Errors.of(first, over_graphs, pairs) if together else None
        for width in self.noise:
            if self.errors is None:
                self.noise[width] = (1 + _products(variances, pairs)) * self.noise[width]
            else:
                self.noise[width] = self.errors.given_others(pairs.with_width(width)[1])
        self.noise_root = {
            width: np.linalg.cholesky(noise + 1e-15 * np.eye(noise.shape[1]))
            for width, noise in self.noise.items()
        }
        self.truth = np.repeat(first[:, :, None], _CHAINS, axis=2)
        # What the errors of all pairs pull at each, (graphs, columns, chains).
        self.pull = None if self.errors is None else self.errors.pull(self.truth - estimates[:, :, None])

    def sweep(
        self, rng: np.random.Generator, weights: NDArray[np.float64], roots: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Draw each pair given the others: chances of kinds, (pairs, kinds), and kinds, (pairs, chains)."""
        (k, d), m = self.estimates.shape, len(self.pairs)
        plans = {width: _Plan.of(noise, weights, roots) for width, noise in self.noise.items()}
        kinds, chances = np.empty((m, _CHAINS), np.intp), np.empty((m, len(weights)))
        noise, uniform = rng.normal(size=(d, 2, _CHAINS, k, 1)), rng.random((m, _CHAINS))
        for pair in rng.permutation(m):
            width, place = self.pairs.widths[pair], self.place[pair]
            plan, inverse = plans[width], plans[width].inverse[place]
            seen = self._seen(pair)  # (graphs * width, chains), what data and the other pairs say of this one
            sizes = plan.constant[place][:, None] - ((inverse @ seen) * seen).sum(axis=1) / 2
            chance = np.exp(sizes - sizes.max(axis=0))
            chance /= chance.sum(axis=0)
            kind = np.minimum((chance.cumsum(axis=0) < uniform[pair]).sum(axis=0), len(weights) - 1)
            own = noise[self.pairs.of_pair(pair)].transpose(1, 2, 3, 0, 4).reshape(2, _CHAINS, k * width, 1)
            drawn = plan.roots[kind] @ own[0]
            off = seen.T[:, :, None] - drawn - self.noise_root[width][place] @ own[1]
            self._set(pair, (drawn + plan.gain[place][kind] @ off)[:, :, 0].T)
            kinds[pair], chances[pair] = kind, chance.mean(axis=1)
        return chances, kinds

    def _seen(self, pair: int) -> NDArray[np.float64]:
        own = self.pairs.of_pair(pair)
        if self.errors is None or self.pull is None:
            return np.repeat(self.estimates[:, own].reshape(-1, 1), _CHAINS, axis=1)
        pulled = self.errors.pulled(own, self.pull[:, own])
        return (self.truth[:, own] - pulled).reshape(-1, _CHAINS)

    def _set(self, pair: int, new: NDArray[np.float64]) -> None:
        own = self.pairs.of_pair(pair)
        new = new.reshape(len(self.estimates), -1, _CHAINS)
        if self.errors is not None and self.pull is not None:
            self.pull += self.errors.pull(new - self.truth[:, own], own)
        self.truth[:, own] = new


@dataclass(frozen=True)
class _Plan:
    """What drawing pairs of one width takes, kind by kind."""

    roots: NDArray[np.float64]  # (kinds, graphs * width, graphs * width)
    inverse: NDArray[np.float64]  # (pairs, kinds, ...), of the covariance of what is seen of a pair
    gain: NDArray[np.float64]  # how much of what is seen is the truth
    constant: NDArray[np.float64]  # (pairs, kinds)

    @classmethod
    def of(
        cls, noise: NDArray[np.float64], weights: NDArray[np.float64], roots: NDArray[np.float64]
    ) -> _Plan:
        """The numbers of a wide edge have equal shares of its variance."""
        width = noise.shape[1] // roots.shape[1]
        roots = np.kron(roots, np.eye(width)[None] / np.sqrt(width))
        spread = roots @ roots.transpose(0, 2, 1)
        inverse = np.linalg.inv(noise[:, None] + spread)
        constant = np.log(weights) + np.linalg.slogdet(inverse)[1] / 2
        return cls(roots, np.asarray(inverse), spread @ inverse, constant)


@dataclass(frozen=True)
class _Errors:
    """Of the estimates of all pairs in all graphs: ``root @ unit``, where only units go from pair to pair.

    Graphs that are points of one model have errors in common: ``root``, of each column, has what they share.
    The rest, of variance one, is independent from graph to graph.
    """

    root: NDArray[np.float64]  # (columns, graphs, graphs)
    back: NDArray[np.float64]  # its inverse
    precision: NDArray[np.float64]  # of the units of each graph, (graphs, columns, columns)

    @classmethod
    def of(cls, first: NDArray[np.float64], over_graphs: NDArray[np.float64], pairs: PairColumns) -> _Errors:
        values, vectors = np.linalg.eigh(over_graphs)
        values = np.maximum(values, _LEAST_SHARE * values[:, -1:])[:, None]
        turned = vectors.transpose(0, 2, 1)
        alone = 1 / np.einsum("cgl,cgl->gc", vectors / values, vectors)  # what others leave of each graph
        precision = np.empty((*first.shape, first.shape[1]))
        for own, partial, variance in zip(precision, first, alone, strict=True):
            own[:] = _covariance_of_correlations(partial, pairs)
            unit = 1 / np.sqrt(np.diag(own))
            own *= unit * unit[:, None]
            own[np.diag_indices(len(own))] += _products(variance[None], pairs)
            own[:] = np.linalg.inv(own)
        root = np.sqrt(values)
        return cls((vectors * root) @ turned, (vectors / root) @ turned, precision)

    def pull(self, off: NDArray[np.float64], of: slice = slice(None)) -> NDArray[np.float64]:
        """What errors of some columns, (graphs, columns, chains), pull at all."""
        return np.asarray(self.precision[:, :, of] @ _turn(self.back[of], off))

    def pulled(self, own: slice, pull: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far the columns of a pair are from what the errors of all others make of them."""
        precision = self.precision[:, own, own]
        unit = pull / precision if precision.shape[1] == 1 else np.linalg.solve(precision, pull)
        return _turn(self.root[own], np.asarray(unit))

    def given_others(self, columns: NDArray[np.intp]) -> NDArray[np.float64]:
        """Covariances of pairs of one width, given all others, (pairs, ...)."""
        (m, width), k = columns.shape, len(self.precision)
        own = self.precision[:, columns[:, :, None], columns[:, None]]
        own = np.asarray(1 / own if width == 1 else np.linalg.inv(own))
        root = self.root[columns]
        found = np.einsum("pagl,lpab,pbhl->pgahb", root, own, root)
        return found.reshape(m, k * width, k * width)


def _turn(by: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column, (graphs, columns, chains), by its own matrix."""
    return np.asarray((by @ values.transpose(1, 0, 2)).transpose(1, 0, 2))


def _over_graphs(covariance: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Of each column of pairs of one width, (pairs, width, graphs, graphs)."""
    m, k = len(covariance), covariance.shape[1] // width
    return np.einsum("pgaha->pagh", covariance.reshape(m, k, width, k, width))


def _products(variances: NDArray[np.float64], pairs: PairColumns) -> float:
    """The share that products of errors add to variances, (graphs, columns), on average."""
    return float(_PRODUCTS * _n_columns(pairs) * np.median(variances))


def _n_columns(pairs: PairColumns) -> int:
    """Of all nodes."""
    return int(pairs.second[-1]) + 1


def _covariance_of_correlations(partial: NDArray[np.float64], pairs: PairColumns) -> NDArray[np.float64]:
    """Of partial correlations of all pairs, (columns, columns), times the number of rows.

    What all others leave of nodes has minus the partial correlations as correlations, and estimates of the
    former are as those of correlations of what is left.
    """
    j, k = pairs.first, pairs.second
    left = np.eye(_n_columns(pairs))
    left[j, k] = left[k, j] = -partial
    least = np.linalg.eigvalsh(left)[0]
    if least < _LEAST_EIGENVALUE:
        share = (1 - _LEAST_EIGENVALUE) / (1 - least)
        left = share * left + (1 - share) * np.eye(len(left))
    one, other = left[j, k][:, None], left[j, k]
    jj, jk, kj, kk = (left[np.ix_(a, b)] for a, b in ((j, j), (j, k), (k, j), (k, k)))
    squares = jj**2 + jk**2 + kj**2 + kk**2
    triples = one * (jj * jk + kj * kk) + other * (jj * kj + jk * kk)
    return np.asarray(one * other * squares / 2 + jj * kk + jk * kj - triples)


def _n_nodes(n_pairs: int) -> int:
    return (1 + isqrt(1 + 8 * n_pairs)) // 2
