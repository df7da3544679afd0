"""Regressions of nodes of every kind by their likelihoods."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from graphfield.solvers.working import FamilyRows, RidgeStep, fit_families
from solver_cases import COUNTED, blocks_of, mixed_table


def test_a_binary_node_is_a_logistic_regression():
    X, _ = mixed_table()
    blocks, codes = blocks_of(X, COUNTED)
    columns, ones = blocks.columns(codes), np.ones((len(X), 1))
    rows = FamilyRows(blocks, columns, np.zeros_like(columns), ones, ones)
    eta = rows.predictors(fit_families(rows, RidgeStep(rows, 1e-6), tolerance=1e-7))
    others = np.delete(columns, 1, axis=1)
    known = LogisticRegression(C=1e8, tol=1e-10).fit(others, X.flag).predict_proba(others)
    np.testing.assert_allclose(blocks.probabilities(eta, 1), known, atol=1e-3)
