"""The figures of a study of stocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import ParameterError, check_choice
from graphfield.graphs.connectivity import MEASURES
from graphfield.pipelines.finance.days import HIGH, NORMAL
from graphfield.report.plots import plot_connectivity, plot_difference, plot_heatmaps, pyplot
from graphfield.report.plots.connectivity import mark_events
from graphfield.report.plots.style import GREY, colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from graphfield.pipelines.finance.study import FinanceStudy

# Measures over time that are drawn by default, those of them that the study has.
_SHOWN = ("density", "mean_strength", "clustering", "modularity")
_MONTH = 21  # trading days
# Few entries of a heatmap are far larger than all others; these are drawn at full colour.
_FULL_COLOUR = 0.995


def connectivity_over_time(study: FinanceStudy, measures: Sequence[str] | None = None) -> NDArray:
    """One panel per measure, daily and as a mean over 21 days, and the volatility below."""
    plt = pyplot()
    table = study.connectivity
    shown = [name for name in (_SHOWN if measures is None else measures) if measures or name in table]
    for name in shown:
        check_choice("measures", name, list(table.columns))
    blue, orange = colours(2)
    axes = plt.subplots(
        len(shown) + 1,
        1,
        figsize=(10, 1.7 * (len(shown) + 1) + 0.6),
        sharex=True,
        squeeze=False,
        layout="constrained",
    )[1]
    series = [(table[name], MEASURES[name].label, blue) for name in shown]
    series.append((study.Z[study.volatility], study.volatility, orange))
    for axis, (values, label, colour) in zip(axes[:, 0], series, strict=True):
        smooth = values.rolling(_MONTH, min_periods=1).mean()
        axis.plot(values.index, values, color=colour, linewidth=0.5, alpha=0.35, label="day")
        axis.plot(values.index, smooth, color=colour, linewidth=1.3, label=f"mean of {_MONTH} days")
        axis.set_ylabel(_broken(label), fontsize=8)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.005)
        _mark_periods(axis, study, named=axis is axes[-1, 0])
    axes[-1, 0].legend(fontsize=7, frameon=False, loc="upper left", ncols=2)
    lines = mark_events(axes[0, 0], study.events)
    for axis in axes[1:, 0]:
        mark_events(axis, dict.fromkeys(study.events, ""))
    axes[0, 0].set_title("Connectivity over time", fontsize=10, pad=6 + 9 * lines)
    return axes.ravel()


def beside_volatility(study: FinanceStudy, measure: str = "density", ax: Axes | None = None) -> Axes:
    check_choice("measure", measure, list(study.connectivity.columns))
    label = MEASURES[measure].label
    smooth = (
        study.connectivity[measure]
        .rolling(_MONTH, min_periods=1)
        .mean()
        .rename(f"{label} (mean of {_MONTH} days)")
    )
    ax = plot_connectivity(
        smooth,
        study.connectivity.index,
        name="date",
        beside=study.Z[study.volatility],
        events=study.events,
        title=f"{label.capitalize()} beside {study.volatility}",
        ax=ax,
    )
    _mark_periods(ax, study, named=True)
    return ax


def against_volatility(study: FinanceStudy, measure: str = "density", ax: Axes | None = None) -> Axes:
    return plot_connectivity(
        study.connectivity,
        study.Z[study.volatility].to_numpy(),
        measure=measure,
        name=study.volatility,
        title=f"{MEASURES[measure].label.capitalize()} of every day" if measure in MEASURES else "",
        ax=ax,
    )


def graphs_of_days(study: FinanceStudy) -> NDArray:
    if study.days is None:
        raise ParameterError("No days were chosen: name some in days=[...] of finance_study.")
    level = study.Z.loc[pd.DatetimeIndex(study.days.labels), study.volatility].to_numpy()
    titles = [
        f"{label}\n{study.volatility} {value:.4g}, density {100 * share:.1f} %"
        for label, value, share in zip(study.days.labels, level, study.days.density, strict=True)
    ]
    matrices = list(study.days.matrices)
    return plot_heatmaps(
        matrices, titles, study.days.node_names, groups=study.sectors, limit=_limit(matrices)
    )


def average_graphs_of_bands(study: FinanceStudy) -> NDArray:
    normal, high = (study.averages.frame(label) for label in (NORMAL, HIGH))
    counts = dict(zip(study.averages.labels, study.averages.n_rows, strict=True))
    name = study.volatility
    labels = [
        f"{name} below {study.cuts[NORMAL]:.4g} ({counts[NORMAL]:,} days)",
        f"{name} above {study.cuts[HIGH]:.4g} ({counts[HIGH]:,} days)",
    ]
    matrices = [normal.to_numpy(), high.to_numpy()]
    axes = plot_difference(normal, high, labels=labels, groups=study.sectors, limit=_limit(matrices))
    largest = float(np.abs(matrices[1] - matrices[0]).max())
    axes[2].set_title(f"high minus normal (at most {largest:.2f})", fontsize=10)
    return axes


def _limit(matrices: Sequence[Any]) -> float:
    """The value at full colour."""
    sizes = np.concatenate([np.abs(matrix[np.triu_indices(len(matrix), 1)]) for matrix in matrices])
    return float(np.quantile(sizes, _FULL_COLOUR) or sizes.max())


def _mark_periods(ax: Any, study: FinanceStudy, *, named: bool) -> None:
    """A line where each period begins, with its name."""
    for period in ("validation", "test"):
        own = study.period.index[study.period == period]
        if not len(own):
            continue
        ax.axvline(own[0], color=GREY, linewidth=0.8)
        if named:
            ax.annotate(
                period,
                xy=(own[0], 1),
                xycoords=("data", "axes fraction"),
                xytext=(3, -2),
                textcoords="offset points",
                fontsize=7,
                color=GREY,
                va="top",
            )


def _broken(label: str, most: int = 18) -> str:
    """A label on as many lines as it needs."""
    from textwrap import fill

    return fill(label, most)
