"""Shared data and small fitted models; global random state must stay as it is."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import graphfield as gf
from browser import Browser
from graphfield.estimators import auto_candidates
from graphfield.estimators.registry import ESTIMATORS as REGISTERED
from graphfield.report import write_report

# Some packages draw from the global generators while they are imported; that is not our doing.
assert gf.DNNCGM
assert gf.GraphicalLasso
assert gf.NodewiseLasso

# Public data, not part of the repository; tests that need them are skipped where there is no such folder.
REAL_DATA = Path(os.environ.get("GRAPHFIELD_DATA", Path(__file__).parents[2] / "shared" / "data"))

SMALL = {"rank": 2, "max_steps": 5, "hidden_size": 16, "device": "cpu", "random_state": 0}
FULL = {**SMALL, "rank": None, "max_steps": 40}  # every edge with weights of its own, as published
# Options of a fit from the shell that takes next to no time.
FAST_FIT = ["--set", "rank=None", "--set", "max_steps=5", "--set", "hidden_size=8", "--set", "device=cpu"]
FAST_FIT += ["--no-verdict"]
ESTIMATORS = {
    "archetype": lambda **params: gf.ArchetypeCGM(
        **{
            "n_archetypes": 2,
            "penalty": 0.05,
            "max_steps": 2,
            "hidden_size": 16,
            "device": "cpu",
            "random_state": 0,
            **params,
        }
    ),
    "auto": lambda **params: gf.AutoCGM(**{"candidates": ("static", "linear"), "random_state": 0, **params}),
    "bayes": lambda **params: gf.BayesianCGM(**{"n_sweeps": 60, "n_draws": 40, "random_state": 0, **params}),
    "by-cluster": lambda **params: gf.ByCluster(
        estimator=gf.GraphicalLasso(n_penalties=3, n_folds=3), **params
    ),
    "dnncgm": lambda **params: gf.DNNCGM(**{**SMALL, **params}),
    "ensemble": lambda **params: gf.Ensemble(
        estimator=gf.DNNCGM(**{**FULL, "max_steps": 5}), **{"n_members": 2, "random_state": 0, **params}
    ),
    "graphical-lasso": lambda **params: gf.GraphicalLasso(n_penalties=3, n_folds=3, **params),
    "joint": lambda **params: gf.JointGraphicalLasso(**{"n_folds": 2, **params}),
    "kernel": lambda **params: gf.KernelCGM(**{"bandwidth": 0.8, "random_state": 0, **params}),
    "nodewise-lasso": lambda **params: gf.NodewiseLasso(n_penalties=10, n_folds=3, **params),
    "reggmm": gf.RegGMM,
    "reggmm-sparse-group": lambda **params: gf.RegGMM(
        penalty="sparse-group", n_penalties=8, n_folds=3, **params
    ),
    # Whether its means move is asked with 300 steps of a network, however few its own: see test_score.py.
    "score": lambda **params: gf.ScoreCGM(
        **{
            "degree": 2,
            "center": "constant",
            "hidden_size": 16,
            "max_steps": 10,
            "device": "cpu",
            "random_state": 0,
            **params,
        }
    ),
    "tree": lambda **params: gf.TreeCGM(**{"random_state": 0, **params}),
}
if REGISTERED["ContextualizedCGM"].is_there:  # where a package is that we do not ask for
    ESTIMATORS["contextualized"] = lambda **params: gf.ContextualizedCGM(
        **{
            "n_archetypes": 3,
            "max_epochs": 6,
            "learning_rate": 0.05,
            "device": "cpu",
            "random_state": 0,
            **params,
        }
    )


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Bytes are named by their number: an archive holds the time, and workers must collect equal names."""
    return f"{len(val)}-bytes" if isinstance(val, bytes) else None


def _numpy_state() -> tuple[object, ...]:
    """All of it: the position among the numbers that are drawn ahead moves with every draw."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    return (name, keys.tolist(), *rest)


@pytest.fixture(autouse=True)
def _global_state_untouched() -> Iterator[None]:
    """A library that seeds or draws from global generators changes its user's results."""
    before = (random.getstate(), _numpy_state())
    torch_before = torch.get_rng_state().clone()
    yield
    assert random.getstate() == before[0], "Python's random state was touched"
    assert _numpy_state() == before[1], "NumPy's global random state was touched"
    assert torch.equal(torch.get_rng_state(), torch_before), "torch's random state was touched"


@pytest.fixture(autouse=True)
def _figures_closed() -> Iterator[None]:
    """Pictures of one test are not left open for the others: matplotlib warns at more than twenty."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def small_data(n: int = 120, p: int = 6, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Node 2 follows node 1 with a strength that moves with age and differs by site."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 80, n)
    site = rng.choice(["A", "B", "C"], n)
    X = rng.normal(size=(n, p))
    strength = (age - 50) / 30 + np.where(site == "A", 1.0, 0.0)
    X[:, 1] += strength * X[:, 0]
    X = X * np.geomspace(0.1, 100, p) + np.arange(p)
    nodes = pd.DataFrame(X, columns=[f"n{i}" for i in range(p)])
    return nodes, pd.DataFrame({"age": age, "site": site})


def change_threshold(model, **changes) -> None:
    """Edges of a fitted model by another cut, or of other pairs."""
    model.field_ = model.field_.with_threshold(replace(model.threshold_, **changes))


def change_plans(patch, **plans) -> None:
    """AutoCGM fits these candidates as they say, and the others as before."""
    known = auto_candidates.make_plan
    patch.setattr(
        auto_candidates, "make_plan", lambda name, *given: plans.get(name, partial(known, name))(*given)
    )


def plain_params(model) -> dict[str, object]:
    """Parameters that can be compared: an estimator among them is there by its own parameters."""
    return {k: v for k, v in model.get_params().items() if not hasattr(v, "get_params")}


@pytest.fixture(scope="session")
def data() -> tuple[pd.DataFrame, pd.DataFrame]:
    return small_data()


# skglm's solver is compiled in every process that first uses it: ten seconds and more. Archetypes are fitted
# after a mixture, which takes its time.
SLOW = ("reggmm-sparse-group", "archetype")
NAMES = [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in sorted(ESTIMATORS)]


@pytest.fixture(scope="session", params=NAMES)
def estimator(request: pytest.FixtureRequest):
    """A factory of each estimator, so that one battery of tests holds for all of them."""
    return ESTIMATORS[request.param]


# Where fits only show what became of the table: those that fit several models take their time.
QUICK_NAMES = [
    pytest.param(n, marks=pytest.mark.slow) if n in (*SLOW, "auto", "ensemble") else n for n in ESTIMATORS
]


@pytest.fixture(scope="session", params=QUICK_NAMES)
def quick(request: pytest.FixtureRequest):
    """As :func:`estimator`, with the head of a network that is fitted soonest."""
    make = ESTIMATORS[request.param]
    return partial(make, rank=None) if request.param == "dnncgm" else make


@pytest.fixture(scope="session")
def fitted(estimator, data):
    return estimator().fit(*data)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def opened(browser, tmp_path):
    """Write a page about a model and open it."""

    def open_page(model, Z=None, **options) -> Browser:
        path = write_report(model, tmp_path / "report.html", Z=Z, overwrite=True, **options)
        browser.resize(1280, 900)
        browser.media("screen")
        browser.open(path)
        return browser

    yield open_page
    assert browser.errors == []
    assert all(url.startswith(("file://", "blob:", "data:")) for url in browser.requests), browser.requests
    assert sum(url.startswith("file://") for url in browser.requests) == 1
