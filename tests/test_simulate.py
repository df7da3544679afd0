"""The truth behind simulated data: moments, density, random streams."""

from __future__ import annotations

import numpy as np
import pytest

import graphfield as gf


def test_moments_match_the_analytic_covariance():
    """Whitened by the true precision of its own row, every sample is standard normal."""
    sim = gf.make_setting("G1", n_samples=4000, random_state=3)
    white = np.einsum("ikj,ik->ij", np.linalg.cholesky(sim.precision), sim.X)
    covariance = white.T @ white / len(white)
    assert np.abs(covariance - np.eye(50)).max() < 5 / np.sqrt(4000)
    assert abs((white**4).mean() - 3) < 0.1


def test_figures_known_of_the_published_data():
    sim = gf.make_setting("G1", n_samples=8000, random_state=0)
    assert sim.X.std(axis=0).mean() == pytest.approx(0.842, abs=0.01)
    density = sim.skeleton.sum() / (8000 * 50 * 49)
    assert density == pytest.approx(0.077, abs=0.002)
    assert np.linalg.cond(sim.candidates).max() <= 10


def test_true_coefficients_are_the_regression_coefficients():
    sim = gf.make_setting("G1", n_samples=5, random_state=0)
    sigma = np.linalg.inv(sim.precision[2])
    rest = np.arange(1, 50)
    expected = np.linalg.solve(sigma[np.ix_(rest, rest)], sigma[rest, 0])
    np.testing.assert_allclose(sim.coef[2, 0, 1:], expected, atol=1e-12)
    np.testing.assert_array_equal(sim.coef != 0, sim.skeleton)


def test_more_samples_keep_the_first_ones():
    few, many = (gf.make_setting("G1", n_samples=n, random_state=7) for n in (50, 200))
    np.testing.assert_array_equal(many.Z[:50], few.Z)
    np.testing.assert_allclose(many.X[:50], few.X, rtol=1e-12)


def test_one_skeleton_per_cluster_and_clipping():
    sim = gf.make_setting("G1", n_samples=500, random_state=0)
    for regime in range(3):
        graphs = sim.skeleton[sim.regime == regime]
        assert (graphs == graphs[0]).all()
    assert sim.mixing[sim.mixing > 0].min() >= 0.25
    assert gf.make_setting("G1", n_samples=500, random_state=0, clip=False).mixing.max() > 0.9


def test_bad_requests():
    with pytest.raises(gf.ParameterError, match=r"Unknown setting 'G9'.*Known: 'G1'"):
        gf.make_setting("G9")
    with pytest.raises(gf.ParameterError, match="n_samples"):
        gf.make_setting("G1", n_samples=0)
