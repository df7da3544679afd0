"""What an estimator whose coefficients are a network of z says of its fit, and keeps of it in a file."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any, Self

import pandas as pd

from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved, optional
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.dnncgm_setup import read_training_columns
from graphfield.estimators.neural_field import NeuralField
from graphfield.estimators.ways import Edges, Way
from graphfield.fields.base import GraphField, State
from graphfield.fields.blocks import BlockField
from graphfield.nn.fields import CoefField
from graphfield.solvers.marginal_choice import MarginalCheck


class NeuralEstimator(GraphEstimator):
    """Base of :class:`DNNCGM`: everything but how it is fitted."""

    device: str

    @property
    def _neural(self) -> NeuralField:
        return _of_columns(self._known())

    def _placed(self, field: GraphField) -> GraphField:
        """The field, computed on the device of this estimator."""
        neural = replace(_of_columns(field), device=self.device)
        return replace(field, columns=neural) if isinstance(field, BlockField) else neural

    def set_params(self, **params: Any) -> Self:
        super().set_params(**params)
        if "device" in params and hasattr(self, "field_"):
            self.field_ = self._placed(self.field_)
        return self

    @property
    def _network(self) -> CoefField:
        return self._neural.network

    @property
    def rank_(self) -> int | None:
        return self._network.config.rank

    @property
    def mean_depends_on_covariates_(self) -> bool:
        return self._neural.mean.moves

    @property
    def marginals_(self) -> str:
        return self._known().schema.marginals

    def _note(self, edges: Edges, way: Way, check: MarginalCheck | None) -> None:
        """How the coefficients were found."""
        self.way_, self.marginal_check_ = str(way), check
        self.training_, self.variation_ = edges.history, edges.kept_share
        self.n_steps_, self.best_step_ = edges.n_steps, edges.best_step
        self.penalty_, self.lost_, self.additive_ = edges.penalty, edges.lost, edges.additive

    def _findings(self) -> list[str]:
        steps = f"{self.n_steps_} training steps. Way of fitting: {self.way_}."
        if self.additive_:
            return [steps, f"Edges follow single covariates; penalty {self.penalty_:.3g}."]
        if self.rank_ is None or self.variation_ == 0:
            return [steps]
        return [steps, f"The graph mixes {self.rank_} patterns of edges; penalty {self.penalty_:.3g}."]

    def facts(self) -> dict[str, Any]:
        check, history = self.marginal_check_, self.training_
        chosen = history if self.rank_ is None else history[history["rank"] == self.rank_]
        losses = chosen["held_out_loss"].dropna()
        return super().facts() | {
            "way": self.way_,
            "steps": self.n_steps_,
            "rank": self.rank_,
            "penalty": self.penalty_,
            "variation": self.variation_,
            "held_out_loss": float(losses.min()) if len(losses) else None,
            "normal_scores_gain": None if check is None or math.isnan(check.gain) else check.gain,
            "mean_depends_on_covariates": self.mean_depends_on_covariates_,
        }

    def _get_learned(self) -> State:
        return {
            "way": self.way_,
            "n_steps": self.n_steps_,
            "best_step": self.best_step_,
            "lost": self.lost_,
            "penalty": self.penalty_,
            "variation": self.variation_,
            "additive": self.additive_,
            "marginal_check": None if self.marginal_check_ is None else asdict(self.marginal_check_),
            "training": self.training_.to_dict("list"),
        }, {}

    def _set_learned(self, state: Saved, arrays: SavedArrays) -> None:  # noqa: ARG002
        self.field_ = self._placed(self._known())
        self.way_ = state["way"].text()
        self.n_steps_, self.best_step_ = state["n_steps"].whole(), state["best_step"].whole()
        self.lost_, self.penalty_ = state["lost"].flag(), state["penalty"].number(0)
        self.variation_ = state["variation"].number(0, 1)
        self.additive_ = state["additive"].flag()
        self.marginal_check_ = optional(state.known("marginal_check"), MarginalCheck.from_saved, None)
        self.training_ = pd.DataFrame(read_training_columns(state["training"]))


def _of_columns(field: GraphField) -> NeuralField:
    """The field itself, or that of the columns of nodes that are no plain numbers."""
    return (field.columns if isinstance(field, BlockField) else field).of_kind(NeuralField)
