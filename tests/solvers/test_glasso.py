"""The graphical lasso, its search and its criterion, against scikit-learn and formulas on the rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.covariance import GraphicalLassoCV, graphical_lasso

from graphfield.data.splits import fold_labels
from graphfield.solvers.glasso import edge_counts, graphical_lasso_cv, graphical_lasso_path, precision_ebic
from graphfield.solvers.glasso_admm import optimality_violation
from graphfield.solvers.lasso import nodewise_ebic
from graphfield.solvers.moments import FoldMoments
from graphfield.solvers.penalties import penalty_path
from solver_cases import band, raw_lasso, standard


def test_graphical_path_equals_scikit_learn():
    X = standard(band(200, 8)[0])
    S = X.T @ X / len(X)
    penalties = penalty_path(S, 5, ratio=0.02)
    path = graphical_lasso_path(S, penalties)
    state = np.random.get_state()  # noqa: NPY002
    theirs = [graphical_lasso(S, penalty, tol=1e-9, enet_tol=1e-14, max_iter=500)[1] for penalty in penalties]
    np.random.set_state(state)  # noqa: NPY002
    # The gap at which scikit-learn stops changes its sign, so it can be small a step too early.
    np.testing.assert_allclose(path, theirs, atol=5e-4)
    counts = edge_counts(path)
    assert counts[0] == 0
    assert (np.diff(counts) >= 0).all()


def test_a_graphical_lasso_that_stops_short_is_nan(monkeypatch):
    S = np.corrcoef(band(60, 8)[0].T)
    monkeypatch.setattr("graphfield.solvers.glasso.graphical_lasso", lambda *_, **__: (S, np.eye(8)))
    assert optimality_violation(graphical_lasso_path(S, [0.05])[0], S, 0.05) < 1e-4
    monkeypatch.setattr("graphfield.solvers.glasso_admm._MAX_ITERATIONS", 1)
    assert np.isnan(graphical_lasso_path(S, [0.05])).all()


def test_ebic_equals_its_formula_on_rows():
    X = standard(band(80, 6)[0])
    n, p = X.shape
    S = X.T @ X / n
    coef = raw_lasso(X, 0.1)
    rss = ((X - X @ coef.T) ** 2).sum(axis=0)
    degrees = (coef != 0).sum(axis=1)
    expected = (n * np.log(rss / n) + degrees * (np.log(n) + 2 * 0.7 * np.log(p - 1))).sum()
    assert nodewise_ebic(coef[None], S, n, 0.7)[0] == pytest.approx(expected)
    precision = graphical_lasso_path(S, [0.1])
    n_edges = np.count_nonzero(np.triu(precision[0], 1))
    likelihood = n / 2 * (np.log(np.linalg.det(precision[0])) - np.trace(S @ precision[0]))
    expected = -2 * likelihood + n_edges * np.log(n) + 4 * n_edges * 0.7 * np.log(p)
    assert precision_ebic(precision, S, n, 0.7)[0] == pytest.approx(expected)


@pytest.mark.parametrize(("n", "p"), [pytest.param(24, 30, marks=pytest.mark.slow), (300, 8)])
def test_the_search_of_the_graphical_lasso_finds_the_penalty_of_scikit_learn(n, p):
    """With fewer rows than nodes the smallest penalties are left out, which must not matter."""
    X = standard(band(n, p)[0])
    state = np.random.get_state()  # noqa: NPY002
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = GraphicalLassoCV(alphas=6, cv=4, n_refinements=2, assume_centered=True, max_iter=200).fit(X)
    np.random.set_state(state)  # noqa: NPY002
    parts = FoldMoments.of_each(X, fold_labels(n, 4, None, shuffle=False))
    ours = graphical_lasso_cv(X.T @ X / n, n, parts, 6)
    assert ours.penalty == pytest.approx(theirs.alpha_, rel=1e-12)
    np.testing.assert_allclose(ours.solution, theirs.precision_, atol=2e-3)
    assert optimality_violation(ours.solution, X.T @ X / n, ours.penalty) < 0.005 * ours.penalty
    tried = np.isin(ours.path[:, 0].round(12), theirs.cv_results_["alphas"].round(12))
    assert tried.all()
    assert n > p or len(tried) < len(theirs.cv_results_["alphas"])
