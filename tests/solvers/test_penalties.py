"""Searches along falling penalties."""

from __future__ import annotations

import numpy as np

from graphfield.solvers.penalties import compare_rows, search_each_node

LOSSES = {4: [3.0, 2.0, 5.0], 3: [1.0, 4.0, 5.0], 2: [0.5, 3.0, 5.0], 1: [2.0, 3.0, 5.0], 0: [0.0, 0.0, 0.0]}


def test_each_node_has_its_own_best_value():
    best, tried = np.full(3, -1), []

    def attempt(value):
        tried.append(value)
        return value, np.array(LOSSES[value])

    def keep(value, better):
        best[better] = value

    search_each_node([*LOSSES], attempt, keep, np.full(3, 4.5), lambda better, _: not better.any())
    assert best.tolist() == [2, 4, -1], "the last gains nowhere over what was known before"
    assert tried == [4, 3, 2, 1], "it ends where no node gains"


def test_the_simplest_model_that_is_not_clearly_behind_is_taken():
    rng = np.random.default_rng(0)
    best = rng.normal(size=200)
    noise = rng.normal(size=200)
    noise -= noise.mean()
    far, near = best - 1 + noise, best - 0.01 + noise
    table, chosen = compare_rows([far, near, best])
    assert chosen == 1
    np.testing.assert_allclose(table[2, 1:], 0)
    np.testing.assert_allclose(table[0, 2], (best - far).std(ddof=1) / np.sqrt(200))
    assert compare_rows([far, near, best], ddof=0)[1] == 1


def test_a_model_without_a_likelihood_is_never_taken():
    rows = [np.full(20, -np.inf), np.linspace(0, 1, 20)]
    assert compare_rows(rows)[1] == 1
