"""Levels of covariates: which columns have any, and how they read and are ordered as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.dates import is_date
from graphfield.data.frames import reads_as_number
from graphfield.exceptions import DataError


def is_categorical(column: pd.Series, name: str) -> bool:
    """Text, pandas categoricals and booleans are categories; numbers and dates are numbers."""
    if is_date(column):
        return False
    if pd.api.types.is_bool_dtype(column) or isinstance(column.dtype, pd.CategoricalDtype):
        return True
    if pd.api.types.is_complex_dtype(column):
        raise DataError(f"Complex data not supported: covariate {name!r}.").about(column=name)
    if pd.api.types.is_numeric_dtype(column):
        return False
    if pd.api.types.is_timedelta64_dtype(column):
        raise DataError(
            f"Covariate {name!r} holds lengths of time. Turn it into a number first, for example hours: "
            "Z[name] / pandas.Timedelta(hours=1)."
        ).about(column=name)
    return not all(_is_number(value) for value in column)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))


def as_text(column: pd.Series) -> NDArray[np.object_]:
    """Levels as text, so that ``True``, ``"True"`` and a category of either are one level."""
    values: Sequence[object] = column.astype(object).tolist()
    return np.array([_level(value) for value in values], dtype=object)


def _level(value: object) -> str:
    """Whole numbers read alike as 1 and 1.0, which is how pandas shows them beside a missing value."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def is_ordered(column: pd.Series) -> bool:
    """Whether the levels of a column have an order of their own."""
    return isinstance(column.dtype, pd.CategoricalDtype) and bool(column.dtype.ordered)


def level_order(column: pd.Series, levels: Iterable[str]) -> list[str]:
    """Levels as text in the order that the column gives them, else in that of numbers, or of the alphabet.

    >>> pain = pd.Categorical(["much", "little"], ["none", "little", "much"], ordered=True)
    >>> level_order(pd.Series(pain), {"much", "little"})
    ['little', 'much']
    """
    if not is_ordered(column):
        levels = sorted(levels)
        numbers = all(reads_as_number(level) and np.isfinite(float(level)) for level in levels)
        return sorted(levels, key=float) if numbers else levels
    places = {_level(value): place for place, value in enumerate(column.cat.categories)}
    return sorted(levels, key=lambda level: (places.get(level, len(places)), level))


def count_levels(column: pd.Series, text: NDArray[np.object_]) -> tuple[NDArray, NDArray[np.intp]]:
    """The levels of a column that is ``text`` as text, in their order, and how often each is there."""
    levels, counts = np.unique(text, return_counts=True)
    order = pd.Index(levels).get_indexer(pd.Index(level_order(column, levels)))
    return levels[order], counts[order]
