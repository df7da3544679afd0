"""Nodes that are no plain numbers and cannot be fitted, or hardly: whoever is asked says the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import graphfield as gf

SMALL = {"rank": 2, "max_steps": 5, "hidden_size": 8, "device": "cpu", "random_state": 0}
MODELS: dict[str, Callable[[Any], Any]] = {
    "DNNCGM": lambda types: gf.DNNCGM(node_types=types, **SMALL),
    "RegGMM": lambda types: gf.RegGMM(node_types=types),
    "NodewiseLasso": lambda types: gf.NodewiseLasso(node_types=types, n_penalties=3, n_folds=2),
    "TreeCGM": lambda types: gf.TreeCGM(node_types=types, max_leaves=2, random_state=0),
    "AutoCGM": lambda types: gf.AutoCGM(node_types=types, candidates=("static", "linear"), random_state=0),
    "Ensemble": lambda types: gf.Ensemble(
        estimator=gf.RegGMM(node_types=types), n_members=2, resample=True, random_state=0
    ),
}
TESTS: dict[str, Callable[..., Any]] = {
    "infer_edges": lambda X, Z, types: gf.infer_edges(X, Z, node_types=types, random_state=0).edges(),
    "compare_graphs": lambda X, Z, types: gf.compare_graphs(X, Z, "site", node_types=types),
    "dependence_test": lambda X, Z, types: gf.dependence_test(X, Z, node_types=types, n_permutations=19),
}


def small_table(n: int = 160) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    z, number = rng.uniform(-1, 1, n), rng.normal(size=n)
    X = pd.DataFrame(
        {
            "number": number,
            "flag": rng.random(n) < 1 / (1 + np.exp(-number)),
            "group": rng.choice(["a", "b"], n),
            "events": rng.poisson(np.exp(0.5 + 0.3 * number)),
        }
    )
    return X, pd.DataFrame({"z": z, "site": np.where(np.arange(n) % 2, "a", "b")})


def ask(who: str, X: pd.DataFrame, Z: pd.DataFrame, types: dict[str, str]) -> Any:
    return MODELS[who](types).fit(X, Z) if who in MODELS else TESTS[who](X, Z, types)


@pytest.mark.parametrize("who", [*MODELS, *TESTS])
def test_types_that_a_table_cannot_have_are_refused_by_column(who):
    X, Z = small_table()
    many = X.assign(group=[f"t{i % 80}" for i in range(len(X))])
    cases: list[tuple[pd.DataFrame, dict[str, str], str]] = [
        (X.assign(events=X.events - 1), {"events": "count"}, "'events' is to be a count.*holds -1"),
        (X, {"group": "ordinal"}, "'group' has text without an order"),
        (many, {"group": "categorical"}, "'group' has 80 levels; a node may have 50"),
        (X, {"evens": "count"}, "names 'evens', which is no node"),
    ]
    for table, types, message in cases:
        with pytest.raises(gf.DataError, match=message):
            ask(who, table, Z, types)


def hard_tables() -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    X, Z = small_table()
    return {
        "a level in one row": (X.assign(group=np.where(np.arange(len(X)) == 7, "rare", X.group)), Z),
        "constant where z is large": (X.assign(flag=X.flag | (Z.z > 0)), Z),
        "separated by a number": (X.assign(flag=X.number > 0), Z),
    }


FIRST = ("RegGMM", "Ensemble")  # the others take seconds


@pytest.mark.parametrize("name", list(hard_tables()))
@pytest.mark.parametrize(
    "who", [who if who in FIRST else pytest.param(who, marks=pytest.mark.slow) for who in MODELS]
)
def test_models_of_hard_tables_are_finite(who, name):
    X, Z = hard_tables()[name]
    model = ask(who, X, Z, {"events": "count"})
    for found in (model.edge_weights(Z), model.predict(X, Z), model.predict_proba(X, Z, "flag")):
        assert np.isfinite(np.asarray(found, dtype=np.float64)).all()
    assert np.isfinite(model.score(X, Z))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(hard_tables()))
@pytest.mark.parametrize("who", TESTS)
def test_tests_of_hard_tables_are_finite(who, name):
    X, Z = hard_tables()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gf.DataWarning)  # a level that a group lacks is named
        found = ask(who, X, Z, {"events": "count"})
    if who == "dependence_test":
        assert 0 < found.p_value <= 1
    else:
        assert np.isfinite(found.select_dtypes("number")).all(axis=None)


def test_a_node_with_one_value_in_a_group_is_named():
    X, Z = small_table()
    with pytest.raises(gf.DataError, match=r"'flag' has the same value in all 80 rows with site = 'a'"):
        ask("compare_graphs", X.assign(flag=X.flag | (Z.site == "a")), Z, {"events": "count"})
