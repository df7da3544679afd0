"""Edges and connectivity as curves over one covariate, the others averaged or fixed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.analysis.errors import error_columns
from graphfield.analysis.network import chosen_measures, labels_of, measurer
from graphfield.analysis.rows import (
    Asked,
    Edge,
    FieldLike,
    Graphs,
    TableLike,
    ask,
    covariate_rows,
    edge_positions,
    field_of,
    fixed_values,
    grid,
    pair_names,
    pair_positions,
    places,
)
from graphfield.analysis.wide_tables import WideTable
from graphfield.estimators.inputs import check_number
from graphfield.exceptions import ExtrapolationWarning
from graphfield.fields import GraphField

if TYPE_CHECKING:
    from graphfield.graphs.groups import Groups

# Quantiles over the rows that are averaged.
LOW, HIGH = 0.1, 0.9
# Enough to see which edges move at all, before their curves are drawn in full.
_COARSE_POINTS = 10
_COARSE_ROWS = 50


def edge_curves(
    model: FieldLike,
    along: str,
    Z: TableLike,
    edges: Sequence[Edge] | None = None,
    *,
    n_points: int = 50,
    others: str | Mapping[str, Any] = "average",
    n_rows: int | None = 200,
    most: int = 6,
) -> pd.DataFrame:
    """Partial correlations of some edges as curves over one covariate.

    At each value of the covariate the other covariates are those of real rows of Z, and the curve is the
    average over these rows (partial dependence). Where covariates go together, some of the combinations
    that this averages over do not occur; fix the others to see a curve at one combination that does.

    Parameters
    ----------
    model : fitted estimator
    along : str
        The covariate that moves: from the 1st to the 99th percentile of Z and never beyond the training
        range, or over the levels that occur in Z.
    Z : table
        Real rows, for the range and for the other covariates.
    edges : list of (source, target), optional
        By default the ``most`` edges whose curves move most.
    n_points : int
        Places along the covariate. A number with fewer different values is asked at these only.
    others : "average", "typical" or mapping
        What the other covariates do: take the values of real rows; stay at their median or most frequent
        level; or stay at the values of the mapping, those that it does not name being averaged over.
    n_rows : int or None
        Rows to average over, a sample that does not depend on the order of Z. None takes all.
    most : int
        How many edges are chosen where none are named.

    Returns
    -------
    DataFrame
        ``covariate`` (its name), ``value``, ``source``, ``target``, ``partial_correlation`` (the average),
        and ``low`` and ``high``, the 10 % and 90 % quantiles over the rows that are averaged: far apart where
        other covariates move this edge too.

        These two say nothing of how sure the curve is. Of an :class:`~graphfield.Ensemble` with
        ``resample=True`` the table also has ``standard_error`` of the average, and ``interval_low`` and
        ``interval_high``, an interval of 95 % at each value; with ``resample=False`` it has ``spread``.
        :func:`compare` says what these are and are not.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import edge_curves
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> len(edge_curves(model, "z1", sim.Z, [("x1", "x2")], n_points=5))
    5
    """
    field = field_of(model)
    check_number("most", most, 1, integer=True)
    values, fixed, rows = _course(field, along, Z, n_points, others, n_rows)
    if edges is None:
        j, k = _moving_pairs(field, along, values, rows, fixed, most)
    else:
        j, k = edge_positions(field, edges)
    asked = ask(field, grid(rows, along, values, fixed))
    mean, low, high = _summaries(asked, len(values), lambda block: block.partial[:, j, k], len(j))
    weights = np.full(len(asked.index), 1 / len(rows))
    place = np.repeat(np.arange(len(values)), len(rows))
    errors = error_columns(asked, weights, place, (j, k), mean)
    repeated = {name: np.tile(names, len(values)) for name, names in pair_names(field, j, k).items()}
    return WideTable(
        {
            "covariate": along,
            "value": np.repeat(np.array(values), len(j)),
            **repeated,
            "partial_correlation": mean.ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
            **{name: column.ravel() for name, column in errors.items()},
        }
    )


def connectivity_curves(
    model: FieldLike,
    along: str,
    Z: TableLike,
    measures: Sequence[str] | None = None,
    *,
    groups: Groups | None = None,
    n_points: int = 20,
    others: str | Mapping[str, Any] = "average",
    n_rows: int | None = 200,
    threshold: float | str | None = "auto",
    rule: str = "and",
) -> pd.DataFrame:
    """Connectivity as a curve over one covariate, the others as in :func:`edge_curves`.

    The measures are those of :func:`connectivity`; a measure is computed for every graph first and
    averaged then.

    Returns
    -------
    DataFrame
        ``covariate``, ``value``, ``measure``, ``mean``, ``low`` and ``high`` (10 % and 90 % quantiles).

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import connectivity_curves
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :6], sim.Z)
    >>> len(connectivity_curves(model, "z1", sim.Z, ["density"], n_points=5, threshold=0.1))
    5
    """
    field = field_of(model)
    values, fixed, rows = _course(field, along, Z, n_points, others, n_rows)
    chosen, labels = chosen_measures(measures, groups), labels_of(field, groups)
    asked = ask(field, grid(rows, along, values, fixed), threshold, rule)
    mean, low, high = _summaries(asked, len(values), measurer(chosen, labels), len(chosen))
    return pd.DataFrame(
        {
            "covariate": along,
            "value": np.repeat(np.array(values), len(chosen)),
            "measure": np.tile(np.array(chosen, dtype=object), len(values)),
            "mean": mean.ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
        }
    )


def _course(
    field: GraphField,
    along: str,
    Z: TableLike,
    n_points: int,
    others: str | Mapping[str, Any],
    n_rows: int | None,
) -> tuple[list[Any], dict[str, Any], pd.DataFrame]:
    """Values of the covariate that moves, covariates that stand still, and rows for the rest."""
    table = covariate_rows(field, Z)
    values = places(field, along, table[along] if along in table else pd.Series(), n_points)
    return values, fixed_values(field, table, along, others), covariate_rows(field, Z, n_rows)


def _summaries(
    asked: Asked, n_values: int, function: Callable[[Graphs], NDArray], width: int
) -> tuple[NDArray, NDArray, NDArray]:
    """Mean and quantiles over the rows at each value: (n_values, width) each."""
    found = asked.collect(function, (width,))
    at_rows = found[asked.index].reshape(n_values, -1, width)
    low, high = np.quantile(at_rows, [LOW, HIGH], axis=1)
    return at_rows.mean(axis=1), low, high


def _moving_pairs(
    field: GraphField,
    along: str,
    values: Sequence[Any],
    rows: pd.DataFrame,
    fixed: Mapping[str, Any],
    most: int,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The pairs whose average curve has the widest range, seen at a few places and rows."""
    step = -(-len(values) // _COARSE_POINTS)
    few = list(values[::step]) + ([values[-1]] if (len(values) - 1) % step else [])
    some = rows.iloc[:_COARSE_ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)  # it is said with the curves
        asked = ask(field, grid(some, along, few, fixed))
    j, k = pair_positions(field.n_nodes)
    # Rows that each place has of each distinct value.
    shares = np.zeros((len(few), asked.n_distinct))
    np.add.at(shares, (np.repeat(np.arange(len(few)), len(some)), asked.index), 1 / len(some))
    curves = np.zeros((len(few), len(j)))
    for block in asked.blocks():
        curves += shares[:, block.positions] @ block.partial[:, j, k]
    order = np.argsort(-np.ptp(curves, axis=0), kind="stable")[:most]
    return j[order], k[order]
