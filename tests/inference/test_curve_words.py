"""Words about a pair along a covariate: they show movement, or say nothing."""

from __future__ import annotations

import numpy as np
import pytest

from graphfield.data.covariates import Numeric
from graphfield.inference.curve import Curve
from graphfield.inference.curve_words import words_along

AGE = Numeric("age", 50.0, 10.0, 20.0, 80.0)
VALUES = np.linspace(20, 80, 11)


def curve(estimate: np.ndarray, error: float) -> Curve:
    """Most of the error is that of the whole curve."""
    return Curve(VALUES.tolist(), estimate, error**2 * (0.2 * np.eye(len(VALUES)) + 0.8), 200.0)


def words(smooth: np.ndarray, rough: np.ndarray, error: float = 0.05) -> str:
    def along(*, n_points: int = 11, smooth: bool) -> Curve:
        return known if smooth else waves

    known, waves = curve(smooth, 0.05), curve(rough, error)
    return words_along(AGE, along, (26.0, 74.0), 0, signed=True)


STILL, RISING = np.full(11, 0.05), np.linspace(-0.4, 0.4, 11)
PEAK = np.where(np.arange(11) == 5, 0.5, 0.05)


def test_a_smooth_curve_within_the_band_is_told():
    assert words(RISING, RISING + 0.01) == "-0.32 at 26, +0.32 at 74"


def test_one_that_the_band_leaves_out_is_not():
    assert words(RISING, PEAK) == "+0.05 at 26, +0.50 at 50, +0.05 at 74"


def test_what_stands_still_is_told_by_the_rough_one_that_moves():
    """The band is wide enough for the smooth curve, and the movement is what that one leaves out."""
    found = words(STILL, PEAK, error=0.22)
    assert found == "+0.05 at 26, +0.50 at 50, +0.05 at 74"


@pytest.mark.parametrize("error", [0.05, 0.5])
def test_where_neither_moves_nothing_is_told(error):
    assert words(STILL, STILL + 0.01, error) == ""
