"""What the training rows say about each pair of nodes, given a fitted model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import Encoded
from graphfield.estimators.per_row import PerRow
from graphfield.estimators.streaming import cache_slices, slices
from graphfield.graphs.cut_choice import CutErrors
from graphfield.graphs.pair_tests import PairScores
from graphfield.graphs.strength import directed_strengths

# Entries of coefficients that are looked at, at most, for the tests and for the cut. Beyond (50,000 rows of
# 200 nodes, 2,000 rows of 1,000 nodes for the tests) evenly spread rows, or groups, stand for all.
_TEST_ENTRIES, _CUT_ENTRIES = 2_000_000_000, 200_000_000


def judge_pairs(
    model: PerRow, values: NDArray, encoded: Encoded, labels: NDArray | None, freedom: float
) -> tuple[NDArray[np.bool_], float]:
    """Pairs that stand clear of their noise, (p, p), and the cut above which they are edges.

    From the training rows of a fitted model, whose graphs vary in ``freedom`` directions; rows of one label
    count as one.
    """
    units = np.arange(len(values)) if labels is None else np.unique(labels, return_inverse=True)[1]
    scores = PairScores(values.shape[1])
    for part in _parts(model, values, encoded, units, _TEST_ENTRIES):
        scores.add(*part)
    tests = scores.tests(freedom)
    clear = tests.clear()
    if not clear.any():
        return clear, min(1.0, tests.standard_error)
    errors = CutErrors(tests, clear)
    for part in _parts(model, values, encoded, units, _CUT_ENTRIES):
        errors.add(*part)
    return clear, errors.largest_cut(freedom)


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
