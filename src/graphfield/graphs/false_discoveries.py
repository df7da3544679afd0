"""P-values of many pairs: put together, and adjusted for how many there are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from graphfield.exceptions import agreed

# Larger p-values of one test among several count as this one.
_NEAR_ONE = 0.8


def q_values(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least false discovery rate at which each would be found (Benjamini and Hochberg, 1995).

    What is not a number takes no part and stays one.

    >>> q_values(np.array([0.01, 0.02, 0.5, np.nan])).round(3)
    array([0.03, 0.03, 0.5 ,  nan])
    """
    flat = p_values.ravel()
    known = np.flatnonzero(~np.isnan(flat))
    order = known[np.argsort(flat[known], kind="stable")]
    found = np.full(flat.shape, np.nan)
    ranks = np.arange(1, len(order) + 1)
    found[order] = np.minimum(np.minimum.accumulate((flat[order] * len(order) / ranks)[::-1])[::-1], 1.0)
    return found.reshape(p_values.shape)


def combine_tests(p_values: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """One p-value from several tests of the same, however they depend on each other (Liu and Xie, 2020).

    That one of them is near one must not undo what another has found (Fang et al., 2023).

    >>> combine_tests([np.array([0.01, 0.001]), np.array([0.6, 1.0])]).round(3)
    array([0.02 , 0.002])
    """
    if len(p_values) == 1:
        return p_values[0]
    small = np.clip(np.stack(p_values), 1e-300, _NEAR_ONE)
    # Near zero the cotangent is 1 / (pi p), which the tangent of pi / 2 - pi p would lose to rounding.
    mean = np.where(small < 1e-8, 1 / (np.pi * small), np.tan((0.5 - small) * np.pi)).mean(axis=0)
    return np.where(mean > 1e7, 1 / (np.pi * np.maximum(mean, 1e7)), 0.5 - np.arctan(mean) / np.pi)


def false_words(rates: Iterable[float | None], what: str, fdr: float) -> str:
    """How many of those with q-values up to ``fdr`` are expected to be none.

    At most their number times the largest of these q-values, which may be far below ``fdr``.

    >>> false_words([0.01] * 35 + [0.1], "to be false", 0.1), false_words([0.1, 0.5], "to be false", 0.1)
    (': about 4 of them are expected to be false', '')
    >>> false_words([0.01] * 36, "to be false", 0.1)
    ': fewer than one of them is expected to be false'
    """
    found = np.array([rate for rate in rates if rate is not None and rate <= fdr])
    if len(found) < 2:
        return ""
    most = float(len(found) * found.max())
    expected = round(most)
    if most < 1:
        return f": fewer than one of them is expected {what}"
    return f": about {expected} of them {agreed(expected, 'is', 'are')} expected {what}"
