"""The estimators: one line each, from which names, files, command line and tests follow."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Entry:
    """Where an estimator is defined, and what the command line calls it, if it does."""

    module: str
    command: str | None = None

    def load(self, name: str) -> Any:
        return getattr(import_module(self.module), name)


# Imported on first use, so that a classical baseline never imports torch.
ESTIMATORS = {
    "DNNCGM": Entry("graphfield.estimators.dnncgm", "dnncgm"),
    "ArchetypeCGM": Entry("graphfield.estimators.archetype", "archetype"),
    "RegGMM": Entry("graphfield.estimators.reggmm", "linear"),
    "TreeCGM": Entry("graphfield.estimators.tree", "tree"),
    "GraphicalLasso": Entry("graphfield.estimators.graphical_lasso", "static"),
    "NodewiseLasso": Entry("graphfield.estimators.nodewise_lasso", "nodewise"),
    "AutoCGM": Entry("graphfield.estimators.auto", "auto"),
    "ByCluster": Entry("graphfield.estimators.by_cluster", "by-cluster"),
    "Ensemble": Entry("graphfield.estimators.ensemble"),
}


def find_estimator(name: str) -> Any:
    """The class of this name."""
    return ESTIMATORS[name].load(name)
