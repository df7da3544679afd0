"""Nodes as models take them (as they are, normal scores, logarithms): errors are counted in these units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import CovariateEncoder
from graphfield.data.marginals import NodeMap
from graphfield.data.splits import group_labels
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import covariate_table, node_table
from graphfield.estimators.inputs import Inputs, training_inputs
from graphfield.estimators.registry import has_curves
from graphfield.estimators.training_set import choose_map

AUTO, RAW, NORMAL = "auto", "raw", "normal"
# What sentences say of nodes that are not as they were given.
_AS = {NORMAL: "nodes as normal scores", "log1p": "nodes as log(1 + x)", "clr": "nodes as log-ratios"}


@dataclass(frozen=True)
class CommonNodes:
    """What nodes are turned into once, for everything that is compared: its name, and the map."""

    name: str
    scores: NodeMap | None

    @classmethod
    def choose(cls, inputs: Inputs, wanted: str, labels: NDArray[np.intp] | None) -> CommonNodes:
        """As asked for; with "auto" as an estimator would decide it from all rows."""
        if wanted == RAW or inputs.types is not None:  # each node has the likelihood of its family, as it is
            return cls(RAW, None)
        encoder = CovariateEncoder(unknown="average").fit(inputs.Z, allow_empty=True)
        scores, _ = choose_map(inputs, encoder, wanted, labels)
        return cls(RAW if scores is None else scores.name, scores)

    def turn(self, inputs: Inputs) -> Inputs:
        return inputs if self.scores is None else replace(inputs, X=self.scores.transform(inputs.X))

    def take_over(self, model: GraphEstimator) -> GraphEstimator:
        """``model``, which is not to turn again what was turned already, nor to decide it anew."""
        done = {AUTO, self.name}
        own = {key: value for key, value in model.get_params().items() if key.split("__")[-1] == "marginals"}
        return model.set_params(**{key: RAW for key, value in own.items() if value in done})


def fit_with_nodes(
    model: GraphEstimator, X: Any, Z: Any, nodes: str, *, groups: Any = None
) -> GraphEstimator:
    """``model``, fitted to nodes that were turned into ``nodes``; it speaks of the user's own."""
    if "marginals" in model.get_params():
        return model.set_params(marginals=nodes).fit(X, Z, groups=groups)
    if nodes == RAW:
        return model.fit(X, Z, groups=groups)
    inputs = training_inputs(X, Z, model.missing_policy(), groups=groups)
    common = CommonNodes.choose(inputs, nodes, None)
    seen = node_table(common.turn(inputs), slice(None)), covariate_table(inputs.Z, slice(None))
    model.fit(*seen, groups=group_labels(groups, X, inputs.rows))
    model.field_ = model.field_.with_scores(common.scores)
    return model


def taken_as(nodes: str) -> str:
    """For brackets in a sentence; nothing of nodes as they are."""
    return f" ({_AS[nodes]})" if nodes in _AS else ""


def wanted_nodes(model: GraphEstimator) -> str:
    """What a model takes nodes as: what it has decided where it is fitted, else what it was told."""
    if hasattr(model, "field_"):
        return str(model.field_.schema.marginals)
    if has_curves(model):  # of nodes as they are
        return RAW
    own: dict[str, Any] = model.get_params()
    return next((str(own[key]) for key in own if key.split("__")[-1] == "marginals"), RAW)
