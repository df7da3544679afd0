"""RegGMM with exact zeros: optimality, the choice of the penalty, recovery, files."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import graphfield as gf
from conftest import small_data
from graphfield.data.splits import fold_labels
from graphfield.metrics import auprc

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")

# skglm's solver is compiled in every process that first uses it: ten seconds and more.
compiles = pytest.mark.slow

RAW = {"center": "none", "standardize": False}


def sparse_group(**params) -> gf.RegGMM:
    return gf.RegGMM(penalty="sparse-group", **params)


def sparse_field(n: int, p: int = 12, q: int = 4, seed: int = 0):
    """A chain whose edges move with the first of q covariates, or not at all; the others are idle."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1, 1, (n, q))
    X = rng.normal(size=(n, p))
    skeleton = np.zeros((p, p), dtype=bool)
    for k in range(0, p - 1, 2):
        strength = 0.9 * Z[:, 0] if k % 4 == 0 else 0.5
        X[:, k + 1] += strength * X[:, k]
        skeleton[k, k + 1] = skeleton[k + 1, k] = True
    return X, Z, skeleton


@pytest.fixture(scope="module")
def chosen() -> gf.RegGMM:
    X, Z, _ = sparse_field(300)
    return sparse_group(n_folds=3).fit(X, Z)


def raw_problem() -> tuple[np.ndarray, pd.DataFrame, np.ndarray]:
    """Nodes, covariates, and by hand the features of a number and a category with three levels."""
    nodes, Z = small_data(150)
    X = ((nodes - nodes.mean()) / nodes.std()).to_numpy()
    Z["age"] = (Z["age"] - 50) / 17
    W = np.column_stack([np.ones(150), Z["age"], Z["site"] == "B", Z["site"] == "C"])
    return X, Z, W


@compiles
@pytest.mark.parametrize(
    ("mix", "penalty"),
    [(0.3, 0.04), (0.75, 0.06), (1.0, 0.08)],
)
def test_the_solution_is_optimal(mix, penalty):
    """Conditions of Karush, Kuhn and Tucker on the rows themselves, to 1e-5; no Gram matrix in sight."""
    X, Z, W = raw_problem()
    tolerance = 1e-5
    model = sparse_group(sparsity=penalty, mix=mix, **RAW).fit(X, Z)
    assert model.penalty_ == penalty
    zero_groups = 0
    for j in range(6):
        others = np.delete(np.arange(6), j)
        design = (W[:, :, None] * X[:, None, others]).reshape(150, -1)
        b = model.interactions_[:, j, others].ravel()
        gradient = design.T @ (X[:, j] - design @ b) / 150
        excess = gradient - penalty * mix * np.sign(b)
        inside = np.abs(gradient) <= penalty * mix + tolerance
        population, age, site = slice(0, 5), slice(5, 10), slice(10, 20)
        assert np.abs(excess[population][b[population] != 0]).max(initial=0) < tolerance
        assert inside[population][b[population] == 0].all()
        for group in (age, site):
            size = 5 if group is age else 10
            pull = penalty * (1 - mix) * np.sqrt(size)
            if not b[group].any():
                zero_groups += 1
                soft = np.maximum(np.abs(gradient[group]) - penalty * mix, 0)
                assert np.linalg.norm(soft) <= pull + tolerance
                continue
            on = b[group] != 0
            expected = pull * b[group] / np.linalg.norm(b[group])
            np.testing.assert_allclose(excess[group][on], expected[on], atol=tolerance)
            assert inside[group][~on].all()
    assert 0 < np.count_nonzero(model.interactions_) < 4 * 30
    assert 0 < zero_groups < 12


@compiles
def test_the_path_starts_where_the_graph_is_just_empty(chosen):
    X, Z, _ = sparse_field(300)
    top = chosen.cv_path_["penalty"].iloc[0]
    empty = sparse_group(sparsity=top).fit(X, Z)
    assert not empty.interactions_.any()
    assert not empty.predict_graph(Z[:3], threshold=0.0, rule="or").any()
    assert sparse_group(sparsity=0.99 * top).fit(X, Z).interactions_.any()


@compiles
def test_the_path_falls_and_holds_the_chosen_penalty(chosen):
    path = chosen.cv_path_
    assert list(path.columns) == ["penalty", "error", "standard_error"]
    assert (np.diff(path["penalty"]) < 0).all()
    assert chosen.penalty_ == path["penalty"][path["error"].argmin()]
    assert path["penalty"].iloc[-1] < chosen.penalty_ < path["penalty"].iloc[0]
    assert (path["standard_error"] > 0).all()


@compiles
def test_held_out_errors_are_those_of_fits_without_the_fold():
    """Each fold fitted and evaluated on its rows; the path itself never sees them."""
    X, Z, _ = raw_problem()
    model = sparse_group(n_folds=3, n_penalties=6, **RAW).fit(X, Z)
    folds = np.empty(len(X), dtype=int)
    folds[model._read_rows(X, Z, None, None, None).inputs.rows] = fold_labels(len(X), 3, None)
    for step in (1, len(model.cv_path_) - 1):
        penalty, error, spread = model.cv_path_.iloc[step]
        by_fold = np.empty(3)
        for fold in range(3):
            held_out = folds == fold
            part = sparse_group(sparsity=penalty, **RAW).fit(X[~held_out], Z[~held_out])
            by_fold[fold] = ((X - part.predict(X, Z))[held_out] ** 2).mean()
        assert error == pytest.approx(by_fold.mean(), rel=1e-3)  # folds of 50 rows each
        assert spread == pytest.approx(by_fold.std(ddof=1) / np.sqrt(3), rel=0.05)


@compiles
def test_idle_covariates_leave_as_a_whole(chosen):
    in_use = chosen.interactions_.any(axis=2)  # (feature, node)
    moving = np.array([k % 4 in (0, 1) for k in range(12)])
    assert in_use[1, moving].all()
    assert in_use[2:].mean() < 0.3


@compiles
def test_the_graph_at_threshold_zero_is_sparse(chosen):
    _, Z, skeleton = sparse_field(300)
    graph = chosen.predict_graph(Z[:50], threshold=0.0)
    assert graph[:, skeleton].mean() > 0.95
    assert graph[:, ~skeleton].mean() < 0.5  # measured .35; ridge has them all


@compiles
def test_a_category_leaves_with_all_its_levels():
    """Strong group part: a node keeps either both indicator columns of the site or none."""
    X, Z, _ = raw_problem()
    kept = sparse_group(sparsity=0.04, mix=0.1, **RAW).fit(X, Z).interactions_[2:].any(axis=2)
    np.testing.assert_array_equal(kept[0], kept[1])
    assert 0 < kept[0].sum() < 6


@compiles
@pytest.mark.parametrize("seed", [1, 2])
def test_recovery_beats_ridge(seed):
    X, Z, skeleton = sparse_field(150, p=10, q=8, seed=seed)
    truth = np.broadcast_to(skeleton, (50, 10, 10))
    ridge, sparse = (
        auprc(model.fit(X, Z).edge_weights(Z[:50]), truth).mean() for model in (gf.RegGMM(), sparse_group())
    )
    assert sparse > ridge + 0.2


def test_rows_of_one_group_share_a_fold():
    groups = np.repeat(np.arange(7), [1, 9, 2, 4, 4, 6, 3])
    folds = fold_labels(29, 3, groups)
    assert set(folds) == {0, 1, 2}
    assert all(len(set(folds[groups == g])) == 1 for g in range(7))
    counts = np.bincount(fold_labels(29, 3, None))
    assert counts.max() - counts.min() <= 1
    with pytest.raises(gf.ParameterError, match=r"n_folds=8 is more than there are groups \(7\)"):
        fold_labels(29, 8, groups)
    with pytest.raises(gf.ParameterError, match=r"n_folds=5 is more than there are rows \(4\)"):
        fold_labels(4, 5, None)


@compiles
def test_copies_of_rows_do_not_leak_into_the_held_out_error():
    """60 subjects, five copies each: without groups every held-out row was seen in training."""
    X, Z, _ = sparse_field(60, p=6)
    X, Z, subject = np.repeat(X, 5, axis=0), np.repeat(Z, 5, axis=0), np.repeat(np.arange(60), 5)
    honest = sparse_group(n_folds=3, n_penalties=8).fit(X, Z, groups=subject)
    leaking = sparse_group(n_folds=3, n_penalties=8).fit(X, Z)
    assert honest.cv_path_["error"].min() > leaking.cv_path_["error"].min() + 0.1
    assert honest.penalty_ > leaking.penalty_
    X[3, 0] = np.nan
    with pytest.warns(gf.DataWarning):
        dropped = sparse_group(n_folds=3, n_penalties=8, missing="drop").fit(X, Z, groups=subject)
    keep = np.arange(300) != 3
    complete = sparse_group(n_folds=3, n_penalties=8).fit(X[keep], Z[keep], groups=subject[keep])
    pd.testing.assert_frame_equal(dropped.cv_path_, complete.cv_path_)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"penalty": "sparse_group"}, "penalty must be one of.*Did you mean 'sparse-group'"),
        ({"sparsity": 0}, "sparsity must be 'cv' or a number above 0, got 0"),
        ({"sparsity": "auto"}, "sparsity must be 'cv' or a number"),
        ({"sparsity": None}, "sparsity must be 'cv' or a number"),
        ({"mix": 0.0}, r"mix must be a number in \(0, 1\]"),
        ({"mix": 1.1}, "mix must be"),
        ({"n_penalties": 1}, "n_penalties must be a whole number"),
        ({"n_folds": 2.5}, "n_folds must be a whole number"),
    ],
)
def test_bad_parameters(data, params, message):
    with pytest.raises(gf.ParameterError, match=message):
        gf.RegGMM(**params).fit(*data)


def test_without_skglm_the_message_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "graphfield.solvers.sparse_group", raising=False)
    monkeypatch.delattr("graphfield.solvers.sparse_group", raising=False)
    for name in [m for m in sys.modules if m.split(".")[0] == "skglm"] + ["skglm"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(gf.MissingDependencyError, match=r"pip install 'graphfield\[baselines\]'"):
        sparse_group().fit("not looked at", "either")
    gf.RegGMM().fit(*small_data())


@compiles
def test_a_solver_that_stops_early_says_so(monkeypatch):
    X, Z, _ = sparse_field(40)
    monkeypatch.setattr("graphfield.solvers.sparse_group._MAX_ITERATIONS", 1)
    with pytest.warns(gf.TrainingWarning, match="stopped early"):
        sparse_group(sparsity=1e-5).fit(X, Z)


@compiles
def test_files_pickles_and_clones(chosen, tmp_path):
    _, Z, _ = sparse_field(300)
    for again in (gf.load(chosen.save(tmp_path / "model")), pickle.loads(pickle.dumps(chosen))):
        assert again.penalty_ == chosen.penalty_
        pd.testing.assert_frame_equal(again.cv_path_, chosen.cv_path_)
        np.testing.assert_array_equal(again.interactions_, chosen.interactions_)
        np.testing.assert_array_equal(again.predict_graph(Z, 0.0), chosen.predict_graph(Z, 0.0))
    assert clone(chosen).get_params() == chosen.get_params()
    assert not hasattr(clone(chosen), "cv_path_")


@compiles
def test_the_attributes_are_there_without_cross_validation(data, chosen):
    for model in (gf.RegGMM(ridge=0.5).fit(*data), sparse_group(sparsity=0.5).fit(*data)):
        assert model.penalty_ == 0.5
        assert len(model.cv_path_) == 0
        assert (model.cv_path_.dtypes == chosen.cv_path_.dtypes).all()


def many_levels(n: int, move: float, seed: int = 0) -> tuple[np.ndarray, pd.DataFrame]:
    """A chain of four nodes; means, and edges as far as they move, follow a category with 30 levels."""
    rng = np.random.default_rng(seed)
    level = rng.choice(30, n)
    X = rng.normal(size=(n, 4))
    strength = 0.8 + move * rng.normal(size=30)
    for k in range(3):
        X[:, k + 1] += strength[level] * X[:, k]
    return X + rng.normal(size=(30, 4))[level], pd.DataFrame({"level": [f"l{i}" for i in level]})


@pytest.mark.parametrize("move", [0.0, 0.5])
def test_ridge_by_held_out_rows_is_no_worse_than_one_graph_and_better_where_graphs_move(move):
    X, Z = many_levels(1500, move)
    linear, static = gf.RegGMM(ridge="cv"), gf.GraphicalLasso(center="covariates")
    scores = [one.fit(X[:1000], Z[:1000]).score(X[1000:], Z[1000:]) for one in (linear, static)]
    assert scores[0] > scores[1] + (0.01 if move else -0.003)
    assert linear.cv_path_["penalty"].is_monotonic_decreasing
    assert linear.penalty_ == linear.cv_path_["penalty"][linear.cv_path_["error"].argmin()]
    assert (linear.penalty_ > 0.1) == (move == 0)


def test_ridge_by_held_out_rows_takes_few_groups_and_rows_of_the_user():
    X, Z = many_levels(120, 0.0)[0], pd.DataFrame({"level": ["a", "b"] * 60})
    assert len(gf.RegGMM(ridge="cv").fit(X, Z, groups=np.repeat([0, 1, 2], 40)).cv_path_) >= 2
    own = gf.RegGMM(ridge="cv").fit(X[:80], Z[:80], X_val=X[80:], Z_val=Z[80:])
    assert own.cv_path_["error"].min() > 0
    assert own.cv_path_["standard_error"].isna().all()  # they are one fold


@pytest.mark.slow
def test_ridge_by_held_out_rows_takes_nodes_of_any_kind():
    """Where nothing moves, most fits are one graph; in some, held-out rows follow noise a little."""
    penalties, Z = [], np.tile([0.0, 1.0], 150)[:, None]
    for seed in range(7):
        X, _ = many_levels(300, 0.0, seed)
        table = pd.DataFrame(X, columns=list("abcd")).assign(d=X[:, 3] > 0)
        model = gf.RegGMM(ridge="cv").fit(table, Z)
        static = gf.NodewiseLasso(center="covariates").fit(table, Z)
        np.testing.assert_allclose(model.score(table, Z), static.score(table, Z), atol=0.02)
        penalties.append(model.penalty_)
    assert np.median(penalties) >= 1
