"""Edges as curves over a covariate, and the training curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from graphfield.analysis.errors import LEVEL
from graphfield.exceptions import DataError, ParameterError, listing
from graphfield.inference.curve import WHY_GAPS
from graphfield.inference.edge_inference import EdgeInference
from graphfield.plots.style import GREY, colours, edge_names, new_axes, require_columns, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_BESIDE = 0.05  # how far dots of several edges stand from each other, in distances between levels


def plot_edge_curves(
    curves: pd.DataFrame | EdgeInference,
    along: str | None = None,
    edges: Sequence[tuple[str, str]] | None = None,
    *,
    level: float = 0.9,
    rows: str = "rows",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Partial correlations over one covariate, with bands where :func:`graphfield.infer_edges` gives them.

    Lines are averages over the other covariates. Levels of a category are dots with bars, joined where there
    are two. The legend says what is shaded.

    Parameters
    ----------
    curves : EdgeInference or DataFrame
        What ``infer_edges`` returned: shaded are intervals at each value and, lighter, intervals that cover
        the whole curve. Or a table of ``graphfield.analysis.edge_curves``: shaded is from the 10 % to the
        90 % quantile over the rows averaged, which is how much the other covariates matter and no error of
        the line, or, where the table has intervals (of an ``Ensemble`` with ``resample=True``), these.
    along : str, optional
        The covariate, of an ``EdgeInference`` with several.
    edges : list of (source, target), optional
        Of an ``EdgeInference``: by default the edge that moves most clearly, else the clearest one.
    level : float
        Of the intervals of an ``EdgeInference``.
    rows : str
        What rows of the table are, such as ``"subjects"``.
    title : str
    ax : Axes, optional

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import edge_curves
    >>> from graphfield.plots import plot_edge_curves
    >>> sim = gf.make_setting("G1", n_samples=120, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> axes = plot_edge_curves(edge_curves(model, "z1", sim.Z, most=2))
    >>> axes = plot_edge_curves(gf.infer_edges(sim.X[:, :4], sim.Z), "z1", [("x1", "x2")])
    """
    if isinstance(curves, EdgeInference):
        curves, reach = _banded_table(curves, along, edges, level), level
    elif along is not None or edges is not None:
        raise ParameterError(
            "A table of curves has its covariate and edges: leave along and edges out."
        ).about(argument="along")
    else:
        reach = LEVEL
    require_columns(curves, ["covariate", "value", "source", "target", "partial_correlation"], "edge_curves")
    names = list(curves["covariate"].unique())
    if len(names) > 1:
        raise DataError(f"One covariate is drawn at a time, but the table has {listing(names)}.").about(
            argument="curves"
        )
    parts = [part for _, part in curves.groupby(["source", "target"], sort=False)]
    ax = new_axes(ax, 7.5, 4.2)
    has_intervals = {"interval_low", "interval_high"} <= set(curves.columns)
    ends = ("interval_low", "interval_high") if has_intervals else ("low", "high")
    is_numeric = pd.api.types.is_numeric_dtype(curves["value"])
    draw = _lines if is_numeric else _levels
    draw(ax, parts, [ends, *([("whole_low", "whole_high")] if "whole_low" in curves else [])])
    ax.axhline(0, color=GREY, linewidth=0.6, zorder=0)
    ax.set(xlabel=names[0], ylabel="partial correlation")
    ax.set_title(title, fontsize=10)
    ax.margins(x=0.01 if is_numeric else 0.08)
    ax.spines[["top", "right"]].set_visible(False)
    n_columns = 1 if len(parts) <= 18 else 2
    handles = ax.get_legend_handles_labels()[0]
    if not has_intervals and (curves["high"] > curves["low"]).any():
        handles.append(_spread_key(is_numeric, rows))
    ax.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        fontsize=8,
        frameon=False,
        ncols=n_columns,
        title=_intervals_key(curves, reach, is_numeric) if has_intervals else None,
        title_fontsize=8,
    )
    return ax


def _banded_table(
    found: EdgeInference, along: str | None, edges: Sequence[tuple[str, str]] | None, level: float
) -> pd.DataFrame:
    """Curves of some edges with both bands, in the columns of a table of curves."""
    known = [column.name for column in found.schema.encoder.columns]
    if along is None and len(known) > 1:
        raise ParameterError(f"Say along which covariate the curves go: {listing(known)}.").about(
            argument="along"
        )
    along = known[0] if along is None else along
    if edges is None:
        clear = found.varying() if len(found.varying()) else found.edges()
        edges = list(zip(clear["source"][:1], clear["target"][:1], strict=True))
    if not len(edges):
        raise ParameterError(
            "No edge is clear of chance: name those to draw, such as edges=[('a', 'b')]."
        ).about(argument="edges")
    parts = []
    for source, target in edges:
        one, whole = (found.bands(source, target, along, level, flag) for flag in (False, True))
        ends = {"interval_low": one["low"], "interval_high": one["high"]}
        ends |= {"whole_low": whole["low"], "whole_high": whole["high"]}
        who = {"covariate": along, "source": source, "target": target}
        parts.append(one[["value"]].assign(partial_correlation=one["estimate"], **ends, **who))
    return pd.concat(parts, ignore_index=True)


def _intervals_key(curves: pd.DataFrame, level: float, is_numeric: bool) -> str:
    told = f"intervals of {level:.0%}".replace("%", " %")
    gaps = f"\ngaps: {WHY_GAPS}" if curves["partial_correlation"].isna().any() else ""
    if "whole_low" not in curves:
        return f"with {told}{gaps}"
    return f"{told},\n{'light: of the whole curve' if is_numeric else 'thin: of all levels at once'}{gaps}"


def _spread_key(shaded: bool, rows: str) -> Any:
    """For the legend: what is shaded, or a bar, is often taken for an error of the line."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    label = f"{'shaded' if shaded else 'bars'}: 10 to 90 % of {rows},\nwhose other covariates differ"
    if shaded:
        return Patch(color=GREY, alpha=0.25, linewidth=0, label=label)
    return Line2D([], [], color=GREY, marker="|", markersize=12, linestyle="none", label=label)


def _lines(ax: Any, parts: list[pd.DataFrame], bands: list[tuple[str, str]]) -> None:
    for part, colour in zip(parts, colours(len(parts)), strict=True):
        part = part.sort_values("value")
        ax.plot(part["value"], part["partial_correlation"], color=colour, label=edge_names(part)[0])
        for low, high in bands:
            if not (part[high] > part[low]).any():
                continue
            ax.fill_between(part["value"], part[low], part[high], color=colour, alpha=0.13, linewidth=0)


def _levels(ax: Any, parts: list[pd.DataFrame], bands: list[tuple[str, str]]) -> None:
    levels = list(dict.fromkeys(parts[0]["value"]))
    reach = min(0.25, _BESIDE * (len(parts) - 1) / 2)
    aside = np.linspace(-reach, reach, len(parts))
    for part, colour, shift in zip(parts, colours(len(parts)), aside, strict=True):
        where = np.array([levels.index(level) for level in part["value"]]) + shift
        middle = part["partial_correlation"].to_numpy()
        label = edge_names(part)[0]
        ax.plot(where, middle, "o", color=colour, markersize=5, label=label)
        for (low, high), width in zip(bands, (None, 0.7), strict=False):
            if (part[high] > part[low]).any():
                ax.vlines(where, part[low], part[high], color=colour, linewidth=width)
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
        Of a model, the step that was kept is marked, or what was kept instead is named.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.plots import plot_training
    >>> sim = gf.make_setting("G1", n_samples=120, random_state=0)
    >>> model = gf.DNNCGM(rank=None, max_steps=20, random_state=0)
    >>> axes = plot_training(model.fit(sim.X[:, :5], sim.Z))
    """
    table = training if isinstance(training, pd.DataFrame) else getattr(training, "training_", None)
    if table is None or not {"step", "train_loss", "held_out_loss"} <= set(table.columns):
        raise ParameterError(
            "plot_training draws a fitted DNNCGM or its training_ table with step, train_loss and "
            f"held_out_loss, got {type(training).__name__}."
        ).about(argument="training")
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
    if getattr(training, "additive_", False):
        ax.plot([], [], " ", label="kept: no step, but edges\nthat follow single covariates")
    elif getattr(training, "variation_", 1.0) == 0:
        ax.plot([], [], " ", label="kept: no step, but\none graph for all")
    elif best is not None:
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
