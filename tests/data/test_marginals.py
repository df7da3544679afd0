"""Nodes as they are or as normal scores: the map, and models of either."""

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
from graphfield.data.marginals import MAX_KNOTS, NormalScores, normal_scores
from graphfield.data.splits import group_labels
from graphfield.estimators import dnncgm
from solver_cases import as_fitted, chain, preferred

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")
SMALL = {**SHORT, "max_steps": 15}
NORMAL = {**SMALL, "marginals": "normal"}
# The head that is fitted soonest.
QUICK = {**SHORT, "rank": None}
QUICK_NORMAL = {**QUICK, "marginals": "normal"}


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


# -- models -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_auto_chooses_by_the_data():
    X, Z = chain()
    plain = gf.DNNCGM(**SMALL).fit(X, Z)
    bent = gf.DNNCGM(**SMALL).fit(np.exp(X), Z)
    assert (plain.marginals_, bent.marginals_) == ("raw", "normal")
    assert not plain.marginal_check_.prefers
    assert bent.marginal_check_ == preferred(*as_fitted(bent, np.exp(X), Z))
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
    assert main([*arguments, *fast, *options, "--details"]) == 0
    assert said in capsys.readouterr().out
    summary = json.loads((out / "fit.json").read_text())
    assert summary["marginals"] == gf.load(out).marginals_
    assert (summary["normal_scores_gain"] is None) == (n <= 300)
