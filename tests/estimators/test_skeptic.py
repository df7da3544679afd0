"""Graphs from normal scores and from rank correlations."""

from __future__ import annotations

import numpy as np
import pytest

import graphfield as gf
from graphfield.data.marginals import normal_scores


def chain(n: int = 1500, p: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Each node follows the one before it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] += 0.8 * X[:, j - 1]
    return X, rng.normal(size=(n, 1))


def edges(X: np.ndarray, Z: np.ndarray, **params) -> np.ndarray:
    return gf.GraphicalLasso(**{"penalty": 0.05, **params}).fit(X, Z).partial_correlations(Z[:1])[0]


def test_of_gaussian_rows_it_is_the_graphical_lasso_within_sampling_error():
    X, Z = chain()
    apart = edges(X, Z, marginals="skeptic") - edges(X, Z)
    # Spearman's estimate has a tenth more variance at most: the two differ by less than what either is off.
    assert np.abs(apart).max() < 3 / np.sqrt(len(X))


@pytest.mark.parametrize("penalty", [0.05, "cv", "ebic"])
def test_increasing_functions_of_nodes_change_nothing(penalty):
    X, Z = chain(150, p=4)
    seen = np.column_stack([np.exp(X[:, 0]), X[:, 1] ** 3, X[:, 2:]])
    params = {"marginals": "skeptic", "penalty": penalty, "n_penalties": 3, "n_folds": 3}
    one, other = (edges(values, Z, **params) for values in (X, seen))
    np.testing.assert_allclose(one, other, atol=1e-6)
    assert one.any()
    assert np.abs(edges(seen, Z) - edges(X, Z)).max() > 0.05


def test_wild_values_move_it_little():
    X, Z = chain()
    wild = X.copy()
    wild[np.random.default_rng(1).random(X.shape) < 0.02] = 1e3
    at = [(j, j + 1) for j in range(4)]
    truth, skeptic, raw = (
        np.array([own[pair] for pair in at])
        for own in (edges(X, Z), edges(wild, Z, marginals="skeptic"), edges(wild, Z))
    )
    assert np.abs(skeptic - truth).max() < 0.15
    assert np.abs(raw - truth).max() > 0.3


def test_normal_scores_are_those_of_the_other_estimators():
    X, Z = chain(400)
    by_hand = edges(normal_scores(np.exp(X)), Z)
    np.testing.assert_allclose(edges(np.exp(X), Z, marginals="normal"), by_hand, atol=2e-3)
    assert gf.GraphicalLasso(marginals="auto", penalty=0.1).fit(np.exp(X), Z).marginals_ == "normal"
    assert gf.GraphicalLasso(marginals="auto", penalty=0.1).fit(X, Z).marginals_ == "raw"


def test_predictions_files_and_averages(tmp_path):
    X, Z = chain(300)
    values = np.exp(X)
    model = gf.GraphicalLasso(marginals="skeptic", penalty=0.05, center="covariates").fit(values, Z)
    assert model.marginals_ == "skeptic"
    assert "correlations from ranks" in model.describe()
    assert (model.predict(values, Z) > 0).all()  # in the units of the nodes
    again = gf.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_coef(Z[:2]), model.predict_coef(Z[:2]))
    assert again.marginals_ == "skeptic"
    several = gf.Ensemble(estimator=model, n_members=2, resample=True, random_state=0).fit(values, Z)
    assert np.abs(several.partial_correlations(Z[:1]) - model.partial_correlations(Z[:1])).max() < 0.3
    assert several.score(values, Z) == pytest.approx(model.score(values, Z), abs=0.2)


def test_other_words_are_refused():
    with pytest.raises(gf.ParameterError, match="'skeptic'"):
        gf.GraphicalLasso(marginals="sceptic").fit(*chain(60))
