"""One graph for everybody: one definition of what a graph that varies must beat."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import graphfield as gf
from graphfield.data.node_types import NodeTypes
from graphfield.estimators.auto_candidates import make_plan
from graphfield.estimators.one_graph import STATIC, static_model, static_models
from graphfield.estimators.registry import ESTIMATORS, candidates
from graphfield.estimators.static import StaticGraph
from graphfield.inference.compare_methods import read_methods
from graphfield.inference.unseen_rows import predict_new_rows


def mixed_table(n: int = 120) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    X["b"] += X["a"]
    return X.assign(c=X["c"] > 0), pd.DataFrame({"age": rng.uniform(20, 80, n)})


@pytest.fixture
def types() -> NodeTypes:
    found = gf.NodewiseLasso().fit(*mixed_table()).field_.schema.types
    assert found is not None
    return found


def same(one, other) -> bool:
    return type(one) is type(other) and one.get_params() == other.get_params()


def test_every_estimator_with_one_graph_is_a_rival_and_says_so_in_the_registry():
    assert [type(one).__name__ for one in static_models().values()] == ["GraphicalLasso", "NodewiseLasso"]
    assert all(isinstance(one, StaticGraph) for one in static_models().values())
    assert candidates()[STATIC] is ESTIMATORS["GraphicalLasso"]


def test_only_methods_that_take_the_nodes_are_rivals(types):
    assert [*static_models(types)] == ["nodewise lasso"]


def test_automatic_choice_and_comparisons_have_the_same_rival(types):
    assert same(make_plan(STATIC, {}, None).model, static_model())
    assert same(make_plan(STATIC, {}, types).model, static_model(types))
    methods = read_methods(["static", "nodewise"], seed=0)
    assert same(methods[STATIC], static_model())
    assert same(methods["nodewise"], static_models()["nodewise lasso"])


@pytest.mark.slow
def test_automatic_choice_keeps_the_better_of_the_rivals():
    """Where nothing varies, it is that which predicts held-out rows better, be it the first or the other.

    One node that is the sum of many suits regressions of their own, one cause of all nodes suits one matrix.
    """
    kept = set()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, Z = rng.normal(size=(160, 12)), rng.uniform(-1, 1, (160, 1))
        if seed % 2:
            X[:, 0] += 3 * X[:, 1:7].sum(axis=1)
        else:
            X += rng.normal(size=(160, 1))
        model = gf.AutoCGM(candidates=("static",), random_state=seed).fit(X, Z)
        assert model.chosen_ == {STATIC: 1.0}
        assert model.held_out_.loc[0, ["model", "error"]].tolist() == [STATIC, 1.0]
        best = better_on(model.held_out_rows_, X, Z)
        assert type(model.members_[0]).__name__ == best
        kept.add(best)
    assert kept == {"GraphicalLasso", "NodewiseLasso"}


def better_on(held_out: np.ndarray, X: np.ndarray, Z: np.ndarray) -> str:
    """By hand, in units of the errors of the first."""
    train = np.setdiff1d(np.arange(len(X)), held_out)
    fits = {type(one).__name__: one.fit(X[train], Z[train]) for one in static_models().values()}
    errors = {name: ((X - fit.predict(X, Z))[held_out] ** 2).mean(axis=0) for name, fit in fits.items()}
    return min(errors, key=lambda name: (errors[name] / errors["GraphicalLasso"]).mean())


def test_rows_that_took_no_part_are_predicted_by_the_same_rivals():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(80, 3)), rng.normal(size=(80, 1))
    model = gf.RegGMM().fit(X[:60], Z[:60])
    found = predict_new_rows(model, X[:60], Z[:60], X[60:], Z[60:], np.arange(20))
    assert [*found.static] == [*static_models()]
    assert found.best_static in found.static


def test_one_graph_that_automatic_choice_kept_is_not_compared_with_itself():
    """Where some nodes are no numbers, it is another method than else."""
    X, Z = mixed_table()
    model = gf.AutoCGM(candidates=(STATIC,)).fit(X, Z)
    found = gf.gain_over_one_graph(model, X, Z, n_folds=1)
    assert (found.static, found.over_static) == ("nodewise lasso", None)
