"""Numbers that are one of two values, such as 0 and 1: levels, whatever they are called."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import ExtrapolationWarning, agreed, count

# Rows that both values must have.
LEAST_ROWS = 10
# Of their difference: how far a number may be from one of them by rounding.
_ROUNDING = 1e-6


def are_two(values: NDArray[np.float64], bounds: tuple[float, float]) -> bool:
    """Whether there is nothing between the bounds, rows enough at both, and a name for each."""
    if level_text(bounds[0]) == level_text(bounds[1]):
        return False
    at_ends = [np.count_nonzero(values == end) for end in bounds]
    return bool(min(at_ends) >= LEAST_ROWS and sum(at_ends) == len(values))


def level_text(value: float) -> str:
    """
    >>> level_text(1.0), level_text(0.1), level_text(float(np.float32(0.1)))
    ('1', '0.1', '0.1')
    """
    return str(int(value)) if value.is_integer() else f"{value:.7g}"


def codes_of_two(name: str, numbers: Sequence[float], column: pd.Series) -> NDArray[np.int64] | None:
    """Which of two numbers each value is; one that is neither has the nearer one, with a warning.

    None where text says something else: that is a mistake.
    """
    values = pd.to_numeric(column.astype(object), errors="coerce").to_numpy(dtype=np.float64)
    low, high = numbers
    codes = (values - low > high - values).astype(np.int64)
    off = ~(np.abs(values - np.asarray(numbers)[codes]) <= _ROUNDING * (high - low))
    if not off.any():
        return codes
    if np.isnan(values).any() or any(isinstance(value, str) for value in column[off]):
        return None
    n_off, worst = int(off.sum()), int(np.argmax(off))
    warnings.warn(
        f"Covariate {name!r} was {level_text(low)} or {level_text(high)} in training; {count(n_off, 'row')} "
        f"{agreed(n_off, 'has', 'have')} another value (for example {values[worst]:g}, which gets the graph "
        f"at {level_text(numbers[codes[worst]])}).",
        ExtrapolationWarning,
        stacklevel=5,
    )
    return codes
