"""Node values without what the covariates do to each node alone: its mean and its scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.data.marginals import normal_scores

_MAX_ROUNDS, _PRECISION = 30, 1e-3


def cleaned_nodes(X: NDArray[np.floating], columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Normal scores of ``(x_j - mu_j(z)) / s_j(z)``, standardised.

    If partial correlations are the same at every z, these values have the same correlations at every z,
    however means and variances move. Normal scores keep a few wild values from deciding.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    columns : ndarray of shape (n, m)
        Functions of z that mean and logarithm of the scale are linear in; orthogonal, with mean square
        one, the first constant.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = np.sign(np.arange(1_000) - 499.5)
    >>> X = 3 * z[:, None] + rng.normal(size=(1_000, 2)) * np.exp(z)[:, None]
    >>> values = cleaned_nodes(X, np.column_stack([np.ones(1_000), z]))
    >>> bool(abs(values[z > 0].std() - values[z < 0].std()) < 0.1)
    True
    """

    def fitted(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return columns @ (columns.T @ values / len(columns))

    centred = X - fitted(X.astype(np.float64))
    centred /= _scale(centred)
    sizes = np.abs(centred)
    log_scale = np.zeros_like(sizes) + np.log(sizes.mean(axis=0))
    for _ in range(_MAX_ROUNDS):  # E|x| = exp(columns @ b), by Fisher scoring as in a gamma regression
        step = np.clip(fitted(sizes / np.exp(log_scale) - 1), -1, 1)
        log_scale = np.clip(log_scale + step, -10, 10)
        if np.abs(step).max() < _PRECISION:
            break
    scores = normal_scores(centred / np.exp(log_scale))
    return (scores - scores.mean(axis=0)) / _scale(scores)


def _scale(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations; one for a node of which the covariates leave nothing."""
    spread = values.std(axis=0)
    return np.where(spread > 1e-12, spread, 1.0)
