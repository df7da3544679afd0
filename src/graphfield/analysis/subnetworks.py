"""Parts of a network: some nodes or groups of nodes, and averages between groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.analysis.averages import Bands
from graphfield.exceptions import DataError, ParameterError, listing, suggestion
from graphfield.graphs import groups as node_groups
from graphfield.graphs.groups import Groups


@overload
def subnetwork(
    matrix: pd.DataFrame, nodes: str | Sequence[str], *, groups: Groups | None = None
) -> pd.DataFrame: ...
@overload
def subnetwork(matrix: Bands, nodes: str | Sequence[str], *, groups: Groups | None = None) -> Bands: ...
def subnetwork(
    matrix: pd.DataFrame | Bands, nodes: str | Sequence[str], *, groups: Groups | None = None
) -> pd.DataFrame | Bands:
    """Only some nodes of a graph (as from :func:`graph_at`) or of :class:`Bands`.

    Parameters
    ----------
    matrix : DataFrame of shape (p, p) or Bands
    nodes : list of str, or str
        Names of nodes; with ``groups``, names of groups, whose nodes come group by group.
    groups : mapping from node name to group, or one group per node, optional

    Examples
    --------
    >>> import pandas as pd
    >>> from graphfield.analysis import subnetwork
    >>> graph = pd.DataFrame([[0, 1, 2], [1, 0, 3], [2, 3, 0]], index=list("abc"), columns=list("abc"))
    >>> subnetwork(graph, "north", groups={"a": "north", "b": "south", "c": "north"}).columns.tolist()
    ['a', 'c']
    """
    names = _names(matrix)
    wanted = [nodes] if isinstance(nodes, str) else [str(node) for node in nodes]
    if not wanted or len(set(wanted)) < len(wanted):
        raise ParameterError(f"nodes must name at least one, and none twice, got {wanted}.")
    where = node_groups.node_positions(wanted, names) if groups is None else _members(wanted, groups, names)
    if isinstance(matrix, Bands):
        return matrix.restricted(where)
    return matrix.iloc[where, where]


def block_means(matrix: pd.DataFrame, groups: Groups, *, absolute: bool = True) -> pd.DataFrame:
    """Mean over the pairs of nodes within each group and between each two groups.

    Parameters
    ----------
    matrix : DataFrame of shape (p, p)
        As from :func:`graph_at` or :meth:`Bands.frame`.
    groups : mapping from node name to group, or one group per node
    absolute : bool
        Average sizes, so that positive and negative edges do not cancel.

    Examples
    --------
    >>> import pandas as pd
    >>> from graphfield.analysis import block_means
    >>> graph = pd.DataFrame([[0, 1, 2], [1, 0, 3], [2, 3, 0]], index=list("abc"), columns=list("abc"))
    >>> float(block_means(graph, ["north", "south", "south"]).loc["north", "south"])
    1.5
    """
    names = _names(matrix)
    values = np.abs(matrix.to_numpy()) if absolute else matrix.to_numpy()
    found, means = node_groups.block_means(values, node_groups.group_labels(groups, names))
    return pd.DataFrame(means, index=found, columns=found)


def _names(matrix: pd.DataFrame | Bands) -> list[str]:
    if isinstance(matrix, Bands):
        return matrix.node_names
    if not isinstance(matrix, pd.DataFrame) or list(matrix.index) != list(matrix.columns):
        raise DataError(
            "A graph must be a table with the same node names on both sides, as graph_at gives it."
        )
    return [str(name) for name in matrix.columns]


def _members(wanted: Sequence[str], groups: Groups, names: Sequence[str]) -> NDArray[np.intp]:
    labels = np.array(node_groups.group_labels(groups, names), dtype=object)
    known = list(dict.fromkeys(labels))
    for group in wanted:
        if group not in known:
            raise DataError(
                f"There is no group called {group!r}.{suggestion(group, known)} "
                f"The groups are {listing(known)}."
            )
    return np.concatenate([np.flatnonzero(labels == group) for group in wanted])
