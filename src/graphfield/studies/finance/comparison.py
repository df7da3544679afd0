"""Does a graph that varies with the covariates predict later days better than one graph for all days?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from graphfield.analysis.model_gain import ModelGain, gain_of
from graphfield.analysis.unseen_rows import predict_new_rows
from graphfield.estimators.base import GraphEstimator

# Fewer months than this have no standard error worth the name.
MIN_MONTHS = 6


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
        As :class:`~graphfield.ModelGain` has it; not known with too few months.
    model_gain : ModelGain or None
        The same comparison as for any other table, with the better of two static graphs; None with too few
        months.
    months : DataFrame
        ``month``, ``days`` and the squared errors ``varying``, ``own_average`` and ``graphical_lasso``, in
        units of the own average's error over all days.
    """

    gain: float
    standard_error: float
    gain_over_lasso: float
    standard_error_over_lasso: float
    model_gain: ModelGain | None
    months: pd.DataFrame

    @property
    def verdict(self) -> str:
        return "not known" if self.model_gain is None else self.model_gain.answer


def compare_with_static(
    model: GraphEstimator, X: pd.DataFrame, Z: pd.DataFrame, X_test: pd.DataFrame, Z_test: pd.DataFrame
) -> HeldOutComparison:
    """Compare a fitted model with static graphs on the days of ``X_test``, a table with dates as index.

    All static graphs have the model's normal scores, means and scales, which may move with the covariates, so
    that what differs is the graph: the model's own, averaged over the rows of Z (the days that it was fitted
    to), and those of X by other methods.
    """
    months = pd.DatetimeIndex(X_test.index).to_period("M")
    units = np.unique(months.to_numpy(), return_inverse=True)[1]
    left = predict_new_rows(model, X, Z, X_test, Z_test, units)
    stick, lasso = left.yardstick, left.static["graphical lasso"]
    errors = {
        "varying": stick.errors(left.model),
        "own_average": stick.errors(left.average),
        "graphical_lasso": stick.errors(lasso),
    }
    enough = int(units.max()) + 1 >= MIN_MONTHS
    over_average, over_lasso = left.over(left.average), left.over(lasso)
    table = pd.DataFrame({"month": months.astype(str), **errors}).groupby("month")
    by_month = table.mean().assign(days=table.size()).reset_index()[["month", "days", *errors]]
    return HeldOutComparison(
        gain=over_average.value,
        standard_error=over_average.standard_error if enough else math.nan,
        gain_over_lasso=over_lasso.value,
        standard_error_over_lasso=over_lasso.standard_error if enough else math.nan,
        model_gain=gain_of(left, "month", "later days") if enough else None,
        months=by_month,
    )
