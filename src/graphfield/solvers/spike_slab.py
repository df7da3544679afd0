"""Linear regressions of all nodes at once with spike-and-slab priors, by Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

# Of the residual variance in standard units: 1 / sigma^2 ~ Gamma(shape, rate). Weak; it keeps copies of
# nodes apart from a variance of zero.
VARIANCE_PRIOR = (0.5, 0.005)
# Of the slab's variance where it is learned: scaled inverse chi-square, so that a coefficient that is there
# is Student's t with so many degrees of freedom, in units of TYPICAL residual standard deviations.
FREEDOM, TYPICAL = 4.0, 0.3
# Sweeps after which rounding errors of the residual products are removed.
_RENEW = 50
_TINY = 1e-300
# Coefficients of a regression that are there at the start of a chain, about.
_AT_FIRST = 5


@dataclass(frozen=True)
class Prior:
    """Of the coefficients ``b = 0`` or, with probability pi, ``b ~ N(0, sigma_j^2 slab^2)``.

    ``inclusion`` is pi, or (a, b) where each node has, for each feature of z, a ``pi ~ Beta(a, b)``.
    ``slab`` is None where its square is learned, likewise.
    """

    inclusion: float | tuple[float, float] = (1.0, 4.0)
    slab: float | None = None

    @property
    def start(self) -> float:
        """The probability of a coefficient before any data."""
        return (
            self.inclusion if isinstance(self.inclusion, float) else self.inclusion[0] / sum(self.inclusion)
        )


@dataclass(frozen=True, eq=False)
class Products:
    """All that Gaussian regressions of p responses on the columns W_w x_k, k != j, know of the rows."""

    gram: NDArray[np.float64]  # (m p, m p), of the columns; column w p + k is W_w x_k
    targets: NDArray[np.float64]  # (p, m p), of responses and columns
    squares: NDArray[np.float64]  # (p,), of responses
    n_rows: float

    @property
    def n_nodes(self) -> int:
        return len(self.targets)

    @property
    def n_features(self) -> int:
        return len(self.gram) // self.n_nodes

    @classmethod
    def of(cls, gram: NDArray, n_nodes: int, n_rows: float) -> Products:
        """Of nodes on each other: W_0 = 1, so the first p columns are the nodes themselves."""
        return cls(gram, gram[:, :n_nodes].T, np.diag(gram)[:n_nodes], n_rows)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Of the regressions; ``[j, k]`` is of node k in the regression of node j.

    ``present`` are shares of sweeps in which a coefficient is there, for halves of chains: of any feature
    (last), and of each covariate.
    """

    mean: NDArray[np.float64]  # (m, p, p)
    draws: NDArray[np.float32]  # (s, m, p, p)
    scales: NDArray[np.float64]  # (s, p), residual standard deviations of the same sweeps
    present: NDArray[np.float64]  # (halves, covariates + 1, p, p)
    rhat: NDArray[np.float64]  # (p,), of the logarithms of residual standard deviations


def sample_posterior(
    products: Products,
    prior: Prior,
    covariate: NDArray[np.intp],
    *,
    n_sweeps: int,
    n_chains: int,
    n_draws: int,
    rng: np.random.Generator,
) -> Posterior:
    """Chains from starts that differ; the first half of each is forgotten.

    ``covariate`` (m,), in rising order, says which features of z belong together. ``n_draws`` sweeps are
    kept, as many of each chain.
    """
    p, m = products.n_nodes, products.n_features
    chains = _Chains(products, prior, n_chains, rng)
    first = n_sweeps // 2
    n_kept = n_sweeps - first
    starts = np.flatnonzero(np.diff(covariate, prepend=-1))
    present = np.zeros((2, len(starts) + 1, n_chains, p, p))
    of_half = np.array([(n_kept + 1) // 2, n_kept // 2])
    wanted = np.unique(np.linspace(0, n_kept - 1, -(-n_draws // n_chains)).round().astype(int))
    log_scales, kept = np.empty((n_kept, n_chains * p)), []
    for sweep in range(n_sweeps):
        at = sweep - first
        chains.sweep(rng, keep=at >= 0)
        if at < 0:
            continue
        there = (chains.B != 0).reshape(n_chains, p, m, p)
        half = present[int(at >= of_half[0])]
        half[:-1] += np.logical_or.reduceat(there, starts, axis=2).transpose(2, 0, 1, 3)
        half[-1] += there.any(axis=2)
        log_scales[at] = np.log(chains.variance) / 2
        if at in wanted:
            kept.append((chains.B.astype(np.float32), np.sqrt(chains.variance)))
    mean = chains.total.reshape(m, p, n_chains, p).mean(axis=2).transpose(0, 2, 1) / n_kept
    draws, scales = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    shares = present / np.maximum(of_half, 1)[:, None, None, None, None]
    return Posterior(
        mean,
        draws.reshape(-1, p, m, p).transpose(0, 2, 1, 3),
        scales.reshape(-1, p),
        shares.transpose(0, 2, 1, 3, 4).reshape(2 * n_chains, len(starts) + 1, p, p),
        split_rhat(log_scales.reshape(n_kept, n_chains, p)),
    )


class _Chains:
    """States of all chains: rows are nodes of the first chain, then of the second, and so on.

    Both directions of a pair get the same noise: each regression is sampled as it would be alone, and draws
    of two regressions, which see the same rows, move together as the two estimates do.
    """

    def __init__(self, products: Products, prior: Prior, n_chains: int, rng: np.random.Generator) -> None:
        p, m = products.n_nodes, products.n_features
        self.products, self.prior, self.n_chains = products, prior, n_chains
        self.targets, self.squares = (
            np.tile(products.targets, (n_chains, 1)),
            np.tile(products.squares, n_chains),
        )
        shape = (n_chains * p, m * p)
        slab = TYPICAL if prior.slab is None else prior.slab
        few = min(prior.start, _AT_FIRST / shape[1])  # a chain from a full graph takes long to empty it
        self.B = np.where(rng.random(shape) < few, slab * rng.normal(size=shape), 0.0)
        for k in range(p):
            self.B[k::p, k::p] = 0.0
        self.variance = np.full(shape[0], np.clip(products.squares / products.n_rows, 1e-6, None).mean())
        self.slab_precision = np.full((m, shape[0]), slab**-2.0)
        fixed = isinstance(prior.inclusion, float)
        self.log_odds = np.full((m, shape[0]), logit(prior.inclusion if fixed else few))
        self.total = np.zeros(shape[::-1])  # of expected coefficients, given all others
        self.n_sweeps = 0

    def sweep(self, rng: np.random.Generator, *, keep: bool) -> None:
        """Every coefficient given all others, in random order, then what they depend on."""
        if self.n_sweeps % _RENEW == 0:
            self.left = self.targets - self.B @ self.products.gram  # products of columns and residuals
        self.n_sweeps += 1
        p, gram = self.products.n_nodes, self.products.gram
        diagonal = np.diag(gram)
        precision = np.repeat(self.slab_precision, p, axis=0)
        shrink = 1 / (diagonal[:, None] + precision)
        gain = shrink / (2 * self.variance)
        log_odds = np.repeat(self.log_odds, p, axis=0) + 0.5 * np.log(precision * shrink)
        for k in range(p):
            log_odds[k::p, k::p] = -np.inf  # no node is in its own regression
        normal, logistic = self._draw_noise(rng)
        noise, bar = np.sqrt(self.variance * shrink) * normal, logistic - log_odds
        products = np.empty_like(noise)  # of columns and what all others leave
        for c in rng.permutation(len(gram)):
            own, product = self.B[:, c], products[c]
            np.multiply(own, diagonal[c], out=product)
            product += self.left[:, c]
            new = product * shrink[c]
            new += noise[c]
            new *= product * product * gain[c] > bar[c]
            step = new - own
            self.B[:, c] = new
            moved = np.flatnonzero(step)
            if len(moved):
                self.left[moved] -= step[moved, None] * gram[c]
        if keep:
            self.total += expit(log_odds + products**2 * gain) * products * shrink
        self._draw_variances(rng)
        self._draw_prior(rng)

    def _draw_noise(self, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
        """Normal and logistic, (m p, rows), the same for both directions of a pair."""
        p, m = self.products.n_nodes, self.products.n_features
        shape = (m, self.n_chains, p, p)
        return tuple(  # type: ignore[return-value]
            _mirror(draw(size=shape)).transpose(0, 3, 1, 2).reshape(m * p, -1)
            for draw in (rng.normal, rng.logistic)
        )

    def _draw_variances(self, rng: np.random.Generator) -> None:
        squares = self._by_feature(self.B**2)
        error = self.squares - (self.B * (self.targets + self.left)).sum(axis=1)
        shape, rate = VARIANCE_PRIOR
        shape = shape + (self.products.n_rows + (self.B != 0).sum(axis=1)) / 2
        rate = rate + (np.maximum(error, 0) + (squares * self.slab_precision).sum(axis=0)) / 2
        self.variance = rate / rng.gamma(shape)

    def _draw_prior(self, rng: np.random.Generator) -> None:
        there = self._by_feature(self.B != 0)
        if not isinstance(self.prior.inclusion, float):
            a, b = self.prior.inclusion
            yes = rng.gamma(a + there)
            no = rng.gamma(b + self.products.n_nodes - 1 - there)
            self.log_odds = np.log(np.maximum(yes, _TINY)) - np.log(np.maximum(no, _TINY))
        if self.prior.slab is None:
            rate = FREEDOM * TYPICAL**2 + self._by_feature(self.B**2) / self.variance
            self.slab_precision = rng.gamma((FREEDOM + there) / 2) * 2 / rate

    def _by_feature(self, values: NDArray) -> NDArray:
        """Sums over the nodes of a regression, (m, rows)."""
        p = self.products.n_nodes
        return np.asarray(values.reshape(len(values), -1, p).sum(axis=2).T)


def _mirror(values: NDArray) -> NDArray:
    upper = np.triu(values)
    return upper + np.triu(values, 1).swapaxes(-1, -2)


def split_rhat(values: NDArray) -> NDArray[np.float64]:
    """Split R-hat (Gelman et al. 2013) over the first axis of chains (sweeps, chains, ...).

    >>> rng = np.random.default_rng(0)
    >>> bool(split_rhat(rng.normal(size=(400, 4, 1)))[0] < 1.02)
    True
    >>> bool(split_rhat(rng.normal(size=(400, 4, 1)) + np.arange(4)[:, None])[0] > 1.5)
    True
    """
    n = len(values) // 2
    halves = np.concatenate([values[:n], values[-n:]], axis=1)
    within = halves.var(axis=0, ddof=1).mean(axis=0)
    between = halves.mean(axis=0).var(axis=0, ddof=1)
    ratio = between / np.where(within > 0, within, 1.0)
    return np.asarray(np.sqrt((n - 1) / n + ratio), dtype=np.float64)
