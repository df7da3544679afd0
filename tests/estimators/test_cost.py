"""What a fit takes, before it is fitted. How right it is, benchmarks/cost_curves.py measures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.cli import main
from graphfield.estimators import cost
from graphfield.estimators.memory import estimate_fit_memory


@pytest.fixture
def machine(monkeypatch):
    """One of known speed."""
    monkeypatch.setattr(cost, "_machine_speed", lambda _: cost._Speed(1e-4, 3e-11))


@pytest.mark.parametrize("larger", [{"n": 20_000}, {"p": 100}])
def test_more_rows_and_nodes_take_longer_and_more_memory(machine, larger):
    size = {"n": 3_000, "p": 20, "q": 2}
    few, many = (gf.estimate_cost(**own, device="cpu") for own in (size, {**size, **larger}))
    assert few.seconds < many.seconds
    assert few.bytes < many.bytes


def test_memory_is_that_of_refusals(machine):
    found = gf.estimate_cost(5_000, 100, 3, device="cpu")
    assert found.bytes == estimate_fit_memory(5_000, 100, 3, rank=8)["peak"]


def test_many_nodes_take_what_their_products_take():
    """Patterns are found with matrices of (R p)^2 numbers: twice the nodes, eight times the work."""
    few, many = (cost._count(500, p, (8,))[1] for p in (1_000, 2_000))
    assert many / few == pytest.approx(8, rel=0.02)


@pytest.mark.parametrize(
    "size", [(0, 10, 1), (10, 0, 1), (10, 5.5, 1), (10, 5, -1), (10, 5, np.nan), (10, 5, "a")]
)
def test_nonsense_is_refused(machine, size):
    with pytest.raises(gf.ParameterError):
        gf.estimate_cost(*size)


@pytest.mark.parametrize(("p", "said"), [(90, True), (10, False)])
def test_check_says_how_long_where_it_is_long(machine, p, said, tmp_path, capsys):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(2_000, p)), columns=[f"n{i}" for i in range(p)])
    table.assign(z=rng.uniform(size=2_000)).to_csv(tmp_path / "t.csv", index=False)
    main(["check", str(tmp_path / "t.csv"), "--covariates", "z"])
    assert ("A default fit of it takes about" in capsys.readouterr().out) == said


def test_the_machine_is_measured_once():
    found = cost._machine_speed("cpu")
    assert 0 < found.multiplication < found.operation
    assert cost._machine_speed("cpu") is found
