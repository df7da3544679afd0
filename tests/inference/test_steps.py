"""Nodes with few values, such as answers on a scale: ties must not become edges."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.inference.edges import read_question


def items(seed: int, cuts: list[float], n: int = 1_000, p: int = 8) -> tuple[np.ndarray, pd.DataFrame]:
    """Independent answers, whose means move with three covariates."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    behind = rng.normal(size=(n, p)) + 0.2 * z @ rng.normal(size=(3, p))
    X = (behind[None] > np.quantile(behind, cuts, axis=0)[:, None]).sum(axis=0)
    return X.astype(float), pd.DataFrame(z, columns=list("abc"))


@pytest.mark.parametrize("cuts", [[0.3], [0.1, 0.3], [0.2, 0.4, 0.6, 0.8]], ids=str)
def test_rows_of_one_step_are_not_put_in_the_order_of_a_mean(cuts):
    """What is left of independent answers is independent."""
    X, Z = items(0, cuts)
    values = read_question(X, Z, None, "error").nodes().values
    correlations = np.corrcoef(values.T)[np.triu_indices(8, 1)]
    assert np.abs(correlations).max() < 4 / np.sqrt(len(X))


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [[0.3], [0.1, 0.3]], ids=str)
def test_independent_answers_have_no_edges(cuts):
    """Half of these p-values were below .05 while ranks split ties."""
    shares, found = [], 0
    for seed in range(8):
        X, Z = items(seed, cuts)
        table = gf.infer_edges(X, Z, covariates=[]).table
        shares.append((table[["p_value", "p_varies"]] <= 0.05).mean())
        found += int((table[["q_value", "q_varies"]] <= 0.1).to_numpy().sum())
    assert (np.mean(shares, axis=0) < 0.1).all()
    assert found <= 4


@pytest.mark.slow
def test_a_graph_of_answers_does_not_move_with_noise():
    p_values = []
    for seed in range(6):
        X, _ = items(seed, [0.1, 0.3])
        Z = pd.DataFrame({"u": np.random.default_rng(seed).normal(size=len(X))})
        X[:, 1] = np.where(np.random.default_rng(100 + seed).uniform(size=len(X)) < 0.3, X[:, 0], X[:, 1])
        p_values.append(gf.dependence_test(X, Z, n_permutations=99, random_state=seed).p_value)
    assert np.mean(np.array(p_values) <= 0.1) <= 0.5
    assert max(p_values) > 0.3
