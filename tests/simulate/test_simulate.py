"""The truth behind simulated data: moments, density, random streams."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import ndtri

import graphfield as gf
from graphfield.simulate import SETTINGS
from graphfield.simulate.dags import hermite_function, moral_graph, random_tree

ALL = sorted(SETTINGS)
GAUSSIAN = ["D1", "G1", "G2", "S1", "S2"]


def rows(Z, n):
    return Z.iloc[:n] if isinstance(Z, pd.DataFrame) else Z[:n]


@pytest.mark.parametrize("name", GAUSSIAN)
def test_moments_match_the_analytic_covariance(name):
    """Whitened by the true precision of its own row, every sample is standard normal."""
    sim = gf.make_setting(name, n_samples=3000, random_state=3)
    white = np.einsum("ikj,ik->ij", np.linalg.cholesky(sim.precision), sim.X)
    covariance = white.T @ white / len(white)
    assert np.abs(covariance - np.eye(covariance.shape[0])).max() < 5.5 / np.sqrt(3000)
    assert abs((white**4).mean() - 3) < 0.1


@pytest.mark.parametrize(
    ("name", "latent", "back"),
    [
        ("N1", "G1", None),
        ("N2", "G2", lambda x: np.sign(x) * np.sqrt(np.abs(x) / 0.75)),
    ],
)
def test_nonparanormal_nodes_are_transforms_of_the_gaussian_setting(name, latent, back):
    gaussian, transformed = (gf.make_setting(s, n_samples=400, random_state=1) for s in (latent, name))
    np.testing.assert_array_equal(transformed.Z, gaussian.Z)
    np.testing.assert_array_equal(transformed.skeleton, gaussian.skeleton)
    if back is None:
        np.testing.assert_allclose(transformed.X, 0.5 * (gaussian.X + np.sin(gaussian.X)))
    else:
        np.testing.assert_allclose(back(transformed.X), gaussian.X, atol=1e-9)
    assert transformed.coef is None


def test_figures_known_of_the_published_data():
    """Standard deviation of x, density of the graphs and sizes of the clusters."""
    g1 = gf.make_setting("G1", n_samples=8000, random_state=0)
    assert g1.X.std(axis=0).mean() == pytest.approx(0.842, abs=0.01)
    assert density(g1.skeleton) == pytest.approx(0.077, abs=0.002)
    assert np.linalg.cond(g1.candidates).max() <= 10
    for seed in range(3):
        g2 = gf.make_setting("G2", n_samples=2000, random_state=seed)
        assert 0.55 < g2.X.std(axis=0).mean() < 0.67
        assert 0.018 < density(g2.skeleton) < 0.04
        assert 0.005 < (g2.regime == 0).mean() < 0.95, "varies a lot with the seed"
    densities = [density_of_dag(seed) for seed in range(8)]
    assert np.mean([d[0] for d in densities]) == pytest.approx(0.065, abs=0.006)
    assert np.mean([d[1] for d in densities]) == pytest.approx(0.054, abs=0.004)


def density(graphs: np.ndarray) -> float:
    n, p = graphs.shape[:2]
    return float(graphs.sum() / (n * p * (p - 1)))


def density_of_dag(seed: int) -> tuple[float, float]:
    sim = gf.make_setting("D1", n_samples=1000, random_state=seed)
    return density(sim.skeleton), density(sim.pseudo_skeleton)


@pytest.mark.parametrize("name", GAUSSIAN)
def test_skeleton_is_the_pattern_of_the_precision(name):
    sim = gf.make_setting(name, n_samples=200, random_state=0)
    p = sim.X.shape[1]
    nonzero = (np.abs(sim.precision) > 1e-12) & ~np.eye(p, dtype=bool)
    np.testing.assert_array_equal(nonzero, sim.skeleton)
    np.testing.assert_array_equal(np.abs(sim.coef) > 1e-12, sim.skeleton)


@pytest.mark.parametrize("name", ALL)
def test_graphs_are_symmetric_and_pseudo_is_contained(name):
    sim = gf.make_setting(name, n_samples=100, random_state=0)
    for graphs in (sim.skeleton, sim.pseudo_skeleton):
        assert graphs.dtype == bool
        np.testing.assert_array_equal(graphs, graphs.swapaxes(1, 2))
        assert not np.einsum("ijj->ij", graphs).any()
    assert not (sim.pseudo_skeleton & ~sim.skeleton).any()
    assert (sim.pseudo_skeleton != sim.skeleton).any() == (name in ("D1", "D2"))


def test_true_coefficients_are_the_regression_coefficients():
    sim = gf.make_setting("G1", n_samples=5, random_state=0)
    sigma = np.linalg.inv(sim.precision[2])
    rest = np.arange(1, 50)
    expected = np.linalg.solve(sigma[np.ix_(rest, rest)], sigma[rest, 0])
    np.testing.assert_allclose(sim.coef[2, 0, 1:], expected, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_more_samples_keep_the_graph_and_the_first_samples(name):
    few, many = (gf.make_setting(name, n_samples=n, random_state=7) for n in (50, 200))
    np.testing.assert_array_equal(np.asarray(rows(many.Z, 50)), np.asarray(few.Z))
    np.testing.assert_allclose(many.X[:50], few.X, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(many.candidates, few.candidates)
    np.testing.assert_array_equal(many.skeleton[:50], few.skeleton)


@pytest.mark.parametrize("name", ["G1", "G2", "D1"])
def test_one_skeleton_per_cluster(name):
    sim = gf.make_setting(name, n_samples=500, random_state=0)
    for regime in np.unique(sim.regime):
        graphs = sim.skeleton[sim.regime == regime]
        assert (graphs == graphs[0]).all()


def test_clipping():
    clipped, literal = (gf.make_setting("G1", 500, 0, clip=c).field for c in (True, False))
    Z = np.array([[0.05, 0.5], [0.95, 0.5]])
    assert clipped.mixing(Z).max() == 0.75
    assert literal.mixing(Z).max() == 0.95
    for name in ("N1", "D1", "D2", "S1", "S2"):
        gf.make_setting(name, 20, 0, clip=False)
    for name in ("G2", "N2"):
        with pytest.raises(gf.ParameterError, match="clip=True"):
            gf.make_setting(name, 20, 0, clip=False)


def test_trees_have_one_parent_per_node_and_few_children():
    tree = random_tree(50, np.random.default_rng(0))
    assert tree.sum(axis=1).tolist() == [0] + [1] * 49
    assert tree.sum(axis=0).max() <= 3
    assert not np.triu(tree).any()


def test_moral_graph_marries_parents():
    dag = np.zeros((3, 3), dtype=bool)
    dag[2, 0] = dag[2, 1] = True
    assert moral_graph(dag)[0, 1]
    assert not moral_graph(dag[:2, :2]).any()


def test_hermite_functions_are_orthonormal():
    for a in (1, 2, 3):
        for b in (1, 2, 3):
            product = quad(lambda x, a=a, b=b: hermite_function(a, x) * hermite_function(b, x), -12, 12)[0]
            assert product == pytest.approx(float(a == b), abs=1e-8)


def test_hermite_dag_regresses_on_its_parents():
    """At one tree, what is left of a child after its own functions of its parent is the noise."""
    sim = gf.make_setting("D2", n_samples=4000, random_state=0)
    only = sim.regime == 0
    child = 5
    residual = sim.X[only, child] - sim.field.pull(0, child, sim.X[only])
    quantiles = np.quantile(residual, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(quantiles, ndtri([0.1, 0.5, 0.9]), atol=0.12)


def test_sites_have_their_shares_and_their_own_graphs():
    sim = gf.make_setting("S2", n_samples=4000, random_state=0)
    shares = sim.Z["site"].value_counts(normalize=True)
    np.testing.assert_allclose(shares[["A", "B", "C", "D"]], [0.4, 0.3, 0.2, 0.1], atol=0.03)
    young = pd.DataFrame({"site": ["A", "B"], "age": [0.0, 0.0]})
    a, b = sim.field.skeleton(young)
    assert (a != b).any()


def test_bad_requests():
    with pytest.raises(gf.ParameterError, match=r"Unknown setting 'G9'.*Known: 'G1'"):
        gf.make_setting("G9")
    for n in (0, -1, 2.5, 10**12):
        with pytest.raises(gf.ParameterError, match="n_samples"):
            gf.make_setting("G1", n_samples=n)
    with pytest.raises(gf.ParameterError, match="negative"):
        gf.make_setting("G1", random_state=-1)
