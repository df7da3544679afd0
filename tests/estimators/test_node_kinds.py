"""Nodes that are no plain numbers: types, blocks, families, and what a fitted model says of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import graphfield as gf
from conftest import REAL_DATA
from graphfield.data.families import Count
from graphfield.data.frames import as_frame
from graphfield.data.node_types import read_node_types
from graphfield.metrics import auprc
from solver_cases import COUNTED, LEVELS, blocks_of, mixed_table

SMALL = {"rank": 2, "max_steps": 5, "hidden_size": 8, "device": "cpu", "random_state": 0}
FITS = {
    "linear": lambda **own: gf.RegGMM(node_types=COUNTED, **own),
    "sparse": lambda **own: gf.RegGMM(penalty="sparse-group", sparsity=0.05, node_types=COUNTED, **own),
    "static": lambda **own: gf.NodewiseLasso(penalty="ebic", n_penalties=8, node_types=COUNTED, **own),
    "mixture": lambda **own: gf.DNNCGM(node_types=COUNTED, **SMALL | own),
}


def polars_table(X: pd.DataFrame) -> object:
    return pytest.importorskip("polars").from_pandas(X)


@pytest.fixture(params=FITS, scope="module")
def mixed(request):
    X, Z = mixed_table()
    return FITS[request.param]().fit(X, Z), X, Z


def test_types_are_read_from_the_table_and_numbers_stay_numbers():
    X, _ = mixed_table(60)
    found = read_node_types(as_frame(X, "X"), "auto")
    kinds = ["gaussian", "binary", "categorical", "gaussian", "ordinal", "gaussian"]
    assert found.kinds == kinds
    assert found.types[4].levels == tuple(LEVELS)
    assert read_node_types(as_frame(X, "X"), COUNTED).kinds[3] == "count"
    assert read_node_types(as_frame(X[["number", "alone"]], "X"), "auto") is None


def test_a_count_of_zero_that_rounding_left_below_it_has_a_loss():
    family = Count(np.array([5.0]))
    eta, none = np.array([[0.3]]), np.zeros((1, 1))
    np.testing.assert_allclose(family.loss(eta, none - 1e-16), family.loss(eta, none), rtol=1e-12)


def test_columns_are_standard_and_do_not_depend_on_what_levels_are_called():
    X, _ = mixed_table()
    blocks, codes = blocks_of(X, COUNTED)
    columns = blocks.columns(codes)
    for own in blocks.slices:
        covariance = columns[:, own].T @ columns[:, own] / len(X)
        np.testing.assert_allclose(covariance, np.eye(len(covariance)), atol=1e-9)
    other, renamed = blocks_of(X.assign(group=X.group.map({"a": "z", "b": "b", "c": "a"})), COUNTED)
    own = blocks.slices[2]
    np.testing.assert_allclose(  # another basis of the same space
        columns[:, own] @ columns[:, own].T,
        other.columns(renamed)[:, own] @ other.columns(renamed)[:, own].T,
        atol=1e-9,
    )


def test_means_are_the_gradient_of_losses():
    X, _ = mixed_table(50)
    blocks, codes = blocks_of(X, COUNTED)
    columns, rng = blocks.columns(codes), np.random.default_rng(1)
    eta = blocks.null + 0.5 * rng.normal(size=columns.shape)
    for c in range(blocks.n_columns):
        step = np.zeros(blocks.n_columns)
        step[c] = 1e-5
        rise = (blocks.losses(eta + step, columns) - blocks.losses(eta - step, columns)).sum(axis=1) / 2e-5
        np.testing.assert_allclose(rise, (blocks.means(eta) - columns)[:, c], atol=1e-7)
    np.testing.assert_allclose(blocks.means(blocks.null[None]), 0.0, atol=1e-12)


def test_strength_between_numbers_is_the_partial_correlation():
    X, Z = mixed_table()
    noise = np.random.default_rng(2).normal(size=(2, len(X)))
    numbers = X[["number", "alone"]].assign(third=X.number + noise[0])
    numbers["fourth"] = numbers.third + X.alone + 0.3 * noise[1]  # little is left of it, much of others
    plain = gf.RegGMM(center="constant").fit(numbers, Z)
    beside = gf.RegGMM(center="constant").fit(numbers.assign(flag=Z.z.to_numpy() > 0), Z)
    ours, theirs = (model.partial_correlations(Z[:5])[:, :4, :4] for model in (beside, plain))
    np.testing.assert_allclose(ours, theirs, atol=0.05)  # the flag says next to nothing of them


def test_edges_are_found_and_have_signs_where_these_mean_something(mixed):
    model, X, _ = mixed
    at = pd.DataFrame({"z": [-0.9, 0.9]})
    strength = pd.DataFrame(model.edge_weights(at)[1], X.columns, X.columns)
    edges = ("flag", "group", "events")
    assert (strength.loc["number", list(edges)] > 0.15).all()
    graph = pd.DataFrame(model.predict_graph(at).any(axis=0), X.columns, X.columns)
    assert graph.loc["number", list(edges)].all()
    assert not graph.loc[["alone", "scale"]].any(axis=None)
    signed = model.partial_correlations(at)
    assert signed[1, 0, 1] > 0
    assert signed[1, 0, 3] > 0
    assert (np.abs(signed) <= 1).all()
    np.testing.assert_array_equal(signed, signed.transpose(0, 2, 1))


def test_an_edge_moves_with_z():
    X, Z = mixed_table(800)
    low, high = FITS["linear"]().fit(X, Z).edge_weights([[-0.9], [0.9]])[:, 0, 1]
    assert high > low + 0.3


def test_predictions_are_means_and_probabilities(mixed):
    model, X, Z = mixed
    fitted, table = model.predict(X, Z), model.predict_proba(X, Z, "group")
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert list(table.columns) == model.node_levels_["group"] == ["a", "b", "c"]
    np.testing.assert_array_equal(fitted[:, 2], table.to_numpy().argmax(axis=1))
    np.testing.assert_allclose(fitted[:, 1], model.predict_proba(X, Z, "flag")["True"])
    assert fitted[:, 3].mean() == pytest.approx(X.events.mean(), rel=0.02)
    assert (table.to_numpy().argmax(axis=1) == X.group.map({"a": 0, "b": 1, "c": 2})).mean() > 0.45
    assert 0.05 < model.score(X, Z) < 0.5
    with pytest.raises(gf.ParameterError, match="'number' is gaussian"):
        model.predict_proba(X, Z, "number")


def test_ordinal_levels_have_probabilities(mixed):
    model, X, Z = mixed
    table = model.predict_proba(X, Z, "scale")
    assert list(table.columns) == list(LEVELS)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    shares = X.scale.value_counts(normalize=True)[LEVELS]
    np.testing.assert_allclose(table.mean(), shares, atol=0.03)  # it has no neighbour
    odds = np.diff(np.log(table), axis=1)
    mean = model.predict(X, Z)[:, 4]
    if np.ptp(mean) > 0.01:
        assert np.corrcoef(odds[:, 0], mean)[0, 1] > 0.999


def test_probabilities_of_ordinal_levels_are_calibrated():
    """Of skewed levels of a latent number: better than shares, and near a multinomial regression."""
    rng = np.random.default_rng(0)
    latent = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], 1_500)
    codes = np.digitize(latent[:, 0], [0.3, 1.0, 1.6])
    X = pd.DataFrame({"answer": codes, "number": latent[:, 1]})
    Z = np.zeros((1_500, 0))
    model = gf.NodewiseLasso(penalty=0.001, node_types={"answer": "ordinal"}).fit(X[:1_000], Z[:1_000])
    found = model.predict_proba(X[1_000:], Z[1_000:], "answer").to_numpy()
    number, answer = X[["number"]].to_numpy(), codes
    known = LogisticRegression(C=1e6).fit(number[:1_000], answer[:1_000]).predict_proba(number[1_000:])
    shares = np.tile(np.bincount(answer[:1_000]) / 1_000, (500, 1))
    ours, theirs, alone = (
        -np.log(table[np.arange(500), answer[1_000:]]).mean() for table in (found, known, shares)
    )
    assert ours < alone - 0.1
    assert ours < theirs + 0.05


def test_effects_by_level_and_coefficients(mixed):
    model, X, Z = mixed
    effect = (
        model.predict_effect(Z[:2], "number", "group").query("sample == 0").set_index("target_level").effect
    )
    assert effect["a"] > effect["b"] > effect["c"]
    assert effect.sum() == pytest.approx(0.0, abs=1e-5)
    with pytest.raises(gf.DataError, match=r"'group' has more than two levels.*predict_effect"):
        model.predict_coef(Z)
    with pytest.raises(gf.DataError, match="'flag' \\(binary\\)"):
        model.predict_precision(Z)
    single = clone(model).set_params(node_types="auto").fit(X[["number", "flag", "alone"]], Z)
    coef = single.predict_coef(Z[:2])
    line = single.predict_effect(Z[:2], "number", "flag")
    np.testing.assert_allclose(coef[:, 1, 0], line.effect, rtol=1e-5)
    assert 0.1 < coef[0, 1, 0] * 3 < 2.5  # log-odds per standard deviation of the number
    more = X[["number", "flag", "alone"]].assign(flag=True), X[["number", "flag", "alone"]].assign(flag=False)
    step = np.subtract(*(single.predict(table, Z)[:2, 0] for table in more))
    np.testing.assert_allclose(coef[:, 0, 1], step, rtol=1e-4)
    np.testing.assert_allclose(single.predict_effect(Z[:2], "flag", "number").effect, step, rtol=1e-4)


def test_saved_models_say_the_same(mixed, tmp_path):
    model, X, Z = mixed
    again = gf.load(model.save(tmp_path / "model"))
    assert again.node_types == COUNTED
    assert again.node_kinds_ == model.node_kinds_
    np.testing.assert_array_equal(again.edge_weights(Z), model.edge_weights(Z))
    np.testing.assert_array_equal(again.predict(X, Z), model.predict(X, Z))
    pd.testing.assert_frame_equal(again.edges(Z), model.edges(Z))


def test_counts_of_zero_have_a_loss():
    X, Z = mixed_table(120)
    assert (X.events == 0).any()
    assert Count(np.array([9.0])).loss(np.array([[0.0]]), np.array([[-1e-17]])) == pytest.approx(1.0)
    model = gf.NodewiseLasso(n_penalties=3, n_folds=2, node_types=COUNTED).fit(X, Z)
    assert np.isfinite(model.path_.score).all()
    assert model.penalty_ < model.path_.penalty.max()  # the empty graph is not the best one


@pytest.mark.slow
def test_a_fold_that_lacks_a_level_and_separated_classes_have_finite_answers():
    X, Z = mixed_table(120)
    rare = X.assign(group=np.where(np.arange(120) == 7, "d", X.group), flag=X.number > 10)
    model = gf.NodewiseLasso(n_penalties=3, n_folds=2, node_types=COUNTED).fit(rare, Z)
    assert np.isfinite(model.predict_proba(rare, Z, "group")).all(axis=None)
    linear = FITS["linear"]().fit(rare, Z)
    assert np.isfinite(linear.edge_weights(Z)).all()
    assert (linear.predict_proba(rare, Z, "flag")["True"] > 0.5).eq(rare.flag).mean() > 0.9
    mixture = FITS["mixture"](validation_fraction=0.0).fit(rare, Z)
    assert np.isfinite(mixture.edge_weights(Z)).all()
    assert np.isfinite(mixture.predict_proba(rare, Z, "group")).all(axis=None)
    assert (mixture.predict_proba(rare, Z, "flag")["True"] > 0.5).eq(rare.flag).mean() > 0.8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": None}, "need coefficients that mix patterns: rank='auto'"),
        ({"loss": "huber", "rank": "auto"}, r"Got rank='auto', sharing='all', loss='huber'.*RegGMM takes"),
        ({"marginals": "normal"}, "marginals must be 'auto' or 'raw' where nodes are no plain numbers"),
        ({"center": "none"}, "center must be 'constant' or 'covariates'"),
    ],
)
def test_a_mixture_says_what_it_cannot_do_with_levels(change, message):
    X, Z = mixed_table(60)
    with pytest.raises(gf.ParameterError, match=message):
        FITS["mixture"](**change).fit(X, Z)


def test_mixtures_of_levels_begin_anew_and_alone():
    X, Z = mixed_table(60)
    numbers = gf.DNNCGM(**SMALL | {"rank": None, "max_steps": 2}).fit(X[["number", "alone"]], Z)
    with pytest.raises(gf.ParameterError, match="start must be None"):
        FITS["mixture"]().fit(X, Z, start=numbers)
    with pytest.raises(gf.DataError, match=r"numbers alone as nodes.*'flag'.*one by one"):
        gf.fit_together([FITS["mixture"]()], X, Z)


def test_numbers_alone_are_fitted_as_ever():
    """Saying that numbers are numbers changes no bit."""
    X, Z = mixed_table(60)
    numbers = X[["number", "alone", "events"]]
    full = SMALL | {"rank": None, "max_steps": 2}
    plain = gf.DNNCGM(**full).fit(numbers, Z)
    told = gf.DNNCGM(node_types={"number": "gaussian"}, **full).fit(numbers, Z)
    np.testing.assert_array_equal(told.edge_weights(Z), plain.edge_weights(Z))
    assert not told.node_levels_


@pytest.mark.slow
def test_margins_that_bend_with_z_are_followed():
    """Shares of a level rise and fall with z: what z alone says goes through the family's own link."""
    rng = np.random.default_rng(5)
    z = rng.uniform(-1, 1, 600)
    share = 0.05 + 0.9 * np.exp(-6 * z**2)
    X = pd.DataFrame({"flag": rng.random(600) < share, "a": rng.normal(size=600), "b": rng.normal(size=600)})
    model = gf.DNNCGM(**SMALL | {"hidden_size": 16, "max_steps": 400}).fit(X, pd.DataFrame({"z": z}))
    assert model.mean_depends_on_covariates_
    at = pd.DataFrame({"z": [-0.95, 0.0, 0.95]})
    found = model.predict_proba(X[:3].assign(a=0.0, b=0.0), at, "flag")["True"].to_numpy()
    assert found[1] > 0.75
    assert max(found[0], found[2]) < 0.3


@pytest.mark.parametrize(
    ("change", "types", "message"),
    [
        ({}, {"evens": "count"}, r"names 'evens', which is no node\. Did you mean 'events'"),
        ({"events": -1}, COUNTED, "'events' is to be a count.*row 0 holds -1"),
        ({"events": 0.5}, COUNTED, "'events' is to be a count.*holds 0.5"),
        ({"group": None}, {"group": "ordinal"}, "'group' has text without an order"),
        ({}, {"group": "binary"}, "'group' is to be binary, but has 3 levels"),
        ({}, {"alone": "binary"}, "'alone' is to be binary, which takes two different values, but has 400"),
        (
            {},
            {"alone": "ordinal"},
            "'alone' is to be ordinal, which takes at most 50 different values, but has",
        ),
        ({"group": "many"}, {}, "'group' has 200 levels; a node may have 50"),
        ({"group": "own"}, {}, "'group' has a different text in every row"),
        ({"flag": True}, {}, "'flag' has the same value in every training row"),
    ],
)
def test_bad_types_are_refused_by_column(change, types, message):
    X, Z = mixed_table()
    for name, value in change.items():
        n = len(X)
        new = {"many": [f"t{i % 200}" for i in range(n)], "own": [f"t{i}" for i in range(n)]}.get(str(value))
        if new is None:
            new = X[name] if value is None else np.where(np.arange(n) == 0, value, X[name])
        X = X.assign(**{name: True if value is True else new})
    with pytest.raises(gf.DataError, match=message):
        gf.RegGMM(node_types=types or "auto").fit(X, Z)


def test_levels_that_training_did_not_have_are_refused(mixed):
    model, X, Z = mixed
    with pytest.raises(gf.DataError, match="row 3 holds 'q', known are 'a', 'b', 'c'"):
        model.predict(X.assign(group=np.where(np.arange(len(X)) == 3, "q", X.group)), Z)


@pytest.mark.parametrize("value", [{"x": "gausian"}, {"x": 3}, "binary", ["x"]])
def test_types_that_there_are_none_of(value):
    X, Z = mixed_table(30)
    with pytest.raises(gf.ParameterError, match="node_types"):
        gf.RegGMM(node_types=value).fit(X, Z)


def test_missing_levels_are_filled_by_the_most_frequent_one():
    X, Z = mixed_table(200)
    gaps = X.assign(group=X.group.where(np.arange(200) > 3, None))
    with pytest.warns(gf.DataWarning, match="most frequent level"):
        model = FITS["linear"](missing="impute").fit(gaps, Z)
    filled = gaps.assign(group=gaps.group.fillna(gaps.group.mode()[0]))
    np.testing.assert_array_equal(model.edge_weights(Z), FITS["linear"]().fit(filled, Z).edge_weights(Z))


@pytest.mark.skipif(not (REAL_DATA / "mixed" / "group_mixed.csv").exists(), reason="the data are not there")
@pytest.mark.parametrize("kind", ["linear", "sparse", pytest.param("mixture", marks=pytest.mark.slow)])
def test_known_edges_of_a_mixed_table_in_three_groups(kind):
    """Five edges and no other; two of them differ between groups, three do not (README beside the data)."""
    table = pd.read_csv(REAL_DATA / "mixed" / "group_mixed.csv")
    X, Z = table.drop(columns="x7"), table[["x7"]].astype(str)
    types = {"x3": "binary", "x5": "categorical"}
    models = {
        "linear": gf.RegGMM(node_types=types),
        "sparse": gf.RegGMM(penalty="sparse-group", node_types=types),
        "mixture": gf.DNNCGM(node_types=types, device="cpu", random_state=0),
    }
    model = models[kind].fit(X, Z)
    at = pd.DataFrame({"x7": ["1", "2", "3"]})
    found = model.edges(at)
    edges = {(a, b) for a, b in zip(found.source, found.target, strict=True)}
    assert edges == {("x1", "x2"), ("x1", "x3"), ("x3", "x4"), ("x3", "x5"), ("x4", "x6")}
    signed = pd.DataFrame(
        model.partial_correlations(at).transpose(1, 2, 0).reshape(36, 3),
        pd.MultiIndex.from_product([X.columns, X.columns]),
    )
    first, second, third = signed.loc["x1", "x2"]
    assert first < -0.2 < 0.3 < second
    assert abs(third) < 0.1
    first, second, third = signed.loc["x3", "x5"]
    assert first < 0.1
    assert min(second, third) > 0.15
    constant = signed.loc[[("x1", "x3"), ("x3", "x4"), ("x4", "x6")]]
    assert (constant > 0.15).all(axis=None)
    # Groups of their own differ by chance; what a penalty leaves of that is flat.
    assert np.ptp(constant, axis=1).max() < (0.05 if kind == "sparse" else 0.08)


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "least"), [("I1", 0.5), ("M1", 0.45)])
def test_moving_edges_of_simulated_kinds(setting, least):
    """Edges come and go as waves, which linear coefficients follow in part: better than one graph for all."""
    train = gf.make_setting(setting, 1_500, 3)
    test = gf.make_setting(setting, 1_800, 3)
    Z, truth = test.Z[1_500:], test.skeleton[1_500:]
    types = {f"x{j + 1}": kind for j, kind in enumerate(train.node_types)}
    linear = gf.RegGMM(penalty="sparse-group", n_penalties=10, n_folds=3, node_types=types)
    static = gf.NodewiseLasso(n_penalties=10, n_folds=3, node_types=types)
    ours, one = (auprc(m.fit(train.X, train.Z).edge_weights(Z), truth).mean() for m in (linear, static))
    assert one > least
    assert ours > one + 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "least"), [("I1", 0.65), ("M1", 0.6)])
def test_a_mixture_follows_waves_that_lines_cannot(setting, least):
    sim = gf.make_setting(setting, 1_300, 4)
    types = {f"x{j + 1}": kind for j, kind in enumerate(sim.node_types)}
    X, Z, test, truth = sim.X[:1_000], sim.Z[:1_000], sim.Z[1_000:], sim.skeleton[1_000:]
    mixture = gf.DNNCGM(node_types=types, device="cpu", random_state=0).fit(X, Z)
    linear = gf.RegGMM(node_types=types).fit(X, Z)
    ours, lines = (auprc(model.edge_weights(test), truth).mean() for model in (mixture, linear))
    assert ours > least
    assert ours > lines + 0.05
    assert mixture.score(sim.X[1_000:], test) > linear.score(sim.X[1_000:], test)


@pytest.mark.parametrize("convert", [lambda X: X.astype({"b": object}), polars_table])
def test_yes_and_no_of_any_container_are_binary(convert) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "b": rng.random(80) < 0.5})
    Z = pd.DataFrame({"age": rng.uniform(size=80)})
    model = gf.NodewiseLasso().fit(convert(X), Z)
    assert model.node_kinds_ == {"a": "gaussian", "b": "binary"}


def test_missing_among_yes_and_no_is_a_gap() -> None:
    X = pd.DataFrame({"a": np.arange(40.0) % 7, "b": [None, *[True, False, True] * 13]})
    with pytest.warns(gf.DataWarning, match="Dropped 1 of 40 rows"):
        model = gf.NodewiseLasso(missing="drop").fit(X, pd.DataFrame({"age": np.arange(40.0)}))
    assert model.node_kinds_ == {"a": "gaussian", "b": "binary"}


@pytest.mark.parametrize("name", ["self", "columns", "kwargs"])
def test_columns_may_be_called_anything(name):
    """pandas takes new columns as keywords, among which one of its own arguments stands."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {name: rng.integers(2, size=80).astype(bool), "b": rng.normal(size=80), "c": rng.normal(size=80)}
    )
    Z = pd.DataFrame({"self" if name != "self" else "index": rng.choice(["x", "y"], 80)})
    model = gf.RegGMM().fit(X, Z)
    assert model.node_kinds_[name] == "binary"
