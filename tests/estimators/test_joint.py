"""One sparse graph per level, found together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.fields.program import evaluate

# Solved to half a percent of the penalty.
CLOSE = 2e-3


def two_levels(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """x3 = .7 x2 + noise everywhere, x1 = x0 + noise in level "a" only; in standard units within levels."""
    rng = np.random.default_rng(seed)
    X, site = rng.normal(size=(n, 5)), np.where(np.arange(n) < n // 3, "a", "b")
    X[:, 3] += 0.7 * X[:, 2]
    X[site == "a", 1] += X[site == "a", 0]
    for level in "ab":
        own = X[site == level]
        X[site == level] = (own - own.mean(axis=0)) / own.std(axis=0)
    return X, site


def frame(site) -> pd.DataFrame:
    return pd.DataFrame({"site": site})


def test_full_coupling_is_one_graphical_lasso_and_none_is_separate_fits():
    X, site = two_levels()
    one = gf.GraphicalLasso(penalty=0.1).fit(X, frame(site)).partial_correlations(frame(["a", "b"]))
    joint = gf.JointGraphicalLasso(strength=1, penalty=0.1).fit(X, frame(site))
    assert np.abs(joint.partial_correlations(frame(["a", "b"])) - one).max() < CLOSE
    apart = gf.JointGraphicalLasso(strength=0, penalty=0.1).fit(X, frame(site))
    for level, penalty in zip("ab", apart.level_penalties_["penalty"], strict=True):
        rows = site == level
        alone = gf.GraphicalLasso(penalty=penalty).fit(X[rows], X[rows, :1])
        found = apart.partial_correlations(frame([level]))
        assert np.abs(found - alone.partial_correlations(X[:1, :1])).max() < CLOSE


def test_groups_have_edges_at_the_same_places():
    X, site = two_levels()
    model = gf.JointGraphicalLasso(coupling="group", strength=1, penalty=0.1).fit(X, frame(site))
    a, b = model.partial_correlations(frame(["a", "b"]))
    np.testing.assert_array_equal(a != 0, b != 0)
    assert abs(a[0, 1]) > abs(b[0, 1]) + 0.2


def test_fused_levels_have_equal_edges_unless_rows_contradict():
    X, site = two_levels()
    model = gf.JointGraphicalLasso(strength=0.7, penalty=0.1).fit(X, frame(site))
    a, b = model.partial_correlations(frame(["a", "b"]))
    precision = model.predict_precision(frame(["a", "b"]))
    assert precision[0, 2, 3] == pytest.approx(precision[1, 2, 3], rel=1e-6)
    assert a[0, 1] > b[0, 1] + 0.2


def test_ordered_levels_are_a_chain():
    """Neighbours are alike but for one step, which the sum over all pairs would have to pay for thrice."""
    rng = np.random.default_rng(0)
    X, stage = rng.normal(size=(800, 3)), np.repeat(np.arange(4), 200)
    X[stage >= 1, 1] += X[stage >= 1, 0]
    levels = ["none", "I", "II", "III"]
    Z = pd.DataFrame({"stage": pd.Categorical.from_codes(stage, levels, ordered=True)})
    model = gf.JointGraphicalLasso(strength=0.6, penalty=0.05).fit(X, Z)
    found = model.predict_precision(pd.DataFrame({"stage": levels}))
    in_units = found[:, 0, 1] / np.sqrt(found[:, 0, 0] * found[:, 1, 1])
    assert model.level_penalties_["stage"].tolist() == levels
    assert np.ptp(in_units[1:]) < 0.05 < np.abs(in_units[1:] - in_units[0]).min()
    named = gf.JointGraphicalLasso(strength=0.6, penalty=0.05, levels="ordered").fit(X, Z)
    np.testing.assert_array_equal(named.predict_coef(Z[:1]), model.predict_coef(Z[:1]))
    pairs = gf.JointGraphicalLasso(strength=0.6, penalty=0.05, levels="unordered").fit(X, Z)
    assert np.abs(pairs.predict_coef(Z[::200]) - model.predict_coef(Z[::200])).max() > 1e-4


def test_held_out_rows_choose_how_strongly_levels_are_held_together():
    X, site = two_levels(240)
    assert gf.JointGraphicalLasso(n_folds=3).fit(X, frame(site)).strength_ < 1
    mixed = np.random.default_rng(1).permutation(site)
    model = gf.JointGraphicalLasso(n_folds=3).fit(X, frame(mixed))
    assert model.strength_ == 1
    assert "one graph for all" in model.describe()
    assert list(model.held_out_) == ["strength", "log_likelihood", "behind", "standard_error"]


def test_rare_levels_are_named_and_lean_on_the_others():
    X, site = two_levels()
    site = np.where(np.arange(300) % 60 == 0, "c", site)
    with pytest.warns(gf.DataWarning, match=r"'c' \(5\) has fewer than 20 rows, so its graph leans"):
        model = gf.JointGraphicalLasso(strength=0, penalty=0.1).fit(X, frame(site))
    assert np.isfinite(model.partial_correlations(frame(["c"]))).all()
    assert model.level_penalties_["n_rows"].tolist() == [98, 197, 5]


def test_several_covariates_and_what_moves_means_only():
    rng = np.random.default_rng(0)
    X, site = two_levels()
    Z = pd.DataFrame({"site": site, "sex": rng.choice(["f", "m"], 300), "age": rng.normal(size=300)})
    Z.loc[Z["site"] == "a", "sex"] = "f"
    X[:, 4] += 3 * Z["age"]
    model = gf.JointGraphicalLasso(strength=0.5, penalty=0.1).fit(X, Z)
    assert len(model.level_penalties_) == 3
    # Nobody was ("a", "m"): the average of all graphs, which is a valid one.
    at = pd.DataFrame({"site": ["a", "b"], "sex": ["m", "m"], "age": [0.0, 2.0]})
    assert np.isfinite(model.predict_precision(at)).all()
    assert model.field_.at(at).offsets[1, 4] - model.field_.at(at).offsets[0, 4] > 4
    by_site = gf.JointGraphicalLasso(strength=0.5, penalty=0.1, by=["site"]).fit(X, Z)
    sexes = by_site.partial_correlations(at.assign(site="b", sex=["f", "m"], age=0.0))
    np.testing.assert_array_equal(sexes[0], sexes[1])


def test_the_page_carries_out_the_same(data):
    X, Z = data
    model = gf.JointGraphicalLasso(strength=0.3, penalty=0.1).fit(X, Z)
    j, k = np.triu_indices(X.shape[1], 1)
    found = evaluate(model.field_.program(), Z.iloc[:20])
    assert np.abs(found - model.partial_correlations(Z.iloc[:20])[:, j, k]).max() < 1e-5


def test_what_it_cannot_do():
    rng = np.random.default_rng(0)
    X, site = rng.normal(size=(60, 3)), np.repeat(["a", "b", "c"], 20)
    with pytest.raises(gf.DataError, match=r"JointGraphicalLasso needs covariates with levels.*'z1'"):
        gf.JointGraphicalLasso().fit(X, X[:, :1])
    Z = frame(site).assign(age=X[:, 0] + 1)
    with pytest.raises(gf.DataError, match="got 'age': a number"):
        gf.JointGraphicalLasso(by="age").fit(X, Z)
    with pytest.raises(gf.ParameterError, match=r"by='sites' is no covariate.*'site'"):
        gf.JointGraphicalLasso(by="sites").fit(X, Z)
    with pytest.raises(gf.DataError, match="needs 2 rows of a level at least, and 'd' of 'site' has one"):
        gf.JointGraphicalLasso().fit(X, frame(np.append(site[:-1], "d")))
    many = pd.DataFrame({name: rng.choice(list("abcdefgh"), 60) for name in ("one", "two")})
    with pytest.raises(gf.DataError, match="'one', 'two' have 64 for 60 rows"):
        gf.JointGraphicalLasso().fit(X, many)
    with pytest.raises(gf.DataError, match="one covariate whose levels have an order, got 'one', 'two'"):
        gf.JointGraphicalLasso(levels="ordered").fit(X, many.replace(list("cdefgh"), "a"))
    for by in (3, [], [3]):
        with pytest.raises(gf.ParameterError, match="by must be the name of a covariate"):
            gf.JointGraphicalLasso(by=by).fit(X, Z)
