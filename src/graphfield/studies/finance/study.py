"""A study of a network of stocks: split by date, fit, ask, compare, draw, save."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from graphfield.analysis import Bands, average_graphs, connectivity
from graphfield.analysis.dependence import dependence_test
from graphfield.analysis.verdict import Fitted, Verdict, reach_verdict
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import check_number
from graphfield.exceptions import ParameterError
from graphfield.graphs.groups import Groups
from graphfield.studies.finance.comparison import (
    MIN_MONTHS,
    HeldOutComparison,
    compare_with_static,
    no_news,
)
from graphfield.studies.finance.days import (
    HIGH,
    NORMAL,
    PERIODS,
    chosen_days,
    complete_days,
    event_date,
    high_and_normal,
    sectors_of,
    split_by_date,
    volatility_name,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class FinanceStudy:
    """What :func:`finance_study` found.

    Attributes
    ----------
    model : fitted estimator
    X, Z : DataFrame
        Residual returns and covariates of the days used, by date.
    period : Series
        ``train``, ``validation`` or ``test``, by date.
    volatility : str
        The covariate that days are called calm or turbulent by.
    sectors : dict or None
        Of each ticker in X.
    connectivity : DataFrame
        Measures of the graph of every day.
    days : Bands
        Graphs of the chosen days: partial correlations, zero where there is no edge.
    averages : Bands
        Average partial correlations of the normal and of the high days of the test period.
    cuts : dict
        Volatility above which a day is high, and below which it is normal.
    held_out : HeldOutComparison
        Whether the varying graph predicts the test days better than one graph for all days.
    evidence : object or None
        The result of ``graphfield.analysis.dependence_test``, where that was run.
    events : dict
        Date, or (start, end), to text.
    threshold, rule
        When an edge counts as present.
    seconds : float
        Time of the fit.
    notes : tuple of str
        Stocks and days that were left out.
    """

    model: GraphEstimator
    X: pd.DataFrame
    Z: pd.DataFrame
    period: pd.Series
    volatility: str
    sectors: dict[str, str] | None
    connectivity: pd.DataFrame
    days: Bands | None
    averages: Bands
    cuts: dict[str, float]
    held_out: HeldOutComparison
    evidence: Any
    events: dict[Any, str]
    threshold: float | str | None
    rule: str
    seconds: float
    notes: tuple[str, ...] = field(default=())

    @property
    def has_edges(self) -> bool:
        """Whether any day has an edge; without one there is nothing to be seen in the pictures."""
        density = self.connectivity["density"] if "density" in self.connectivity else pd.Series(dtype=float)
        return bool(self.averages.presence.any() or density.any())

    @property
    def doubt(self) -> str:
        """Why pictures of a graph that moves show no finding, in a few words; empty where they do."""
        if not self.has_edges:
            return f"the model found no edge: no |partial correlation| above {self.averages.threshold:.3g}"
        words = {"better": "", "not known": "too few later days to confirm that the graph varies"}
        return words.get(self.held_out.verdict, "later days do not confirm that the graph varies")

    @property
    def verdict(self) -> Verdict:
        """What later days and the permutation test say together."""
        with no_news():
            fitted = Fitted.of(self.model, self.Z)
        why = "" if self.held_out.model_gain else f"later days of {MIN_MONTHS} months are needed"
        return reach_verdict(fitted, self.held_out.model_gain, self.evidence, why_not=why)

    @property
    def edges(self) -> pd.DataFrame:
        """Edges of the chosen days: ``date, source, target, weight, partial_correlation``."""
        dates = [] if self.days is None else list(self.days.labels)
        rows = self.Z.loc[pd.DatetimeIndex(dates)]
        with no_news():
            table = self.model.edges(rows, threshold=self.threshold, rule=self.rule)
        labels = np.array(dates, dtype=object)[table["sample"].to_numpy(dtype=int)]
        return table.drop(columns="sample").assign(date=labels)[["date", *table.columns.drop("sample")]]

    @property
    def pairs(self) -> pd.DataFrame:
        """Every pair of stocks: average partial correlations ``normal``, ``high``, and ``difference``."""
        j, k = np.triu_indices(len(self.averages.node_names), 1)
        names = np.array(self.averages.node_names, dtype=object)
        normal, high = (self.averages.frame(label).to_numpy()[j, k] for label in (NORMAL, HIGH))
        table = pd.DataFrame({"source": names[j], "target": names[k], NORMAL: normal, HIGH: high})
        table["difference"] = high - normal
        if self.sectors is not None:
            same = [self.sectors[a] == self.sectors[b] for a, b in zip(names[j], names[k], strict=True)]
            table["same_sector"] = same
        return table.iloc[np.argsort(-np.abs(table["difference"].to_numpy()), kind="stable")].reset_index(
            drop=True
        )

    @property
    def summary(self) -> str:
        """What was found, in words."""
        from graphfield.studies.finance.output import described

        return described(self)

    def plot_connectivity(self, measures: Sequence[str] | None = None) -> NDArray:
        """Measures over time, the volatility below them, with events and periods marked: as many Axes."""
        from graphfield.studies.finance.figures import connectivity_over_time

        return connectivity_over_time(self, measures)

    def plot_beside(self, measure: str = "density", ax: Axes | None = None) -> Axes:
        """One measure over time with the volatility on a second axis."""
        from graphfield.studies.finance.figures import beside_volatility

        return beside_volatility(self, measure, ax)

    def plot_against(self, measure: str = "density", ax: Axes | None = None) -> Axes:
        """One measure against the volatility, a dot per day."""
        from graphfield.studies.finance.figures import against_volatility

        return against_volatility(self, measure, ax)

    def plot_days(self) -> NDArray:
        """Heatmaps of the chosen days, by sector, edges only, on one colour scale: one Axes per day."""
        from graphfield.studies.finance.figures import graphs_of_days

        return graphs_of_days(self)

    def plot_averages(self) -> NDArray:
        """Average graphs of the normal and of the high days, and the difference of the two: three Axes."""
        from graphfield.studies.finance.figures import average_graphs_of_bands

        return average_graphs_of_bands(self)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> list[Path]:
        """Write figures, tables, model and summary into a folder; see docs/finance.md for its files."""
        from graphfield.studies.finance.output import write_study

        return write_study(self, Path(folder), overwrite=overwrite)


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
        fitted to training days and what it chooses (penalty, when to stop) is chosen on validation days. An
        estimator whose ``fit`` takes no ``X_val`` is fitted to both. Without ``valid_until`` there are
        no validation days, and the model holds out training days of its own.
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
        Of the test whether the graph depends on the covariates at all, where this version has one; 0 leaves
        it out.

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
        raise ParameterError(f"high must not be below normal, got high={high} and normal={normal}.")
    X, Z, notes = complete_days(returns, covariates, start=start, end=end, max_missing=max_missing)
    period = split_by_date(pd.DatetimeIndex(X.index), train_until, valid_until)
    name = volatility_name(Z, volatility)
    groups = None if sectors is None else sectors_of(sectors, returns, X)
    chosen = chosen_days(days, pd.DatetimeIndex(X.index))
    marks = {event_date(place): str(text) for place, text in (events or {}).items()}
    begin = time.perf_counter()
    model, used = _fitted(estimator, X, Z, period)
    seconds = time.perf_counter() - begin
    # Days far outside the training covariates are warned of here, and once is enough.
    measured = connectivity(model, Z, measures, groups=groups, threshold=threshold, rule=rule)
    test = (period == "test").to_numpy()
    labels, cuts = high_and_normal(Z.loc[test, name], high, normal)
    with no_news():
        averages = average_graphs(model, Z[test], labels, name=name, threshold=threshold, rule=rule)
        one_day = _graphs_of(model, Z, chosen, threshold, rule)
    return FinanceStudy(
        model=model,
        X=X,
        Z=Z,
        period=period,
        volatility=name,
        sectors=groups,
        connectivity=measured,
        days=one_day,
        averages=averages,
        cuts=cuts,
        held_out=compare_with_static(model, X[used], Z[used], X[test], Z[test]),
        evidence=_evidence(X, Z, n_permutations),
        events=marks,
        threshold=threshold,
        rule=rule,
        seconds=seconds,
        notes=notes,
    )


def _fitted(
    estimator: GraphEstimator | None, X: pd.DataFrame, Z: pd.DataFrame, period: pd.Series
) -> tuple[GraphEstimator, Any]:
    """A fitted copy, and which days it was fitted to."""
    if estimator is None:
        from graphfield.estimators.dnncgm import DNNCGM  # torch is imported for those who need it

        estimator = DNNCGM(random_state=0)
    if not isinstance(estimator, GraphEstimator):
        raise ParameterError(f"estimator must be a graphfield estimator such as DNNCGM(), got {estimator!r}.")
    model: Any = clone(estimator)
    train, validation = ((period == name).to_numpy() for name in PERIODS[:2])
    if not validation.any():
        return model.fit(X[train], Z[train]), train
    if "X_val" in inspect.signature(model.fit).parameters:
        return model.fit(X[train], Z[train], X_val=X[validation], Z_val=Z[validation]), train
    both = train | validation
    return model.fit(X[both], Z[both]), both


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


def _evidence(X: pd.DataFrame, Z: pd.DataFrame, n_permutations: int) -> Any:
    """The permutation test of dependence, which respects that days follow each other."""
    check_number("n_permutations", n_permutations, 0, integer=True)
    return None if n_permutations == 0 else dependence_test(X, Z, time=X.index, n_permutations=n_permutations)
