"""Second moments that are added up from blocks of rows and from folds."""

from __future__ import annotations

import numpy as np
import pytest

from graphfield.data import nodes
from graphfield.solvers.moments import FoldMoments, RowMoments


@pytest.fixture
def X(monkeypatch) -> np.ndarray:
    """Far from zero, as rows of one fold may be, and in many blocks."""
    monkeypatch.setattr(nodes, "BLOCK_ENTRIES", 40)
    return np.random.default_rng(0).normal(size=(101, 4)).cumsum(axis=1) + 1e3


def test_moments_of_blocks_are_those_of_all_rows(X):
    found = RowMoments.of(X)
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(found.covariance, np.cov(X.T, ddof=0), rtol=1e-9)
    np.testing.assert_allclose(found.about(X[0]), (X - X[0]).T @ (X - X[0]) / len(X), rtol=1e-9)


def test_rows_of_no_fold_are_always_known(X):
    folds = np.random.default_rng(1).integers(-1, 3, len(X))
    X[folds != 2, 3] = 1e3  # known to vary only where the last fold is
    found = FoldMoments.of_each(X, folds)
    assert [fold.varies for fold in found] == [True, True, False]
    for number, fold in enumerate(found):
        known, new = X[folds != number], X[folds == number]
        left = new - known.mean(axis=0)
        assert (fold.n_known, fold.n_new) == (len(known), len(new))
        np.testing.assert_allclose(fold.known, np.cov(known.T, ddof=0), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(fold.new, np.cov(new.T, ddof=0), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(fold.new_about_known, left.T @ left / len(new), rtol=1e-9, atol=1e-11)
