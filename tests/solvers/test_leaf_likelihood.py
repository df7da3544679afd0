"""Trees that split rows where covariances of nodes differ."""

from __future__ import annotations

import pytest

from graphfield.solvers import leaf_likelihood
from graphfield.solvers.leaf_likelihood import grow_covariance_tree
from solver_cases import two_regimes


def test_sketches_and_parts_of_the_rows_find_the_same_split(monkeypatch):
    X, Z = two_regimes(2000)
    monkeypatch.setattr(leaf_likelihood, "_MAX_PRODUCTS", 3)
    monkeypatch.setattr(leaf_likelihood, "_SKETCHES", 64)
    sketched = grow_covariance_tree(X, Z, 2, 20, seed=0)
    monkeypatch.setattr(leaf_likelihood, "_MAX_ENTRIES", 64 * 1000)
    fewer = grow_covariance_tree(X, Z, 2, 20, seed=0)
    for tree in (sketched, fewer):
        assert tree.feature[0] == 0
        assert tree.threshold[0] == pytest.approx(0.3, abs=0.03)
