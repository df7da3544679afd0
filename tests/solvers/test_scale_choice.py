"""Whether and how scales of nodes move with the covariates."""

from __future__ import annotations

import numpy as np
import pytest

from graphfield.solvers.scale_choice import ScaleRows, learn_scales


def found(log_scale: np.ndarray, W: np.ndarray, n_numeric: int) -> np.ndarray:
    """Logarithms of the scales that are learned, each of which must move."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=log_scale.shape) * np.exp(log_scale)
    scales = learn_scales(ScaleRows(values, W, n_numeric, np.arange(len(W)) % 3))
    assert scales.moves.all()
    np.testing.assert_allclose((scales.at(W) ** 2).mean(axis=0), 1, rtol=1e-6)
    return np.log(scales.at(W))


def centred(values: np.ndarray) -> np.ndarray:
    return values - values.mean(axis=0)


@pytest.mark.parametrize("shape", [lambda z: z, lambda z: 0.8 * np.sin(8 * z), lambda z: (z > 0.3) * 1.0])
def test_scales_that_move_with_a_number_are_found(shape):
    z = np.random.default_rng(0).uniform(-1, 1, 2_000)
    truth = shape(z)[:, None] * [1.0, -1.0]
    left = centred(found(truth, np.column_stack([np.ones(2_000), z / z.std()]), 1) - truth)
    assert np.sqrt(np.square(left).mean(axis=0)).max() < 0.4 * truth.std()


def test_scales_that_differ_by_level_and_by_two_covariates_together_are_found():
    rng = np.random.default_rng(0)
    z, level = rng.normal(size=3_000), rng.integers(3, size=3_000)
    W = np.column_stack([np.ones(3_000), z, level == 1, level == 2])
    truth = np.column_stack([0.7 * level, 0.7 * z * (level == 1)])
    left = centred(found(truth, W, 1) - truth)
    assert np.sqrt(np.square(left).mean(axis=0)).max() < 0.15


def test_scales_that_do_not_move_stay_as_they_are():
    kept = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        W = np.column_stack([np.ones(400), rng.normal(size=(400, 2)), rng.random(400) < 0.3])
        scales = learn_scales(ScaleRows(rng.standard_t(4, size=(400, 20)), W, 2, np.arange(400) % 3))
        kept += 0 if scales is None else scales.moves.sum()
    assert kept <= 5, "of 100"


def test_few_rows_and_covariates_that_hardly_vary_move_no_scale():
    rng = np.random.default_rng(0)
    W = np.column_stack([np.ones(200), np.arange(200) == 7])
    assert learn_scales(ScaleRows(rng.normal(size=(200, 2)), W, 1, np.arange(200) % 3)) is None
    z = np.linspace(-1.7, 1.7, 40)
    W = np.column_stack([np.ones(40), z])
    values = rng.normal(size=(40, 2)) * np.exp(z)[:, None]
    assert learn_scales(ScaleRows(values, W, 1, np.arange(40) % 3)) is None
