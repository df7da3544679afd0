"""Which pairs differ between graphs, where most pairs have no edge in any of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import isqrt

import numpy as np
from numpy.typing import NDArray

# Pairs that are thought of beforehand: without an edge, with the same edge (weak, strong), with edges of
# their own. They keep few pairs from making differences up.
_BEFOREHAND, _AT_FIRST = (5.0, 2.5, 2.5, 3.0), (0.6, 0.1, 0.1, 0.2)
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


def q_values_of_differences(
    estimates: NDArray[np.float64],
    covariance: NDArray[np.float64],
    p_values: NDArray[np.float64],
    *,
    dependent: bool = False,
) -> NDArray[np.float64]:
    """The false discovery rate among pairs that differ at least as clearly as each.

    A pair without an edge in any graph and a pair with the same edge in all do not differ; one whose edge
    is there in some graphs only does. With f an edge (normal, mean zero), the truth of two graphs is one of

        0, 0    f, f    f, 0    0, f    f, f'

    How many pairs are of each kind, and how large edges are, is learned from all pairs. Estimates are normal
    around the truth. Those of different pairs of one graph go together as correlations of Gaussian variables
    do (Pearson and Filon, 1898), so what is known to be zero makes its neighbours clearer: this is where most
    is gained over p-values. A pair's chance not to differ comes from draws of all pairs given the data (Gibbs
    sampling), and the mean of these chances over pairs that are as clear is the rate (local false discovery
    rate, Efron et al., 2001). No rate is below the pair's own p-value: neighbours alone prove nothing.

    Estimates are (graphs, pairs), their covariance (pairs, graphs, graphs); p-values say that a pair is the
    same in all graphs. Where graphs share subjects (``dependent``), pairs are taken as independent of each
    other.
    """
    order = np.argsort(estimates.sum(axis=1))  # draws do not depend on which graph is named first
    same = _chance_of_same(estimates[order], covariance[:, order][:, :, order], dependent)
    order = np.argsort(same, kind="stable")
    rates = np.empty(len(same))
    rates[order] = np.cumsum(same[order]) / np.arange(1, len(same) + 1)
    return np.minimum(np.maximum(rates, p_values), 1.0)


@dataclass(frozen=True)
class _Kinds:
    """Of pairs: covariances of the truth over graphs are ``same * shared + other * diag(own)``."""

    shared: NDArray[np.float64]  # (kinds,)
    own: NDArray[np.float64]  # (kinds, graphs)
    beforehand: NDArray[np.float64]
    at_first: NDArray[np.float64]

    @classmethod
    def of(cls, n_graphs: int) -> _Kinds:
        sizes = range(1, n_graphs + 1) if n_graphs <= 3 else (1, n_graphs - 1, n_graphs)
        chosen = [which for size in sizes for which in combinations(range(n_graphs), size)]
        own = np.zeros((3 + len(chosen), n_graphs))
        for row, which in zip(own[3:], chosen, strict=True):
            row[list(which)] = 1.0
        counts = [
            np.append(three[:3], np.full(len(chosen), three[3] / len(chosen)))
            for three in (_BEFOREHAND, _AT_FIRST)
        ]
        return cls(np.append([0, _WEAK, 1.0], np.zeros(len(chosen))), own, counts[0], counts[1])

    def roots(self, same: float, other: float) -> NDArray[np.float64]:
        """Of the covariances, (kinds, graphs, graphs)."""
        found = np.sqrt(other) * self.own[:, :, None] * np.eye(self.own.shape[1])
        found[1:3, :, 0] = np.sqrt(same * self.shared[1:3, None])
        return found


def _chance_of_same(
    estimates: NDArray[np.float64], covariance: NDArray[np.float64], dependent: bool
) -> NDArray[np.float64]:
    """By draws from a fixed seed."""
    rng, kinds = np.random.default_rng(0), _Kinds.of(len(estimates))
    apart = dependent or estimates.shape[1] > _MOST_TOGETHER
    draws = _Draws(estimates, covariance, together=not apart)
    weights, same, other, total = kinds.at_first, _START, _START, np.zeros(estimates.shape[1])
    for number in range(_FORGOTTEN + _ROUNDS):
        roots = kinds.roots(same, other)
        chances, kind = draws.sweep(rng, weights, roots)
        if number >= _FORGOTTEN:
            total += chances[:, :3].sum(axis=1)
        weights = (chances.sum(axis=0) + kinds.beforehand) / (len(chances) + kinds.beforehand.sum())
        shared, own = kinds.shared[kind], kinds.own[kind].transpose(2, 0, 1)
        squares = np.square(draws.truth)
        same = _variance((squares[0] / np.where(shared > 0, shared, 1))[shared > 0])
        other = _variance(squares[own > 0])
    return total / _ROUNDS


def _variance(squares: NDArray[np.float64]) -> float:
    """Over all chains; some pairs are thought of beforehand."""
    total, count = squares.sum() / _CHAINS + _STARTS * _START, len(squares) / _CHAINS + _STARTS
    return float(np.clip(total / count, _LEAST, _MOST))


class _Draws:
    """The truth of all pairs in some chains, (graphs, pairs, chains), and how to draw it again."""

    def __init__(
        self, estimates: NDArray[np.float64], covariance: NDArray[np.float64], together: bool
    ) -> None:
        variances = np.maximum(np.einsum("pgg->gp", covariance), 1e-20)
        self.estimates = estimates
        # Clear ones are nearly themselves, others nearly zero.
        first = estimates * np.maximum(0, 1 - 2 * variances / np.maximum(np.square(estimates), 1e-20))
        self.precision = _precisions(first, variances) if together else None
        if self.precision is None:
            self.noise = (1 + _products(variances)) * covariance
        else:
            self.noise = np.einsum("gp,gh->pgh", 1 / np.einsum("gpp->gp", self.precision), np.eye(len(first)))
        self.noise_root = np.linalg.cholesky(self.noise + 1e-15 * np.eye(len(first)))
        self.truth = np.repeat(first[:, :, None], _CHAINS, axis=2)
        # What the errors of all pairs pull at each, (graphs, pairs, chains).
        self.pull = None if self.precision is None else self.precision @ (self.truth - estimates[:, :, None])

    def sweep(
        self, rng: np.random.Generator, weights: NDArray[np.float64], roots: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Draw each pair given the others: chances of kinds, (pairs, kinds), and kinds, (pairs, chains)."""
        k, m = self.estimates.shape
        spread = roots @ roots.transpose(0, 2, 1)
        inverse = np.linalg.inv(self.noise[:, None] + spread)
        constant = np.log(weights) + np.linalg.slogdet(inverse)[1] / 2
        gain, kinds, chances = spread @ inverse, np.empty((m, _CHAINS), np.intp), np.empty((m, len(weights)))
        noise, uniform = rng.normal(size=(m, 2, _CHAINS, k, 1)), rng.random((m, _CHAINS))
        for pair in rng.permutation(m):
            seen = self._seen(pair)  # (graphs, chains), what data and the other pairs say of this one
            sizes = constant[pair][:, None] - ((inverse[pair] @ seen) * seen).sum(axis=1) / 2
            chance = np.exp(sizes - sizes.max(axis=0))
            chance /= chance.sum(axis=0)
            kind = np.minimum((chance.cumsum(axis=0) < uniform[pair]).sum(axis=0), len(weights) - 1)
            drawn = roots[kind] @ noise[pair, 0]
            off = seen.T[:, :, None] - drawn - self.noise_root[pair] @ noise[pair, 1]
            self._set(pair, (drawn + gain[pair][kind] @ off)[:, :, 0].T)
            kinds[pair], chances[pair] = kind, chance.mean(axis=1)
        return chances, kinds

    def _seen(self, pair: int) -> NDArray[np.float64]:
        if self.precision is None or self.pull is None:
            return np.repeat(self.estimates[:, [pair]], _CHAINS, axis=1)
        return self.truth[:, pair] - self.pull[:, pair] / self.precision[:, pair, pair][:, None]

    def _set(self, pair: int, new: NDArray[np.float64]) -> None:
        if self.precision is not None:
            self.pull += self.precision[:, :, pair, None] * (new - self.truth[:, pair])[:, None, :]
        self.truth[:, pair] = new


def _products(variances: NDArray[np.float64]) -> float:
    """The share that products of errors add to variances, (graphs, pairs), on average."""
    return float(_PRODUCTS * _n_nodes(variances.shape[1]) * np.median(variances))


def _precisions(first: NDArray[np.float64], variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inverse covariances of the estimates of all pairs, graph by graph, (graphs, pairs, pairs)."""
    found = np.empty((*first.shape, first.shape[1]))
    for own, partial, variance in zip(found, first, variances, strict=True):
        together = _covariance_of_correlations(partial)
        unit = np.sqrt(variance / np.diag(together))
        own[:] = together * unit * unit[:, None]
        own[np.diag_indices(len(own))] += _products(variance[None]) * variance
        own[:] = np.linalg.inv(own)
    return found


def _covariance_of_correlations(partial: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of partial correlations of all pairs, (pairs, pairs), times the number of rows.

    What all others leave of nodes has minus the partial correlations as correlations, and estimates of the
    former are as those of correlations of what is left.
    """
    p = _n_nodes(len(partial))
    j, k = np.triu_indices(p, 1)
    left = np.eye(p)
    left[j, k] = left[k, j] = -partial
    least = np.linalg.eigvalsh(left)[0]
    if least < _LEAST_EIGENVALUE:
        share = (1 - _LEAST_EIGENVALUE) / (1 - least)
        left = share * left + (1 - share) * np.eye(p)
    one, other = left[j, k][:, None], left[j, k]
    jj, jk, kj, kk = (left[np.ix_(a, b)] for a, b in ((j, j), (j, k), (k, j), (k, k)))
    squares = jj**2 + jk**2 + kj**2 + kk**2
    triples = one * (jj * jk + kj * kk) + other * (jj * kj + jk * kk)
    return np.asarray(one * other * squares / 2 + jj * kk + jk * kj - triples)


def _n_nodes(n_pairs: int) -> int:
    return (1 + isqrt(1 + 8 * n_pairs)) // 2
