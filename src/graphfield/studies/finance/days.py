"""Which days and stocks a study is of: complete ones, periods, chosen days, calm and turbulent ones."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.tables import check_described
from graphfield.estimators.inputs import check_number
from graphfield.exceptions import DataError, DataWarning, ParameterError, listing, suggestion
from graphfield.graphs.groups import Groups, group_labels
from graphfield.messages import Argument
from graphfield.studies.finance.tables import as_day, dated_table, read_sectors

PERIODS = ("train", "validation", "test")
HIGH, NORMAL = "high", "normal"
# Fewer days than this are no period.
_FEWEST_DAYS = {"train": 50, "validation": 10, "test": 10}


def complete_days(
    returns: Any, covariates: Any, *, start: Any = None, end: Any = None, max_missing: float = 0.01
) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
    """Returns and covariates on the days on which all are known, and notes on what was left out.

    Stocks that lack more than ``max_missing`` of the days between start and end go first, then days.
    """
    check_number("max_missing", max_missing, 0, 1)
    X, Z = dated_table(returns, "The table of returns"), dated_table(covariates, "The table of covariates")
    if not Z.shape[1]:
        raise DataError("The table of covariates has no column beside the dates.").about(
            argument="covariates"
        )
    shared = sorted(set(X.columns) & set(Z.columns))
    if shared:
        raise DataError(
            f"{listing(shared)} is a stock and a covariate at the same time. Rename one of them."
        ).about(argument="covariates", column=shared[0])
    first = X.index[0] if start is None else as_day(start, Argument("start"))
    last = X.index[-1] if end is None else as_day(end, Argument("end"))
    X = X.loc[first:last]
    X = X.loc[X.notna().any(axis=1)]
    notes = []
    share = X.isna().mean()
    late = [str(name) for name in share.index[share > max_missing]]
    if late:
        X = X.drop(columns=late)
        notes.append(
            f"Stocks without a return on more than {100 * max_missing:g} % of the days are left out: "
            f"{listing(late, most=len(late))}. A later start keeps those that were listed later."
        )
    if X.shape[1] < 2:
        raise DataError(
            f"A network needs at least 2 stocks with returns, {X.shape[1]} are left. " + " ".join(notes)
        ).about(argument="returns")
    whole = X.notna().all(axis=1)
    known = Z.notna().all(axis=1).reindex(X.index, fill_value=False)
    for lost, what in ((~whole, "a stock has no return"), (whole & ~known, "a covariate is not known")):
        if lost.any():
            when = f"first on {X.index[int(np.argmax(lost.to_numpy()))].date()}"
            count = f"{int(lost.sum()):,} of {len(X):,}"
            notes.append(f"Days on which {what} are left out: {count}, the {when}.")
    for note in notes:
        warnings.warn(note, DataWarning, stacklevel=3)
    kept = X.index[whole & known]
    if not len(kept):
        raise DataError(
            "There is no day on which all stocks and covariates are known. " + " ".join(notes)
        ).about(argument="covariates")
    return X.loc[kept], Z.loc[kept], tuple(notes)


def split_by_date(dates: pd.DatetimeIndex, train_until: Any, valid_until: Any = None) -> pd.Series:
    """``train``, ``validation`` or ``test`` for every date; without ``valid_until`` none is validation.

    >>> import pandas as pd
    >>> from graphfield.studies.finance.days import split_by_date
    >>> dates = pd.bdate_range("2019-01-01", "2021-12-31")
    >>> split_by_date(dates, "2019-12-31", "2020-12-31").value_counts().to_dict()
    {'validation': 262, 'train': 261, 'test': 261}
    """
    first = as_day(train_until, Argument("train_until"))
    second = first if valid_until is None else as_day(valid_until, Argument("valid_until"))
    if second < first:
        raise ParameterError(
            "{argument} ({second_day}) must not be before {first} ({first_day}).",
            argument=Argument("valid_until"),
            second_day=second.date(),
            first=Argument("train_until"),
            first_day=first.date(),
        )
    labels = np.select([dates <= first, dates <= second], ["train", "validation"], "test")
    for period in PERIODS if valid_until is not None else ("train", "test"):
        count = int((labels == period).sum())
        if count < _FEWEST_DAYS[period]:
            raise DataError(
                f"The {period} period has {count} days, at least {_FEWEST_DAYS[period]} are needed. The days "
                f"go from {dates[0].date()} to {dates[-1].date()}; training ends with {first.date()}"
                + (f", validation with {second.date()}." if valid_until is not None else ".")
            ).about(argument="train_until")
    return pd.Series(labels, index=dates, name="period", dtype=object)


def chosen_days(days: Sequence[Any], dates: pd.DatetimeIndex) -> list[pd.Timestamp]:
    """The chosen days, each once; one that is not among the days of the study is an error."""
    asked = [days] if isinstance(days, str) else list(days)
    chosen = list(dict.fromkeys(as_day(day, "Each of days") for day in asked))
    for day in chosen:
        if day not in dates:
            place = int(dates.searchsorted(day))
            near = [str(date.date()) for date in dates[max(0, place - 1) : place + 1]]
            raise DataError(
                f"{day.date()} is no day of the study: not a trading day, or one that was left out. The "
                f"nearest are {' and '.join(near)}."
            ).about(argument="days")
    return chosen


def volatility_name(Z: pd.DataFrame, name: str | None) -> str:
    """The covariate that tells calm from turbulent days."""
    known = [str(column) for column in Z.columns]
    if name is None:
        found = [column for column in known if "vix" in column.lower()]
        if len(found) != 1:
            raise ParameterError(
                "{argument} must name the covariate that tells calm from turbulent days; of {known}, "
                "{how_many} 'vix' in the name.",
                argument=Argument("volatility"),
                known=listing(known),
                how_many="several have" if found else "none has",
            )
        return found[0]
    if name not in known:
        raise ParameterError.of(
            "volatility",
            f"must be a covariate, got {name!r}.{suggestion(name, known)} They are {listing(known)}.",
        )
    return name


def sectors_of(sectors: Groups | str | Path, returns: Any, X: pd.DataFrame) -> dict[str, str]:
    """The sector of every stock of the study."""
    if isinstance(sectors, (str, Path)):
        table = read_sectors(sectors)
        check_described(table, list(X.columns), Argument("sectors"), sectors, "ticker", "sector")
        sectors = table
    if isinstance(sectors, (dict, pd.Series)):
        return dict(zip(X.columns, group_labels(dict(sectors), list(X.columns)), strict=True))
    names = list(dated_table(returns, "The table of returns").columns)
    known = dict(zip(names, group_labels(sectors, names), strict=True))
    return {name: known[name] for name in X.columns}


def high_and_normal(
    values: pd.Series, high: float, normal: float
) -> tuple[NDArray[np.object_], dict[str, float]]:
    """The label of each day, None between the two, and the cuts."""
    upper, lower = (float(np.quantile(values, share)) for share in (high, normal))
    above, below = (values > upper).to_numpy(), (values < lower).to_numpy()
    for found, what, cut in ((above, "above", upper), (below, "below", lower)):
        if not found.any():
            raise DataError(
                f"No test day has {values.name!r} {what} {cut:g}: it hardly moves in the test period. Choose "
                "another covariate for volatility, or other values of high and normal."
            ).about(argument="volatility", column=values.name)
    labels = np.full(len(values), None, dtype=object)
    labels[below], labels[above] = NORMAL, HIGH
    return labels, {HIGH: upper, NORMAL: lower}


def event_date(place: Any) -> Any:
    """A date, or (start, end)."""
    if isinstance(place, tuple):
        if len(place) != 2:
            raise ParameterError(f"An event is at a date, or from (start, end), got {place!r}.").about(
                argument="events"
            )
        return as_day(place[0], "The start of an event"), as_day(place[1], "The end of an event")
    return as_day(place, "The date of an event")
