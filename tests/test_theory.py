"""The paper's guarantees as functions: exponents, scaling, and the step from coefficients to edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphfield as gf
from graphfield import theory

LIPSCHITZ_ONLY = theory.Loss(lipschitz=1.0, convexity=0.5)


@pytest.mark.parametrize("loss", [theory.SQUARED_ERROR, LIPSCHITZ_ONLY])
@pytest.mark.parametrize(("q", "m"), [(1, 1.0), (2, 2.0), (5, 1.5)])
def test_the_risk_falls_at_the_rate_of_the_theorem(q, m, loss):
    """Once logarithms, of which there are two, are divided out."""
    few, many = 1e12, 1e15
    risks = [theory.network_risk(n, 7, q, m, loss=loss).value for n in (few, many)]
    logs = [math.log(n * 7) ** (2 * theory.rate_exponent(q, m, loss=loss)) for n in (few, many)]
    slope = math.log(risks[0] / logs[0] / (risks[1] / logs[1])) / math.log(many / few)
    assert slope == pytest.approx(theory.rate_exponent(q, m, loss=loss), abs=1e-9)


def test_rates_of_squared_error_are_those_of_kohler_and_langer():
    assert theory.rate_exponent(3, 2.0) == pytest.approx(4 / 7)
    assert theory.rate_exponent(3, 2.0, loss=LIPSCHITZ_ONLY) == pytest.approx(2 / 5)


def test_theorem_1_grows_with_the_square_of_p():
    """p (p - 1) functions: p may grow like the root of n."""
    small, large = (theory.excess_risk(p**2 * 10**9, p, 10.0) for p in (10, 1_000))
    assert 1 < large.value / small.value < 2  # logarithms alone


def test_the_accuracy_balances_both_parts():
    """xi minimises lambda xi^2 + L^2 a xi^(-q/m) / (alpha n), but for a factor that neither has in it."""
    q, m, n = 2, 2.0, 1e9
    for loss in (theory.Loss(1.0, 0.5, 0.5), theory.Loss(3.0, 0.5, 0.5), theory.Loss(1.0, 0.2, 4.0)):
        xi = theory.recommended_network(n, 10, q, m, loss=loss).accuracy
        bias, noise = loss.smoothness * xi**2, loss.lipschitz**2 * xi ** (-q / m) / (loss.convexity * n)
        logs = math.log(n * loss.lipschitz * 10) ** 2
        assert bias / (noise * logs) == pytest.approx(
            2**4 * 2**6 * 100 * math.log(10) * math.log(20), rel=1e-9
        )


def test_a_wrong_edge_needs_a_wrong_coefficient():
    """The inequality between errors of edges and of coefficients, on random numbers."""
    rng = np.random.default_rng(0)
    weak, strong, eta, p, gamma = 0.1, 0.5, 0.3, 6, 0.4
    truth = np.where(
        rng.random((200, p, p)) < 0.3, rng.uniform(strong, 1, (200, p, p)), weak * rng.random((200, p, p))
    )
    estimate = truth + rng.normal(scale=0.3, size=truth.shape)
    off = ~np.eye(p, dtype=bool)
    cut = eta * weak + (1 - eta) * strong
    wrong = ((np.abs(estimate) >= cut) != (truth >= strong))[:, off].sum(axis=1).mean()
    error = (
        gamma * ((estimate - truth) ** 2)[:, off].sum(axis=1).mean() / p
    )  # the least that A_j can make of it
    assert 0 < wrong <= theory.edge_errors(error, p, strong - weak, gamma=gamma, eta=eta).value


def test_required_samples_inverts_the_bound():
    for target in (1.0, 0.01):
        n = theory.required_samples(target, 10, 2, 2.0)
        assert (
            theory.network_risk(n, 10, 2, 2.0).value
            <= target
            < theory.network_risk(0.99 * n, 10, 2, 2.0).value
        )
    edges = theory.required_samples(1.0, 10, 2, 2.0, margin=0.2, gamma=0.5)
    assert edges > theory.required_samples(1.0, 10, 2, 2.0)


def test_a_result_says_that_it_is_a_rate():
    text = repr(theory.network_risk(10_000, 10, 2, 2.0))
    assert "universal constant" in text
    assert float(theory.excess_risk(100, 5, 3.0, constant=2.0)) == 2 * float(theory.excess_risk(100, 5, 3.0))


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: theory.excess_risk(0, 5, 3.0), "n must"),
        (lambda: theory.excess_risk(100, 5.5, 3.0), "p must"),
        (lambda: theory.excess_risk(100, 5, -1.0), "pseudo_dimension must"),
        (lambda: theory.excess_risk(100, 5, 3.0, delta=1.0), "delta must"),
        (lambda: theory.network_risk(100, 5, 0, 2.0), "q must"),
        (lambda: theory.network_risk(100, 5, 2, 0.0), "m must"),
        (lambda: theory.edge_errors(0.1, 5, 0.0, gamma=1.0), "margin must"),
        (lambda: theory.edge_errors(0.1, 5, 0.1, gamma=0.0), "gamma must"),
        (lambda: theory.required_samples(0.1, 5, 2, 2.0, margin=0.1), "go together"),
        (lambda: theory.required_samples(1e-300, 5, 9, 0.1), "ask for less"),
        (lambda: theory.Loss(1.0, 2.0, 1.0), "smoothness must"),
        (lambda: theory.edge_errors("x", 10, 0.1, gamma=0.5), "error must"),
        (lambda: theory.edge_errors(-1, 10, 0.1, gamma=0.5), "error must"),
        (lambda: theory.edge_errors(math.nan, 10, 0.1, gamma=0.5), "error must"),
        (lambda: theory.network_risk(100, 5, 2, 2.0, loss="squared"), "loss must be a Loss"),
        (lambda: theory.rate_exponent(2, 2.0, loss="squared"), "loss must be a Loss"),
        (lambda: theory.network_risk(100, 5, 2, 2.0, foo=2), "no keyword 'foo': it takes 'loss'"),
        (lambda: theory.recommended_network(1_000, 10, 400, 2), "q=400 covariates.*Ask for fewer"),
        (lambda: theory.network_risk(1_000, 10, 4, 1e100), "Ask for fewer"),
    ],
)
def test_nonsense_is_refused(call, argument):
    with pytest.raises(gf.ParameterError, match=argument):
        call()
