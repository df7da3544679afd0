"""Columns of whole numbers that name rows or subjects and measure nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# Fewer different values than this may be anything.
_FEWEST = 10
# Groups of one table are about equally large: the largest has no more than so many times the smallest.
_EVEN = 2
# Above this share of nodes with a different whole number in every row they are fine counts, and no codes.
_MANY = 0.5


def find_identifiers(frame: pd.DataFrame, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Columns in rising order, as row numbers are, and others with a different number in every row.

    Whether the latter identify rows or are a fine measurement cannot be told from them: it is for the user to
    say. Where most columns are like that, they are measurements.

    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"row": range(50), "code": rng.permutation(50), "x": rng.normal(size=50)})
    >>> find_identifiers(frame, ["row", "code", "x"])
    (['row'], ['code'])
    """
    rising = [name for name in names if has_rising_numbers(frame[name])]
    distinct = [name for name in names if name not in rising and has_distinct_numbers(frame[name])]
    return rising, distinct if len(distinct) <= _MANY * len(names) else []


def is_whole(values: NDArray[np.float64]) -> bool:
    """Whether all are whole numbers; most that are not show it in the first few."""
    return all(np.array_equal(part, np.round(part)) for part in (values[:100], values[100:]))


def has_distinct_numbers(column: pd.Series) -> bool:
    """Whole numbers that never come up twice, in more rows than may be chance."""
    values = _whole_numbers(column)
    enough = len(values) > max(_FEWEST, len(column) / 2)
    return enough and len(np.unique(values)) == len(values)


def has_rising_numbers(column: pd.Series) -> bool:
    """Whole numbers in rising order, and not just a table that is sorted by a count.

    There must be many of them, or groups of about the same size.
    """
    values = _whole_numbers(column)
    if (np.diff(values) < 0).any():
        return False
    sizes = np.unique(values, return_counts=True)[1]
    if len(sizes) <= _FEWEST:
        return False
    return bool(len(sizes) ** 2 > len(values) or sizes.max() <= _EVEN * sizes.min())


def _whole_numbers(column: pd.Series) -> NDArray[np.float64]:
    """The numbers of a column that holds whole numbers and gaps only; else none."""
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if not numeric or pd.api.types.is_complex_dtype(column):
        return np.empty(0)
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = values[np.isfinite(values)]
    return values if is_whole(values) else np.empty(0)
