"""The pictures of a study of brain networks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphfield.analysis import Bands, subnetwork
from graphfield.graphs.groups import block_means
from graphfield.plots import (
    plot_bands,
    plot_connectivity,
    plot_edge_curves,
    plot_graph,
    plot_heatmaps,
    pyplot,
)
from graphfield.plots.heatmaps import above_pictures
from graphfield.plots.style import SEQUENTIAL, colours, full_colour, heatmap_size, short
from graphfield.studies.fmri.graphs import SubjectGraphs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A sub-network of fewer regions has no picture of its own.
_FEWEST_REGIONS = 3
# Numbers are written into cells of a table of this many sub-networks at most.
_WRITTEN = 10
_DRAWN = ("density", "within", "between")
_ASIDE, _MARKERS = 0.09, "osD^v<>P"


def drawings(study: SubjectGraphs) -> dict[str, Callable[[], Figure]]:
    """Name to what draws the figure; the names are those of the files."""
    found: dict[str, Callable[[], Figure]] = {
        "bands": partial(_bands, study.bands, study, groups=study.networks),
        "networks": partial(_networks, study),
        "network_density": partial(_network_density, study),
        "connectivity": partial(_connectivity, study),
        "edge_curves": partial(_edge_curves, study),
    }
    if len(study.bands.labels) > 1:
        found["difference"] = partial(_difference, study)
    for network, count in Counter(study.networks).items():
        if _FEWEST_REGIONS <= count < len(study.networks):
            part = subnetwork(study.bands, network, groups=study.networks)
            found[f"network_{_slug(network)}"] = partial(_bands, part, study, title=network)
    return found


def _band_name(study: SubjectGraphs, i: int) -> str:
    return f"{study.score} {study.bands.labels[i]}"


def _bands(bands: Bands, study: SubjectGraphs, *, groups: Any = None, title: str = "") -> Figure:
    """Average graphs above the threshold, with subjects and the mean of their densities in the titles."""
    axes = plot_bands(bands, groups=groups)
    density = bands.density
    for i, axis in enumerate(axes):
        text = f"{_band_name(study, i)}\n{bands.n_rows[i]:,} subjects, density {100 * density[i]:.1f} %"
        axis.set_title(text, fontsize=10)
    about = f"averages with |partial correlation| > {study.bands.threshold:.3g}; density: mean over subjects"
    above_pictures(axes[0].figure, f"{title or 'All regions'}: {about}{study.caution}")
    return axes[0].figure


def _difference(study: SubjectGraphs) -> Figure:
    """The last band minus the first, on a colour scale of its own: changes are small beside edges."""
    side = heatmap_size(len(study.networks))
    figure, ax = pyplot().subplots(figsize=(side + 1.6, side), layout="constrained")
    change = study.bands.matrices[-1] - study.bands.matrices[0]
    title = f"{_band_name(study, -1)} minus {study.bands.labels[0]}{study.caution}"
    plot_graph(change, study.bands.node_names, groups=study.networks, title=title, ax=ax)
    figure.colorbar(ax.images[0], ax=ax, shrink=0.7, label="change of the mean partial correlation")
    return figure


def _networks(study: SubjectGraphs) -> Figure:
    """Mean size of edges within and between sub-networks, one table per band."""
    names, sizes = block_means(np.abs(study.bands.matrices), study.networks)
    shown = np.where(np.isnan(sizes), 0.0, sizes)
    counts = zip(range(len(shown)), study.bands.n_rows, strict=True)
    titles = [f"{_band_name(study, i)}\n{count:,} subjects" for i, count in counts]
    axes, highest = plot_heatmaps(list(shown), titles, names), full_colour(shown)
    for axis, values in zip(axes, shown, strict=True):
        axis.images[0].set(cmap=SEQUENTIAL, clim=(0, highest))  # sizes have no sign
        if len(names) <= _WRITTEN:
            _write_cells(axis, values, highest)
    figure = axes[0].figure
    above_pictures(figure, f"Mean |partial correlation| within and between sub-networks{study.caution}")
    return figure


def _write_cells(axis: Any, values: NDArray, highest: float) -> None:
    digits = 2 if highest >= 0.1 else 3
    for (i, j), value in np.ndenumerate(values):
        ink = "white" if value > 0.6 * highest else "black"
        text = f"{value:.{digits}f}".lstrip("0")
        axis.text(j, i, text, ha="center", va="center", fontsize=6.5, color=ink)


def _network_density(study: SubjectGraphs) -> Figure:
    """Density within each sub-network and between sub-networks, by band."""
    plt = pyplot()
    names, density = block_means(study.bands.presence, study.networks)
    apart = np.array(study.networks)[:, None] != np.array(study.networks)[None, :]
    between = study.bands.presence[:, apart].mean(axis=1) if apart.any() else None
    figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    where = np.arange(len(study.bands.labels))
    drawn = [name for name in names if study.networks.count(name) > 1]
    # Side by side, or equal ones would hide each other.
    aside = np.linspace(-_ASIDE, _ASIDE, len(drawn) + 1)
    for i, (name, colour) in enumerate(zip(drawn, colours(len(drawn)), strict=True)):
        within = 100 * density[:, names.index(name), names.index(name)]
        style = {"marker": _MARKERS[i % len(_MARKERS)], "markersize": 5, "linewidth": 1.2}
        ax.plot(where + aside[i], within, color=colour, alpha=0.85, label=short(name), **style)
    if between is not None:
        ax.plot(
            where + aside[-1], 100 * between, "k--", marker="s", markersize=3.5, label="between sub-networks"
        )
    ax.set_xticks(where, study.bands.labels)
    ax.set(xlabel=study.score, ylabel="density, %", ylim=(0, None))
    title = (
        f"Density within sub-networks at |partial correlation| > {study.bands.threshold:.3g}{study.caution}"
    )
    ax.set_title(title, fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False)
    return figure


def _connectivity(study: SubjectGraphs) -> Figure:
    """Connectivity of the graph of every subject against the score."""
    plt = pyplot()
    table = study.connectivity(_DRAWN)
    figure, axes = plt.subplots(1, len(_DRAWN), figsize=(4.2 * len(_DRAWN), 3.6), layout="constrained")
    for axis, measure in zip(axes, _DRAWN, strict=True):
        plot_connectivity(
            table,
            table[study.score],
            measure=measure,
            name=study.score,
            rows="subjects",
            groups="sub-networks",
            ax=axis,
        )
    figure.suptitle(f"Connectivity of the graph of every subject{study.caution}", fontsize=11)
    return figure


def _edge_curves(study: SubjectGraphs) -> Figure:
    """The edges that move most with the score."""
    figure, ax = pyplot().subplots(figsize=(7.5, 4.2), layout="constrained")
    title = f"Edges that move most with {study.score}{study.caution}"
    plot_edge_curves(study.score_curves(), rows="subjects", title=title, ax=ax)
    return figure


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower() or "unnamed"
