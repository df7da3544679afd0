"""Coefficients with spike-and-slab priors: recovery, and what the posterior is asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield import analysis as an
from graphfield.fields.program import evaluate

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
    at = {"age": -0.9, "site": "a"}, {"age": 0.9, "site": "a"}
    found = an.compare(draws, *at)
    first = found.iloc[0]
    assert {first["source"], first["target"]} == {"x1", "x2"}
    assert 0 < first["interval_low"] < first["difference"] < first["interval_high"]
    ends = pd.DataFrame({"age": [-0.9, 0.9], "site": ["a", "a"]})
    changes = [np.diff(member.at(ends).partial_correlations[:, 0, 1]) for member in draws.members]
    np.testing.assert_allclose(first["interval_low"], np.quantile(changes, 0.025), atol=1e-5)
    curves = an.edge_curves(draws, "age", Z.iloc[:30], edges=[("x1", "x2")], n_points=3)
    assert (curves["interval_low"] < curves["interval_high"]).all()
    for question in (lambda one: an.average_intervals(one, Z.iloc[:9]), lambda one: an.compare(one, *at)):
        asked = [question(one).set_index(["source", "target"]).sort_index() for one in (model, model.draws())]
        ours, theirs = (table["interval_high"] for table in asked)
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
        assert (ours > theirs.median()).any()
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
    pd.testing.assert_frame_equal(an.average_intervals(again, at), an.average_intervals(model, at))


# -- numbers that bend ---------------------------------------------------------------------------


AGES = pd.DataFrame({"age": np.linspace(-0.8, 0.8, 5), "site": "a"})


@pytest.fixture(scope="module")
def bent_rows() -> tuple[np.ndarray, pd.DataFrame]:
    """x0 and x1 have the partial correlation .7 - 1.2 |age|; x3 follows x2 everywhere."""
    X, Z = moving_edge()
    rng = np.random.default_rng(2)
    partial = 0.7 - 1.2 * np.abs(Z["age"].to_numpy())
    X[:, 0] = rng.normal(size=len(X)) / np.sqrt(1 - partial**2)
    X[:, 1] = rng.normal(size=len(X)) + partial * X[:, 0]
    return X, Z


@pytest.fixture(scope="module")
def bent(bent_rows) -> gf.BayesianCGM:
    return gf.BayesianCGM(bends=3, **SHORT).fit(*bent_rows)


def test_bends_follow_an_edge_that_rises_and_falls(bent, bent_rows):
    truth = 0.7 - 1.2 * np.abs(AGES["age"].to_numpy())
    assert np.abs(bent.partial_correlations(AGES)[:, 0, 1] - truth).max() < 0.12
    low, high = bent.credible_intervals(AGES, level=0.99)
    assert ((low[:, 0, 1] < truth) & (truth < high[:, 0, 1])).all()
    straight = gf.BayesianCGM(**SHORT).fit(*bent_rows)
    assert np.abs(straight.partial_correlations(AGES)[:, 0, 1] - truth).max() > 0.4
    table = bent.inclusion_table().set_index(["source", "target"])
    assert list(table.columns) == ["probability", "error", "constant", "age", "site"]
    assert table.loc[("x1", "x2"), "age"] > 0.99
    assert table.loc[("x3", "x4"), "age"] < 0.5


def test_bends_are_columns_that_could_be_added_by_hand(bent_rows):
    """Uncorrelated, in standard units, each number before its own: the same design, so the same chains."""
    X, Z = bent_rows[0], bent_rows[1].assign(dose=np.random.default_rng(2).normal(size=len(bent_rows[1])))
    Z = Z[["age", "dose"]]
    params = {**SHORT, "n_sweeps": 40, "n_draws": 20, "center": "constant"}
    model = gf.BayesianCGM(bends=2, **params).fit(X, Z)
    W = model.field_.features(model.field_.rows(Z))
    assert W.shape[1] == 7
    np.testing.assert_allclose(W[:, :4].T @ W[:, :4] / len(W), np.eye(4), atol=1e-8)
    np.testing.assert_allclose(W[:, [1, 4]], (Z - Z.mean()) / Z.std(ddof=0), atol=1e-8)
    by_hand = gf.BayesianCGM(**params).fit(X, W[:, 1:])
    np.testing.assert_allclose(model.interactions_, by_hand.interactions_, atol=1e-6)
    assert model.covariate_inclusion_.shape == (3, 6, 6)
    moved = by_hand.covariate_inclusion_[[1, 2, 3]].max(axis=0)
    assert (model.covariate_inclusion_[1] >= moved - 1e-12).all()


def test_bends_are_saved_and_carried_out_by_the_page(bent, bent_rows, tmp_path):
    again, some = gf.load(bent.save(tmp_path / "model")), bent_rows[1].iloc[:20]
    np.testing.assert_array_equal(again.partial_correlations(some), bent.partial_correlations(some))
    for ours, theirs in zip(again.credible_intervals(some), bent.credible_intervals(some), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(
        again.predict(bent_rows[0][:20], some), bent.predict(bent_rows[0][:20], some)
    )
    alone = bent.partial_correlations(some.iloc[7:8])
    np.testing.assert_array_equal(alone[0], bent.partial_correlations(some)[7])
    j, k = np.triu_indices(6, 1)
    found = evaluate(bent.field_.program(), some)
    assert np.abs(found - bent.partial_correlations(some)[:, j, k]).max() < 1e-5


def test_numbers_with_few_values_bend_less(bent_rows):
    X, Z = bent_rows[0], bent_rows[1].assign(age=np.arange(len(bent_rows[0])) % 3.0)
    model = gf.BayesianCGM(bends=5, **SHORT).fit(X, Z)
    assert len(model.interactions_) == 1 + 2 + 2  # a one, three ages, three sites


def test_levels_do_not_bend(bent_rows):
    X, Z = bent_rows
    with pytest.raises(
        gf.DataError, match=r"BayesianCGM\(bends=3\) needs a numeric .* got levels alone \('site'\)"
    ):
        gf.BayesianCGM(bends=3).fit(X, Z[["site"]])
    for bends in (-1, 2.5, 21, "auto"):
        with pytest.raises(gf.ParameterError, match="bends"):
            gf.BayesianCGM(bends=bends).fit(X, Z)
