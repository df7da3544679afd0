"""One model per part of the covariate space: ByCluster and TreeCGM."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeRegressor

import graphfield as gf
from conftest import small_data
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.frames import as_frame
from graphfield.estimators.tree import _rules
from graphfield.fields.tree import Tree
from graphfield.graphs.strength import partial_from_precision
from graphfield.solvers.leaf_likelihood import grow_covariance_tree
from solver_cases import two_regimes

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")
STATIC = gf.GraphicalLasso(penalty=0.05)


# -- ByCluster ------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", [STATIC, gf.RegGMM(), gf.TreeCGM(max_leaves=2, random_state=0)])
def test_by_cluster_equals_separate_fits(inner):
    X, Z = small_data(300)
    model = gf.ByCluster(estimator=inner, by="site").fit(X, Z)
    assert model.clusters_ == list(model.models_) == ["A", "B", "C"]
    for level in "ABC":
        rows = (Z.site == level).to_numpy()
        x, z = X[rows].reset_index(drop=True), Z.loc[rows, ["age"]].reset_index(drop=True)
        alone = inner.__class__(**inner.get_params()).fit(x, z)
        for method in ("predict_coef", "partial_correlations", "edge_weights", "predict_precision"):
            np.testing.assert_array_equal(getattr(model, method)(Z[rows]), getattr(alone, method)(z))
        np.testing.assert_array_equal(model.predict(X[rows], Z[rows]), alone.predict(x, z))
        expected = alone.edges(z, threshold=0.05)
        pd.testing.assert_frame_equal(model.edges(Z[rows], threshold=0.05), expected)
        streamed = pd.concat(model.iter_edges(Z[rows], threshold=0.05), ignore_index=True)
        pd.testing.assert_frame_equal(streamed, expected)


def test_partial_correlations_use_the_residual_scale_of_the_cluster():
    """A node with ten times the noise in one cluster: one scale for all would be wrong in both."""
    X, Z = small_data(400)
    X.loc[Z.site == "B", "n1"] *= 10
    model = gf.ByCluster(estimator=STATIC).fit(X, Z)
    for level in "AB":
        precision = model.models_[level].precision_
        at = model.partial_correlations(Z[Z.site == level].iloc[:1])[0]
        np.testing.assert_allclose(at, partial_from_precision(precision), atol=1e-6)
        at = model.predict_precision(Z[Z.site == level].iloc[:1])[0]
        np.testing.assert_allclose(at, precision, rtol=1e-5, atol=1e-6)
    assert model.field_.at(Z).scales.std(axis=0)[1] > 0.1


def test_clusters_only_without_other_covariates():
    X, Z = small_data(200)
    plain = gf.ByCluster(estimator=STATIC).fit(X, Z)
    alone = gf.ByCluster(estimator=STATIC).fit(X, Z[["site"]])
    np.testing.assert_array_equal(alone.predict_coef(Z[["site"]]), plain.predict_coef(Z))
    assert gf.GraphicalLasso(penalty=0.1).fit(X, Z[[]]).predict_coef(Z[[]]).shape == (200, 6, 6)
    with pytest.raises(gf.DataError, match="RegGMM needs a covariate besides 'site'"):
        gf.ByCluster(estimator=gf.RegGMM()).fit(X, Z[["site"]])


def test_whole_numbers_may_be_clusters():
    X, Z = small_data(200)
    codes = Z.site.map({"A": 0, "B": 1, "C": 2})
    model = gf.ByCluster(estimator=STATIC, by="site").fit(X, Z.assign(site=codes))
    assert model.clusters_ == ["0", "1", "2"]
    named = gf.ByCluster(estimator=STATIC, by="site").fit(X, Z)
    for again in (codes, codes.astype(float), codes.astype(str)):
        np.testing.assert_array_equal(model.predict_coef(Z.assign(site=again)), named.predict_coef(Z))


def test_clusters_within_clusters(tmp_path):
    X, Z = small_data(300)
    Z["sex"] = np.where(np.arange(300) % 2, "F", "M")
    inner = gf.ByCluster(estimator=gf.RegGMM(), by="sex")
    model = gf.ByCluster(estimator=inner, by="site").fit(X, Z)
    rows = ((Z.site == "B") & (Z.sex == "F")).to_numpy()
    alone = gf.RegGMM().fit(X[rows], Z.loc[rows, ["age"]])
    np.testing.assert_array_equal(model.predict_coef(Z[rows]), alone.predict_coef(Z.loc[rows, ["age"]]))
    again = gf.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_precision(Z), model.predict_precision(Z))
    assert again.estimator.estimator.get_params() == gf.RegGMM().get_params()
    assert again.models_["A"].models_["F"].covariate_names_ == ["age"]


def test_groups_reach_the_inner_folds():
    X, Z = small_data(300)
    groups = np.arange(300) // 4
    inner = gf.GraphicalLasso(n_penalties=3, n_folds=3)
    model = gf.ByCluster(estimator=inner, by="site").fit(X, Z, groups=groups)
    rows = (Z.site == "A").to_numpy()
    alone = gf.GraphicalLasso(n_penalties=3, n_folds=3).fit(X[rows], Z[rows][["age"]], groups=groups[rows])
    assert model.models_["A"].penalty_ == alone.penalty_


def test_parameters_of_the_inner_estimator_can_be_searched():
    X, Z = two_regimes()
    site = np.where(Z[:, :1] <= 0.3, "low", "high")
    grid = {"estimator__penalty": [0.01, 0.9]}
    search = GridSearchCV(gf.ByCluster(estimator=gf.GraphicalLasso()), grid, cv=2).fit(X, site)
    assert search.best_params_ == {"estimator__penalty": 0.01}


@pytest.mark.parametrize(
    ("params", "change", "message"),
    [
        ({"by": "sit"}, lambda Z: Z, "'sit' is no covariate. Known: 'age', 'site'. Did you mean 'site'"),
        ({"by": "age"}, lambda Z: Z, "'age' is a number with 120 different values"),
        ({"by": "site"}, lambda Z: Z.assign(site="A"), "'site' has one level only \\('A'\\)"),
        ({}, lambda Z: Z[["age"]], "none is categorical"),
        ({}, lambda Z: Z.assign(sex=["F", "M"] * 60), "these are categorical: 'site', 'sex'"),
        ({}, lambda Z: Z.assign(site=["A"] * 117 + ["B"] * 3), "'B' has 3.*merge"),
        ({"estimator": gf.GraphicalLasso}, lambda Z: Z, "an object, such as"),
        (
            {"estimator": gf.RegGMM()},
            lambda Z: Z.assign(age=np.where(Z.site == "A", 1.0, Z.age)),
            "'A' .* rows",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::graphfield.DataWarning")
def test_clusters_that_make_no_sense(data, params, change, message):
    with pytest.raises((gf.DataError, gf.ParameterError), match=message):
        gf.ByCluster(**params).fit(data[0], change(data[1]))


def test_an_unknown_cluster_is_named(data):
    model = gf.ByCluster(estimator=STATIC).fit(*data)
    with pytest.raises(gf.DataError, match=r"'site' has 'D', which .*'A', 'B', 'C'"):
        model.predict_coef(data[1].assign(site="D"))


# -- TreeCGM --------------------------------------------------------------------------------------


def test_the_tree_recovers_a_split_and_both_graphs():
    X, Z = two_regimes()
    model = gf.TreeCGM(random_state=0).fit(X, Z)
    assert model.n_leaves_ == len(model.rules_) == len(model.leaf_penalties_) == 2
    assert all("z1" in rule and "z2" not in rule for rule in model.rules_)
    points = np.array([[0.1, 0.5], [0.9, 0.5]])
    low, high = model.edge_weights(points)
    assert low[0, 1] > 0.6 > 0.1 > high[0, 1]
    assert high[0, 2] > 0.6 > 0.1 > low[0, 2]
    assert model.leaf(points)[0] != model.leaf(points)[1]
    boundary = model.tree_.threshold[0] * model.encoder_.numeric[0].scale + model.encoder_.numeric[0].mean
    assert boundary == pytest.approx(0.3, abs=0.02)
    best = model.held_out_.set_index("leaves").log_likelihood.idxmax()
    assert best >= 2


@pytest.mark.slow
def test_covariates_that_are_noise_give_one_leaf():
    """Measured 44 of 45 over several sizes; the likelihood of held-out rows may err now and then."""
    models = []
    for seed in range(5):
        X, _ = two_regimes(400, seed=seed)
        Z = np.random.default_rng(seed + 10).uniform(size=(400, 3))
        models.append(gf.TreeCGM(random_state=seed).fit(X, Z))
    assert sum(model.rules_ == ["all rows"] for model in models) >= 4
    X, _ = two_regimes(400, seed=0)
    static = gf.GraphicalLasso().fit(X, Z)
    np.testing.assert_allclose(models[0].predict_coef(Z[:1]), static.predict_coef(Z[:1]), atol=1e-6)


def test_leaves_with_one_graph_are_merged():
    """The graph of the middle differs, both ends are alike: three intervals, two graphs."""
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1, 1, (1500, 1))
    X = rng.normal(size=(1500, 20))
    middle = np.abs(Z[:, 0]) < 0.4
    X[:, 1] += np.where(middle, 1.5, -1.5) * X[:, 0]
    model = gf.TreeCGM(random_state=0).fit(X, Z)
    assert len(model.tree_.leaves) >= 3
    assert model.n_leaves_ == 2
    left, centre, right = model.leaf(np.array([[-0.9], [0.0], [0.9]]))
    assert left == right != centre
    assert sum(" or " in rule for rule in model.rules_) == 1


def test_the_loaded_tree_equals_scikit_learns(tmp_path):
    """Exactly, also at the thresholds themselves and at their neighbours in single precision."""
    X, Z = two_regimes(600)
    Z[:, 1] = np.round(Z[:, 1], 1)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = grow_covariance_tree(standard, Z, 12, 20, seed=3)
    x = np.clip(standard, -2, 2)
    j, k = np.triu_indices(5)
    theirs = DecisionTreeRegressor(max_leaf_nodes=12, min_samples_leaf=20, random_state=3)
    theirs.fit(Z, x[:, j] * x[:, k])
    split = np.flatnonzero(ours.left >= 0)
    near = np.tile(ours.threshold[split][:, None], (1, 2))
    points = np.vstack([Z, near, np.nextafter(near.astype(np.float32), 9), np.nextafter(near, 9)])
    np.testing.assert_array_equal(ours.leaves[ours.apply(points)], theirs.apply(points))
    smaller = DecisionTreeRegressor(max_leaf_nodes=5, min_samples_leaf=20, random_state=3)
    smaller.fit(Z, x[:, j] * x[:, k])
    first = ours.first(5)
    np.testing.assert_array_equal(first.leaves[first.apply(points)], smaller.apply(points))

    model = gf.TreeCGM(random_state=0).fit(X, Z)
    again = gf.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.leaf(Z), model.leaf(Z))
    np.testing.assert_array_equal(again.tree_.apply(points), model.tree_.apply(points))
    assert again.rules_ == model.rules_
    pd.testing.assert_frame_equal(again.held_out_, model.held_out_)
    header = json.loads((tmp_path / "model" / "model.json").read_text())
    assert [part["kind"] for part in header["field"]["own"]["parts"]] == ["static"] * model.n_leaves_


def test_scaling_nodes_and_covariates_changes_nothing():
    X, Z = two_regimes()
    plain = gf.TreeCGM(random_state=0).fit(X, Z)
    moved = gf.TreeCGM(random_state=0).fit(1000 * X + 7, 1e-3 * Z + 5)
    np.testing.assert_allclose(moved.edge_weights(1e-3 * Z + 5), plain.edge_weights(Z), atol=1e-4)


def test_of_two_levels_the_other_one_is_named():
    X, Z = two_regimes()
    gender = pd.DataFrame({"gender": np.where(Z[:, 0] <= 0.3, "female", "male")})
    model = gf.TreeCGM(random_state=0).fit(X, gender)
    assert sorted(model.rules_) == ["gender is 'female'", "gender is 'male'"]


def test_categories_in_the_rules():
    """A and C are alike; chance may still part them in a table or two."""
    found = 0
    for seed in range(5):
        X, Z = two_regimes(seed=seed)
        site = np.where(Z[:, 0] <= 0.3, "B", np.where(Z[:, 1] < 0.5, "A", "C"))
        model = gf.TreeCGM(random_state=0, unknown="average").fit(X, pd.DataFrame({"site": site}))
        assert "site is 'B'" in model.rules_
        if sorted(model.rules_) == ["site is 'B'", "site is not 'B'"]:
            found += 1
            assert model.rules_[model.leaf(pd.DataFrame({"site": ["new"]}))[0]] == "site is not 'B'"
    assert found >= 3


def test_one_leaf_on_request_and_rows_per_leaf():
    X, Z = two_regimes()
    assert gf.TreeCGM(max_leaves=1, random_state=0).fit(X, Z).n_leaves_ == 1
    model = gf.TreeCGM(min_leaf_rows=350, random_state=0).fit(X, Z)
    assert model.n_leaves_ == 1 or np.bincount(model.leaf(Z)).min() >= 350


@pytest.mark.parametrize("n", [300, 700])  # the penalty of a leaf is chosen by folds, or on held-out rows
@pytest.mark.parametrize(("move", "center"), [(0.0, "constant"), (2.0, "covariates")])
def test_one_leaf_is_a_graphical_lasso(n, move, center):
    """With the same penalty; means that move with z are taken out by both, or by none."""
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1, 1, (n, 2))
    X = rng.normal(size=(n, 5)) @ (np.eye(5) + 0.5 * np.eye(5, k=1)) + move * Z[:, :1]
    X *= np.geomspace(0.1, 50, 5)
    tree = gf.TreeCGM(max_leaves=1, random_state=0).fit(X, Z)
    penalty = "cv" if n == 300 else float(tree.leaf_penalties_[0])
    alone = gf.GraphicalLasso(penalty=penalty, center=center).fit(X, Z)
    assert tree.leaf_penalties_ == pytest.approx([alone.penalty_])
    at = Z[:3]
    for method in ("predict_coef", "partial_correlations", "predict_precision", "predict_scale"):
        np.testing.assert_allclose(
            getattr(tree, method)(at), getattr(alone, method)(at), rtol=1e-6, atol=1e-9
        )
    np.testing.assert_allclose(tree.predict(X, Z), alone.predict(X, Z), rtol=1e-6, atol=1e-9)
    assert np.abs(alone.partial_correlations(at)).max() > 0.3


@pytest.mark.slow
def test_rows_of_one_group_are_held_out_together():
    X, Z = two_regimes(200)
    doubled = np.repeat(X, 2, axis=0), np.repeat(Z, 2, axis=0)
    model = gf.TreeCGM(random_state=0).fit(*doubled, groups=np.repeat(np.arange(200), 2))
    assert model.n_leaves_ >= 1
    few = gf.TreeCGM(random_state=0).fit(X, Z, groups=np.arange(200) // 70)
    assert np.isfinite(few.edge_weights(Z)).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_leaves": 0}, "max_leaves must be a whole number"),
        ({"min_leaf_rows": 3}, "min_leaf_rows"),
        ({"validation_fraction": 0}, "validation_fraction"),
        ({"unknown": "guess"}, "unknown must be one of"),
        ({"random_state": "seed"}, "random_state"),
    ],
)
def test_tree_parameters(data, params, message):
    with pytest.raises(gf.ParameterError, match=message):
        gf.TreeCGM(**params).fit(*data)


def test_a_node_that_never_varies_in_a_part():
    """Constant where z is low: no leaf may consist of such rows only."""
    X, Z = two_regimes()
    X[Z[:, 0] <= 0.3, 3] = 1.0
    model = gf.TreeCGM(random_state=0).fit(X, Z)
    assert np.isfinite(model.edge_weights(Z)).all()


@pytest.mark.parametrize("first_cut", [28.5, 61.5])
def test_leaves_that_share_a_graph_are_told_as_one_interval(first_cut):
    """Not as "age <= 28.5 or 28.5 < age <= 61.5", whichever split the tree made first."""
    encoder = CovariateEncoder().fit(as_frame(pd.DataFrame({"age": [20.0, 80.0], "sex": ["F", "M"]}), "Z"))
    age = encoder.numeric[0]
    low, high = ((cut - age.mean) / age.scale for cut in (28.5, 61.5))
    if first_cut == 61.5:  # node 1 is split again, else node 2
        left, right, cuts, apart = [1, 3, -1, -1, -1], [2, 4, -1, -1, -1], [high, low, 0, 0, 0], [1, 0, 0]
    else:
        left, right, cuts, apart = [1, -1, 3, -1, -1], [2, -1, 4, -1, -1], [low, 0, high, 0, 0], [0, 0, 1]
    tree = Tree(np.array(left), np.array(right), np.zeros(5, dtype=np.int64), np.array(cuts, dtype=float))
    assert _rules(tree, np.array(apart), encoder) == ["age <= 61.5", "age > 61.5"]
    assert _rules(tree, np.zeros(3, dtype=np.intp), encoder) == ["all rows"]


@pytest.mark.parametrize("seed", range(2))
def test_a_mean_that_moves_is_no_split(seed, tmp_path):
    """One graph, whose nodes' means move with a number and a level; it comes back from a file."""
    rng = np.random.default_rng(seed)
    Z = pd.DataFrame({"age": rng.uniform(-1, 1, 400), "arm": rng.choice(["case", "control"], 400)})
    X = rng.normal(size=(400, 4)) @ (np.eye(4) + 0.5 * np.eye(4, k=1))
    X += np.outer(Z["age"], [2.0, -1.5, 1.0, 0.0]) + np.outer(Z["arm"] == "case", [0.0, 1.0, 0.0, 2.0])
    model = gf.TreeCGM(max_leaves=4, random_state=seed).fit(X, Z)
    assert model.n_leaves_ == 1
    found = model.partial_correlations(Z[:1])[0]
    own = np.linalg.inv(np.eye(4) + 0.5 * np.eye(4, k=1))
    precision = own @ own.T
    scale = np.sqrt(np.diag(precision))
    truth = -precision / np.outer(scale, scale)
    off = ~np.eye(4, dtype=bool)
    assert np.abs(found - truth)[off].max() < 0.2
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(gf.load(tmp_path / "model").predict(X, Z), model.predict(X, Z))
