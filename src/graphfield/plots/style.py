"""What all pictures share: matplotlib on demand, colours, and labels that can be read or are not there."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Blue for negative, white for zero, red for positive: told apart with every common colour blindness.
DIVERGING = "RdBu_r"
SEQUENTIAL = "Blues"
# The palette of Okabe and Ito, which colour-blind people can tell apart; black is left for text.
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#5D3A9B")
GREY = "#666666"
NO_SIGN = "no sign (levels without an order)"
# Points: labels smaller than this cannot be read, and larger ones shout.
_SMALLEST, _LARGEST = 4.5, 8.0
# Height of a line of text over its size, and width of a character.
_LINE, _CHARACTER = 1.15, 0.6
_LONGEST = 24  # characters of a label
# A partial correlation of this size may have full colour, a smaller one never: tiny values look tiny.
_LEAST_COLOUR = 0.05


def pyplot() -> Any:
    """matplotlib.pyplot, imported where it is first needed: that takes a while."""
    import matplotlib.pyplot as plt

    return plt


def draw_to_files() -> None:
    """Pictures need no screen from here on, whatever MPLBACKEND asks for; called before the work."""
    import matplotlib

    matplotlib.use("Agg")


def png_bytes(figure: Any, dpi: int) -> bytes:
    """The figure as a PNG file; it is closed."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    pyplot().close(figure)
    return buffer.getvalue()


def new_axes(ax: Axes | None, width: float, height: float, layout: str = "constrained") -> Axes:
    """The axes that were given, or new ones on a figure of this size in inches."""
    plt = pyplot()
    return plt.subplots(figsize=(width, height), layout=layout)[1] if ax is None else ax


def colours(count: int) -> list[Any]:
    """Colours that can be told apart; beyond eight they come from a scale."""
    if count <= len(_PALETTE):
        return list(_PALETTE[:count])
    return [tuple(colour) for colour in pyplot().get_cmap("turbo")(np.linspace(0.05, 0.95, count))]


def short(name: object, most: int = _LONGEST) -> str:
    """A label that ends in three dots where it would be too long."""
    text = str(name)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def matrix_and_names(
    partial: NDArray | pd.DataFrame, names: Sequence[str] | None
) -> tuple[NDArray, list[str] | None]:
    """A (p, p) array, and names that were given or are those of the table."""
    if isinstance(partial, pd.DataFrame) and names is None:
        names = [str(name) for name in partial.columns]
    matrix = np.asarray(partial)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"One graph is a square matrix, got an array of shape {matrix.shape}.").about(
            argument="matrix"
        )
    if names is not None and len(names) != len(matrix):
        raise DataError(f"There must be one name per node: {len(matrix)} nodes, {len(names)} names.").about(
            argument="names"
        )
    return matrix, None if names is None else [str(name) for name in names]


def signless_nodes(partial: NDArray | pd.DataFrame) -> NDArray[np.bool_]:
    """Whether a table of a graph says that a node is without signs, (p,)."""
    if not isinstance(partial, pd.DataFrame):
        return np.zeros(len(partial), dtype=bool)
    return np.asarray(partial.columns.isin(partial.attrs.get("signless", [])))


def heatmap_size(n_nodes: int) -> float:
    """Inches of a square heatmap whose labels can be read, as far as that fits on a page."""
    return float(np.clip(2.2 + 0.125 * n_nodes, 4.0, 11.0))


def points(ax: Any) -> tuple[float, float]:
    """Width and height of the axes in points, about: text that will be put beside it is not known yet."""
    box, whole = ax.get_position(), ax.get_figure().bbox
    scale = 72 / ax.get_figure().dpi
    return scale * box.width * whole.width, scale * box.height * whole.height


def colour_bar(ax: Any, image: Any, label: str = "partial correlation", **options: Any) -> None:
    """A colour bar beside the axes."""
    ax.get_figure().colorbar(image, ax=ax, label=label, **options)


def full_colour(*matrices: NDArray) -> float:
    """The value at full colour of matrices on one scale: the largest, but never a tiny one."""
    return max(_LEAST_COLOUR, *(float(np.abs(matrix).max(initial=0.0)) for matrix in matrices))


def from_zero(ax: Any, values: NDArray[np.float64], least: float = 0.1) -> None:
    """Let an axis of numbers that are not negative begin at zero, or just below, where it would go below.

    Numbers that never differ have no scale of their own; then it ends at ``least`` or twice the number.
    """
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    if low < 0:
        return
    if high - low < 1e-9:
        ax.set_ylim(0, max(least, 2 * high))
    if ax.get_ylim()[0] < 0 or high - low < 1e-9:  # a line at zero is not to be hidden by the axis
        ax.set_ylim(bottom=-0.03 * ax.get_ylim()[1])


def label_size(room: float) -> float | None:
    """Size of text for labels that have ``room`` points each, or None where it could not be read."""
    size = min(_LARGEST, room / _LINE)
    return size if size >= _SMALLEST else None


def spaced(wanted: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Increasing places at least ``gap`` apart, as near to the wanted ones as pushing apart allows.

    >>> spaced(np.array([1.0, 1.1, 5.0]), 1.0).tolist()
    [0.55, 1.55, 5.0]
    """
    blocks: list[tuple[float, int]] = []  # sum of (place - offset), how many
    for i, place in enumerate(wanted):
        total, count = float(place - gap * i), 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            total, count = total + blocks[-1][0], count + blocks[-1][1]
            blocks.pop()
        blocks.append((total, count))
    levels = np.repeat([total / count for total, count in blocks], [count for _, count in blocks])
    return levels + gap * np.arange(len(wanted))


def text_width(text: str, size: float) -> float:
    """Points that a text takes, about."""
    return _CHARACTER * size * len(text)


def edge_names(table: pd.DataFrame) -> list[str]:
    """``source - target`` of every row."""
    pairs = zip(table["source"], table["target"], strict=True)
    return [f"{short(a, 18)} - {short(b, 18)}" for a, b in pairs]


def require_columns(table: pd.DataFrame, columns: Sequence[str], maker: str) -> None:
    """Raise unless the table is one that the named function made."""
    lacking = [name for name in columns if name not in getattr(table, "columns", ())]
    if lacking or not len(table):
        what = f"lacks {', '.join(lacking)}" if lacking else "is empty"
        raise DataError(f"This picture wants a table from graphfield.analysis.{maker}, but it {what}.").about(
            argument="table"
        )
