"""What every estimator promises (the same battery for all of them)."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import graphfield as gf
from conftest import SMALL, plain_params, small_data
from graphfield.estimators.registry import ESTIMATORS as REGISTRY
from graphfield.graphs.strength import partial_from_precision

pytestmark = pytest.mark.filterwarnings("ignore::graphfield.ThresholdWarning")


@dataclass(frozen=True)
class Again:
    """A second fit of the data of ``fitted``, its rows shuffled, for the tests that ask what a fit does."""

    model: Any
    returned: object
    X: pd.DataFrame
    Z: pd.DataFrame
    rows: np.ndarray


@pytest.fixture(scope="module")
def again(estimator, data):
    rows = np.random.default_rng(1).permutation(len(data[0]))
    model, X, Z = estimator(), *(own.iloc[rows].reset_index(drop=True) for own in data)
    return Again(model, model.fit(X, Z), X, Z, rows)


def test_fit_returns_self(again):
    assert again.returned is again.model


def test_same_seed_same_bits_in_whatever_order_rows_come(again, data, fitted):
    np.testing.assert_array_equal(again.model.predict_coef(data[1]), fitted.predict_coef(data[1]))
    assert again.model.threshold_.value == fitted.threshold_.value


def test_rows_that_were_held_out_are_named_by_their_place_in_the_users_table(again, fitted):
    if fitted.held_out_rows_ is None:
        assert again.model.held_out_rows_ is None
    else:
        assert set(again.rows[again.model.held_out_rows_]) == set(fitted.held_out_rows_)


def test_inputs_are_not_changed(again, data):
    for given, own in zip((again.X, again.Z), data, strict=True):
        pd.testing.assert_frame_equal(given, own.iloc[again.rows].reset_index(drop=True))


def test_shapes_symmetry_and_diagonal(fitted, data):
    X, Z = data
    n, p = X.shape
    coef, weights = fitted.predict_coef(Z), fitted.edge_weights(Z)
    graph, precision = fitted.predict_graph(Z), fitted.predict_precision(Z)
    assert coef.shape == weights.shape == graph.shape == precision.shape == (n, p, p)
    for array in (coef, weights, graph):
        assert not np.einsum("ijj->ij", array).any()
    for array in (weights, graph, precision):
        np.testing.assert_array_equal(array, array.swapaxes(1, 2))
    assert (weights >= 0).all()
    assert graph.dtype == bool


def test_precision_is_positive_definite(fitted, data):
    assert np.linalg.eigvalsh(fitted.predict_precision(data[1])).min() > 0


def test_precision_is_that_of_the_partial_correlations_times_what_it_shrinks_by(fitted, data):
    Z = data[1].iloc[:20]
    precision, factors = fitted.predict_precision(Z), fitted.precision_shrinkage(Z)
    assert factors.shape == (20,)
    assert ((factors > 0) & (factors <= 1)).all()
    expected = factors[:, None, None] * fitted.partial_correlations(Z)
    np.testing.assert_allclose(partial_from_precision(precision), expected, atol=1e-5)
    if isinstance(fitted, (gf.GraphicalLasso, gf.TreeCGM, gf.ArchetypeCGM)):
        assert (factors == 1).all()


def test_partial_correlations_follow_from_coefficients_and_residual_scales(fitted, data):
    Z = data[1][:20]
    coef, scale = fitted.predict_coef(Z).astype(np.float64), fitted.predict_scale(Z)
    directed = np.clip(coef * scale[:, None, :] / scale[:, :, None], -1, 1)
    partial = (directed + directed.swapaxes(1, 2)) / 2
    np.testing.assert_allclose(fitted.partial_correlations(Z), partial, atol=1e-5)


@pytest.fixture(scope="module")
def strong(estimator, data):
    """A model of nodes with an edge that no estimator misses, and its covariates."""
    X, Z = data[0].copy(), data[1]
    X["n3"] += 3 * X["n3"].std() * (X["n2"] - X["n2"].mean()) / X["n2"].std()
    return estimator().fit(X, Z), Z


def test_and_graph_is_contained_in_or_graph(strong):
    model, Z = strong
    strict, loose = (model.predict_graph(Z, threshold=0.05, rule=r) for r in ("and", "or"))
    assert strict.any(), "a test of nothing"
    assert not (strict & ~loose).any()


def test_higher_threshold_has_fewer_edges(strong):
    model, Z = strong
    low, high = (model.predict_graph(Z, threshold=t) for t in (0.01, 0.1))
    assert high.any(), "a test of nothing"
    assert not (high & ~low).any()


def test_arrays_frames_and_polars_give_the_same(quick, data):
    pl = pytest.importorskip("polars")
    X, Z = data
    expected = quick().fit(X, Z).predict_coef(Z)
    as_polars = quick().fit(pl.DataFrame(X.to_dict("list")), pl.DataFrame(Z.to_dict("list")))
    np.testing.assert_array_equal(as_polars.predict_coef(Z), expected)
    as_arrays = quick().fit(X.to_numpy(), Z.to_numpy(dtype=object))
    np.testing.assert_array_equal(as_arrays.predict_coef(Z.to_numpy(dtype=object)), expected)
    categorical = quick().fit(X, Z.astype({"site": "category"}))
    np.testing.assert_array_equal(categorical.predict_coef(Z), expected)


def test_columns_are_matched_by_name(fitted, data):
    X, Z = data
    np.testing.assert_array_equal(fitted.predict_coef(Z[["site", "age"]]), fitted.predict_coef(Z))
    np.testing.assert_allclose(fitted.predict(X[X.columns[::-1]], Z[["site", "age"]]), fitted.predict(X, Z))


def test_one_row_alone_equals_that_row_in_company(fitted, data):
    """Bit for bit: the graph at z never depends on which other z were asked for."""
    Z = data[1]
    whole = fitted.predict_coef(Z)
    for row in (0, 7, len(Z) - 1):
        np.testing.assert_array_equal(fitted.predict_coef(Z.iloc[[row]])[0], whole[row])


def test_repeated_rows_get_equal_graphs(fitted, data):
    Z = data[1].iloc[:3]
    repeated = pd.concat([Z, Z.iloc[::-1]])
    coef = fitted.predict_coef(repeated)
    np.testing.assert_array_equal(coef[:3], coef[3:][::-1])


def test_iter_coef_joins_to_predict_coef(fitted, data, monkeypatch):
    monkeypatch.setattr("graphfield.fields.walker.CHUNK_BYTES", 7 * 4 * 36)
    blocks = list(fitted.iter_coef(data[1]))
    assert len(blocks) > 1
    np.testing.assert_array_equal(np.concatenate(blocks), fitted.predict_coef(data[1]))


def test_edges_are_the_graph(fitted, data):
    Z = data[1].iloc[:20]
    frame = fitted.edges(Z, threshold=0.03)
    assert list(frame.columns) == ["sample", "source", "target", "weight", "partial_correlation"]
    graph = np.zeros((20, 6, 6), dtype=bool)
    weights = np.zeros((20, 6, 6), dtype=np.float32)
    names = {name: i for i, name in enumerate(fitted.node_names_)}
    for row in frame.itertuples():
        j, k = names[row.source], names[row.target]
        graph[row.sample, j, k] = graph[row.sample, k, j] = True
        weights[row.sample, j, k] = weights[row.sample, k, j] = row.weight
    np.testing.assert_array_equal(graph, fitted.predict_graph(Z, threshold=0.03))
    np.testing.assert_array_equal(weights, np.where(graph, fitted.edge_weights(Z), 0))
    streamed = pd.concat(fitted.iter_edges(Z, threshold=0.03), ignore_index=True)
    pd.testing.assert_frame_equal(streamed, frame)


def test_edges_refuses_to_fill_the_memory(fitted, data):
    if not fitted.predict_graph(data[1], threshold=0.0, rule="or").sum() > 6:
        pytest.skip("this estimate has next to no edges")
    with pytest.raises(gf.DataError, match="iter_edges"):
        fitted.edges(data[1], threshold=0.0, rule="or", max_rows=3)


def test_to_networkx_has_names_weights_and_every_node(fitted, data):
    Z = data[1]
    graph = fitted.to_networkx({"age": Z.age[3], "site": Z.site[3]}, threshold=0.02)
    assert list(graph.nodes) == fitted.node_names_
    expected = fitted.predict_graph(Z.iloc[[3]], threshold=0.02)[0]
    assert nx.to_numpy_array(graph, weight=None, nodelist=fitted.node_names_).astype(bool).tolist() == (
        expected.tolist()
    )
    partial = fitted.partial_correlations(Z.iloc[[3]])[0]
    for a, b, attributes in graph.edges(data=True):
        j, k = fitted.node_names_.index(a), fitted.node_names_.index(b)
        assert attributes["partial_correlation"] == pytest.approx(partial[j, k])
        assert attributes["weight"] == pytest.approx(abs(partial[j, k]))


def test_predict_is_mean_plus_coefficients(fitted, data):
    X, Z = data
    if isinstance(fitted, gf.ScoreCGM):
        pytest.skip("its edges are no lines: a prediction is the mean of a density")
    fitted_values = fitted.predict(X, Z)
    mean = fitted.field_.at(Z).offsets
    expected = mean + np.einsum("ijk,ik->ij", fitted.predict_coef(Z), X.to_numpy() - mean)
    np.testing.assert_allclose(fitted_values, expected, rtol=1e-5, atol=1e-5)
    residual = ((X - fitted_values) ** 2).sum()
    total = ((X - X.mean()) ** 2).sum()
    assert fitted.score(X, Z) == pytest.approx(float((1 - residual / total).mean()))


def test_scaling_a_node_scales_its_coefficients_and_keeps_the_weights(estimator, fitted, data):
    """Powers of two, so that not a single rounding differs."""
    X, Z = data
    factor = 2.0 ** np.arange(-3, 3)
    scaled = estimator().fit(X * factor, Z)
    np.testing.assert_allclose(scaled.edge_weights(Z), fitted.edge_weights(Z), rtol=1e-5, atol=1e-6)
    ratio = factor[:, None] / factor[None, :]
    np.testing.assert_allclose(scaled.predict_coef(Z), fitted.predict_coef(Z) * ratio, rtol=1e-4, atol=1e-6)


def test_predict_before_fit(estimator, data):
    X, Z = data
    for call in (
        lambda m: m.predict_coef(Z),
        lambda m: m.predict_graph(Z),
        lambda m: m.edges(Z),
        lambda m: m.predict(X, Z),
        lambda m: m.score(X, Z),
        lambda m: m.to_networkx(Z.iloc[[0]]),
        lambda m: m.save("never-written"),
    ):
        with pytest.raises(NotFittedError):
            call(estimator())


@pytest.mark.filterwarnings("ignore:.*fewer than 20 rows:graphfield.DataWarning")
@pytest.mark.filterwarnings("ignore:The chains of BayesianCGM:graphfield.TrainingWarning")
@pytest.mark.parametrize(("n", "p"), [(10, 2), (10, 12), (40, 2)])
def test_small_tables(estimator, n, p):
    X, Z = small_data(n, p)
    if isinstance(estimator(), gf.ByCluster):
        Z["site"] = np.where(np.arange(n) < n / 2, "A", "B")
        if n < 20:
            with pytest.raises(gf.DataError, match="'A' has 5, 'B' has 5"):
                estimator().fit(X, Z)
            return
    model = estimator().fit(X, Z)
    assert np.isfinite(model.predict_coef(Z)).all()
    assert model.predict_graph(Z).shape == (n, p, p)


def test_clone_and_get_params(estimator, fitted):
    assert plain_params(clone(fitted)) == plain_params(fitted)


def test_constructor_is_keyword_only_and_has_at_most_22_parameters(estimator):
    signature = inspect.signature(type(estimator()).__init__)
    names = [name for name in signature.parameters if name != "self"]
    assert len(names) <= 22
    assert all(signature.parameters[n].kind is inspect.Parameter.KEYWORD_ONLY for n in names)


def test_a_misspelt_parameter_is_a_type_error(estimator):
    with pytest.raises(TypeError, match="mising"):
        estimator(mising="drop")


def test_refit_forgets_the_first_fit(quick, data):
    X, Z = data
    model = quick().fit(X.iloc[:, :3], Z)
    model.fit(X.to_numpy(), Z[["site"]].to_numpy())
    assert model.predict_coef(Z[["site"]].to_numpy()).shape[1:] == (6, 6)
    assert not hasattr(model, "feature_names_in_")


# One that has something to choose, of each entry of the registry.
CHOOSING = {
    "GraphicalLasso": lambda: gf.GraphicalLasso(n_penalties=3),
    "NodewiseLasso": lambda: gf.NodewiseLasso(n_penalties=8),
    "RegGMM": lambda: gf.RegGMM(penalty="sparse-group", n_penalties=8),
    "TreeCGM": lambda: gf.TreeCGM(max_leaves=3, random_state=0),
    "KernelCGM": lambda: gf.KernelCGM(random_state=0),
    "JointGraphicalLasso": lambda: gf.JointGraphicalLasso(),
    "DNNCGM": lambda: gf.DNNCGM(**{**SMALL, "max_steps": 3, "center": "constant", "marginals": "raw"}),
    "ArchetypeCGM": lambda: gf.ArchetypeCGM(max_steps=5, hidden_size=8, device="cpu", random_state=0),
    "ScoreCGM": lambda: gf.ScoreCGM(degree=2, max_steps=5, hidden_size=8, device="cpu", random_state=0),
    "AutoCGM": lambda: gf.AutoCGM(candidates=("linear",), combine=False, marginals="raw", random_state=0),
    "ByCluster": lambda: gf.ByCluster(estimator=gf.NodewiseLasso(n_penalties=8), by="site"),
    "Ensemble": lambda: gf.Ensemble(
        estimator=gf.NodewiseLasso(n_penalties=8), n_members=2, resample=True, random_state=0
    ),
}
# A prior chooses; training of another package ends where own rows say so, whose edges it does not thin out.
CHOOSE_NOTHING = {"BayesianCGM", "ContextualizedCGM"}
SLOW_TO_CHOOSE = ("RegGMM", "ArchetypeCGM", "DNNCGM", "AutoCGM", "ScoreCGM")


def test_every_estimator_is_asked_to_choose_on_own_rows():
    assert set(CHOOSING) == set(REGISTRY) - CHOOSE_NOTHING


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW_TO_CHOOSE)) for n in CHOOSING]
)
def test_own_held_out_rows_decide_what_is_chosen(name):
    """Rows in which no node has to do with another ask for fewer edges than rows like those of the fit."""
    (X, Z), (X_val, Z_val) = small_data(), small_data(150, seed=7)
    rng = np.random.default_rng(0)
    apart = X_val.apply(rng.permutation)
    alike, none = (CHOOSING[name]().fit(X, Z, X_val=own, Z_val=Z_val) for own in (X_val, apart))
    assert none.edge_weights(Z).mean() < 0.9 * alike.edge_weights(Z).mean()
    assert none.held_out_rows_ is None
