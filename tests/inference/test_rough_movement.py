"""Edges that move by much and often, beside levels: averages and differences are those of the truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf


def sold(n: int, seed: int = 0) -> tuple[np.ndarray, pd.DataFrame, np.ndarray]:
    """Three nodes whose edges turn over the months, in other ways with a drive than without; the truth."""
    rng = np.random.default_rng(seed)
    month, drive = rng.integers(1, 37, n), rng.random(n) < 0.5
    wave = np.sin(month / 3) * np.where(drive, 1.0, -0.2)
    partial = np.zeros((n, 3, 3))
    for (j, k), strength in {(0, 1): 0.4 + 0.4 * wave, (1, 2): 0.3 - 0.3 * wave, (0, 2): 0.2 * wave}.items():
        partial[:, j, k] = partial[:, k, j] = strength
    covariance = np.linalg.inv(np.eye(3) - partial)
    root = np.sqrt(np.einsum("ijj->ij", covariance))
    factor = np.linalg.cholesky(covariance / root[:, :, None] / root[:, None, :])
    X = np.einsum("ijk,ik->ij", factor, rng.normal(size=(n, 3)))
    Z = pd.DataFrame({"month": month.astype(float), "drive": np.where(drive, "yes", "no")})
    return X, Z, partial[:, [0, 0, 1], [1, 2, 2]]


@pytest.fixture(scope="module")
def found():
    X, Z, truth = sold(6_000)
    return gf.infer_edges(X, Z, covariates=[], in_order=False), X, Z, truth


def test_averages_are_those_of_the_truth(found):
    inference, _, _, truth = found
    np.testing.assert_allclose(inference.table.estimate, truth.mean(axis=0), atol=0.035)


@pytest.mark.slow
def test_differences_between_months_are_those_of_the_curve(found):
    inference, X, Z, _ = found
    table = gf.compare_graphs(X, Z, {"month": 5.0}, {"month": 14.0}, in_order=False)
    curve = inference.bands("x1", "x2", "month", n_points=100)
    first, last = np.interp([5.0, 14.0], curve.value, curve.estimate)
    assert table.difference[0] == pytest.approx(last - first, abs=0.05)


@pytest.mark.slow
def test_rows_of_a_level_tell_what_edges_do_there(found):
    """A wave that is another one with a drive is missed by all rows together."""
    inference, X, Z, _ = found
    change = np.sin(14 / 3) - np.sin(5 / 3)
    for drive, size in {"yes": 1.0, "no": -0.2}.items():
        sides = ({"month": month, "drive": drive} for month in (5.0, 14.0))
        table = gf.compare_graphs(X, Z, *sides, in_order=False)
        truth = np.array([0.4, 0.2, -0.3]) * change * size
        assert np.abs(table.difference - truth).max() < 0.2
        assert (table.high - table.low).max() < 0.35
        curve = inference.bands("x1", "x2", "month", others={"drive": drive})
        truth = 0.4 + 0.4 * size * np.sin(curve.value / 3)
        assert np.abs(curve.estimate - truth).max() < 0.2
        assert ((curve.low <= truth) & (truth <= curve.high)).mean() > 0.7


def test_scales_of_residuals_move_where_held_out_rows_say_so():
    from graphfield.inference.pair_scores import _scales_that_move

    rng = np.random.default_rng(0)
    z, fold = rng.uniform(-1, 1, 1_000), np.arange(1_000)[None] % 5
    functions = np.column_stack([np.ones(1_000), np.sqrt(3) * z])
    left = rng.normal(size=(1_000, 3)) * np.column_stack([np.ones(1_000), np.exp(0.6 * z), np.ones(1_000)])
    left[:, 2] = rng.standard_t(3, 1_000)
    assert _scales_that_move(left, functions, fold, None).tolist() == [False, True, False]
