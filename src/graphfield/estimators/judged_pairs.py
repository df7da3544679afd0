"""What the training rows say about each pair of nodes, given a fitted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import Encoded
from graphfield.estimators.per_row import PerRow
from graphfield.estimators.streaming import cache_slices, slices
from graphfield.graphs.cut_choice import CutErrors, NewRowErrors
from graphfield.graphs.pair_tests import PairScores
from graphfield.graphs.strength import directed_strengths

# Entries of coefficients that are looked at, at most, for the tests and for the cut. Beyond (50,000 rows of
# 200 nodes, 2,000 rows of 1,000 nodes for the tests) evenly spread rows, or groups, stand for all.
_TEST_ENTRIES, _CUT_ENTRIES = 2_000_000_000, 200_000_000
# With fewer rows, or groups, that had no part in the fit, those of the fit say where to cut.
_MIN_NEW_UNITS = 50


@dataclass(frozen=True)
class NewRows:
    """Rows that had no part in a fit: nodes in the user's units, covariates, the coefficients of that fit."""

    values: NDArray
    encoded: Encoded
    labels: NDArray | None
    coef_at: Callable[[Encoded], NDArray]

    def largest_cut(self, model: PerRow, clear: NDArray[np.bool_]) -> float | None:
        """The cut that these rows support; None where they are too few to say."""
        units, order = _in_units(len(self.values), self.labels)
        if len(np.unique(units)) < _MIN_NEW_UNITS:
            return None
        errors = NewRowErrors(clear)
        for rows in slices(len(order), model._rows_per_chunk()):
            own = order[rows]
            z = self.encoded.take(own)
            x, scale = model._standard(self.values[own], z), model._residual_scale_at(z)
            errors.add(x, self.coef_at(z), scale, units[own])
        return errors.largest_cut()


@dataclass(frozen=True)
class KnownCut:
    """Of a model that is made of others, whose cuts were found on rows that had no part in their fits."""

    value: float

    def largest_cut(self, model: PerRow, clear: NDArray[np.bool_]) -> float:  # noqa: ARG002
        return self.value


def judge_pairs(
    model: PerRow,
    values: NDArray,
    encoded: Encoded,
    labels: NDArray | None,
    freedom: float,
    new: NewRows | KnownCut | None = None,
) -> tuple[NDArray[np.bool_], float]:
    """Pairs that stand clear of their noise, (p, p), and the cut above which they are edges.

    The pairs from the training rows of a fitted model, whose graphs vary in ``freedom`` directions, the cut
    from ``new`` rows where there are enough of them; never below the standard error of an average edge, as
    one at a single z is known no better. Rows of one label count as one.
    """
    units, _ = _in_units(len(values), labels)
    scores = PairScores(values.shape[1])
    for part in _parts(model, values, encoded, units, _TEST_ENTRIES):
        scores.add(*part)
    tests = scores.tests(freedom)
    clear = tests.clear()
    least = min(1.0, tests.standard_error)
    if not clear.any():
        return clear, least
    cut = None if new is None else new.largest_cut(model, clear)
    if cut is None:
        errors = CutErrors(tests, clear)
        for part in _parts(model, values, encoded, units, _CUT_ENTRIES):
            errors.add(*part)
        cut = errors.largest_cut(freedom)
    return clear, max(cut, least)


def _in_units(n: int, labels: NDArray | None) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The unit of each row, and the order in which the rows of a unit follow each other."""
    units = np.arange(n) if labels is None else np.unique(labels, return_inverse=True)[1]
    return units, np.argsort(units, kind="stable")


def _parts(
    model: PerRow, values: NDArray, encoded: Encoded, units: NDArray[np.intp], most_entries: int
) -> Iterator[tuple[NDArray, NDArray, NDArray[np.intp]]]:
    """Residuals, directed strengths and units of some rows after the other, unit by unit."""
    n, p = values.shape
    order = np.argsort(units, kind="stable")
    order = order[units[order] % -(-n * p**2 // most_entries) == 0]
    for rows in slices(len(order), model._rows_per_chunk()):
        own = order[rows]
        z = encoded.take(own)
        coef, scale, x = model._coef_at(z), model._residual_scale_at(z), model._standard(values[own], z)
        residuals = (x - np.einsum("bjk,bk->bj", coef, x)) / scale
        for part in cache_slices(len(own), p):
            yield residuals[part], directed_strengths(coef[part], scale[part]), units[own[part]]
