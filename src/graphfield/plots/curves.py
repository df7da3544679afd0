"""Edges as curves over a covariate, and the training curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from graphfield.analysis.errors import LEVEL
from graphfield.exceptions import DataError, ParameterError, listing
from graphfield.plots.style import GREY, colours, edge_names, new_axes, require_columns, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_BESIDE = 0.05  # how far dots of several edges stand from each other, in distances between levels


def plot_edge_curves(curves: pd.DataFrame, *, title: str = "", ax: Axes | None = None) -> Axes:
    """Partial correlations over one covariate, as ``graphfield.analysis.edge_curves`` gives them.

    Lines are averages over the other covariates, shaded from the 10 % to the 90 % quantile over the rows
    averaged: how much the other covariates matter, and no error of the line. Levels of a category are dots
    with bars, joined where there are two. Where the table has intervals (of an ``Ensemble`` with
    ``resample=True``), these are shaded instead. The legend says which.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import edge_curves
    >>> from graphfield.plots import plot_edge_curves
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> axes = plot_edge_curves(edge_curves(model, "z1", sim.Z, most=2))
    """
    require_columns(curves, ["covariate", "value", "source", "target", "partial_correlation"], "edge_curves")
    names = list(curves["covariate"].unique())
    if len(names) > 1:
        raise DataError(f"One covariate is drawn at a time, but the table has {listing(names)}.")
    edges = [(edge, part) for edge, part in curves.groupby(["source", "target"], sort=False)]
    ax = new_axes(ax, 7.5, 4.2)
    has_intervals = {"interval_low", "interval_high"} <= set(curves.columns)
    ends = ("interval_low", "interval_high") if has_intervals else ("low", "high")
    is_numeric = pd.api.types.is_numeric_dtype(curves["value"])
    draw = _lines if is_numeric else _levels
    draw(ax, [part for _, part in edges], ends)
    ax.axhline(0, color=GREY, linewidth=0.6, zorder=0)
    ax.set(xlabel=names[0], ylabel="partial correlation")
    ax.set_title(title, fontsize=10)
    ax.margins(x=0.01 if is_numeric else 0.08)
    ax.spines[["top", "right"]].set_visible(False)
    n_columns = 1 if len(edges) <= 18 else 2
    handles = ax.get_legend_handles_labels()[0]
    if not has_intervals and (curves["high"] > curves["low"]).any():
        handles.append(_spread_key(is_numeric))
    ax.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        fontsize=8,
        frameon=False,
        ncols=n_columns,
        title=f"with intervals of {LEVEL:.0%}".replace("%", " %") if has_intervals else None,
        title_fontsize=8,
    )
    return ax


def _spread_key(shaded: bool) -> Any:
    """For the legend: what is shaded, or a bar, is often taken for an error of the line."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    label = f"{'shaded' if shaded else 'bars'}: 10 to 90 % of rows,\nwhose other covariates differ"
    if shaded:
        return Patch(color=GREY, alpha=0.25, linewidth=0, label=label)
    return Line2D([], [], color=GREY, marker="|", markersize=12, linestyle="none", label=label)


def _lines(ax: Any, parts: list[pd.DataFrame], ends: tuple[str, str]) -> None:
    low, high = ends
    for part, colour in zip(parts, colours(len(parts)), strict=True):
        part = part.sort_values("value")
        ax.plot(part["value"], part["partial_correlation"], color=colour, label=edge_names(part)[0])
        if (part[high] > part[low]).any():
            ax.fill_between(part["value"], part[low], part[high], color=colour, alpha=0.13, linewidth=0)


def _levels(ax: Any, parts: list[pd.DataFrame], ends: tuple[str, str]) -> None:
    low, high = ends
    levels = list(dict.fromkeys(parts[0]["value"]))
    reach = min(0.25, _BESIDE * (len(parts) - 1) / 2)
    aside = np.linspace(-reach, reach, len(parts))
    for part, colour, shift in zip(parts, colours(len(parts)), aside, strict=True):
        where = np.array([levels.index(level) for level in part["value"]]) + shift
        middle = part["partial_correlation"].to_numpy()
        label = edge_names(part)[0]
        ax.plot(where, middle, "o", color=colour, markersize=5, label=label)
        if (part[high] > part[low]).any():
            ax.vlines(where, part[low], part[high], color=colour)
        if len(levels) == 2:  # the slope is the answer
            ax.plot(where, middle, color=colour, linewidth=0.8, alpha=0.5, zorder=1)
    crowded = sum(len(str(level)) for level in levels) > 70
    ax.set_xticks(range(len(levels)), [short(level) for level in levels])
    ax.tick_params(axis="x", rotation=45 if crowded else 0)


def plot_training(training: Any, *, ax: Axes | None = None) -> Axes:
    """Training and held-out loss over the steps of a fit.

    Parameters
    ----------
    training : fitted :class:`~graphfield.DNNCGM` or its table ``training_``
        Of a model, the step that was kept is marked.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.plots import plot_training
    >>> sim = gf.make_setting("G1", n_samples=120, random_state=0)
    >>> axes = plot_training(gf.DNNCGM(max_steps=40, random_state=0).fit(sim.X[:, :5], sim.Z))
    """
    table = training if isinstance(training, pd.DataFrame) else getattr(training, "training_", None)
    if table is None or not {"step", "train_loss", "held_out_loss"} <= set(table.columns):
        raise ParameterError(
            "plot_training draws a fitted DNNCGM or its training_ table with step, train_loss and "
            f"held_out_loss, got {type(training).__name__}."
        )
    ax = new_axes(ax, 7.0, 3.8)
    marker = "o" if len(table) <= 60 else None
    lines = zip(("train_loss", "held_out_loss"), ("training rows", "held-out rows"), colours(2), strict=True)
    phases = _phases(table)
    for column, label, colour in lines:
        for number, part in enumerate(phases):
            name = label if number == 0 else None
            ax.plot(part["step"], part[column], color=colour, marker=marker, markersize=3, label=name)
    if len(phases) > 1:
        _name_phases(ax, phases)
    best = getattr(training, "best_step_", None)
    if best is not None:
        ax.axvline(best, color=GREY, linewidth=0.9, linestyle="--", label=f"kept: step {best:,}")
    ax.set(xlabel="step", ylabel="loss")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def _phases(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Stretches of training with the same number of patterns; all of it where there are none."""
    if "rank" not in table:
        return [table]
    return [part for _, part in table.groupby((table["rank"] != table["rank"].shift()).cumsum(), sort=False)]


def _name_phases(ax: Any, phases: list[pd.DataFrame]) -> None:
    for part in phases:
        first = float(part["step"].iloc[0])
        ax.axvline(first, color=GREY, linewidth=0.5, linestyle=":")
        text = f"{int(part['rank'].iloc[0])} patterns"
        ax.annotate(
            text,
            (first, 1.0),
            xytext=(2, 2),
            xycoords=("data", "axes fraction"),
            fontsize=7,
            textcoords="offset points",
            rotation=20,
            color="#333333",
        )
