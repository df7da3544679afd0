"""The figures of a study of stocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import ParameterError, check_choice
from graphfield.graphs.connectivity import MEASURES
from graphfield.plots import plot_connectivity, plot_difference, plot_heatmaps, pyplot
from graphfield.plots.connectivity import mark_events
from graphfield.plots.heatmaps import above_pictures
from graphfield.plots.style import GREY, colours, from_zero, full_colour
from graphfield.studies.finance.days import HIGH, NORMAL
from graphfield.studies.finance.graphs import MarketGraphs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Measures over time that are drawn by default, those of them that the study has.
_SHOWN = ("density", "mean_strength", "clustering", "modularity")
_MONTH = 21  # trading days
_LABEL = 18  # letters on a line
# Few entries of a heatmap are far larger than all others; these are drawn at full colour.
_FULL_COLOUR = 0.995


def connectivity_over_time(study: MarketGraphs, measures: Sequence[str] | None = None) -> NDArray:
    """Measures over time, by day and as means over 21 days, and the volatility below: as many Axes."""
    table = study.connectivity
    shown = [name for name in (_SHOWN if measures is None else measures) if measures or name in table]
    for name in shown:
        check_choice("measures", name, list(table.columns))
    blue, orange = colours(2)
    size = (10, 1.7 * (len(shown) + 1) + 0.6)
    axes = pyplot().subplots(
        len(shown) + 1, 1, figsize=size, sharex=True, squeeze=False, layout="constrained"
    )[1]
    series = [(table[name], _label(name), blue) for name in shown]
    series.append((study.Z[study.volatility], study.volatility, orange))
    for axis, (values, label, colour) in zip(axes[:, 0], series, strict=True):
        axis.plot(values.index, values, color=colour, linewidth=0.5, alpha=0.35, label="day")
        axis.plot(values.index, _smooth(values), color=colour, linewidth=1.3, label=f"mean of {_MONTH} days")
        axis.set_ylabel(fill(label, _LABEL), fontsize=8)
        if axis is not axes[-1, 0]:
            _fit_scale(axis, values.to_numpy(dtype=np.float64))
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.005)
        _mark_periods(axis, study, named=axis is axes[-1, 0])
    axes[-1, 0].legend(fontsize=7, frameon=False, loc="upper left", ncols=2)
    lines = mark_events(axes[0, 0], study.events)
    for axis in axes[1:, 0]:
        mark_events(axis, dict.fromkeys(study.events, ""))
    axes[0, 0].set_title(f"Connectivity over time{study.caution}", fontsize=10, pad=6 + 9 * lines)
    return axes.ravel()


def beside_volatility(study: MarketGraphs, measure: str = "density", ax: Axes | None = None) -> Axes:
    """One measure over time with the volatility on a second axis."""
    check_choice("measure", measure, list(study.connectivity.columns))
    label = _label(measure)
    ax = plot_connectivity(
        _smooth(study.connectivity[measure]).rename(f"{label} (mean of {_MONTH} days)"),
        study.connectivity.index,
        name="date",
        beside=study.Z[study.volatility],
        events=study.events,
        title=f"{label.capitalize()} beside {study.volatility}{study.caution}",
        ax=ax,
    )
    _mark_periods(ax, study, named=True)
    return ax


def against_volatility(study: MarketGraphs, measure: str = "density", ax: Axes | None = None) -> Axes:
    """One measure against the volatility, a dot per day."""
    check_choice("measure", measure, list(study.connectivity.columns))
    ax = plot_connectivity(
        study.connectivity,
        study.Z[study.volatility].to_numpy(),
        measure=measure,
        name=study.volatility,
        title=f"{_label(measure).capitalize()} of every day{study.caution}",
        ax=ax,
    )
    ax.set_ylabel(_label(measure))
    return ax


def graphs_of_days(study: MarketGraphs) -> NDArray:
    """Heatmaps of the chosen days, by sector, edges only, on one colour scale: one Axes per day."""
    if study.days is None:
        raise ParameterError("No days were chosen: name some in days=[...] of finance_study.").about(
            argument="days"
        )
    level = study.Z.loc[pd.DatetimeIndex(study.days.labels), study.volatility].to_numpy()
    titles = [
        f"{label}\n{study.volatility} {value:.4g}, density {100 * share:.1f} %"
        for label, value, share in zip(study.days.labels, level, study.days.density, strict=True)
    ]
    shown = list(study.days.matrices)
    axes = plot_heatmaps(shown, titles, study.days.node_names, groups=study.sectors, limit=_limit(shown))
    return _with_doubt(axes, study)


def average_graphs_of_bands(study: MarketGraphs) -> NDArray:
    """Average graphs of the normal and of the high days, and the difference of the two: three Axes."""
    normal, high = (study.averages.frame(label) for label in (NORMAL, HIGH))
    counts = dict(zip(study.averages.labels, study.averages.n_rows, strict=True))
    labels = [
        f"{study.volatility} {side} {study.cuts[label]:.4g} ({counts[label]:,} days)"
        for label, side in ((NORMAL, "below"), (HIGH, "above"))
    ]
    matrices = [normal.to_numpy(), high.to_numpy()]
    axes = plot_difference(normal, high, labels=labels, groups=study.sectors, limit=_limit(matrices))
    largest = float(np.abs(matrices[1] - matrices[0]).max())
    size = f"at most {largest:.2g}" if largest >= 0.001 else "less than 0.001"
    axes[2].set_title(f"high minus normal ({size})", fontsize=10)
    return _with_doubt(axes, study)


def _with_doubt(axes: NDArray, study: MarketGraphs) -> NDArray:
    if study.doubt:
        above_pictures(axes[0].figure, f"({study.doubt})")
    return axes


def figure_of(draw: Callable[[], Any]) -> Any:
    """The figure of what draws one or several Axes."""
    return np.ravel(draw())[0].figure


def _smooth(values: pd.Series) -> pd.Series:
    return values.rolling(_MONTH, min_periods=1).mean()


def _label(measure: str) -> str:
    return MEASURES[measure].label("sectors")


def _fit_scale(ax: Any, values: NDArray[np.float64]) -> None:
    """No negative numbers where there can be none, and a word where there is nothing to draw."""
    from_zero(ax, values)
    if not np.isfinite(values).any():
        middle = {"transform": ax.transAxes, "ha": "center", "va": "center"}
        ax.text(0.5, 0.5, "not defined on any day", fontsize=8, **middle)


def _limit(matrices: Sequence[Any]) -> float:
    """The value at full colour."""
    sizes = np.concatenate([np.abs(matrix[np.triu_indices(len(matrix), 1)]) for matrix in matrices])
    return full_colour(np.quantile(sizes, _FULL_COLOUR) or sizes)


def _mark_periods(ax: Any, study: MarketGraphs, *, named: bool) -> None:
    """A line where each period begins, with its name."""
    for period in ("validation", "test"):
        own = study.period.index[study.period == period]
        if not len(own):
            continue
        ax.axvline(own[0], color=GREY, linewidth=0.8)
        if named:
            # At the bottom: events have their names at the top.
            where = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "bottom"}
            ax.annotate(period, (own[0], 0), (3, 8), fontsize=7, color=GREY, **where)
