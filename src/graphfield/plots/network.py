"""Graphs as networks of dots and lines, with positions that can be kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from graphfield.exceptions import DataError, check_choice, listing
from graphfield.graphs.groups import Groups, group_labels, group_order
from graphfield.plots.style import (
    DIVERGING,
    GREY,
    NO_SIGN,
    colour_bar,
    colours,
    full_colour,
    label_size,
    matrix_and_names,
    new_axes,
    points,
    short,
    signless_nodes,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Positions = dict[str, tuple[float, float]]
_LAYOUTS = ("circle", "spring")


def network_positions(
    partial: NDArray | pd.DataFrame,
    names: Sequence[str] | None = None,
    *,
    groups: Groups | None = None,
    layout: str = "circle",
) -> Positions:
    """Where to draw each node, for :func:`plot_network`; pass the same positions to compare two graphs.

    ``circle`` puts the nodes on a circle, group by group. ``spring`` pulls nodes with strong edges together;
    it starts from that circle and uses no random numbers, so that it gives the same positions every time.

    Examples
    --------
    >>> import numpy as np
    >>> from graphfield.plots import network_positions
    >>> sorted(network_positions(np.zeros((2, 2)), ["a", "b"]))
    ['a', 'b']
    """
    check_choice("layout", layout, _LAYOUTS)
    matrix, names = matrix_and_names(partial, names)
    names = names if names is not None else [f"x{i + 1}" for i in range(len(matrix))]
    labels = group_labels(groups, names) if groups is not None else ["" for _ in names]
    order, blocks = group_order(labels)
    # A gap of one and a half nodes between groups.
    step = np.zeros(len(names))
    for number, (_, first, end) in enumerate(blocks):
        step[first:end] = np.arange(first, end) + (1.5 * number if len(blocks) > 1 else 0)
    whole = len(names) + (1.5 * len(blocks) if len(blocks) > 1 else 0)
    angle = np.pi / 2 - 2 * np.pi * step / whole
    circle = {names[i]: (float(np.cos(a)), float(np.sin(a))) for i, a in zip(order, angle, strict=True)}
    if layout == "circle" or len(names) < 3:
        return circle
    graph = nx.complete_graph(len(names))
    distance = _wanted_distances(matrix)
    start = {i: np.array(circle[name]) for i, name in enumerate(names)}
    wanted = {i: dict(enumerate(row)) for i, row in enumerate(distance)}
    found = nx.kamada_kawai_layout(graph, dist=wanted, pos=start)
    return {names[i]: (float(x), float(y)) for i, (x, y) in found.items()}


def _wanted_distances(matrix: NDArray) -> NDArray[np.float64]:
    """Steps along the edges, a strong one shorter than a weak one; unconnected nodes are a bit farther."""
    size = np.abs(matrix) * (1 - np.eye(len(matrix)))
    length = np.where(size > 0, 2 - size / (size.max(initial=0.0) or 1.0), np.inf)
    steps = shortest_path(np.where(np.isfinite(length), length, 0), directed=False)
    farthest = float(steps[np.isfinite(steps)].max(initial=2.0))
    # Many small pieces would otherwise be as far apart as their number is large.
    apart = min(1.2 * farthest, 1.5 * np.sqrt(len(matrix)))
    return np.minimum(steps, apart)


def plot_network(
    partial: NDArray | pd.DataFrame,
    names: Sequence[str] | None = None,
    *,
    groups: Groups | None = None,
    positions: Mapping[str, tuple[float, float]] | None = None,
    layout: str = "circle",
    threshold: float = 0.0,
    max_edges: int = 400,
    limit: float | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Network of one graph: lines are red for positive and blue for negative partial correlations, by size.

    Edges of nodes that ``graph_at`` or ``average_graph`` says to be without signs, since they have levels
    without an order, are grey.

    Parameters
    ----------
    partial : array or DataFrame of shape (p, p)
        As from ``graph_at``, whose names are used, and whose zeros are no edges.
    names : list of str, optional
    groups : mapping from node name to group, or one group per node, optional
        Colours of the dots, and neighbours on the circle.
    positions : mapping from node name to (x, y), optional
        As from :func:`network_positions`, so that several pictures have their nodes in the same places.
    layout : {"circle", "spring"}
        Where positions are not given.
    threshold : float
        Edges whose partial correlation is not larger than this are not drawn, and the title says so where
        there are such. 0, the default, draws every pair that is not exactly zero.
    max_edges : int
        Only so many of the strongest edges are drawn; the title says so where there are more.
    limit : float, optional
        The value at full colour and width. By default the largest, and 0.05 at least.

    Examples
    --------
    >>> import numpy as np
    >>> from graphfield.plots import plot_network
    >>> axes = plot_network(np.array([[0, 0.4], [0.4, 0]]), ["a", "b"])
    """
    matrix, names = matrix_and_names(partial, names)
    shown_names = names if names is not None else [f"x{i + 1}" for i in range(len(matrix))]
    edges = np.where(np.abs(matrix) > threshold, matrix, 0)
    places = _places(edges, shown_names, groups, positions, layout)
    on_circle = bool(np.allclose(np.hypot(*places.T), 1.0, atol=1e-6))
    side = float(np.clip(5.0 + 0.02 * len(matrix), 5.5, 9.0))
    ax = new_axes(ax, side + 0.8, side + (0.3 if groups is not None else 0.0), "compressed")
    room = _room_for_names(ax, names) if on_circle and names is not None else 1.12
    reach = room * max(1e-9, float(np.abs(places).max()))
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set_axis_off()
    drawn, there = _draw_edges(ax, matrix, places, threshold, max_edges, limit, signless_nodes(partial))
    _draw_nodes(ax, shown_names, places, groups)
    _draw_legend(ax)
    if names is not None and on_circle:
        _labels_around(ax, names, places, reach)
    elif names is not None:
        _labels_beside(ax, names, places, np.abs(edges).sum(axis=1), reach)
    note = _not_drawn(matrix, threshold, drawn, there)
    ax.set_title("\n".join(line for line in (title, note) if line), fontsize=10)
    return ax


def _not_drawn(matrix: NDArray, threshold: float, drawn: int, there: int) -> str:
    """Which edges a picture shows, where it does not show all."""
    size = np.abs(matrix[np.triu_indices(len(matrix), 1)])
    hidden = bool((size[size > 0] <= threshold).any())
    if drawn == there and there and not hidden:
        return ""
    which = "edges" if there else "no edge"
    if drawn < there:
        which = f"the strongest {drawn:,} of {there:,} edges"
    return f"{which} with |partial correlation| > {threshold:.3g}" if hidden or not there else which


def _places(
    matrix: NDArray,
    names: Sequence[str],
    groups: Groups | None,
    positions: Mapping[str, tuple[float, float]] | None,
    layout: str,
) -> NDArray[np.float64]:
    if positions is None:
        positions = network_positions(matrix, names, groups=groups, layout=layout)
    lacking = [name for name in names if name not in positions]
    if lacking:
        raise DataError.of("positions", f"must give every node a place, but it lacks {listing(lacking)}.")
    return np.array([positions[name] for name in names], dtype=np.float64)


def _draw_edges(
    ax: Axes,
    matrix: NDArray,
    places: NDArray,
    threshold: float,
    max_edges: int,
    limit: float | None,
    signless: NDArray[np.bool_],
) -> tuple[int, int]:
    """Lines, the strongest on top; how many were drawn and how many there are."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize, to_rgb

    j, k = np.nonzero(np.triu(np.abs(matrix) > threshold, 1))
    value = matrix[j, k]
    order = np.argsort(np.abs(value), kind="stable")
    chosen = order[max(0, len(order) - max_edges) :]
    if limit is None:
        limit = full_colour(value)
    scale = ScalarMappable(Normalize(-(limit or 1.0), limit or 1.0), cmap=DIVERGING)
    share = np.clip(np.abs(value[chosen]) / (limit or 1.0), 0, 1)
    tint, neutral = scale.to_rgba(value[chosen]), (signless[j] | signless[k])[chosen]
    tint[neutral, :3] = to_rgb(GREY)
    tint[:, 3] = 0.35 + 0.65 * share
    lines = np.stack([places[j[chosen]], places[k[chosen]]], axis=1)
    ax.add_collection(LineCollection(list(lines), colors=tint, linewidths=0.4 + 3.2 * share, zorder=1))
    if neutral.any():
        ax.plot([], [], color=GREY, linewidth=2, label=NO_SIGN)
    colour_bar(ax, scale, shrink=0.5, fraction=0.05, pad=0.02)
    return len(chosen), len(value)


def _draw_nodes(ax: Any, names: Sequence[str], places: NDArray, groups: Groups | None) -> None:
    size = float(np.clip(2500 / len(names), 12, 110))
    if groups is None:
        ax.scatter(*places.T, s=size, color=GREY, edgecolors="white", linewidths=0.6, zorder=2)
        return
    order, blocks = group_order(group_labels(groups, names))
    for (group, first, end), colour in zip(blocks, colours(len(blocks)), strict=True):
        own = places[order[first:end]]
        ax.scatter(
            *own.T, s=size, color=colour, edgecolors="white", linewidths=0.6, zorder=2, label=short(group)
        )


def _draw_legend(ax: Any) -> None:
    """Groups, and edges without a sign, where there are any."""
    handles, labels = ax.get_legend_handles_labels()
    if not labels:
        return
    widest = max(text_width(label, 7) for label in labels)
    dots = [handle.get_sizes().max() for handle in handles if hasattr(handle, "get_sizes")]
    ax.legend(
        loc="upper center",  # below the circle
        bbox_to_anchor=(0.5, 0.0),
        ncols=int(np.clip(points(ax)[0] / (widest + 24), 1, len(labels))),
        fontsize=7,
        frameon=False,
        borderaxespad=0,
        handletextpad=0.2,
        markerscale=min(1.0, np.sqrt(30 / max(dots, default=30))),
    )


def _room_for_names(ax: Axes, names: Sequence[str]) -> float:
    """Half the width of the axes over the radius of a circle that leaves room for names around it."""
    half = min(points(ax)) / 2
    widest = max(text_width(short(name, 16), 8.0) for name in names)
    return half / (half - min(1.1 * widest + 6, 0.4 * half))


def _labels_around(ax: Any, names: Sequence[str], places: NDArray, reach: float) -> None:
    """Names outside the circle, turned so that they point away from it; none where they are too close."""
    radius = min(points(ax)) / 2 / reach
    angles = np.sort(np.arctan2(places[:, 1], places[:, 0]))
    closest = np.diff(np.r_[angles, angles[0] + 2 * np.pi]).min()
    size = label_size(closest * radius * 1.05)
    if size is None:
        return
    longest = int((reach - 1.05) * radius / text_width("x", size))
    for name, (x, y) in zip(names, places, strict=True):
        degrees = np.degrees(np.arctan2(y, x))
        flipped = abs(degrees) > 90
        ax.text(
            1.05 * x,
            1.05 * y,
            short(name, max(6, longest)),
            rotation=degrees + 180 if flipped else degrees,
            rotation_mode="anchor",
            ha="right" if flipped else "left",
            va="center",
            fontsize=size,
        )


def _labels_beside(ax: Any, names: Sequence[str], places: NDArray, strength: NDArray, reach: float) -> None:
    """Names above the dots, the best connected first; one that would cover another is left out."""
    unit = min(points(ax)) / (2 * reach)
    size = 7.0
    boxes: list[tuple[float, float, float, float]] = []
    for i in np.argsort(-strength, kind="stable"):
        text = short(names[i], 14)
        x, y = places[i] * unit
        half = text_width(text, size) / 2
        box = (x - half, y + 3, x + half, y + 4 + 1.2 * size)
        if any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in boxes):
            continue
        boxes.append(box)
        ax.annotate(
            text,
            places[i],
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=size,
        )
