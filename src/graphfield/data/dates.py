"""Dates as numbers: days since 1970-01-01, and back to what a person reads."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import DataError, check_choice, listing
from graphfield.messages import Argument, Row

# 2020-03-01, 2020-03-01 14:30, 2020-03-01T14:30:05.5, with or without a time zone, and with the same meaning
# 2020/03/01 and 01.03.2020. Nothing that is no day (2020-03).
_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}(:\d{2}(:\d{2}(\.\d{1,9})?)?)?(Z|[+-]\d{2}:?\d{2})?)?", re.ASCII
)
_YEAR_FIRST = re.compile(r"(?P<y>\d{4})/(?P<m>\d{1,2})/(?P<d>\d{1,2})(?P<time>[T ].*)?", re.ASCII)
_DOTTED = re.compile(r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})(?P<time>[T ].*)?", re.ASCII)
# What can be read in two ways (01/02/2020), or as a number (20200201), and how to say in which.
_SLASHED = re.compile(r"(\d{1,2})([/-])(\d{1,2})\2(\d{4})([T ].*)?", re.ASCII)
_NOTATIONS = {
    "dd/mm/yyyy": re.compile(r"(?P<d>\d{1,2})([/-])(?P<m>\d{1,2})\2(?P<y>\d{4})(?P<time>[T ].*)?", re.ASCII),
    "mm/dd/yyyy": re.compile(r"(?P<m>\d{1,2})([/-])(?P<d>\d{1,2})\2(?P<y>\d{4})(?P<time>[T ].*)?", re.ASCII),
    "yyyymmdd": re.compile(r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})(?P<time>)", re.ASCII),
    "yymmdd": re.compile(r"(?P<y>\d{2})(?P<m>\d{2})(?P<d>\d{2})(?P<time>)", re.ASCII),
}
NOTATIONS = tuple(_NOTATIONS)
# Notations of dates as whole numbers, and the first and the last that may be one.
_NUMBER_DATES = {"yyyymmdd": (19000101, 21001231), "yymmdd": (101, 991231)}
_THIS_CENTURY = 69  # years of two digits below are those of 2000 to 2068, as in most programs
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
        return not value.strip() or _ISO.fullmatch(as_iso(value.strip())) is not None
    return isinstance(value, (datetime.date, np.datetime64))  # a pandas.Timestamp is one too


def _parses(present: pd.Series) -> bool:
    """Whether all are days of the calendar (2020-02-30 is none), and at least one is there."""
    days = to_days(present)
    return bool(np.isfinite(days).any()) and not np.isinf(days).any()


def _stripped(column: pd.Series) -> pd.Series:
    """Entries as objects, dates in text as ISO writes them, None for missing and empty ones."""
    texts = column.astype(object).map(
        lambda value: as_iso(value.strip()) if isinstance(value, str) else value
    )
    return texts.where(texts.notna() & (texts != ""), None)


def as_iso(text: str, *patterns: re.Pattern[str]) -> str:
    """A date of one of these patterns as ISO writes it; other text as it is."""
    for pattern in patterns or (_YEAR_FIRST, _DOTTED):
        found = pattern.fullmatch(text)
        if found:
            return f"{_full_year(found['y'])}-{found['m']:>02}-{found['d']:>02}{found['time'] or ''}"
    return text


def _full_year(digits: str) -> str:
    """
    >>> _full_year("1980"), _full_year("80"), _full_year("05")
    ('1980', '1980', '2005')
    """
    if len(digits) == 4:
        return digits
    return f"{'20' if int(digits) < _THIS_CENTURY else '19'}{digits}"


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


def parse_date(text: str, notation: str | None = None) -> float | None:
    """Days since 1970-01-01 of one date, which may be in this notation; None where the text is none.

    >>> parse_date("2020-03-01"), parse_date("1.3.2020"), parse_date("March 2020")
    (18322.0, 18322.0, None)
    >>> parse_date("03/01/2020"), parse_date("03/01/2020", "mm/dd/yyyy")
    (None, 18322.0)
    """
    plain = text if notation is None else as_iso(text.strip(), _NOTATIONS[notation])
    column = pd.Series([plain], dtype=object)
    return float(to_days(column)[0]) if plain.strip() and is_date(column) else None


def read_dates(
    frame: pd.DataFrame, names: Sequence[str], date_format: str | None
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Those of the columns that write dates as 31/12/2020, 12/31/2020, 20201231 or 201231 as dates, and how.

    Which of the first two it is, days above 12 tell; where there are none it must be said, as it must be said
    that numbers are dates.

    >>> read_dates(pd.DataFrame({"day": ["28/02/2020", "01/03/2020"]}), ["day"], None)[1]
    {'day': 'dd/mm/yyyy'}
    """
    if date_format is not None:
        check_choice("date_format", date_format, NOTATIONS)
    found: dict[str, str] = {}
    frame = frame.copy(deep=False)
    for name in names:
        notation = _notation(frame[name], date_format)
        if notation is not None:
            frame[name] = _as_dates(frame[name], notation)
            found[name] = notation
    if date_format is not None and date_format not in found.values():
        raise DataError(
            "{argument}, but none of {names} is written so. Leave it out, or name the column as a covariate.",
            argument=Argument("date_format", date_format),
            names=listing(names),
        )
    return frame, found


def is_slashed(text: str) -> bool:
    """Whether this is a date that can be read in two ways.

    >>> is_slashed("01/02/2020"), is_slashed("2020/01/02")
    (True, False)
    """
    return _SLASHED.fullmatch(text.strip()) is not None


def are_number_dates(column: pd.Series, notation: str = "yyyymmdd") -> bool:
    """Whether a column of numbers may be dates such as 20200131: all are days of the calendar.

    >>> are_number_dates(pd.Series([801231, 10203])), are_number_dates(pd.Series([801231, 10203]), "yymmdd")
    (False, True)
    """
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return False
    values = np.unique(column.dropna().to_numpy(dtype=np.float64))
    low, high = _NUMBER_DATES[notation]
    if len(values) < 2 or values[0] < low or values[-1] > high or (values % 1).any():
        return False
    return bool(np.isfinite(to_days(_in_iso(pd.Series(values), notation))).all())


def _texts(column: pd.Series) -> pd.Series:
    """Entries that are there, as text without spaces around it; whole numbers without a point."""
    present = column.dropna()
    if pd.api.types.is_numeric_dtype(present):
        return present.map(lambda value: f"{value:.0f}" if value % 1 == 0 else str(value)).astype(object)
    return present.astype(object).map(lambda value: str(value).strip()).loc[lambda text: text != ""]


def _in_iso(column: pd.Series, notation: str) -> pd.Series:
    digits = len(notation) if notation in _NUMBER_DATES else 0  # a number has lost its leading zeros
    return _texts(column).map(lambda text: as_iso(text.zfill(digits), _NOTATIONS[notation]))


def _notation(column: pd.Series, date_format: str | None) -> str | None:
    """In which notation a column writes dates; None where it writes none or in a plain way."""
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return None
    if date_format in _NUMBER_DATES and pd.api.types.is_numeric_dtype(column):
        return date_format if are_number_dates(column, date_format) else None
    if pd.api.types.is_numeric_dtype(column):
        return None
    texts = _texts(column)
    parts = [_SLASHED.fullmatch(text) for text in texts.unique()]
    if not parts or not all(parts):
        return None
    return _order(column, [(int(one[1]), int(one[3])) for one in parts if one], date_format)


def _order(column: pd.Series, parts: list[tuple[int, int]], date_format: str | None) -> str:
    """Whether the day or the month comes first, by days above 12 or as the user says."""
    day_first = any(first > 12 for first, _ in parts)
    month_first = any(second > 12 for _, second in parts)
    if day_first != month_first:
        found = "dd/mm/yyyy" if day_first else "mm/dd/yyyy"
        if date_format in (None, *_NUMBER_DATES, found):
            return found
    elif not day_first and (date_format in ("dd/mm/yyyy", "mm/dd/yyyy") or all(a == b for a, b in parts)):
        return date_format or "dd/mm/yyyy"
    name, example = str(column.name), _texts(column).iloc[0]
    if not day_first and not month_first:
        raise DataError(
            "Column {column!r} holds dates such as {example!r}, and no day above 12 tells whether the day or "
            "the month comes first. Say which: {day} or {month}.",
            column=name,
            example=example,
            day=Argument("date_format", "dd/mm/yyyy"),
            month=Argument("date_format", "mm/dd/yyyy"),
        )
    wanted = date_format or "one notation"
    month = 3 if wanted == "dd/mm/yyyy" else 1
    odd = next(text for text in _texts(column) if (one := _SLASHED.fullmatch(text)) and int(one[month]) > 12)
    row = int(np.argmax((column.astype(str).str.strip() == odd).to_numpy()))
    raise DataError(
        "Column {column!r} must hold dates in {wanted}, but {row} holds {odd!r}. Write all dates as "
        "2020-03-01, or leave {option} out.",
        column=name,
        wanted=wanted,
        row=Row(row),
        odd=odd,
        option=Argument("date_format"),
    )


def _as_dates(column: pd.Series, notation: str) -> pd.Series:
    iso = _in_iso(column, notation)
    dates = pd.to_datetime(iso, format="ISO8601", errors="coerce")
    if dates.isna().any():
        row = int(np.argmax(column.index == iso.index[dates.isna()][0]))
        raise DataError(
            "Column {column!r} holds dates as {notation}, but {row} holds {odd!r}, which is no day. Correct "
            "it, or leave the cell empty.",
            column=str(column.name),
            notation=notation,
            row=Row(row),
            odd=str(column.iloc[row]),
        )
    return dates.reindex(column.index)
