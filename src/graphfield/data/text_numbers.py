"""Numbers as people write them: decimal commas, marks between thousands, and what is left to ask about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from graphfield.messages import Argument, join_messages

# Above this share of numbers among its cells, a column of text was meant to hold numbers.
_MEANT = 0.5
# 12, 3.5, 3,5, 1e-3, 12 kg, 5 %, € 12.50, $1,200; and above which share of such texts a column was
# meant to hold them.
NUMBER_WITH_UNIT = (
    r"\s*([$€£¥]|USD|EUR|GBP|CHF)?\s*[-+<>]?\s*\d+([.,]\d{3})*([.,]\d+)?([eE][-+]?\d+)?\s*[^\d\s]{0,6}\s*"
)
_WITH_UNITS = 0.8
PLAIN_NUMBERS = "Write plain numbers (12.5, without unit, percent or currency)"
_SPACES = " \u00a0\u202f"  # also those that do not break lines
_OTHER = {".": ",", ",": "."}


def _mark(mark: str) -> str:
    return {" ": f"[{_SPACES}]", "'": "['\u2019]"}.get(mark, re.escape(mark))


def _decimal(mark: str) -> re.Pattern[str]:
    point = _mark(mark)
    return re.compile(rf"[-+]?(\d+({point}\d*)?|{point}\d+)([eE][-+]?\d+)?", re.ASCII)


def _grouped(mark: str, decimal: str) -> re.Pattern[str]:
    """Groups of three digits: 1.234 and 1.234.567,5, but not 0.234 and not 1234.567."""
    return re.compile(rf"[-+]?[1-9]\d{{0,2}}({_mark(mark)}\d{{3}})+({_mark(decimal)}\d+)?", re.ASCII)


_DECIMAL = {mark: _decimal(mark) for mark in _OTHER}
_GROUPED = {
    (mark, decimal): _grouped(mark, decimal)
    for mark in (".", ",", " ", "'")
    for decimal in _OTHER
    if mark != decimal
}
_WHOLE = re.compile(r"[-+]?\d+", re.ASCII)


def is_number(text: str, decimal: str, thousands: str | None = None) -> bool:
    """Whether this is a number in this notation.

    >>> is_number("1,5", ","), is_number("1.234,5", ","), is_number("1.234,5", ",", ".")
    (True, False, True)
    """
    return bool(_DECIMAL[decimal].fullmatch(text)) or (
        thousands is not None and bool(_GROUPED[thousands, decimal].fullmatch(text))
    )


def have_units(texts: pd.Series) -> bool:
    """Whether texts are numbers with a unit, a percent sign or a currency; codes such as 12a are none.

    >>> [have_units(pd.Series(texts)) for texts in (["$1,499", "$12"], ["12 %"], ["12a", "3b"], ["red"])]
    [True, True, False, False]
    """
    return bool(texts.str.fullmatch(NUMBER_WITH_UNIT).mean() > _WITH_UNITS) and not texts.str.isalnum().all()


def to_plain(text: str, decimal: str, thousands: str | None = None) -> str:
    """A number of this notation as Python reads it.

    >>> to_plain("1.234,5", ",", ".")
    '1234.5'
    """
    if thousands is not None and _GROUPED[thousands, decimal].fullmatch(text):
        text = re.sub(_mark(thousands), "", text)
    return text.replace(decimal, ".")


@dataclass(frozen=True)
class Evidence:
    """Which notations the cells of a table are in: those that can only be one, and those that may be two."""

    certain: frozenset[str]
    ambiguous: frozenset[str]


def find_evidence(columns: Iterable[Sequence[str]]) -> Evidence:
    """Decimal marks in columns that hold numbers; 1,234 may be a number above 1,000 or one above 1."""
    certain: set[str] = set()
    ambiguous: set[str] = set()
    for cells in columns:
        texts = [text for cell in cells if (text := cell.strip())]
        if sum(any(_read(text)) for text in texts) <= _MEANT * len(texts):
            continue
        for text in texts:
            for mark, other in _OTHER.items():
                if mark in text and _DECIMAL[mark].fullmatch(text):
                    (ambiguous if _GROUPED[mark, other].fullmatch(text) else certain).add(mark)
    return Evidence(frozenset(certain), frozenset(ambiguous))


def _read(text: str) -> Iterator[bool]:
    yield from (bool(pattern.fullmatch(text)) for pattern in (*_DECIMAL.values(), *_GROUPED.values()))


@dataclass(frozen=True)
class Misread:
    """A cell of a column of numbers that is in another notation than was expected.

    ``options`` are those with which it would be a number; ``certain`` says that the other decimal mark is the
    only one.
    """

    column: str
    row: int
    text: str
    options: tuple[str, ...]
    certain: bool


def settle_column(column: pd.Series, decimal: str, thousands: str | None) -> tuple[pd.Series, Misread | None]:
    """A column of text as numbers, where all are; and the first cell in a notation that was not expected.

    Numbers among other text are written as Python reads them, so that what is no number stands out.
    """
    texts = column.astype(object)
    distinct = [value for value in pd.unique(texts.dropna()) if isinstance(value, str)]
    plain = {value: value.strip() for value in distinct}
    own = {value for value in distinct if is_number(plain[value], decimal, thousands)}
    foreign = {value for value in distinct if value not in own and any(_read(plain[value]))}
    blank = {value for value in distinct if not plain[value]}
    if not distinct or len(own) + len(foreign) <= _MEANT * (len(distinct) - len(blank)):
        return column, None
    marked = sum(not _WHOLE.fullmatch(plain[value]) for value in own)
    if foreign and len(foreign) >= marked:
        row = int(np.argmax(texts.isin(foreign).to_numpy()))
        return column, _misread(column, row, decimal)
    if foreign or len(own) + len(blank) < len(distinct):
        new = {value: to_plain(plain[value], decimal, thousands) for value in own}
        return texts.map(lambda value: new.get(value, value)), None
    if decimal == "." and thousands is None and not marked:
        return column, None  # whole numbers too long for a number: codes, whose digits all count
    new = {value: to_plain(plain[value], decimal, thousands) for value in own}
    return _as_numbers(texts, new), None


def _as_numbers(texts: pd.Series, plain: dict[str, str]) -> pd.Series:
    values = texts.map({value: float(text) for value, text in plain.items()}).to_numpy(dtype=np.float64)
    whole = all(_WHOLE.fullmatch(text) for text in plain.values()) and np.isfinite(values).all()
    exact = whole and np.abs(values).max() < 2**53
    return pd.Series(values.astype(np.int64) if exact else values, index=texts.index, name=texts.name)


def _misread(column: pd.Series, row: int, decimal: str) -> Misread:
    text = str(column.iloc[row]).strip()
    other = _OTHER[decimal]
    only = join_messages(", ", [Argument("decimal", other)])
    options = [only] if _DECIMAL[other].fullmatch(text) else []
    for (mark, point), pattern in _GROUPED.items():
        if pattern.fullmatch(text):
            both = [Argument("decimal", point), Argument("thousands", mark)]
            options.append(join_messages(", ", both[1:] if point == decimal else both))
    return Misread(str(column.name), row, text, tuple(options), options == [only])
