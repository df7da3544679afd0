"""Rows in an order that follows from their values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.estimators.inputs import training_inputs


def table(n: int, kind: str) -> tuple[np.ndarray, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    if kind == "shared alike":
        X = rng.permuted(np.tile([[0.0], [1.0]], (n // 2, 4)), axis=0)
    return X, pd.DataFrame({"site": rng.choice(["A", "B"], n), "score": rng.integers(5, size=n)})


def value_order(X: np.ndarray, Z: pd.DataFrame) -> np.ndarray:
    return training_inputs(X, Z, "error").value_order()


@pytest.mark.parametrize("kind", ["numbers", "shared alike"])
def test_the_order_in_which_rows_come_does_not_matter(kind):
    """Also where rows differ by an exchange of values between columns of as many zeros and ones."""
    X, Z = table(200, kind)
    rows = np.random.default_rng(1).permutation(200)
    ordered = pd.DataFrame(X).join(Z).iloc[value_order(X, Z)]
    again = value_order(X[rows], Z.iloc[rows])
    np.testing.assert_array_equal(ordered, pd.DataFrame(X).join(Z).iloc[rows[again]])


def test_neither_do_units_and_the_order_of_columns():
    X, Z = table(200, "numbers")
    other = value_order(10 * X[:, ::-1] + 3, Z[["score", "site"]])
    np.testing.assert_array_equal(value_order(X, Z), other)


def test_last_bits_of_nodes_do_not_matter_where_covariates_tell_rows_apart():
    X, Z = table(200, "numbers")
    Z["age"] = np.random.default_rng(2).uniform(20, 80, 200)
    rounded = value_order(X.round(1), Z)
    np.testing.assert_array_equal(value_order(X, Z), rounded)


def test_rows_of_a_fit_are_as_good_as_shuffled():
    """A table that is sorted by a covariate leaves no part of its range to a stretch of rows."""
    X = np.random.default_rng(0).normal(size=(5_000, 3))
    data = gf.RegGMM()._read_rows(X, np.arange(5_000.0)[:, None], None, None, None)
    stretches = data.Z.values.to_numpy().reshape(10, 500)
    assert np.abs(stretches.mean(axis=1) - 2_500).max() < 4 * 1_443 / np.sqrt(500)


def test_rows_of_a_model_that_trains_with_others_are_named_in_any_order():
    rng = np.random.default_rng(0)
    X, Z, rows = rng.normal(size=(80, 4)), rng.normal(size=(80, 1)), rng.integers(80, size=80)
    models = [gf.DNNCGM(rank=None, max_steps=5, random_state=0) for _ in range(2)]
    for model, own in zip(models, (rows, rows[::-1]), strict=True):
        gf.fit_together([model], X, Z, rows=[own])
    np.testing.assert_array_equal(*(model.predict_coef(Z) for model in models))


def test_rows_in_groups_or_with_held_out_rows_of_the_users_own_stay_as_they_come():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(60, 3)), rng.normal(size=(60, 1))
    read = gf.RegGMM()._read_rows
    for options in ((np.arange(60) // 6, None, None), (None, X[:5], Z[:5])):
        np.testing.assert_array_equal(read(X, Z, *options).inputs.rows, np.arange(60))
    assert (read(X, Z, None, None, None).inputs.rows != np.arange(60)).any()
