"""Node values without what the covariates do to each node alone: its mean and its scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.data.marginals import normal_scores

_MAX_ROUNDS, _PRECISION = 30, 1e-3  # of the scale that is fitted


@dataclass(frozen=True)
class CleanedNodes:
    """Normal scores of ``(x_j - mu_j(z)) / s_j(z)``, standardised, (n, p).

    ``mean_shares`` and ``scale_shares``, (p,), say how much of what was fitted was taken away: about
    nothing where mean or scale of a node do not move more than by chance, all where they clearly do.
    """

    values: NDArray[np.float64]
    mean_shares: NDArray[np.float64]
    scale_shares: NDArray[np.float64]

    def again(self, values: NDArray[np.float32], columns: NDArray[np.float32]) -> NDArray[np.float32]:
        """These values, cleaned by other columns as much as they were by theirs."""
        mean = values.mean(axis=0) + _slopes(values, columns, self.mean_shares)
        centred = values - mean
        sizes = np.abs(centred)
        return centred / np.exp(_slopes(sizes / sizes.mean(axis=0), columns, self.scale_shares))


def cleaned_nodes(
    X: NDArray[np.floating], columns: NDArray[np.float64], starts: NDArray[np.intp]
) -> CleanedNodes:
    """Take a mean and a scale that move with z away from each node.

    If partial correlations are the same at every z, what is left has the same correlations at every z,
    however means and variances move. Normal scores keep a few wild values from deciding.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    columns : ndarray of shape (n, m)
        Functions of z that mean and logarithm of the scale are linear in, beside a constant; uncorrelated,
        with mean zero and mean square one.
    starts : ndarray of int
        Where each stretch of rows begins that may go together by chance: a subject, some days, one row.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = np.sign(np.arange(1_000) - 499.5)
    >>> X = 3 * z[:, None] + rng.normal(size=(1_000, 2)) * np.exp(z)[:, None]
    >>> values = cleaned_nodes(X, z[:, None], np.arange(1_000)).values
    >>> bool(abs(values[z > 0].std() - values[z < 0].std()) < 0.1)
    True
    """
    everything = np.ones(X.shape[1])
    standard = (X - X.mean(axis=0, dtype=np.float64)) / _scale(X)
    mean = _slopes(standard, columns, everything)
    mean_shares = _shares(mean, standard - mean, columns, starts)
    standard -= mean_shares * mean
    standard /= _scale(standard)
    log_scale, scale_shares = _log_scale(standard, columns, starts)
    scores = normal_scores(standard / np.exp(scale_shares * log_scale))
    return CleanedNodes((scores - scores.mean(axis=0)) / _scale(scores), mean_shares, scale_shares)


def _log_scale(
    values: NDArray[np.float64], columns: NDArray[np.float64], starts: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """E|x| = exp(constant + columns @ b), by Fisher scoring as in a gamma regression."""
    everything = np.ones(values.shape[1])
    sizes = np.maximum(np.abs(values), 1e-12)
    log_scale = np.zeros_like(sizes)
    for _ in range(_MAX_ROUNDS):
        ratio = sizes / np.exp(log_scale)
        step = np.clip(_slopes(ratio / ratio.mean(axis=0), columns, everything), -1, 1)
        log_scale = np.clip(log_scale + step, -30, 30)
        if np.abs(step).max(initial=0) < _PRECISION:
            break
    ratio = sizes / np.exp(log_scale)
    return log_scale, _shares(log_scale, ratio / ratio.mean(axis=0) - 1, columns, starts)


def _slopes(values: NDArray, columns: NDArray, shares: NDArray) -> NDArray:
    """What the columns explain of each node, times its share, in the precision of the values."""
    slopes = columns.T @ values / values.dtype.type(len(values))
    return columns @ (slopes * shares.astype(values.dtype))


def _shares(
    fitted: NDArray[np.float64],
    left: NDArray[np.float64],
    columns: NDArray[np.float64],
    starts: NDArray[np.intp],
) -> NDArray[np.float64]:
    """How much to believe of a fit: the positive part of James and Stein's estimator, node by node."""
    chance = np.zeros(left.shape[1])
    for column in columns.T:
        chance += np.square(np.add.reduceat(column[:, None] * left, starts, axis=0)).sum(axis=0)
    found = np.square(fitted).mean(axis=0)
    return np.clip(1 - chance / len(left) ** 2 / np.maximum(found, 1e-30), 0, 1)


def _scale(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Standard deviations; one for a node of which the covariates leave nothing."""
    spread = values.std(axis=0, dtype=np.float64)
    return np.where(spread > 1e-12, spread, 1.0)
