"""Posteriors under spike-and-slab priors: against exact ones, and in calibration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import betaln, gammaln

from graphfield.solvers import spike_slab as solver
from graphfield.solvers.interaction import interaction_gram


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


@pytest.mark.slow
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
