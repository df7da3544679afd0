"""The graph at one covariate value, and two of them compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from graphfield.analysis.errors import error_columns, warn_all_outside, warn_of_few_rows
from graphfield.analysis.rows import (
    FieldLike,
    TableLike,
    ask,
    at_one,
    covariate_rows,
    field_of,
    named_graph,
    pair_names,
    pair_positions,
)
from graphfield.analysis.wide_tables import WideTable
from graphfield.exceptions import ParameterError
from graphfield.fields import GraphField
from graphfield.messages import Message


def graph_at(
    model: FieldLike, z: Any, *, threshold: float | str | None = "auto", rule: str = "and"
) -> pd.DataFrame:
    """Partial correlations at one covariate value, as a table with the names of the nodes on both sides.

    Parameters
    ----------
    model : fitted estimator
    z : mapping, sequence or one-row table
        A value for every covariate.
    threshold : "auto", float, "gap" or None
        Pairs that are no edges in :meth:`~graphfield.estimators.base.GraphEstimator.predict_graph` at this
        threshold are zero. None keeps all estimates, which is what differences are taken of.
    rule : {"and", "or"}

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import graph_at
    >>> sim = gf.make_setting("G1", n_samples=100, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> list(graph_at(model, [0.5, 0.2], threshold=0.1).columns)
    ['x1', 'x2', 'x3', 'x4']
    """
    field = field_of(model)
    asked = ask(field, at_one(field, z), threshold, rule)
    warn_of_few_rows(field, asked.table)
    warn_all_outside(asked)
    (found,) = asked.blocks()
    values = np.where(found.graph[0], found.partial[0], 0) if threshold is not None else found.partial[0]
    return named_graph(field, values)


def compare(model: FieldLike, z1: Any, z2: Any) -> pd.DataFrame:
    """Every pair of nodes at two covariate values, the largest change first.

    How sure is a difference? One fit cannot say. Fit ``gf.Ensemble(estimator=..., resample=True)``, with 20
    members or more: its table has standard errors and intervals.

    Returns
    -------
    DataFrame
        ``source``, ``target``, partial correlations ``first`` (at z1) and ``second`` (at z2), and
        ``difference`` = second - first.

        Of an :class:`~graphfield.Ensemble` with ``resample=True`` also ``standard_error``, the standard
        deviation over the members of their own difference, and ``interval_low`` and ``interval_high``,
        difference -+ t * standard_error, where t is the 97.5 % quantile of Student's distribution with
        n_members - 1 degrees of freedom. This is a bootstrap standard error of one member, so it is cautious
        for the average of the members. It does not know of the bias of a penalty, which pulls all members
        towards zero alike, and an interval speaks of one pair: of many, some miss by chance.

        Of a :class:`~graphfield.BayesianCGM` they are the standard deviation and quantiles of the posterior.

        Of an Ensemble with ``resample=False`` also ``spread``, the same standard deviation. The members
        saw the same rows there, so it is only what chance in fitting does: no standard error, and too small
        to make an interval of.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import compare
    >>> sim = gf.make_setting("G1", n_samples=100, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> list(compare(model, [0.1, 0.2], [0.9, 0.2]).columns)
    ['source', 'target', 'first', 'second', 'difference']
    >>> several = gf.Ensemble(estimator=gf.RegGMM(), n_members=5, resample=True, random_state=0)
    >>> table = compare(several.fit(sim.X[:, :4], sim.Z), [0.1, 0.2], [0.9, 0.2])
    >>> list(table.columns)[5:]
    ['standard_error', 'interval_low', 'interval_high']
    """
    field = field_of(model)
    both = pd.concat([at_one(field, z) for z in (z1, z2)], ignore_index=True)
    asked = ask(field, both)
    warn_all_outside(asked)
    pairs = pair_positions(field.n_nodes)
    at_pairs = asked.collect(lambda block: block.partial[:, *pairs], (len(pairs[0]),))
    first, second = at_pairs[asked.index]
    difference = second - first
    errors = error_columns(asked, np.array([-1.0, 1.0]), np.zeros(2, dtype=np.intp), pairs, difference[None])
    if "interval_low" not in errors:  # with intervals, what is wrong with them is said
        warn_of_few_rows(field, asked.table)
    table = pd.DataFrame(
        {
            **pair_names(field, *pairs),
            "first": first,
            "second": second,
            "difference": difference,
            **{name: values[0] for name, values in errors.items()},
        }
    )
    order = np.argsort(-table["difference"].abs().to_numpy(), kind="stable")
    return WideTable(table.iloc[order].reset_index(drop=True))


def intervals_at(model: FieldLike, z: Any) -> pd.DataFrame:
    """Every pair of nodes at one covariate value with its interval, the strongest first.

    Parameters
    ----------
    model : fitted Ensemble with ``resample=True``, or fitted BayesianCGM
    z : mapping, sequence or one-row table
        A value for every covariate.

    Returns
    -------
    DataFrame
        ``source``, ``target``, ``partial_correlation``, ``standard_error``, ``interval_low`` and
        ``interval_high``; :func:`compare` says what these are and are not. At a level of a category with few
        training rows they are too narrow, as the model leans on other levels there: a
        :class:`~graphfield.FewRowsWarning` names the level and its rows.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import intervals_at
    >>> sim = gf.make_setting("G1", n_samples=100, random_state=0)
    >>> several = gf.Ensemble(estimator=gf.RegGMM(), n_members=5, resample=True, random_state=0)
    >>> len(intervals_at(several.fit(sim.X[:, :4], sim.Z), [0.5, 0.2]))
    6
    """
    field = field_of(model)
    return _intervals(field, at_one(field, z))


def average_intervals(model: FieldLike, Z: TableLike) -> pd.DataFrame:
    """The same for the average over the rows of Z (:func:`~graphfield.analysis.average_graph`).

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import average_intervals
    >>> sim = gf.make_setting("G1", n_samples=100, random_state=0)
    >>> several = gf.Ensemble(estimator=gf.RegGMM(), n_members=5, resample=True, random_state=0)
    >>> len(average_intervals(several.fit(sim.X[:, :4], sim.Z), sim.Z))
    6
    """
    field = field_of(model)
    return _intervals(field, covariate_rows(field, Z))


def _intervals(field: GraphField, rows: pd.DataFrame) -> pd.DataFrame:
    """Of partial correlations averaged over some rows of covariates."""
    asked = ask(field, rows)
    pairs = pair_positions(field.n_nodes)
    estimate = asked.average()[None][:, *pairs]
    shares, one_answer = np.full(len(rows), 1 / len(rows)), np.zeros(len(rows), dtype=np.intp)
    errors = error_columns(asked, shares, one_answer, pairs, estimate)
    if "interval_low" not in errors:
        raise ParameterError(
            "Intervals need fits to rows drawn with replacement: {fit}.",
            fit=Message("fit gf.Ensemble(estimator=..., n_members=5, resample=True)", code="fit-resampled"),
        ).about(argument="model")
    table = pd.DataFrame(
        {
            **pair_names(field, *pairs),
            "partial_correlation": estimate[0],
            # Close to the end of the scale, the interval of a correlation ends there.
            **{name: np.clip(values[0], -1, 1) for name, values in errors.items()},
        }
    )
    order = np.argsort(-np.abs(estimate[0]), kind="stable")
    return WideTable(table.iloc[order].reset_index(drop=True))
