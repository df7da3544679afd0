"""Numbers that enter the regressions of others by curves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.data.edge_features import functions_of, n_functions

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
    with pytest.raises(gf.ParameterError, match="lines alone"):
        gf.gain_over_one_graph(gf.DNNCGM(features="spline", **small), X, Z)


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
