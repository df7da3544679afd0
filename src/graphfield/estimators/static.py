"""What the estimators with one graph for everybody have in common."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariates import Encoded, features, n_features
from graphfield.data.frames import Frame
from graphfield.data.missing import POLICIES
from graphfield.data.nodes import NodeScaler
from graphfield.data.saved_arrays import AtMost, SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.data.splits import cross_labels
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.group_inputs import without_levels
from graphfield.estimators.inputs import check_number, training_inputs
from graphfield.exceptions import ExtrapolationWarning, ParameterError, check_choice, listing, suggestion
from graphfield.solvers.interaction import linear_mean
from graphfield.solvers.node_scales import learn_node_scales
from graphfield.solvers.penalties import PenaltyChoice

# What is subtracted from the nodes: one mean each, or one that is linear in z.
CENTERS_OF_STATIC = ("constant", "covariates")
# Of the regression of the nodes on z, so that it exists for any z.
_RIDGE = 1e-6
# Ways to choose the penalty; a number is taken as it is.
CRITERIA = ("cv", "ebic")
# Penalties of a path in a file.
_MAX_PATH = 1_000_000


class StaticGraph(GraphEstimator):
    """Base of the estimators whose graph is the same for every z; one penalty is chosen or given.

    With ``center="constant"`` Z is checked and then ignored; with "covariates" means are linear in it, and
    scales of nodes move with it where held-out rows support that.

    A subclass says how to solve for the penalty of its choice (:meth:`_by_cv`, :meth:`_by_ebic`,
    :meth:`_at`) and what follows from the solution (:meth:`_use`), and keeps what it learned in
    :meth:`_arrays` and :meth:`_set_arrays`.
    """

    penalty: float | str
    n_penalties: int
    n_folds: int
    ebic_gamma: float
    center: str
    penalty_: float
    path_: pd.DataFrame
    _coef: NDArray[np.float32]  # (p, p), of standardised nodes
    _mean: NDArray[np.float64] | None  # (m, p), on the features of z; None for one mean each

    @abstractmethod
    def _by_cv(self, values: NDArray, groups: NDArray | None) -> PenaltyChoice:
        """The penalty chosen on held-out rows of the standardised ``values``."""

    @abstractmethod
    def _by_ebic(self, S: NDArray, n_samples: int) -> PenaltyChoice:
        """The penalty chosen by the extended BIC from the correlation matrix."""

    @abstractmethod
    def _at(self, S: NDArray, penalty: float) -> PenaltyChoice:
        """The solution at a given penalty."""

    @abstractmethod
    def _use(self, solution: NDArray, values: NDArray) -> None:
        """Set ``residual_scale_``, ``_coef`` and the public matrix from the solution."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray]:
        """What :meth:`_use` has set, to be saved."""

    @abstractmethod
    def _set_arrays(self, arrays: SavedArrays) -> None:
        """Inverse of :meth:`_arrays`."""

    def fit(self, X: Any, Z: Any, *, groups: Any = None) -> Self:
        """Estimate one graph; ``groups`` keeps rows of one subject in one fold."""
        self._check_parameters()
        inputs = training_inputs(X, Z, self.missing)
        inputs, labels, self.level_check_ = without_levels(inputs, groups, X)
        self._remember(inputs)
        self._learn_covariates(inputs, standardize=True, unknown="average")
        self.scaler_ = NodeScaler.learn(inputs.X, center=True, scale=True)
        values = self.scaler_.transform(inputs.X)
        self._mean = self._scales = None
        if self.center == "covariates":
            values = self._without_mean_and_scale(values, inputs.Z, labels)
        chosen = self._choose(values, labels)
        self.penalty_, self.path_ = chosen.penalty, path_frame(chosen.path)
        self._use(chosen.solution, values)
        self._set_threshold(inputs.X, self._encode_frame(inputs.Z), labels, seed=0)
        return self

    @property
    def _uses_covariates(self) -> bool:  # type: ignore[override]
        return self.center == "covariates"

    def _without_mean_and_scale(
        self, values: NDArray, Z: Frame, labels: NDArray | None
    ) -> NDArray[np.float64]:
        """Standardised nodes less their linear mean, in standard units (at z) of what is left."""
        W = features(self.encoder_, self.encoder_.transform(Z))
        mean = linear_mean(values, W, _RIDGE)
        left = values - W @ mean
        folds = cross_labels(len(left), labels)
        self._scales = learn_node_scales(left, W, len(self.encoder_.numeric), folds, labels)
        if self._scales is not None:
            left /= self._scales.at(W)
        spread = left.std(axis=0)
        spread[spread < 1e-9] = 1.0  # a node that z determines
        self.scaler_ = NodeScaler(self.scaler_.center, self.scaler_.scale * spread)
        self._mean = mean / spread
        return left / spread

    def _check_parameters(self) -> None:
        check_penalty(self.penalty)
        check_choice("center", self.center, CENTERS_OF_STATIC)
        check_number("n_penalties", self.n_penalties, 2, integer=True)
        check_number("n_folds", self.n_folds, 2, integer=True)
        check_number("ebic_gamma", self.ebic_gamma, 0)
        check_choice("missing", self.missing, POLICIES)

    def _choose(self, values: NDArray, groups: NDArray | None) -> PenaltyChoice:
        if self.penalty == "cv":
            return self._by_cv(values, groups)
        S = values.T @ values / len(values)
        return self._by_ebic(S, len(values)) if self.penalty == "ebic" else self._at(S, float(self.penalty))

    def _encode_frame(self, frame: Frame) -> Encoded:
        """Z is checked like everywhere; where it is ignored, all its rows then count as equal."""
        if self._uses_covariates:
            return super()._encode_frame(frame)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)  # no range matters to this graph
            n = len(super()._encode_frame(frame))
        return Encoded(np.empty((n, 0)), np.empty((n, 0), dtype=np.int64))

    def _encoded_shape(self) -> tuple[int, int]:
        return super()._encoded_shape() if self._uses_covariates else (0, 0)

    def _coef_at(self, encoded: Encoded) -> NDArray[np.float32]:
        return np.broadcast_to(self._coef, (len(encoded), *self._coef.shape)).copy()

    def _mean_at(self, encoded: Encoded) -> NDArray[np.float64]:
        if self._mean is not None:
            return self.scaler_.restore(features(self.encoder_, encoded) @ self._mean)
        return np.broadcast_to(self.scaler_.center, (len(encoded), self.n_features_in_)).copy()

    def _get_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        path = self.path_.to_numpy(dtype=np.float64, na_value=np.nan)
        mean = {} if self._mean is None else {"mean": self._mean}
        return {"penalty": self.penalty_}, {"path": path, **mean, **self._arrays()}

    def _set_state(self, state: Saved, arrays: SavedArrays) -> None:
        self.penalty_ = float(state["penalty"].number(0))
        path = np.empty((0, 3))  # files of earlier versions have none
        if "path" in arrays:
            path = arrays.read("path", (AtMost(_MAX_PATH), 3), nan=True)
            n_edges = path[~np.isnan(path[:, 2]), 2]
            if not ((n_edges >= 0) & (n_edges < 2**53) & (n_edges == np.floor(n_edges))).all():
                arrays.refuse("path", "with numbers of edges in its last column", str(n_edges[:8]))
        self.path_ = path_frame(path)
        self._mean = None
        if self.center == "covariates":
            self._mean = arrays.read("mean", (n_features(self.encoder_), self.n_features_in_))
        self._set_arrays(arrays)


def path_frame(path: NDArray[np.float64]) -> pd.DataFrame:
    """``penalty, score, n_edges``, one row per penalty; missing where it is not known."""
    finite = np.where(np.isfinite(path), path, np.nan)
    return pd.DataFrame(finite, columns=["penalty", "score", "n_edges"]).astype({"n_edges": "Int64"})


def check_penalty(value: Any) -> None:
    """Raise unless ``value`` is one of the criteria or a number above zero."""
    if isinstance(value, str) and value in CRITERIA:
        return
    numeric = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not (numeric and 0 < value < np.inf):
        hint = suggestion(value, CRITERIA) if isinstance(value, str) else ""
        raise ParameterError(
            f"penalty must be one of {listing(CRITERIA)} or a number above 0, got {value!r}.{hint}"
        )
