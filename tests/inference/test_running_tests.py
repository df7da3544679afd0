"""Tests by rearranging go on where chance alone would decide, and stay valid."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from scipy.stats import binom

import graphfield as gf
from graphfield.inference import running_tests
from graphfield.inference.rearrange import Rows, Scheme
from graphfield.inference.running_tests import RunningTest, Sample, settle


def sample(truth, seed, n=199, all_of=100_000):
    """Of a test whose p-value, from ever so many rearrangements, is ``truth``."""
    rng, left = np.random.default_rng(seed), [all_of - n]

    def draw(count):
        count = min(count, left[0])
        left[0] -= count
        return np.where(rng.random((1, count)) < truth, 2.0, 0.5)

    return Sample(np.hstack([[[1.0]], np.where(rng.random((1, n)) < truth, 2.0, 0.5)]), draw, 1.0)


@pytest.mark.parametrize(("truth", "n"), [(0.004, 199), (0.049, 9_999), (0.051, 9_999), (0.3, 199)])
def test_only_p_values_near_the_level_need_more(truth, n):
    test = RunningTest([sample(truth, 1)])
    near = settle({"all": test})
    assert test.result().n_permutations == n
    assert near == (["all"] if n > 199 else [])
    assert test.result().p_value == pytest.approx(truth, abs=0.03 if n == 199 else 0.006)


def test_what_is_said_is_the_same_from_other_rearrangements():
    """From 199 each of both is said: a fifth of the p-values is on the other side."""
    tests = [RunningTest([sample(truth, seed)]) for truth in (0.036, 0.067) for seed in range(40)]
    before = sum((test.result().p_value <= 0.05) != (i < 40) for i, test in enumerate(tests))
    for test in tests:
        settle({"all": test})
    after = sum((test.result().p_value <= 0.05) != (i < 40) for i, test in enumerate(tests))
    assert before > 10
    assert after <= 2


def test_a_covariate_is_near_by_what_the_others_say():
    """Of three, the least counts three times, and the next twice."""
    tests = {"a": sample(0.0001, 0, 2_999), "b": sample(0.025, 1, 299), "c": sample(0.4, 2)}
    settle({name: RunningTest([test]) for name, test in tests.items()} | {"d": None})
    assert [test.n_permutations > 2_999 for test in tests.values()] == [False, True, False]


@pytest.mark.slow
def test_going_on_is_valid():
    """If there is nothing, p-values up to .05 are as rare as that, and so are those up to .01."""
    rng = np.random.default_rng(0)
    found = []
    for seed, truth in enumerate(rng.random(3_000) * 0.2):  # the smallest fifth of p-values
        test = RunningTest([sample(truth, seed)])
        settle({"all": test})
        found.append(test.result().p_value)
    for level in (0.01, 0.05):
        assert np.sum(np.array(found) <= level) <= binom.ppf(0.975, 3_000, 5 * level)


def test_all_shifts_leave_nothing_to_chance():
    test = RunningTest([sample(0.05, 0, 199, all_of=450)])
    assert settle({"all": test}) == []
    assert test.result().n_permutations == 450
    shifts = Scheme(Rows(np.zeros(1, dtype=int), 12, False, True), between=False).arrangements(
        np.random.default_rng(0)
    )
    first, rest = list(islice(shifts, 4)), list(shifts)
    assert len({tuple(rows) for rows in [*first, *rest]}) == 11


@pytest.mark.slow
def test_more_rearrangements_only_where_nobody_says_how_many():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(150, 3)), rng.normal(size=(150, 1))
    X[:, 1] += 0.5 * Z[:, 0] * X[:, 0]

    def found(z, n_permutations, seed):
        return gf.dependence_test(X, z, n_permutations=n_permutations, random_state=seed)

    fixed, more = ([found(Z, n, seed) for seed in (0, 1)] for n in (199, None))
    assert [test.n_permutations for test in fixed] == [199, 199]
    assert fixed[0].p_value != fixed[1].p_value, "by chance"
    assert all(test.n_permutations > 199 for test in more)
    assert len({test.verdict for test in more}) == 1
    far = rng.normal(size=(150, 1))
    assert found(far, None, 0) == found(far, 199, 0)


@pytest.mark.slow
def test_the_test_of_all_together_does_not_depend_on_which_are_asked_for(monkeypatch):
    """Its later rearrangements came after those of the others, from the same generator."""
    monkeypatch.setattr(running_tests, "_MOST", 799)
    rng = np.random.default_rng(2)
    X, Z = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    X[:, 1] += 0.5 * Z[:, 0] * X[:, 0]
    every, one = (gf.dependence_test(X, Z, covariates=own) for own in (None, ["z2"]))
    assert every.n_permutations == one.n_permutations == 799
    assert every.p_value == one.p_value
