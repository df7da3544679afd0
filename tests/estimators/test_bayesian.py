"""Coefficients with spike-and-slab priors: against exact posteriors, in recovery and in calibration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import betaln, gammaln

import graphfield as gf
from graphfield import analysis as an
from graphfield.solvers import spike_slab as solver
from graphfield.solvers.interaction import interaction_gram

SHORT = {"n_sweeps": 200, "n_draws": 100, "random_state": 0}


def moving_edge(n: int = 1500, p: int = 6) -> tuple[np.ndarray, pd.DataFrame]:
    """x0 and x1 have the partial correlation .1 + .5 age, x3 follows x2 everywhere; "site" does nothing."""
    rng = np.random.default_rng(0)
    Z = pd.DataFrame({"age": rng.uniform(-1, 1, n), "site": rng.choice(list("abc"), n)})
    X = rng.normal(size=(n, p))
    partial = 0.1 + 0.5 * Z["age"].to_numpy()
    X[:, 0] /= np.sqrt(1 - partial**2)  # so that both directions are linear in age
    X[:, 1] += partial * X[:, 0]
    X[:, 3] += 0.6 * X[:, 2]
    return X, Z


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, pd.DataFrame]:
    return moving_edge()


@pytest.fixture(scope="module")
def model(rows) -> gf.BayesianCGM:
    return gf.BayesianCGM(**SHORT).fit(*rows)


def small_products(n: int = 60, p: int = 4) -> tuple[solver.Products, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X, z = rng.normal(size=(n, p)), rng.uniform(-1.7, 1.7, n)
    X[:, 1] += (0.25 + 0.2 * z) * X[:, 0] - 0.3 * X[:, 2]
    W = np.column_stack([np.ones(n), z])
    return solver.Products.of(n * interaction_gram(X, W), p, n), X, W


def exact_inclusion(X: np.ndarray, W: np.ndarray, node: int, inclusion, slab: float) -> np.ndarray:
    """P(coefficient is there) for all others of a node, (m, p - 1), by the likelihoods of all 2^d models."""
    others = np.delete(X, node, axis=1)
    D = np.concatenate([feature[:, None] * others for feature in W.T], axis=1)
    y, (n, d), k = X[:, node], D.shape, others.shape[1]
    shape, rate = solver.VARIANCE_PRIOR
    total, there = [], []
    for chosen in product([False, True], repeat=d):
        own = np.array(chosen)
        A = D[:, own]
        V = np.eye(n) + slab**2 * A @ A.T
        evidence = -np.linalg.slogdet(V)[1] / 2
        evidence -= (shape + n / 2) * np.log(rate + y @ np.linalg.solve(V, y) / 2) - gammaln(shape + n / 2)
        for count in own.reshape(-1, k).sum(axis=1):
            if isinstance(inclusion, float):
                evidence += count * np.log(inclusion) + (k - count) * np.log1p(-inclusion)
            else:
                evidence += betaln(inclusion[0] + count, inclusion[1] + k - count)
        total.append(evidence)
        there.append(own)
    weights = np.exp(np.array(total) - max(total))
    return (weights @ np.array(there, dtype=float) / weights.sum()).reshape(-1, k)


@pytest.mark.parametrize("inclusion", [0.3, (1.0, 4.0)])
def test_probabilities_are_those_of_all_models_weighed_one_by_one(inclusion):
    products, X, W = small_products()
    prior, rng = solver.Prior(inclusion, 0.5), np.random.default_rng(0)
    found = solver.sample_posterior(
        products, prior, np.arange(2), n_sweeps=2000, n_chains=4, n_draws=8, rng=rng
    )
    shares = found.present.mean(axis=0)[:-1]
    error = found.present.std(axis=0, ddof=1)[:-1] / np.sqrt(len(found.present))
    for node in range(4):
        exact = exact_inclusion(X, W, node, inclusion, 0.5)
        others = np.delete(np.arange(4), node)
        # Eight halves of chains: five standard errors, and what those themselves are unsure of.
        assert (np.abs(shares[:, node, others] - exact) < 5 * error[:, node, others] + 0.02).all()
    assert shares[0, 1, 0] > 0.7 > 0.3 > shares[0, 1, 3], "a test of nothing"


def test_with_all_coefficients_there_it_is_ridge_regression(rows):
    X, Z = rows[0], rows[1][["age"]]
    n, slab = len(X), 2.0
    ridge = gf.RegGMM(ridge=1 / (n * slab**2), center="constant").fit(X, Z)
    bayes = gf.BayesianCGM(inclusion=1.0, slab=slab, center="constant", **SHORT).fit(X, Z)
    off = ~np.eye(6, dtype=bool)
    spread = bayes.coefficient_draws_.std(axis=0)[:, off]
    difference = (bayes.interactions_ - ridge.interactions_)[:, off]
    assert np.abs(difference / spread).max() < 0.3  # 400 sweeps, so .05 and what chains remember
    assert (bayes.inclusion_[off] == 1).all()
    # Draws of the first regression spread as the posterior of a ridge regression does.
    W, x = ridge.field_.schema.features(ridge.field_.rows(Z)), (X - X.mean(axis=0)) / X.std(axis=0)
    D = (W[:, :, None] * x[:, None, 1:]).reshape(n, -1)
    root = np.sqrt(np.diag(np.linalg.inv(D.T @ D + np.eye(10) / slab**2)))
    found = bayes.coefficient_draws_[:, :, 0, 1:].std(axis=0).ravel() / root
    np.testing.assert_allclose(found, bayes.scale_draws_[:, 0].mean(), rtol=0.35)


def test_finds_which_pairs_are_there_and_which_move(model, rows):
    table = model.inclusion_table().set_index(["source", "target"])
    assert list(table.columns) == ["probability", "error", "constant", "age", "site"]
    top = table.iloc[:2]
    assert set(top.index) == {("x1", "x2"), ("x3", "x4")}
    assert (top["probability"] > 0.99).all()
    assert table["probability"].iloc[2:].max() < 0.6
    assert table.loc[("x1", "x2"), "age"] > 0.99
    assert table.loc[("x3", "x4"), "age"] < 0.5
    assert (table["site"] < 0.5).all()
    edges = model.predict_graph(rows[1].iloc[:50])[:, *np.triu_indices(6, 1)].any(axis=0)
    assert edges.sum() == 2
    assert model.threshold_.clear.sum() == 4
    assert "2 of 15 pairs have an edge with a probability of at least" in model.describe()


def test_a_covariate_that_moves_nothing_moves_nothing_in_the_mean(model):
    at = pd.DataFrame({"age": [0.0, 0.0], "site": ["a", "c"]})
    first, second = model.partial_correlations(at)
    assert np.abs(first - second).max() < 0.05


def test_intervals_hold_the_truth_and_widen_with_the_level(model):
    at = pd.DataFrame({"age": [-0.8, 0.0, 0.8], "site": ["a", "b", "c"]})
    low, high = model.credible_intervals(at, level=0.99)
    truth = 0.1 + 0.5 * at["age"].to_numpy()
    assert ((low[:, 0, 1] < truth) & (truth < high[:, 0, 1])).all()
    inner = model.credible_intervals(at, level=0.5)
    assert ((low <= inner[0]) & (inner[1] <= high)).all()
    np.testing.assert_array_equal(low, low.swapaxes(1, 2))
    with pytest.raises(gf.ParameterError, match="level"):
        model.credible_intervals(at, level=90)


def test_every_question_has_a_posterior_answer(model, rows):
    Z, draws = rows[1], model.draws(60)
    assert len(draws.members) == 60
    found = an.compare(draws, {"age": -0.9, "site": "a"}, {"age": 0.9, "site": "a"})
    first = found.iloc[0]
    assert {first["source"], first["target"]} == {"x1", "x2"}
    assert 0 < first["interval_low"] < first["difference"] < first["interval_high"]
    ends = pd.DataFrame({"age": [-0.9, 0.9], "site": ["a", "a"]})
    changes = [np.diff(member.at(ends).partial_correlations[:, 0, 1]) for member in draws.members]
    np.testing.assert_allclose(first["interval_low"], np.quantile(changes, 0.025), atol=1e-5)
    curves = an.edge_curves(draws, "age", Z.iloc[:30], edges=[("x1", "x2")], n_points=3)
    assert (curves["interval_low"] < curves["interval_high"]).all()
    assert "interval_low" in an.average_intervals(draws, Z.iloc[:30])
    with pytest.raises(gf.ParameterError, match="n must be"):
        model.draws(1000)


def test_draws_of_both_directions_move_together(model):
    """Two regressions on the same rows err alike: apart, their mean would seem too sure."""
    ahead, back = model.coefficient_draws_[:, 0, 2, 3], model.coefficient_draws_[:, 0, 3, 2]
    assert np.corrcoef(ahead, back)[0, 1] > 0.7


def test_short_chains_say_so():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(15, 25)), rng.normal(size=(15, 1))
    with pytest.warns(gf.TrainingWarning, match="chains of BayesianCGM have not come together"):
        gf.BayesianCGM(n_sweeps=8, n_draws=8, random_state=0).fit(X, Z)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"inclusion": 0}, "inclusion"),
        ({"inclusion": 1.5}, "inclusion"),
        ({"inclusion": (1, -4)}, "inclusion"),
        ({"inclusion": (1, 4, 2)}, "inclusion"),
        ({"inclusion": "sparse"}, "inclusion"),
        ({"slab": 0}, "slab must be 'auto' or a number above 0"),
        ({"n_chains": 1}, "n_chains"),
        ({"n_sweeps": 20, "n_draws": 41}, "n_draws of BayesianCGM must be at most .* = 40.*got 41"),
    ],
)
def test_priors_that_make_no_sense(params, message, rows):
    with pytest.raises(gf.ParameterError, match=message):
        gf.BayesianCGM(**params).fit(*rows)


def test_the_posterior_is_saved(model, rows, tmp_path):
    again, at = gf.load(model.save(tmp_path / "model")), rows[1].iloc[:3]
    pd.testing.assert_frame_equal(again.inclusion_table(), model.inclusion_table())
    for ours, theirs in zip(again.credible_intervals(at), model.credible_intervals(at), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_probabilities_and_intervals_are_calibrated_where_the_prior_is_true():
    """Parameters drawn from the prior: 90 % intervals hold 85 to 95 %, probabilities are frequencies."""
    rng, p, n = np.random.default_rng(0), 8, 80
    places, chances, truths = [], [], []
    for _ in range(25):
        X, z = rng.normal(size=(n, p)), rng.uniform(-1.7, 1.7, n)
        W = np.column_stack([np.ones(n), z])
        share = rng.beta(1, 4, (2, p, 1))
        slab = np.sqrt(solver.FREEDOM * solver.TYPICAL**2 / rng.chisquare(solver.FREEDOM, (2, p, 1)))
        shape, rate = solver.VARIANCE_PRIOR
        scale = np.sqrt(rate / rng.gamma(shape, size=p))
        B = (rng.random((2, p, p)) < share) * slab * scale[:, None] * rng.normal(size=(2, p, p))
        B[:, np.arange(p), np.arange(p)] = 0
        D = (W[:, :, None] * X[:, None, :]).reshape(n, -1)
        Y = D @ B.transpose(0, 2, 1).reshape(-1, p) + scale * rng.normal(size=(n, p))
        products = solver.Products(D.T @ D, (D.T @ Y).T, (Y**2).sum(axis=0), n)
        found = solver.sample_posterior(
            products, solver.Prior(), np.arange(2), n_sweeps=400, n_chains=4, n_draws=400, rng=rng
        )
        off = ~np.eye(p, dtype=bool)
        draws, truth = found.draws[:, :, off], B[:, off]
        below = (draws < truth).mean(axis=0)
        places.append(below + rng.random(truth.shape) * (draws == truth).mean(axis=0))  # a spike is a tie
        chances.append(found.present.mean(axis=0)[:-1][:, off])
        truths.append(truth != 0)
    place, chance, truth = map(np.ravel, (np.array(places), np.array(chances), np.array(truths)))
    inside = (place > 0.05) & (place < 0.95)
    assert 0.85 < inside.mean() < 0.95
    assert 0.85 < inside[chance > 0.9].mean() < 0.95  # whichever coefficients the rows point out
    for low, high in ((0, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1)):
        own = (chance >= low) & (chance <= high)
        assert own.sum() > 50
        assert abs(truth[own].mean() - chance[own].mean()) < 0.07
