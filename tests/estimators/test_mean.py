"""The conditional mean mu(z)."""

from __future__ import annotations

import numpy as np
import pytest

import graphfield as gf
from conftest import SMALL, small_data

FAST = {"rank": 2, "max_steps": 600, "device": "cpu", "random_state": 0}


def independent_nodes(n: int = 800) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 4)), rng.uniform(-1, 1, (n, 1))


@pytest.mark.slow
def test_a_mean_that_moves_is_no_edge():
    """Nodes 0 and 1 both follow z and are otherwise independent: an edge only if mu(z) is missing."""
    X, Z = independent_nodes()
    X[:, :2] += 2 * np.sin(3 * Z)
    leaky = gf.DNNCGM(**FAST, center="constant").fit(X, Z).edge_weights(Z)[:, 0, 1].mean()
    model = gf.DNNCGM(**FAST).fit(X, Z)
    assert model.mean_depends_on_covariates_
    assert leaky > 0.4
    assert model.edge_weights(Z)[:, 0, 1].mean() < 0.1


@pytest.mark.slow
def test_the_mean_is_recovered_in_the_users_units():
    X, Z = independent_nodes()
    truth = 100 + 50 * np.column_stack([np.sin(3 * Z[:, 0]), Z[:, 0] ** 2, 0 * Z[:, 0], Z[:, 0]])
    model = gf.DNNCGM(**FAST).fit(truth + 10 * X, Z)
    found = model.field_.at(Z).offsets
    assert np.sqrt(((found - truth) ** 2).mean()) < 4


@pytest.mark.slow
def test_a_mean_without_evidence_is_dropped():
    model = gf.DNNCGM(**FAST).fit(*independent_nodes())
    assert not model.mean_depends_on_covariates_


@pytest.mark.parametrize("center", ["covariates", "constant", pytest.param("none", marks=pytest.mark.slow)])
def test_shifting_the_nodes(center):
    """A constant added to X changes nothing, except where nothing is subtracted."""
    X, Z = small_data()
    plain = gf.DNNCGM(**{**SMALL, "center": center}).fit(X, Z)
    moved = gf.DNNCGM(**{**SMALL, "center": center}).fit(X + 64.0, Z)
    same = np.allclose(plain.predict_coef(Z), moved.predict_coef(Z), rtol=1e-2, atol=1e-3)
    assert same == (center != "none")


def test_center_none_predicts_without_an_intercept():
    X, Z = small_data()
    model = gf.DNNCGM(**SMALL, center="none", standardize=False).fit(X, Z)
    assert not model.predict(0 * X, Z).any()


def test_covariates_that_are_many_for_some_folds():
    """All known rows bear main effects of 30 covariates; those without a fold do not."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(80, 3)), rng.normal(size=(80, 30))
    model = gf.DNNCGM(rank=2, hidden_size=8, max_steps=5, device="cpu", random_state=0).fit(X, Z)
    assert np.isfinite(model.predict(X, Z)).all()
