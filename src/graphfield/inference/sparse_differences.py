"""Which pairs differ between two graphs, where most pairs have no edge in either of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Pairs that are thought of beforehand: without an edge, with the same edge (weak, strong), with an edge in
# one graph alone (two kinds), with different edges. The former keep few pairs from making differences up.
_BEFOREHAND = np.array([5.0, 2.5, 2.5, 1.0, 1.0, 1.0])
_AT_FIRST = np.array([0.6, 0.1, 0.1, 0.07, 0.07, 0.06])
# Variances of the same edges are this, or one, times the mean one: many are weak.
_WEAK = 0.1
_LEAST, _MOST, _START, _ROUNDS = 0.005, 0.3, 0.04, 80


def q_values_of_differences(
    estimates: NDArray[np.float64], covariance: NDArray[np.float64], p_values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The false discovery rate among pairs that differ at least as clearly as each.

    A pair without an edge in either graph and a pair with the same edge in both do not differ; one whose edge
    is there in one graph only does. With f an edge (normal, mean zero), estimates are distributed as one of

        0, 0    f, f    f, 0    0, f    f, f'

    plus their errors. How many pairs are of each kind, and how large edges are, is learned from all pairs
    (EM); a pair's chance not to differ follows (local false discovery rate, Efron et al., 2001), and the mean
    of these over pairs that are as clear is the rate. What is gained over p-values comes from the zeros: an
    edge that is clear in one graph and absent in the other speaks louder than its difference. But mixtures of
    few pairs are rough, so no rate is below twice the pair's own p-value.

    Parameters
    ----------
    estimates : ndarray of shape (2, pairs)
    covariance : ndarray of shape (pairs, 2, 2)
    p_values : ndarray of shape (pairs,)
        Of the differences.
    """
    same = _chance_of_same(estimates, covariance)
    order = np.argsort(same, kind="stable")
    rates = np.empty(len(same))
    rates[order] = np.cumsum(same[order]) / np.arange(1, len(same) + 1)
    return np.minimum(np.maximum(rates, 2 * p_values), 1.0)


def _chance_of_same(estimates: NDArray[np.float64], covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    first, second, both = covariance[:, 0, 0], covariance[:, 1, 1], covariance[:, 0, 1]
    a, b = estimates
    weights, same, other = _AT_FIRST, _START, _START
    for _ in range(_ROUNDS):
        kinds = [(0, 0, 0), *((size, size, size) for size in (_WEAK * same, same))]
        kinds += [(other, 0, 0), (0, other, 0), (other, other, 0)]
        chances = weights[:, None] * np.stack(
            [_density(a, b, first + s, second + t, both + shared) for s, t, shared in kinds]
        )
        chances /= np.maximum(chances.sum(axis=0), 1e-300)
        weights = (chances.sum(axis=1) + _BEFOREHAND) / (len(a) + _BEFOREHAND.sum())
        same = _variance(
            (chances[1] + chances[2]) @ (a * b - both), _WEAK * chances[1].sum() + chances[2].sum()
        )
        own, theirs = chances[3] + chances[5], chances[4] + chances[5]
        other = _variance(own @ (a**2 - first) + theirs @ (b**2 - second), own.sum() + theirs.sum())
    return np.asarray(chances[:3].sum(axis=0))


def _variance(total: float, count: float) -> float:
    return float(np.clip(total / max(count, 1e-9), _LEAST, _MOST))


def _density(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    both: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Of two normal variables with these variances and covariance, up to a factor."""
    left = np.maximum(first * second - both**2, 1e-300)
    return np.exp(-(second * a**2 - 2 * both * a * b + first * b**2) / (2 * left)) / np.sqrt(left)
