"""How many rows: the search, the curve, pilots, and that a plan holds in fresh tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.inference.planned_truth import PilotField
from graphfield.inference.planning import _search
from graphfield.inference.sample_plan import needed_rows, plan_from
from graphfield.simulate.gaussian import GaussianField


def pilot_data(n=200, seed=0):
    rng = np.random.default_rng(seed)
    Z = pd.DataFrame({"age": rng.uniform(20, 80, n)})
    X = rng.normal(size=(n, 4))
    X[:, 1] += 0.8 * X[:, 0]
    X[:, 3] += (Z["age"].to_numpy() - 50) / 30 * X[:, 2]
    return X, Z


@pytest.fixture(scope="module")
def pilot():
    X, Z = pilot_data()
    return gf.RegGMM().fit(X, Z), Z


@pytest.mark.parametrize(
    ("slope", "tried"), [(2_000, [250, 500, 1_000, 2_000, 1_414]), (160, [250, 125, 177])]
)
def test_the_search_ends_around_the_power(slope, tried):
    search, sizes, n = _search(0.8, 20_000), [], None
    while True:
        try:
            n = search.send(None if n is None else min(1.0, n / slope))
        except StopIteration:
            break
        sizes.append(n)
    assert sizes == tried


def test_a_size_that_is_hardly_enough_is_not_the_last():
    search = _search(0.8, 20_000)
    assert [next(search), search.send(0.82), search.send(0.5), search.send(0.7)] == [250, 125, 177, 500]


def test_the_search_gives_up_at_the_most_rows():
    search = _search(0.8, 900)
    assert [next(search), search.send(0.1), search.send(0.2)] == [250, 500, 900]
    with pytest.raises(StopIteration):
        search.send(0.3)


def test_needed_rows_are_where_a_rising_curve_crosses():
    sizes = np.array([100, 200, 400])
    assert needed_rows(sizes, np.array([0.2, 0.6, 1.0]), 0.6) == pytest.approx(200)
    assert needed_rows(sizes, np.array([0.2, 0.6, 1.0]), 0.8) == pytest.approx(200 * 2**0.5)
    assert needed_rows(sizes, np.array([0.9, 0.95, 1.0]), 0.8) == 100
    assert np.isinf(needed_rows(sizes, np.array([0.1, 0.3, 0.2]), 0.8))
    assert needed_rows(sizes, np.array([0.8, 0.6, 1.0]), 0.85) == pytest.approx(200 * 2**0.5)  # chance


def test_a_plan_says_how_sure_it_is():
    rng = np.random.default_rng(0)
    outcomes = {n: np.column_stack([rng.normal(n / 1_000, 0.05, 8), np.full(8, 0.1)]) for n in (500, 1_000)}
    about = {"fdr": 0.1, "question": "edges", "subject": "setting X", "n_true": 3}
    plan = plan_from(outcomes, 0.75, 0, **about)
    assert 600 < plan.low <= plan.n_rows <= plan.high < 850
    assert f"takes about {plan.n_rows:,} rows" in repr(plan)
    enough = plan_from({n: np.ones((3, 2)) for n in (100, 200)}, 0.8, 0, **about).summary()
    assert "takes 100 rows or fewer: with 100, the fewest that were tried, 100% are found" in enough
    assert "interval" not in enough
    hardly = plan_from({100: np.array([[1.0, 0], [0.6, 0]]), 200: np.ones((2, 2))}, 0.8, 0, **about).summary()
    assert "100 rows or fewer (95 % interval over simulated tables: up to 1" in hardly
    never = plan_from({500: np.zeros((4, 2))}, 0.8, 0, **about)
    assert never.n_rows is None
    assert "more rows than were tried: with 500 rows 0% are found" in never.summary()


def test_rows_of_a_pilot_have_its_edges(pilot):
    """Moments of what is drawn at one z against the precision there."""
    model, _ = pilot
    field = PilotField(model.field_, pd.DataFrame({"age": [70.0]}), 0.2)
    rows = field.covariates(20_000, np.random.default_rng(0))
    X = field.sample(rows, np.random.default_rng(1))
    expected = np.linalg.inv(field.precision(rows.iloc[:1])[0])
    assert np.allclose(np.diag(expected), 1)
    assert np.allclose(np.cov(X.T), expected, atol=0.04)
    shown = model.predict_graph(rows.iloc[:1], threshold=0.2)[0]
    assert (field.skeleton(rows.iloc[:1])[0] == shown).all()


@pytest.mark.slow
def test_a_plan_from_a_pilot_is_reproducible_and_counts_what_it_should(pilot):
    model, Z = pilot
    keys = {"Z": Z, "sizes": [80], "n_sets": 2, "threshold": 0.2, "random_state": 0}
    plan, again = (gf.plan_samples(model, **keys) for _ in range(2))
    pd.testing.assert_frame_equal(plan.curve, again.curve)
    assert plan.n_true == len(plan.true_pairs) == 2
    assert plan.true_pairs[0] in plan.summary()
    assert gf.plan_samples(model, question="varying", least=0.2, **keys).n_true == 1
    assert plan.curve.power.iloc[-1] >= 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"power": 1.0}, "power must be"),
        ({"question": "edge"}, "question must be one of"),
        ({"Z": None}, "Z is needed for a fitted model"),
        ({"source": "G3"}, "Z is for a fitted model"),
        ({"source": "G3", "Z": None}, "Unknown setting 'G3'"),
        ({"source": 3}, "A fitted model, its field, or the name of a setting"),
        ({"sizes": [10]}, "sizes must be"),
        ({"sizes": 500}, "list of numbers of rows"),
        ({"least": 0.99}, "no edge of size 0.99 in the fitted model"),
        ({"n_sets": 1}, "n_sets must be"),
    ],
)
def test_bad_input(pilot, change, message):
    model, Z = pilot
    keys = {"source": model, "Z": Z, "threshold": 0.2, **change}
    with pytest.raises(gf.GraphfieldError, match=message):
        gf.plan_samples(keys.pop("source"), **keys)


def test_a_setting_without_sizes():
    with pytest.raises(gf.ParameterError, match="sizes of the edges of setting D2 are not known"):
        gf.plan_samples("D2", least=0.1)


class Chain(GaussianField):
    """Eight nodes, each with an edge of .2 to the next; two of them come and go with z."""

    candidates = np.zeros((1, 8, 8))

    def covariates(self, n_samples, rng):
        return rng.uniform(-1, 1, (n_samples, 1))

    def regime(self, Z):
        return np.zeros(len(Z), dtype=np.int64)

    def skeleton(self, Z):
        return self.precision(Z) * (1 - np.eye(8)) != 0

    def precision(self, Z):
        precision = np.tile(np.eye(8), (len(Z), 1, 1))
        for j in range(7):
            size = 0.4 * (Z[:, 0] > 0) if j < 2 else 0.2
            precision[:, j, j + 1] = precision[:, j + 1, j] = size
        return precision


@pytest.mark.slow
def test_a_plan_holds_in_fresh_tables():
    """Power at the planned number of rows in tables that took no part: .8, to what chance allows."""
    field = Chain()
    Z = field.covariates(10, np.random.default_rng(0))
    sim = gf.Simulation("chain", field.sample(Z, np.random.default_rng(1)), Z, field)
    plan = gf.plan_samples(sim, n_sets=25, random_state=0)
    assert plan.n_rows is not None
    upper = np.triu_indices(8, 1)
    there, fresh = field.skeleton(np.array([[-0.5], [0.5]]))[:, *upper].any(axis=0), []
    for seed in range(40):
        covariate_rng, noise_rng = np.random.default_rng(1_000 + seed).spawn(2)
        Z = field.covariates(plan.n_rows, covariate_rng)
        X = field.sample(Z, noise_rng)
        found = gf.infer_edges(X, Z, covariates=[], random_state=seed).table.q_value.to_numpy() <= 0.1
        fresh.append((found & there).sum() / there.sum())
    # Standard errors: .03 of the plan, .025 of the fresh tables.
    assert np.mean(fresh) == pytest.approx(0.8, abs=0.1)
