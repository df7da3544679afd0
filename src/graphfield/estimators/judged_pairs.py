"""What the training rows say about each pair of nodes, given a fitted model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import TrainingError
from graphfield.fields import GraphField, Rows
from graphfield.fields.edge_list import pair_correlations
from graphfield.fields.streaming import slices
from graphfield.fields.walker import rows_at_a_time
from graphfield.graphs.cut_choice import CutErrors, NewRowErrors
from graphfield.graphs.pair_tests import PairScores, n_directions
from graphfield.graphs.threshold import Threshold, auto_threshold, find_gap, gap_rows

# Entries of coefficients that are looked at, at most, for the tests and for the cut. Beyond (50,000 rows of
# 200 nodes, 2,000 rows of 1,000 nodes for the tests) evenly spread rows, or groups, stand for all.
_TEST_ENTRIES, _CUT_ENTRIES = 2_000_000_000, 200_000_000
# With fewer rows, or groups, that had no part in the fit, those of the fit say where to cut.
_MIN_NEW_UNITS = 50


@dataclass(frozen=True)
class NewRows:
    """Rows that had no part in a fit, and the field of that fit: nodes in the user's units, covariates."""

    values: NDArray
    rows: Rows
    labels: NDArray | None
    field: GraphField

    def largest_cut(self, clear: NDArray[np.bool_]) -> float | None:
        """The cut that these rows support; None where they are too few to say."""
        units, order = _in_units(len(self.values), self.labels)
        if len(np.unique(units)) < _MIN_NEW_UNITS:
            return None
        errors = NewRowErrors(clear)
        for part in slices(len(order), rows_at_a_time(self.field.n_nodes)):
            own = order[part]
            here = self.field.at(self.rows.take(own))
            x = self.field.standardize(self.values[own], here.at)
            errors.add(x, here.weights, here.scales, units[own])
        return errors.largest_cut()


@dataclass(frozen=True)
class KnownCut:
    """Of a model that is made of others, whose cuts were found on rows that had no part in their fits."""

    value: float

    def largest_cut(self, clear: NDArray[np.bool_]) -> float:  # noqa: ARG002
        return self.value


def find_threshold(field: GraphField, data: TrainingSet, new: NewRows | KnownCut | None) -> Threshold:
    """When an edge is there, from the rows of a fit, so that no prediction depends on its company."""
    rows = field.encode(data.Z)
    n = len(rows)
    distinct, index = field.distinct(rows.take(gap_rows(n, field.n_nodes, data.streams["gap"])))
    parts = [pair_correlations(here.weights, here.scales) for here in field.chunks(distinct)]
    found = np.concatenate(parts)
    _check_finite(found, field.offsets_at(distinct), field.common.residual_scale)
    gap = find_gap(found if len(distinct) == len(index) else found[index], n)
    clear, value = judge_pairs(field, data.X, rows, data.labels, n_directions(found, index), new)
    return auto_threshold(clear, value, found, gap)


def _check_finite(*results: NDArray) -> None:
    """The last step of every fit: what is not a number is an error, not a result."""
    if all(np.isfinite(result).all() for result in results):
        return
    raise TrainingError(
        "The fit broke down: some of its results are not numbers. Nodes that are copies or sums of others, "
        "and far outliers, can do this; gf.check_data names them. Leave them out, or use another estimator, "
        "such as GraphicalLasso."
    )


def judge_pairs(
    field: GraphField,
    values: NDArray,
    rows: Rows,
    labels: NDArray | None,
    freedom: float,
    new: NewRows | KnownCut | None = None,
) -> tuple[NDArray[np.bool_], float]:
    """Pairs that stand clear of their noise, (p, p), and the cut above which they are edges.

    The pairs from the training rows of a field, whose graphs vary in ``freedom`` directions, the cut
    from ``new`` rows where there are enough of them; never below the standard error of an average edge, as
    one at a single z is known no better. Rows of one label count as one.
    """
    units, _ = _in_units(len(values), labels)
    scores = PairScores(field.n_columns)
    for part in _parts(field, values, rows, units, _TEST_ENTRIES):
        scores.add(*part)
    tests = scores.tests(freedom)
    clear = tests.clear(field.column_starts)
    least = min(1.0, tests.standard_error)
    if not clear.any():
        return clear, least
    cut = None if new is None else new.largest_cut(clear)
    if cut is None:
        errors = CutErrors(tests, clear, field.column_starts)
        for part in _parts(field, values, rows, units, _CUT_ENTRIES):
            errors.add(*part)
        cut = errors.largest_cut(freedom)
    return clear, max(cut, least)


def _in_units(n: int, labels: NDArray | None) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The unit of each row, and the order in which the rows of a unit follow each other."""
    units = np.arange(n) if labels is None else np.unique(labels, return_inverse=True)[1]
    return units, np.argsort(units, kind="stable")


def _parts(
    field: GraphField, values: NDArray, rows: Rows, units: NDArray[np.intp], most_entries: int
) -> Iterator[tuple[NDArray, NDArray, NDArray[np.intp]]]:
    """Residuals, directed strengths and units of some rows after the other, unit by unit."""
    n, p = len(values), field.n_columns
    order = np.argsort(units, kind="stable")
    order = order[units[order] % -(-n * p**2 // most_entries) == 0]
    for part in slices(len(order), rows_at_a_time(p)):
        own = order[part]
        for few, residuals, directed in field.pair_parts(values[own], rows.take(own)):
            yield residuals, directed, units[own[few]]
