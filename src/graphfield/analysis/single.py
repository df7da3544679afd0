"""The graph at one covariate value, and two of them compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from graphfield.analysis.rows import ask, at_one, pair_names, pair_positions

if TYPE_CHECKING:
    from graphfield.estimators.base import GraphEstimator


def graph_at(
    model: GraphEstimator, z: Any, *, threshold: float | str | None = None, rule: str = "and"
) -> pd.DataFrame:
    """Partial correlations at one covariate value, as a table with the names of the nodes on both sides.

    Parameters
    ----------
    model : fitted estimator
    z : mapping, sequence or one-row table
        A value for every covariate.
    threshold : float, "gap" or None
        Edges that :meth:`~graphfield.estimators.base.GraphEstimator.predict_graph` does not have at this
        threshold are zero. None keeps all.
    rule : {"and", "or"}

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import graph_at
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> list(graph_at(model, [0.5, 0.2]).columns)
    ['x1', 'x2', 'x3', 'x4']
    """
    asked = ask(model, at_one(model, z), threshold, rule)
    (found,) = asked.blocks()
    values = np.where(found.graph[0], found.partial[0], 0) if threshold is not None else found.partial[0]
    return pd.DataFrame(values, index=model.node_names_, columns=model.node_names_)


def compare(model: GraphEstimator, z1: Any, z2: Any) -> pd.DataFrame:
    """Every pair of nodes at two covariate values, the largest change first.

    Returns
    -------
    DataFrame
        ``source``, ``target``, partial correlations ``first`` (at z1) and ``second`` (at z2), and
        ``difference`` = second - first.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import compare
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> list(compare(model, [0.1, 0.2], [0.9, 0.2]).columns)
    ['source', 'target', 'first', 'second', 'difference']
    """
    first, second = (graph_at(model, z).to_numpy() for z in (z1, z2))
    j, k = pair_positions(len(first))
    table = pd.DataFrame(
        {
            **pair_names(model, j, k),
            "first": first[j, k],
            "second": second[j, k],
            "difference": second[j, k] - first[j, k],
        }
    )
    order = np.argsort(-table["difference"].abs().to_numpy(), kind="stable")
    return table.iloc[order].reset_index(drop=True)
