"""The estimators: one line each, from which names, files, command line, comparisons and tests follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True)
class Entry:
    """Where an estimator is defined and what follows from it."""

    module: str  # imported on first use, so that a classical baseline never imports torch
    command: str  # what the command line and AutoCGM call it
    how: str = "a fitted model"  # what the page says of how it works
    candidate: dict[str, Any] | None = None  # hyper-parameters with which AutoCGM fits it, if it does
    start: str | None = None  # the candidate whose fitted model it may begin with: the option of ``fit``
    neural: bool = False  # needs torch and most of the time, so that the others are fitted beside it
    one_graph: str | None = None  # what its method is called, if its graph is the same for everybody
    most: tuple[int, int, int] | None = None  # rows, nodes and covariates to which it is a candidate unnamed
    composite: bool = False  # made of others, so that it is compared with them only where it is named
    of: str | None = None  # the candidate of which it is several fits: unnamed, it takes that one's place
    chosen: Mapping[str, str] = field(default_factory=dict)  # what the page calls what its fit chose
    needs: str | None = None  # a package that is no dependency of ours, without which it cannot be fitted

    @property
    def is_there(self) -> bool:
        """Whether it can be fitted on this machine."""
        return self.needs is None or find_spec(self.needs) is not None


# In the order in which they are offered and compared; the seed of a candidate follows from its place among
# them, so that a new one comes last. RegGMM as a candidate has as much ridge as held-out rows ask for. Those
# with one graph are made in one_graph.py.
ESTIMATORS = {
    "GraphicalLasso": Entry(
        "graphfield.estimators.graphical_lasso",
        "static",
        "one sparse graph for everybody",
        {},
        one_graph="graphical lasso",
    ),
    "RegGMM": Entry(
        "graphfield.estimators.reggmm", "linear", "edges are linear in the covariates", {"ridge": "cv"}
    ),
    "BayesianCGM": Entry(
        "graphfield.estimators.bayesian",
        "bayes",
        "edges are linear in the covariates, each with a probability that it is there",
    ),
    "TreeCGM": Entry(
        "graphfield.estimators.tree",
        "tree",
        "one sparse graph per leaf of a tree over the covariates",
        {},
        chosen={"n_leaves_": "Leaves"},
    ),
    "JointGraphicalLasso": Entry(
        "graphfield.estimators.joint",
        "joint",
        "one sparse graph per level of a covariate; levels share what they have in common",
    ),
    "DNNCGM": Entry(
        "graphfield.estimators.dnncgm",
        "dnncgm",
        "edges follow the covariates through a neural network",
        {},
        neural=True,
        chosen={"way_": "Way of fitting", "rank_": "Patterns mixed"},
    ),
    "ArchetypeCGM": Entry(
        "graphfield.estimators.archetype",
        "archetype",
        "the graph mixes a few archetypes in shares that follow the covariates",
        {},
        "dnncgm",
        neural=True,
        chosen={"n_archetypes_": "Archetypes"},
    ),
    "KernelCGM": Entry(
        "graphfield.estimators.kernel",
        "kernel",
        "the graph at each value of the covariates comes from the rows near it",
        {},
        most=(50_000, 60, 2),
    ),
    "ScoreCGM": Entry(
        "graphfield.estimators.score",
        "score",
        "edges of any shape follow the covariates through a density",
        neural=True,
    ),
    "AutoCGM": Entry(
        "graphfield.estimators.auto", "auto", "the kind of model was chosen on held-out rows", composite=True
    ),
    "ByCluster": Entry("graphfield.estimators.by_cluster", "clusters", "one graph per level of a covariate"),
    "NodewiseLasso": Entry(
        "graphfield.estimators.nodewise_lasso",
        "nodewise",
        "one sparse graph for everybody",
        one_graph="nodewise lasso",
    ),
    "Ensemble": Entry(
        "graphfield.estimators.ensemble",
        "ensemble",
        "the average of several fits",
        {},
        neural=True,
        most=(20_000, 100, 1_000),
        composite=True,
        of="dnncgm",
    ),
    "ContextualizedCGM": Entry(
        "graphfield.estimators.contextualized",
        "contextualized",
        "symmetric patterns are mixed in amounts that follow the covariates, by contextualized-ml",
        neural=True,
        chosen={"n_epochs_": "Epochs"},
        needs="contextualized",
    ),
}


def short_names() -> dict[str, str]:
    """What a model is called on the command line, and its class."""
    return {entry.command: name for name, entry in ESTIMATORS.items()}


def candidates() -> dict[str, Entry]:
    """What AutoCGM compares, by the names that it has there, in this order."""
    return {entry.command: entry for entry in ESTIMATORS.values() if entry.candidate is not None}


def find_estimator(name: str) -> Any:
    """The class of this name."""
    return getattr(import_module(ESTIMATORS[name].module), name)


def entry_of(model: Any) -> Entry:
    """Of the estimator that a model is; of others, such as a field, one that says little."""
    return ESTIMATORS.get(type(model).__name__, Entry("", ""))


def takes_node_types(name: str) -> bool:
    """Whether the estimator of this name can be told that nodes are no plain numbers, and fits them."""
    return "node_types" in find_estimator(name).parameter_names()


def kind_parameters(model: Any) -> list[str]:
    """Parameters by which a model, or one inside it, is told what nodes are."""
    return [key for key in model.get_params() if key.split("__")[-1] == "node_types"]


def has_curves(model: Any) -> bool:
    """Whether numbers enter a model, or one inside it, by curves."""
    params = model.get_params()
    return any(key.split("__")[-1] == "features" and value != "linear" for key, value in params.items())


def trains_together(model: Any) -> bool:
    """Whether several fits of a model, to numbers, are one computation.

    By name: asking for the class would import torch for a tree. Its subclasses may have a fit of their own.
    """
    return type(model).__module__ == ESTIMATORS["DNNCGM"].module and not has_curves(model)
