"""A graph along a covariate as a moving picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from graphfield.exceptions import DataError, ParameterError
from graphfield.graphs.groups import Groups
from graphfield.plots.network import network_positions, plot_network
from graphfield.plots.style import matrix_and_names, pyplot

_ENDS = 5  # times as long as others do the first and the last graph stand
_COLOURS = 64
_INCHES, _AXES = (5.6, 5.0), (0.02, 0.04, 0.82, 0.86)  # room for a scale on the right, titles above
_MOST_PER_SECOND = 50  # what readers of GIF files show


def save_moving_network(
    file: str | Path,
    graphs: Sequence[Any],
    titles: Sequence[str],
    *,
    names: Sequence[str] | None = None,
    groups: Groups | None = None,
    layout: str = "spring",
    per_second: float = 8.0,
    dpi: int = 100,
) -> Path:
    """Networks one after the other, to and fro, as a GIF file: nodes keep their places, edges come and go.

    Parameters
    ----------
    file : path
        Ends in ``.gif``; a file that is there is replaced.
    graphs : sequence of arrays or DataFrames of shape (p, p)
        Such as those of ``graph_at`` at values of a covariate in their order.
    titles : sequence of str
        What stands above each graph.
    names : list of str, optional
    groups : mapping from node name to group, or one group per node, optional
    layout : {"spring", "circle"}
        Places are those of the largest size that each pair has in any of the graphs.
    per_second : float
        Graphs per second, up to 50.
    dpi : int
        Pixels per inch; the picture is 5.6 inches wide.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from graphfield.plots import save_moving_network
    >>> ages = (20, 40, 60)
    >>> rising = [np.array([[0, age / 100], [age / 100, 0]]) for age in ages]
    >>> with TemporaryDirectory() as folder:
    ...     file = save_moving_network(Path(folder) / "graph.gif", rising, [f"aged {age}" for age in ages])
    ...     file.name
    'graph.gif'
    """
    file = Path(file)
    _check(file, graphs, titles, per_second)
    largest = _largest(graphs, names)
    places = network_positions(largest, groups=groups, layout=layout)
    limit = float(np.abs(largest.to_numpy()).max())
    figure = pyplot().figure(figsize=_INCHES)
    pictures = []
    try:
        for graph, title in zip(graphs, titles, strict=True):
            figure.clear()
            ax = figure.add_axes(_AXES)
            known = list(largest.columns)
            plot_network(graph, known, groups=groups, positions=places, limit=limit, title=title, ax=ax)
            pictures.append(_picture(figure, dpi))
    finally:
        pyplot().close(figure)
    back = pictures[-2:0:-1]
    one = 1000 / per_second
    times = [_ENDS * one, *(len(pictures) - 2) * [one], _ENDS * one, *len(back) * [one]]
    pictures[0].save(file, save_all=True, append_images=pictures[1:] + back, duration=times, loop=0)
    return file


def _picture(figure: Any, dpi: int) -> Any:
    """The figure in the few colours that a GIF file has."""
    from PIL import Image  # comes with matplotlib

    with io.BytesIO() as buffer:
        figure.savefig(buffer, format="png", dpi=dpi)
        return Image.open(buffer).convert("RGB").quantize(_COLOURS)


def _check(file: Path, graphs: Sequence[Any], titles: Sequence[str], per_second: float) -> None:
    if file.suffix.lower() != ".gif":
        raise ParameterError.of("file", f"must end in .gif, got {file.name!r}.")
    if len(graphs) < 2 or len(graphs) != len(titles):
        raise DataError.of(
            "graphs", f"need to be two or more, with a title for each, got {len(graphs)} and {len(titles)}."
        )
    if not 0 < per_second <= _MOST_PER_SECOND:
        raise ParameterError.of(
            "per_second", f"must be above 0 and up to {_MOST_PER_SECOND}, got {per_second!r}."
        )


def _largest(graphs: Sequence[Any], names: Sequence[str] | None) -> pd.DataFrame:
    """The largest size that each pair has in any of the graphs, which must have the same nodes."""
    read = [matrix_and_names(graph, names) for graph in graphs]
    if any(own != read[0][1] or matrix.shape != read[0][0].shape for matrix, own in read):
        raise DataError.of("graphs", "must all have the same nodes, in the same order.")
    known = read[0][1] or [f"x{i + 1}" for i in range(len(read[0][0]))]
    return pd.DataFrame(np.max([np.abs(matrix) for matrix, _ in read], axis=0), index=known, columns=known)
