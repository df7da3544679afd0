"""How sure answers are: columns from the members of an ensemble, against loops over them and chance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

import graphfield as gf
from conftest import small_data
from graphfield import analysis as an
from graphfield.cli import main
from graphfield.fields import average

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")
ERRORS = ["standard_error", "interval_low", "interval_high"]
KEYS = ["source", "target"]


def resampled(n_members: int = 6, seed: int = 0) -> gf.Ensemble:
    return gf.Ensemble(estimator=gf.RegGMM(), n_members=n_members, resample=True, random_state=seed)


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, pd.DataFrame]:
    return small_data(n=300)


@pytest.fixture(scope="module")
def model(data) -> gf.Ensemble:
    return resampled().fit(*data)


@pytest.fixture(scope="module")
def ends(data) -> tuple[dict, dict]:
    """The first and last age: no member can have drawn rows beyond, most have not drawn these."""
    Z = data[1].sort_values("age")
    return dict(Z.iloc[0]), dict(Z.iloc[-1])


def at_pairs(table: pd.DataFrame, matrices, names) -> np.ndarray:
    """(..., p, p) at the pairs of the rows of a table."""
    j, k = (table[side].map(names.index).to_numpy() for side in KEYS)
    return np.asarray(matrices, dtype=np.float64)[..., j, k]


def test_a_difference_has_the_standard_error_of_the_members(model, ends):
    table = an.compare(model, *ends)
    assert table.columns.tolist() == [*KEYS, "first", "second", "difference", *ERRORS]
    both = pd.DataFrame(ends)
    changes = []
    for member in model.members_:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *_, **__: None)  # members know of fewer rows
            first, second = member.partial_correlations(both)
        changes.append(at_pairs(table, second.astype(np.float64) - first, model.node_names_))
    error = np.std(changes, axis=0, ddof=1)
    np.testing.assert_allclose(table["standard_error"], error, atol=1e-6)
    reach = student(5).ppf(0.975) * error
    np.testing.assert_allclose(table["interval_low"], table["difference"] - reach, atol=1e-5)
    np.testing.assert_allclose(table["interval_high"], table["difference"] + reach, atol=1e-5)
    assert table["difference"].abs().is_monotonic_decreasing


def test_exchanging_the_two_values_turns_the_difference_and_keeps_its_error(model, ends):
    forth, back = (an.compare(model, *pair).set_index(KEYS).sort_index() for pair in (ends, ends[::-1]))
    np.testing.assert_array_equal(forth["difference"], -back["difference"])
    np.testing.assert_array_equal(forth["first"], back["second"])
    np.testing.assert_allclose(forth["standard_error"], back["standard_error"], atol=1e-12)
    np.testing.assert_allclose(forth["interval_low"], -back["interval_high"], atol=1e-12)
    same = an.compare(model, ends[0], ends[0])
    assert (same[["difference", *ERRORS]] == 0).all(axis=None)


@pytest.mark.parametrize("n_bytes", [average._MEMBER_BYTES, 7 * 4 * 36])
def test_curves_have_the_standard_error_of_the_members_curves(model, data, monkeypatch, n_bytes):
    monkeypatch.setattr(average, "_MEMBER_BYTES", n_bytes)  # all rows at a time, or seven
    Z = data[1].iloc[:40]
    edges = [("n1", "n0"), ("n2", "n4")]
    for along in ("age", "site"):
        table = an.edge_curves(model, along, Z, edges, n_points=4, n_rows=None)
        assert table.columns.tolist()[-3:] == ERRORS
        for (source, target), part in table.groupby(KEYS, sort=False):
            j, k = (model.node_names_.index(name) for name in (source, target))
            curves = [
                [member.partial_correlations(Z.assign(**{along: value}))[:, j, k].mean(dtype=np.float64)]
                for member in model.members_
                for value in part["value"]
            ]
            error = np.std(np.reshape(curves, (6, len(part))), axis=0, ddof=1)
            np.testing.assert_allclose(part["standard_error"], error, atol=1e-6)
        middle = (table["interval_low"] + table["interval_high"]) / 2
        np.testing.assert_allclose(middle, table["partial_correlation"], atol=1e-6)


@pytest.mark.parametrize("n_bytes", [average._MEMBER_BYTES, 7 * 4 * 36])
def test_variation_has_the_error_of_its_mean_and_what_chance_would_show(model, data, monkeypatch, n_bytes):
    monkeypatch.setattr(average, "_MEMBER_BYTES", n_bytes)
    Z = pd.concat([data[1].iloc[:40]] * 2 + [data[1].iloc[:10]])
    table = an.varying_edges(model, Z, n_rows=None)
    partial = np.stack([member.partial_correlations(Z) for member in model.members_])
    values = at_pairs(table, partial, model.node_names_)  # (members, rows, pairs)
    means = values.mean(axis=1)
    np.testing.assert_allclose(table["standard_error"], means.std(axis=0, ddof=1), atol=1e-6)
    departures = values - means[:, None]
    by_chance = np.sqrt(departures.var(axis=0, ddof=1).mean(axis=0))
    np.testing.assert_allclose(table["by_chance"], by_chance, atol=1e-6)


def test_members_that_saw_the_same_rows_give_a_spread_and_no_standard_error(data, ends):
    X, Z = data
    tree = gf.TreeCGM(max_leaves=2)
    model = gf.Ensemble(estimator=tree, n_members=3, random_state=0).fit(X, Z)
    table = an.compare(model, *ends)
    assert table.columns.tolist() == [*KEYS, "first", "second", "difference", "spread"]
    both = pd.DataFrame(ends)
    graphs = [member.partial_correlations(both).astype(np.float64) for member in model.members_]
    changes = [at_pairs(table, second - first, model.node_names_) for first, second in graphs]
    np.testing.assert_allclose(table["spread"], np.std(changes, axis=0, ddof=1), atol=1e-6)
    assert an.edge_curves(model, "age", Z, n_points=3).columns[-1] == "spread"
    assert an.varying_edges(model, Z).columns[-1] == "spread"


def test_one_fit_has_no_such_columns(data, ends):
    X, Z = data
    member = gf.RegGMM().fit(X, Z)
    added = {*ERRORS, "spread", "by_chance"}
    for table in (an.compare(member, *ends), an.edge_curves(member, "age", Z), an.varying_edges(member, Z)):
        assert not added & set(table.columns)


def test_a_saved_ensemble_gives_the_same_errors(model, ends, tmp_path):
    loaded = gf.load(model.save(tmp_path / "model"))
    pd.testing.assert_frame_equal(an.compare(loaded, *ends), an.compare(model, *ends))


# -- against chance -----------------------------------------------------------------------------

P = 6
CHAIN = np.zeros((P, P))
for i, size in enumerate((0.45, 0.3, -0.4, 0.0, 0.2)):
    CHAIN[i, i + 1] = CHAIN[i + 1, i] = size
CHANGE = np.zeros((P, P))
CHANGE[0, 1] = CHANGE[1, 0] = -0.3
CHANGE[3, 4] = CHANGE[4, 3] = 0.35


def two_groups(n: int, seed: int, change=CHANGE) -> tuple[np.ndarray, pd.DataFrame]:
    """Two halves whose partial correlations differ by ``change``; all residual variances are one."""
    rng = np.random.default_rng(seed)
    second = np.arange(n) % 2 == 1
    X = np.empty((n, P))
    for own, partial in ((~second, CHAIN), (second, CHAIN + change)):
        X[own] = rng.multivariate_normal(np.zeros(P), np.linalg.inv(np.eye(P) - partial), own.sum())
    return X, pd.DataFrame({"group": np.where(second, "b", "a")})


def differences(model) -> pd.DataFrame:
    return an.compare(model, {"group": "a"}, {"group": "b"}).set_index(KEYS).sort_index()


@pytest.mark.slow
def test_intervals_cover_a_known_change_and_errors_are_as_large_as_they_should_be():
    """Eight tables of 15 pairs each; the true error is the one of estimates from 50 other tables."""
    truth = CHANGE[np.triu_indices(P, 1)]
    found = [differences(resampled(20, seed).fit(*two_groups(400, seed))) for seed in range(8)]
    low, high = (np.array([table[end] for table in found]) for end in ERRORS[1:])
    covered = ((low <= truth) & (truth <= high)).mean()
    assert 0.9 <= covered <= 0.99
    estimates = [differences(gf.RegGMM().fit(*two_groups(400, 100 + seed))).difference for seed in range(50)]
    error = np.mean([table["standard_error"] for table in found], axis=0)
    np.testing.assert_allclose(error, np.std(estimates, axis=0, ddof=1), rtol=0.4)
    assert np.mean(error) == pytest.approx(np.mean(np.std(estimates, axis=0, ddof=1)), rel=0.1)


@pytest.mark.slow
def test_few_members_make_longer_intervals_and_still_cover():
    truth = CHANGE[np.triu_indices(P, 1)]
    found = [differences(resampled(4, seed).fit(*two_groups(400, seed))) for seed in range(12)]
    covered = np.mean([(table.interval_low <= truth) & (truth <= table.interval_high) for table in found])
    assert 0.88 <= covered <= 0.99


@pytest.mark.slow
def test_edges_that_stay_vary_by_chance_and_edges_that_move_by_more():
    ratios, moving = [], []
    for seed in range(4):
        X, Z = two_groups(400, seed)
        table = an.varying_edges(resampled(20, seed).fit(X, Z), Z).set_index(KEYS)
        ratio = (table["standard_deviation"] / table["by_chance"]) ** 2
        stays = [pair for pair in ratio.index if pair not in {("x1", "x2"), ("x4", "x5")}]
        ratios.append(ratio[stays].mean())
        moving += [ratio[("x1", "x2")], ratio[("x4", "x5")]]
    assert np.mean(ratios) == pytest.approx(1, abs=0.3)
    assert np.median(moving) > 5


def test_a_printed_comparison_shows_its_intervals(model, data, ends):
    """However narrow the terminal; what is computed from it is a plain table again."""
    first, second = ends
    tables = [
        an.compare(model, first, second),
        an.intervals_at(model, first),
        an.edge_curves(model, "age", data[1], most=1, n_points=3),
        an.varying_edges(model, data[1], n_rows=5, threshold=0.1),
    ]
    with pd.option_context("display.width", 40, "display.max_columns", 0):
        for table in tables:
            head = str(table).splitlines()[0].split()
            assert head == list(table.columns)
            assert repr(table) == str(table)
        assert "..." in str(tables[0].head(3)), "pandas would leave columns out"
    assert type(tables[0].head(3)) is pd.DataFrame


def test_intervals_at_one_value_are_those_of_the_members(model, ends):
    table = an.intervals_at(model, ends[0])
    assert (table.partial_correlation.abs().diff().dropna() <= 0).all(), "the strongest first"
    Z = pd.DataFrame([ends[0]])
    partial = at_pairs(table, model.partial_correlations(Z)[0], model.node_names_)
    np.testing.assert_allclose(table.partial_correlation, partial, atol=1e-6)
    spread = at_pairs(table, model.spread(Z)[0], model.node_names_)
    np.testing.assert_allclose(table.standard_error, spread, atol=1e-6)
    reach = student.ppf(0.975, len(model.members_) - 1) * table.standard_error
    np.testing.assert_allclose(table.interval_high, table.partial_correlation + reach, atol=1e-6)
    with pytest.raises(gf.ParameterError, match="rows drawn with replacement"):
        an.intervals_at(model.members_[0], ends[0])


def test_an_interval_at_a_rare_level_says_from_how_few_rows(data, tmp_path):
    X, Z = data
    Z = Z.assign(site=np.where(np.arange(len(Z)) < 4, "rare", Z["site"]))
    model = gf.load(resampled(3).fit(X, Z).save(tmp_path / "m"))
    rare, other = ({"age": 50.0, "site": level} for level in ("rare", "A"))
    for question in (
        lambda: an.intervals_at(model, rare),
        lambda: an.compare(model, other, rare),
        lambda: an.edge_curves(model, "site", Z, n_rows=20),
        lambda: an.edge_curves(model, "age", Z, n_rows=20, others={"site": "rare"}),
    ):
        with pytest.warns(gf.FewRowsWarning, match="site = 'rare' had 4 training rows.* too narrow"):
            question()
    an.intervals_at(model, other)  # warnings are errors here
    an.edge_curves(model, "age", Z, n_rows=20)
    an.varying_edges(model, Z)


def test_the_shell_says_from_how_few_rows_an_interval_is(tmp_path, capsys):
    X, Z = small_data(n=120, p=3)
    pd.concat([X, Z.assign(site=np.where(np.arange(120) < 4, "rare", "A"))], axis=1).to_csv(
        tmp_path / "t.csv"
    )
    fit = ["fit", tmp_path / "t.csv", "--covariates", "age,site", "--nodes", "n*", "--model", "linear"]
    fit += ["--no-verdict", "--intervals", "--members", "3", "--out", tmp_path / "m"]
    assert main([str(word) for word in fit]) == 0
    at = ["--at", "age=50", "--at", "site=rare", "--intervals"]
    assert main(["graph", str(tmp_path / "m"), *at]) == 0
    assert "note: site = 'rare' had 4 training rows" in capsys.readouterr().err
