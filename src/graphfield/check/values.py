"""Single values that look wrong: far from all others, or a number that stands for "missing"."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.check.findings import Finding, drop_argument
from graphfield.data.dates import are_number_dates, is_date, no_dates
from graphfield.data.text_numbers import PLAIN_NUMBERS, have_units
from graphfield.exceptions import agreed, count, first_few, listing
from graphfield.messages import Argument, Message, Row

# Values beyond this many robust standard deviations from the median; above these shares of the rows, a shape,
# and nothing at all, as the median is one of many equal values.
FAR_OUT, FAR_OUT_SHARE, _MOST_FAR = 10.0, 0.005, 0.1
# A larger share may be errors as well, where the nearest is so many times as far out as any of the others.
_APART_SHARE, _GAP = 0.02, 1.5
# Beyond this skewness a column is far from Gaussian (an exponential has 2).
SKEWED = 2.0
FAR = f"more than {FAR_OUT:g} robust standard deviations from"
# Numbers that people write for "missing". They are taken for it as the smallest or largest value of a column
# that is there several times, and this many robust standard deviations from the median of the others.
MISSING_CODES = (-8, -9, -88, -99, -888, -999, -9999, 88, 98, 99, 888, 998, 999, 9998, 9999)
_CODE_TIMES, _CODE_DISTANCE = 3, 5.0
_MAD_TO_SD = 1.4826  # of a Gaussian
# Names of columns in which numbers such as 801231 are dates, and the least that is asked about: 2001-01-01.
_DATE_NAME, _SHORT_DATE = re.compile(r"date|day|time", re.IGNORECASE), 10101
_NAMED = 5  # columns with their numbers in one message


def value_findings(
    values: NDArray[np.float64], names: NDArray, role: str, coded: Collection[float] = ()
) -> Iterator[Finding]:
    """Findings about single values of columns of one role, "node" or "covariate"; what is missing is NaN.

    Numbers that are ``coded`` stand for "missing" in some column of the table.
    """
    codes = [missing_codes(column[~np.isnan(column)], coded) for column in values.T]
    yield from missing_code_findings(codes, names, role)
    plain = np.array([not own for own in codes], dtype=bool)
    yield from far_out_findings(values[:, plain], names[plain], role)


def missing_code_findings(
    codes: Sequence[Mapping[float, int]], names: NDArray, role: str
) -> Iterator[Finding]:
    """Numbers that stand for "missing", as :func:`missing_codes` found them in columns of one role."""
    coded = [j for j, own in enumerate(codes) if own]
    if not coded:
        return
    parts = [f"{names[j]!r} has {_times(codes[j])}" for j in coded]
    one = len(coded) == 1
    several = one and len(codes[coded[0]]) > 1
    yield Finding(
        "missing-code",
        tuple(names[j] for j in coded),
        f"{'Numbers' if several or not one else 'A number'} may stand for missing: "
        f"{role if one else f'{role}s'} {first_few(parts, _NAMED)}.",
        "If so, leave these cells empty.",
    )


def _times(codes: Mapping[float, int]) -> str:
    return " and ".join(f"{code:g} in {count(times, 'row')}" for code, times in codes.items())


def missing_codes(values: NDArray[np.float64], coded: Collection[float] = ()) -> dict[float, int]:
    """Codes for "missing" among the values of a column, and how often each is there.

    A column may have several, at both ends or one behind the other (998, 999). Less is asked of numbers that
    are ``coded`` in another column, and of those beside a code in the same one.

    >>> missing_codes(np.array([-9.0] * 3 + [1.0, 2.0, 3.0, 4.0] * 9 + [999.0] * 4))
    {-9.0: 3, 999.0: 4}
    >>> wide = np.array([-9.0] * 3 + [1.0, 20.0, 300.0, 4000.0] * 9)
    >>> missing_codes(wide), missing_codes(wide, coded={-9})
    ({}, {-9.0: 3})
    >>> missing_codes(np.concatenate([np.arange(60.0), [-9.0] * 3, [999.0] * 4]))
    {-9.0: 3, 999.0: 4}
    """
    found: dict[float, int] = {}
    others = values

    def is_code(end: float) -> bool:
        known = end in coded or (found and end in MISSING_CODES)
        return _is_missing_code(end, others) or bool(known and _stands_apart(end, others))

    while code := next((end for end in _ends(others) if is_code(end)), None):
        found[code] = int((others == code).sum())
        others = others[others != code]
    return dict(sorted(found.items()))


def _ends(values: NDArray[np.float64]) -> tuple[float, ...]:
    return (float(values.min()), float(values.max())) if len(values) else ()


def _is_missing_code(end: float, values: NDArray[np.float64]) -> bool:
    if end not in MISSING_CODES:
        return False
    there = values == end
    others = values[~there]
    if there.sum() < _CODE_TIMES or len(others) < 2 * _CODE_TIMES:
        return False
    spread = robust_spread(others[:, None])[0] or others.std() or np.inf
    return bool(abs(end - np.median(others)) > _CODE_DISTANCE * spread)


def _stands_apart(end: float, values: NDArray[np.float64]) -> bool:
    """Below zero unlike all others, a standard deviation from them, or thrice as often as any of them."""
    others = values[values != end]
    if len(others) < 2 * _CODE_TIMES:
        return False
    times, most = len(values) - len(others), np.unique(others, return_counts=True)[1].max()
    beside = np.abs(others - end).min() > (robust_spread(others[:, None])[0] or others.std())
    return bool(end < 0 <= others.min() or beside or times >= _CODE_TIMES * most)


def robust_spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Robust standard deviation of each column; zero where more than half of the values are equal."""
    return _MAD_TO_SD * np.nanmedian(np.abs(values - np.nanmedian(values, axis=0)), axis=0)


def _spread_beside_median(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Robust standard deviation of each column without values at the median, of which there may be many."""
    beside = np.where(distance > 0, distance, np.nan)
    beside[:, np.isnan(beside).all(axis=0)] = 0
    return _MAD_TO_SD * np.nanmedian(beside, axis=0)


def standard_units(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns less their means, with unit variance; what is NaN stays so and does not count."""
    largest = np.nanmax(np.abs(values), axis=0)
    values = values / np.where(largest > 0, largest, 1.0)  # powers of 1e100 would be infinite
    centred = values - np.nanmean(values, axis=0)
    spread = np.nanstd(centred, axis=0)
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def far_out_values(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The few values of columns that are far from all others; many would be a shape."""
    far = _far_out(values)
    return far & _are_few(far, values)


def _far_out(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    distance = np.abs(values - np.nanmedian(values, axis=0))
    spread = np.where(robust_spread(values) > 0, _spread_beside_median(distance), 0)
    return np.asarray(distance > FAR_OUT * np.where(spread > 0, spread, np.inf))


def _are_few(far: NDArray[np.bool_], values: NDArray[np.float64]) -> NDArray[np.bool_]:
    few = far.sum(axis=0) <= np.maximum(1, FAR_OUT_SHARE * (~np.isnan(values)).sum(axis=0))
    return np.asarray(few | _are_apart(far, values))


def _are_apart(far: NDArray[np.bool_], values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Columns whose few far values a gap keeps apart from all others: a tail has none."""
    distance = np.where(np.isnan(values), 0.0, np.abs(values - np.nanmedian(values, axis=0)))
    nearest = np.where(far, distance, np.inf).min(axis=0, initial=np.inf)
    others = np.where(far, 0.0, distance).max(axis=0, initial=0.0)
    most = np.maximum(1, _APART_SHARE * (~np.isnan(values)).sum(axis=0))
    return np.asarray((nearest >= _GAP * others) & (far.sum(axis=0) <= most))


def far_and_apart(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The few values of columns that are far from all others, with a gap between."""
    far = _far_out(values)
    return far & _are_apart(far, values)


def far_out_findings(
    values: NDArray[np.float64], names: NDArray, role: str, *, has_scores: bool = True
) -> Iterator[Finding]:
    """Values of columns of one role, "node" or "covariate", that are far from all others.

    What is missing is NaN. Where no column has a few of them there is nothing to look for: many are a shape.
    """
    if values.size == 0:
        return
    far = _far_out(values)
    counts, are_few = far.sum(axis=0), _are_few(far, values)
    most = _MOST_FAR * (~np.isnan(values)).sum(axis=0)  # beyond it the median tells nothing of the others
    order = [j for j in np.argsort(-counts, kind="stable") if 0 < counts[j] <= most[j]]
    few, many = ([j for j in order if are_few[j] == wanted] for wanted in (True, False))
    if not few:
        return
    parts = [_far_columns(values, names, counts, which) for which in (few, many) if which]
    total = int(counts[order].sum())
    if len(order) == 1:
        what = Message(
            "{role} {name!r} has {several} {far} its median, {such_as}{such}.",
            role=role.capitalize(),
            name=names[few[0]],
            several=agreed(total, "a value", f"{total:,} values"),
            far=FAR,
            such_as=agreed(total, "", "such as "),
            such=_farthest(values[:, few[0]]),
        )
    else:
        where = Message(
            "{total:,} values are {far} the median of their {role}s", total=total, far=FAR, role=role
        )
        what = (
            Message(
                "{where}. Few of a {role}, which may be errors: {few}. More than {share:g} % of a {role}, "
                "which is rather a long tail, or another unit: {many}.",
                where=where,
                role=role,
                share=100 * FAR_OUT_SHARE,
                few=parts[0],
                many=parts[1],
            )
            if many
            else Message("{where}: {few}.", where=where, few=parts[0])
        )
    real = {
        "node": Message(
            "Correct typing errors; what is real is tamed by normal scores, which tests of edges take and "
            "models can ({normal}).",
            normal=Argument("marginals", "normal"),
        )
        if has_scores
        else _advise_logarithms(values, names, few),
        "covariate": "Correct typing errors; graphs at such values rest on very few rows.",
    }
    yield Finding("outliers", tuple(names[[*few, *many]]), what, real[role])


def _advise_logarithms(values: NDArray[np.float64], names: NDArray, few: Sequence[int]) -> str:
    """Only of columns that have them, and in which fewer values are far from the others then."""
    positive = [j for j in few if np.nanmin(values[:, j]) > 0]
    logs = np.log(values[:, positive])
    fewer = _far_out(logs).sum(axis=0) < _far_out(values[:, positive]).sum(axis=0)
    if not fewer.any():
        return (
            "Correct typing errors; what is real weighs much in the edges of its node: see what is left "
            "without these rows."
        )
    which = np.array(positive)[fewer]
    of = "" if len(which) == len(few) else f" in {listing(names[which])}"
    return f"Correct typing errors; of what is real{of}, logarithms are nearer to the rest."


def _far_columns(values: NDArray[np.float64], names: NDArray, counts: NDArray, which: list[int]) -> str:
    """Columns with how many values each has, and the farthest of them."""
    return first_few([_of_column(names[j], int(counts[j]), _farthest(values[:, j])) for j in which], _NAMED)


def _farthest(column: NDArray[np.float64]) -> Message:
    row = int(np.nanargmax(np.abs(column - np.nanmedian(column))))
    return Message("{value:.4g} in {row}", value=column[row], row=Row(row))


def _of_column(name: str, n_values: int, such: Message) -> Message:
    several = agreed(n_values, "", f"{n_values:,}, such as ")
    return Message("{name!r} ({several}{such})", name=name, several=several, such=such)


def bad_dates(column: pd.Series) -> Iterator[Finding]:
    """A column most of whose values are written like dates, though some of them are none."""
    odd = no_dates(column)
    if odd is None:
        return
    rows, texts = np.flatnonzero(odd), column[odd].astype(str)
    parts = [
        Message(
            "{text!r} in {rows}, first at {row}",
            text=text,
            rows=count(int(own.sum()), "row"),
            row=Row(int(rows[int(np.argmax(own.to_numpy()))])),
        )
        for text, own in ((text, texts == text) for text in texts.unique())
    ]
    yield Finding(
        "unreadable-dates",
        (str(column.name),),
        Message(
            "Column {name!r} looks like dates, but some of its values are none, so that it is not taken as "
            "one: {parts}.",
            name=str(column.name),
            parts=first_few(parts, _NAMED, "; "),
        ),
        "Correct these entries (dates are written as 2020-03-01) or leave the cells empty.",
    )


def date_number_findings(columns: Iterable[tuple[str, pd.Series]]) -> Iterator[Finding]:
    """Whole numbers such as 20200131, which are taken as numbers although they may be dates.

    Numbers such as 200131 may be many things: the name must say that they are dates.
    """
    for role, column in columns:
        name = str(column.name)
        notation = next((own for own in ("yyyymmdd", "yymmdd") if are_number_dates(column, own)), None)
        if notation == "yymmdd" and not (_DATE_NAME.search(name) and column.max() >= _SHORT_DATE):
            continue
        if notation is not None:
            yield Finding(
                "number-dates",
                (name,),
                f"{role.capitalize()} {name!r} is taken as numbers, but all of them, such as "
                f"{column.dropna().iloc[0]:.0f}, may be dates.",
                Message("Leave it out ({drop}).", drop=drop_argument([name]))
                if role == "node"
                else Message(
                    "If they are, use {dates}.", dates=Argument("date_format", notation, "from_table")
                ),
            )


def _numbers_with_units(name: str, odd: pd.Series, n_present: int) -> Iterator[Finding]:
    """A column that was left out because its numbers carry a unit, a percent sign or a currency."""
    texts = odd.astype(str)
    if len(odd) <= n_present / 2 or texts.nunique() < 3 or is_date(odd):
        return
    if have_units(texts):
        yield Finding(
            "numbers-with-units",
            (name,),
            f"Column {name!r} is left out and no node: it holds text that looks like numbers, such as "
            f"{texts.iloc[0]!r}.",
            f"{PLAIN_NUMBERS} if the column is to be a node.",
        )


def unused_findings(rest: pd.DataFrame) -> Iterator[Finding]:
    """Columns that were left out because of a few entries that are no numbers."""
    for name in rest.columns:
        yield from bad_dates(rest[name])
        column = rest[name].reset_index(drop=True).dropna()  # labels are row numbers
        if len(column) == 0 or pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
            continue
        numbers = pd.to_numeric(column.astype(object), errors="coerce")
        blank = column.astype(str).str.strip() == ""
        odd = column[numbers.isna()]
        yield from _numbers_with_units(str(name), odd[~blank], int((~blank).sum()))
        if len(odd) and (~blank & numbers.isna()).sum() < (~blank).sum() / 2:
            yield _text_among_numbers(str(name), odd.astype(str), len(column))


def _text_among_numbers(name: str, odd: pd.Series, n_present: int) -> Finding:
    """``odd`` are the texts, by row."""
    return Finding(
        "text-among-numbers",
        (name,),
        Message(
            "Column {name!r} is left out and no node: it holds numbers, but {few:,} of {n:,} values {are} "
            "text ({texts}, {first}{row}).",
            name=name,
            few=len(odd),
            n=n_present,
            are=agreed(len(odd), "is", "are"),
            texts=listing(odd.unique(), most=3),
            first=agreed(len(odd), "", "first in "),
            row=Row(int(odd.index[0])),
        ),
        Message(
            "If it is to be a node, correct {them}, or empty {cells} and use {drop} or {impute}.",
            them=agreed(len(odd), "it", "them"),
            cells=agreed(len(odd), "the cell", "these cells"),
            drop=Argument("missing", "drop"),
            impute=Argument("missing", "impute"),
        ),
    )
