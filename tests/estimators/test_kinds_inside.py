"""Nodes that are no plain numbers in estimators that fit others: trees, clusters, averages, comparisons."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

import graphfield as gf
from conftest import change_plans
from graphfield.data.blocks import Blocks
from graphfield.data.frames import KIND_MODELS, as_frame
from graphfield.data.node_types import read_node_types
from graphfield.estimators.auto_candidates import Plan
from graphfield.estimators.registry import ESTIMATORS, takes_node_types
from graphfield.fields.average import average
from solver_cases import four_kinds

TYPES = {"events": "count"}


def turning_table(n: int = 1_200, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The edge number-flag changes its sign at z = 0; number-group and number-events stay."""
    rng = np.random.default_rng(seed)
    z, number = rng.uniform(-1, 1, n), rng.normal(size=n)
    X = pd.DataFrame(four_kinds(rng, number, 2.5 * np.sign(z), 1.5))
    return X, pd.DataFrame({"z": z, "side": np.where(z > 0, "right", "left")})


X, Z = turning_table()
AT = pd.DataFrame({"z": [-0.8, 0.8], "side": ["left", "right"]})
LINEAR = gf.RegGMM(node_types=TYPES)
FITS = {
    "tree": lambda: gf.TreeCGM(max_leaves=2, random_state=0, node_types=TYPES).fit(X, Z[["z"]]),
    "clusters": lambda: gf.ByCluster(
        estimator=gf.NodewiseLasso(penalty=0.05, node_types=TYPES), by="side"
    ).fit(X, Z[["side"]]),
    "average": lambda: gf.Ensemble(estimator=LINEAR, n_members=2, resample=True, random_state=0).fit(X, Z),
    "average of clusters": lambda: gf.Ensemble(
        estimator=gf.ByCluster(estimator=gf.NodewiseLasso(penalty=0.05, node_types=TYPES), by="side"),
        n_members=2,
        resample=True,
        random_state=0,
    ).fit(X, Z[["side"]]),
}


@pytest.fixture(scope="module", params=FITS)
def fitted(request):
    model = FITS[request.param]()
    return model, Z[model.covariate_names_], AT[model.covariate_names_]


def test_edges_turn_and_stay(fitted):
    model, _, at = fitted
    signed = model.partial_correlations(at)
    assert signed[0, 0, 1] < -0.3 < 0.3 < signed[1, 0, 1]
    assert (model.edge_weights(at)[:, 0, 2] > 0.3).all()
    assert (signed[:, 0, 3] > 0.2).all()
    graph = model.predict_graph(at)
    assert graph[:, 0, 1:].all()
    assert not graph[:, 1:, 1:].any()
    assert (np.abs(signed) <= 1).all()
    np.testing.assert_array_equal(signed, signed.transpose(0, 2, 1))


def test_predictions_and_effects_fit_together(fitted):
    model, own, at = fitted
    values, table = model.predict(X, own), model.predict_proba(X, own, "group")
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    np.testing.assert_array_equal(values[:, 2], table.to_numpy().argmax(axis=1))
    np.testing.assert_allclose(values[:, 1], model.predict_proba(X, own, "flag")["True"])
    assert 0.1 < model.score(X, own) < 0.6
    more = X.assign(number=X.number + 1)
    step = logit(model.predict(more, own)[:, 1]) - logit(values[:, 1])
    effect = model.predict_effect(own, "number", "flag").effect
    np.testing.assert_allclose(step, effect, rtol=1e-3, atol=1e-5)
    by_level = model.predict_effect(at, "number", "group").set_index(["sample", "target_level"]).effect
    assert by_level[0, "a"] > by_level[0, "b"] > by_level[0, "c"]
    with pytest.raises(gf.DataError, match=r"'group' has more than two levels"):
        model.predict_coef(own)


def test_saved_models_say_the_same(fitted, tmp_path):
    model, own, _ = fitted
    again = gf.load(model.save(tmp_path / "model"))
    assert again.node_kinds_ == model.node_kinds_
    np.testing.assert_array_equal(again.edge_weights(own), model.edge_weights(own))
    np.testing.assert_array_equal(again.predict(X, own), model.predict(X, own))
    pd.testing.assert_frame_equal(again.edges(own), model.edges(own))


def test_a_cluster_is_a_fit_of_its_own():
    model = FITS["clusters"]()
    left = (Z.side == "left").to_numpy()
    alone = gf.NodewiseLasso(penalty=0.05, node_types=TYPES).fit(X[left], Z[["z"]][left])
    np.testing.assert_array_equal(
        model.predict(X[left], Z[["side"]][left]), alone.predict(X[left], Z[["z"]][left])
    )
    np.testing.assert_array_equal(
        model.partial_correlations(AT[["side"]])[0], alone.field_.at([[0]]).partial_correlations[0]
    )


def test_averages_are_of_log_odds_and_of_signed_strengths():
    model = FITS["average"]()
    members = [one.field_ for one in model.members_]
    odds = [logit(one.predict_proba(X, Z, "flag")["True"]) for one in model.members_]
    np.testing.assert_allclose(logit(model.predict_proba(X, Z, "flag")["True"]), np.mean(odds, axis=0))
    signed = [one.at(AT).partial_correlations[:, 0, 1] for one in members]
    np.testing.assert_allclose(model.partial_correlations(AT)[:, 0, 1], np.mean(signed, axis=0), atol=1e-6)
    same = average(members[0].common, [members[0]] * 2, [1, 1])
    np.testing.assert_allclose(
        same.at(AT).partial_correlations, members[0].at(AT).partial_correlations, atol=1e-6
    )


def test_a_cluster_may_lack_a_level_but_not_all_but_one():
    lacking = X.assign(group=np.where((Z.side == "left") & (X.group == "c"), "a", X.group))
    model = gf.ByCluster(estimator=LINEAR, by="side").fit(lacking, Z)
    table = model.predict_proba(lacking, Z, "group")[Z.side == "left"]
    assert list(table.columns) == ["a", "b", "c"]
    assert table["c"].max() < 0.05
    assert np.isfinite(model.predict_proba(X, Z, "group")).all(axis=None)  # also given a level it lacks
    assert np.isfinite(model.edge_weights(Z)).all()
    units = model.models_["left"].field_.blocks.root
    assert np.abs(units).max() < 2 * np.sqrt(len(X))  # as of a level that is there in half a row
    still = X.assign(flag=(Z.side == "right") & X.flag)
    with pytest.raises(gf.DataError, match=r"In the cluster side = 'left'.*'flag' has the same value"):
        gf.ByCluster(estimator=LINEAR, by="side").fit(still, Z)


def test_no_leaf_has_a_node_with_one_value():
    still = X.assign(flag=(Z.side == "right") & X.flag)
    model = gf.TreeCGM(max_leaves=2, random_state=0, node_types=TYPES).fit(still, Z[["z"]])
    assert np.isfinite(model.predict(still, Z[["z"]])).all()
    leaf = model.leaf(Z[["z"]])
    assert all(still.flag[leaf == k].nunique() == 2 for k in np.unique(leaf))


def test_deviance_residuals_are_those_of_numbers_and_add_up():
    types = read_node_types(as_frame(X, "X"), TYPES)
    codes = types.codes(types.with_categories(as_frame(X, "X")))
    blocks = Blocks.of_links(types)
    links = np.random.default_rng(0).normal(size=(len(X), blocks.n_columns))
    left = blocks.deviance_residuals(links, codes)
    np.testing.assert_allclose(left[:, 0], X.number - links[:, 0])
    np.testing.assert_allclose(np.square(left), 2 * blocks.losses(links, blocks.columns(codes)), atol=1e-12)
    assert (np.sign(left[:, 1]) == np.where(X.flag, 1, -1)).all()


def test_types_of_an_estimator_inside_are_checked_first():
    wrong = gf.ByCluster(estimator=gf.RegGMM(node_types={"flag": "binari"}), by="side")
    with pytest.raises(gf.ParameterError, match=r"'flag' must be one of.*'binary'"):
        wrong.fit(X, Z)


NUMBERS_ALONE = [name for name, entry in ESTIMATORS.items() if entry.is_there and not takes_node_types(name)]


def test_estimators_that_are_said_to_take_levels_do():
    assert all(takes_node_types(name) for name in KIND_MODELS.replace(" or ", ", ").split(", "))
    assert {"GraphicalLasso", "KernelCGM", "ArchetypeCGM", "ScoreCGM"} <= set(NUMBERS_ALONE)


@pytest.mark.parametrize("name", NUMBERS_ALONE)
def test_estimators_that_take_numbers_alone_say_who_takes_levels(name):
    if name == "Ensemble":
        pytest.skip("takes what its estimator takes")
    with pytest.raises(gf.DataError, match=r"'group' must hold numbers.*TreeCGM, AutoCGM"):
        getattr(gf, name)().fit(X[["number", "group"]], Z)


@pytest.fixture(scope="module")
def compared():
    few = X[:500], Z[:500][["z"]]
    return gf.AutoCGM(candidates=("static", "linear", "tree"), random_state=0, node_types=TYPES).fit(*few)


def test_candidates_that_take_numbers_alone_are_left_out_by_name():
    few = X[["number", "flag"]][:80], Z[["z"]][:80]
    model = gf.AutoCGM(candidates=("static", "archetype"), random_state=0).fit(*few)
    note = model.held_out_.set_index("model").note["archetype"]
    assert note == "ArchetypeCGM takes numbers alone as nodes, and 'flag' is binary."
    assert model.summary_.endswith("Left out, see held_out_: archetype.")
    assert type(model.members_[0]).__name__ == "NodewiseLasso"


def test_the_kernel_is_no_candidate_of_levels(monkeypatch):
    plans = dict.fromkeys(("dnncgm", "archetype", "tree"), lambda *_: Plan(gf.RegGMM()))
    change_plans(monkeypatch, **plans)
    few = X[["number", "flag"]][:80], Z[["z"]][:80]
    assert "kernel" not in gf.AutoCGM(combine=False, random_state=0).fit(*few).held_out_.model.tolist()


@pytest.mark.slow
def test_candidates_are_compared_by_deviance(compared):
    table = compared.held_out_.set_index("model")
    assert table.error["tree"] < 0.97
    assert set(compared.chosen_) <= {"linear", "tree"}
    assert compared.depends_on_covariates_
    assert "its deviance is" in compared.summary_
    signed = compared.partial_correlations(AT[["z"]])[:, 0, 1]
    assert signed[0] < -0.2 < 0.2 < signed[1]


@pytest.mark.slow
def test_a_comparison_of_kinds_is_saved(compared, tmp_path):
    again = gf.load(compared.save(tmp_path / "model"))
    assert again.node_types == TYPES
    np.testing.assert_array_equal(again.predict(X, Z[["z"]]), compared.predict(X, Z[["z"]]))
    pd.testing.assert_frame_equal(again.held_out_, compared.held_out_)
