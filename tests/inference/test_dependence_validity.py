"""The test of dependence: rare levels, curved means, covariates that go together, groups of any size."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import graphfield as gf
from graphfield.data.covariates import CovariateEncoder
from graphfield.data.frames import as_frame
from graphfield.estimators.inputs import training_inputs
from graphfield.inference.cleaned_nodes import cleaned_nodes
from graphfield.inference.directions import Room, directions, in_order
from graphfield.inference.question import Question
from graphfield.inference.rearrange import Rows
from graphfield.inference.score_test import Pairs, _decorrelated, _squared_scores
from graphfield.inference.tests_of_covariates import GroupScores

FEW = {"covariates": [], "n_permutations": 39, "random_state": 0}


def chain(rng, n, strength, p=6):
    """Each node follows the one before it."""
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] += strength * X[:, j - 1]
    return X


def rare_levels(rng, n=300):
    """95, 3 and 2 % of the rows."""
    few = [round(0.03 * n), round(0.02 * n)]
    return rng.permutation(np.repeat([0, 1, 2], [n - sum(few), *few]))


def functions_of(Z, most):
    frame = as_frame(pd.DataFrame(Z), "Z")
    encoder = CovariateEncoder().fit(frame)
    return directions(encoder, encoder.transform(frame), Room(most, most))


def jumps_of(X, Z, labels=None):
    """In units of the covariates."""
    inputs = training_inputs(X, Z, "error")
    encoder = CovariateEncoder().fit(inputs.Z)
    found = Question(inputs, encoder, labels, False, 3, 5, 19).with_jumps().jumps
    return {name: np.array(at) * Z[name].std(ddof=0) + Z[name].mean() for name, at in found.items()}


def test_means_and_scales_of_a_rare_level_change_nothing():
    rng = np.random.default_rng(1)
    code = rare_levels(rng, 150)
    Z = pd.DataFrame({"site": np.array(list("abc"))[code]})
    X = chain(rng, 150, 0.5)
    shift, scale = 5 * rng.normal(size=(3, 6)), np.exp(rng.normal(size=(3, 6)))
    shift[0], scale[0] = 0, 1
    plain = gf.dependence_test(X, Z, **FEW)
    moved = gf.dependence_test(X * scale[code] + shift[code], Z, **FEW)
    assert moved.p_value == plain.p_value
    assert moved.gain_over_static.value == pytest.approx(plain.gain_over_static.value, abs=1e-4)


def test_functions_are_uncorrelated_and_have_all_levels_and_products_of_three():
    rng = np.random.default_rng(0)
    code = rare_levels(rng, 400)
    Z = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc")).assign(site=np.array(list("pqr"))[code])
    found = functions_of(Z, 80)
    np.testing.assert_allclose(
        found.columns.T @ found.columns / 400, np.eye(found.columns.shape[1]), atol=1e-8
    )
    np.testing.assert_allclose(found.columns.mean(axis=0), 0, atol=1e-9)
    assert list(np.flatnonzero(found.roughness == 0)) == [0, 1]
    assert set(found.factors) == {1, 2, 3}
    assert found.columns.shape[1] <= 80 + 2
    for target in (Z["a"] * Z["b"] * Z["c"], (code == 2).astype(float), np.sin(4 * Z["a"])):
        centred = (
            target.to_numpy() - np.mean(target) if hasattr(target, "to_numpy") else target - target.mean()
        )
        assert np.square(found.columns.T @ centred / 400).sum() > 0.95 * centred.var()


def test_a_copy_adds_no_function():
    z = np.random.default_rng(0).normal(size=200)
    one, two = functions_of({"a": z}, 10), functions_of({"a": z, "b": 3 * z + 1}, 10)
    assert one.columns.shape[1] == 10
    assert two.columns.shape[1] <= 10
    wide = np.column_stack([z, 2 * z, np.ones(200), z**2])
    assert list(np.flatnonzero(in_order(wide).any(axis=0))) == [0, 3]


@pytest.mark.parametrize("shape", ["product", "wave"])
def test_a_mean_goes_that_no_spline_of_one_covariate_follows(shape):
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1, 1, size=(500, 3))
    curve = 5 * Z.prod(axis=1) if shape == "product" else np.sin(12 * Z[:, 0])
    X = 2 * curve[:, None] + chain(rng, 500, 0.5)
    found = cleaned_nodes(X, functions_of(Z, 100), np.arange(500)).values
    assert np.abs(curve @ X / 500).min() > 0.5
    assert np.abs(curve @ found / 500 / curve.std()).max() < 0.1


def test_a_node_that_is_a_function_of_z_takes_no_part():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 3, 120)
    X = np.column_stack([chain(rng, 120, 0.5, p=3), code == 1, code + 0.1])
    found = gf.dependence_test(X, pd.DataFrame({"site": np.array(list("abc"))[code]}), **FEW)
    without = gf.dependence_test(X[:, :3], pd.DataFrame({"site": np.array(list("abc"))[code]}), **FEW)
    assert found.p_value == without.p_value


def test_scales_that_are_off_change_scores_to_second_order_only():
    rng = np.random.default_rng(0)
    X = chain(rng, 400, 0.7)
    values = np.vstack([X, X]) - X.mean(axis=0)
    values /= values.std(axis=0)
    f, off = np.repeat([1.0, -1.0], 400), rng.normal(size=6)
    turn = Pairs.of(values).to_residuals

    def largest(size):
        moved = values * (1 + size * f[:, None] * off)
        return [kind[np.triu_indices(6, 1)].max() ** 0.5 for kind in _squared_scores(moved, f[:, None], turn)]

    plain = 2 * np.abs(np.triu(values.T @ (values * off), 1)).max()
    for small, smaller in zip(largest(0.1), largest(0.01), strict=True):
        assert smaller < 0.02 * small or smaller < 1e-3 * plain


def test_scores_of_rows_add_up_to_those_of_all():
    rng = np.random.default_rng(0)
    values = chain(rng, 90, 0.7)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    pairs, f = Pairs.of(values), rng.normal(size=90)
    j, k = np.triu_indices(6, 1)
    for total, turn in zip(
        _squared_scores(values, f[:, None], pairs.to_residuals), pairs.turns(), strict=True
    ):
        by_row = f @ pairs.scores(values @ turn, turn, j, k)
        np.testing.assert_allclose(np.square(by_row), total[j, k], rtol=1e-8)


def test_groups_of_any_size_may_change_places():
    """Functions that were uncorrelated where they belong are so again where they go."""
    rng = np.random.default_rng(0)
    sizes = np.array([2, 2, 3, 50, 60, 80])
    f = rng.normal(size=(6, 2))[np.repeat(rng.permutation(6), sizes)].astype(np.float32)
    again = _decorrelated(f - f.mean(axis=0))
    np.testing.assert_allclose(again.T @ again / len(f), np.eye(2), atol=1e-4)


def test_groups_count_by_how_much_their_rows_tell():
    """Alone: as their rows. With graphs of their own: much the same, however many rows there are."""
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(60), np.tile([2, 60], 30))
    f = rng.normal(size=(60, 1))[label]
    rows = Rows(np.flatnonzero(np.diff(label, prepend=-1)), len(label), True, False)

    def ratio(own):
        X = chain(rng, len(label), own[label], p=4)
        nodes = cleaned_nodes(X, functions_of({"f": f[:, 0]}, 1), rows.starts)
        found = GroupScores.of(nodes, f - f.mean(), np.empty((len(label), 0)), rows)
        moved = found.functions(np.arange(len(label)))
        np.testing.assert_allclose(moved.sum(axis=0), 0, atol=1e-4)
        return found.weights[1] / found.weights[0]

    assert 4 < ratio(np.full(60, 0.5)) <= np.sqrt(30)
    assert 1 < ratio(rng.choice([-2.0, 2.0], 60)) < 2


@pytest.mark.parametrize(
    ("shape", "where"),
    [
        ("one", {"a": [0.3]}),
        ("product", {"a": [0.0], "b": [0.0]}),
        ("stairs", {"a": [-0.5, 0.0, 0.5]}),
        ("wave", {}),
        ("none", {}),
    ],
)
def test_jumps_of_means_are_found_where_they_are(shape, where):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, size=(2, 400))
    curve = {
        "one": 2 * (a > 0.3),
        "product": 2 * np.sign(a * b),
        "stairs": 4 * np.floor(2 * (a + 1)),
        "wave": 2 * np.sin(6 * a),
        "none": 0 * a,
    }[shape]
    found = jumps_of(chain(rng, 400, 0.5) + curve[:, None], pd.DataFrame({"a": a, "b": b}))
    assert {name: len(at) for name, at in found.items()} == {name: len(at) for name, at in where.items()}
    for name, at in where.items():
        np.testing.assert_allclose(found[name], at, atol=0.03)


def test_a_series_that_hardly_changes_is_refused_with_the_reason():
    rng = np.random.default_rng(0)
    trend = np.linspace(0, 1, 300)
    found = gf.dependence_test(
        chain(rng, 300, 0.5), pd.DataFrame({"trend": trend}), time=np.arange(300), **FEW
    )
    assert found.verdict == "not known"
    assert found.p_value is None
    assert "trend changes so slowly" in found.sentence
    assert "at least 8" in found.sentence


def share_allowed(n, level=0.05):
    """The share of p-values up to ``level`` that a valid test exceeds once in a thousand times."""
    return binom.ppf(0.999, n, level) / n


def p_values(make, n_sets, covariate=None):
    found = []
    for seed in range(n_sets):
        X, Z, keys = make(np.random.default_rng(700 + seed))
        wanted = [] if covariate is None else [covariate]
        answer = gf.dependence_test(X, Z, covariates=wanted, n_permutations=99, random_state=seed, **keys)
        found.append(answer.p_value if covariate is None else answer.covariates.p_value[covariate])
    return np.array(found)


@pytest.mark.slow
def test_rare_levels_that_differ_in_means_and_scales_are_no_evidence():
    def make(rng):
        code = rare_levels(rng)
        X = (
            chain(rng, 300, 0.5) * np.exp(rng.uniform(-1, 1, (3, 6)))[code]
            + 2 * rng.normal(size=(3, 6))[code]
        )
        return X, pd.DataFrame({"site": np.array(list("abc"))[code]}), {}

    assert np.mean(p_values(make, 80) <= 0.05) <= share_allowed(80)


@pytest.mark.slow
def test_a_covariate_that_others_make_up_for_is_no_evidence():
    def make(rng):
        a, b = rng.normal(size=(2, 500))
        c = 0.6 * (a + b + rng.normal(size=500))
        return chain(rng, 500, 0.8 * np.tanh(a * b)), pd.DataFrame({"a": a, "b": b, "c": c}), {}

    assert np.mean(p_values(make, 60, "c") <= 0.05) <= share_allowed(60)


@pytest.mark.slow
def test_a_mean_that_is_a_product_of_three_is_no_evidence():
    def make(rng):
        Z = rng.uniform(-1, 1, size=(500, 3))
        return chain(rng, 500, 0.5) + 10 * Z.prod(axis=1)[:, None] * rng.normal(size=6), Z, {}

    assert np.mean(p_values(make, 60) <= 0.05) <= share_allowed(60)


@pytest.mark.filterwarnings("ignore:Groups have levels of their own")  # by chance, in some sets
@pytest.mark.slow
@pytest.mark.parametrize("moving", [0.0, 0.25])
def test_groups_of_very_different_size(moving):
    """It used to reject nothing, whether or not there was something."""

    def make(rng):
        label = np.repeat(np.arange(24), rng.integers(2, 81, size=24))
        z = rng.normal(size=24)
        own = 0.4 + 0.1 * rng.normal(size=24) + moving * z
        return chain(rng, len(label), own[label]), pd.DataFrame({"z": z[label]}), {"groups": label}

    found = p_values(make, 40)
    if moving:
        assert np.mean(found <= 0.05) > 0.6
    else:
        assert np.mean(found <= 0.05) <= share_allowed(40)
        assert 0.3 < np.mean(found) < 0.7


@pytest.mark.filterwarnings("ignore:Groups have levels of their own")  # by chance, in some sets
@pytest.mark.slow
def test_a_level_that_few_groups_have_is_no_evidence_given_others():
    def make(rng):
        label = np.repeat(np.arange(150), rng.integers(2, 5, size=150))
        code = rng.permutation(np.repeat([0, 1, 2], [144, 4, 2]))[label]
        Z = pd.DataFrame({"age": rng.normal(size=150)[label], "site": np.array(list("abc"))[code]})
        return chain(rng, len(label), (0.4 + 0.15 * rng.normal(size=150))[label]), Z, {"groups": label}

    assert np.mean(p_values(make, 80, "site") <= 0.05) <= share_allowed(80)


@pytest.mark.slow
def test_means_that_jump_are_no_evidence():
    def make(rng):
        Z = rng.uniform(-1, 1, size=(500, 3))
        curve = np.sign(Z[:, 0] * Z[:, 1]) * np.exp(Z[:, 2])
        return chain(rng, 500, 0.5) + 2 * curve[:, None] * rng.normal(size=6), Z, {}

    assert np.mean(p_values(make, 60) <= 0.05) <= share_allowed(60)
