"""Heatmaps of partial correlations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphfield.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES_UP_TO = 40  # nodes; beyond that labels on the axes cannot be read


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            "Pictures need the package matplotlib: pip install 'graphfield[plot]'."
        ) from error
    return plt


def plot_graph(
    partial: NDArray,
    names: Sequence[str] | None = None,
    *,
    limit: float | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Heatmap of one (p, p) matrix of partial correlations: red positive, blue negative.

    ``limit`` is the value at full colour; share it between pictures that are to be compared.
    """
    plt = pyplot()
    if ax is None:
        ax = plt.subplots(figsize=(5, 5), layout="constrained")[1]
    partial = np.asarray(partial)
    limit = float(np.abs(partial).max()) if limit is None else limit
    ax.imshow(partial, cmap="RdBu_r", vmin=-(limit or 1.0), vmax=limit or 1.0, interpolation="none")
    ax.set_title(title, fontsize=10)
    if names is not None and len(names) <= _NAMES_UP_TO:
        ax.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        ax.set_yticks(range(len(names)), names, fontsize=7)
    else:
        ax.set_xticks([])
        ax.set_yticks([])
    return ax


def plot_graphs(
    rows: dict[str, NDArray], columns: Sequence[str], names: Sequence[str] | None = None
) -> Figure:
    """A grid of heatmaps on one colour scale: one row per entry (label to (m, p, p)), m columns."""
    plt = pyplot()
    limit = max(float(np.abs(matrices).max()) for matrices in rows.values())
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
    return figure
