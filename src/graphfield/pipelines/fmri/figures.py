"""The pictures of a study of brain networks."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphfield.analysis import Bands, subnetwork
from graphfield.graphs import connectivity
from graphfield.graphs.groups import block_means
from graphfield.report.plots import (
    plot_bands,
    plot_connectivity,
    plot_edge_curves,
    plot_graph,
    pyplot,
)
from graphfield.report.plots.style import SEQUENTIAL, colours, heatmap_size, label_size, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graphfield.pipelines.fmri.study import FmriStudy

# A sub-network of fewer regions has no picture of its own.
_FEWEST_REGIONS = 3
# Numbers are written into cells of a table of this many sub-networks at most.
_WRITTEN = 10
_DRAWN = ("density", "within", "between")


def study_figures(study: FmriStudy) -> dict[str, Figure]:
    """Name to figure; the names are those of the files."""
    found = {
        "bands": _bands(study.bands, study, groups=study.networks),
        "networks": _networks(study),
        "network_density": _network_density(study),
        "connectivity": _connectivity(study),
        "edge_curves": _edge_curves(study),
    }
    if len(study.bands.labels) > 1:
        found["difference"] = _difference(study)
    for network, count in Counter(study.networks).items():
        if count >= _FEWEST_REGIONS and count < len(study.networks):
            part = subnetwork(study.bands, network, groups=study.networks)
            found[f"network_{_slug(network)}"] = _bands(part, study, title=network)
    return found


def _band_name(study: FmriStudy, i: int) -> str:
    return f"{study.score} {study.bands.labels[i]}"


def shown_density(bands: Bands, threshold: float) -> NDArray[np.float64]:
    """Share of pairs whose average over the band is above the threshold, (m,)."""
    return connectivity.density(np.abs(bands.matrices) > threshold)


def _bands(bands: Bands, study: FmriStudy, *, groups: Any = None, title: str = "") -> Figure:
    """Average graphs above the threshold, with subjects and density in the titles."""
    axes = plot_bands(bands, groups=groups, threshold=study.threshold)
    figure = axes[0].figure
    density = shown_density(bands, study.threshold)
    for i, axis in enumerate(axes):
        text = f"{_band_name(study, i)}\n{bands.n_rows[i]:,} subjects, density {100 * density[i]:.1f} %"
        axis.set_title(text, fontsize=10)
    about = f"averages with |partial correlation| > {study.threshold:.3g}"
    figure.suptitle(f"{title or 'All regions'}: {about}", fontsize=11)
    figure.set_figheight(figure.get_figheight() + 0.5)
    engine: Any = figure.get_layout_engine()
    engine.set(h_pad=0.1)
    return figure


def _difference(study: FmriStudy) -> Figure:
    """The last band minus the first, on a colour scale of its own: changes are small beside edges."""
    side = heatmap_size(len(study.networks))
    figure, ax = pyplot().subplots(figsize=(side + 1.6, side), layout="constrained")
    change = study.bands.matrices[-1] - study.bands.matrices[0]
    title = f"{_band_name(study, -1)} minus {study.bands.labels[0]}"
    plot_graph(change, study.bands.node_names, groups=study.networks, title=title, ax=ax)
    figure.colorbar(ax.images[0], ax=ax, shrink=0.7, label="change of the mean partial correlation")
    return figure


def _networks(study: FmriStudy) -> Figure:
    """Mean size of edges within and between sub-networks, one table per band."""
    plt = pyplot()
    names, sizes = block_means(np.abs(study.bands.matrices), study.networks)
    shown = np.where(np.isnan(sizes), 0.0, sizes)
    n_bands, g = len(shown), len(names)
    columns = min(n_bands, 4)
    lines = -(-n_bands // columns)
    side = float(np.clip(1.0 + 0.34 * g, 2.4, 6.0))
    label_width = 0.075 * min(24, max(len(name) for name in names))
    figure, axes = plt.subplots(
        lines,
        columns,
        figsize=(side * columns + label_width + 1.2, (side + label_width + 0.6) * lines),
        squeeze=False,
        sharey=True,
        layout="constrained",
    )
    highest = float(shown.max(initial=0.0)) or 1.0
    size = label_size(72 * side / g * 0.8) or 4.5
    for i, axis in enumerate(axes.flat):
        if i >= n_bands:
            axis.set_axis_off()
            continue
        image = axis.imshow(shown[i], cmap=SEQUENTIAL, vmin=0, vmax=highest)
        axis.set_xticks(range(g), [short(name) for name in names], rotation=90, fontsize=size)
        axis.set_yticks(range(g), [short(name) for name in names], fontsize=size)
        axis.tick_params(length=0)
        axis.set_title(f"{_band_name(study, i)}\n{study.bands.n_rows[i]:,} subjects", fontsize=10)
        if g <= _WRITTEN:
            _write_cells(axis, shown[i], highest)
    figure.suptitle("Mean |partial correlation| within and between sub-networks", fontsize=11)
    figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def _write_cells(axis: Any, values: NDArray, highest: float) -> None:
    digits = 2 if highest >= 0.1 else 3
    for (i, j), value in np.ndenumerate(values):
        ink = "white" if value > 0.6 * highest else "black"
        text = f"{value:.{digits}f}".lstrip("0")
        axis.text(j, i, text, ha="center", va="center", fontsize=6.5, color=ink)


def _network_density(study: FmriStudy) -> Figure:
    """Density within each sub-network and between sub-networks, by band."""
    plt = pyplot()
    names, density = block_means(study.bands.presence, study.networks)
    apart = np.array(study.networks)[:, None] != np.array(study.networks)[None, :]
    between = study.bands.presence[:, apart].mean(axis=1) if apart.any() else None
    figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    where = np.arange(len(study.bands.labels))
    drawn = [name for name in names if study.networks.count(name) > 1]
    for name, colour in zip(drawn, colours(len(drawn)), strict=True):
        within = 100 * density[:, names.index(name), names.index(name)]
        ax.plot(where, within, marker="o", markersize=4, color=colour, label=short(name))
    if between is not None:
        ax.plot(where, 100 * between, "k--", marker="s", markersize=3.5, label="between sub-networks")
    ax.set_xticks(where, study.bands.labels)
    ax.set(xlabel=study.score, ylabel="density, %", ylim=(0, None))
    title = f"Density within sub-networks at |partial correlation| > {study.threshold:.3g}{_caution(study)}"
    ax.set_title(title, fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False)
    return figure


def _connectivity(study: FmriStudy) -> Figure:
    """Connectivity of the graph of every subject against the score."""
    plt = pyplot()
    table = study.connectivity(_DRAWN)
    figure, axes = plt.subplots(1, len(_DRAWN), figsize=(4.2 * len(_DRAWN), 3.6), layout="constrained")
    for axis, measure in zip(axes, _DRAWN, strict=True):
        plot_connectivity(table, table[study.score], measure=measure, name=study.score, ax=axis)
        legend = axis.get_legend()
        if legend is not None:
            for text in legend.get_texts():
                text.set_text(text.get_text().replace("rows", "subjects"))
    figure.suptitle(f"Connectivity of the graph of every subject{_caution(study)}", fontsize=11)
    return figure


def _edge_curves(study: FmriStudy) -> Figure:
    """The edges that move most with the score."""
    figure, ax = pyplot().subplots(figsize=(7.5, 4.2), layout="constrained")
    title = f"Edges that move most with {study.score}{_caution(study)}"
    plot_edge_curves(study.score_curves(), title=title, ax=ax)
    return figure


def _caution(study: FmriStudy) -> str:
    """Below a title: a trend that subjects left out do not support must not look like a finding."""
    if study.gain is None:
        return "\n(not compared with a static graph)"
    return "" if study.gain.verdict == "better" else "\n(not supported by subjects left out of training)"


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower() or "unnamed"
