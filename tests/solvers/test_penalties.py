"""Searches along falling penalties."""

from __future__ import annotations

import numpy as np
import pytest

from graphfield.solvers.penalties import PathSearch, compare_rows, search_each_node

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


@pytest.mark.parametrize(
    ("first", "worse", "tried", "best"),
    [(0, 2, [0, 1, 2, 3, 4, 5], 3), (2, 1, [2, 3, 4], 3), (5, 1, [5, 6, 4, 3, 2], 3)],
)
def test_a_search_ends_beyond_the_best_and_starts_from_the_nearest_solution(first, worse, tried, best):
    starts = []

    def attempt(value, near):
        starts.append(near)
        return (value - 3.2) ** 2, value

    search = PathSearch(range(10), attempt).walk(first, lambda s: s.worse >= worse).walk_back()
    assert list(search.tried) == tried
    assert search.best.value == best
    assert starts[0] is None
    assert all(abs(start - value) == 1 for start, value in zip(starts[1:], tried[1:], strict=True))


def test_a_search_asks_for_progress():
    search = PathSearch(range(10), lambda value, _: (1 - value / 100, value), progress=0.025)
    search.walk(0, lambda s: s.worse >= 4)
    assert search.best.value == 9
    assert (
        PathSearch(range(10), lambda value, _: (-value / 100, value), 0.2)
        .walk(0, lambda s: s.worse >= 2)
        .best.value
        == 0
    )
