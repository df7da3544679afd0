"""The static baseline: one sparse graph for everybody."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import Encoded
from graphfield.data.frames import Frame
from graphfield.data.nodes import NodeScaler
from graphfield.data.splits import group_labels
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import check_number, training_inputs
from graphfield.solvers.glasso import graphical_lasso_cv, graphical_lasso_precision


class GraphicalLasso(GraphEstimator):
    """Graphical lasso on all samples; the covariates are checked and then ignored.

    The line that every covariate-dependent estimate should be compared with: if it predicts held-out
    rows as well, the covariates do not matter. ``Z`` may also have no columns at all.

    Parameters
    ----------
    penalty : float, optional
        On standardised nodes; more makes a sparser graph. By default chosen by cross-validation.
    n_penalties : int, default 6
        Penalties in each round of the search; more is finer and slower.
    n_folds : int, default 5
        Cross-validation folds that choose the penalty.
    missing : {"error", "drop", "impute"}, default "error"
        What to do with rows that have missing or infinite values.

    Attributes
    ----------
    precision_ : ndarray of shape (p, p)
        In the user's units.
    penalty_ : float
        The penalty used, on standardised nodes.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=200, random_state=0)
    >>> model = gf.GraphicalLasso().fit(sim.X, sim.Z)
    >>> model.predict_graph(sim.Z[:2], threshold=0.1).shape
    (2, 50, 50)
    """

    _uses_covariates = False

    def __init__(
        self,
        *,
        penalty: float | None = None,
        n_penalties: int = 6,
        n_folds: int = 5,
        missing: str = "error",
    ) -> None:
        self.penalty = penalty
        self.n_penalties = n_penalties
        self.n_folds = n_folds
        self.missing = missing

    def fit(self, X: Any, Z: Any, *, groups: Any = None) -> GraphicalLasso:
        """Estimate one graph; ``groups`` keeps rows of one subject in one fold."""
        check_number("penalty", self.penalty, 0, optional=True, open_low=True)
        check_number("n_penalties", self.n_penalties, 2, integer=True)
        check_number("n_folds", self.n_folds, 2, integer=True)
        inputs = training_inputs(X, Z, self.missing)
        self._remember(inputs)
        self._learn_covariates(inputs, standardize=True, unknown="average")
        self.scaler_ = NodeScaler.learn(inputs.X, center=True, scale=True)
        labels = group_labels(groups, X)
        values = self.scaler_.transform(inputs.X)
        if self.penalty is None:
            groups = None if labels is None else labels[inputs.rows]
            precision, self.penalty_ = graphical_lasso_cv(values, groups, self.n_penalties, self.n_folds)
        else:
            self.penalty_ = float(self.penalty)
            precision = graphical_lasso_precision(values.T @ values / len(values), self.penalty_)
        scale = self.scaler_.scale
        self.precision_ = precision / (scale[:, None] * scale[None, :])
        self._derive()
        self._set_threshold(self._encode_frame(inputs.Z), seed=0)
        return self

    def _derive(self) -> None:
        """Residual scales and coefficients follow from the precision matrix."""
        diagonal = np.diag(self.precision_)
        self.residual_scale_ = 1 / np.sqrt(diagonal)
        coef = -self.precision_ / diagonal[:, None]
        np.fill_diagonal(coef, 0.0)
        self._coef = coef.astype(np.float32)

    def _encode_frame(self, frame: Frame) -> Encoded:
        """Z is checked like everywhere, then all its rows count as equal."""
        n = len(super()._encode_frame(frame))
        return Encoded(np.empty((n, 0)), np.empty((n, 0), dtype=np.int64))

    def _encoded_shape(self) -> tuple[int, int]:
        return 0, 0

    def _coef_at(self, encoded: Encoded) -> NDArray[np.float32]:
        return np.broadcast_to(self._coef, (len(encoded), *self._coef.shape)).copy()

    def _mean_at(self, encoded: Encoded) -> NDArray[np.float64]:
        return np.broadcast_to(self.scaler_.center, (len(encoded), self.n_features_in_)).copy()

    def _get_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        return {"penalty": self.penalty_}, {"precision": self.precision_}

    def _set_state(self, state: dict[str, Any], arrays: dict[str, NDArray]) -> None:
        self.penalty_ = float(state["penalty"])
        self.precision_ = arrays["precision"]
        self._derive()
