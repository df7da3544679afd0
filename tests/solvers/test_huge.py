"""The same graphs as R's huge 1.3.5 (its values are made by ``huge/values.R``)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphfield.data.marginals import NormalScores
from graphfield.solvers.glasso import graphical_lasso_at
from graphfield.solvers.lasso import nodewise_lasso_at
from graphfield.solvers.rank_correlations import rank_correlations


@pytest.fixture(scope="module")
def values() -> dict[str, np.ndarray]:
    """What huge gives, all as arrays."""
    found = json.loads((Path(__file__).parent / "huge" / "values.json").read_text())
    return {name: np.array(own) for name, own in found.items() if name != "version"}


def test_normal_scores(values):
    """Both are the normal quantiles of ranks; huge divides all nodes by the first one's spread."""
    X, theirs = values["X"], values["scores"]
    ours = NormalScores.learn(X).transform(X)
    for own, other in zip(ours.T, theirs.T, strict=True):
        own, other = ((column - column.mean()) / column.std() for column in (own, other))
        np.testing.assert_allclose(own, other, atol=1e-4)


def test_rank_correlations(values):
    np.testing.assert_allclose(rank_correlations(values["X"]), values["skeptic"], atol=1e-5)


@pytest.mark.parametrize("step", range(3))
def test_graphical_lasso(values, step):
    """huge penalises the diagonal as well: that is the correlation matrix with the penalty added to it."""
    penalty, S = float(values["lambda"][step]), np.corrcoef(values["X"].T)
    known = (S + penalty * np.eye(len(S))) / (1 + penalty)
    ours = graphical_lasso_at(known, penalty / (1 + penalty)).solution / (1 + penalty)
    np.testing.assert_allclose(ours, values["precision"][step], atol=2e-3)
    np.testing.assert_array_equal(np.abs(ours) > 5e-3, np.abs(values["precision"][step]) > 5e-3)


@pytest.mark.parametrize("step", range(3))
def test_nodewise_lasso(values, step):
    penalty, S = float(values["lambda"][step]), np.corrcoef(values["X"].T)
    theirs = values["coefficients"][step].T  # of the responses by row
    np.testing.assert_allclose(nodewise_lasso_at(S, penalty).solution, theirs, atol=2e-3)
