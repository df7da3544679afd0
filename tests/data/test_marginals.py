"""Nodes as they are or as normal scores: the map, the choice, and models of either."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import graphfield as gf
from conftest import FULL, small_data
from conftest import SMALL as SHORT
from graphfield.cli import main
from graphfield.data.covariates import CovariateEncoder, features
from graphfield.data.frames import as_frame
from graphfield.data.marginals import MAX_KNOTS, NormalScores, normal_scores
from graphfield.data.splits import group_labels, hold_out
from graphfield.estimators import dnncgm
from graphfield.solvers import marginal_choice
from graphfield.solvers.marginal_choice import FEWEST_GROUPS, FEWEST_ROWS, MarginalCheck, prefer_normal_scores

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")
SMALL = {**SHORT, "max_steps": 15}
NORMAL = {**SMALL, "marginals": "normal"}
# The head that is fitted soonest.
QUICK = {**SHORT, "rank": None}
QUICK_NORMAL = {**QUICK, "marginals": "normal"}


def chain(n: int = 1_500, p: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian nodes, each following the one before it; covariates that change the strength a little."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1, 1, (n, 2))
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] += (0.6 + 0.3 * Z[:, 0]) * X[:, j - 1]
    return X, Z


def preferred(X: np.ndarray, Z: object = None, groups: np.ndarray | None = None) -> MarginalCheck:
    """The check as a model makes it; without Z, of relations that are the same for all rows."""
    if Z is None:
        return prefer_normal_scores(X, np.ones((len(X), 1)), groups)
    frame = as_frame(Z, "Z")
    encoder = CovariateEncoder().fit(frame)
    return prefer_normal_scores(X, features(encoder, encoder.transform(frame)), groups)


SHAPES = {"exp": np.exp, "cube": lambda X: X**3}


# -- the map ------------------------------------------------------------------------------------------


def table(n: int) -> np.ndarray:
    """Smooth, skewed, with many ties, of two values, constant, of another size altogether."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=n)
    columns = [x, np.exp(2 * x), x.round(1), np.sign(x), np.full(n, 0.1), 1e6 + 1e-2 * x**3]
    return np.column_stack(columns)


@pytest.mark.parametrize("n", [40, 5_000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_there_and_back(n, dtype):
    X = table(n).astype(dtype)
    scores = NormalScores.learn(X)
    there = scores.transform(X)
    assert there.dtype == np.float64
    np.testing.assert_allclose(scores.restore(there), X, rtol=1e-9)
    assert scores.transform(X, np.float32).dtype == np.float32
    counts = np.diff(scores.offsets)
    assert counts.max() == min(n, MAX_KNOTS)
    assert counts[3:5].tolist() == [2, 1]
    assert len(scores.knots) == len(scores.targets) == counts.sum()


@pytest.mark.parametrize("n", [40, 5_000])
def test_scores_are_normal_with_the_mean_and_spread_of_the_node(n):
    X = table(n)
    there = NormalScores.learn(X).transform(X)
    np.testing.assert_allclose(there.mean(axis=0), X.mean(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(there.std(axis=0), X.std(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(there[:, 4], X[:, 4], "a constant node maps to itself")
    expected = normal_scores(X)
    for j in (0, 1, 2, 3, 5):
        wanted = (expected[:, j] - expected[:, j].mean()) / expected[:, j].std()
        found = (there[:, j] - X[:, j].mean()) / X[:, j].std()
        exact = n <= MAX_KNOTS or j in (2, 3)
        np.testing.assert_allclose(found, wanted, atol=1e-6 if exact else 0.6)
        assert np.abs(found - wanted).mean() < 5e-3


def test_equal_values_get_the_middle_of_their_ranks():
    scores = NormalScores.learn(np.array([[1.0], [1.0], [2.0], [3.0]]))
    ranks = np.array([1.5, 3, 4]) / 5
    quantiles = norm.ppf(ranks)
    ratio = np.diff(quantiles)[1] / np.diff(quantiles)[0]
    assert np.diff(scores.targets)[1] / np.diff(scores.targets)[0] == pytest.approx(ratio)


def test_values_beyond_the_range_count_as_its_end():
    X = table(40)
    scores = NormalScores.learn(X)
    ends = scores.transform(np.stack([X.min(axis=0), X.max(axis=0)]))
    np.testing.assert_array_equal(scores.transform(np.stack([X.min(axis=0) - 5, X.max(axis=0) + 5])), ends)
    np.testing.assert_allclose(
        scores.restore(ends + np.array([[-9.0], [9.0]])), [X.min(axis=0), X.max(axis=0)], rtol=1e-12
    )


def test_the_map_is_increasing():
    X = table(5_000)[:, :3]
    scores = NormalScores.learn(X)
    fine = np.linspace(X.min(axis=0), X.max(axis=0), 2_000)
    assert (np.diff(scores.transform(fine), axis=0) > 0).all()


# -- the choice ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES)
def test_the_check_sees_the_shape_of_the_nodes(shape, seed):
    X, _ = chain(seed=seed)
    plain, bent = preferred(X), preferred(SHAPES[shape](X))
    assert not plain.prefers
    assert abs(plain.gain) < 0.002
    assert bent.prefers
    assert bent.gain > max(0.01, 3 * bent.standard_error)


def test_scores_of_the_scores_change_nothing():
    """Increasing transforms of nodes change neither ranks nor what normal scores predict."""
    X, _ = chain()
    bent = np.exp(X)
    raw, other = preferred(X), preferred(bent)
    scored = preferred(NormalScores.learn(bent).transform(bent))
    assert abs(scored.gain) < 0.002
    assert other.gain > 10 * abs(raw.gain)


@pytest.mark.parametrize("name", ["G1", "D1", "S1"])
def test_settings_whose_nodes_are_fine_as_they_are(name):
    sim = gf.make_setting(name, 2_000, 0)
    assert not preferred(sim.X, sim.Z).prefers


@pytest.mark.slow
@pytest.mark.parametrize("name", ["N1", "N2"])
def test_settings_seen_through_a_transform(name):
    sim = gf.make_setting(name, 8_000, 0)
    assert preferred(sim.X, sim.Z).prefers


def opposite(n: int, seed: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Skewed nodes, two of them related, in opposite ways at both ends of a covariate; the rest is noise."""
    rng = np.random.default_rng(seed)
    X, age = rng.normal(size=(n, 8)), rng.uniform(20, 80, n)
    X[:, 1] = 0.8 * (age - 50) / 30 * X[:, 0] + 0.6 * X[:, 1]
    return np.exp(1.2 * X), pd.DataFrame({"age": age})


@pytest.mark.parametrize("seed", range(3))
def test_relations_that_cancel_over_all_rows_are_seen(seed):
    X, Z = opposite(4_000, seed)
    assert preferred(X, Z).prefers
    assert not preferred(X).prefers
    assert not preferred(np.log(X), Z).prefers


def test_relations_by_category_are_seen():
    X, Z = opposite(4_000, 0)
    assert preferred(X, pd.DataFrame({"old": np.where(Z["age"] > 50, "yes", "no")})).prefers


@pytest.mark.parametrize("seed", range(3))
def test_extreme_values_that_go_together_are_not_hidden(seed):
    """Ranks see little of what one row in ten has in common, and much of the skewed other nodes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4_000, 8)) + 0.5 * rng.normal(size=(4_000, 1))
    X[:, 4:] = np.exp(0.8 * X[:, 4:])
    ill = rng.random(4_000) < 0.1
    X[ill, :4] += rng.exponential(8.0, size=(ill.sum(), 1))
    check = preferred(X)
    assert check.gain > 3 * check.standard_error
    assert check.hides
    assert not check.prefers


@pytest.mark.parametrize("held_out", [False, True])
def test_one_wild_value_does_not_decide(held_out, monkeypatch):
    """Among the rows to learn from it spoils relations; among held-out ones nothing is seen of it."""
    monkeypatch.setattr(marginal_choice, "_FEW_ROWS", 0)  # as with many rows
    X, W = np.random.default_rng(3).normal(size=(1_000, 4)).cumsum(axis=1), np.ones((1_000, 1))
    assert not prefer_normal_scores(X, W).prefers
    row = hold_out(1_000, 0.2, None, seed=0)[held_out][0]
    X[row, 2] = 30.0  # far out, but a small part of the variance
    assert not prefer_normal_scores(X, W).prefers
    X[row, 2] = 1e6
    check = prefer_normal_scores(X, W)
    assert check.prefers
    assert check.one_value_decides == held_out
    monkeypatch.undo()
    assert not prefer_normal_scores(X, W).one_value_decides, "of few rows, each is learned from"


def test_too_many_products_leave_relations_the_same_for_all_rows(monkeypatch):
    X, Z = opposite(1_000, 0)
    monkeypatch.setattr(marginal_choice, "MAX_PRODUCTS", 15)
    assert preferred(X, Z) == preferred(X)
    monkeypatch.setattr(marginal_choice, "MAX_PRODUCTS", 16)
    assert preferred(X, Z) != preferred(X)


def test_nodes_that_depend_on_no_other_count_little():
    """Twenty nodes of noise beside the chain change the gain by less than half."""
    X, _ = chain(3_000)
    bent = np.exp(np.hstack([X, np.random.default_rng(9).normal(size=(3_000, 20))]))
    assert preferred(bent).gain > 0.5 * preferred(np.exp(X)).gain
    assert not preferred(bent[:, 8:]).prefers


def test_too_few_rows_or_groups_to_tell():
    X, _ = chain(1_000)
    few = preferred(np.exp(X[:240]))
    assert not few.prefers
    assert np.isnan([few.gain, few.standard_error]).all()
    assert np.isfinite(preferred(np.exp(X[:250])).gain)
    groups = preferred(np.exp(X), groups=np.arange(1_000) % 49)
    assert np.isnan(groups.gain)
    assert (few.lacks, groups.lacks) == ("rows", "groups"), "1,000 rows are not few"
    assert np.isfinite(preferred(np.exp(X), groups=np.arange(1_000) % 50).gain)
    needs = f"needs {FEWEST_ROWS} rows, and {FEWEST_GROUPS} groups"
    assert needs in gf.DNNCGM.__doc__


def test_copies_of_rows_in_one_group_count_once():
    """Ten copies of each row do not make the evidence stronger when they are known to be copies."""
    X, _ = chain(600)
    copies, groups = np.repeat(np.exp(X), 10, axis=0), np.repeat(np.arange(600), 10)
    known, unknown = preferred(copies, groups=groups), preferred(copies)
    assert known.standard_error > 2 * unknown.standard_error


def test_a_small_but_certain_gain_is_not_enough(monkeypatch):
    X, _ = chain(3_000)
    bent = X + 0.02 * X**3
    check = preferred(bent)
    monkeypatch.setattr(marginal_choice, "_LEAST_GAIN", check.gain + 1e-6)
    monkeypatch.setattr(marginal_choice, "_EVIDENCE", -100.0)
    monkeypatch.setattr(marginal_choice, "_COUNTER_EVIDENCE", np.inf)
    assert not preferred(bent).prefers
    monkeypatch.setattr(marginal_choice, "_LEAST_GAIN", check.gain - 1e-6)
    assert preferred(bent).prefers


def test_a_node_that_is_constant_in_the_rows_to_learn_from(monkeypatch):
    monkeypatch.setattr(marginal_choice, "_FEW_ROWS", 0)  # one split
    X, _ = chain(400)
    train, held_out = hold_out(400, 0.2, None, seed=0)
    X[held_out, 3], X[held_out, 5] = np.arange(len(held_out)), 2.0
    checks = []
    for constant in (0.0, 0.1):
        X[train, 3] = constant
        checks.append(preferred(X))
    assert np.isfinite([checks[0].gain, checks[0].standard_error]).all()
    assert checks[1].gain == pytest.approx(checks[0].gain, abs=1e-4)


# -- models -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_auto_chooses_by_the_data():
    X, Z = chain()
    plain = gf.DNNCGM(**SMALL).fit(X, Z)
    bent = gf.DNNCGM(**SMALL).fit(np.exp(X), Z)
    assert (plain.marginals_, bent.marginals_) == ("raw", "normal")
    assert not plain.marginal_check_.prefers
    assert bent.marginal_check_ == preferred(np.exp(X), Z)
    told = gf.DNNCGM(**NORMAL).fit(np.exp(X), Z)
    assert told.marginal_check_ is None
    np.testing.assert_array_equal(told.predict_coef(Z), bent.predict_coef(Z))
    groups = np.arange(len(X)) // 3
    grouped = gf.DNNCGM(**SMALL).fit(np.exp(X), Z, groups=groups)
    assert grouped.marginal_check_ == preferred(np.exp(X), Z, group_labels(groups, X))


@pytest.mark.parametrize("params", [{"center": "none"}, {"standardize": False}], ids=str)
def test_auto_leaves_nodes_alone_that_are_not_standardised(params):
    X, Z = chain(400)
    model = gf.DNNCGM(**QUICK, **params).fit(X**3, Z)
    assert (model.marginals_, model.marginal_check_) == ("raw", None)


@pytest.mark.slow
def test_a_graph_of_scores_does_not_see_increasing_transforms():
    X, Z = chain(500)
    bent = X.copy()
    bent[:, 2], bent[:, 5] = np.exp(2 * X[:, 2]), 1_000 + X[:, 5] ** 3
    plain, other = (gf.DNNCGM(**NORMAL).fit(table, Z) for table in (X, bent))
    np.testing.assert_allclose(other.edge_weights(Z), plain.edge_weights(Z), rtol=1e-2, atol=1e-3)
    raw = [gf.DNNCGM(**SMALL, marginals="raw").fit(table, Z).edge_weights(Z) for table in (X, bent)]
    assert np.abs(raw[0] - raw[1]).max() > 0.05


@pytest.mark.slow
def test_predictions_have_the_nodes_own_units():
    X, Z = chain(800)
    X = 50 + 3 * np.exp(X)
    model = gf.DNNCGM(**{**NORMAL, "max_steps": 200}).fit(X, Z)
    fitted = model.predict(X, Z)
    assert (fitted >= X.min(axis=0)).all()
    assert (fitted <= X.max(axis=0)).all()
    left, total = ((X - fitted) ** 2).sum(axis=0), ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    assert model.score(X, Z) == pytest.approx(float((1 - left / total).mean()))
    assert model.score(X, Z) > 0.1
    # The model itself speaks of scores: the same formula there, brought back by the map.
    scores = NormalScores.learn(X)
    values, mean = scores.transform(X), model.field_.at(Z).offsets
    inside = mean + np.einsum("ijk,ik->ij", model.predict_coef(Z), values - mean)
    np.testing.assert_allclose(fitted, scores.restore(inside), rtol=1e-5)
    np.testing.assert_allclose(inside.mean(axis=0), X.mean(axis=0), rtol=0.02)


def test_repeated_rows_are_predicted_as_alone(monkeypatch):
    X, Z = chain(300)
    model = gf.DNNCGM(**QUICK_NORMAL).fit(np.exp(X), Z)
    repeated = Z[np.arange(300) % 7]
    whole = model.predict(np.exp(X), repeated)
    for row in (0, 8, 299):
        alone = model.predict(np.exp(X[[row]]), repeated[[row]])
        np.testing.assert_allclose(whole[row], alone[0], rtol=1e-6)
    score = model.score(np.exp(X), repeated)
    monkeypatch.setattr("graphfield.fields.streaming._JOINED_ENTRIES", 100)
    np.testing.assert_array_equal(model.predict(np.exp(X), repeated), whole)
    assert model.score(np.exp(X), repeated) == pytest.approx(score)


def test_a_float32_table_gives_the_same_graphs():
    X, Z = chain(400)
    X = np.exp(X).astype(np.float32)
    single, double = (gf.DNNCGM(**QUICK_NORMAL).fit(table, Z) for table in (X, X.astype(np.float64)))
    np.testing.assert_allclose(single.edge_weights(Z), double.edge_weights(Z), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(single.predict(X, Z), double.predict(X, Z), rtol=1e-3, atol=1e-3)


def test_save_and_load_give_the_same_bits(tmp_path):
    X, Z = chain(600)
    model = gf.DNNCGM(**QUICK).fit(np.exp(X), Z)
    again = gf.load(model.save(tmp_path / "m"))
    assert (again.marginals_, again.marginal_check_) == ("normal", model.marginal_check_)
    np.testing.assert_array_equal(again.predict(np.exp(X), Z), model.predict(np.exp(X), Z))
    np.testing.assert_array_equal(again.predict_coef(Z), model.predict_coef(Z))
    raw = gf.DNNCGM(**QUICK).fit(*small_data())
    back = gf.load(raw.save(tmp_path / "raw"))
    assert back.marginals_ == "raw"
    assert np.isnan(back.marginal_check_.gain)
    assert not back.marginal_check_.prefers


def test_models_that_train_together_share_the_choice():
    X, Z = chain()
    X = np.exp(X)
    params = {**FULL, "max_steps": 10, "network": "residual-plain"}
    alone = gf.DNNCGM(**params).fit(X, Z)
    together = gf.fit_together([gf.DNNCGM(**params), gf.DNNCGM(**{**params, "penalty": 0.2})], X, Z)
    assert [model.marginals_ for model in together] == ["normal", "normal"]
    assert together[1].marginal_check_ == alone.marginal_check_
    np.testing.assert_allclose(together[0].predict_coef(Z), alone.predict_coef(Z), rtol=1e-2, atol=2e-3)
    np.testing.assert_allclose(together[0].predict(X, Z), alone.predict(X, Z), rtol=1e-2, atol=0.02)


def test_own_held_out_rows_go_through_the_same_map(monkeypatch):
    X, Z = chain(500)
    seen = []
    original = dnncgm.make_samples

    def spy(X, *others):
        seen.append(X)
        return original(X, *others)

    monkeypatch.setattr(dnncgm, "make_samples", spy)
    gf.DNNCGM(**QUICK_NORMAL).fit(np.exp(X[:400]), Z[:400], X_val=np.exp(X[400:]), Z_val=Z[400:])
    held_out = seen[0][400:]
    assert np.abs(held_out.mean(axis=0)).max() < 0.5
    assert np.abs(held_out).max() < 3.1, "no score beyond those of the 400 rows"
    assert np.abs(((held_out - held_out.mean(axis=0)) ** 3).mean(axis=0)).max() < 0.8, "not skewed"


def test_a_start_must_be_of_the_same_kind():
    X, Z = chain()
    X = np.exp(X)
    first = gf.DNNCGM(**QUICK).fit(X, Z)
    raw = gf.DNNCGM(**{**QUICK, "marginals": "raw"})
    with pytest.raises(gf.DataError, match=r"start is a model of normal scores.*marginals='normal'"):
        raw.fit(X, Z, start=first)
    later = gf.DNNCGM(**QUICK).fit(X[:200], Z[:200], start=first)  # too few rows to choose: as the start
    assert (later.marginals_, later.marginal_check_) == ("normal", None)
    with pytest.raises(gf.DataError, match="start is a model of nodes as they are"):
        gf.DNNCGM(**QUICK_NORMAL).fit(X, Z, start=raw.fit(X, Z))


def test_marginals_are_part_of_what_a_checkpoint_belongs_to(tmp_path):
    X, Z = small_data()
    gf.DNNCGM(**QUICK).fit(X, Z, checkpoint=tmp_path / "c")
    with pytest.raises(gf.ModelFileError, match="another fit"):
        gf.DNNCGM(**QUICK_NORMAL).fit(X, Z, checkpoint=tmp_path / "c", resume=True)


@pytest.mark.slow
def test_a_refit_forgets_the_scores():
    X, Z = chain(300)
    model = gf.DNNCGM(**NORMAL).fit(np.exp(X), Z)
    model.set_params(marginals="raw").fit(X, Z)
    assert model.marginals_ == "raw"
    np.testing.assert_array_equal(
        model.predict(X, Z), gf.DNNCGM(**SMALL, marginals="raw").fit(X, Z).predict(X, Z)
    )


def test_models_of_scores_within_clusters(tmp_path):
    """Each cluster has a map of its own; predictions are those of the model of the cluster."""
    X, Z = chain(400)
    X = np.exp(X)
    Z = pd.DataFrame({"z": Z[:, 0], "site": np.where(np.arange(400) % 2, "A", "B")})
    model = gf.ByCluster(estimator=gf.DNNCGM(**QUICK_NORMAL)).fit(X, Z)
    fitted = model.predict(X, Z)
    for site, part in model.models_.items():
        rows = (Z.site == site).to_numpy()
        np.testing.assert_allclose(fitted[rows], part.predict(X[rows], Z.loc[rows, ["z"]]), rtol=1e-6)
    again = gf.load(model.save(tmp_path / "m"))
    np.testing.assert_array_equal(again.predict(X, Z), fitted)


# -- said aloud ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "n", "options", "said"),
    [
        (np.exp, 1_500, [], "Nodes: normal scores (they predict held-out rows better than raw values, by 0."),
        (
            np.array,
            1_500,
            [],
            "Nodes: as they are (normal scores ",
        ),
        (np.array, 100, [], "Nodes: as they are (fewer than 250 rows are too few to tell"),
        (np.array, 300, ["--group", "g"], "Nodes: as they are (fewer than 50 groups or "),
        (np.array, 100, ["--set", "marginals=normal"], "Nodes: normal scores.\n"),
    ],
    ids=["bent", "plain", "few", "grouped", "told"],
)
def test_fit_says_what_it_chose(tmp_path, capsys, shape, n, options, said):
    X, Z = chain(n)
    frame = pd.DataFrame(np.column_stack([shape(X), Z]), columns=[*(f"x{j}" for j in range(8)), "z1", "z2"])
    frame.assign(g=np.arange(n) % 25).to_csv(tmp_path / "t.csv", index=False)
    fast = [
        "--nodes=x*",
        *(f"--set={name}={value}" for name, value in QUICK.items() if name != "random_state"),
    ]
    out = tmp_path / "m"
    arguments = ["fit", str(tmp_path / "t.csv"), "--covariates", "z*", "--out", str(out), "--no-verdict"]
    assert main([*arguments, *fast, *options]) == 0
    assert said in capsys.readouterr().out
    summary = json.loads((out / "fit.json").read_text())
    assert summary["marginals"] == gf.load(out).marginals_
    assert (summary["normal_scores_gain"] is None) == (n <= 300)
