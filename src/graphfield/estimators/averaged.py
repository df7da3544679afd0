"""Weighted averages of fitted models: what the estimators built so have in common."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import Encoded, features
from graphfield.data.frames import Frame
from graphfield.data.marginals import NormalScores
from graphfield.data.nodes import rescale_coef
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import CompositeGraph
from graphfield.estimators.inputs import Inputs
from graphfield.estimators.judged_pairs import KnownCut
from graphfield.exceptions import ExtrapolationWarning
from graphfield.solvers.marginal_choice import MarginalCheck, prefer_normal_scores

# How far from one the weights of a file may add up.
_WEIGHTS_OFF = 1e-6


class AveragedGraph(CompositeGraph):
    """Base of the estimators that average fitted members, with weights that sum to one.

    Coefficients, means and residual variances at z are the weighted averages of those of the members.
    A subclass fits the members and hands them to :meth:`_take`.

    Attributes
    ----------
    members_ : list of estimators
        The fitted models; those with weight zero are not kept.
    weights_ : ndarray of shape (n_members,)
        Their weights.
    """

    weights_: NDArray[np.float64]
    marginal_check_: MarginalCheck | None = None

    @property
    def marginals_(self) -> str:
        return "raw" if self._scores is None else "normal"

    def _learn_marginals(self, inputs: Inputs, labels: NDArray | None, marginals: str) -> Inputs:
        """Nodes as all members are to see them: an average needs members on one scale.

        The covariates must be known.
        """
        self.marginal_check_ = None
        if marginals == "auto":
            W = features(self.encoder_, self.encoder_.transform(inputs.Z))
            self.marginal_check_ = prefer_normal_scores(inputs.X, W, labels)
            marginals = "normal" if self.marginal_check_.prefers else "raw"
        self._scores = NormalScores.learn(inputs.X) if marginals == "normal" else None
        return inputs if self._scores is None else replace(inputs, X=self._scores.transform(inputs.X))

    @property
    def members_(self) -> list[GraphEstimator]:
        return list(self._parts)

    def _known_cut(self) -> KnownCut:
        """The average of those of the members."""
        return KnownCut(float(self.weights_ @ [member.threshold_.value for member in self._parts]))

    def _take(self, members: Sequence[GraphEstimator], weights: Sequence[float] | NDArray) -> None:
        """Become the average of ``members``, which were fitted to the same nodes and covariates."""
        shares = np.asarray(weights, dtype=np.float64)
        if len(shares) != len(members) or not (shares >= 0).all() or not shares.sum() > 0:
            raise ValueError(f"one weight >= 0 per member is needed, got {shares} for {len(members)}")
        self._parts = [member for member, share in zip(members, shares, strict=True) if share > 0]
        self.weights_ = shares[shares > 0] / shares.sum()
        self._uses_covariates = any(member._uses_covariates for member in self._parts)

    def _encoded_shape(self) -> tuple[int, int]:
        numeric, codes = zip(*(member._encoded_shape() for member in self._parts), strict=True)
        return sum(numeric), sum(codes)

    def _encode_frame(self, frame: Frame) -> Encoded:
        """The row as each member sees it, side by side."""
        with warnings.catch_warnings():
            if not self._uses_covariates:  # no range matters to one graph for everybody
                warnings.simplefilter("ignore", ExtrapolationWarning)
            super()._encode_frame(frame)  # unknown levels and values far outside are reported once, here
            warnings.simplefilter("ignore", ExtrapolationWarning)
            seen = [member._encode_frame(frame) for member in self._parts]
        return Encoded(np.hstack([own.numeric for own in seen]), np.hstack([own.codes for own in seen]))

    def _by_member(self, encoded: Encoded) -> Iterator[tuple[float, GraphEstimator, Encoded]]:
        """Weight of each member, the member, and the rows as it sees them."""
        numeric = codes = 0
        for weight, member in zip(self.weights_, self._parts, strict=True):
            n_numeric, n_codes = member._encoded_shape()
            own = Encoded(
                encoded.numeric[:, numeric : numeric + n_numeric], encoded.codes[:, codes : codes + n_codes]
            )
            yield float(weight), member, own
            numeric, codes = numeric + n_numeric, codes + n_codes

    def _coef_at(self, encoded: Encoded) -> NDArray[np.float32]:
        if len(self._parts) == 1:
            return self._parts[0]._coef_at(encoded)
        p = self.n_features_in_
        # Doubles, so that equal members average to themselves after rounding.
        total = np.zeros((len(encoded), p, p))
        unit = self._unit_at(encoded)
        for weight, member, own in self._by_member(encoded):
            coef = rescale_coef(member._coef_at(own), member._unit_at(own) / unit)
            total += np.multiply(coef, weight, dtype=np.float64)
        return total.astype(np.float32)

    def _mean_at(self, encoded: Encoded) -> NDArray[np.float64]:
        mean = np.zeros((len(encoded), self.n_features_in_))
        for weight, member, own in self._by_member(encoded):
            mean += weight * member._mean_at(own)
        return mean

    def _unit_at(self, encoded: Encoded) -> NDArray[np.float64]:
        """That of the first member; those of the others are much the same."""
        _, member, own = next(self._by_member(encoded))
        return member._unit_at(own)

    def _residual_scale_at(self, encoded: Encoded) -> NDArray[np.float64]:
        variance, unit = np.zeros((len(encoded), self.n_features_in_)), self._unit_at(encoded)
        for weight, member, own in self._by_member(encoded):
            variance += weight * (member._residual_scale_at(own) * (member._unit_at(own) / unit)) ** 2
        return np.sqrt(variance)

    def _node_scale_at(self, encoded: Encoded) -> NDArray[np.float64]:
        if len(self._parts) == 1:
            return self._parts[0]._node_scale_at(encoded)
        variance, unit = np.zeros((len(encoded), self.n_features_in_)), self._unit_at(encoded)
        for weight, member, own in self._by_member(encoded):
            variance += weight * (member._unit_at(own) / unit) ** 2
        return np.sqrt(variance)

    def _get_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        state, arrays = super()._get_state()
        return state, {**arrays, "weights": self.weights_}

    def _set_state(self, state: Saved, arrays: SavedArrays) -> None:
        super()._set_state(state, arrays)
        weights = arrays.read("weights", (len(self._parts),), low=0, high=1, above=True)
        if abs(weights.sum() - 1) > _WEIGHTS_OFF:
            arrays.refuse("weights", "shares that sum to one", str(weights.sum()))
        # As they were: dividing by their sum again could change the last bit.
        self._take(self._parts, weights)
        self.weights_ = weights

    def _part_covariates(self) -> list[str]:
        return self.encoder_.names
