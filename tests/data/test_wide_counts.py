"""Counts whose variance is not that of their law."""

from __future__ import annotations

import numpy as np
import pytest

from graphfield.data.wide_counts import find_wide_counts, words_of_wide


def found(codes, columns=None):
    columns = codes if columns is None else columns
    owner = np.full(columns.shape[1], -1)
    owner[: codes.shape[1]] = np.arange(codes.shape[1])
    names = [f"n{j}" for j in range(codes.shape[1])]
    return find_wide_counts(names, codes, np.full(codes.shape[1], True), columns, owner)


@pytest.mark.parametrize("n", [60, 300, 3000])
def test_poisson_counts_that_follow_others_and_covariates_are_none(n):
    """Their variance over all rows is several times their mean; that given all else is not."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        z, a = rng.normal(size=n), rng.poisson(3, n)
        b = rng.poisson(np.exp(0.2 * a + 0.7 * z))
        codes = np.column_stack([a, b]).astype(float)
        assert b.var() > 1.4 * b.mean()
        assert found(codes, np.column_stack([codes, z])) == {}


@pytest.mark.parametrize(("shape", "times"), [(2.0, 2.0), (0.5, 5.0)])
def test_variance_of_a_mixture_is_found(shape, times):
    """A gamma mixture of Poisson counts with mean 2 has the variance mean + mean^2 / shape."""
    rng = np.random.default_rng(0)
    mixed = rng.poisson(rng.gamma(shape, 2 / shape, 4000))
    codes = np.column_stack([mixed, rng.poisson(2, 4000)]).astype(float)
    (name, by), *others = found(codes).items()
    assert (name, others) == ("n0", [])
    assert by == pytest.approx(times, rel=0.12)


def test_nothing_is_said_of_counts_that_are_zero_or_rows_that_are_few():
    codes = np.random.default_rng(0).poisson(2, (12, 8)).astype(float)
    codes[:, 0] = 0
    assert found(codes) == {}


def test_words_begin_with_the_widest_and_stop():
    told = words_of_wide({f"n{j}": 2.0 + j for j in range(9)})
    assert told.startswith("Tests take some counts as numbers")
    assert told.index("'n8' 10") < told.index("'n7' 9")
    assert "5 more" in told
    assert words_of_wide({}) == ""
