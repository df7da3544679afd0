"""Connectivity against a covariate or over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.estimators.inputs import check_number
from graphfield.exceptions import DataError, check_choice
from graphfield.graphs.connectivity import MEASURES
from graphfield.plots.style import GREY, colours, from_zero, new_axes, points, short, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 20
_FEWEST = 8  # rows in a bin


def plot_connectivity(
    values: pd.Series | pd.DataFrame | NDArray,
    against: pd.Series | pd.Index | NDArray | Sequence[Any],
    *,
    measure: str | None = None,
    name: str | None = None,
    beside: pd.Series | NDArray | None = None,
    events: Mapping[Any, str] | None = None,
    smooth: int | None = None,
    rows: str = "rows",
    groups: str = "groups",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """One measure of connectivity against a covariate, or over time.

    Against numbers: a dot per row, the mean in up to 20 bins of equally many rows, and shaded the middle
    80 % of each bin. Against text: one box per level. Against dates: a line.

    Parameters
    ----------
    values : Series, array, or DataFrame of ``graphfield.analysis.connectivity``
    against : Series, Index or array of the same length
        Values of a covariate, or dates.
    measure : str, optional
        The column of the table to draw; the first by default.
    name : str, optional
        Of the axis below; by default the name of ``against``.
    beside : Series or array, optional
        A second series over the same rows, such as a volatility index, on an axis of its own at the right.
    events : mapping from date, or value, or (start, end), to text, optional
        Marked by a line, or a shaded stretch, with the text above.
    smooth : int, optional
        Over time, draw the running mean of so many rows, and the rows themselves faintly behind it.
    rows, groups : str
        What rows of the table and groups of nodes are, such as ``"subjects"`` and ``"sectors"``.
    title : str
    ax : Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from graphfield.plots import plot_connectivity
    >>> rng = np.random.default_rng(0)
    >>> axes = plot_connectivity(rng.normal(size=100), rng.uniform(20, 80, 100), name="age")
    """
    check_number("smooth", smooth, 2, integer=True, optional=True)
    series, label = _series(values, measure, groups)
    if len(series) != len(against):
        raise DataError(
            f"Connectivity and what it is drawn against must have the same rows, got {len(series)} and "
            f"{len(against)}."
        ).about(argument="against")
    where = pd.Series(np.asarray(against))
    below = name or str(getattr(against, "name", None) or "")
    ax = new_axes(ax, 8.5 if _is_time(where) else 6.5, 4.0)
    blue, orange = colours(2)
    if _is_time(where):
        order = np.argsort(where.to_numpy(), kind="stable")
        _line(ax, where.to_numpy()[order], series[order], smooth, rows, blue)
    elif pd.api.types.is_numeric_dtype(where) and not pd.api.types.is_bool_dtype(where):
        _dots_and_bins(ax, where.to_numpy(dtype=np.float64), series, rows, blue, orange)
    else:
        _boxes(ax, where.astype(str).to_numpy(), series, blue)
    ax.set(xlabel=below, ylabel=label)
    from_zero(ax, series)
    ax.spines[["top"]].set_visible(False)
    if beside is not None:
        _second_axis(ax, where, beside, orange)
        ax.yaxis.label.set_color(blue)
    else:
        ax.spines[["right"]].set_visible(False)
    lines = mark_events(ax, events or {})
    ax.set_title(title, fontsize=10, pad=6 + 9 * lines)
    return ax


def _series(values: Any, measure: str | None, groups: str) -> tuple[NDArray[np.float64], str]:
    """The numbers to draw and what to call them."""
    if isinstance(values, pd.DataFrame):
        chosen = str(values.columns[0]) if measure is None else measure
        check_choice("measure", chosen, [str(column) for column in values.columns])
        values = values[chosen]
    name = str(getattr(values, "name", None) or measure or "connectivity")
    label = MEASURES[name].label(groups) if name in MEASURES else name
    return np.asarray(values, dtype=np.float64), label


def _is_time(where: pd.Series) -> bool:
    return pd.api.types.is_datetime64_any_dtype(where)


def _line(ax: Any, where: NDArray, series: NDArray, smooth: int | None, rows: str, colour: Any) -> None:
    if smooth is None:
        ax.plot(where, series, color=colour, linewidth=0.9)
    else:
        ax.plot(where, series, color=colour, linewidth=0.5, alpha=0.25)
        mean = pd.Series(series).rolling(smooth, center=True, min_periods=1).mean()
        ax.plot(where, mean, color=colour, linewidth=1.4, label=f"mean of {smooth} {rows}")
    ax.margins(x=0.01)


def _dots_and_bins(ax: Any, where: NDArray, series: NDArray, rows: str, dots: Any, line: Any) -> None:
    known = np.isfinite(where) & np.isfinite(series)
    where, series = where[known], series[known]
    if not len(where):
        raise DataError("There is no row in which both are known: nothing to draw.").about(argument="against")
    ax.plot(where, series, ".", color=dots, markersize=3, alpha=float(np.clip(300 / len(where), 0.08, 0.6)))
    n_bins = int(np.clip(len(where) // _FEWEST, 1, _BINS))
    cuts = np.unique(np.quantile(where, np.arange(1, n_bins) / n_bins)) if n_bins > 1 else np.zeros(0)
    code = np.unique(np.searchsorted(cuts, where), return_inverse=True)[1]
    parts = [series[code == i] for i in range(code.max() + 1)]
    centre = np.array([where[code == i].mean() for i in range(len(parts))])
    mean = np.array([part.mean() for part in parts])
    low, high = np.array([np.quantile(part, [0.1, 0.9]) for part in parts]).T
    ax.fill_between(centre, low, high, color=line, alpha=0.15, linewidth=0, label=f"10 % to 90 % of {rows}")
    ax.plot(centre, mean, color=line, marker="o", markersize=3.5, label="mean")
    ax.legend(fontsize=8, frameon=False, loc="best")


def _boxes(ax: Any, where: NDArray, series: NDArray, colour: Any) -> None:
    levels = list(dict.fromkeys(sorted(where)))
    known = np.isfinite(series)
    ax.boxplot(
        [series[(where == level) & known] for level in levels],
        positions=range(len(levels)),
        widths=0.5,
        flierprops={"marker": ".", "markersize": 2, "markeredgecolor": GREY},
        medianprops={"color": colour, "linewidth": 1.6},
    )
    crowded = sum(len(level) for level in levels) > 60
    ax.set_xticks(range(len(levels)), [short(level) for level in levels])
    ax.tick_params(axis="x", rotation=45 if crowded else 0)


def _second_axis(ax: Any, where: pd.Series, beside: Any, colour: Any) -> None:
    values = np.asarray(beside, dtype=np.float64)
    if len(values) != len(where):
        raise DataError.of("beside", f"must have the same rows: {len(where)}, got {len(values)}.")
    other = ax.twinx()
    order = np.argsort(where.to_numpy(), kind="stable")
    other.plot(where.to_numpy()[order], values[order], color=colour, linewidth=0.8, alpha=0.75)
    other.set_ylabel(str(getattr(beside, "name", None) or ""), color=colour)
    other.spines[["top"]].set_visible(False)


def mark_events(ax: Any, events: Mapping[Any, str]) -> int:
    """Lines or stretches, their texts above the axes on as many lines as they need; how many those are."""
    from matplotlib.dates import date2num

    size = 7.0
    marks = []
    for place, text in events.items():
        ends = place if isinstance(place, tuple) else (place, place)
        first, last = (
            x if isinstance(x, (int, float, np.number)) else date2num(pd.Timestamp(x)) for x in ends
        )
        marks.append((float(first), float(last), short(text, 30)))
    if not marks:
        return 0
    left, right = ax.get_xlim()
    scale = points(ax)[0] / (right - left)
    taken: list[float] = []  # where each line of text ends
    for first, last, text in sorted(marks):
        if last > first:
            ax.axvspan(first, last, color=GREY, alpha=0.15, linewidth=0)
        else:
            ax.axvline(first, color=GREY, linewidth=0.8, linestyle=":")
        width = text_width(text, size)
        middle = (0.5 * (first + last) - left) * scale
        start = float(np.clip(middle - width / 2, 0, max(0.0, points(ax)[0] - width)))
        line = next((i for i, end in enumerate(taken) if start > end + 4), len(taken))
        taken[line : line + 1] = [start + width]
        ax.annotate(
            text,
            xy=(start / points(ax)[0], 1.0),
            xycoords="axes fraction",
            xytext=(0, 2 + 9 * line),
            textcoords="offset points",
            fontsize=size,
            color="#333333",
            va="bottom",
        )
    ax.set_xlim(left, right)
    return len(taken)
