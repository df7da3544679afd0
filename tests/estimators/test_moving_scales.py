"""Scales of nodes that move with the covariates: they are found, and they are no edges that move."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.data.moving_scales import MovingScales

SIGNS = np.array([1, -1, 1, -1])
AT = pd.DataFrame({"z": [-0.95, -0.5, 0.0, 0.5, 0.95]})


def chain(n: int = 1_500, p: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Nodes with partial correlations of 0.35 between neighbours, and z."""
    rng = np.random.default_rng(seed)
    precision = np.eye(p) - 0.35 * (np.eye(p, k=1) + np.eye(p, k=-1))
    X = np.linalg.solve(np.linalg.cholesky(precision).T, rng.normal(size=(p, n))).T
    return X, rng.uniform(-1, 1, n)


def scaled_chain(n: int = 1_500, seed: int = 0) -> tuple[np.ndarray, pd.DataFrame]:
    X, z = chain(n, seed=seed)
    return 100 * X * np.exp(z[:, None] * SIGNS), pd.DataFrame({"z": z})


def edges(model, Z: pd.DataFrame) -> np.ndarray:
    p = len(model.node_names_)
    return model.partial_correlations(Z)[:, np.arange(p - 1), np.arange(1, p)]


def test_a_scale_does_not_depend_on_which_other_rows_are_asked_for():
    rng = np.random.default_rng(0)
    scales = MovingScales(rng.normal(size=(3, 40)), rng.normal(size=40), rng.normal(size=(40, 7)), np.ones(7))
    W = rng.normal(size=(300, 4))
    whole = scales.at(W)
    assert (scales.at(W[77:78]) == whole[77]).all()
    assert scales.at(W[:0]).shape == (0, 7)


@pytest.mark.parametrize("model", [gf.RegGMM(), gf.GraphicalLasso(center="covariates", n_penalties=4)])
def test_edges_stay_where_scales_move(model):
    X, Z = scaled_chain()
    # Over three edges chance is 0.02 at the ends of z for a model that is linear in it; 0.45 without.
    np.testing.assert_allclose(edges(model.fit(X, Z), AT).mean(axis=1), 0.35, atol=0.08)


def test_scale_and_coefficients_are_in_the_users_units():
    X, Z = scaled_chain()
    model = gf.RegGMM().fit(X, Z)
    truth = 100 * np.exp(AT.to_numpy() * SIGNS)
    np.testing.assert_allclose(model.predict_scale(AT), truth, rtol=0.2)
    # E x_0 given the others is 0.35 s_0 / s_1 x_1.
    ratio = truth[:, 0] / truth[:, 1]
    np.testing.assert_allclose(model.predict_coef(AT)[:, 0, 1], 0.35 * ratio, rtol=0.35)
    np.testing.assert_allclose(
        np.diagonal(model.predict_precision(AT), axis1=1, axis2=2), model.predict_scale(AT) ** -2.0
    )


def test_residual_scales_follow_the_edges_of_a_node():
    """Of x_0 given x_1 = b(z) x_0 + noise it is 1 / sqrt(1 + b(z)^2), of x_1 given x_0 one."""
    rng = np.random.default_rng(0)
    Z, X = rng.uniform(-1, 1, (2_000, 1)), rng.normal(size=(2_000, 3))
    X[:, 1] += 1.5 * Z[:, 0] * X[:, 0]
    scale = gf.RegGMM().fit(X, Z).predict_scale([[0.0], [0.9]])
    np.testing.assert_allclose(scale[:, 0], [1, 1 / np.sqrt(1 + 1.35**2)], rtol=0.2)
    np.testing.assert_allclose(scale[:, 1], 1, rtol=0.2)


@pytest.mark.slow
def test_auto_does_not_take_scales_that_move_for_a_graph_that_does():
    model = gf.AutoCGM(candidates=("static", "linear"), random_state=0).fit(*scaled_chain())
    assert model.depends_on_covariates_ is False


def test_only_a_mean_at_z_leaves_a_scale_at_z():
    X, Z = scaled_chain(300)
    options = {"rank": 2, "penalty": 0.05, "max_steps": 5, "device": "cpu", "random_state": 0}
    assert np.ptp(gf.DNNCGM(**options).fit(X, Z).predict_scale(AT), axis=0).min() > 0
    for model in (gf.DNNCGM(**options, center="constant"), gf.RegGMM(center="constant")):
        assert np.ptp(model.fit(X, Z).predict_scale(AT), axis=0).max() == 0


def test_moving_scales_are_saved(tmp_path):
    X, Z = scaled_chain(400)
    for model in (gf.RegGMM(), gf.GraphicalLasso(center="covariates", penalty=0.1)):
        again = gf.load(model.fit(X, Z).save(tmp_path / type(model).__name__))
        assert np.ptp(again.predict_scale(AT), axis=0).min() > 0
        for ask in ("predict_scale", "predict_coef", "predict_precision"):
            assert (getattr(again, ask)(AT) == getattr(model, ask)(AT)).all()


@pytest.mark.slow
def test_samples_of_archetypes_have_the_scales_of_the_nodes():
    X, Z = scaled_chain(600)
    model = gf.ArchetypeCGM(n_archetypes=1, penalty=0.01, max_steps=5, device="cpu", random_state=0).fit(X, Z)
    drawn = model.sample(Z, random_state=0)
    low, high = Z["z"] < -0.5, Z["z"] > 0.5
    np.testing.assert_allclose(
        np.log(drawn[high].std(axis=0) / drawn[low].std(axis=0)),
        np.log(X[high].std(axis=0) / X[low].std(axis=0)),
        atol=0.4,
    )
    constant = 4 * np.log(2 * np.pi)
    whole = np.linalg.slogdet(model.predict_precision(Z))[1]
    left = X - model.field_.at(Z).offsets
    squares = np.einsum("nj,njk,nk->n", left, model.predict_precision(Z), left)
    np.testing.assert_allclose(model.log_likelihood(X, Z), (whole - squares - constant) / 2, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        gf.DNNCGM(rank=8, penalty=0.05, device="cpu", random_state=0),
        gf.ArchetypeCGM(n_archetypes=2, penalty=0.02, max_steps=200, device="cpu", random_state=0),
    ],
)
def test_networks_find_edges_that_stay_where_scales_move(model):
    X, Z = scaled_chain(3_000)
    np.testing.assert_allclose(edges(model.fit(X, Z), AT).mean(axis=1), 0.35, atol=0.06)
    np.testing.assert_allclose(model.predict_scale(AT), 100 * np.exp(AT.to_numpy() * SIGNS), rtol=0.2)


def test_a_number_with_two_values_has_the_scales_of_two_levels():
    rng = np.random.default_rng(0)
    second = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 3))
    X[:, 1] += 0.5 * X[:, 0]
    X[:, 2] *= 1 + 0.3 * second
    number = gf.RegGMM(ridge=1e-9).fit(X, second[:, None].astype(float))
    level = gf.RegGMM(ridge=1e-9).fit(X, pd.DataFrame({"z": np.array(["a", "b"])[second]}))
    of_number = number.partial_correlations([[0.0], [1.0]])
    np.testing.assert_allclose(
        of_number, level.partial_correlations(pd.DataFrame({"z": ["a", "b"]})), atol=1e-6
    )
    assert number.field_.common.scales is not None or number.field_.common.residual_scales is not None
