"""Which edges vary most, and which covariates drive them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from graphfield.estimators.inputs import check_number
from graphfield.exceptions import check_choice
from graphfield.plots.style import (
    GREY,
    SEQUENTIAL,
    colour_bar,
    colours,
    edge_names,
    new_axes,
    require_columns,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELS = {
    "total": "share of the variance of the edge\n(total, with interactions)",
    "alone": "share of the variance of the edge\n(alone, without interactions)",
    "effect": "standard deviation of the\npartial correlation",
}


def plot_varying_edges(table: pd.DataFrame, *, most: int = 20, ax: Axes | None = None) -> Axes:
    """The edges that vary most: mean and 5 % to 95 % range over rows, from ``varying_edges``.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import varying_edges
    >>> from graphfield.plots import plot_varying_edges
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> axes = plot_varying_edges(varying_edges(model, sim.Z, threshold=0.1))
    """
    require_columns(table, ["source", "target", "mean", "low", "high"], "varying_edges")
    check_number("most", most, 1, integer=True)
    top = table.iloc[:most]
    ax = new_axes(ax, 6.5, 1.2 + 0.24 * len(top))
    where = np.arange(len(top))
    ax.axvline(0, color=GREY, linewidth=0.6, zorder=0)
    blue, orange = colours(2)
    ax.hlines(where, top["low"], top["high"], color=blue, linewidth=2.2, label="5 % to 95 % of rows")
    ax.plot(top["mean"], where, "o", color=orange, markersize=5, label="mean")
    ax.set_yticks(where, edge_names(top), fontsize=8)
    ax.set_ylim(len(top) - 0.4, -0.6)
    ax.set_xlabel("partial correlation")
    ax.set_title("Edges that vary most over rows", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def plot_drivers(
    drivers: pd.DataFrame, *, value: str = "total", most: int = 20, ax: Axes | None = None
) -> Axes:
    """Heatmap of edges by covariates from ``edge_drivers``: who drives which edge.

    ``value`` is ``total``, ``alone`` or ``effect``; the first ``most`` edges of the table are shown. Beside
    the name of an edge stands its standard deviation over rows. An edge that hardly varies has no shares: its
    cells are grey.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import edge_drivers
    >>> from graphfield.plots import plot_drivers
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> axes = plot_drivers(edge_drivers(model, sim.Z))
    """
    check_choice("value", value, _LABELS)
    check_number("most", most, 1, integer=True)
    require_columns(drivers, ["source", "target", "covariate", "standard_deviation", value], "edge_drivers")
    edges = drivers.drop_duplicates(["source", "target"]).iloc[:most]
    covariates = list(drivers["covariate"].unique())
    wide = drivers.pivot(index=["source", "target"], columns="covariate", values=value)
    shares = wide.loc[list(zip(edges["source"], edges["target"], strict=True)), covariates].to_numpy()
    shape = (len(edges), len(covariates))
    ax = new_axes(ax, float(np.clip(3.8 + 0.62 * shape[1], 5, 14)), 1.6 + 0.26 * shape[0])
    highest = float(np.nanmax(shares, initial=0.0)) if value == "effect" else 1.0
    image = ax.imshow(shares, cmap=SEQUENTIAL, vmin=0, vmax=highest or 1.0, aspect="auto")
    ax.set_facecolor("#e6e6e6")  # behind cells without a share
    if shape[1] <= 14:
        for (i, j), share in np.ndenumerate(shares):
            if np.isnan(share):
                continue
            ink = "white" if share > 0.6 * (highest or 1.0) else "black"
            ax.text(j, i, f"{share:.2f}", ha="center", va="center", fontsize=7, color=ink)
    shown = covariates if shape[1] <= 60 else ["" for _ in covariates]
    turned = max(len(str(name)) for name in covariates) > 7
    ax.set_xticks(
        range(shape[1]),
        [short(name) for name in shown],
        fontsize=8,
        rotation=40 if turned else 0,
        ha="right" if turned else "center",
        rotation_mode="anchor",
    )
    sizes = edges["standard_deviation"]
    labels = [f"{name} (±{size:.2f})" for name, size in zip(edge_names(edges), sizes, strict=True)]
    ax.set_yticks(range(shape[0]), labels, fontsize=8)
    ax.tick_params(length=0)
    ax.set_title("Which covariate drives which edge", fontsize=10)
    colour_bar(ax, image, _LABELS[value], shrink=0.8)
    return ax
