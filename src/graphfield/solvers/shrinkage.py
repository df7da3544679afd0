"""Towards zero: entries by themselves, and groups of entries by the length of the group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def shrink_entries(values: Array, by: float | Array) -> Array:
    """Towards zero by this much, or to zero.

    >>> shrink_entries(np.array([-3.0, 0.5, 2.0]), 1.0).tolist()
    [-2.0, 0.0, 1.0]
    """
    return np.sign(values) * np.maximum(np.abs(values) - by, 0)


def remaining_share(lengths: Array, by: float | Array) -> Array:
    """Of groups of these lengths, the share that is left where they are shorter by this much, or nothing.

    >>> remaining_share(np.array([0.0, 0.5, 2.0]), 1.0).tolist()
    [0.0, 0.0, 0.5]
    """
    return np.maximum(1 - by / np.maximum(lengths, 1e-30), 0)
