"""Does a graph that varies with the covariates predict later days better than one graph for all days?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.frames import node_values
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.graphical_lasso import GraphicalLasso
from graphfield.estimators.held_out import HeldOut, Yardstick
from graphfield.exceptions import ExtrapolationWarning

# Fewer months than this have no standard error worth the name.
MIN_MONTHS = 6
_CLEAR = 2.0  # standard errors


@dataclass(frozen=True)
class HeldOutComparison:
    """A varying graph against one graph for all days, on days that neither has seen.

    Attributes
    ----------
    gain : float
        Share by which the varying graph lowers the squared error with which each stock is predicted from all
        others, averaged over stocks; negative where it is worse.
    standard_error : float
        Of the gain; days of one month count as one. NaN with fewer than 6 months.
    verdict : {"better", "no clear difference", "worse", "not known"}
        Better or worse by more than two standard errors, neither, or too few months to say.
    sentence : str
        The same in words.
    months : DataFrame
        ``month``, ``days`` and the squared errors ``varying`` and ``static``, in units of the static graph's
        error over all days.
    """

    gain: float
    standard_error: float
    verdict: str
    sentence: str
    months: pd.DataFrame


@contextmanager
def no_news() -> Iterator[None]:
    """Without another warning of days that lie far outside the training covariates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        yield


def compare_with_static(
    model: GraphEstimator, X: pd.DataFrame, Z: pd.DataFrame, X_test: pd.DataFrame, Z_test: pd.DataFrame
) -> HeldOutComparison:
    """Compare a fitted model with its static twin on the days of ``X_test``, a table with dates as index.

    The twin has the model's normal scores and means, which may move with the covariates, and one graph for
    all days, fitted by :class:`~graphfield.GraphicalLasso` to X and Z (the days that the model was fitted
    to). So what differs between the two is whether the graph varies.
    """
    dates = pd.DatetimeIndex(X_test.index)
    months = dates.to_period("M")
    units = np.unique(months.to_numpy(), return_inverse=True)[1]
    with no_news():
        values = node_values(model._match_nodes(X_test))
        varying = HeldOut(values, model._match_covariates(Z_test), units).residuals(model)
        static = values - _static_fit(model, X, Z, X_test, Z_test)
    yardstick = Yardstick.of(static, units)
    errors = {"varying": yardstick.errors(varying), "static": yardstick.errors(static)}
    lower = errors["static"] - errors["varying"]
    n_months = int(units.max()) + 1
    gain = float(lower.mean())
    error = yardstick.standard_error(lower) if n_months >= MIN_MONTHS else math.nan
    table = pd.DataFrame({"month": months.astype(str), **errors}).groupby("month")
    by_month = table.mean().assign(days=table.size()).reset_index()[["month", "days", "varying", "static"]]
    when = f"On {len(dates):,} later days ({dates[0].date()} to {dates[-1].date()}, {n_months} months)"
    verdict = _verdict(gain, error)
    return HeldOutComparison(gain, error, verdict, _sentence(verdict, gain, error, when), by_month)


def _static_fit(
    model: GraphEstimator, X: pd.DataFrame, Z: pd.DataFrame, X_test: pd.DataFrame, Z_test: pd.DataFrame
) -> NDArray[np.float64]:
    """What the twin predicts for every stock and test day from the other stocks."""

    def parts(nodes: pd.DataFrame, covariates: pd.DataFrame) -> tuple[NDArray, NDArray]:
        values = node_values(model._match_nodes(nodes)).astype(np.float64)
        scores = values if model._scores is None else model._scores.transform(values)
        mean = model._mean_at(model._encode_frame(model._match_covariates(covariates)))
        return scores - mean, mean

    left, _ = parts(X, Z)
    left_test, mean = parts(X_test, Z_test)
    nothing = pd.DataFrame(index=range(len(left))), pd.DataFrame(index=range(len(left_test)))
    twin = GraphicalLasso().fit(left, nothing[0])
    fitted = mean + twin.predict(left_test, nothing[1])
    return fitted if model._scores is None else model._scores.restore(fitted)


def _verdict(gain: float, error: float) -> str:
    if math.isnan(error):
        return "not known"
    if abs(gain) <= _CLEAR * error:
        return "no clear difference"
    return "better" if gain > 0 else "worse"


def _sentence(verdict: str, gain: float, error: float, when: str) -> str:
    if verdict == "not known":
        return (
            f"{when}, too few to say whether a graph that varies with the covariates predicts better than "
            f"one graph for all days (at least {MIN_MONTHS} months)."
        )
    size = f"{100 * abs(gain):.2f} % (standard error {100 * error:.2f} %)"
    ways = {
        "better": f"a graph that varies with the covariates predicts better: its squared error is {size} "
        "below that of one graph for all days.",
        "worse": f"a graph that varies with the covariates predicts worse: its squared error is {size} "
        "above that of one graph for all days.",
        "no clear difference": "a graph that varies with the covariates predicts no better than one graph "
        f"for all days, as far as they can tell: its squared error is {size} "
        f"{'lower' if gain > 0 else 'higher'}.",
    }
    return f"{when}, {ways[verdict]}"
