"""The estimators: one line each, from which names, files, command line, comparisons and tests follow."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Entry:
    """Where an estimator is defined and what follows from it."""

    module: str  # imported on first use, so that a classical baseline never imports torch
    command: str  # what the command line and AutoCGM call it
    candidate: dict[str, Any] | None = None  # hyper-parameters with which AutoCGM fits it, if it does
    start: str | None = None  # the candidate whose fitted model it may begin with: the option of ``fit``
    neural: bool = False  # needs torch and most of the time, so that the others are fitted beside it
    one_graph: str | None = None  # what its method is called, if its graph is the same for everybody
    most: tuple[int, int, int] | None = None  # rows, nodes and covariates to which it is a candidate unnamed


# In the order in which they are offered and compared; the seed of a candidate follows from its place among
# them, so that a new one comes last. RegGMM as a candidate has more ridge than by default:
# nearly the same graphs, and better predictions from few rows. Those with one graph are made in one_graph.py.
ESTIMATORS = {
    "GraphicalLasso": Entry(
        "graphfield.estimators.graphical_lasso", "static", {}, one_graph="graphical lasso"
    ),
    "RegGMM": Entry("graphfield.estimators.reggmm", "linear", {"ridge": 0.1}),
    "BayesianCGM": Entry("graphfield.estimators.bayesian", "bayes"),
    "TreeCGM": Entry("graphfield.estimators.tree", "tree", {}),
    "JointGraphicalLasso": Entry("graphfield.estimators.joint", "joint"),
    "DNNCGM": Entry("graphfield.estimators.dnncgm", "dnncgm", {}, neural=True),
    "ArchetypeCGM": Entry("graphfield.estimators.archetype", "archetype", {}, "dnncgm", neural=True),
    "KernelCGM": Entry("graphfield.estimators.kernel", "kernel", {}, most=(50_000, 60, 2)),
    "ScoreCGM": Entry("graphfield.estimators.score", "score", neural=True),
    "AutoCGM": Entry("graphfield.estimators.auto", "auto"),
    "ByCluster": Entry("graphfield.estimators.by_cluster", "clusters"),
    "NodewiseLasso": Entry("graphfield.estimators.nodewise_lasso", "nodewise", one_graph="nodewise lasso"),
    "Ensemble": Entry("graphfield.estimators.ensemble", "ensemble"),
}


# Made of others, which would be fitted again: compared with them where they are named only.
COMPOSITES = ("AutoCGM", "Ensemble")


def short_names() -> dict[str, str]:
    """What a model is called on the command line, and its class."""
    return {entry.command: name for name, entry in ESTIMATORS.items()}


def candidates() -> dict[str, Entry]:
    """What AutoCGM compares, by the names that it has there, in this order."""
    return {entry.command: entry for entry in ESTIMATORS.values() if entry.candidate is not None}


def find_estimator(name: str) -> Any:
    """The class of this name."""
    return getattr(import_module(ESTIMATORS[name].module), name)


def takes_node_types(name: str) -> bool:
    """Whether the estimator of this name can be told that nodes are no plain numbers, and fits them."""
    return "node_types" in find_estimator(name).parameter_names()


def kind_parameters(model: Any) -> list[str]:
    """Parameters by which a model, or one inside it, is told what nodes are."""
    return [key for key in model.get_params() if key.split("__")[-1] == "node_types"]
