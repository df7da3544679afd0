"""One graph for everybody: what a graph that varies must beat, wherever the two are compared.

AutoCGM, tests with a model, comparisons of methods, studies and the page all take it from here, so that what
they say of a model can be compared.
"""

from __future__ import annotations

from typing import Any

from graphfield.data.node_types import NodeTypes
from graphfield.estimators.registry import ESTIMATORS, find_estimator, takes_node_types
from graphfield.estimators.static import StaticGraph

# What it is called among other models.
STATIC = "static"


def static_models(
    types: NodeTypes | None = None, *, center: str = "covariates", **options: Any
) -> dict[str, StaticGraph]:
    """One graph by each of the methods that suit the nodes; the better one is to be beaten.

    ``types`` are those of the nodes where some are no plain numbers. Means follow z, unless those of another
    model were taken away before.

    >>> [(name, type(model).__name__, model.center) for name, model in static_models().items()]
    [('graphical lasso', 'GraphicalLasso', 'covariates'), ('nodewise lasso', 'NodewiseLasso', 'covariates')]
    """
    return {
        entry.one_graph: find_estimator(name)(center=center, **options)
        for name, entry in ESTIMATORS.items()
        if entry.one_graph is not None and (types is None or takes_node_types(name))
    }


def static_model(types: NodeTypes | None = None) -> StaticGraph:
    """The first of them: what comparisons of methods call "static", as AutoCGM does the better one."""
    return next(iter(static_models(types).values()))
