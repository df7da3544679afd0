"""The classical estimators of one graph, against independent computations on the rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from conftest import SMALL, change_plans
from graphfield.data.frames import as_frame
from graphfield.estimators.auto_candidates import Plan
from graphfield.estimators.held_out import HeldOut
from graphfield.estimators.one_graph import STATIC, static_models
from graphfield.metrics import auprc
from graphfield.solvers.glasso import edge_counts, graphical_lasso_path, precision_ebic
from graphfield.solvers.glasso_admm import optimality_violation
from graphfield.solvers.lasso import nodewise_ebic, nodewise_lasso_path
from solver_cases import band, raw_lasso, standard

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")


def covariate(n: int) -> np.ndarray:
    return np.linspace(-1, 1, n)[:, None]


MODELS = [gf.GraphicalLasso, gf.NodewiseLasso]


def test_a_graphical_lasso_that_breaks_down_is_nan():
    X = np.random.default_rng(0).normal(size=(5, 30))
    X[:, 1] = X[:, 0]
    S = np.corrcoef(X.T)
    path = graphical_lasso_path(S, [1.0, 1e-9, 0.0])
    assert np.isfinite(path[0]).all()
    assert np.isnan(path[1:]).all()
    assert np.isnan(edge_counts(path)).tolist() == [False, True, True]
    assert np.isinf(precision_ebic(path, S, 5)).tolist() == [False, True, True]
    with pytest.raises(gf.TrainingError, match="no accurate solution at penalty=1e-09"):
        gf.GraphicalLasso(penalty=1e-9).fit(np.tile(X, (2, 1)), covariate(10))


@pytest.mark.parametrize("kind", ["copies", "sums", "near copies", "few rows"])
def test_the_graphical_lasso_is_optimal_on_collinear_nodes(kind):
    """scikit-learn's solver is off by several penalties there, or fails; the bulk is in the fuzz tests."""
    X = band(10, 15)[0] if kind == "few rows" else band(100, 9)[0]
    noise = 1e-3 * np.random.default_rng(1).normal(size=(len(X), 3))
    X[:, :3] = {"sums": X[:, 3:6] + X[:, 6:9], "near copies": X[:, 3:6] + noise}.get(kind, X[:, 3:6])
    X = standard(X)
    S = X.T @ X / len(X)
    for penalty, precision in zip(
        [0.1, 0.01, 0.001], graphical_lasso_path(S, [0.1, 0.01, 0.001]), strict=True
    ):
        assert optimality_violation(precision, S, penalty) < 0.005 * penalty
    model = gf.GraphicalLasso(penalty=0.01).fit(X, covariate(len(X)))
    assert optimality_violation(model.precision_, S, 0.01) < 0.006 * 0.01
    assert model.precision_shrinkage(covariate(2)).tolist() == [1, 1]
    np.testing.assert_allclose(
        model.predict_precision(covariate(1))[0], model.precision_, rtol=1e-3, atol=1e-3
    )


def test_a_fold_in_which_a_node_never_varies_does_not_decide():
    X = band(60, 4)[0]
    X[:, 0] = 0
    X[:3, 0] = [1, -2, 1]  # all in the first of the folds
    model = gf.GraphicalLasso(n_folds=3).fit(X, covariate(60))
    assert np.isfinite(model.precision_).all()
    assert model.path_["score"].notna().all()


def test_searches_end_where_regressions_explain_everything():
    X = standard(np.random.default_rng(0).normal(size=(12, 40)))
    S = X.T @ X / 12
    full = nodewise_lasso_path(S, [0.6, 0.001])
    assert np.isinf(nodewise_ebic(full, S, 12)).tolist() == [False, True]
    for model, criterion in (
        (gf.NodewiseLasso, "cv"),
        (gf.NodewiseLasso, "ebic"),
        (gf.GraphicalLasso, "ebic"),
    ):
        fitted = model(penalty=criterion, n_penalties=20, n_folds=3).fit(X, covariate(12))
        assert fitted.path_.penalty.min() > 5 * 0.1 / np.sqrt(12)
        assert fitted.path_.penalty.min() < fitted.penalty_


@pytest.mark.parametrize("model", MODELS)
def test_a_larger_gamma_means_fewer_edges(model):
    X, Z = band(100, 12)[0], covariate(100)
    counts = []
    for gamma in (0.0, 0.5, 5.0):
        fitted = model(penalty="ebic", ebic_gamma=gamma).fit(X, Z)
        counts.append(fitted.predict_graph(Z[:1], threshold=0.0).sum())
    assert counts[0] >= counts[1] > counts[2] or counts[0] > counts[1] >= counts[2]


@pytest.mark.parametrize("penalty", ["cv", "ebic"])
@pytest.mark.parametrize("model", MODELS)
def test_a_band_is_found(model, penalty):
    (X, truth), Z = band(1000, 15), covariate(1000)
    fitted = model(penalty=penalty).fit(X, Z)
    assert auprc(fitted.edge_weights(Z[:1]), truth[None])[0] > 0.98
    path = fitted.path_
    assert list(path.columns) == ["penalty", "score", "n_edges"]
    assert path.penalty.is_monotonic_decreasing
    assert path.penalty.iloc[0] > fitted.penalty_ > path.penalty[path.penalty > 0].iloc[-1]
    best = path.score.idxmax() if (model, penalty) == (gf.GraphicalLasso, "cv") else path.score.idxmin()
    assert path.penalty[best] == fitted.penalty_
    assert path.n_edges[best] == fitted.predict_graph(Z[:1], threshold=0.0).sum() // 2
    assert path.n_edges.iloc[0] == 0
    assert path.n_edges.diff().min() >= -3, "fewer edges with a smaller penalty"


def test_and_and_or_graphs_are_those_of_the_raw_lasso():
    X, Z = band(120, 10)[0] * np.geomspace(0.01, 100, 10), covariate(120)
    model = gf.NodewiseLasso(penalty=0.12).fit(X, Z)
    there = raw_lasso(standard(X), 0.12) != 0
    loose, strict = (model.predict_graph(Z[:1], threshold=0.0, rule=r)[0] for r in ("or", "and"))
    np.testing.assert_array_equal(loose, there | there.T)
    np.testing.assert_array_equal(strict, there & there.T)
    assert (loose & ~strict).any(), "this example tells the two rules apart"
    assert model.path_.n_edges.tolist() == [strict.sum() // 2]
    assert model.path_.score.isna().all()


def test_nodewise_coefficients_and_residuals_are_in_the_users_units():
    scale = np.geomspace(0.1, 100, 6)
    X, Z = band(200, 6)[0] * scale + 5, covariate(200)
    model = gf.NodewiseLasso(penalty=0.05).fit(X, Z)
    expected = raw_lasso(standard(X), 0.05) * np.outer(X.std(axis=0), 1 / X.std(axis=0))
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(model.residual_scale_, (X - model.predict(X, Z)).std(axis=0), rtol=1e-5)


@pytest.mark.parametrize("penalty", ["cv", "ebic", 0.1])
@pytest.mark.parametrize("model", MODELS)
def test_permuting_and_scaling_nodes(model, penalty):
    X, Z = band(150, 8)[0], covariate(150)
    order = np.random.default_rng(0).permutation(8)
    plain = model(penalty=penalty).fit(X, Z).edge_weights(Z[:1])[0]
    changed = model(penalty=penalty).fit((X * 2.0 ** np.arange(8))[:, order], Z).edge_weights(Z[:1])[0]
    np.testing.assert_allclose(changed, plain[np.ix_(order, order)], atol=5e-3)


@pytest.mark.parametrize("penalty", ["cv", "ebic"])
@pytest.mark.parametrize("model", MODELS)
def test_more_nodes_than_rows(model, penalty):
    (X, truth), Z = band(20, 25, seed=1), covariate(20)
    fitted = model(penalty=penalty).fit(X, Z)
    assert np.isfinite(fitted.edge_weights(Z[:1])).all()
    noise = np.random.default_rng(0).normal(size=(20, 25))
    if penalty == "ebic":
        edges = model(penalty="ebic").fit(noise, Z).predict_graph(Z[:1], threshold=0.0).sum() // 2
        assert edges <= 5, "independent nodes have next to no edges"
    else:
        assert auprc(fitted.edge_weights(Z[:1]), truth[None])[0] > 3 * truth.mean()


@pytest.mark.parametrize("model", MODELS)
def test_groups_stay_in_one_fold(model):
    """With every row twice, folds that split the twins would choose a smaller penalty."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(25, 8)), 2, axis=0)
    shuffled = rng.permutation(50)
    X, groups = X[shuffled], (np.arange(50) // 2)[shuffled]
    Z = covariate(50)
    apart, together = model().fit(X, Z), model().fit(X, Z, groups=groups)
    assert together.penalty_ > apart.penalty_
    with pytest.raises(gf.ParameterError, match="n_folds=26 is more than there are groups \\(25\\)"):
        model(n_folds=26).fit(X, Z, groups=groups)


@pytest.mark.parametrize("model", MODELS)
def test_parameters_that_make_no_sense(model):
    X, Z = band(20, 3)[0], covariate(20)
    for penalty in (-0.1, 0, True, np.nan, np.inf, None, [0.1], "bic"):
        with pytest.raises(
            gf.ParameterError, match="penalty must be one of 'cv', 'ebic' or a number above 0"
        ):
            model(penalty=penalty).fit(X, Z)
    with pytest.raises(gf.ParameterError, match="Did you mean 'ebic'"):
        model(penalty="ebci").fit(X, Z)
    with pytest.raises(gf.ParameterError, match="ebic_gamma must be a number in \\[0, inf\\)"):
        model(ebic_gamma=-1).fit(X, Z)
    with pytest.raises(gf.ParameterError, match="n_penalties must be a whole number"):
        model(n_penalties=1.5).fit(X, Z)
    with pytest.raises(gf.ParameterError, match="n_folds=21 is more than there are rows \\(20\\)"):
        model(n_folds=21).fit(X, Z)


@pytest.mark.parametrize("penalty", ["cv", "ebic", 0.1])
@pytest.mark.parametrize("model", MODELS)
def test_the_path_is_saved(model, penalty, tmp_path):
    X, Z = band(30, 5)[0], covariate(30)
    fitted = model(penalty=penalty).fit(X, Z)
    again = gf.load(fitted.save(tmp_path / "model"))
    assert again.penalty_ == fitted.penalty_
    pd.testing.assert_frame_equal(again.path_, fitted.path_)
    np.testing.assert_array_equal(again.predict_coef(Z), fitted.predict_coef(Z))


@pytest.mark.parametrize("penalty", ["cv", "ebic", 0.2])
def test_copies_of_a_node_and_no_correlation_at_all(penalty):
    X, Z = band(40, 4)[0], covariate(40)
    copied = gf.NodewiseLasso(penalty=penalty).fit(np.column_stack([X, X[:, 0]]), Z)
    assert copied.predict_graph(Z[:1], threshold=0.0)[0, 0, 4]
    apart = np.kron(np.ones((10, 1)), np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]))
    assert not gf.NodewiseLasso(penalty=penalty).fit(apart, Z).coef_.any()


def moving(n: int = 600, p: int = 6) -> tuple[np.ndarray, pd.DataFrame]:
    """A band seen with a mean that z moves, the same way for all nodes, and with nodes of any size."""
    z = np.random.default_rng(1).normal(size=n)
    X = (band(n, p)[0] + 2 * z[:, None]) * np.arange(1, p + 1) + 10
    return X, pd.DataFrame({"age": 50 + 10 * z, "sex": np.where(np.arange(n) % 3, "f", "m")})


@pytest.mark.parametrize("model", MODELS)
def test_a_mean_that_moves_is_no_edge(model, tmp_path):
    X, Z = moving()
    graph = band(2, 6)[1]
    plain, centred = (model(center=center).fit(X, Z) for center in ("constant", "covariates"))
    weights, other = (fit.edge_weights(Z[:1])[0] for fit in (centred, plain))
    assert weights[~graph].max() < 0.15
    assert other[~graph].max() > 0.15
    assert centred.score(X, Z) > plain.score(X, Z) + 0.02
    # By hand: nodes less their regression on z are what the graph is made of.
    design = np.column_stack([np.ones(len(X)), Z["age"], Z["sex"] == "f"])
    mean = design @ np.linalg.lstsq(design, X, rcond=None)[0]
    alone = model(penalty=centred.penalty_).fit(X - mean, Z)
    np.testing.assert_allclose(centred.edge_weights(Z[:2]), alone.edge_weights(Z[:2]), atol=1e-4)
    np.testing.assert_allclose(centred.predict(X, Z), mean + alone.predict(X - mean, Z), atol=1e-3)
    again = gf.load(centred.save(tmp_path / "m"))
    np.testing.assert_array_equal(again.predict(X, Z), centred.predict(X, Z))
    np.testing.assert_array_equal(centred.edge_weights(Z)[0], centred.edge_weights(Z)[-1])


def test_a_node_that_the_covariates_determine_has_no_edge():
    X, Z = moving(200)
    X[:, 2] = 3 * Z["age"]
    model = gf.GraphicalLasso(center="covariates").fit(X, Z)
    assert np.isfinite(model.predict(X, Z)).all()
    assert model.edge_weights(Z[:1])[0, 2].max() < 1e-6


def test_a_bad_center_is_refused():
    X, Z = moving(50)
    with pytest.raises(gf.ParameterError, match="center must be one of"):
        gf.GraphicalLasso(center="none").fit(X, Z)


@pytest.mark.slow
def test_nodes_that_measure_nearly_the_same_get_next_to_no_penalty():
    """scikit-learn's solver broke down at the penalties that held-out rows like best."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(1_000, 2)), 3, axis=1) + 0.1 * rng.normal(size=(1_000, 6))
    model = gf.GraphicalLasso().fit(X, covariate(1_000))
    scores = model.path_.set_index("penalty")["score"].astype(float)
    assert scores.notna().all()
    assert scores.idxmax() == model.penalty_
    assert model.penalty_ == 0, "the likelihood rises to the end of the search and beyond"
    copied = gf.GraphicalLasso().fit(np.column_stack([X, X[:, 0]]), covariate(1_000))
    assert 0.1 / np.sqrt(1_000) < copied.penalty_ < 0.006, "a copy has no likelihood without a penalty"
    assert model.score(X, covariate(1_000)) > 0.98


def test_auto_does_not_take_a_mean_that_moves_for_a_graph_that_does():
    X, Z = moving(1_500)
    model = gf.AutoCGM(candidates=("static", "linear"), random_state=0).fit(X, Z)
    assert model.depends_on_covariates_ is False
    assert list(model.chosen_) == ["static"]


def test_auto_compares_with_the_average_of_its_own_graph():
    """By hand: the same means and scales, coefficients averaged over the rows of the fit."""
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1, 1, (1_200, 1))
    X = rng.normal(size=(1_200, 4))
    X[:, 1] += 1.2 * Z[:, 0] * X[:, 0] + 0.5 * X[:, 0] + 3 * Z[:, 0]
    rows = HeldOut(X[1_000:], as_frame(Z[1_000:], "Z"), np.arange(200))
    model = gf.RegGMM().fit(X[:1_000], Z[:1_000])
    left = rows.residuals_of_average(model.field_, as_frame(Z[:1_000], "Z"))
    unit, new = model.field_.at(Z[:1_000]).units, model.field_.at(Z[1_000:])
    average = (model.predict_coef(Z[:1_000]) * unit[:, None, :] / unit[:, :, None]).mean(axis=0)
    deviations = (X[1_000:] - new.offsets) / new.units
    np.testing.assert_allclose(left, new.units * (deviations @ (np.eye(4) - average).T), atol=1e-5)
    scores = gf.DNNCGM(marginals="normal", **SMALL).fit(X[:1_000], Z[:1_000])
    none = rows.residuals_of_average(scores.field_, as_frame(Z[:1_000], "Z"))
    assert np.square(none[:, 0]).mean() < 1.05 * X[1_000:, 0].var()
    assert np.square(left[:, 1]).mean() > 1.2 * np.square(rows.residuals(model.field_)[:, 1]).mean()
    auto = gf.AutoCGM(candidates=("static", "linear"), random_state=0).fit(X, Z)
    table = auto.held_out_.set_index("model")
    assert auto.depends_on_covariates_ is True
    assert table.loc["linear", "gain_over_own_average"] > 0.05
    assert table.loc["static", "gain_over_own_average"] == 0
    assert "that of its own average graph" in auto.summary_


def test_a_better_static_graph_is_no_graph_that_varies(monkeypatch):
    """The candidate beats the static graph by having a better one for everybody; z has no part in it."""
    rng = np.random.default_rng(0)
    X, Z = band(2_000, 6)[0], rng.normal(size=(2_000, 1))
    poor = Plan(gf.GraphicalLasso(penalty=0.5, center="covariates"))
    change_plans(monkeypatch, **dict.fromkeys((STATIC, *static_models()), lambda *_: poor))
    model = gf.AutoCGM(candidates=("linear",), random_state=0).fit(X, Z)
    assert list(model.chosen_) == ["linear"]
    assert model.depends_on_covariates_ is False
    assert "that of its own average graph" in model.summary_
