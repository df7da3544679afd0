"""How stable edges and centralities are, and how many rows it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphfield.estimators.inputs import check_number
from graphfield.exceptions import DataError
from graphfield.graphs.centrality import CENTRALITIES
from graphfield.inference.sample_plan import SamplePlan
from graphfield.inference.stability_result import Stability
from graphfield.numbers import CLEAR
from graphfield.plots.style import GREY, colours, edge_names, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From which correlation on centralities count as the same, in the CS coefficient.
_SAME = 0.7


def plot_stability(
    found: Stability, measures: Sequence[str] = tuple(CENTRALITIES), *, ax: Axes | None = None
) -> Axes:
    """Correlation of centralities with those of all rows, over the share of rows that is dropped.

    Lines are means over fits, shaded from the 5 % quantile up: where the shade leaves .7 (the dashed line)
    is where the CS coefficient ends.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.plots import plot_stability
    >>> sim = gf.make_setting("G1", n_samples=150, random_state=0)
    >>> found = gf.stability(gf.RegGMM(), sim.X[:, :4], sim.Z, n_pairs=1, n_drops=1, shares=[0.2],
    ...                      n_bootstraps=0, threshold=0.1, random_state=0)
    >>> axes = plot_stability(found)
    """
    ax = new_axes(ax, 6.5, 4.0)
    for measure, colour in zip(measures, colours(len(measures)), strict=True):
        own = found.correlations(measure).groupby("dropped")["correlation"]
        mean, low = own.mean(), own.quantile(0.05)
        coefficient = found.cs_coefficient(measure)
        label = measure if np.isnan(coefficient) else f"{measure} (CS {coefficient:.2f})"
        ax.plot(mean.index, mean, color=colour, marker="o", markersize=4, label=label)
        ax.fill_between(low.index, low, mean, color=colour, alpha=0.13, linewidth=0)
    ax.axhline(_SAME, color=GREY, linewidth=0.8, linestyle="--", zorder=0)
    ax.set(xlabel="share of rows dropped", ylabel="correlation with all rows", ylim=(None, 1.02))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=8, frameon=False, loc="lower left")
    return ax


def plot_selection(found: Stability, *, most: int = 30, ax: Axes | None = None) -> Axes:
    """Share of half-samples whose graph has an edge, of the pairs that are selected most often.

    The dashed line is the smallest share at which at most one false edge is expected, where there is one.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.plots import plot_selection
    >>> sim = gf.make_setting("G1", n_samples=150, random_state=0)
    >>> found = gf.stability(gf.RegGMM(), sim.X[:, :4], sim.Z, n_pairs=2, n_drops=0, n_bootstraps=0,
    ...                      threshold=0.1, random_state=0)
    >>> axes = plot_selection(found)
    """
    check_number("most", most, 1, integer=True)
    table = found.edges(0.0)
    top = table[table["frequency"] > 0].iloc[:most]
    if not len(top):
        raise DataError("No pair was selected from any half-sample: there is nothing to draw.").about(
            argument="found"
        )
    ax = new_axes(ax, 6.5, 1.2 + 0.22 * len(top))
    where, (blue, orange) = np.arange(len(top)), colours(2)
    is_edge = top["partial_correlation"].to_numpy() != 0
    for own, colour, label in (
        (is_edge, blue, "edge of all rows"),
        (~is_edge, orange, "no edge of all rows"),
    ):
        if own.any():
            ax.barh(where[own], top["frequency"].to_numpy()[own], color=colour, height=0.7, label=label)
    cut = found.frequency_for(1.0)
    if np.isfinite(cut):
        ax.axvline(cut, color=GREY, linewidth=0.9, linestyle="--", label="from here at most one false")
    ax.set_yticks(where, edge_names(top), fontsize=8)
    ax.set(ylim=(len(top) - 0.4, -0.6), xlim=(0, 1), xlabel="share of half-samples with the edge")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def plot_sample_plan(plan: SamplePlan, *, ax: Axes | None = None) -> Axes:
    """Power and share of false ones over the number of rows, with two standard errors.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.plots import plot_sample_plan
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(100, 2)), rng.normal(size=(100, 1))
    >>> X[:, 1] += X[:, 0]
    >>> pilot = gf.RegGMM().fit(X, Z)
    >>> axes = plot_sample_plan(gf.plan_samples(pilot, Z=Z, sizes=[60, 80], n_sets=2, random_state=0))
    """
    ax = new_axes(ax, 6.0, 3.8)
    curve = plan.curve
    labels = {"power": "found", "fdr": "false among found"}
    for (column, label), colour in zip(labels.items(), colours(2), strict=True):
        error = CLEAR * curve[f"{column}_error"]
        ax.errorbar(curve["n"], curve[column], error, color=colour, marker="o", markersize=4, label=label)
    for level in (plan.power, plan.fdr):
        ax.axhline(level, color=GREY, linewidth=0.7, linestyle="--", zorder=0)
    if plan.n_rows is not None:
        ax.axvline(plan.n_rows, color=GREY, linewidth=0.9, label=f"{plan.n_rows:,} rows")
    ax.set_xscale("log")
    ax.set_xticks(curve["n"], [f"{n:,}" for n in curve["n"]], minor=False)
    ax.minorticks_off()
    ax.set(xlabel="rows", ylabel="share of edges", ylim=(0, 1.02))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax
