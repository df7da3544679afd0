"""A study of a network of stocks: split by date, fit, compare, ask, draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from graphfield.analysis import Bands, average_graphs, connectivity
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import check_number
from graphfield.exceptions import ParameterError
from graphfield.graphs.groups import Groups
from graphfield.studies.finance import figures
from graphfield.studies.finance.comparison import compare_with_static
from graphfield.studies.finance.days import (
    PERIODS,
    chosen_days,
    complete_days,
    event_date,
    high_and_normal,
    sectors_of,
    split_by_date,
    volatility_name,
)
from graphfield.studies.finance.graphs import MarketGraphs
from graphfield.studies.study import Steps, no_news

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class FinanceStudy(MarketGraphs):
    """What :func:`finance_study` found, beside what every :class:`~graphfield.studies.study.Study` has.

    Attributes
    ----------
    X, Z : DataFrame
        Residual returns and covariates of the days used, by date; ``fitted`` are those of training.
    period : Series
        ``train``, ``validation`` or ``test``, by date.
    volatility : str
        The covariate that days are called calm or turbulent by.
    sectors : dict or None
        Of each ticker in X.
    connectivity : DataFrame
        Measures of the graph of every day.
    days : Bands or None
        Graphs of the chosen days: partial correlations, zero where there is no edge.
    averages : Bands
        Average partial correlations of the normal and of the high days of the test period.
    cuts : dict
        Volatility above which a day is high, and below which it is normal.
    held_out : HeldOutComparison
        Whether the varying graph predicts the test days better than one graph for all days.
    events : dict
        Date, or (start, end), to text.
    """

    plot_connectivity = figures.connectivity_over_time
    plot_beside = figures.beside_volatility
    plot_against = figures.against_volatility
    plot_days = figures.graphs_of_days
    plot_averages = figures.average_graphs_of_bands

    def drawings(self) -> dict[str, Callable[[], Figure]]:
        measure = "density" if "density" in self.connectivity else str(self.connectivity.columns[0])
        drawn: dict[str, Callable[[], Any]] = {
            "connectivity": partial(self.plot_connectivity, None if measure == "density" else [measure]),
            "beside_volatility": partial(self.plot_beside, measure),
            "against_volatility": partial(self.plot_against, measure),
            "averages": self.plot_averages,
        }
        if self.days is not None:
            drawn["days"] = self.plot_days
        return {name: partial(figures.figure_of, draw) for name, draw in drawn.items()}


def finance_study(
    returns: Any,
    covariates: Any,
    *,
    train_until: Any,
    valid_until: Any = None,
    volatility: str | None = None,
    sectors: Groups | str | Path | None = None,
    days: Sequence[Any] = (),
    events: Mapping[Any, str] | None = None,
    start: Any = None,
    end: Any = None,
    estimator: GraphEstimator | None = None,
    measures: Sequence[str] | None = None,
    threshold: float | str | None = "auto",
    rule: str = "and",
    high: float = 0.9,
    normal: float = 0.5,
    max_missing: float = 0.01,
    n_permutations: int = 199,
    tell: Callable[[str], None] | None = None,
) -> FinanceStudy:
    """Fit graphs of stocks that depend on the market's condition, and look at them over time.

    Parameters
    ----------
    returns : DataFrame
        Dates x tickers, as from :func:`residual_returns`.
    covariates : DataFrame
        Dates x covariates, such as VIX and returns of indices on the same day. A graph then describes
        a day whose covariates are known; for a forecast, shift the covariates by a day first.
    train_until, valid_until : date
        Last days of the training and of the validation period; test days are all later ones. The model is
        fitted to training days and what it chooses (penalty, when to stop) is chosen on validation days.
        Without ``valid_until`` there are none, and the model holds out training days of its own.
    volatility : str, optional
        The covariate that tells calm from turbulent days; by default the one with "vix" in its name.
    sectors : mapping from ticker to sector, one sector per column, or path of a table of both, optional
        For blocks in the heatmaps and for connectivity within and between sectors.
    days : list of dates
        Whose graphs are drawn.
    events : mapping from date, or (start, end), to text, optional
        Marked in the figures over time.
    start, end : date, optional
        First and last day of the study.
    estimator : estimator, optional
        Default: ``DNNCGM(random_state=0)``. A copy of it is fitted.
    measures : list of str, optional
        Of connectivity, as in :func:`graphfield.analysis.connectivity`.
    threshold, rule
        When an edge counts as present, as in ``predict_graph``.
    high, normal : float
        A test day is high where its volatility is above this quantile of the test period, and normal where
        it is below that one. 0.9 and 0.5 are those of the paper.
    max_missing : float
        Stocks without a return on more than this share of the days are left out; then the days on which one
        of the others has none, or a covariate is missing.
    n_permutations : int
        Of the test whether the graph depends on the covariates at all; 0 leaves it out.
    tell : callable, optional
        Is told what is being done.

    Examples
    --------
    >>> import numpy as np, pandas as pd, graphfield as gf
    >>> from graphfield.studies.finance import finance_study
    >>> days = pd.bdate_range("2020-01-01", periods=400)
    >>> rng = np.random.default_rng(0)
    >>> returns = pd.DataFrame(rng.normal(size=(400, 3)), index=days, columns=["A", "B", "C"])
    >>> vix = pd.DataFrame({"vix": rng.uniform(10, 40, 400)}, index=days)
    >>> study = finance_study(returns, vix, train_until="2020-10-30", estimator=gf.RegGMM(), threshold=0.1)
    >>> study.held_out.verdict in ("no clear difference", "worse")
    True
    """
    for name, value in (("high", high), ("normal", normal)):
        check_number(name, value, 0, 1, open_low=True, open_high=True)
    if high < normal:
        raise ParameterError.of("high", f"must not be below normal, got high={high} and normal={normal}.")
    check_number("n_permutations", n_permutations, 0, integer=True)
    X, Z, notes = complete_days(returns, covariates, start=start, end=end, max_missing=max_missing)
    dates = pd.DatetimeIndex(X.index)
    period = split_by_date(dates, train_until, valid_until)
    name = volatility_name(Z, volatility)
    groups = None if sectors is None else sectors_of(sectors, returns, X)
    chosen = chosen_days(days, dates)
    marks = {event_date(place): str(text) for place, text in (events or {}).items()}
    train, validation, test = ((period == part).to_numpy() for part in PERIODS)
    own = {"X_val": X[validation], "Z_val": Z[validation]} if validation.any() else {}
    steps = Steps(tell)
    estimator = _default_estimator() if estimator is None else estimator
    model = steps.fit(estimator, X[train], Z[train], "training days", **own)
    # Days far outside the training covariates are warned of here, and once is enough.
    measured = connectivity(model, Z, measures, groups=groups, threshold=threshold, rule=rule)
    labels, cuts = high_and_normal(Z.loc[test, name], high, normal)
    with no_news():
        averages = average_graphs(model, Z[test], labels, name=name, threshold=threshold, rule=rule)
        one_day = _graphs_of(model, Z, chosen, threshold, rule)
    with steps.take("comparison", "Predicting later days by the varying graph and by one graph for all ..."):
        held_out = compare_with_static(model, X[train], Z[train], X[test], Z[test])
    evidence = None
    if n_permutations:
        evidence = steps.test(X, Z, "stretches of days", time=X.index, n_permutations=n_permutations)
    return FinanceStudy(
        model=model,
        Z=Z,
        fitted=train,
        n_rows=int(train.sum()),
        gain=held_out.model_gain,
        evidence=evidence,
        averages=averages,
        threshold=threshold,
        rule=rule,
        notes=notes,
        seconds=steps.seconds,
        X=X,
        period=period,
        volatility=name,
        sectors=groups,
        connectivity=measured,
        days=one_day,
        cuts=cuts,
        held_out=held_out,
        events=marks,
    )


def _default_estimator() -> GraphEstimator:
    from graphfield.estimators.dnncgm import DNNCGM  # torch is imported for those who need it

    return DNNCGM(random_state=0)


def _graphs_of(
    model: GraphEstimator,
    Z: pd.DataFrame,
    dates: list[pd.Timestamp],
    threshold: float | str | None,
    rule: str,
) -> Bands | None:
    """The edges of each of the chosen days."""
    if not dates:
        return None
    labels = [str(date.date()) for date in dates]
    found = average_graphs(model, Z.loc[dates], labels, threshold=threshold, rule=rule)
    return replace(found, matrices=found.matrices * (found.presence > 0))
