"""Tables with one row per date, from files or frames, checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from graphfield.data.dates import as_iso, is_slashed
from graphfield.data.tables import read_pairs, read_table
from graphfield.exceptions import DataError, listing
from graphfield.messages import Argument, Row

_DATE_NAMES = ("date", "dates", "day", "time", "datetime", "timestamp")
_BARS = {"open", "high", "low", "close"}


def read_dated(path: str | Path) -> pd.DataFrame:
    """A file, as :func:`~graphfield.read_table` takes it, with a column of dates; see :func:`dated_table`."""
    return dated_table(read_table(path), str(path))


def dated_table(table: Any, what: str = "The table") -> pd.DataFrame:
    """Numbers by date, in the order of the dates.

    Dates are the index, a column called date (or day, time, ...), or a first column of text. They are written
    as 2020-03-16 or 16.03.2020; hours and time zones are cut off. Rows may come in any
    order, but each date once. Missing numbers stay missing. A Series becomes a table of one column.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"Date": ["2020-01-03", "2020-01-02"], "SPX": [3234.85, 3257.85]})
    >>> dated_table(rows)["SPX"].tolist()
    [3257.85, 3234.85]
    """
    frame = _frame(table, what)
    dates, values = _dates(frame, what)
    values = values.set_axis([str(name) for name in values.columns], axis=1)
    repeated = sorted({name for name in values.columns if list(values.columns).count(name) > 1})
    if repeated:
        raise DataError(
            f"{what} has more than one column called {listing(repeated)}. Rename or drop them."
        ).about(table=what, column=repeated[0])
    numbers = pd.DataFrame(
        {name: _numbers(values[name], dates, what) for name in values.columns}, index=dates
    )
    again = dates[dates.duplicated()].unique()
    if len(again):
        raise DataError(
            f"{what} must have each date once, but {len(again)} come more than once, the first on "
            f"{_day(again[0])}. Keep one row of each."
        ).about(table=what)
    return numbers.sort_index()


def read_sectors(path: str | Path) -> dict[str, str]:
    """Ticker to sector, from a file whose first two columns are these."""
    return read_pairs(path, "ticker", "sector")


def as_day(value: Any, what: str | Argument) -> pd.Timestamp:
    """A date that was given as text, a date or a time stamp."""
    plain = as_iso(value.strip()) if isinstance(value, str) else value
    unclear = isinstance(plain, (int, float)) or (isinstance(plain, str) and is_slashed(plain))
    day = pd.NaT if unclear else pd.to_datetime(plain, errors="coerce")
    if not isinstance(day, pd.Timestamp):
        raise DataError("{what} must be a date such as 2017-12-31, got {value!r}.", what=what, value=value)
    return day.tz_localize(None).normalize()


def _day(date: Any) -> str:
    return str(pd.Timestamp(date).date())


def _frame(table: Any, what: str) -> pd.DataFrame:
    if isinstance(table, pd.Series):
        table = table.to_frame(str(table.name) if table.name is not None else "value")
    if not isinstance(table, pd.DataFrame):
        raise DataError(
            f"{what} must be a pandas DataFrame or Series by date, got {type(table).__name__}."
        ).about(table=what)
    if isinstance(table.columns, pd.MultiIndex):
        raise DataError(
            f"{what} has columns of several levels, as downloads from Yahoo Finance have. Choose the "
            "adjusted closing prices first, for example table['Close'] of a download with auto_adjust=True."
        ).about(table=what)
    if {str(name).lower() for name in table.columns} >= _BARS:
        raise DataError(
            f"{what} holds opening, high, low and closing prices of one stock. Expected one column of "
            "adjusted closing prices per ticker."
        ).about(table=what)
    return table


def _dates(frame: pd.DataFrame, what: str) -> tuple[pd.DatetimeIndex, pd.DataFrame]:
    if isinstance(frame.index, pd.DatetimeIndex):
        return _days(frame.index.to_series(), what), frame
    named = [name for name in frame.columns if str(name).strip().lower() in _DATE_NAMES]
    if not named and frame.shape[1] and not pd.api.types.is_numeric_dtype(frame.iloc[:, 0]):
        named = [frame.columns[0]]
    if named:
        return _days(frame[named[0]], what), frame.drop(columns=named[0])
    if len(frame) and not pd.api.types.is_numeric_dtype(frame.index):
        return _days(frame.index.to_series(), what), frame
    raise DataError(f"{what} has no dates: expected a column called 'date', or dates as the index.").about(
        table=what
    )


def _days(column: pd.Series, what: str) -> pd.DatetimeIndex:
    if pd.api.types.is_datetime64_any_dtype(column):
        found = pd.to_datetime(column)
    else:
        text = column.astype(str).str.strip().map(as_iso)
        # Yahoo's time stamps of one column may have several offsets (summer and winter): the day is enough.
        whole = text.str.fullmatch(r"\d{8}|\d{4}-\d{2}-\d{2}([ T].*)?")
        found = pd.to_datetime(text.str.slice(0, 10).where(whole), format="ISO8601", errors="coerce")
    if found.isna().any():
        row = int(np.argmax(found.isna().to_numpy()))
        raise DataError(
            "{what} must have dates written as 2020-03-16, but {row} has {value!r}.",
            what=what,
            row=Row(row),
            value=column.iloc[row],
        )
    dates = pd.DatetimeIndex(found)
    return dates.tz_localize(None).normalize().rename("date")


def _numbers(column: pd.Series, dates: pd.DatetimeIndex, what: str) -> np.ndarray:
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    bad = (np.isnan(values) & column.notna().to_numpy()) | np.isinf(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{what}: column {str(column.name)!r} must hold numbers, but has {column.iloc[row]!r} on "
            f"{_day(dates[row])}."
        ).about(table=what, column=str(column.name), row=Row(row))
    return values
