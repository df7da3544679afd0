"""The search over penalties from the largest down."""

from __future__ import annotations

import pytest

from graphfield.solvers.penalties import PathSearch


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
