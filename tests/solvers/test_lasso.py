"""Lassos of every node on all others, against those of scikit-learn on the rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold

from graphfield.data.splits import fold_labels
from graphfield.solvers.lasso import nodewise_cv_errors, nodewise_lasso_path
from graphfield.solvers.moments import FoldMoments
from graphfield.solvers.penalties import penalty_path
from solver_cases import band, raw_lasso, standard


@pytest.mark.parametrize(("n", "p"), [(200, 8), (15, 25)])
def test_nodewise_path_equals_the_lasso_on_the_rows(n, p):
    X = standard(band(n, p)[0])
    S = X.T @ X / n
    penalties = penalty_path(S, 4, ratio=0.05)
    path = nodewise_lasso_path(S, penalties)
    for penalty, coef in zip(penalties, path, strict=True):
        np.testing.assert_allclose(coef, raw_lasso(X, penalty), atol=1e-6)
    assert not path[0].any(), "the first penalty is the empty graph"
    order = [2, 0, 3, 1]
    np.testing.assert_allclose(nodewise_lasso_path(S, penalties[order]), path[order], atol=1e-7)


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(12), 5)])
def test_cross_validation_by_quadratic_forms_equals_that_on_rows(groups):
    X = band(60, 6)[0] + 3.0
    penalties = np.array([0.3, 0.1, 0.02])
    splitter = KFold(4) if groups is None else GroupKFold(4)
    expected = np.zeros(3)
    for train, test in splitter.split(X, groups=groups):
        mean = X[train].mean(axis=0)
        for i, penalty in enumerate(penalties):
            fitted = mean + (X[test] - mean) @ raw_lasso(X[train], penalty).T
            expected[i] += ((X[test] - fitted) ** 2).sum() / X.size
    errors = nodewise_cv_errors(FoldMoments.of_each(X, fold_labels(60, 4, groups, shuffle=False)), penalties)
    np.testing.assert_allclose(errors, expected, rtol=1e-8)
