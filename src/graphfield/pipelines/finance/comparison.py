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

from graphfield.analysis.evidence import percent
from graphfield.data.frames import node_values
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.graphical_lasso import GraphicalLasso
from graphfield.estimators.held_out import HeldOut, Yardstick
from graphfield.exceptions import ExtrapolationWarning

# Fewer months than this have no standard error worth the name.
MIN_MONTHS = 6
_CLEAR = 2.0  # standard errors
_NOTHING = 1e-6  # a difference of rounding


@dataclass(frozen=True)
class HeldOutComparison:
    """A varying graph against one graph for all days, on days that neither has seen.

    Gains are shares by which the varying graph lowers the squared error with which each stock is predicted
    from all others, averaged over stocks; negative where it is worse. In standard errors the days of one
    month count as one; they are NaN with fewer than 6 months.

    Attributes
    ----------
    gain, standard_error : float
        Over the model's own graph, averaged over the days that it was fitted to: what is gained because the
        graph varies, and by nothing else.
    gain_over_lasso, standard_error_over_lasso : float
        Over a static graph of another estimator, :class:`~graphfield.GraphicalLasso`, fitted to the same
        days, with the model's normal scores and means. A gain over this one alone shows that the model is
        the better estimator, not that the graph varies.
    verdict : {"better", "no clear difference", "worse", "not known"}
        Better than both by more than two standard errors, worse than its own average by as much, neither, or
        too few months to say.
    sentence : str
        The same in words.
    months : DataFrame
        ``month``, ``days`` and the squared errors ``varying``, ``own_average`` and ``graphical_lasso``, in
        units of the own average's error over all days.
    """

    gain: float
    standard_error: float
    gain_over_lasso: float
    standard_error_over_lasso: float
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
    """Compare a fitted model with static graphs on the days of ``X_test``, a table with dates as index.

    Both static graphs have the model's normal scores, means and scales, which may move with the covariates,
    so that what differs is the graph: the model's own, averaged over the rows of Z (the days that it was
    fitted to), and a graphical lasso of X.
    """
    dates = pd.DatetimeIndex(X_test.index)
    months = dates.to_period("M")
    units = np.unique(months.to_numpy(), return_inverse=True)[1]
    with no_news():
        values = node_values(model._match_nodes(X_test))
        rows = HeldOut(values, model._match_covariates(Z_test), units)
        left = _deviations(model, X, Z)
        nothing = pd.DataFrame(index=range(len(left)))
        lasso = GraphicalLasso().fit(left, nothing).predict_coef(nothing.iloc[:1])[0]
        varying, other = rows.residuals(model), rows.residuals_with(model, lasso)
        own = rows.residuals_of_average(model, model._match_covariates(Z))
    yardstick = Yardstick.of(own, units)
    errors = {
        "varying": yardstick.errors(varying),
        "own_average": yardstick.errors(own),
        "graphical_lasso": yardstick.errors(other),
    }
    n_months = int(units.max()) + 1

    def gain(over: str) -> tuple[float, float]:
        value, error = yardstick.gain(errors[over], errors["varying"])
        return value, error if n_months >= MIN_MONTHS else math.nan

    gains = [gain("own_average"), gain("graphical_lasso")]
    table = pd.DataFrame({"month": months.astype(str), **errors}).groupby("month")
    by_month = table.mean().assign(days=table.size()).reset_index()[["month", "days", *errors]]
    when = f"On {len(dates):,} later days ({dates[0].date()} to {dates[-1].date()}, {n_months} months)"
    verdict = _verdict(gains)
    return HeldOutComparison(*gains[0], *gains[1], verdict, _sentence(verdict, gains, when), by_month)


def _deviations(model: GraphEstimator, X: pd.DataFrame, Z: pd.DataFrame) -> NDArray[np.float64]:
    """Node values (normal scores, where the model is one of these) less the model's means, in its units."""
    values = node_values(model._match_nodes(X)).astype(np.float64)
    scores = values if model._scores is None else model._scores.transform(values)
    encoded = model._encode_frame(model._match_covariates(Z))
    return (scores - model._mean_at(encoded)) / model._unit_at(encoded)


def _verdict(gains: list[tuple[float, float]]) -> str:
    if any(math.isnan(error) for _, error in gains):
        return "not known"
    if all(gain > _CLEAR * error for gain, error in gains):
        return "better"
    own, error = gains[0]
    return "worse" if own < -_CLEAR * error else "no clear difference"


def _sentence(verdict: str, gains: list[tuple[float, float]], when: str) -> str:
    if verdict == "not known":
        return (
            f"{when}, too few to say whether a graph that varies with the covariates predicts better than "
            f"one graph for all days (at least {MIN_MONTHS} months)."
        )
    words = {
        "better": "predicts better than one graph for all days",
        "worse": "predicts worse than one graph for all days",
        "no clear difference": "predicts no better than one graph for all days, as far as they can tell",
    }
    own, lasso = (_size(gain, error) for gain, error in gains)
    return (
        f"{when}, a graph of the fitted model that varies with the covariates {words[verdict]}: its squared "
        f"error is {own} that of its own average over the days it was fitted to, and {lasso} that of a "
        "graphical lasso."
    )


def _size(gain: float, error: float) -> str:
    if abs(gain) < _NOTHING:
        return "equal to"
    side = "below" if gain > 0 else "above"
    return f"{percent(abs(gain))} {side} (standard error {percent(error)})"
