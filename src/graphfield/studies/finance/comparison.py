"""Does a graph that varies with the covariates predict later days better than one graph for all days?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from graphfield.estimators.base import GraphEstimator
from graphfield.inference.model_gain import ModelGain, gain_of
from graphfield.inference.unseen_rows import predict_new_rows
from graphfield.numbers import Gain

# Fewer months than this have no standard error worth the name.
MIN_MONTHS = 6


@dataclass(frozen=True)
class HeldOutComparison:
    """A varying graph against one graph for all days, on days that neither has seen.

    Attributes
    ----------
    over_average : Gain
        Over the model's own graph, averaged over the days that it was fitted to: what is gained because the
        graph varies, and by nothing else. In standard errors the days of one month count as one; they are
        NaN with fewer than 6 months.
    over_lasso : Gain
        Over a :class:`~graphfield.GraphicalLasso` of the same days, with the model's normal scores and means.
        A gain over this one alone shows that the model is the better estimator, not that the graph varies.
    model_gain : ModelGain or None
        The comparison as for any other table, with the better of two static graphs; None with too few months.
    months : DataFrame
        ``month``, ``days`` and the squared errors ``varying``, ``own_average`` and ``graphical_lasso``, in
        units of the own average's error over all days.
    """

    over_average: Gain
    over_lasso: Gain
    model_gain: ModelGain | None
    months: pd.DataFrame

    @property
    def gain(self) -> float:
        return self.over_average.value

    @property
    def gain_over_lasso(self) -> float:
        return self.over_lasso.value

    @property
    def verdict(self) -> str:
        """ "better", "no clear difference", "worse", or "not known" with too few months."""
        return "not known" if self.model_gain is None else self.model_gain.answer


def compare_with_static(
    model: GraphEstimator, X: pd.DataFrame, Z: pd.DataFrame, X_test: pd.DataFrame, Z_test: pd.DataFrame
) -> HeldOutComparison:
    """Compare a model, fitted to X and Z, with static graphs on the days of ``X_test``, which are its index.

    All static graphs have the model's normal scores, means and scales, so that what differs is the graph.
    """
    months = pd.DatetimeIndex(X_test.index).to_period("M")
    units = np.unique(months.to_numpy(), return_inverse=True)[1]
    left = predict_new_rows(model, X, Z, X_test, Z_test, units)
    lasso, enough = left.static["graphical lasso"], int(units.max()) + 1 >= MIN_MONTHS
    over_average, over_lasso = left.over(left.average), left.over(lasso)
    if not enough:
        over_average, over_lasso = (replace(g, standard_error=math.nan) for g in (over_average, over_lasso))
    rests = {"varying": left.model, "own_average": left.average, "graphical_lasso": lasso}
    errors = {name: left.yardstick.errors(rest) for name, rest in rests.items()}
    table = pd.DataFrame({"month": months.astype(str), **errors}).groupby("month")
    by_month = table.mean().assign(days=table.size()).reset_index()[["month", "days", *errors]]
    model_gain = gain_of(left, "month", "later days") if enough else None
    return HeldOutComparison(over_average, over_lasso, model_gain, by_month)
