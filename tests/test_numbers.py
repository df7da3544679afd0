"""Numbers with their standard errors: one rule for what is clear, and nowhere else another."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import graphfield as gf
from graphfield.inference.evidence import verdict
from graphfield.numbers import CLEAR, Gain, is_clear, mean_and_error, p_digits, standard_errors

SOURCE = Path(gf.__file__).parent
# A standard error made by hand, or a number held against so many of them.
BY_HAND = re.compile(
    r"std\(.*\)+ / (np\.sqrt\(|[\w.()\[\]]+ \*\* 0?\.5|max\()|[<>]=? -?[\w.\[\]]+ \* [\w.\[\]]*errors?\b"
)


def test_clear_is_more_than_two_standard_errors_if_nothing_else_is_said():
    assert CLEAR == 2
    assert is_clear(0.0201, 0.01)
    assert not is_clear(0.02, 0.01)
    assert not is_clear(0.0201, 0.01, n_errors=3)
    assert is_clear(0.0101, 0.01, n_errors=1)
    assert not is_clear(0.0201, 0.01, least=0.03)
    assert not is_clear(0.0, 0.0)


def test_what_has_no_standard_error_is_not_clear():
    assert not is_clear(1.0, np.nan)
    value, error = mean_and_error(np.array([1.0]))
    assert value == 1
    assert np.isnan(error)


def test_arrays_are_judged_entry_by_entry():
    found = is_clear(np.array([3.0, 1.0, np.inf]), np.array([1.0, 1.0, np.nan]))
    assert found.tolist() == [True, False, False]


def test_a_gain_is_clear_by_the_same_rule():
    assert Gain(0.0201, 0.01).is_clear
    assert not Gain(0.02, 0.01).is_clear
    assert Gain(-0.0201, 0.01).is_clear_loss
    assert Gain(0.0201, 0.01).is_clear_by(1)
    assert not Gain(0.0201, 0.01).is_clear_by(3)
    assert not Gain(1e-9, 0.0).is_clear, "rounding"


@pytest.mark.parametrize("ddof", [0, 1])
def test_rows_without_units_are_one_unit_each(ddof):
    gains = np.random.default_rng(0).normal(size=(30, 3))
    means, errors = mean_and_error(gains, ddof=ddof)
    np.testing.assert_array_equal(means, gains.mean(axis=0))
    np.testing.assert_array_equal(errors, gains.std(axis=0, ddof=ddof) / np.sqrt(30))
    np.testing.assert_allclose(errors, standard_errors(gains, np.arange(30), ddof), rtol=1e-12)


def test_nothing_is_held_against_its_standard_error_by_hand():
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "numbers.py"
        for line in path.read_text().splitlines()
        if BY_HAND.search(line)
    ]
    assert not found, "use is_clear, mean_and_error or standard_errors of graphfield.numbers"


def test_what_rounding_makes_is_no_evidence():
    assert verdict(0.001, Gain(1e-8, 1e-10)) == "weak evidence"
    assert verdict(0.001, Gain(1e-5, 1e-7)) == "strong evidence"


def test_halves_of_p_values_go_up():
    """As a person rounds them, whatever they are in binary; which side of .05 they are on stays."""
    told = {0.0195: ".020", 0.0125: ".013", 0.0075: ".008", 0.0495: ".050", 0.0505: ".051", 0.0015: ".002"}
    assert {p: p_digits(p) for p in told} == told
    assert (p_digits(np.float64(0.05004)), p_digits(0.019499), p_digits(0.9995)) == (
        ".05004",
        ".019",
        "1.000",
    )
