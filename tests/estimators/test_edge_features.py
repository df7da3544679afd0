"""Numbers that enter the regressions of others by curves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.data.edge_features import functions_of, n_functions
from graphfield.estimators.held_out import HeldOut
from graphfield.report import write_report

SMALL = {"rank": 2, "max_steps": 20, "hidden_size": 8, "device": "cpu", "random_state": 0}


def bent_table(n: int = 500) -> tuple[pd.DataFrame, pd.DataFrame]:
    """b is the square of a, c follows a as a line; e is the square of d where z > 0."""
    rng = np.random.default_rng(0)
    z, a, d = rng.uniform(-1, 1, n), rng.normal(size=n), rng.normal(size=n)
    noise = rng.normal(size=(3, n))
    X = pd.DataFrame({"a": 5 + 2 * a, "b": a**2 - 1 + 0.7 * noise[0], "c": 0.8 * a + noise[1], "d": d})
    X["e"] = np.where(z > 0, d**2 - 1, 0.0) + noise[2]
    return X, pd.DataFrame({"z": z})


@pytest.fixture(scope="module", params=["hermite", pytest.param("spline", marks=pytest.mark.slow)])
def bent(request):
    X, Z = bent_table()
    return gf.DNNCGM(features=request.param, **SMALL).fit(X, Z), X, Z


def test_functions_are_none_of_each_other_and_stay_bounded():
    u = np.linspace(-3, 3, 200)
    for features in ("hermite", "spline"):
        design = np.column_stack([np.ones_like(u), u, functions_of(features, u)])
        assert design.shape[1] == 1 + n_functions(features)
        assert np.linalg.matrix_rank(design) == design.shape[1]
    np.testing.assert_array_equal(functions_of("hermite", np.array([50.0])), functions_of("hermite", u[-1:]))
    far = functions_of("spline", np.array([3.0, 4.0, 5.0]))  # a line beyond the last knot
    np.testing.assert_allclose(far[2] - far[1], far[1] - far[0])


def test_edges_without_a_linear_trace_are_found(bent):
    model, X, _ = bent
    at = pd.DataFrame({"z": [-0.8, 0.8]})
    strength = model.edge_weights(at)
    low, high = (pd.DataFrame(own, X.columns, X.columns) for own in strength)
    assert min(low.loc["a", "b"], high.loc["a", "b"]) > 0.4
    assert low.loc["a", "c"] > 0.2
    assert max(low.loc["b", "d"], high.loc["c", "e"]) < 0.1
    graph = pd.DataFrame(model.predict_graph(at).any(axis=0), X.columns, X.columns)
    assert graph.loc["a", ["b", "c"]].all()
    assert not graph.loc["c", ["b", "d", "e"]].any()
    assert (strength <= 1).all()


def test_a_line_finds_no_square():
    X, Z = bent_table()
    weights = gf.RegGMM().fit(X, Z).edge_weights(Z[:1])[0]
    assert weights[0, 1] < 0.15


def test_predictions_are_those_of_the_number(bent):
    model, X, Z = bent
    fitted = model.predict(X, Z)
    left = np.square(X.b - fitted[:, 1]).mean() / X.b.var()
    assert left < 0.45
    assert model.score(X, Z) > gf.RegGMM().fit(X, Z).score(X, Z) + 0.1
    assert set(model.node_kinds_.values()) == {"gaussian"}


def test_an_effect_is_a_curve_and_no_coefficient(bent):
    model, X, Z = bent
    curve = model.predict_effect(Z[:1], "a", "b")
    at = curve.source_level.astype(float).to_numpy()
    assert at[0] == pytest.approx(X.a.mean() - 2 * X.a.std(ddof=0), rel=1e-4)
    assert curve.effect.iloc[[0, -1]].min() > 1.5
    assert curve.effect.iloc[4] < -0.5
    two = X[:2].assign(a=at[[0, 4]])
    step = np.diff(model.predict(two, Z.iloc[[0, 0]])[:, 1])
    assert step[0] == pytest.approx(curve.effect.iloc[4] - curve.effect.iloc[0], rel=0.02)
    with pytest.raises(gf.DataError, match=r"'a' enters by a curve.*predict_effect"):
        model.predict_coef(Z)
    with pytest.raises(gf.DataError, match="enter by curves"):
        model.predict_precision(Z)


def test_saved_curves_say_the_same(bent, tmp_path):
    model, X, Z = bent
    again = gf.load(model.save(tmp_path / "model"))
    assert again.features == model.features
    np.testing.assert_array_equal(again.edge_weights(Z), model.edge_weights(Z))
    np.testing.assert_array_equal(again.predict(X, Z), model.predict(X, Z))
    pd.testing.assert_frame_equal(
        again.predict_effect(Z[:2], "b", "a"), model.predict_effect(Z[:2], "b", "a")
    )


def test_what_curves_cannot_do():
    X, Z = bent_table(60)
    small = SMALL | {"max_steps": 2}
    with pytest.raises(gf.ParameterError, match="features"):
        gf.DNNCGM(features="cubic").fit(X, Z)
    with pytest.raises(gf.ParameterError, match="enter by curves"):
        gf.DNNCGM(features="spline", rank=None).fit(X, Z)
    with pytest.raises(gf.ParameterError, match="center must be"):
        gf.DNNCGM(features="spline", center="none", **small).fit(X, Z)
    with pytest.raises(gf.ParameterError, match="one by one"):
        gf.fit_together([gf.DNNCGM(features="spline", **small)], X, Z)
    parts = gf.ByCluster(estimator=gf.DNNCGM(features="spline", **small))
    clusters = Z.assign(site=np.where(np.arange(60) % 2, "u", "v"))
    with pytest.raises(gf.ParameterError, match="no average graph"):  # functions of each are its own
        gf.gain_over_one_graph(parts, X, clusters, n_folds=1)
    with pytest.raises(gf.ParameterError, match="marginals must be"):
        gf.Ensemble(estimator=gf.DNNCGM(features="spline", marginals="normal", **small)).fit(X, Z)


@pytest.mark.slow
def test_a_number_of_two_values_and_wild_values_have_finite_answers():
    X, Z = bent_table(100)
    X["d"] = (X.d > 0).astype(float)  # whose square says nothing more
    X.loc[3, "c"] = 1e6
    model = gf.DNNCGM(features="hermite", **SMALL | {"validation_fraction": 0.0, "max_steps": 2}).fit(X, Z)
    assert np.isfinite(model.edge_weights(Z)).all()
    assert np.isfinite(model.predict(X, Z)).all()


@pytest.mark.slow
def test_curves_of_numbers_stand_beside_levels():
    X, Z = bent_table(400)
    rng = np.random.default_rng(1)
    bent_odds = np.square(X.d) - 1
    X["flag"] = rng.random(400) < 1 / (1 + np.exp(-2 * bent_odds))
    model = gf.DNNCGM(features="hermite", **SMALL).fit(X[["a", "c", "d", "flag"]], Z)
    weights = model.edge_weights(Z[:1])[0]
    assert weights[2, 3] > 0.25
    assert max(weights[0, 3], weights[1, 3]) < 0.15


def test_curves_are_computed_where_the_model_says(bent):
    model, _, _ = bent
    assert model.field_.columns.device == "cpu"
    try:
        assert model.set_params(device="auto").field_.columns.device == "auto"
    finally:
        model.set_params(device="cpu")


@pytest.fixture(scope="module")
def curves():
    """A curve from a to b, and little time: an estimator, its table, and two clusters of rows."""
    X, Z = bent_table(240)
    Z["site"] = np.where(np.arange(240) % 2, "u", "v")
    return gf.DNNCGM(features="hermite", **SMALL | {"max_steps": 5}), X[["a", "b", "c"]], Z


@pytest.mark.parametrize("n_folds", [1, 2])
def test_held_out_rows_are_predicted_by_curves(curves, n_folds):
    prototype, X, Z = curves
    found = gf.gain_over_one_graph(prototype, X, Z[["z"]], n_folds=n_folds)
    assert found.over_static.value > 0.5  # one graph of lines
    assert abs(found.over_average.value) < 0.2  # its own, of curves, hardly moves
    assert found.explained.value > 0.3
    assert found.nodes == "raw"


def test_held_out_rows_are_left_what_the_average_of_curves_leaves(bent):
    model, X, Z = bent
    field, ends = model.field_, pd.DataFrame({"z": [-0.8, 0.8]})

    def everywhere(z):
        at = field.schema.match_covariates(pd.DataFrame({"z": np.full(len(X), z)}))
        return HeldOut(X.to_numpy(), at, np.arange(len(X)))

    low, high = (everywhere(z) for z in ends.z)
    left = [rows.residuals(field) for rows in (low, high)]
    assert np.abs(left[0] - left[1]).max() > 1
    np.testing.assert_allclose(left[0], X - model.predict(X, low.Z.values), atol=1e-9)
    average = low.residuals_of_average(field, field.schema.match_covariates(ends))
    np.testing.assert_allclose(average, sum(left) / 2, atol=1e-9)  # means do not move
    np.testing.assert_allclose(low.residuals_alone(field), X - field.offsets_at(field.rows(Z)), atol=1e-9)


@pytest.fixture(scope="module")
def levels_of_a(curves):
    prototype, X, Z = curves
    return prototype, X[["a", "b"]].assign(kind=pd.Categorical(np.digitize(X.a, [3, 6]))), Z[["z"]]


def test_curves_beside_levels_are_averaged(levels_of_a):
    prototype, X, Z = levels_of_a
    model = gf.Ensemble(estimator=prototype, n_members=2, random_state=0).fit(X, Z)
    for source, target, lines in (("a", "b", 9), ("a", "kind", 27), ("kind", "a", 3)):
        table, *members = (one.predict_effect(Z[:1], source, target) for one in (model, *model.members_))
        assert len(table) == lines
        np.testing.assert_allclose(table.effect, sum(one.effect for one in members) / 2, atol=1e-6)


@pytest.mark.slow
def test_held_out_rows_are_predicted_by_curves_beside_levels(levels_of_a):
    found = gf.gain_over_one_graph(*levels_of_a, n_folds=1)
    assert found.error == "deviance"
    assert found.over_static.value > 0.2


def test_methods_are_compared_with_curves(curves):
    prototype, X, Z = curves
    parts = gf.ByCluster(estimator=prototype)
    found = gf.compare_methods(X, Z, {"curve": prototype, "parts": parts}, n_folds=1, marginals="raw")
    assert found.best == "curve"
    note = found.table.set_index("method").note
    assert not note["curve"]
    assert "no average graph" in note["parts"]


def test_each_cluster_has_its_own_curves(curves, tmp_path):
    prototype, X, Z = curves
    model = gf.ByCluster(estimator=prototype).fit(X, Z)
    for site, alone in model.models_.items():
        own = Z[Z.site == site][:2]
        pd.testing.assert_frame_equal(
            model.predict_effect(own, "a", "b"), alone.predict_effect(own[["z"]], "a", "b")
        )
        np.testing.assert_allclose(model.edge_weights(own), alone.edge_weights(own[["z"]]), atol=1e-6)
    assert len(model.predict_effect(Z[:2], "a", "b")) == 18
    check_curves(model, X, Z, tmp_path)


def test_an_ensemble_averages_curves(curves, tmp_path):
    prototype, X, Z = curves
    Z = Z[["z"]]
    model = gf.Ensemble(estimator=prototype, n_members=2, random_state=0).fit(X, Z)
    members = [one.predict_effect(Z[:2], "a", "b") for one in model.members_]
    assert not members[0].equals(members[1])
    found = model.predict_effect(Z[:2], "a", "b")
    assert found.source_level.tolist() == members[0].source_level.tolist()  # the same rows
    np.testing.assert_allclose(found.effect, sum(one.effect for one in members) / 2, atol=1e-6)
    average = sum(one.predict(X, Z) for one in model.members_) / 2
    np.testing.assert_allclose(model.predict(X, Z), average, atol=1e-6)
    assert model.edge_weights(Z[:1])[0, 0, 1] > 0.3
    check_curves(model, X, Z, tmp_path)


def test_members_with_rows_of_their_own_are_told_at_the_same_values(curves):
    prototype, X, Z = curves
    Z = Z[["z"]]
    model = gf.Ensemble(estimator=prototype, n_members=2, resample=True, random_state=0).fit(X, Z)
    values = [one.predict_effect(Z[:1], "a", "b").source_level.astype(float) for one in model.members_]
    found = model.predict_effect(Z[:1], "a", "b").source_level.astype(float)
    assert not np.allclose(*values)
    np.testing.assert_allclose(found, sum(values) / 2, rtol=1e-5)


def check_curves(model, X, Z, folder):
    """A model that is made of others refuses what these refuse, and its file says the same."""
    with pytest.raises(gf.DataError, match="enters by a curve"):
        model.predict_coef(Z)
    with pytest.raises(gf.DataError, match="enter by curves"):
        model.predict_precision(Z)
    again = gf.load(model.save(folder / "model"))
    np.testing.assert_array_equal(again.edge_weights(Z), model.edge_weights(Z))
    np.testing.assert_array_equal(again.predict(X, Z), model.predict(X, Z))
    effects = [one.predict_effect(Z[:3], "a", "b") for one in (again, model)]
    pd.testing.assert_frame_equal(*effects)
    page = write_report(model, folder / "page.html", Z=Z)
    assert "<html" in page.read_text()


@pytest.mark.slow  # workers of their own
def test_resamples_of_curves_are_fitted(curves):
    prototype, X, Z = curves
    found = gf.stability(prototype, X, Z[["z"]], n_pairs=1, n_drops=1, n_bootstraps=1, random_state=0)
    assert not found.failures
