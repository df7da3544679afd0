"""What the estimators with one graph for everybody have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariates import CovariateEncoder, features
from graphfield.data.moving_scales import MovingScales
from graphfield.data.nodes import NodeScaler
from graphfield.data.saved_arrays import AtMost, SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.parameters import Choice, WordOrNumber
from graphfield.estimators.training_set import TrainingSet
from graphfield.fields.base import Common, GraphField, State
from graphfield.fields.linear import StaticField
from graphfield.fields.schema import Schema
from graphfield.solvers.interaction import linear_mean, subtract_mean
from graphfield.solvers.marginal_choice import MarginalCheck
from graphfield.solvers.moments import FoldMoments, RowMoments
from graphfield.solvers.penalties import PenaltyChoice
from graphfield.solvers.scale_choice import learn_node_scales

# What is subtracted from the nodes: one mean each, or one that is linear in z.
CENTER_OF_STATIC = Choice(("constant", "covariates"))
# Of the regression of the nodes on z, so that it exists for any z.
RIDGE = 1e-6
# Ways to choose the penalty; a number is taken as it is.
CRITERION = WordOrNumber(("cv", "ebic"))
# Penalties of a path in a file.
_MAX_PATH = 1_000_000


class StaticGraph(GraphEstimator):
    """Base of the estimators whose graph is the same for every z; one penalty is chosen or given.

    With ``center="constant"`` Z is checked and then ignored; with "covariates" means are linear in it, and
    scales of nodes move with it where held-out rows support that.

    A subclass says how to solve for a penalty that held-out rows or the extended BIC choose, or that is given
    (``_solvers``), and what follows from the solution (:meth:`_use`).
    """

    penalty: float | str
    n_penalties: int
    n_folds: int
    ebic_gamma: float
    center: str
    penalty_: float
    path_: pd.DataFrame
    marginal_check_: MarginalCheck | None = None
    _solvers: ClassVar[tuple[Callable[..., PenaltyChoice], ...]]
    # Whether the solution is a precision matrix, whose edges never shrink.
    _definite: ClassVar[bool] = False

    @abstractmethod
    def _use(self, solution: NDArray, covariance: NDArray, scale: NDArray) -> tuple[NDArray, NDArray]:
        """Set the public matrix; returns weights of the standardised nodes, and residual scales.

        The latter, and the public matrix, are in the user's units, of which ``scale`` make one.
        """

    def _fit(self, data: TrainingSet) -> GraphField:
        schema = self._learn_schema(data, standardize=True, unknown="average")
        schema, data = self._take_scores(schema, data)
        scaler = NodeScaler.learn(data.X, center=True, scale=True)
        values, mean, scales = scaler.transform(data.all_nodes), None, None
        if self.center == "covariates":
            values, mean, scales, spread = _without_mean_and_scale(values, schema.encoder, data)
            scaler = NodeScaler(scaler.center, scaler.scale * spread)
        moments = RowMoments.of(values[: len(data.X)])
        chosen = self._choose(values, moments, data)
        self.penalty_, self.path_ = chosen.penalty, path_frame(chosen.path)
        weights, residual_scale = self._use(chosen.solution, moments.covariance, scaler.scale)
        common = Common(schema, scaler, residual_scale, scales)
        return StaticField(common, weights.astype(np.float32), mean, self._definite)

    def _take_scores(self, schema: Schema, data: TrainingSet) -> tuple[Schema, TrainingSet]:
        """Nodes as they are, or as a subclass has them."""
        return schema, data

    @property
    def _uses_covariates(self) -> bool:  # type: ignore[override]
        return self.center == "covariates"

    def _choose(self, values: NDArray, moments: RowMoments, data: TrainingSet) -> PenaltyChoice:
        S, n = self._correlations(values[: moments.n], moments), moments.n
        by_folds, by_ebic, at = self._solvers
        if self.penalty == "cv":
            folds = data.fold_labels(self.n_folds, shuffle=False)
            return by_folds(S, n, self._fold_correlations(values, folds), self.n_penalties)
        if self.penalty == "ebic":
            return by_ebic(S, n, self.n_penalties, self.ebic_gamma)
        return at(S, float(self.penalty))

    def _correlations(self, values: NDArray, moments: RowMoments) -> NDArray[np.float64]:  # noqa: ARG002
        return moments.about(0.0)

    def _fold_correlations(self, values: NDArray, folds: NDArray[np.intp]) -> list[FoldMoments]:
        return FoldMoments.of_each(values, folds)

    def _get_learned(self) -> State:
        path = self.path_.to_numpy(dtype=np.float64, na_value=np.nan)
        return {"penalty": self.penalty_}, {"path": path}

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:
        self.penalty_ = float(state["penalty"].number(0))
        path = arrays.read("path", (AtMost(_MAX_PATH), 3), nan=True)
        n_edges = path[~np.isnan(path[:, 2]), 2]
        if not ((n_edges >= 0) & (n_edges < 2**53) & (n_edges == np.floor(n_edges))).all():
            arrays.refuse("path", "with numbers of edges in its last column", str(n_edges[:8]))
        self.path_ = path_frame(path)


def _without_mean_and_scale(
    values: NDArray, encoder: CovariateEncoder, data: TrainingSet
) -> tuple[NDArray, NDArray, MovingScales | None, NDArray]:
    """Standardised nodes (overwritten) less their linear mean, in standard units (at z) of what is left.

    Then that mean, in the same units, the scales that move with z, and by how much units are smaller.
    """
    W, n = features(encoder, data.encode(encoder)), len(data.X)
    mean = linear_mean(values[:n], W[:n], RIDGE)
    subtract_mean(values, W, mean)
    scales = learn_node_scales(data.scale_rows(values[:n], W[:n], encoder))
    if scales is not None:
        scales.divide(values, W)
    spread = NodeScaler.learn(values[:n], center=True, scale=True).scale
    spread[spread < 1e-9] = 1.0  # a node that z determines
    return NodeScaler(np.zeros_like(spread), spread).transform(values), mean / spread, scales, spread


def path_frame(path: NDArray[np.float64]) -> pd.DataFrame:
    """``penalty, score, n_edges``, one row per penalty; missing where it is not known."""
    finite = np.where(np.isfinite(path), path, np.nan)
    return pd.DataFrame(finite, columns=["penalty", "score", "n_edges"]).astype({"n_edges": "Int64"})
