"""RegGMM: coefficients linear in the covariates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import UNKNOWN_POLICIES, Encoded, features
from graphfield.data.missing import POLICIES
from graphfield.data.nodes import NodeScaler
from graphfield.data.splits import group_labels
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import CENTERS, check_flag, check_number, training_inputs
from graphfield.exceptions import check_choice
from graphfield.solvers.interaction import interaction_coefficients


class RegGMM(GraphEstimator):
    """Covariate-dependent graphical model with linear coefficients, by exact least squares.

    ``x_j - mu_j(z) = sum_{k != j} (b_jk0 + sum_l b_jkl z_l) (x_k - mu_k(z)) + eps_j`` with a mean
    that is linear in z too. This is the linear line to compare a neural model with; there is no
    sparsity yet, so weights are never exactly zero. Categorical covariates enter as one column per
    level but the first.

    Parameters
    ----------
    ridge : float, default 1e-3
        Penalty on the squared coefficients of standardised data; more pulls all edges to zero.
    center : {"covariates", "constant", "none"}
        Subtract a mean that is linear in z, one mean per node, or nothing.
    standardize : bool
        Divide nodes and numeric covariates by their standard deviations (undone on output).
    missing : {"error", "drop", "impute"}
        Rows with missing or infinite values: refused, left out, or filled in with a warning.
    unknown : {"error", "average"}
        A category at prediction that training did not have: refused, or the average of the others.

    Attributes
    ----------
    interactions_ : ndarray of shape (m, p, p)
        Coefficients of the m features of z (a one, numeric covariates, levels), in standard units.

    Examples
    --------
    >>> import graphfield as gf
    >>> sim = gf.make_setting("G1", n_samples=500, random_state=0)
    >>> gf.RegGMM().fit(sim.X, sim.Z).edge_weights(sim.Z[:2]).shape
    (2, 50, 50)
    """

    def __init__(
        self,
        *,
        ridge: float = 1e-3,
        center: str = "covariates",
        standardize: bool = True,
        missing: str = "error",
        unknown: str = "error",
    ) -> None:
        self.ridge = ridge
        self.center = center
        self.standardize = standardize
        self.missing = missing
        self.unknown = unknown

    def fit(self, X: Any, Z: Any, *, groups: Any = None) -> RegGMM:
        """Solve for all coefficients at once; ``groups`` is checked only, as no rows are held out."""
        check_number("ridge", self.ridge, 0, open_low=True)
        check_choice("center", self.center, CENTERS)
        check_flag("standardize", self.standardize)
        check_choice("missing", self.missing, POLICIES)
        check_choice("unknown", self.unknown, UNKNOWN_POLICIES)
        inputs = training_inputs(X, Z, self.missing)
        group_labels(groups, X)
        self._remember(inputs)
        self._learn_covariates(inputs, standardize=self.standardize, unknown=self.unknown)
        self.scaler_ = NodeScaler.learn(inputs.X, center=self.center != "none", scale=self.standardize)
        encoded = self.encoder_.transform(inputs.Z)
        W = features(self.encoder_, encoded)
        values = self.scaler_.transform(inputs.X)
        self._mean = self._linear_mean(values, W)
        residual = values - W @ self._mean
        self.interactions_ = interaction_coefficients(residual, W, self.ridge)
        fitted = np.einsum("iw,wjk,ik->ij", W, self.interactions_, residual, optimize=True)
        self.residual_scale_ = self.scaler_.scale * (residual - fitted).std(axis=0)
        self._set_threshold(encoded, seed=0)
        return self

    def _linear_mean(self, values: NDArray, W: NDArray) -> NDArray[np.float64]:
        """Coefficients of the mean on the features of z, (m, p)."""
        if self.center != "covariates":
            return np.zeros((W.shape[1], values.shape[1]))
        gram = W.T @ W / len(W) + self.ridge * np.eye(W.shape[1])
        return np.linalg.solve(gram, W.T @ values / len(W))

    def _coef_at(self, encoded: Encoded) -> NDArray[np.float32]:
        W = features(self.encoder_, encoded)
        # One product per row: the graph at z has the same bits whatever else is asked for.
        coef = np.empty((len(W), *self.interactions_.shape[1:]), dtype=np.float32)
        flat = self.interactions_.reshape(len(self.interactions_), -1)
        for row, weights in enumerate(W):
            coef[row] = (weights @ flat).reshape(coef.shape[1:])
        return self.scaler_.restore_coef(coef)

    def _mean_at(self, encoded: Encoded) -> NDArray[np.float64]:
        return self.scaler_.restore(features(self.encoder_, encoded) @ self._mean)

    def _get_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        arrays = {"interactions": self.interactions_, "mean": self._mean}
        return {"n_covariate_features": len(self._mean)}, arrays

    def _set_state(self, state: dict[str, Any], arrays: dict[str, NDArray]) -> None:
        self.interactions_, self._mean = arrays["interactions"], arrays["mean"]
        if len(self._mean) != state["n_covariate_features"]:
            raise ValueError(f"expected {state['n_covariate_features']} features, got {len(self._mean)}")
