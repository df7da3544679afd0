"""Prices to daily returns, and to what the market leaves of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from graphfield.estimators.inputs import check_number
from graphfield.exceptions import DataError, DataWarning, check_choice, listing, suggestion
from graphfield.studies.finance.tables import dated_table

KINDS = ("log", "simple")
# Prices that jump by one of these factors within 4 % were probably not adjusted for a split.
_SPLITS = np.array([2, 3, 4, 5, 6, 7, 8, 10, 15, 20], dtype=np.float64)
_NEAR = 0.04


def residual_returns(
    prices: Any,
    index: Any,
    *,
    lookback: int = 252,
    lag: int = 1,
    returns: str = "log",
    min_share: float = 0.9,
) -> pd.DataFrame:
    """Daily returns of stocks without what the market explains: ``r_it - beta_it * r_mt``.

    ``beta_it`` is the slope of the regression (with intercept) of the stock's returns on the market's over
    ``lookback`` days that end ``lag`` days before day t. So a residual never uses a later price, and its own
    day enters only as the returns of that day.

    Parameters
    ----------
    prices : DataFrame
        Dates x tickers; prices adjusted for splits and dividends. Rows in any order, each date once.
    index : Series, or str
        The market: prices by date, or the name of its column in ``prices``. Dates on which the index has no
        price are left out, with a warning.
    lookback : int, default 252
        Days in a regression, about a year; more is steadier and follows changes of beta later.
    lag : int, default 1
        Days between the end of a regression and the day it is used for, at least 1.
    returns : {"log", "simple"}, default "log"
        Returns are differences of log prices, or relative changes (the published data of the paper are
        residuals of relative changes).
    min_share : float in (0, 1], default 0.9
        Share of the look-back in which a stock must have returns. With less its residual is missing, so a
        stock that is listed later begins about a year after its listing.

    Returns
    -------
    DataFrame
        Dates x tickers, as fractions (0.01 is one per cent), from the first day with any residual. Missing
        where the stock has no price on that day or the day before, or no beta.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from graphfield.studies.finance import residual_returns
    >>> days = pd.bdate_range("2020-01-01", periods=400)
    >>> steps = 0.01 * np.random.default_rng(0).normal(size=(400, 3))
    >>> prices = pd.DataFrame(100 * np.exp(steps.cumsum(axis=0)), index=days, columns=["A", "B", "SPX"])
    >>> residual_returns(prices, "SPX").shape
    (147, 2)
    """
    stocks, market = aligned_prices(prices, index)
    moves = daily_returns(stocks, returns)
    market_moves = daily_returns(market.to_frame(), returns).iloc[:, 0]
    beta = rolling_beta(moves, market_moves, lookback=lookback, lag=lag, min_share=min_share)
    residuals = moves - beta.mul(market_moves, axis=0)
    known = residuals.notna().any(axis=1).to_numpy()
    if not known.any():
        raise DataError(
            "No stock has returns in enough days of any look-back: there are no residuals."
        ).about(argument="prices")
    return residuals.iloc[int(np.argmax(known)) :]


def daily_returns(prices: Any, returns: str = "log") -> pd.DataFrame:
    """Returns from each date to the next; missing where one of the two prices is.

    Prices that are not above zero are refused. A price that jumps by a factor of 2, 3, 4 and so on in one day
    looks like a split that was not adjusted for, and gives a warning.

    Examples
    --------
    >>> import pandas as pd
    >>> days = pd.to_datetime(["2020-01-02", "2020-01-03"])
    >>> daily_returns(pd.DataFrame({"A": [100.0, 110.0]}, index=days), "simple")["A"].round(4).tolist()
    [0.1]
    """
    check_choice("returns", returns, KINDS)
    table = dated_table(prices, "The table of prices")
    values = table.to_numpy()
    row, column = np.nonzero(values <= 0)
    if len(row):
        raise DataError(
            f"Prices must be above zero, but {table.columns[column[0]]!r} has {values[row[0], column[0]]:g} "
            f"on {table.index[row[0]].date()}. Set days without a price to missing."
        ).about(argument="prices", column=table.columns[column[0]])
    steps = np.diff(np.log(values), axis=0)
    _warn_of_splits(steps, table)
    moves = steps if returns == "log" else np.expm1(steps)
    return pd.DataFrame(moves, index=table.index[1:], columns=table.columns)


def rolling_beta(
    returns: pd.DataFrame, market: pd.Series, *, lookback: int = 252, lag: int = 1, min_share: float = 0.9
) -> pd.DataFrame:
    """Slopes of the regressions of each stock on the market, as :func:`residual_returns` uses them.

    Both have the same dates, and the market has no missing returns.
    """
    check_number("lookback", lookback, 3, integer=True)
    check_number("lag", lag, 1, integer=True)
    check_number("min_share", min_share, 0, 1, open_low=True)
    n, first = len(returns), lookback + lag - 1
    if n <= first:
        raise DataError(
            f"A look-back of {lookback} days with a lag of {lag} needs at least {first + 2} dates with "
            f"prices, got {n + 1}. Give more history, or a shorter lookback."
        ).about(argument="lookback")
    x = market.to_numpy(dtype=np.float64)
    windows = sliding_window_view(x, lookback)[: n - first]
    fewest = max(3, int(np.ceil(min_share * lookback)))
    beta = np.full(returns.shape, np.nan)
    for j in range(returns.shape[1]):
        y = returns.iloc[:, j].to_numpy(dtype=np.float64)
        beta[first:, j] = _slopes(windows, sliding_window_view(y, lookback)[: n - first], fewest)
    return pd.DataFrame(beta, index=returns.index, columns=returns.columns)


def _slopes(x: NDArray, y: NDArray, fewest: int) -> NDArray[np.float64]:
    """Slope of y on x in each row, over the entries where y is known."""
    known = np.isfinite(y)
    count = known.sum(axis=1)
    centred = (x - ((x * known).sum(axis=1) / np.maximum(count, 1))[:, None]) * known
    spread = np.einsum("wl,wl->w", centred, centred)
    if np.any((spread == 0) & (count >= fewest)):
        raise DataError(
            "The index does not move over a whole look-back. Check that it is a series of prices."
        ).about(argument="index")
    together = np.einsum("wl,wl->w", centred, np.where(known, y, 0.0))
    enough = count >= fewest
    return np.divide(together, spread, out=np.full(len(x), np.nan), where=enough)


def aligned_prices(prices: Any, index: Any) -> tuple[pd.DataFrame, pd.Series]:
    """Stocks and market on the dates on which the market and some stock have a price."""
    stocks = dated_table(prices, "The table of prices")
    if isinstance(index, str):
        if index not in stocks:
            raise DataError(
                f"The table of prices has no column {index!r} for the index."
                f"{suggestion(index, stocks.columns)} It has {listing(stocks.columns)}."
            ).about(argument="index")
        market, stocks = stocks[index], stocks.drop(columns=index)
    else:
        table = dated_table(index, "The index")
        if table.shape[1] != 1:
            raise DataError(
                f"The index must be one series, got {listing(table.columns)}. Choose one of them."
            ).about(argument="index")
        market = table.iloc[:, 0]
    if not stocks.shape[1]:
        raise DataError("The table of prices holds no stocks beside the index.").about(argument="prices")
    traded = stocks.index[stocks.notna().any(axis=1)]
    both = traded.intersection(market.index[market.notna()])
    if not len(both):
        raise DataError("Prices and index have no date in common.").about(argument="index")
    lost = traded[(traded >= both[0]) & (traded <= both[-1])].difference(both)
    if len(lost):
        warnings.warn(
            f"Dates with prices of stocks, but none of the index, are left out: {len(lost)}, the first on "
            f"{lost[0].date()}. Returns reach over them.",
            DataWarning,
            stacklevel=3,
        )
    return stocks.loc[both], market.loc[both]


def _warn_of_splits(steps: NDArray[np.float64], table: pd.DataFrame) -> None:
    near = np.zeros(steps.shape, dtype=bool)
    for factor in np.log(_SPLITS):
        near |= np.abs(np.abs(steps) - factor) < _NEAR
    if not near.any():
        return
    row, column = np.nonzero(near)
    stocks = [str(table.columns[j]) for j in np.unique(column)]
    j = column[0]
    warnings.warn(
        f"Prices of {listing(stocks)} change by a factor of 2, 3, 4 or so in one day (first "
        f"{table.columns[j]!r} on {table.index[row[0] + 1].date()}), as they do at a split. Check "
        "that prices are adjusted for splits.",
        DataWarning,
        stacklevel=3,
    )
