"""Graphs as heatmaps: one, several on one scale, two and their difference, quantile bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.graphs.groups import Groups, group_labels, group_order
from graphfield.plots.style import (
    DIVERGING,
    GREY,
    NO_SIGN,
    colour_bar,
    full_colour,
    heatmap_size,
    label_size,
    matrix_and_names,
    new_axes,
    points,
    pyplot,
    short,
    signless_nodes,
    spaced,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from graphfield.analysis.averages import Bands

Matrix = NDArray | pd.DataFrame
_COLUMNS = 4  # heatmaps beside each other
_PANEL = 3.6  # inches of one of several heatmaps


def plot_graph(
    partial: Matrix,
    names: Sequence[str] | None = None,
    *,
    groups: Groups | None = None,
    limit: float | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Heatmap of one (p, p) matrix of partial correlations: red positive, blue negative.

    Pairs of nodes that ``graph_at`` or ``average_graph`` says to be without signs, since they have levels
    without an order, are grey.

    Parameters
    ----------
    partial : array or DataFrame of shape (p, p)
        As from ``graph_at``, whose names are used.
    names : list of str, optional
    groups : mapping from node name to group, or one group per node, optional
        Nodes are sorted by group, with lines between the groups and their names at the right.
    limit : float, optional
        The value at full colour; share it between pictures that are to be compared. By default the largest,
        and 0.05 at least, so that tiny values look tiny.
    title : str
    ax : Axes, optional
        Without it a new figure is made, with a colour bar.

    Examples
    --------
    >>> import pandas as pd
    >>> from graphfield.plots import plot_graph
    >>> graph = pd.DataFrame([[0, 0.4], [0.4, 0]], index=["a", "b"], columns=["a", "b"])
    >>> axes = plot_graph(graph, title="age 60")
    """
    matrix, names = matrix_and_names(partial, names)
    alone = ax is None
    size = heatmap_size(len(matrix))
    ax = new_axes(ax, size + (2.2 if groups is not None else 1.0), size, "compressed")
    image = _heatmap(ax, matrix, names, groups, limit, signless=signless_nodes(partial))
    ax.set_title(title, fontsize=10)
    if alone:
        colour_bar(ax, image, shrink=0.7)
    return ax


def _heatmap(
    ax: Any,
    matrix: NDArray,
    names: Sequence[str] | None,
    groups: Groups | None,
    limit: float | None,
    *,
    left: bool = True,
    right: bool = True,
    signless: NDArray[np.bool_] | None = None,
) -> Any:
    """The image; names of nodes below and, if ``left``, at the left, those of groups at the right."""
    p = len(matrix)
    limit = full_colour(matrix) if limit is None else limit
    without = np.zeros((p, p), dtype=bool) if signless is None else signless[:, None] | signless
    blocks: list[tuple[str, int, int]] = []
    if groups is not None:
        labels = group_labels(groups, names if names is not None else [str(i) for i in range(p)])
        order, blocks = group_order(labels)
        matrix, without = matrix[np.ix_(order, order)], without[np.ix_(order, order)]
        names = None if names is None else [names[i] for i in order]
    image = ax.imshow(matrix, cmap=DIVERGING, vmin=-(limit or 1.0), vmax=limit or 1.0, interpolation="none")
    if without.any():
        sizes = np.ma.masked_where(~without, np.abs(matrix))
        ax.imshow(sizes, cmap="Greys", vmin=0, vmax=1.4 * (limit or 1.0), interpolation="none")
        ax.set_xlabel(f"grey: {NO_SIGN}", fontsize=8)
    _label_nodes(ax, names, p)
    if not left:
        ax.set_yticks([])
    _mark_blocks(ax, blocks, p, named=right)
    return image


def plot_graphs(
    rows: dict[str, NDArray], columns: Sequence[str], names: Sequence[str] | None = None
) -> NDArray:
    """A grid of heatmaps on one colour scale: one row per entry (label to (m, p, p)), m columns.

    Returns the Axes, row after row; ``axes[0].figure`` is the figure.
    """
    plt = pyplot()
    limit = full_colour(*rows.values())
    shape = (len(rows), len(columns))
    figure, axes = plt.subplots(
        *shape, figsize=(3.2 * shape[1] + 0.8, 3.3 * shape[0]), squeeze=False, layout="constrained"
    )
    for i, (label, matrices) in enumerate(rows.items()):
        for j, column in enumerate(columns):
            plot_graph(matrices[j], names, limit=limit, title=column if i == 0 else "", ax=axes[i, j])
        axes[i, 0].set_ylabel(label, fontsize=11)
    image = axes[0, 0].images[0]
    figure.colorbar(image, ax=axes, shrink=0.6, label="partial correlation")
    return axes.ravel()


def plot_difference(
    first: Matrix,
    second: Matrix,
    names: Sequence[str] | None = None,
    *,
    labels: Sequence[str] = ("first", "second"),
    groups: Groups | None = None,
    limit: float | None = None,
) -> NDArray:
    """Two graphs and their difference (second - first) side by side, all on one colour scale.

    Returns the three Axes; ``axes[0].figure`` is the figure.

    Examples
    --------
    >>> import numpy as np
    >>> from graphfield.plots import plot_difference
    >>> young, old = np.array([[0, 0.4], [0.4, 0]]), np.array([[0, -0.1], [-0.1, 0]])
    >>> axes = plot_difference(young, old, ["a", "b"], labels=["age 25", "age 75"])
    """
    a, names = matrix_and_names(first, names)
    b, _ = matrix_and_names(second, names)
    titles = [str(labels[0]), str(labels[1]), f"{labels[1]} minus {labels[0]}"]
    return plot_heatmaps([a, b, b - a], titles, names, groups=groups, limit=limit)


def plot_bands(
    bands: Bands, *, groups: Groups | None = None, threshold: float | None = None, limit: float | None = None
) -> NDArray:
    """Average graphs of quantile bands or levels, with the number of rows and the density in the titles.

    The density is that of the graphs of the rows of a band, averaged: ``bands.density``.

    Returns one Axes per band; ``axes[0].figure`` is the figure.

    Parameters
    ----------
    bands : Bands
        From ``graphfield.analysis.bands`` or ``average_graphs``, or a ``subnetwork`` of it.
    groups : mapping from node name to group, or one group per node, optional
    threshold : float, optional
        Averages that are not larger are left white; 0 shows all. By default that of the bands, and pairs that
        are no edge in any row of a band are white, too. The line above the pictures says so.
    limit : float, optional
        The value at full colour.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import bands
    >>> from graphfield.plots import plot_bands
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> axes = plot_bands(bands(model, sim.Z, "z1", threshold=0.1))
    """
    cut = bands.threshold if threshold is None else threshold
    matrices = bands.matrices if cut is None else bands.matrices * (np.abs(bands.matrices) > cut)
    if threshold is None:
        matrices = matrices * (bands.presence > 0)
    titles = [
        f"{bands.name} {label}".strip() + f"\n{count:,} row{'s' * (count != 1)}, density {_percent(share)}"
        for label, count, share in zip(bands.labels, bands.n_rows, bands.density, strict=True)
    ]
    axes = plot_heatmaps(list(matrices), titles, bands.node_names, groups=groups, limit=limit)
    above_pictures(axes[0].figure, describe_bands(bands, cut))
    return axes


def describe_bands(bands: Bands, cut: float | None) -> str:
    """What pictures of bands show, in words; averages are white up to ``cut``."""
    shown = f"averages with |partial correlation| > {cut:.3g}" if cut else "averages of all pairs"
    if bands.threshold is None or bands.threshold == cut:
        return f"{shown}; density: mean over rows"
    return f"{shown}; density: mean over rows, at > {bands.threshold:.3g}"


def above_pictures(figure: Any, text: str) -> None:
    """A line above all pictures of a figure, with room of its own."""
    figure.suptitle(text, fontsize=10)
    figure.set_figheight(figure.get_figheight() + 0.25 * (1 + text.count("\n")))
    figure.get_layout_engine().set(h_pad=0.08)


def _percent(share: float) -> str:
    return f"{100 * share:.{0 if share >= 0.095 or share == 0 else 1}f} %"


def plot_heatmaps(
    matrices: Sequence[NDArray],
    titles: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    groups: Groups | None = None,
    limit: float | None = None,
) -> NDArray:
    """Several graphs on one colour scale: up to four beside each other, then the next line.

    Returns one Axes per graph; ``axes[0].figure`` is the figure.

    Examples
    --------
    >>> import numpy as np
    >>> from graphfield.plots import plot_heatmaps
    >>> graph = np.array([[0, 0.4], [0.4, 0]])
    >>> axes = plot_heatmaps([graph, -graph], ["Monday", "Tuesday"], ["a", "b"])
    """
    plt = pyplot()
    p = len(matrices[0])
    # Four panels make one line, five make three and two.
    n_columns = min(len(matrices), _COLUMNS if len(matrices) != 5 else 3)
    n_lines = -(-len(matrices) // n_columns)
    panel = float(np.clip(1.2 + 0.11 * p, _PANEL, 6.0))
    aside = 2.4 if groups is not None else 1.2  # names of groups, colour bar
    figure, axes = plt.subplots(
        n_lines,
        n_columns,
        figsize=(panel * n_columns + aside, (panel + 0.3) * n_lines),
        squeeze=False,
        layout="compressed",
    )
    limit = full_colour(*matrices) if limit is None else limit
    for i, (axis, matrix, title) in enumerate(zip(axes.flat, matrices, titles, strict=False)):
        last = (i + 1) % n_columns == 0 or i + 1 == len(matrices)
        _heatmap(axis, matrix, names, groups, limit, left=i % n_columns == 0, right=last)
        axis.set_title(title, fontsize=10)
    for axis in list(axes.flat)[len(matrices) :]:
        axis.set_axis_off()
    figure.colorbar(axes[0, 0].images[0], ax=axes, shrink=0.7, pad=0.02, label="partial correlation")
    return axes.ravel()[: len(matrices)]


def _label_nodes(ax: Axes, names: Sequence[str] | None, p: int) -> None:
    """Names on both sides where they can be read, else none."""
    size = label_size(min(points(ax)) / p)
    if names is None or size is None:
        ax.set_xticks([])
        ax.set_yticks([])
        return
    shown = [short(name) for name in names]
    ax.set_xticks(range(p), shown, rotation=90, fontsize=size)
    ax.set_yticks(range(p), shown, fontsize=size)
    ax.tick_params(length=2 if p <= 40 else 0, pad=2)


def _mark_blocks(ax: Any, blocks: Sequence[tuple[str, int, int]], p: int, *, named: bool) -> None:
    """Lines between groups, and their names at the right, pushed apart where they would overlap."""
    if not blocks:
        return
    for _, _, end in blocks[:-1]:
        ax.axhline(end - 0.5, color=GREY, linewidth=0.6 if p <= 100 else 0.4)
        ax.axvline(end - 0.5, color=GREY, linewidth=0.6 if p <= 100 else 0.4)
    size = label_size(points(ax)[1] / len(blocks))
    if size is None or not named:
        return
    middles = np.array([(first + end - 1) / 2 for _, first, end in blocks])
    gap = 1.25 * size * p / points(ax)[1]
    where = spaced(middles, gap)
    where += min(0.0, p - 0.5 - where[-1]) if where[-1] > p - 0.5 else 0.0
    for (group, _, _), middle, place in zip(blocks, middles, where, strict=True):
        ax.annotate(
            short(group),
            xy=(p - 0.5, middle),
            xytext=(p - 0.5 + 0.035 * p, place),
            fontsize=size,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0},
        )
