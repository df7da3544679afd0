"""Regressions of nodes of every kind by their likelihoods."""

from __future__ import annotations

import numpy as np
import pandas as pd
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


def test_nearly_certain_classes_are_solved_as_exactly_as_others():
    """Their losses bend much less than at the start: steps without momentum came to their limit far away."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    X["above"] = X["a"] > 0
    blocks, codes = blocks_of(X, {})
    columns, ones, ridge = blocks.columns(codes), np.ones((len(X), 1)), 1e-3
    rows = FamilyRows(blocks, columns, np.zeros_like(columns), ones, ones)
    S = fit_families(rows, RidgeStep(rows, ridge))
    slope = rows.gradient(rows.columns - blocks.means(rows.predictors(S))) - ridge * S
    np.testing.assert_allclose(np.delete(slope[:, 3], 3), 0, atol=2e-5)
