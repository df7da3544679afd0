"""Groups with levels of their own: found where they are, taken out of every model, told to the user."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.data.group_levels import find_levels

GROUPS, ROWS, P = 40, 8, 6
WHO = np.repeat(np.arange(GROUPS), ROWS)


def repeated(spread: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A chain within subjects; levels that all move together, so that they look like a dense graph."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(len(WHO), P))
    for j in range(1, P):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    levels = spread * (rng.normal(size=(GROUPS, 1)) + 0.3 * rng.normal(size=(GROUPS, P)))
    return X + levels[WHO], rng.normal(size=(GROUPS, 1))[WHO]


def chain_is_found(model: gf.GraphEstimator, Z: np.ndarray) -> bool:
    found = np.abs(model.partial_correlations(Z[::ROWS]).mean(axis=0))
    edges = np.eye(P, k=1, dtype=bool) | np.eye(P, k=-1, dtype=bool)
    return bool(found[edges].min() > 2 * found[~edges & ~np.eye(P, dtype=bool)].max())


def test_levels_that_are_no_share_of_the_variance_are_none():
    """Halves of groups agree by chance, and all that is between groups is noise."""
    rng = np.random.default_rng(935)
    who = np.repeat(np.arange(5), rng.integers(5, 20, 5))
    check = find_levels(rng.normal(size=(len(who), 2)), np.ones((len(who), 1)), who)[0]
    assert check.gain > 0.02
    assert check.share < 0.005
    assert not check.prefers


def test_levels_are_found_where_they_are():
    ones = np.ones((len(WHO), 1))
    for seed in range(5):
        assert not find_levels(repeated(0.0, seed)[0], ones, WHO)[0].prefers
        X, _ = repeated(1.0, seed)
        check, levels = find_levels(X, ones, WHO)
        assert check.prefers
        assert check.share == pytest.approx(0.5, abs=0.15)
        assert (
            np.corrcoef(levels.ravel(), (X.reshape(GROUPS, ROWS, P).mean(axis=1) - X.mean(axis=0)).ravel())[
                0, 1
            ]
            > 0.99
        )


def test_levels_are_drawn_towards_zero_by_the_noise_in_them():
    """Known variances: the best prediction of a level is a known share of the mean of its rows."""
    rng = np.random.default_rng(1)
    sizes = np.tile([2, 8], 2_000)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(labels), 1)) + 0.5 * rng.normal(size=(len(sizes), 1))[labels]
    levels = find_levels(X, np.ones((len(X), 1)), labels)[1][:, 0]
    means = np.bincount(labels, weights=X[:, 0] - X.mean()) / sizes
    for size in (2, 8):
        wanted = 0.25 / (0.25 + 1 / size)
        np.testing.assert_allclose((levels / means)[sizes == size], wanted, atol=0.05)


def test_a_mean_that_moves_with_z_is_no_level():
    rng = np.random.default_rng(2)
    z = rng.normal(size=GROUPS)[WHO]
    X = rng.normal(size=(len(WHO), P)) + 2 * z[:, None]
    assert not find_levels(X, np.column_stack([np.ones(len(z)), z]), WHO)[0].prefers


def followed_up(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes without any edge that rise over time; who has high levels is seen less often."""
    rng = np.random.default_rng(seed)
    illness = rng.normal(size=80)
    labels = np.repeat(np.arange(80), np.clip(np.round(6 - 3 * illness), 2, 12).astype(int))
    time = np.concatenate([np.arange(size) for size in np.bincount(labels)]) / 4.0
    levels = illness[:, None] + 0.5 * rng.normal(size=(80, 3))
    return levels[labels] + 0.8 * time[:, None] + 0.6 * rng.normal(size=(len(time), 3)), time, labels


def test_a_trend_within_groups_is_no_edge_where_groups_drop_out():
    slopes, remaining = [], []
    for seed in range(6):
        X, time, labels = followed_up(seed)
        W = np.column_stack([np.ones(len(time)), time])
        check, levels = find_levels(X, W, labels)
        assert check.prefers
        left = X - levels[labels]
        found = np.linalg.lstsq(W, left, rcond=None)[0]
        slopes.append(found[1].mean())
        remaining.append(np.corrcoef((left - W @ found).T)[np.triu_indices(3, 1)].mean())
    assert np.mean(slopes) > 0.7  # of 0.8; with the slope over all rows 0.57
    assert np.mean(remaining) < 0.1  # with the slope over all rows 0.2


def test_slopes_of_all_rows_stay_where_groups_do_not_drop_out():
    rng = np.random.default_rng(3)
    X, _ = repeated(1.0)
    z = rng.normal(size=len(WHO))
    X += z[:, None]
    W = np.column_stack([np.ones(len(z)), z])
    left = X - find_levels(X, W, WHO)[1][WHO]
    np.testing.assert_allclose(np.linalg.lstsq(W, left, rcond=None)[0][1], 1, atol=0.2)


def test_a_node_that_is_the_same_in_all_rows_of_a_group_keeps_its_values():
    X, _ = repeated(1.0)
    ones = np.ones((len(X), 1))
    others = find_levels(X[:, 1:], ones, WHO)
    X[:, 0] = X[::ROWS, 0][WHO]
    check, levels = find_levels(X, ones, WHO)
    assert check == replace(others[0], fixed_nodes=(0,))
    assert not levels[:, 0].any()
    np.testing.assert_array_equal(levels[:, 1:], others[1])
    assert find_levels(X[:, [0]], ones, WHO)[0].prefers is False


def test_what_keeps_its_levels_is_named():
    X, Z = repeated(2.0)
    table = pd.DataFrame(X).add_prefix("x")
    table["x1"] = X[::ROWS, 1][WHO]
    with pytest.warns(gf.DataWarning, match=r"Levels of 'x1' stay") as said:
        gf.GraphicalLasso(n_penalties=10).fit(table, Z, groups=WHO)
    assert str(said[0].message).count("stay") == 1
    with pytest.warns(gf.DataWarning, match="levels of their own"):
        found = gf.infer_edges(table, pd.DataFrame(Z).add_prefix("z"), groups=WHO)
    assert found.untested == ("x1",)
    of_fixed = (found.table[["source", "target"]] == "x1").any(axis=1)
    assert found.table.p_value.isna().tolist() == of_fixed.tolist()
    assert "edges of such nodes are not tested" in found.summary()
    found = gf.check_data(table, pd.DataFrame(Z).add_prefix("z"), groups=WHO)
    assert "Levels of 'x1' stay" in str(found)


def test_a_node_that_varies_in_few_groups_is_fixed_and_one_that_varies_little_in_all_is_not():
    rng = np.random.default_rng(0)
    X, ones = repeated(1.0)[0], np.ones((len(WHO), 1))
    X[:, 0] = rng.normal(size=GROUPS)[WHO]
    some = np.isin(WHO, np.arange(0, GROUPS, 4))
    X[some, 0] += 0.01 * rng.normal(size=int(some.sum()))
    assert find_levels(X, ones, WHO)[0].fixed_nodes == (0,)
    X[:, 0] += 0.01 * rng.normal(size=len(WHO))
    check, levels = find_levels(X, ones, WHO)
    assert check.fixed_nodes == ()
    assert levels[:, 0].std() > 0.5


def test_levels_that_stand_beside_growth_are_no_edge_that_moves():
    """A node that is high where another one grows faster: a level beside what is left of a trend."""
    rng = np.random.default_rng(0)
    year, who, slow = np.tile(np.arange(7.0), 60), np.repeat(np.arange(60), 7), rng.normal(size=60)
    X = rng.normal(size=(len(who), 3))
    X[:, 0] = slow[who] + 0.05 * X[:, 0]
    X[:, 1] = 3 * rng.normal(size=60)[who] + slow[who] * (year - 3) / 2 + 0.5 * X[:, 1]
    nodes = pd.DataFrame(X, columns=list("abc"))
    with pytest.warns(gf.DataWarning, match="levels of their own"):
        found = gf.infer_edges(nodes, pd.DataFrame({"year": year}), groups=who)
    assert found.untested == ()
    assert found.table.q_varies.min() > 0.1


def test_skewed_values_without_levels_have_none():
    rng, ones = np.random.default_rng(0), np.ones((1_500, 1))
    labels = np.arange(1_500) // 3
    for sigma in (0.5, 1.0, 2.0):
        X = np.exp(sigma * rng.normal(size=(1_500, 8)))
        assert not find_levels(X, ones, labels)[0].prefers


def test_single_far_values_neither_make_nor_hide_levels():
    X, _ = repeated(2.0)
    ones = np.ones((len(X), 1))
    found = find_levels(X, ones, WHO)[1]
    far = X.copy()
    far[::37] += 1_000.0  # fewer than one in a group of rows
    check, with_far = find_levels(far, ones, WHO)
    assert check.prefers
    apart = np.abs(with_far - found).mean() / np.abs(found).mean()
    assert apart < 0.25  # with the values as they are there would be no levels at all


@pytest.mark.parametrize(
    "model",
    [
        gf.GraphicalLasso(n_penalties=10),
        gf.RegGMM(penalty="ridge"),
        pytest.param(gf.TreeCGM(random_state=0), marks=pytest.mark.slow),
        pytest.param(gf.DNNCGM(rank=2, max_steps=40, device="cpu", random_state=0), marks=pytest.mark.slow),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_model_is_about_what_varies_within_groups(model):
    X, Z = repeated(2.0)
    with pytest.warns(gf.DataWarning, match="levels of their own"):
        model.fit(X, Z, groups=WHO)
    assert model.level_check_.prefers
    assert chain_is_found(model, Z)
    levels = pd.DataFrame(X).groupby(WHO).transform("mean").to_numpy() - np.mean(X, axis=0)
    with pytest.warns(gf.DataWarning, match="it knows none"):
        within = model.predict(X - levels, Z)
    assert (np.square(X - levels - within).mean(axis=0) < 0.9 * np.square(X - levels).mean(axis=0)).any()
    with pytest.warns(gf.DataWarning, match="it knows none"):
        assert model.score(X - levels, Z) > 0.1
    assert not chain_is_found(model.fit(X, Z), Z), "without groups the levels hide it"
    assert model.level_check_ is None


@pytest.mark.slow
def test_models_fitted_together_take_levels_out_as_well():
    X, Z = repeated(2.0)
    members = [gf.DNNCGM(rank=2, max_steps=40, device="cpu", random_state=seed) for seed in (0, 1)]
    with pytest.warns(gf.DataWarning, match="levels of their own"):
        gf.fit_together(members, X, Z, groups=WHO)
    assert all(chain_is_found(member, Z) for member in members)


def test_levels_stay_where_nothing_is_to_be_subtracted():
    X, Z = repeated(2.0)
    model = gf.RegGMM(penalty="ridge", center="none")
    assert model.fit(X, Z, groups=WHO).level_check_ is None


def test_the_comparison_survives_a_file(tmp_path):
    X, Z = repeated(2.0)
    with pytest.warns(gf.DataWarning, match="levels of their own"):
        model = gf.GraphicalLasso().fit(X, Z, groups=WHO)
    assert gf.load(model.save(tmp_path / "model")).level_check_ == model.level_check_


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_the_data_check_says_that_groups_have_levels(spread):
    X, Z = repeated(spread)
    check = gf.check_data(pd.DataFrame(X).add_prefix("x"), pd.DataFrame(Z).add_prefix("z"), groups=WHO)
    assert ("group-levels" in check.codes()) == (spread > 0)


def growing(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series]:
    """Counts of places of very different size, two of which follow each other; an even share."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.normal(0, 1.5, (GROUPS, 1)))[WHO]
    noise = 0.2 * rng.normal(size=(len(WHO), 4))
    noise[:, 1] = noise[:, 0] + 0.004 * noise[:, 1]
    X = pd.DataFrame(size * np.exp(noise), columns=["people", "density", "cars", "fires"])
    X["density"] *= np.exp(rng.normal(size=GROUPS))[WHO]
    X["share"] = 3 * rng.normal(size=GROUPS)[WHO] + rng.normal(size=len(WHO))
    return X, pd.DataFrame({"year": np.tile(np.arange(ROWS), GROUPS)}), pd.Series(WHO, name="town")


def test_units_in_which_levels_are_taken_are_told():
    X, Z, town = growing()
    said = "'people', 'density', 'cars', 'fires' are taken as ratios to the level of their group"
    with pytest.warns(gf.DataWarning, match="Groups have levels of their own") as warned:
        model = gf.GraphicalLasso().fit(X, Z, groups=town)
    assert any(said in str(one.message) for one in warned)
    assert model.level_check_.logs == (0, 1, 2, 3)
    assert model.level_check_.scores == ()
    with pytest.warns(gf.DataWarning):
        assert said in gf.infer_edges(X, Z, groups=town, random_state=0).summary()
    with pytest.warns(gf.DataWarning):
        even = gf.GraphicalLasso().fit(np.log(X.iloc[:, :4]), Z, groups=town).level_check_
    assert even.words_of_units(list(X)) == "", "of logarithms themselves there is nothing to tell"


def test_what_follows_from_another_node_within_groups_is_told_by_the_check():
    X, Z, town = growing()
    findings = [one for one in gf.check_data(X, Z, groups=town).warnings if one.code == "monotone-nodes"]
    (one,) = findings
    assert one.columns == ("people", "density")
    assert one.message.startswith("Within groups of 'town': nodes 'people', 'density' are nearly functions")
    assert not [one for one in gf.check_data(X, Z).warnings if one.code == "monotone-nodes"]


@pytest.mark.parametrize("n_groups", [40, 120])
def test_a_table_of_means_is_advised_where_groups_are_enough_for_one(n_groups):
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(n_groups), 6)
    X = pd.DataFrame(rng.normal(size=(len(who), 4)) + 2 * rng.normal(size=(n_groups, 4))[who]).add_prefix("x")
    Z = pd.DataFrame({"z": rng.normal(size=len(who))})
    checked = gf.check_data(X, Z, groups=pd.Series(who, name="who"))
    (one,) = [one for one in checked.warnings if one.code == "group-levels"]
    assert ("take a table with one row for each" in one.advice) == (n_groups == 120)
