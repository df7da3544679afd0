"""Differences between groups where nodes are binary, categorical, ordinal, counts and numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import chdtrc
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import graphfield as gf
from graphfield.data.blocks import Blocks
from graphfield.data.frames import as_frame
from graphfield.data.node_types import read_node_types
from graphfield.inference.kind_differences import at_least
from graphfield.inference.node_effects import fit_effects
from graphfield.inference.pair_columns import PairColumns
from graphfield.inference.sparse_differences import q_values_of_differences
from graphfield.solvers.node_likelihood import NodeFits, fit_nodes

KINDS = {"calls": "count"}


def mixed_table(seed: int, n: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """yes - type is there in group b alone, income - calls in both, income - mood changes its sign."""
    rng = np.random.default_rng(seed)
    group = np.repeat(["a", "b"], n)
    income, b = rng.normal(size=2 * n), (group == "b").astype(float)
    mood = (1 - 2 * b) * 0.6 * income + rng.normal(size=2 * n)
    calls = rng.poisson(np.exp(0.5 + 0.4 * income))
    yes = rng.random(2 * n) < 0.5
    odds = np.exp(np.outer(b * (2 * yes - 1), [0.0, 1.0, -1.0])).cumsum(axis=1)
    level = (rng.random(2 * n)[:, None] * odds[:, -1:] >= odds[:, :-1]).sum(axis=1)
    X = pd.DataFrame({"income": income, "mood": mood, "calls": calls, "yes": yes})
    return X.assign(type=np.array(["red", "green", "blue"])[level]), pd.DataFrame({"group": group})


def pair(table: pd.DataFrame, source: str, target: str) -> pd.Series:
    return table[(table.source == source) & (table.target == target)].iloc[0]


def fits_of(X: pd.DataFrame, kinds: dict[str, str]) -> tuple[Blocks, np.ndarray, NodeFits]:
    frame = as_frame(X, "X")
    types = read_node_types(frame, kinds)
    assert types is not None
    codes = types.codes(types.with_categories(frame))
    blocks = Blocks.learn(types, codes)
    columns = blocks.columns(codes)
    return blocks, columns, fit_nodes(blocks, columns, np.ones((len(X), 1)))


def test_finds_what_differs_between_nodes_of_all_kinds() -> None:
    X, Z = mixed_table(0, 400)
    found = gf.compare_graphs(X, Z, {"group": "a"}, {"group": "b"}, node_types=KINDS)
    assert list(found.columns) == ["source", "target", "difference", "low", "high", "p_value", "q_value"]
    clear = found[found.q_value <= 0.01]
    assert clear[["source", "target"]].to_numpy().tolist() == [["income", "mood"], ["yes", "type"]]
    assert pair(found, "income", "mood").high < 0 < pair(found, "yes", "type").low
    assert np.isfinite(found.iloc[:, 2:].to_numpy(dtype=float)).all()
    back = gf.compare_graphs(X, Z, {"group": "b"}, {"group": "a"}, node_types=KINDS)
    signed = (found.source != "type") & (found.target != "type")
    np.testing.assert_allclose(back.difference[signed], -found.difference[signed], atol=1e-9)
    np.testing.assert_allclose(back.p_value, found.p_value, rtol=1e-6)
    np.testing.assert_allclose(back.q_value, found.q_value, atol=1e-6)


def test_names_and_order_of_levels_make_no_difference() -> None:
    X, Z = mixed_table(1, 200)
    found = gf.compare_graphs(X, Z, "group", node_types=KINDS)
    renamed = X.assign(
        type=X.type.map({"red": "z", "green": "y", "blue": "x"}), yes=np.where(X.yes, "no", "yes")
    )
    other = gf.compare_graphs(renamed, Z, "group", node_types=KINDS)
    np.testing.assert_allclose(other.p_value, found.p_value, rtol=1e-5)
    np.testing.assert_allclose(np.abs(other.difference), np.abs(found.difference), atol=1e-6)


def test_zeros_and_ones_are_binary_when_they_are_said_to_be() -> None:
    X, Z = mixed_table(2, 100)
    X = X[["yes", "income", "mood"]]
    logical = gf.compare_graphs(X, Z, "group")
    whole = X.assign(yes=X.yes.astype(int))
    pd.testing.assert_frame_equal(gf.compare_graphs(whole, Z, "group", node_types={"yes": "binary"}), logical)
    numbers = gf.compare_graphs(whole, Z, "group")
    pd.testing.assert_frame_equal(
        numbers, gf.compare_graphs(whole, Z, "group", node_types={"yes": "gaussian"})
    )
    assert not np.allclose(numbers.p_value, logical.p_value)


def test_differences_of_margins_and_scales_are_no_differences_of_edges() -> None:
    rng = np.random.default_rng(0)
    later = np.repeat([0.0, 1.0], 1_500)
    x = rng.normal(size=3_000)
    X = pd.DataFrame({"x": 5 * later + (1 + 3 * later) * x, "rare": rng.random(3_000) < 0.5 - 0.35 * later})
    X["y"] = (1 + 3 * later) * (0.5 * x + rng.normal(size=3_000))
    found = gf.compare_graphs(X, pd.DataFrame({"time": np.where(later, "b", "a")}), "time")
    assert (found.p_value > 0.01).all()
    assert np.abs(found.difference).max() < 0.15


def test_three_groups_and_other_covariates() -> None:
    X, Z = mixed_table(3, 300)
    rng = np.random.default_rng(3)
    age = rng.normal(size=600)
    X["yes"] = rng.random(600) < 1 / (1 + np.exp(-3 * age))  # age moves both, so they look connected
    X["mood"] += 2 * age
    Z = Z.assign(group=np.tile(["a", "b", "c"], 200), age=age)
    found = gf.compare_graphs(X, Z, "group", node_types=KINDS)
    assert len(found) == 10
    assert (found.p_value > 0.001).all()
    with pytest.raises(gf.ParameterError, match="'age' is a number"):
        gf.compare_graphs(X, Z, {"age": 0.0}, {"age": 1.0}, node_types=KINDS)


def test_rows_of_one_subject_count_once() -> None:
    """Copies of rows add nothing, where groups say that they are copies."""
    X, Z = mixed_table(4, 150)
    once = gf.compare_graphs(X, Z, "group", node_types=KINDS, groups=np.arange(300))
    label = np.repeat(np.arange(300), 3)
    copies, twice = X.iloc[label].reset_index(drop=True), Z.iloc[label].reset_index(drop=True)
    joined = gf.compare_graphs(copies, twice, "group", node_types=KINDS, groups=label)
    apart = gf.compare_graphs(copies, twice, "group", node_types=KINDS, in_order=False)
    width, wide, narrow = (table.high - table.low for table in (once, joined, apart))
    assert (np.abs(wide / width - 1) < 0.3).mean() > 0.8
    assert (narrow < 0.75 * width).all()


def test_likelihoods_are_those_of_scikit_learn() -> None:
    X, _ = mixed_table(5, 800)
    blocks, columns, fits = fits_of(X, KINDS)
    for node, name in enumerate(X.columns):
        others = np.flatnonzero(blocks.nodes != node)
        eta = blocks.null + fits.design @ fits.coef.T
        if name == "calls":
            other = PoissonRegressor(alpha=0, tol=1e-8, max_iter=500).fit(columns[:, others], X.calls)
            np.testing.assert_allclose(
                blocks.node_means(eta)[:, node], other.predict(columns[:, others]), rtol=0.03
            )
        elif name in ("yes", "type"):
            other = LogisticRegression(C=1e6, tol=1e-8, max_iter=1_000)
            other.fit(columns[:, others], X[name].astype(str))
            order = [list(other.classes_).index(level) for level in blocks.types.types[node].levels]
            expected = other.predict_proba(columns[:, others])[:, order]
            np.testing.assert_allclose(blocks.probabilities(eta, node), expected, atol=0.01)


def test_influences_are_changes_without_a_row() -> None:
    X, _ = mixed_table(6, 120)
    X = X.iloc[:120].drop(columns="type")
    blocks, columns, _ = fits_of(X, KINDS)

    def effects(rows: np.ndarray):
        return fit_effects(blocks, columns, np.ones((len(X), 1)), [rows])[0]

    whole, changes = effects(np.arange(120)), []
    for row in range(12):
        without = effects(np.delete(np.arange(120), row))
        changes.append(whole.estimates - without.estimates)
    expected = whole.influences(slice(0, len(whole.pairs)))[:12]
    assert np.corrcoef(np.ravel(changes), expected.ravel())[0, 1] > 0.97
    assert np.linalg.norm(changes - expected) < 0.3 * np.linalg.norm(expected)


def test_partial_correlations_of_numbers_whatever_their_scale() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1_000, 4)) @ rng.normal(size=(4, 4)), columns=list("wxyz"))
    X.iloc[500:] *= 3
    X["b"] = rng.random(1_000) < 0.5
    blocks, columns, _ = fits_of(X, {})
    halves = [np.arange(500), np.arange(500, 1_000)]
    numbers = np.triu_indices(5, 1)[1] < 4
    for own, rows in zip(fit_effects(blocks, columns, np.ones((1_000, 1)), halves), halves, strict=True):
        precision = np.linalg.inv(np.cov(columns[rows].T))
        root = np.sqrt(np.diag(precision))
        partial = (-precision / root / root[:, None])[np.triu_indices(5, 1)]
        np.testing.assert_allclose(own.estimates[numbers], partial[numbers], atol=1e-3)
        np.testing.assert_allclose(own.estimates[~numbers], partial[~numbers], atol=0.05)


def binary_table(seed: int, n: int = 200) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((2 * n, 4)) < 0.4, columns=list("stuv"))
    return X, pd.DataFrame({"group": np.repeat(["a", "b"], n)})


def test_separated_classes_are_finite_and_few_rows_prove_nothing() -> None:
    X, Z = binary_table(0)
    b = np.flatnonzero(Z.group == "b")
    X.loc[b, "t"] = X.s[b]
    found = gf.compare_graphs(X, Z, "group")
    assert np.isfinite(found.iloc[:, 2:].to_numpy(dtype=float)).all()
    assert pair(found, "s", "t").p_value < 1e-4
    X, Z = binary_table(0)
    X.loc[b, "s"] = False
    X.loc[b[X.t[b].to_numpy()][:3], "s"] = True  # three rows, all with the same t
    found = gf.compare_graphs(X, Z, "group")
    assert pair(found, "s", "t").p_value > 0.01


def test_levels_that_a_group_lacks_say_nothing() -> None:
    X, Z = binary_table(1)
    X["w"] = np.where(np.arange(400) % 2 == 0, "k", "l")
    X.loc[(Z.group == "a") & X.s, "w"] = "m"  # in group a, a level that makes an edge
    with pytest.warns(gf.DataWarning, match="'m' of 'w' with group = 'b'"):
        found = gf.compare_graphs(X, Z, "group")
    assert np.isfinite(found.iloc[:, 2:].to_numpy(dtype=float)).all()
    assert pair(found, "s", "w").p_value > 0.01


def many_nodes(X: pd.DataFrame) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.random((len(X), 60)) < 0.5).add_prefix("x")


@pytest.mark.parametrize(
    ("change", "kinds", "words"),
    [
        (lambda X: X.assign(s=X.s & (X.index < 200)), "auto", "same value in all 200 rows with group = 'b'"),
        (lambda X: X.assign(s=X.s * -1.0), {"s": "count"}, "'s' is to be a count"),
        (lambda X: X, {"q": "binary"}, "'q', which is no node"),
        (lambda X: X.assign(s=np.arange(len(X)) % 120), {"s": "categorical"}, "has 120 of them"),
        (lambda X: X.assign(s=np.where(X.s, "low", "high")), {"s": "ordinal"}, "without an order"),
        (many_nodes, "auto", "200 rows with group = 'a', and 240 are needed"),
    ],
)
def test_what_cannot_be_compared_is_named(change, kinds, words: str) -> None:
    X, Z = binary_table(2)
    with pytest.raises(gf.DataError, match=words):
        gf.compare_graphs(change(X), Z, "group", node_types=kinds)


def test_wide_edges_are_as_clear_as_their_numbers_together() -> None:
    """One edge of four numbers differs by as much as three narrow ones; 24 others do not differ."""
    rng = np.random.default_rng(0)
    pairs = PairColumns.of([2, 2, *[1] * 6])
    truth = np.zeros((2, len(pairs.first)))
    truth[1, pairs.of_pair(0)] = 0.2
    truth[1, pairs.starts[[20, 21, 22]]] = 0.4
    estimates = truth + 0.05 * rng.normal(size=truth.shape)
    covariance = [np.eye(2 * width) * 0.0025 for width in pairs.widths]
    off = (np.diff(estimates, axis=0)[0] / np.sqrt(2 * 0.0025)) ** 2
    p_values = chdtrc(pairs.widths, [off[pairs.of_pair(pair)].sum() for pair in range(len(pairs))])
    found = q_values_of_differences(estimates, covariance, p_values, pairs=pairs) <= 0.1
    assert np.flatnonzero(found).tolist() == [0, 20, 21, 22]


def test_covariances_are_raised_in_directions_where_they_are_too_small() -> None:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(3, 3))
    least = half @ half.T
    np.testing.assert_allclose(at_least(0.1 * least, least), least, atol=1e-9)
    np.testing.assert_allclose(at_least(2 * least, least), 2 * least, atol=1e-9)
    odd = np.diag([5.0, 0.01, 1.0])
    raised = at_least(odd, least)
    assert np.linalg.eigvalsh(raised - least).min() > -1e-9
    assert np.linalg.eigvalsh(raised - odd).min() > -1e-9


@pytest.mark.slow
@pytest.mark.parametrize("subjects", [False, True])
def test_two_samples_of_one_distribution_differ_by_chance_only(subjects: bool) -> None:
    rates, anything = [], []
    for seed in range(40):
        X, Z = mixed_table(seed, 300)
        X, Z = X[Z.group == "b"].reset_index(drop=True), pd.DataFrame({"group": ["a", "b"] * 150})
        groups = None
        if subjects:  # all of a subject stays but its mood
            X = X.iloc[np.arange(300) // 2 * 2].reset_index(drop=True)
            X["mood"] = -0.6 * X.income + np.random.default_rng(seed).normal(size=300)
            groups = np.arange(300) // 2
        found = gf.compare_graphs(X, Z, "group", node_types=KINDS, groups=groups)
        rates.append((found.p_value <= 0.05).mean())
        anything.append((found.q_value <= 0.1).any())
    assert 0.02 < np.mean(rates) < 0.085
    assert np.mean(anything) < 0.2
