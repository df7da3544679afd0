"""Fits that train together give what each would give alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import graphfield as gf
from conftest import FULL, SMALL, small_data

PENALTIES = (0.0, 0.04, 0.5)


def path(**changes) -> list[gf.DNNCGM]:
    return [gf.DNNCGM(**{**FULL, "penalty": v, **changes}) for v in PENALTIES]


@pytest.fixture(scope="module")
def first(data):
    """One to start from; nobody changes it."""
    return gf.DNNCGM(**FULL).fit(*data)


@pytest.mark.parametrize("changes", [{}, {"center": "none"}, {"sharing": "node"}], ids=str)
def test_a_path_of_penalties_equals_separate_fits(changes):
    X, Z = small_data()
    X["n3"] += 3 * np.sin(Z["age"] / 10)  # a mean that moves with z, kept by some and centred for each
    changes = {"network": "residual-plain", "max_steps": 15, **changes}
    alone = [model.fit(X, Z) for model in path(**changes)[1:]]
    together = gf.fit_together(path(**changes)[1:], X, Z)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(other.predict_coef(Z), one.predict_coef(Z), rtol=1e-2, atol=2e-3)
        np.testing.assert_allclose(other.predict(X, Z), one.predict(X, Z), rtol=1e-2, atol=0.02)
        np.testing.assert_allclose(other.residual_scale_, one.residual_scale_, rtol=1e-2)
        assert other.mean_depends_on_covariates_ == one.mean_depends_on_covariates_


@pytest.mark.slow
def test_mixtures_that_train_together_equal_separate_fits():
    X, Z = small_data()
    changes = {"network": "residual-plain", "rank": 2, "max_steps": 10}
    alone = [model.fit(X, Z) for model in path(**changes)[1:]]
    together = gf.fit_together(path(**changes)[1:], X, Z)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(other.partial_correlations(Z), one.partial_correlations(Z), atol=0.04)
        assert other.penalty_ == one.penalty_ == one.penalty


def test_a_larger_penalty_gives_a_sparser_graph():
    X, Z = small_data(200)
    sizes = [np.abs(model.predict_coef(Z)).mean() for model in gf.fit_together(path(max_steps=15), X, Z)]
    assert sizes == sorted(sizes, reverse=True)


def test_members_of_an_ensemble_differ_by_their_seed():
    X, Z = small_data(200)
    members = [gf.DNNCGM(**{**FULL, "max_steps": 15, "random_state": seed}) for seed in (0, 1, 0)]
    one, two, again = (model.predict_coef(Z) for model in gf.fit_together(members, X, Z))
    assert np.abs(one - two).max() > 1e-3
    np.testing.assert_allclose(again, one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        pytest.param({"network": "mlp"}, marks=pytest.mark.slow),
        pytest.param({"sharing": "node"}, marks=pytest.mark.slow),
        pytest.param({"network": "linear"}, marks=pytest.mark.slow),
        {"rank": 2, "penalty": 0.05, "max_steps": 5},
    ],
    ids=str,
)
def test_the_last_bits_of_the_data_do_not_matter(changes):
    """Another processor rounds in another way. Training must not make more of it."""
    assert made_of_last_bits(0, changes) <= 5e-6


@pytest.mark.slow
@pytest.mark.parametrize("max_steps", [5, 60])
def test_the_last_bits_of_the_data_do_not_matter_to_patterns(max_steps):
    """Of three tables, in one they may decide between two penalties that held-out rows find equally good."""
    made = [made_of_last_bits(seed, {"rank": 2, "max_steps": max_steps}) for seed in range(3)]
    assert np.median(made) <= 5e-6


def made_of_last_bits(seed: int, changes: dict) -> float:
    """The largest difference between graphs of a table and of one that is rounded in another way."""
    X, Z = small_data(200, seed=seed)
    rounded = X * (1 + 1e-7 * np.random.default_rng(1).standard_normal(X.shape))
    one, other = (
        gf.DNNCGM(**{**FULL, "max_steps": 60, **changes}).fit(x, Z).partial_correlations(Z)
        for x in (X, rounded)
    )
    return float(np.abs(other - one).max())


def test_rows_left_out_do_not_matter():
    X, Z = small_data(200)
    half, short = np.arange(100), {**FULL, "max_steps": 15}
    changed = X.copy()
    # Same mean and spread of every column, so that the common standardisation stays.
    changed.iloc[100:] = X.iloc[100:].to_numpy()[::-1]
    coefs = [
        gf.fit_together([gf.DNNCGM(**short)], table, Z, rows=[half])[0].predict_coef(Z)
        for table in (X, changed)
    ]
    np.testing.assert_allclose(coefs[0], coefs[1], rtol=1e-3, atol=1e-5)


def test_copies_of_a_row_stay_on_one_side(monkeypatch):
    from graphfield.estimators import dnncgm

    X, Z = small_data(100)
    resample = np.random.default_rng(0).integers(0, 100, 100)
    seen = []
    original = dnncgm.fit_fields

    def spy(jobs, *args, **kwargs):
        seen.extend(jobs)
        return original(jobs, *args, **kwargs)

    monkeypatch.setattr(dnncgm, "fit_fields", spy)
    (model,) = gf.fit_together([gf.DNNCGM(**FULL)], X, Z, rows=[resample])
    places = model._read_rows(X, Z, None, None, None).inputs.rows
    train, held_out = (places[own.numpy()] for own in (seen[0].rows, seen[0].held_out))
    assert not set(train) & set(held_out)
    assert set(train) | set(held_out) == set(resample)
    counts = np.bincount(resample, minlength=100)
    np.testing.assert_array_equal(
        np.bincount(train, minlength=100)[np.unique(train)], counts[np.unique(train)]
    )


def test_competing_fits_stop_when_they_have_lost():
    sim = gf.make_setting("G1", n_samples=1_500, random_state=0)
    X = sim.X[:, :20]
    models = [
        gf.DNNCGM(
            rank=None,
            penalty=v,
            max_steps=150,
            learning_rate=0.01,
            patience=None,
            hidden_size=16,
            center="none",
            device="cpu",
            random_state=0,
        )
        for v in (0.02, 20.0)
    ]
    good, bad = gf.fit_together(models, X, sim.Z, compete=True)
    assert (good.lost_, bad.lost_) == (False, True)
    assert bad.n_steps_ < good.n_steps_ == 150
    assert bad.predict_coef(sim.Z[:2]).shape == (2, 20, 20)


def test_a_model_can_start_from_another():
    X, Z = small_data(300)
    first = gf.DNNCGM(**{**FULL, "max_steps": 100}).fit(X, Z)
    short = {**FULL, "max_steps": 5, "learning_rate": 1e-4}
    cold, warm = gf.DNNCGM(**short).fit(X, Z), gf.DNNCGM(**short).fit(X, Z, start=first)
    assert warm.training_.train_loss.iloc[0] < 0.9 * cold.training_.train_loss.iloc[0]


@pytest.mark.slow
def test_a_mixture_can_start_from_another():
    X, Z = small_data(300)
    first = gf.DNNCGM(**{**SMALL, "max_steps": 300}).fit(X, Z)
    short = {**SMALL, "max_steps": 5}
    cold, warm = gf.DNNCGM(**short).fit(X, Z), gf.DNNCGM(**short).fit(X, Z, start=first)
    assert warm.rank_ == first.rank_
    began = [model.training_.held_out_loss.iloc[0] for model in (cold, warm)]
    assert began[1] == pytest.approx(first.training_.held_out_loss.min(), rel=0.02)
    assert began[1] < began[0] - 0.02


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda models: models[:0], gf.ParameterError, "one or more DNNCGM"),
        (lambda models: models[0], gf.ParameterError, "a list of DNNCGM"),
        (lambda models: [*models, gf.RegGMM()], gf.ParameterError, "RegGMM"),
        (lambda models: [models[0], models[0]], gf.ParameterError, "twice"),
        (
            lambda models: [models[0], clone(models[1]).set_params(hidden_size=9)],
            gf.ParameterError,
            "hidden_size",
        ),
        (lambda models: [models[0].set_params(penalty=-1)], gf.ParameterError, "penalty"),
    ],
)
def test_models_that_cannot_train_together(change, error, message):
    with pytest.raises(error, match=message):
        gf.fit_together(change(path()), *small_data())


@pytest.mark.parametrize(
    "rows",
    [
        [np.arange(50)],
        [np.arange(50)] * 2 + [[]],
        [np.arange(50)] * 2 + [[0.5]],
        [np.arange(50)] * 2 + [[999]],
        [[3, 3]] * 3,
        [np.ones(50, bool)] * 3,
        5,
    ],
    ids=["too few", "empty", "not whole", "beyond", "one row", "short mask", "a number"],
)
def test_bad_rows_are_refused(rows):
    with pytest.raises(gf.DataError, match="rows"):
        gf.fit_together(path(), *small_data(), rows=rows)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"hidden_size": 9}, "hidden_size"),
        ({"rank": 2}, "rank"),
        ({"network": "mlp"}, "network='residual', this model 'mlp'"),
        ({"network": "residual-plain"}, "network='residual', this model 'residual-plain'"),
    ],
)
def test_a_start_with_another_network_is_refused(params, message, first, data):
    with pytest.raises(gf.ParameterError, match=message):
        gf.DNNCGM(**{**FULL, **params}).fit(*data, start=first)


def test_a_start_takes_over_the_mean_too():
    X, Z = small_data(300)
    X = X.add(Z["age"] * 0.2, axis=0) * [1, 1, 1, 1, 0.1, 0.1]
    first = gf.DNNCGM(**{**FULL, "max_steps": 100, "learning_rate": 0.01}).fit(X, Z)
    assert first.mean_depends_on_covariates_
    short = {**FULL, "max_steps": 3, "learning_rate": 1e-5}
    warm = gf.DNNCGM(**short).fit(X, Z, start=first)
    assert warm.mean_depends_on_covariates_
    np.testing.assert_allclose(warm.predict(X, Z), first.predict(X, Z), atol=0.3)


def test_a_start_is_part_of_what_a_checkpoint_belongs_to(tmp_path, first, data):
    short = {**FULL, "max_steps": 5}
    gf.DNNCGM(**short).fit(*data, checkpoint=tmp_path / "c")
    with pytest.raises(gf.ModelFileError, match="another fit"):
        gf.DNNCGM(**short).fit(*data, checkpoint=tmp_path / "c", resume=True, start=first)


def test_a_model_may_start_from_itself_but_only_on_its_own_columns():
    X, Z = small_data()
    model = gf.DNNCGM(**{**FULL, "max_steps": 5}).fit(X, Z)
    model.fit(X, Z, start=model)
    with pytest.raises(gf.DataError, match="node names"):
        model.fit(X.iloc[:, :4], Z, start=model)


def test_a_start_with_other_levels_is_refused(first, data):
    X, Z = data
    with pytest.raises(gf.DataError, match="other levels"):
        gf.DNNCGM(**FULL).fit(X, Z.assign(site="x" + Z["site"].astype(str)), start=first)


def test_competing_needs_common_held_out_rows():
    X, Z = small_data()
    with pytest.raises(gf.ParameterError, match="same held-out rows"):
        gf.fit_together(path(), X, Z, rows=[np.arange(60)] * 3, compete=True)
    with pytest.raises(gf.ParameterError, match="same held-out rows"):
        gf.fit_together(path(validation_fraction=0.0), X, Z, compete=True)


def test_competitors_with_different_seeds_are_judged_on_the_same_rows(monkeypatch):
    from graphfield.estimators import dnncgm

    seen = []
    original = dnncgm.fit_fields

    def spy(jobs, *args, **kwargs):
        seen.extend(jobs)
        return original(jobs, *args, **kwargs)

    monkeypatch.setattr(dnncgm, "fit_fields", spy)
    members = [gf.DNNCGM(**{**FULL, "max_steps": 5, "random_state": seed}) for seed in (0, 1)]
    gf.fit_together(members, *small_data(), compete=True)
    np.testing.assert_array_equal(seen[0].held_out.numpy(), seen[1].held_out.numpy())


def test_who_lost_is_saved(tmp_path):
    model = gf.DNNCGM(**{**FULL, "max_steps": 5}).fit(*small_data())
    assert model.lost_ is False
    model.lost_ = True
    loaded = gf.load(model.save(tmp_path / "m"))
    assert loaded.lost_ is True
    assert loaded.way_ == "full head (rank=None)"


def test_a_start_from_other_columns_or_nothing_fitted_is_refused(first, data):
    X, Z = data
    with pytest.raises(gf.ParameterError, match="fitted DNNCGM"):
        gf.DNNCGM(**FULL).fit(X, Z, start=gf.DNNCGM(**FULL))
    with pytest.raises(gf.DataError, match="node names"):
        gf.DNNCGM(**FULL).fit(X.rename(columns={"n1": "other"}), Z, start=first)


@pytest.mark.parametrize("rank", [2, None])
def test_a_level_that_was_not_drawn_gets_the_graph_of_the_most_frequent_one(rank):
    """Its place in the network is where it began, which is anywhere."""
    X, Z = small_data(120, p=3)
    Z["site"] = np.where(np.arange(120) < 70, "A", "B")
    Z.loc[119, "site"] = "C"
    X["n1"] = np.where(Z["site"] == "A", 1, -1) * X["n0"] + 0.3 * X["n1"]
    rows = [np.arange(119), np.tile(np.arange(119), 2)[:119]]
    params = {**SMALL, "rank": rank}
    at = pd.DataFrame({"age": [50.0] * 3, "site": ["A", "B", "C"]})
    for model in gf.fit_together([gf.DNNCGM(**params) for _ in rows], X, Z, rows=rows):
        frequent, _, absent = model.predict_coef(at)
        np.testing.assert_array_equal(absent, frequent)
        places = (
            model.field_.network.embedding.tables[0][0].detach().numpy()
        )  # what moves little may be shrunk
        np.testing.assert_array_equal(places[2], places[0])
        assert (places[1] != places[0]).any()
