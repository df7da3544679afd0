"""Settings with nodes of several kinds, or with edges that are no lines: moments, conditionals, streams."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, gammaln, softmax
from scipy.stats import poisson

import graphfield as gf
from graphfield.simulate import pairwise
from graphfield.simulate.moving_pairs import MovingPairs
from graphfield.simulate.node_kinds import Binary, Categorical, Count, Gaussian

Z0 = np.array([0.3, -0.4])


def small_field(kinds, n_edges, seed=0):
    """Few nodes with many edges, all of them there at Z0."""
    field = MovingPairs(kinds, n_edges, np.random.default_rng(seed))
    field.waves.phases = np.full(len(field.pairs), 1.2) - np.pi * field.waves.directions @ Z0
    return field


def log_weight(field, values):
    """log p(x | z0) but for a constant, of nodes that are no Gaussians; one state per row."""
    columns = np.hstack([kind.columns(x) for kind, x in zip(field.kinds, values.T, strict=True)])
    centred = columns - np.array([kind.centre for kind in field.kinds])[field.column_nodes]
    B = field.interactions(Z0[None])[0]
    counts = [j for j, name in enumerate(field.node_types) if name == "count"]
    pairs = 0.5 * np.einsum("ic,cd,id->i", centred, B, centred)
    return columns @ field.offsets(Z0[None])[0] + pairs - gammaln(values[:, counts] + 1).sum(axis=1)


def assert_frequencies(drawn, states, probability):
    """Pearson's chi-squared over states that are expected five times or more, far from its tail."""
    codes = {tuple(state): i for i, state in enumerate(states.tolist())}
    found = np.bincount([codes[tuple(x)] for x in drawn.tolist()], minlength=len(states))
    expected = probability * len(drawn)
    often = expected >= 5
    seen = np.append(found[often], found[~often].sum())
    due = np.append(expected[often], expected[~often].sum())
    statistic = ((seen - due) ** 2 / np.maximum(due, 1e-9)).sum()
    assert statistic < often.sum() + 5 * np.sqrt(2 * often.sum())


def test_a_small_ising_model_has_its_exact_frequencies():
    field = small_field([Binary()] * 5, 6)
    states = np.array(list(product([0.0, 1.0], repeat=5)))
    weight = log_weight(field, states)
    drawn = field.sample(np.tile(Z0, (5_000, 1)), np.random.default_rng(1))
    assert_frequencies(drawn, states, softmax(weight))
    assert np.ptp(weight) > 3, "the interactions are no small ones"


def test_a_small_mixed_model_has_its_exact_frequencies():
    field = small_field([Binary(), Categorical(3), Count(), Binary()], 5)
    states = np.array(list(product([0.0, 1.0], [0.0, 1.0, 2.0], np.arange(40.0), [0.0, 1.0])))
    drawn = field.sample(np.tile(Z0, (5_000, 1)), np.random.default_rng(2))
    assert_frequencies(drawn, states, softmax(log_weight(field, states)))


def test_gaussian_nodes_beside_others_have_their_exact_moments():
    """Given the binary node the others are normal with precision I - B, which also gives its share."""
    field = small_field([Gaussian(), Gaussian(), Binary(), Gaussian()], 5)
    drawn = field.sample(np.tile(Z0, (8_000, 1)), np.random.default_rng(3))
    numbers = [0, 1, 3]
    B, offsets = field.interactions(Z0[None])[0], field.offsets(Z0[None])[0]
    covariance = np.linalg.inv(np.eye(3) - B[np.ix_(numbers, numbers)])
    pull = offsets[numbers] + np.array([-0.5, 0.5])[:, None] * B[2, numbers]  # (state, number)
    means = pull @ covariance
    log_odds = offsets[2] + 0.5 * np.einsum("sj,jk,sk->s", pull, covariance, pull) @ [-1, 1]
    share = expit(log_odds)
    assert drawn[:, 2].mean() == pytest.approx(share, abs=4 * 0.5 / np.sqrt(8_000))
    for state in (0, 1):
        rows = drawn[drawn[:, 2] == state][:, numbers]
        np.testing.assert_allclose(rows.mean(axis=0), means[state], atol=5 * 1.3 / np.sqrt(len(rows)))
        np.testing.assert_allclose(np.cov(rows.T), covariance, atol=8 / np.sqrt(len(rows)))


@pytest.fixture(scope="module", params=["I1", "M1"])
def drawn(request):
    return gf.make_setting(request.param, n_samples=1500, random_state=4)


def expected_columns(sim):
    """Mean of every design column given the other nodes, from the formula, and the columns; both (n, d)."""
    columns = np.hstack([kind.columns(x) for kind, x in zip(sim.field.kinds, sim.X.T, strict=True)])
    centre = np.array([kind.centre for kind in sim.field.kinds])[sim.column_nodes]
    eta = sim.field.offsets(sim.Z) + np.einsum("icd,id->ic", sim.interactions, columns - centre)
    means = np.empty_like(eta)
    for j, name in enumerate(sim.node_types):
        own = sim.column_nodes == j
        levels = np.pad(eta[:, own], ((0, 0), (1, 0)))
        link = {
            "gaussian": lambda own=own: eta[:, own],
            "binary": lambda own=own: expit(eta[:, own]),
            "categorical": lambda levels=levels: softmax(levels, axis=1)[:, 1:],
            "count": lambda own=own: np.exp(eta[:, own]),
        }
        means[:, own] = link[name]()
    return means, columns


def test_every_node_follows_its_conditional_distribution(drawn):
    """What a node has beyond its mean given the others is uncorrelated with the others, and with z."""
    means, columns = expected_columns(drawn)
    residual = columns - means
    for basis in (columns - columns.mean(axis=0), drawn.Z, np.ones((len(columns), 1))):
        scores = residual.T @ basis
        errors = np.sqrt((residual**2).T @ basis**2)
        z_values = np.abs(scores / errors)
        if basis.shape == columns.shape:
            z_values[drawn.column_nodes[:, None] == drawn.column_nodes] = 0
        assert z_values.max() < 4.5


def test_residuals_have_the_variance_of_their_kind(drawn):
    means, columns = expected_columns(drawn)
    for j, name in enumerate(drawn.node_types):
        own = drawn.column_nodes == j
        mean = means[:, own]
        variance = {"gaussian": np.ones_like(mean), "count": mean}.get(name, mean * (1 - mean))
        squares = (columns[:, own] - mean) ** 2 / variance
        assert squares.mean() == pytest.approx(1, abs=6 * squares.std() / np.sqrt(squares.size))


def test_kinds_and_truth_agree(drawn):
    X, kinds, nodes = drawn.X, np.array(drawn.node_types), drawn.column_nodes
    assert set(np.unique(X[:, kinds == "binary"])) == {0.0, 1.0}
    assert set(np.unique(X[:, kinds == "categorical"])) <= {0.0, 1.0, 2.0}
    assert (X[:, kinds == "count"] % 1 == 0).all()
    B = drawn.interactions
    np.testing.assert_array_equal(B, B.swapaxes(1, 2))
    there = np.zeros_like(drawn.skeleton)
    for c, d in zip(*np.nonzero((B != 0).any(axis=0)), strict=True):
        there[:, nodes[c], nodes[d]] |= B[:, c, d] != 0
    np.testing.assert_array_equal(there, drawn.skeleton)
    changes = drawn.skeleton.any(axis=0) & ~drawn.skeleton.all(axis=0)
    assert changes.any(), "edges come and go"
    if drawn.setting == "I1":
        assert set(kinds) == {"binary"}
        np.testing.assert_array_equal(drawn.coef, B)
    else:
        assert sorted(set(kinds)) == ["binary", "categorical", "count", "gaussian"]
        assert drawn.coef is None


@pytest.mark.parametrize("seed", range(5))
def test_no_edge_of_m1_lacks_a_finite_density(seed):
    field = gf.make_setting("M1", 1, seed).field
    kinds = np.array(field.node_types)
    for a, b in kinds[field.pairs]:
        assert "count" not in (a, b) or {a, b} & {"binary", "categorical"}
    numbers = np.flatnonzero((kinds == "gaussian")[field.column_nodes])
    strongest = np.abs(field.candidates[0])[np.ix_(numbers, numbers)]
    assert strongest.sum(axis=1).max() < 1, "I - B is positive definite at every z"
    assert len(field.pairs) == 25


def test_rows_keep_their_draws_when_more_follow_in_other_chunks(monkeypatch):
    monkeypatch.setattr(pairwise, "_CHUNK", 20)
    field = small_field([Binary(), Categorical(3), Count(), Gaussian()], 4)
    Z = field.covariates(50, np.random.default_rng(0))
    few, many = (field.sample(Z[:n], np.random.default_rng(1)) for n in (25, 50))
    np.testing.assert_allclose(many[:25], few, rtol=1e-9)
    assert (many[:20] != many[20:40]).any(axis=0).all(), "chunks have streams of their own"


@pytest.mark.parametrize("name", ["S3", "I1", "M1"])
def test_same_seed_same_bits(name):
    first, again, other = (gf.make_setting(name, 30, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.skeleton, again.skeleton)
    assert (first.candidates != other.candidates).any()
    assert (first.Z != other.Z).any()


def test_numbers_settings_have_one_kind():
    sim = gf.make_setting("G1", 5, 0)
    assert sim.node_types == ("gaussian",) * 50
    assert sim.interactions is None
    np.testing.assert_array_equal(sim.column_nodes, np.arange(50))


def test_counts_are_quantiles_of_poisson():
    eta, uniform = np.log([[0.3], [2.0], [9.0], [2.0]]), np.array([0.9, 0.0, 0.999, 1 - 2.0**-53])
    x = Count().draw(eta, uniform)
    np.testing.assert_array_equal(x[:3], poisson.ppf(uniform, np.exp(eta[:, 0]))[:3].clip(0))
    assert np.isfinite(x[3])


def test_squares_leave_no_linear_trace():
    """Given z all covariances are zero, and the squares of the parents explain their children."""
    sim = gf.make_setting("S3", n_samples=1500, random_state=0)
    weights = np.einsum("pij,pjk->ijk", sim.field.halves(sim.Z), sim.candidates)
    np.testing.assert_array_equal((weights > 0) | (weights > 0).swapaxes(1, 2), sim.skeleton)
    assert sim.skeleton.sum(axis=(1, 2)).tolist() == [48] * 1500, "every node has one partner"
    assert sim.skeleton.any(axis=0).sum() == 96, "and another one elsewhere"
    products = sim.X[:, :, None] * sim.X[:, None, :]
    z_values = products.sum(axis=0) / np.sqrt((products**2).sum(axis=0))
    assert np.abs(z_values[~np.eye(48, dtype=bool)]).max() < 4.5
    along = np.einsum("ijk,ij,ik->i", weights, sim.X, sim.X)  # where a linear trace would add up
    assert abs(along.mean()) < 4.5 * along.std() / np.sqrt(1500)
    residual = sim.X - np.einsum("ijk,ik->ij", weights, sim.X**2 - 1)
    np.testing.assert_allclose(residual.std(axis=0), 1, atol=5 / np.sqrt(2 * 1500))
    assert sim.X[:, sim.field.children].std() > 1.3
    assert sim.coef is None
