"""How connected the graphs of a model are, at every row of a table; parts of graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.analysis.averages import Bands
from graphfield.analysis.rows import FieldLike, Graphs, TableLike, ask, covariate_rows, field_of
from graphfield.exceptions import DataError, ParameterError, check_choice, listing, suggestion
from graphfield.fields import GraphField
from graphfield.graphs import groups as node_groups
from graphfield.graphs.connectivity import NODE_MEASURES, Stack, check_measures, measure_graphs
from graphfield.graphs.groups import Groups, group_labels

if TYPE_CHECKING:
    from graphfield.graphs.groups import Groups


_DEFAULT = ("density", "mean_degree", "mean_strength", "clustering", "path_length")


def connectivity(
    model: FieldLike,
    Z: TableLike,
    measures: Sequence[str] | None = None,
    *,
    groups: Groups | None = None,
    threshold: float | str | None = "auto",
    rule: str = "and",
) -> pd.DataFrame:
    """Measures of the graph at every row of Z.

    All measures are of the graph at this threshold: an edge that is not there has weight zero in them.
    Strengths and weights are sizes of partial correlations.

    Parameters
    ----------
    model : fitted estimator
    Z : table of shape (n, q)
    measures : list of str, optional
        Any of ``density``, ``mean_degree``, ``mean_strength``, ``clustering``, ``transitivity`` (share of
        the pairs of edges at one node that a third closes), ``weighted_clustering``, ``path_length`` (steps,
        within the largest connected part), ``largest_part`` (share of nodes in it),
        ``mean_betweenness``, ``max_betweenness``, ``greedy_modularity`` (slow), and with groups
        ``modularity``, ``within`` and ``between`` (mean weight over pairs of one and of two groups). By
        default the quick ones.
    groups : mapping from node name to group, or one group per node, optional
    threshold : "auto", float, "gap" or None
        As in ``predict_graph``. Differences between rows can depend on it: with None, density counts
        everything that is not exactly zero.
    rule : {"and", "or"}

    Returns
    -------
    DataFrame of shape (n, number of measures)
        With the index of Z where that has one.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import connectivity
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :6], sim.Z)
    >>> connectivity(model, sim.Z, ["density", "clustering"], threshold=0.1).shape
    (300, 2)
    """
    field = field_of(model)
    table = covariate_rows(field, Z)
    chosen, labels = chosen_measures(measures, groups), labels_of(field, groups)
    asked = ask(field, table, threshold, rule)
    found = asked.collect(measurer(chosen, labels), (len(chosen),))
    return pd.DataFrame(found[asked.index], columns=chosen, index=table.index)


def node_connectivity(
    model: FieldLike,
    Z: TableLike,
    measure: str = "strength",
    *,
    threshold: float | str | None = "auto",
    rule: str = "and",
) -> pd.DataFrame:
    """One measure of every node at every row of Z: a table with one column per node.

    ``measure`` is ``degree``, ``strength``, ``clustering``, ``weighted_clustering`` or ``betweenness``.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import node_connectivity
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :6], sim.Z)
    >>> node_connectivity(model, sim.Z, "degree", threshold=0.1).columns.tolist()
    ['x1', 'x2', 'x3', 'x4', 'x5', 'x6']
    """
    field = field_of(model)
    check_choice("measure", measure, NODE_MEASURES)
    table = covariate_rows(field, Z)
    asked = ask(field, table, threshold, rule)
    compute = NODE_MEASURES[measure]
    found = asked.collect(lambda block: compute(Stack(block.graph, block.weights)), (field.n_nodes,))
    return pd.DataFrame(found[asked.index], columns=field.schema.node_names, index=table.index)


def measurer(chosen: Sequence[str], labels: Sequence[str] | None) -> Callable[[Graphs], NDArray]:
    """Graphs to their measures, (m, number of measures)."""

    def measured(block: Graphs) -> NDArray:
        return np.column_stack(list(measure_graphs(block.graph, block.weights, chosen, labels).values()))

    return measured


def chosen_measures(measures: Sequence[str] | None, groups: Groups | None) -> list[str]:
    """Names of the measures that were asked for, checked."""
    if measures is None:
        return [*_DEFAULT, *(["modularity", "within", "between"] if groups is not None else [])]
    chosen = [measures] if isinstance(measures, str) else list(measures)
    check_measures(chosen, groups is not None)
    return chosen


def labels_of(field: GraphField, groups: Groups | None) -> list[str] | None:
    return None if groups is None else group_labels(groups, field.schema.node_names)


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
        raise ParameterError.of("nodes", f"must name at least one, and none twice, got {wanted}.")
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
        ).about(argument="matrix")
    return [str(name) for name in matrix.columns]


def _members(wanted: Sequence[str], groups: Groups, names: Sequence[str]) -> NDArray[np.intp]:
    labels = np.array(node_groups.group_labels(groups, names), dtype=object)
    known = list(dict.fromkeys(labels))
    for group in wanted:
        if group not in known:
            raise DataError(
                f"There is no group called {group!r}.{suggestion(group, known)} "
                f"The groups are {listing(known)}."
            ).about(argument="nodes")
    return np.concatenate([np.flatnonzero(labels == group) for group in wanted])
