"""Dates as numbers: days since 1970-01-01, and back to what a person reads."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# 2020-03-01, 2020-03-01 14:30, 2020-03-01T14:30:05.5, with or without a time zone. Nothing that could be read
# in two ways (01/02/2020) or that is no day (2020-03).
_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}(:\d{2}(:\d{2}(\.\d{1,9})?)?)?(Z|[+-]\d{2}:?\d{2})?)?", re.ASCII
)
_DAY = np.timedelta64(1, "D")
# Days from 1970-01-01 to the first and the last that have a date.
FIRST_DAY, LAST_DAY = (
    float((day - datetime.date(1970, 1, 1)).days) for day in (datetime.date.min, datetime.date.max)
)


def is_date(column: pd.Series) -> bool:
    """Whether a column holds dates: a date type, date objects, or text that is an ISO date in every row.

    >>> is_date(pd.Series(["2020-03-01", "2020-03-02"])), is_date(pd.Series(["2020-03-01", "unknown"]))
    (True, False)
    """
    if pd.api.types.is_datetime64_any_dtype(column):
        return True
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = pd.Series(column.cat.categories)
        return len(levels) > 0 and is_date(levels)
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return False
    present = pd.Series(column.dropna().unique())
    return all(_is_date_value(value) for value in present) and _parses(present)


def _is_date_value(value: object) -> bool:
    if isinstance(value, str):
        return not value.strip() or _ISO.fullmatch(value.strip()) is not None
    return isinstance(value, (datetime.date, np.datetime64))  # a pandas.Timestamp is one too


def _parses(present: pd.Series) -> bool:
    """Whether all are days of the calendar (2020-02-30 is none), and at least one is there."""
    days = to_days(present)
    return bool(np.isfinite(days).any()) and not np.isinf(days).any()


def _stripped(column: pd.Series) -> pd.Series:
    """Entries as objects, None for missing and empty ones."""
    texts = column.astype(object).map(lambda value: value.strip() if isinstance(value, str) else value)
    return texts.where(texts.notna() & (texts != ""), None)


def no_dates(column: pd.Series) -> NDArray[np.bool_] | None:
    """Which entries are no dates, in a column of text most of which is written like one; else None.

    One that can be read must be among them: 1234-56-78 may be a code.

    >>> no_dates(pd.Series(["2020-03-01", "2020-13-45", None, "2020-03-02"])).tolist()
    [False, True, False, False]
    """
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return None
    texts = _stripped(column)
    present = texts.notna().to_numpy()
    written = texts.map(_is_date_value).to_numpy(dtype=bool) & present
    if not written.sum() > present.sum() / 2:
        return None
    read = written & np.isfinite(to_days(texts.where(written, None)))
    return present & ~read if read.any() and not read[present].all() else None


def to_days(column: pd.Series) -> NDArray[np.float64]:
    """Days since 1970-01-01 with the time of day as a fraction; numbers are days already.

    Missing and empty entries become NaN; what looks like a date but is none (2020-02-30) infinity.

    >>> to_days(pd.Series(["1970-01-02", "1970-01-02 12:00", None]))
    array([1. , 1.5, nan])
    """
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    texts = _stripped(column)
    dates = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True)
    moments = dates.dt.tz_localize(None).to_numpy()
    days = (moments - np.datetime64("1970-01-01")) / _DAY
    return np.where(np.isnan(days) & texts.notna().to_numpy(), np.inf, days)


def date_text(days: float) -> str:
    """The date of so many days since 1970-01-01, with the time of day where there is one.

    >>> date_text(18322.0), date_text(18322.75), date_text(1e9)
    ('2020-03-01', '2020-03-01 18:00', 'day 1e+09')
    """
    if not FIRST_DAY <= days <= LAST_DAY:
        return f"day {days:g}"
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=round(float(days) * 86_400))
    on_the_day = moment.time() == datetime.time()
    return moment.date().isoformat() if on_the_day else moment.isoformat(" ", "minutes")


def parse_date(text: str) -> float | None:
    """Days since 1970-01-01 of one ISO date; None where the text is none.

    >>> parse_date("2020-03-01"), parse_date("March 2020")
    (18322.0, None)
    """
    column = pd.Series([text], dtype=object)
    return float(to_days(column)[0]) if text.strip() and is_date(column) else None
