"""``reproduce rates``: errors against true coefficients, their slopes, and what the theory says of them."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from graphfield import theory
from graphfield.cli import main
from graphfield.experiments import rate_tables, rates
from graphfield.experiments.rate_tables import bounds_along, found_slope
from graphfield.experiments.rates import FULL, QUICK, Truth, plan_rates, score_coefficients
from graphfield.simulate.chain import SHAPES, Chain

TINY = dataclasses.replace(
    QUICK,
    rows=(200, 800),
    nodes=(4, 8),
    margins=(0.1, 0.3),
    at_rows=200,
    at_nodes=4,
    margin_rows=200,
    shapes=("linear",),
    node_shapes=("linear",),
    n_test=20,
)


@pytest.fixture
def chain():
    return Chain(6, np.random.default_rng(0), shape="smooth")


def test_a_chain_has_the_covariance_that_it_says(chain):
    z = np.array([[0.3, -0.2]])
    X = chain.sample(np.repeat(z, 40_000, axis=0), np.random.default_rng(1))
    np.testing.assert_allclose(np.cov(X.T), np.linalg.inv(chain.precision(z)[0]), atol=0.05)


@pytest.mark.parametrize("shape", SHAPES)
def test_coefficients_of_a_chain_stay_within_their_bounds(shape):
    chain = Chain(100, np.random.default_rng(0), shape=shape, low=0.1, high=0.2)
    Z = chain.covariates(500, np.random.default_rng(1))
    size = np.abs(chain.strengths(Z))
    assert 0.1 <= size.min() < 0.11
    assert 0.19 < size.max() <= 0.2
    np.testing.assert_array_equal(chain.coef(Z) != 0, chain.skeleton(Z))
    np.testing.assert_array_equal(chain.coef(Z)[:, 0, 1], chain.strengths(Z)[:, 0])
    assert np.linalg.eigvalsh(chain.precision(Z[:5])).min() > 0.2


def test_the_error_is_the_squared_error_of_predictions(chain):
    """(b - beta*)' A (b - beta*) is how far predictions from the neighbours are from the best ones."""
    rng = np.random.default_rng(0)
    z = np.array([[0.1, 0.5]])
    coef = chain.coef(z) + 0.1 * rng.normal(size=(1, 6, 6)) * ~np.eye(6, dtype=bool)
    samples, gamma = score_coefficients(coef, chain, z, None)
    X = chain.sample(np.repeat(z, 40_000, axis=0), rng)
    off = X @ (coef - chain.coef(z))[0].T
    assert samples["error"].item() == pytest.approx((off**2).mean(), rel=0.05)
    assert gamma == pytest.approx(np.linalg.eigvalsh(np.linalg.inv(chain.precision(z)))[0, 0])


def test_wrong_edges_are_at_most_those_of_corollary_2():
    chain = Truth("smooth", 8, margin=0.2).field(np.random.default_rng(0))
    Z = chain.covariates(50, np.random.default_rng(1))
    noise = np.random.default_rng(2).normal(size=(50, 8, 8)) * ~np.eye(8, dtype=bool)
    for scale in (0.0, 0.03, 0.1, 0.3):
        samples, gamma = score_coefficients(chain.coef(Z) + scale * noise, chain, Z, 0.2)
        means = samples.mean()
        assert means["wrong_edges"] <= float(theory.edge_errors(means["error"], 8, 0.2, gamma=gamma))
        assert (means["wrong_edges"] > 0) == (scale >= 0.1)


def test_a_slope_is_found_with_its_interval():
    sizes = [1_000, 4_000, 16_000]
    exact = np.array([sizes, sizes]) ** -0.5
    assert found_slope(sizes, exact[:1]).half_width is None
    assert found_slope(sizes, exact).value == pytest.approx(-0.5)
    differing = np.array([np.power(sizes, -0.4), np.power(sizes, -0.6)])
    slope = found_slope(sizes, differing)
    assert slope.value == pytest.approx(-0.5)
    assert slope.half_width == pytest.approx(12.706 * 0.1, rel=1e-3)  # t with one degree of freedom
    assert found_slope(sizes, np.array([[1.0, 0.0, 0.0]])) is None  # no logarithm of no error


def test_slopes_intervals_cover():
    """Replicates with slopes of their own around -0.5, a common error per replicate included."""
    rng = np.random.default_rng(0)
    sizes = np.array([1_000, 4_000, 16_000, 64_000])
    hits = 0
    for _ in range(300):
        noise = rng.normal(size=(5, 1)) + 0.1 * rng.normal(size=(5, 4))
        slope = found_slope(sizes, np.exp(noise) * sizes**-0.5)
        hits += abs(slope.value + 0.5) <= slope.half_width
    assert 0.91 < hits / 300 < 0.98


def test_bounds_have_the_slopes_of_their_theorems():
    by_shape = {curve.where.split()[0]: curve for curve in FULL.curves() if curve.axis == "n"}
    for shape, exponents in {"linear": (1, 2 / 3), "smooth": (2 / 3,), "kinked": (1 / 2,)}.items():
        curve = by_shape[shape]
        slopes = [bound.slope(curve.sizes).value for bound in bounds_along(curve)]
        for slope, exponent in zip(slopes, exponents, strict=True):
            assert -exponent < slope < -exponent + 0.2  # logarithms make it flatter


def test_every_point_is_planned_once_for_every_method_and_seed():
    cells = plan_rates(FULL, list(rates.TITLES), [0, 1])
    points = {point for curve in FULL.curves() for point in curve.points}
    assert len(cells) == len(set(cells)) == len(points) * 3 * 2
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)  # replicate by replicate
    assert {cell.n_train for cell in cells} >= {1_000, 80_000}
    assert {cell.truth.n_nodes for cell in cells} >= {10, 100}


def reproduce(out, *more) -> int:
    return main(
        ["reproduce", "rates", "--quick", "--methods", "reggmm", "--jobs", "1", "--out", str(out), *more]
    )


def test_the_command_writes_numbers_and_slopes_and_resumes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(rates, "QUICK", TINY)
    monkeypatch.setattr(rate_tables, "picture_of", lambda *_: b"a picture")
    out = tmp_path / "out"
    assert reproduce(out, "--replicates", "2") == 0
    printed = capsys.readouterr().out
    assert "RegGMM: linear in z" in printed
    assert "at most, by Corollary 2" in printed
    content = json.loads((out / "rates.json").read_text())
    assert content["command"] == "graphfield reproduce rates --replicates 2 --methods reggmm --quick"
    assert content["seeds"] == [0, 1]
    assert len(content["cells"]) == 2 * 5  # of six points, one is on two curves
    slope = next(s for s in content["slopes"] if s["of"] == "reggmm")
    assert slope["value"] < -0.4
    assert "data:image/png;base64" in (out / "rates.html").read_text()
    before = {path: path.stat().st_mtime_ns for path in out.rglob("DONE")}
    assert reproduce(out, "--replicates", "2") == 0
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("DONE")}


@pytest.mark.slow
def test_the_picture_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(rates, "QUICK", dataclasses.replace(TINY, shapes=QUICK.shapes))
    assert reproduce(tmp_path / "out", "--replicates", "1") == 0
    assert (tmp_path / "out" / "rates.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rates", "--settings", "G1"], "--settings does not apply to rates"),
        (["rates", "--methods", "tree"], "Unknown method 'tree'"),
        (["table1", "--quick"], "--quick applies to rates only"),
    ],
)
def test_bad_input(arguments, message, tmp_path, capsys):
    assert main(["reproduce", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_errors_fall_at_least_as_fast_as_the_theory_says():
    """Of the paper's network about n^(-2/3) for a sine, of a linear model n^-1 if it holds the truth."""
    sizes = [500, 4_000]

    def slope(shape, method):
        cells = [
            [rates.RateCell("", method, n, 200, seed, Truth(shape, 8)) for n in sizes] for seed in (0, 1, 2)
        ]
        errors = [[c.run("cpu").metrics["coefficients"]["beta"]["error"] for c in row] for row in cells]
        return found_slope(sizes, np.array(errors)).value

    assert -1.1 < slope("linear", "reggmm") < -0.9
    assert -0.2 < slope("smooth", "reggmm") <= 0.0  # a floor: no linear function is a sine
    assert -1.0 < slope("smooth", "dnn-cgm") < -0.5
