"""The methods of the tables: how each is fitted and which of its scores are kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.marginals import normal_scores
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.by_cluster import ByCluster
from graphfield.estimators.dnncgm import DNNCGM
from graphfield.estimators.graphical_lasso import GraphicalLasso
from graphfield.estimators.nodewise_lasso import NodewiseLasso
from graphfield.estimators.persistence import plain_params
from graphfield.estimators.reggmm import RegGMM, check_sparse_group
from graphfield.estimators.tree import TreeCGM
from graphfield.experiments.evaluation import (
    PATH,
    Evaluation,
    glasso_path,
    lasso_path,
    oracle_evaluations,
    score_samples,
    summarise,
)
from graphfield.experiments.folders import Cell, Result
from graphfield.experiments.specs import PSEUDO_SETTINGS, paper_recipe
from graphfield.simulate import Simulation, make_setting
from graphfield.training.config import resolve_device

N_WATCH = 1_000  # rows on which training is watched; the test rows come after them


@dataclass(frozen=True)
class TableCell(Cell):
    """One fit of one table."""

    def parameters(self) -> dict[str, Any]:
        return METHODS[self.method].parameters(self)

    def check_installed(self) -> None:
        METHODS[self.method].check_installed()

    def run(self, device: str) -> Result:
        method = METHODS[self.method]
        start = time.perf_counter()
        data = simulate(self)
        simulated = time.perf_counter()
        outcome = method.run(self, data, self.parameters(), device)
        before = time.perf_counter()
        samples = score_samples(outcome.evaluations, data.truths())
        metrics = summarise(samples)
        scored = time.perf_counter() - before
        seconds = {"simulate": simulated - start, **outcome.seconds, "score": scored}
        return Result(method.title, metrics, samples, seconds, outcome.config, outcome.details)


@dataclass(frozen=True)
class Data:
    """A simulation cut into the rows to train on, to watch, and to test on."""

    sim: Simulation
    train: slice
    watch: slice
    test: slice

    def truths(self) -> dict[str, NDArray[np.bool_]]:
        """The true graphs of the test rows; without married edges too where that is another graph."""
        Z = self.sim.Z[self.test]
        truths = {"skeleton": self.sim.field.skeleton(Z)}
        if self.sim.setting in PSEUDO_SETTINGS:
            truths["pseudo"] = self.sim.field.pseudo_skeleton(Z)
        return truths


@dataclass
class Outcome:
    """Scores to take, seconds of fit and predict, the full configuration, and what else was learned."""

    evaluations: dict[str, Evaluation]
    seconds: dict[str, float]
    config: dict[str, Any]
    details: dict[str, Any] = field(default_factory=dict)


Run = Callable[[TableCell, Data, dict[str, Any], str], Outcome]


@dataclass(frozen=True)
class Method:
    """``parameters(cell)`` decides the result; ``run`` does the work and gives these evaluations.

    ``check_installed`` raises where a package is missing that ``run`` needs.
    """

    title: str
    evaluations: tuple[str, ...]
    parameters: Callable[[TableCell], dict[str, Any]]
    run: Run
    check_installed: Callable[[], None] = lambda: None


def simulate(cell: TableCell) -> Data:
    n_samples = cell.n_train + N_WATCH + cell.n_test
    ends = cell.n_train, cell.n_train + N_WATCH
    parts = slice(0, ends[0]), slice(*ends), slice(ends[1], None)
    return Data(make_setting(cell.setting, n_samples, cell.seed), *parts)


# -- estimators that answer for themselves -------------------------------------------------------


def _both_scores(model: GraphEstimator, Z: Any) -> dict[str, Evaluation]:
    """``published``: |beta_jk| as it comes, diagonal left in. ``strength``: our symmetric weight."""
    return {
        "published": Evaluation(np.abs(model.predict_coef(Z)), diagonal=True),
        "strength": Evaluation(model.edge_weights(Z)),
    }


def _strength(model: GraphEstimator, Z: Any) -> dict[str, Evaluation]:
    return {"strength": Evaluation(model.edge_weights(Z))}


def _neural(cell: TableCell, data: Data, parameters: dict[str, Any], device: str) -> Outcome:
    model = DNNCGM(**parameters, device=device)
    # A recipe trains on all rows and only watches others; the default holds out its own.
    watched = data.watch if parameters.get("patience", 0) is None else None
    outcome = _fitted(model, data, data.sim.X, _both_scores, watched)
    learned = {"steps": model.n_steps_, "marginals": model.marginals_, "device": hardware(device)}
    return replace(outcome, details=learned)


def hardware(device: str) -> str:
    import torch

    chosen = resolve_device(device)
    return torch.cuda.get_device_name(chosen) if chosen.type == "cuda" else "cpu"


def _estimator(kind: type[GraphEstimator], *, ranks: bool = False, **learned: str) -> Run:
    """An estimator, on normal scores of the ranks if so, and attributes that it learned."""

    def run(cell: TableCell, data: Data, parameters: dict[str, Any], device: str) -> Outcome:
        model = kind(**parameters)
        X = _scores_of_training(data) if ranks else data.sim.X
        outcome = _fitted(model, data, X, _strength if ranks else _both_scores)
        return replace(outcome, details={name: getattr(model, own) for name, own in learned.items()})

    return run


def _scores_of_training(data: Data) -> NDArray:
    return normal_scores(data.sim.X[data.train])


def _fitted(
    model: GraphEstimator, data: Data, X: NDArray, evaluate: Callable, watched: slice | None = None
) -> Outcome:
    Z = data.sim.Z
    held = {} if watched is None else {"X_val": X[watched], "Z_val": Z[watched]}
    start = time.perf_counter()
    model.fit(X[data.train], Z[data.train], **held)
    fitted = time.perf_counter()
    return Outcome(evaluate(model, Z[data.test]), _seconds(start, fitted), plain_params(model))


# -- penalty paths --------------------------------------------------------------------------------


def _path(solve: Callable, *, by_cluster: bool) -> Run:
    def run(cell: TableCell, data: Data, parameters: dict[str, Any], device: str) -> Outcome:
        regime = data.sim.regime
        X = data.sim.X[data.train]
        start = time.perf_counter()
        evaluations, chosen = oracle_evaluations(
            solve, X, regime[data.train] if by_cluster else None, regime[data.test], data.truths()
        )
        seconds = _seconds(start, time.perf_counter())
        evaluations["strength"], config = _own_choice(data, solve, by_cluster)
        seconds["own_choice"] = time.perf_counter() - start - sum(seconds.values())
        return Outcome(evaluations, seconds, {**PATH, **config}, {"penalties": chosen})

    return run


def _own_choice(data: Data, solve: Callable, by_cluster: bool) -> tuple[Evaluation, dict[str, Any]]:
    """The estimator as a user has it, its penalty chosen by cross-validation."""
    model: GraphEstimator = GraphicalLasso() if solve is glasso_path else NodewiseLasso()
    config = plain_params(model)
    labels = pd.DataFrame({"cluster": [f"cluster {label}" for label in data.sim.regime]})
    if by_cluster:
        model = ByCluster(estimator=model, by="cluster")
    model.fit(data.sim.X[data.train], labels.iloc[data.train])
    return Evaluation(model.edge_weights(labels.iloc[data.test])), config


def _cluster_oracle(cell: TableCell, data: Data, parameters: dict[str, Any], device: str) -> Outcome:
    """Graphical lasso inside the true clusters at its best penalty: told twice what nobody knows."""
    X = _scores_of_training(data)
    regime = data.sim.regime
    start = time.perf_counter()
    evaluations, chosen = oracle_evaluations(
        glasso_path, X, regime[data.train], regime[data.test], data.truths()
    )
    seconds = _seconds(start, time.perf_counter())
    return Outcome({"best": evaluations["best"]}, seconds, PATH, {"penalties": chosen["best"]})


def _seconds(start: float, fitted: float) -> dict[str, float]:
    return {"fit": fitted - start, "predict": time.perf_counter() - fitted}


def _recipe(method: str) -> Callable[[TableCell], dict[str, Any]]:
    def parameters(cell: TableCell) -> dict[str, Any]:
        return {**paper_recipe(cell.setting, cell.n_train, method), "random_state": cell.seed}

    return parameters


def _constant(**parameters: Any) -> Callable[[TableCell], dict[str, Any]]:
    return lambda _: dict(parameters)


def _seeded(cell: TableCell) -> dict[str, Any]:
    return {"random_state": cell.seed}


_BETA = ("published", "strength")
_PATH = ("published", "corrected", "best", "strength")
METHODS = {
    "dnn-cgm": Method("DNN-CGM, the paper's settings", _BETA, _recipe("dnn-cgm"), _neural),
    "dnn-cgm-code": Method("DNN-CGM, the published code's settings", _BETA, _recipe("dnn-cgm-code"), _neural),
    "dnn-cgm-default": Method("DNNCGM, our defaults", _BETA, _seeded, _neural),
    "reggmm-adam": Method("RegGMM by Adam", _BETA, _recipe("reggmm-adam"), _neural),
    "reggmm": Method("RegGMM, exact least squares", _BETA, _constant(), _estimator(RegGMM)),
    "reggmm-sparse-group": Method(
        "RegGMM, sparse-group penalty",
        _BETA,
        _constant(penalty="sparse-group"),
        _estimator(RegGMM),
        check_sparse_group,
    ),
    "glasso-by-cluster": Method(
        "glasso by true cluster", _PATH, _constant(), _path(glasso_path, by_cluster=True)
    ),
    "lasso-by-cluster": Method(
        "nodewise lasso by true cluster", _PATH, _constant(), _path(lasso_path, by_cluster=True)
    ),
    "glasso": Method("glasso on all samples", _PATH, _constant(), _path(glasso_path, by_cluster=False)),
    "lasso": Method("nodewise lasso on all samples", _PATH, _constant(), _path(lasso_path, by_cluster=False)),
    "static": Method(
        "static: graphical lasso without z",
        ("strength",),
        _constant(),
        _estimator(GraphicalLasso, ranks=True, penalty="penalty_"),
    ),
    "tree": Method(
        "tree + graphical lasso", ("strength",), _seeded, _estimator(TreeCGM, ranks=True, leaves="n_leaves_")
    ),
    "cluster-oracle": Method(
        "cluster oracle: glasso, clusters given", ("best",), _constant(), _cluster_oracle
    ),
}
# Shown in every table, on normal scores of the ranks: what ignoring z gives, what ten lines of
# scikit-learn give, and what being told the clusters would give.
LINES = {"static": "strength", "tree": "strength", "cluster-oracle": "best"}
