"""Graphs from normal scores and from rank correlations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphfield as gf
from graphfield.data.marginals import normal_scores
from graphfield.estimators.registry import ESTIMATORS, find_estimator
from graphfield.solvers.rank_correlations import local_rank_correlations, rank_correlations


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


def halves(seed: int = 0) -> tuple[np.ndarray, pd.DataFrame]:
    """A chain in one half of the rows, its first link reversed in the other."""
    X, _ = chain(600, p=4, seed=seed)
    side = np.repeat(["a", "b"], 300)
    X[side == "b", 0] *= -1
    return X, pd.DataFrame({"side": side})


@pytest.mark.parametrize(
    "make",
    [
        lambda **params: gf.JointGraphicalLasso(penalty=0.05, strength=0.2, **params),
        lambda **params: gf.KernelCGM(penalty=0.05, bandwidth=0.3, random_state=0, **params),
        lambda **params: gf.KernelCGM(
            method="nodewise", penalty=0.05, bandwidth=0.3, random_state=0, **params
        ),
    ],
    ids=["joint", "kernel", "kernel-nodewise"],
)
def test_graphs_of_levels_and_places_by_rank(make, tmp_path):
    X, Z = halves()
    at = pd.DataFrame({"side": ["a", "b"]})
    truth = make().fit(X, Z).partial_correlations(at)
    assert truth[0, 0, 1] > 0.4
    assert truth[1, 0, 1] < -0.4
    model = make(marginals="skeptic").fit(X, Z)
    assert model.marginals_ == "skeptic"
    assert np.abs(model.partial_correlations(at) - truth).max() < 0.15
    seen = np.column_stack([np.exp(X[:, 0]), X[:, 1] ** 3, X[:, 2:]])
    bent = make(marginals="skeptic").fit(seen, Z)
    np.testing.assert_allclose(bent.partial_correlations(at), model.partial_correlations(at), atol=1e-6)
    np.testing.assert_array_equal(
        gf.load(bent.save(tmp_path / "m")).partial_correlations(at), bent.partial_correlations(at)
    )
    assert (bent.predict(seen, Z)[:, 0] > 0).all()  # in the units of the nodes
    wild = X.copy()
    wild[np.random.default_rng(1).random(X.shape) < 0.02] = 1e3
    far = [
        np.abs(make(**own).fit(wild, Z).partial_correlations(at) - truth).max()
        for own in ({}, {"marginals": "skeptic"})
    ]
    assert far[1] < 0.2 < far[0]


def test_one_place_for_all_is_the_graphical_lasso_by_rank():
    X, Z = chain(300)
    model = gf.KernelCGM(
        bandwidth=np.inf, penalty=0.05, center="constant", marginals="skeptic", random_state=0
    )
    ours = model.fit(X, Z).partial_correlations(Z[:1])[0]
    np.testing.assert_allclose(ours, edges(X, Z, marginals="skeptic"), atol=2e-3)


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_weighted_ranks_are_those_of_repeated_rows(data):
    """A row of weight two is two rows, with ties as well."""
    X = np.array(
        data.draw(st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=4, max_size=12)), dtype=float
    )
    weights = np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(X), max_size=len(X))))
    repeated = rank_correlations(np.repeat(X, weights, axis=0))
    found = local_rank_correlations(X, weights[None].astype(float))[0]
    np.testing.assert_allclose(found, repeated, atol=1e-9)


def test_other_words_are_refused():
    with pytest.raises(gf.ParameterError, match="'skeptic'"):
        gf.GraphicalLasso(marginals="sceptic").fit(*chain(60))


def test_who_takes_scores_is_what_the_guide_says():
    """docs/guide/other-methods.md names them: some have the parameter, AutoCGM does it for its candidates."""
    without = {name for name in ESTIMATORS if "marginals" not in find_estimator(name).parameter_names()}
    made_of_others = {name for name in without if "estimator" in find_estimator(name).parameter_names()}
    alone = {"TreeCGM", "RegGMM", "BayesianCGM", "NodewiseLasso", "ContextualizedCGM"}
    assert without - made_of_others == alone
    X, Z = chain(300, p=4)
    params = {"candidates": ("static", "tree", "linear"), "marginals": "normal", "random_state": 0}
    plain, skewed = (gf.AutoCGM(**params).fit(values, Z).held_out_ for values in (X, np.exp(X)))
    pd.testing.assert_frame_equal(plain.drop(columns="seconds"), skewed.drop(columns="seconds"))
