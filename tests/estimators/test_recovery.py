"""Known graphs are found again: floors on small problems, parity with an exact solution."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import GraphicalLassoCV

import graphfield as gf
from graphfield.metrics import auprc

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")


def linear_field(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """x_1 = (0.5 + 0.5 z) x_0 + noise; the other nodes are noise."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1, 1, (n, 1))
    X = rng.normal(size=(n, 4))
    X[:, 1] += (0.5 + 0.5 * Z[:, 0]) * X[:, 0]
    return X, Z


@pytest.mark.slow
def test_a_linear_field_equals_the_exact_least_squares_solution():
    """beta_jk(z) = a_jk + b_jk z is a regression on x_k and z x_k: solve it by normal equations."""
    X, Z = linear_field(500)
    model = gf.DNNCGM(
        network="linear",
        center="none",
        standardize=False,
        penalty=0.0,
        validation_fraction=0.0,
        schedule="cosine",
        learning_rate=0.02,
        batch_size=500,
        max_steps=1500,
        device="cpu",
        random_state=0,
    ).fit(X, Z)
    others = X[:, [0, 2, 3]]
    design = np.hstack([others, others * Z])
    exact = np.linalg.lstsq(design, X[:, 1], rcond=None)[0]
    coef = model.predict_coef(np.array([[0.0], [1.0]]))[:, 1, [0, 2, 3]]
    np.testing.assert_allclose(coef[0], exact[:3], atol=2e-3)
    np.testing.assert_allclose(coef[1] - coef[0], exact[3:], atol=4e-3)


def test_reggmm_equals_one_regression_per_node():
    """The shared inverse against scipy's least squares on each node's own design."""
    X, Z = linear_field(300)
    model = gf.RegGMM(ridge=1e-9, center="none", standardize=False).fit(X, Z)
    coef = model.predict_coef(np.array([[0.0], [1.0]]))
    for j in range(4):
        others = np.delete(X, j, axis=1)
        exact = np.linalg.lstsq(np.hstack([others, others * Z]), X[:, j], rcond=None)[0]
        np.testing.assert_allclose(np.delete(coef[0, j], j), exact[:3], atol=1e-5)
        np.testing.assert_allclose(np.delete(coef[1, j] - coef[0, j], j), exact[3:], atol=1e-5)


def test_reggmm_chunks_do_not_matter(monkeypatch):
    X, Z = linear_field(300)
    whole = gf.RegGMM().fit(X, Z).interactions_
    monkeypatch.setattr("graphfield.data.nodes.BLOCK_ENTRIES", 8 * 7)
    np.testing.assert_allclose(gf.RegGMM().fit(X, Z).interactions_, whole, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_reggmm_follows_a_category():
    sim = gf.make_setting("S2", n_samples=3000, random_state=0)
    model = gf.RegGMM().fit(sim.X, sim.Z)
    score = auprc(model.edge_weights(sim.Z.iloc[:200]), sim.skeleton[:200]).mean()
    static = gf.GraphicalLasso().fit(sim.X, sim.Z)
    assert score > auprc(static.edge_weights(sim.Z.iloc[:200]), sim.skeleton[:200]).mean()


def test_graphical_lasso_equals_scikit_learn():
    X, Z = linear_field(300)
    ours = gf.GraphicalLasso(n_penalties=4, n_folds=5).fit(X, Z)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    state = np.random.get_state()  # noqa: NPY002
    theirs = GraphicalLassoCV(alphas=4, cv=5, n_refinements=2, assume_centered=True, max_iter=200).fit(
        standard
    )
    np.random.set_state(state)  # noqa: NPY002
    scale = X.std(axis=0)
    np.testing.assert_allclose(ours.precision_, theirs.precision_ / np.outer(scale, scale), atol=5e-4)
    np.testing.assert_allclose(ours.predict_precision(Z)[0], ours.precision_, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_default_on_g1_with_500_rows_beats_the_static_graph_floor(seed):
    """The static graphical lasso reaches about .68 whatever n is."""
    sim = gf.make_setting("G1", n_samples=700, random_state=seed)
    model = gf.DNNCGM(device="cpu", random_state=seed).fit(sim.X[:500], sim.Z[:500])
    assert auprc(model.edge_weights(sim.Z[500:]), sim.skeleton[500:]).mean() > 0.75


@pytest.mark.slow
def test_permuting_nodes_permutes_the_static_graph():
    sim = gf.make_setting("G1", n_samples=300, random_state=0)
    order = np.random.default_rng(0).permutation(50)
    plain = gf.GraphicalLasso().fit(sim.X, sim.Z).edge_weights(sim.Z[:1])[0]
    permuted = gf.GraphicalLasso().fit(sim.X[:, order], sim.Z).edge_weights(sim.Z[:1])[0]
    np.testing.assert_allclose(permuted, plain[np.ix_(order, order)], atol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "floor"), [(1_000, 0.92), (2_000, 0.97)])
def test_default_on_g1(n, floor):
    scores = []
    for seed in (0, 1):
        sim = gf.make_setting("G1", n_samples=n + 500, random_state=seed)
        model = gf.DNNCGM(device="cpu", random_state=seed).fit(sim.X[:n], sim.Z[:n])
        scores.append(auprc(model.edge_weights(sim.Z[n:]), sim.skeleton[n:]).mean())
    assert np.mean(scores) > floor


@pytest.mark.slow
def test_paper_recipe_on_g1():
    """The published recipe gives .98 (raw score) with 10,000 rows."""
    from graphfield.experiments.specs import paper_recipe

    sim = gf.make_setting("G1", n_samples=11_000, random_state=0)
    params = {**paper_recipe("G1", 10_000), "validation_fraction": 0.0, "device": "cpu", "random_state": 0}
    model = gf.DNNCGM(**params).fit(sim.X[:10_000], sim.Z[:10_000])
    raw = np.abs(model.predict_coef(sim.Z[10_000:]))
    assert auprc(raw, sim.skeleton[10_000:]).mean() == pytest.approx(0.98, abs=0.01)
