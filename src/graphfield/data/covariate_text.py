"""Text among the covariates: what makes no categories, and levels that are written in several ways."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.dates import is_slashed, parse_date
from graphfield.data.frames import reads_as_number, with_columns
from graphfield.exceptions import DataError
from graphfield.messages import Argument, Message, Row

OTHER = "other"  # the level that rare ones are pooled into
# Text with more levels than this that reads as numbers is taken for a mistake.
MANY_LEVELS = 20


def check_levels(name: str, text: NDArray[np.object_], levels: NDArray, rows: NDArray[np.intp]) -> None:
    """Text that was meant to be numbers or dates, or to identify rows, makes no categories."""
    levels = levels[levels != OTHER]  # the pool of rare ones, which may be numbers
    _check_dates(name, text, levels, rows)
    numeric = np.array([reads_as_number(level) for level in levels])
    if len(levels) > MANY_LEVELS and numeric.all():
        raise DataError(
            "Covariate {column!r} holds numbers stored as text ({n} different ones). {convert}.",
            column=name,
            n=len(levels),
            convert=Message("Convert the column with pandas.to_numeric", code="convert-covariate"),
        )
    if numeric.mean() > 0.5 and not numeric.all():
        raise _odd_one(name, "numbers", str(levels[~numeric][0]), text, rows, "Correct it")
    if len(levels) == len(text) > MANY_LEVELS:
        raise DataError(
            "Covariate {column!r} has a different text in every row (for example {text!r}). If it "
            "identifies subjects or rows, {group} instead.",
            column=name,
            text=text[np.argmin(rows)],
            group=Message("pass it as groups", code="pass-groups"),
        )


def _check_dates(name: str, text: NDArray[np.object_], levels: NDArray, rows: NDArray[np.intp]) -> None:
    """Dates with something among them that is none, and dates that can be read in two ways."""
    slashed = [str(level) for level in levels if is_slashed(str(level))]
    if len(slashed) > 0.5 * len(levels):
        raise DataError(
            "Covariate {column!r} holds dates such as {date!r}, which can be read in two ways. {say}.",
            column=name,
            date=slashed[0],
            say=Message(
                "Read the table with from_table(..., date_format='dd/mm/yyyy') or 'mm/dd/yyyy', or convert "
                "the column with pandas.to_datetime",
                code="say-date-format",
            ),
        )
    dates = np.array([parse_date(str(level)) is not None for level in levels])
    if dates.mean() > 0.5:
        advice = "Write all of them as 2020-03-01"
        raise _odd_one(name, "dates", str(levels[~dates][0]), text, rows, advice)


def _odd_one(
    name: str, kind: str, odd: str, text: NDArray[np.object_], rows: NDArray[np.intp], advice: str
) -> DataError:
    """One level is not what most of the others are."""
    return DataError(
        "Covariate {column!r} holds {kind}, but {row} holds {odd!r}. {advice}, or leave the cell empty and "
        "use {drop}.",
        column=name,
        kind=kind,
        row=Row(int(rows[text == odd].min())),
        odd=odd,
        advice=advice,
        drop=Argument("missing", "drop"),
    )


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
    return with_columns(frame, changed), found


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
