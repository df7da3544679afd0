"""Thousands of generated inputs: each is refused with a typed error, or gives finite results."""

from __future__ import annotations

import pytest

from input_cases import make_case, run_case

pytestmark = pytest.mark.fuzz
# How many cases of each pool, in parts that a failing test names.
SIZES = {"quick": (2_000, 100), "deep": (300, 30), "other": (60, 20)}
PARTS = [
    pytest.param(pool, range(start, min(start + step, size)), id=f"{pool}-{start}")
    for pool, (size, step) in SIZES.items()
    for start in range(0, size, step)
]


@pytest.mark.parametrize(("pool", "seeds"), PARTS)
def test_refused_or_finite(pool, seeds):
    failed, outcomes = [], []
    for seed in seeds:
        case = make_case(pool, seed)
        try:
            outcomes.append(run_case(case))
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not reach a user
            failed.append(f"{case}\n    {type(error).__name__}: {error}")
    assert not failed, "\n".join(failed)
    assert outcomes.count("fitted") > len(outcomes) / 5, "hardly any case was fitted"
