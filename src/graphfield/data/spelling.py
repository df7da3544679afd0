"""Levels that are meant to be one and are written in several ways."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd


def trim_text(frame: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, dict[str, dict[str, int]]]:
    """Texts of some columns without blanks at their ends; also which had any, and in how many rows.

    >>> table = pd.DataFrame({"sex": ["F", " F", "M"]})
    >>> trim_text(table, ["sex"])[0].sex.tolist(), trim_text(table, ["sex"])[1]
    (['F', 'F', 'M'], {'sex': {' F': 1}})
    """
    changed, found = {}, {}
    for name in names:
        column = frame[name]
        texts = [value for value in column.dropna().unique() if isinstance(value, str)]
        blank = [text for text in texts if text != text.strip() and text.strip()]
        if blank:
            counts = column.astype(object).value_counts()
            found[name] = {text: int(counts[text]) for text in blank}
            changed[name] = _renamed(column, {text: text.strip() for text in blank})
    return frame.assign(**changed), found


def _renamed(column: pd.Series, new: dict[str, str]) -> pd.Series:
    """A category stays one, with its order; of two that become one, the first has the place."""
    values = column.astype(object).map(lambda value: new.get(value, value))
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return values
    levels = dict.fromkeys(new.get(level, level) for level in column.cat.categories)
    return values.astype(pd.CategoricalDtype(list(levels), column.cat.ordered))


def alike_levels(counts: pd.Series) -> dict[str, str]:
    """For each level the most frequent one that differs from it in blanks or capitals at most.

    ``counts`` are rows by level, the most frequent one first.
    """
    first: dict[str, str] = {}
    return {level: first.setdefault(" ".join(level.split()).casefold(), level) for level in counts.index}
