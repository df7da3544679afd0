"""Families of distributions of a node given the others, in their natural parameters.

A node with sufficient statistics f (its columns) has, given eta, the density h(f) exp(eta . f - A(eta)). Its
mean is the gradient of A, its variance the Hessian, and ``loss`` is half its deviance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax, xlogy

Array = NDArray[np.float64]
# A share of rows is never taken for 0 or 1: of a level that is there in one row of a million.
_LEAST_SHARE = 1e-6
# What a share or a count that was fitted by least squares is at least, as a part of that of all rows.
_LEAST_PART = 0.1


class Family(Protocol):
    """Of one node, or of several alike where ``elementwise``; arrays are (n, columns)."""

    @property
    def elementwise(self) -> bool: ...
    def columns(self, codes: Array) -> Array: ...
    def null(self, mean: Array) -> Array:
        """eta where the mean is this."""

    def bounded(self, mean: Array, center: Array) -> Array:
        """Means that were fitted by least squares, within what can be; ``center`` is the mean of all rows."""

    def mean(self, eta: Array) -> Array: ...
    def slopes(self, eta: Array) -> Array:
        """Derivatives of the mean, averaged over rows, (columns, columns)."""

    def variances(self, eta: Array) -> Array:
        """Derivatives of the mean at each row, (n, columns), or matrices (n, columns, columns)."""

    def loss(self, eta: Array, f: Array) -> Array:
        """(n,), or (n, columns) where ``elementwise``."""


@dataclass(frozen=True)
class Gaussian:
    """Numbers; ``center`` and ``variance`` (columns,) are those of the training rows, where eta is 0."""

    center: Array
    variance: Array
    elementwise: bool = True

    def columns(self, codes: Array) -> Array:
        return codes

    def null(self, mean: Array) -> Array:
        return (mean - self.center) / self.variance

    def bounded(self, mean: Array, center: Array) -> Array:  # noqa: ARG002
        return mean

    def mean(self, eta: Array) -> Array:
        return self.center + self.variance * eta

    def slopes(self, eta: Array) -> Array:  # noqa: ARG002
        return np.diag(self.variance)

    def variances(self, eta: Array) -> Array:
        return np.broadcast_to(self.variance, eta.shape)

    def loss(self, eta: Array, f: Array) -> Array:
        return np.square(f - self.mean(eta)) / (2 * self.variance)


@dataclass(frozen=True)
class Binary:
    """0 or 1."""

    elementwise: bool = True

    def columns(self, codes: Array) -> Array:
        return codes

    def null(self, mean: Array) -> Array:
        share = np.clip(mean, _LEAST_SHARE, 1 - _LEAST_SHARE)
        return np.log(share) - np.log1p(-share)

    def bounded(self, mean: Array, center: Array) -> Array:
        return np.clip(mean, _LEAST_PART * center, 1 - _LEAST_PART * (1 - center))

    def mean(self, eta: Array) -> Array:
        return np.asarray(expit(eta))

    def slopes(self, eta: Array) -> Array:
        return np.diag(self.variances(eta).mean(axis=0))

    def variances(self, eta: Array) -> Array:
        mean = self.mean(eta)
        return mean * (1 - mean)

    def loss(self, eta: Array, f: Array) -> Array:
        return np.logaddexp(0.0, eta) - f * eta


@dataclass(frozen=True)
class Count:
    """Poisson; means stop at ten times the largest count of the training rows, ``most`` (columns,)."""

    most: Array
    elementwise: bool = True

    def columns(self, codes: Array) -> Array:
        return codes

    def null(self, mean: Array) -> Array:
        return np.log(np.maximum(mean, _LEAST_SHARE))

    def bounded(self, mean: Array, center: Array) -> Array:
        return np.maximum(mean, _LEAST_PART * center)

    def mean(self, eta: Array) -> Array:
        return np.exp(self.log_mean(eta))

    def slopes(self, eta: Array) -> Array:
        return np.diag(self.mean(eta).mean(axis=0))

    def variances(self, eta: Array) -> Array:
        return self.mean(eta)

    def loss(self, eta: Array, f: Array) -> Array:
        # Beyond the bound it goes on as a line, so that there is no valley there.
        bounded = self.log_mean(eta)
        mean, f = np.exp(bounded), np.maximum(f, 0.0)  # which rounding may have put below zero
        return mean * (1 + eta - bounded) - f * eta + xlogy(f, f) - f

    def log_mean(self, eta: Array) -> Array:
        return np.minimum(eta, np.log(10 * (self.most + 1)))


@dataclass(frozen=True)
class Categorical:
    """One node with levels 0, 1, ...: multinomial, in orthonormal contrasts, so that no level is special."""

    n_levels: int
    elementwise: bool = False

    def columns(self, codes: Array) -> Array:
        return contrasts(self.n_levels)[codes[:, 0].astype(np.intp)]

    def null(self, mean: Array) -> Array:
        shares = np.maximum(self._shares_at(mean), _LEAST_SHARE)
        return np.log(shares) @ contrasts(self.n_levels)

    def bounded(self, mean: Array, center: Array) -> Array:
        shares = np.maximum(self._shares_at(mean), _LEAST_PART * self._shares_at(center))
        return (shares / shares.sum(axis=-1, keepdims=True)) @ contrasts(self.n_levels)

    def _shares_at(self, mean: Array) -> Array:
        return 1 / self.n_levels + mean @ contrasts(self.n_levels).T

    def shares(self, eta: Array) -> Array:
        """Probability of each level, (n, levels)."""
        return np.asarray(softmax(eta @ contrasts(self.n_levels).T, axis=1))

    def mean(self, eta: Array) -> Array:
        return self.shares(eta) @ contrasts(self.n_levels)

    def slopes(self, eta: Array) -> Array:
        shares, C = self.shares(eta), contrasts(self.n_levels)
        mean = shares @ C
        return (C.T * shares.mean(axis=0)) @ C - mean.T @ mean / len(mean)

    def variances(self, eta: Array) -> Array:
        shares, C = self.shares(eta), contrasts(self.n_levels)
        mean = shares @ C
        return np.einsum("nl,la,lb->nab", shares, C, C, optimize=True) - mean[:, :, None] * mean[:, None]

    def loss(self, eta: Array, f: Array) -> Array:
        odds = eta @ contrasts(self.n_levels).T
        most = odds.max(axis=1)
        whole = most + np.log(np.exp(odds - most[:, None]).sum(axis=1))
        # f is a row of the contrasts, whose product with eta is the level's own entry of odds.
        return whole - np.einsum("nc,nc->n", eta, f)


def ordered_shares(shares: Array, mean: Array, scale: Array) -> Array:
    """Probabilities of levels 0, 1, ... given the others, (n, levels), where codes are taken as numbers.

    ``shares`` are those of the levels in all rows; ``mean`` and ``scale`` (n,) are what the others say of the
    codes. A level has its share times the normal density that it has given the others, over that which it
    has without them: the odds of neighbouring levels (adjacent categories) are linear in ``mean``.

    >>> ordered_shares(np.array([0.25, 0.5, 0.25]), np.array([1.0, 1.5]), np.full(2, 0.5)).round(3).tolist()
    [[0.134, 0.731, 0.134], [0.01, 0.419, 0.57]]
    """
    levels = np.arange(len(shares))
    center = shares @ levels
    whole = np.square(levels - center) / (shares @ np.square(levels - center))
    left = np.square((levels - mean[:, None]) / scale[:, None])
    return np.asarray(softmax(np.log(shares) - left / 2 + whole / 2, axis=1))


def contrasts(n_levels: int) -> Array:
    """Orthonormal columns that sum to zero (Helmert), (levels, levels - 1).

    >>> contrasts(2).round(3).tolist()
    [[-0.707], [0.707]]
    """
    C = np.zeros((n_levels, n_levels - 1))
    for k in range(1, n_levels):
        C[:k, k - 1], C[k, k - 1] = -1.0, k
        C[:, k - 1] /= np.sqrt(k * (k + 1))
    return C
