"""Methods beside each other: how well they predict, and how far their graphs agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphfield.exceptions import count
from graphfield.inference.method_comparison import MethodComparison
from graphfield.numbers import CLEAR
from graphfield.plots.style import GREY, colour_bar, colours, pyplot

if TYPE_CHECKING:
    from numpy.typing import NDArray


def plot_methods(found: MethodComparison) -> NDArray[Any]:
    """Gains over one graph for all with two standard errors, and edges in common; returns both Axes.

    Methods that could not be fitted are left out.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.plots import plot_methods
    >>> sim = gf.make_setting("G1", n_samples=120, random_state=0)
    >>> axes = plot_methods(gf.compare_methods(sim.X[:, :4], sim.Z[:, :2], ["tree"], n_folds=1))
    """
    table = found.table[found.table["gain"].notna()]
    names, n = table["method"].tolist(), len(table)
    layout = {"figsize": (4.5 + 0.55 * n + 1.5, 1.6 + 0.4 * n), "layout": "constrained"}
    _, axes = pyplot().subplots(1, 2, width_ratios=[4.5, 0.55 * n + 1.5], **layout)
    _draw_gains(axes[0], table, found.best)
    _draw_agreement(axes[1], found, names)
    return np.array(axes)


def _draw_gains(ax: Any, table: Any, best: str) -> None:
    blue, orange = colours(2)
    where = np.arange(len(table))
    for place, line in zip(where, table.itertuples(), strict=True):
        colour = orange if line.method == best else blue
        error = 100 * CLEAR * line.standard_error
        ax.errorbar(100 * line.gain, place, xerr=error, color=colour, marker="o", markersize=5, capsize=2)
    ax.axvline(0, color=GREY, linewidth=0.8, linestyle="--", zorder=0)
    names = [f"{own.method} ({_edges(own.n_edges)}, {own.seconds:.3g} s)" for own in table.itertuples()]
    ax.set_yticks(where, names, fontsize=8)
    ax.set(ylim=(len(table) - 0.5, -0.5), xlabel="held-out error below that of one graph, %")
    ax.spines[["top", "right"]].set_visible(False)


def _edges(number: float) -> str:
    """How many a graph has; a mean over rows need not be whole.

    >>> _edges(1.0), _edges(1200.0), _edges(1.9)
    ('1 edge', '1,200 edges', '1.9 edges on average')
    """
    return count(int(number), "edge") if number % 1 == 0 else f"{number:.3g} edges on average"


def _draw_agreement(ax: Any, found: MethodComparison, names: list[str]) -> None:
    shares = np.eye(len(names))
    table = found.agreement
    pairs = zip(table["one"], table["other"], table["edges_in_common"], strict=True)
    for one, other, share in pairs:
        j, k = names.index(one), names.index(other)
        shares[j, k] = shares[k, j] = share
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for (j, k), share in np.ndenumerate(shares):
        text = "" if np.isnan(share) else f"{share:.2f}"
        colour = "white" if share > 0.6 else "black"
        ax.text(k, j, text, ha="center", va="center", fontsize=7, color=colour)
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    ax.set_yticks(range(len(names)), [])
    colour_bar(ax, image, "share of edges in common")
