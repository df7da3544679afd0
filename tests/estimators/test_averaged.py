"""Averages of fitted models: the base, Ensemble and AutoCGM."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import graphfield as gf
from conftest import FULL, change_plans, small_data
from graphfield.estimators import auto_candidates, auto_choice, ensemble
from graphfield.estimators.auto_candidates import Fits, Plan
from graphfield.estimators.composite import AveragedGraph
from graphfield.estimators.held_out import Yardstick
from graphfield.estimators.registry import ESTIMATORS, Entry
from graphfield.fields.average import average
from graphfield.graphs.strength import partial_correlations
from graphfield.numbers import Gain

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")
STATIC = gf.GraphicalLasso(penalty=0.05)
FEW = {"n_penalties": 3, "n_folds": 3}
QUICK = ("static", "linear", "tree")


def steps(n: int = 400, p: int = 5, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """An edge of one half of z changes its place in the other half."""
    rng = np.random.default_rng(seed)
    Z = pd.DataFrame({"z": rng.uniform(-1, 1, n), "noise": rng.uniform(-1, 1, n)})
    X = rng.normal(size=(n, p))
    low = Z.z.to_numpy() < 0
    X[low, 1] += 1.5 * X[low, 0]
    X[~low, 2] += 1.5 * X[~low, 3]
    return pd.DataFrame(X, columns=[f"n{i}" for i in range(p)]), Z


def moving(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One edge moves in a line with z, another one jumps: neither a line nor a tree has both."""
    X, Z = steps(n, 7, seed)
    X["n5"] += 2 * Z.noise * X["n6"]
    return X, Z


class Average(AveragedGraph):
    """Of models that are fitted already."""

    def _fit(self, data):
        raise NotImplementedError


def average_of(members, weights) -> AveragedGraph:
    model = Average()
    model.field_ = average(members[0].field_.common, [member.field_ for member in members], weights)
    return model


@pytest.fixture(scope="module", autouse=True)
def _fast_candidates():
    """Most of the time of a comparison goes into searches for penalties and large trees."""
    with pytest.MonkeyPatch.context() as patch:
        change_plans(patch, static=lambda *_: Plan(gf.GraphicalLasso(**FEW)))
        change_plans(patch, tree=lambda *_: Plan(gf.TreeCGM(max_leaves=3)))
        yield


@pytest.fixture(scope="module")
def kept_average(_fast_candidates):
    """The weights of this one are on two models of different kinds."""
    model = gf.AutoCGM(candidates=QUICK, random_state=0).fit(*moving())
    assert len(model.chosen_) > 1
    return model


# -- the average ------------------------------------------------------------------------------------


def test_an_average_is_what_it_says(data):
    X, Z = data
    one, two = gf.RegGMM().fit(X, Z), gf.TreeCGM(random_state=0).fit(X, Z)
    model = average_of([one, two], [3, 1])
    np.testing.assert_allclose(model.weights_, [0.75, 0.25])
    coef = 0.75 * one.predict_coef(Z).astype(float) + 0.25 * two.predict_coef(Z)
    np.testing.assert_allclose(model.predict_coef(Z), coef, rtol=1e-6, atol=1e-9)
    here, *own = (m.field_.at(Z) for m in (model, one, two))
    np.testing.assert_allclose(here.offsets, 0.75 * own[0].offsets + 0.25 * own[1].offsets)
    variances = [(each.scales * each.units) ** 2 for each in own]
    scale = np.sqrt(0.75 * variances[0] + 0.25 * variances[1])
    np.testing.assert_allclose(here.scales * here.units, scale)
    np.testing.assert_allclose(
        model.partial_correlations(Z), partial_correlations(coef, scale), rtol=1e-4, atol=1e-6
    )


def test_equal_members_average_to_themselves(data):
    member = gf.RegGMM().fit(*data)
    model = average_of([member] * 5, np.full(5, 0.2))
    np.testing.assert_array_equal(model.predict_coef(data[1]), member.predict_coef(data[1]))
    np.testing.assert_allclose(model.predict(*data), member.predict(*data), rtol=1e-12)
    np.testing.assert_allclose(model.edge_weights(data[1]), member.edge_weights(data[1]), rtol=1e-5)


def test_members_without_weight_are_not_kept(data):
    members = [STATIC.fit(*data), gf.RegGMM().fit(*data)]
    model = average_of(members, [0, 2])
    assert model.field_.members == [member.field_ for member in members[1:]]
    assert model.weights_.tolist() == [1.0]
    for weights in ([0, 0], [1, -1], [1]):
        with pytest.raises(ValueError, match="one weight >= 0 per member"):
            average_of(members, weights)


# -- weights and errors on held-out rows ------------------------------------------------------------


def test_errors_are_relative_and_paired():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(60, 4)) * [0.01, 1, 10, 100]
    yardstick = Yardstick.of(base, np.arange(60))
    assert yardstick.errors(base).mean() == pytest.approx(1)
    assert yardstick.errors(base * [1, 1, 1, 0.5]).mean() == pytest.approx((3 + 0.25) / 4)
    difference = rng.normal(size=60)
    expected = difference.std(ddof=1) / np.sqrt(60)
    assert yardstick.gain(difference, np.zeros(60)) == Gain(difference.mean(), pytest.approx(expected))
    grouped = Yardstick.of(base, np.repeat(np.arange(15), 4))
    expected = difference.reshape(15, 4).mean(axis=1).std(ddof=1) / np.sqrt(15)
    assert grouped.gain(difference, np.zeros(60)).standard_error == pytest.approx(expected)


# -- Ensemble ---------------------------------------------------------------------------------------


def test_an_ensemble_of_networks_trains_as_fit_together(data):
    X, Z = data
    prototype = gf.DNNCGM(**{**FULL, "max_steps": 10})
    model = gf.Ensemble(estimator=prototype, n_members=3, random_state=4).fit(X, Z)
    seeds = [member.random_state for member in model.members_]
    assert len(set(seeds)) == 3
    assert not hasattr(prototype, "node_names_"), "the estimator itself is left alone"
    alone = [gf.DNNCGM(**{**FULL, "max_steps": 10, "random_state": seed}) for seed in seeds]
    alone = gf.fit_together(alone, X, Z)
    coef = [member.predict_coef(Z) for member in alone]
    np.testing.assert_allclose(model.predict_coef(Z), np.mean(coef, axis=0), rtol=1e-4, atol=1e-6)
    partial = np.array([member.partial_correlations(Z) for member in alone], dtype=float)
    np.testing.assert_allclose(model.spread(Z), partial.std(axis=0, ddof=1), atol=1e-5)


class _Done(Exception):
    pass


@pytest.fixture
def given(monkeypatch):
    """Rows and labels that the first member is given to fit."""
    seen: list = []

    def fit(self, X, Z, groups=None):
        seen.extend([X, groups])
        raise _Done

    def together(members, X, Z, rows, groups):
        seen.extend([X.iloc[rows[0]], groups[rows[0]]])
        raise _Done

    monkeypatch.setattr(gf.RegGMM, "fit", fit)
    monkeypatch.setattr("graphfield.estimators.together.fit_together", together)
    return seen


@pytest.mark.parametrize("inner", [gf.RegGMM(), gf.DNNCGM()])
def test_groups_are_drawn_as_a_whole(inner, data, given):
    X, Z = data
    groups = np.repeat(np.arange(40), 3)
    with pytest.raises(_Done):
        gf.Ensemble(estimator=inner, resample=True, random_state=0).fit(X, Z, groups=groups)
    frame, labels = given
    counts = np.unique(labels, return_counts=True)[1]
    assert (counts % 3 == 0).all()
    assert counts.max() > 3, "drawn with replacement"
    assert 15 < len(counts) < 35
    own = frame[labels == labels[0]]
    np.testing.assert_array_equal(np.unique(own, axis=0), np.unique(X[groups == labels[0]], axis=0))


def test_copies_of_a_row_carry_one_label_without_groups(data, given):
    with pytest.raises(_Done):
        gf.Ensemble(estimator=gf.RegGMM(), resample=True, random_state=0).fit(*data)
    frame, labels = given
    assert len(frame) == 120
    assert frame.groupby(labels).nunique().to_numpy().max() == 1
    assert len(np.unique(labels)) == len(frame.drop_duplicates()) < 100


@pytest.mark.slow
def test_the_spread_is_a_bootstrap_standard_error():
    """A partial correlation of zero from n rows has the standard deviation 1 / sqrt(n)."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(400, 4)), rng.uniform(size=(400, 1))
    model = gf.Ensemble(
        estimator=gf.GraphicalLasso(penalty=1e-4), n_members=40, resample=True, random_state=0
    )
    spread = model.fit(X, Z).spread(Z[:2])
    np.testing.assert_array_equal(spread[0], spread[1])
    np.testing.assert_array_equal(spread, spread.swapaxes(1, 2))
    assert not np.einsum("ijj->ij", spread).any()
    assert spread[0][np.triu_indices(4, 1)] == pytest.approx(1 / np.sqrt(400), rel=0.35)


def test_the_spread_goes_through_rows_in_bounded_memory(data, monkeypatch):
    model = gf.Ensemble(estimator=gf.RegGMM(), n_members=3, resample=True, random_state=0).fit(*data)
    Z = pd.concat([data[1], data[1].iloc[:5]])
    whole = model.spread(Z)
    monkeypatch.setattr("graphfield.fields.average._MEMBER_BYTES", 7 * 4 * 36)
    np.testing.assert_array_equal(model.spread(Z), whole)
    np.testing.assert_array_equal(whole[:5], whole[-5:])
    partial = [member.partial_correlations(Z).astype(float) for member in model.members_]
    np.testing.assert_allclose(whole, np.std(partial, axis=0, ddof=1), atol=1e-6)


def test_a_level_that_was_not_drawn_is_no_error_and_an_unknown_one_is(data):
    X, Z = data[0], data[1].copy()
    Z.loc[3, "site"] = "D"
    model = gf.Ensemble(estimator=gf.RegGMM(), n_members=4, resample=True, random_state=0).fit(X, Z)
    levels = [len(member.encoder_.categorical[0].levels) for member in model.members_]
    assert set(levels) == {3, 4}
    assert np.isfinite(model.predict_coef(Z.iloc[[3]])).all()
    with pytest.raises(gf.DataError, match=r"'site' has 'E'.*Known: 'A', 'B', 'C', 'D'"):
        model.predict_coef(Z.iloc[[3]].assign(site="E"))


@pytest.mark.slow
@pytest.mark.parametrize("resample", [False, True])
def test_what_the_estimator_says_about_missing_values_and_new_levels_holds(data, resample):
    X, Z = data[0].copy(), data[1]
    X.iloc[3, 0] = np.nan
    new = Z.iloc[[3]].assign(site="E")
    common = {"n_members": 2, "resample": resample, "random_state": 0}
    strict = gf.TreeCGM(max_leaves=2)
    lenient = clone(strict).set_params(missing="drop", unknown="average")
    with pytest.raises(gf.DataError, match="NaN"):
        gf.Ensemble(estimator=strict, **common).fit(X, Z)
    for params in ({"estimator": lenient}, {"estimator": strict, "missing": "drop", "unknown": "average"}):
        with pytest.warns(gf.DataWarning, match="Dropped 1 of 120 rows") as caught:
            model = gf.Ensemble(**params, **common).fit(X, Z)
        assert len(caught) == 1
        assert np.isfinite(model.predict_coef(new)).all()
        with pytest.warns(gf.DataWarning, match="Dropped 1"):
            assert np.isfinite(model.score(X, Z))
    with pytest.warns(gf.DataWarning, match="Dropped 1"):
        model = gf.Ensemble(estimator=lenient, unknown="error", **common).fit(X, Z)
    with pytest.raises(gf.DataError, match="'site' has 'E'"):
        model.predict_coef(new)
    with pytest.raises(gf.ParameterError, match="unknown must be one of"):
        gf.Ensemble(estimator=strict, unknown="ignore", **common).fit(*data)


@pytest.mark.slow
def test_rows_without_variation_are_drawn_again(data):
    X, Z = data[0].copy(), data[1]
    X["n3"] = np.where(np.arange(len(X)) == 7, 1.0, 0.0)  # a third of the draws have no row 7
    model = gf.Ensemble(estimator=gf.RegGMM(), n_members=6, resample=True, random_state=0)
    for groups in (None, np.repeat(np.arange(30), 4)):
        assert len(model.fit(X, Z, groups=groups).members_) == 6


def test_rows_that_hardly_ever_vary_name_the_member_and_the_node(data, monkeypatch):
    X, Z = data[0].copy(), data[1]
    X["n3"] = np.where(np.arange(len(X)) == 7, 1.0, 0.0)
    place = gf.RegGMM()._read_rows(X, Z, None, None, None).X[:, X.columns.get_loc("n3")].argmax()
    monkeypatch.setattr(ensemble, "_draw", lambda n_rows, *_: np.delete(np.arange(n_rows), place))
    with pytest.raises(gf.DataError, match=r"In member 1 of 3: node 'n3' has the same value in all rows"):
        gf.Ensemble(estimator=gf.RegGMM(), n_members=3, resample=True, random_state=0).fit(X, Z)


@pytest.mark.slow
def test_seeds_reach_an_estimator_inside_the_estimator(data):
    inner = gf.ByCluster(estimator=gf.TreeCGM(), by="site")
    model = gf.Ensemble(estimator=inner, n_members=2, random_state=0).fit(*data)
    seeds = [member.estimator.random_state for member in model.members_]
    assert len(set(seeds)) == 2
    assert model.get_params()["estimator__estimator__max_leaves"] == 32


def test_an_ensemble_without_covariates(data):
    model = gf.Ensemble(estimator=STATIC, n_members=2, resample=True, random_state=0)
    assert model.fit(data[0], data[1][[]]).predict_coef(data[1][[]]).shape == (120, 6, 6)


@pytest.mark.parametrize(
    ("params", "change", "message"),
    [
        ({"estimator": STATIC}, {}, "GraphicalLasso has no random_state.*resample=True"),
        ({"estimator": gf.ByCluster()}, {}, "ByCluster has no random_state.*resample=True"),
        ({"estimator": gf.TreeCGM}, {}, "an object, such as"),
        ({"estimator": "dnncgm"}, {}, "must be an estimator"),
        ({"n_members": 1}, {}, "n_members must be a whole number"),
        ({"n_members": 2.5}, {}, "n_members"),
        ({"resample": 1}, {}, "resample must be True or False"),
        ({"missing": "ignore"}, {}, "missing must be one of"),
        ({"random_state": -1}, {}, "random_state must not be negative"),
        ({"estimator": gf.TreeCGM(max_leaves=0)}, {}, "In member 1 of 5: max_leaves"),
        ({}, {"groups": [0] * 120}, "one label only"),
    ],
)
def test_ensembles_that_make_no_sense(data, params, change, message):
    with pytest.raises((gf.ParameterError, gf.DataError), match=message):
        gf.Ensemble(**params).fit(*data, **change)


# -- AutoCGM ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_graph_that_changes_in_steps_is_found():
    X, Z = steps()
    model = gf.AutoCGM(candidates=QUICK, combine=False, random_state=0).fit(X, Z)
    assert model.chosen_ == {"tree": 1.0}
    assert model.depends_on_covariates_ is True
    table = model.held_out_.set_index("model")
    assert table.error["static"] == 1
    assert table.gain["tree"] == pytest.approx(1 - table.error["tree"])
    assert table.gain["tree"] > 0.1
    assert table.gain["tree"] > 2 * table.standard_error["tree"] > 0
    assert table.weight.to_dict() == {"static": 0, "linear": 0, "tree": 1}
    assert (table.seconds > 0).all()
    assert model.summary_.startswith("The model is tree. On 80 held-out rows its squared error is ")
    assert "next best (linear)" in model.summary_
    alone = gf.TreeCGM(max_leaves=3, random_state=model.members_[0].random_state).fit(X, Z)
    np.testing.assert_array_equal(model.predict_coef(Z), alone.predict_coef(Z))  # fitted to all rows


def told_of(**sizes):
    """The summary where candidates leave residuals of these sizes, a hundred rows of two nodes."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(100, 2))
    judged = [
        auto_choice.Judged(name, None, size * base, worse * base, 1.0)
        for name, (size, worse) in sizes.items()
    ]
    yardstick = Yardstick.of(judged[0].residuals, np.arange(100))
    return auto_choice.choose(judged, [], None, yardstick)


def test_a_nearest_model_that_is_worse_is_called_worse():
    assert "the nearest is tree, worse by 4.0 % (" in told_of(static=(1, 1), tree=(1.02, 1.02)).summary
    assert "better by -" not in told_of(static=(1, 1), tree=(1.02, 1.02), linear=(1.1, 1.1)).summary


def test_one_graph_for_everybody_may_be_the_next_best():
    told = told_of(static=(1, 1), linear=(1.2, 1.2), tree=(0.9, 0.95)).summary
    assert "19.0 % (standard error" in told
    assert "below that of one graph for everybody, which is the next best." in told
    told = told_of(static=(1, 1), linear=(0.95, 1), tree=(0.9, 0.95)).summary
    assert "below that of the next best (linear)." in told


def test_no_error_is_more_than_all_of_it_below_another():
    choice = told_of(static=(1, 1), tree=(0.5, 2))
    assert "It is 93.8 % below that of its own average graph" in choice.summary
    assert choice.table.set_index("model").gain_over_own_average["tree"] == pytest.approx(1 - 0.5**2 / 2**2)


def test_the_error_is_that_of_held_out_rows():
    """By hand: fit to the other rows, predict these, divide by the error of the static graph."""
    X, Z = steps()
    model = gf.AutoCGM(candidates=("linear",), random_state=0).fit(X, Z)
    held_out = model.held_out_rows_
    train = np.setdiff1d(np.arange(len(X)), held_out)
    errors = {}
    for name, kind in (("static", gf.GraphicalLasso(**FEW)), ("linear", gf.RegGMM(ridge="cv"))):
        kind.fit(X.iloc[train], Z.iloc[train])
        errors[name] = (X.iloc[held_out] - kind.predict(X.iloc[held_out], Z.iloc[held_out])) ** 2
    ratio = errors["linear"] / errors["static"].mean()
    assert model.held_out_.error[1] == pytest.approx(ratio.to_numpy().mean())
    difference = (ratio - errors["static"] / errors["static"].mean()).mean(axis=1)
    assert model.held_out_.standard_error[1] == pytest.approx(difference.std() / np.sqrt(80))


@pytest.mark.slow
def test_covariates_that_do_not_matter_give_one_graph_that_says_so():
    models = []
    for seed in range(3):
        X, _ = steps(200, seed=seed)
        Z = np.random.default_rng(seed + 10).uniform(size=(200, 2))
        models.append(gf.AutoCGM(candidates=QUICK, random_state=seed).fit(X, Z))
    static = [model for model in models if model.chosen_ == {"static": 1.0}]
    assert len(static) >= 2
    for model in static:
        assert model.depends_on_covariates_ is False
        assert model.summary_.startswith("The model is one graph for everybody. Nothing else predicts 40 ")
        np.testing.assert_array_equal(model.predict_coef(Z[:1]), model.predict_coef(Z[1:2]))
    named = gf.AutoCGM(candidates=("tree",), random_state=0).fit(X, Z)
    assert set(named.chosen_) <= {"static", "tree"}, "one graph is always among the choices"


@pytest.mark.slow
def test_an_average_is_kept_where_it_is_better(kept_average):
    X, Z = moving()
    model = kept_average
    table = model.held_out_.set_index("model")
    assert table.error["average"] < table.error.drop("average").min()
    assert model.summary_.startswith("The model is an average of ")
    assert sum(model.chosen_.values()) == pytest.approx(1)
    assert min(model.chosen_.values()) >= 0.02
    assert table.weight.dropna()[lambda w: w > 0].to_dict() == pytest.approx(model.chosen_)
    for name, weight in model.chosen_.items():
        assert f"{name} ({100 * weight:.0f} %)" in model.summary_
    expected = sum(
        w * member.predict_coef(Z).astype(float)
        for w, member in zip(model.weights_, model.members_, strict=True)
    )
    np.testing.assert_allclose(model.predict_coef(Z), expected, rtol=1e-5, atol=1e-7)
    alone = model.predict_coef(Z.iloc[[5]])[0]
    np.testing.assert_array_equal(alone, model.predict_coef(Z)[5])
    single = gf.AutoCGM(candidates=QUICK, combine=False, random_state=0).fit(X, Z)
    assert len(single.chosen_) == 1
    assert "average" not in set(single.held_out_.model)


@pytest.mark.slow
def test_the_order_of_candidates_does_not_matter(kept_average):
    X, Z = moving()
    again = gf.AutoCGM(candidates=list(QUICK[::-1]), random_state=0).fit(X, Z)
    assert again.chosen_ == kept_average.chosen_
    assert again.summary_ == kept_average.summary_
    np.testing.assert_array_equal(again.predict_coef(Z), kept_average.predict_coef(Z))


def test_everything_survives_a_file(kept_average, tmp_path):
    Z = moving()[1]
    again = gf.load(kept_average.save(tmp_path / "model"))
    for name in ("summary_", "chosen_", "depends_on_covariates_", "node_names_"):
        assert getattr(again, name) == getattr(kept_average, name)
    pd.testing.assert_frame_equal(again.held_out_, kept_average.held_out_)
    np.testing.assert_array_equal(again.weights_, kept_average.weights_)
    assert [type(m) for m in again.members_] == [type(m) for m in kept_average.members_]
    np.testing.assert_array_equal(again.predict_precision(Z), kept_average.predict_precision(Z))
    again.save(tmp_path / "second")
    one, two = ((tmp_path / name / "arrays.safetensors").read_bytes() for name in ("model", "second"))
    assert one == two


@pytest.mark.slow
def test_groups_are_never_split(monkeypatch):
    X, Z = steps(400)
    groups = np.random.default_rng(0).integers(60, size=400)
    judge = auto_candidates.Fits.judge
    seen = []

    def spy(self, train, rows):
        seen.append((set(groups[train]), len(train), len(np.unique(rows.units))))
        return judge(self, train, rows)

    monkeypatch.setattr(auto_candidates.Fits, "judge", spy)
    model = gf.AutoCGM(candidates=QUICK, random_state=0).fit(X, Z, groups=groups)
    ((trained, n_train, n_held_out),) = seen
    assert n_held_out == 60 - len(trained)
    assert 12 <= n_held_out <= 24
    assert n_train == np.isin(groups, list(trained)).sum() < 400
    assert f"({n_held_out} groups)" in model.summary_
    assert "tree" in model.chosen_


@pytest.mark.slow
def test_a_candidate_that_fails_is_left_out(monkeypatch):
    def fail(self, X, Z, groups=None):
        raise gf.DataError("too few of them")

    X, Z = steps(200)
    expected = gf.AutoCGM(candidates=("tree",), random_state=0).fit(X, Z)
    monkeypatch.setattr(gf.RegGMM, "fit", fail)
    model = gf.AutoCGM(candidates=("linear", "tree"), random_state=0).fit(X, Z)
    assert model.chosen_ == expected.chosen_
    line = model.held_out_.set_index("model").loc["linear"]
    assert line.note == "too few of them"
    assert np.isnan(line.error)
    assert line.weight == 0
    assert model.summary_.endswith("Left out, see held_out_: linear.")
    monkeypatch.setattr(gf.GraphicalLasso, "fit", fail)
    with pytest.raises(gf.DataError, match=r"With 160 of the rows, .* too few of them"):
        gf.AutoCGM(candidates=("tree",), random_state=0).fit(X, Z)


def test_a_later_candidate_sees_those_fitted_before(monkeypatch):
    """How a model that begins from another one is added: one function."""
    X, Z = steps()
    seen = []

    def plan(fitted, types):
        assert types is None  # all nodes are numbers
        seen.append((sorted(fitted), {one.n_features_in_ for one in fitted.values()}))
        return Plan(gf.RegGMM())

    monkeypatch.setitem(ESTIMATORS, "Late", Entry(__name__, "late", candidate={}))
    change_plans(monkeypatch, late=plan)
    model = gf.AutoCGM(candidates=("linear", "late"), combine=False, random_state=0).fit(X, Z)
    assert seen[0] == (["linear", "nodewise lasso", "static"], {5})
    assert list(model.held_out_.model) == ["static", "linear", "late"]


def test_too_few_rows_or_groups_to_compare():
    X, Z = small_data(16)
    model = gf.AutoCGM(random_state=0, candidates=QUICK).fit(X, Z)
    assert model.chosen_ == {"static": 1.0}
    assert "16 rows are too few" in model.summary_
    X, Z = small_data(120)
    model = gf.AutoCGM(random_state=0, candidates=QUICK).fit(X, Z, groups=np.arange(120) % 3)
    assert "3 groups are too few" in model.summary_
    assert model.depends_on_covariates_ is None
    assert np.isfinite(model.edge_weights(Z)).all()


def test_a_fraction_that_leaves_too_little_is_to_blame_not_the_rows(tmp_path):
    X, Z = small_data(120)
    for fraction, sizes in ((0.97, "leaves 3 of 120 rows to fit and 117"), (0.01, "leaves 118 of 120 rows")):
        model = gf.AutoCGM(validation_fraction=fraction, random_state=0, candidates=QUICK).fit(X, Z)
        assert f"validation_fraction={fraction} {sizes}" in model.summary_
        assert "too few to hold some out" not in model.summary_
        assert model.depends_on_covariates_ is None
    assert gf.load(model.save(tmp_path / "m")).depends_on_covariates_ is None
    alone = gf.AutoCGM(candidates=("static",), random_state=0).fit(X, Z)
    assert alone.depends_on_covariates_ is None, "nothing was compared with it"


@pytest.mark.slow
def test_a_level_among_the_held_out_rows_alone_is_no_error():
    X, Z = steps(200)
    Z["site"] = np.where(np.arange(200) % 2, "A", "B")
    model = gf.AutoCGM(candidates=QUICK, random_state=0)
    for row in range(200):
        alone = Z.assign(site=Z.site.where(np.arange(200) != row, "C"))
        data = model._read_rows(X, alone, None, None, None)
        if row in data.inputs.rows[data.split(0.2)[1]]:
            break
    Z = alone
    model.fit(X, Z)
    assert row in model.held_out_rows_
    assert (model.held_out_.note[:3] == "").all()
    with pytest.raises(gf.DataError, match=r"'site' has 'D'.*Known: 'A', 'B', 'C'"):
        model.predict_coef(Z.iloc[:1].assign(site="D"))
    lenient = gf.AutoCGM(candidates=("linear",), unknown="average", random_state=0).fit(X, Z)
    assert np.isfinite(lenient.predict_coef(Z.iloc[:1].assign(site="D"))).all()


@pytest.mark.slow
def test_the_kernel_is_a_candidate_of_few_covariates(monkeypatch):
    change_plans(monkeypatch, **dict.fromkeys(("ensemble", "archetype"), lambda *_: Plan(gf.RegGMM())))
    X, Z = moving(100)
    Z = Z[["noise"]].to_numpy()

    def models(X, Z, **params):
        return gf.AutoCGM(combine=False, marginals="raw", random_state=0, **params).fit(X, Z).held_out_.model

    others = ["static", "linear", "tree", "archetype"]
    assert models(X, Z).tolist() == [*others, "kernel", "ensemble"]
    assert models(X, np.column_stack([Z, Z**2, Z**3])).tolist() == [*others, "ensemble"]
    assert models(X, np.column_stack([Z, Z**2, Z**3]), candidates=["kernel"]).tolist() == ["static", "kernel"]


@pytest.mark.parametrize(
    ("sizes", "kind", "network"),
    [
        ((500, 20, 3), None, "ensemble"),
        ((30_000, 20, 3), None, "dnncgm"),
        ((500, 200, 3), None, "dnncgm"),
        ((500, 20, 3), "binary", "dnncgm"),
    ],
)
def test_several_networks_stand_for_one_where_they_do_not_take_too_long(sizes, kind, network):
    n, p, q = sizes
    inputs = SimpleNamespace(types=kind)
    table = SimpleNamespace(X=np.empty((n, p)), Z=SimpleNamespace(names=range(q)), inputs=inputs)
    named = Fits.__new__(Fits)
    named.data = table
    assert set(named._suitable()) & {"dnncgm", "ensemble"} == {network}


def test_archetypes_begin_with_the_first_of_several_networks_and_its_held_out_rows(monkeypatch):
    small = gf.DNNCGM(rank=2, max_steps=3, hidden_size=4)
    begun = {}
    change_plans(monkeypatch, ensemble=lambda *_: Plan(gf.Ensemble(estimator=small, n_members=2)))
    fit = gf.ArchetypeCGM.fit

    def note(model, X, Z, *, start=None, **options):
        begun["start"], begun["seed"] = start, model.random_state
        return fit(model, X, Z, start=start, **options)

    monkeypatch.setattr(gf.ArchetypeCGM, "fit", note)
    plan = auto_candidates.make_plan
    monkeypatch.setattr(
        auto_candidates,
        "make_plan",
        lambda name, *given: (
            Plan(gf.ArchetypeCGM(n_archetypes=1, max_steps=3), plan(name, *given).options)
            if name == "archetype"
            else plan(name, *given)
        ),
    )
    X, Z = steps(120)
    model = gf.AutoCGM(candidates=("archetype", "ensemble"), combine=False, random_state=0, marginals="raw")
    model.fit(X, Z)
    assert isinstance(begun["start"], gf.DNNCGM)
    assert begun["seed"] == begun["start"].random_state
    assert model.held_out_.note.tolist() == ["", "", ""]


def test_neural_candidates_take_part(monkeypatch, tmp_path):
    X, Z = steps(120)
    small = Plan(gf.DNNCGM(**{**FULL, "device": "auto", "max_steps": 10}))
    change_plans(monkeypatch, dnncgm=lambda *_: small)
    monkeypatch.setattr(Gain, "is_clear", property(lambda gain: gain.standard_error > 0))  # however bad
    model = gf.AutoCGM(candidates=("dnncgm",), device="cpu", random_state=0).fit(X, Z)
    assert model.chosen_ == {"dnncgm": 1.0}
    assert model.members_[0].device == "cpu"
    again = gf.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_coef(Z), model.predict_coef(Z))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"candidates": "tree"}, "candidates must be a list of names"),
        ({"candidates": 3}, "candidates must be a list of names"),
        ({"candidates": ()}, "one or more, each once"),
        ({"candidates": ("tree", "tree")}, "one or more, each once"),
        ({"candidates": ("tre",)}, "Did you mean 'tree'"),
        ({"candidates": (gf.TreeCGM(),)}, "Each of candidates must be one of 'static'"),
        ({"combine": "yes"}, "combine must be True or False"),
        ({"validation_fraction": 0}, "validation_fraction"),
        ({"validation_fraction": 0.999}, "leaves no rows"),
        ({"missing": "ignore"}, "missing must be one of"),
        ({"unknown": "guess"}, "unknown must be one of"),
        ({"device": "tpu"}, "device must be"),
        ({"device": 0, "candidates": ("tree",)}, "device must be"),
        ({"random_state": "seed"}, "random_state"),
    ],
)
def test_comparisons_that_make_no_sense(data, params, message):
    with pytest.raises(gf.ParameterError, match=message):
        gf.AutoCGM(**params).fit(*data)
