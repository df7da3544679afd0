"""What the training rows say about each pair of nodes, given a fitted model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.nodes import row_blocks
from graphfield.data.row_store import take_rows
from graphfield.estimators.training_set import TrainingSet
from graphfield.exceptions import TrainingError
from graphfield.fields import GraphField, Rows
from graphfield.fields.edge_list import pair_correlations
from graphfield.fields.streaming import slices
from graphfield.fields.walker import rows_at_a_time
from graphfield.graphs.cut_choice import CutErrors, NewRowErrors
from graphfield.graphs.pair_tests import FALSE_SHARE, PairScores, n_directions
from graphfield.graphs.threshold import Threshold, auto_threshold, find_gap, gap_rows

# Entries of coefficients that are looked at, at most, for the tests and for the cut. Beyond (50,000 rows of
# 200 nodes, 2,000 rows of 1,000 nodes for the tests) evenly spread rows, or groups, stand for all.
_TEST_ENTRIES, _CUT_ENTRIES = 2_000_000_000, 200_000_000
# For the cut, errors of each row at each cut are held: of so many rows, at most.
_CUT_ROWS = 100_000
# With fewer rows, or groups, that had no part in the fit, those of the fit say where to cut.
_MIN_NEW_UNITS = 50


@dataclass(frozen=True)
class FieldRows:
    """Rows that a field is asked at: nodes in the user's units, covariates; one label is one unit."""

    values: NDArray
    rows: Rows
    labels: NDArray | None
    field: GraphField

    @cached_property
    def units(self) -> NDArray[np.intp]:
        n = len(self.values)
        return np.arange(n) if self.labels is None else np.unique(self.labels, return_inverse=True)[1]

    def blocks(self, most_entries: int, most_rows: int | None = None) -> Iterator[NDArray[np.intp]]:
        """Positions of some rows at a time, unit by unit; of evenly spread units where these are many."""
        n, p = len(self.values), self.field.n_columns
        step = max(-(-n * p**2 // most_entries), -(-n // (most_rows or n)))
        order = np.argsort(self.units, kind="stable")
        order = order[self.units[order] % step == 0]
        for part in slices(len(order), rows_at_a_time(p)):
            yield order[part]

    def residuals(self, *most: int) -> Iterator[tuple[Any, Any, NDArray[np.intp]]]:
        """Residuals, directed strengths and units; the first two may be tensors of a GPU."""
        for own in self.blocks(*most):
            for few, residuals, directed in self.field.pair_parts(
                take_rows(self.values, own), self.rows.take(own)
            ):
                yield residuals, directed, self.units[own[few]]

    def judge(self, freedom: float, new: NewRows | KnownCut | None) -> tuple[NDArray[np.float64], float]:
        """The q-values of the pairs, (p, p), and the cut above which those that pass are edges.

        The q-values from these rows, those of the fit, whose graphs vary in ``freedom`` directions, the cut
        from ``new`` rows where there are enough of them; never below the standard error of an average edge,
        as one at a single z is known no better.
        """
        scores = PairScores(self.field.n_columns)
        for part in self.residuals(_TEST_ENTRIES):
            scores.add(*part)
        tests = scores.tests(freedom)
        rates = tests.rates(self.field.column_starts)
        clear = rates <= FALSE_SHARE
        least = min(1.0, tests.standard_error)
        if not clear.any():
            return rates, least
        cut = None if new is None else new.largest_cut(clear)
        if cut is None:
            errors = CutErrors(tests, clear, self.field.column_starts)
            for part in self.residuals(_CUT_ENTRIES, _CUT_ROWS):
                errors.add(*part)
            cut = errors.largest_cut(freedom)
        return rates, max(cut, least)


@dataclass(frozen=True)
class NewRows(FieldRows):
    """Rows that had no part in a fit, and the field of that fit."""

    def largest_cut(self, clear: NDArray[np.bool_]) -> float | None:
        """The cut that these rows support; None where they are too few to say."""
        if len(np.unique(self.units)) < _MIN_NEW_UNITS:
            return None
        errors = NewRowErrors(clear)
        for own in self.blocks(_CUT_ENTRIES, _CUT_ROWS):
            here = self.field.at(self.rows.take(own))
            x = self.field.standardize(take_rows(self.values, own), here.at)
            for few in row_blocks(len(own), here.weights[0].size):
                errors.add(x[few], here.weights[few], here.scales[few], self.units[own[few]])
        return errors.largest_cut()


@dataclass(frozen=True)
class KnownCut:
    """Of a model that is made of others, whose cuts were found on rows that had no part in their fits."""

    value: float

    def largest_cut(self, clear: NDArray[np.bool_]) -> float:  # noqa: ARG002
        return self.value


@dataclass(frozen=True)
class KnownPairs:
    """Of a model that says itself which pairs are edges, above which strength, and why."""

    clear: NDArray[np.bool_]
    value: float
    reason: str


def find_threshold(
    field: GraphField, data: TrainingSet, new: NewRows | KnownCut | KnownPairs | None
) -> Threshold:
    """When an edge is there, from the rows of a fit, so that no prediction depends on its company."""
    rows = field.encode(data.Z)
    n = len(rows)
    distinct, index = field.distinct(rows.take(gap_rows(n, field.n_nodes, data.streams["gap"])))
    parts = [pair_correlations(here.weights, here.scales) for here in field.chunks(distinct)]
    found = np.concatenate(parts)
    _check_finite(found, field.offsets_at(distinct), field.common.residual_scale)
    gap = find_gap(found if len(distinct) == len(index) else found[index], n)
    if isinstance(new, KnownPairs):
        rates = np.where(new.clear, 0.0, 1.0)
        return replace(auto_threshold(rates, new.value, found, gap), reason=new.reason)
    seen = FieldRows(data.X, rows, data.labels, field)
    rates, value = seen.judge(min(n_directions(found, index), data.most_directions), new)
    return auto_threshold(rates, value, found, gap)


def _check_finite(*results: NDArray) -> None:
    """The last step of every fit: what is not a number is an error, not a result."""
    if all(np.isfinite(result).all() for result in results):
        return
    raise TrainingError(
        "The fit broke down: some of its results are not numbers. Nodes that are copies or sums of others, "
        "and far outliers, can do this; gf.check_data names them. Leave them out, or use another estimator, "
        "such as GraphicalLasso."
    )
