"""Answers at many covariate values, in bounded memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from graphfield.data.covariates import CovariateEncoder, Encoded, features
from graphfield.data.frames import (
    Frame,
    as_frame,
    match_columns,
)
from graphfield.data.marginals import NormalScores
from graphfield.data.missing import check_complete
from graphfield.data.moving_scales import MovingScales
from graphfield.data.nodes import NodeScaler, rescale_coef
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.streaming import Part, cache_slices, groups_of, joined_parts, rows_within, slices
from graphfield.exceptions import DataError

# Bytes of coefficients held at a time by the methods that stream.
_CHUNK_BYTES = 64 * 2**20
# Distinct covariate values whose coefficients are kept while streaming over repeated rows.
_CACHE_BYTES = 256 * 2**20

TableLike = Any


class PerRow(BaseEstimator, ABC):
    """What a subclass says about covariate values, asked for at many rows in bounded memory.

    Coefficients, residual scales and units are computed once for rows with equal covariates.
    """

    residual_scale_: NDArray[np.float64]
    encoder_: CovariateEncoder
    scaler_: NodeScaler
    node_names_: list[str]
    n_features_in_: int
    missing: str
    # Where the model is one of normal scores, coefficients, means and residuals are those of the scores.
    _scores: NormalScores | None = None
    # Where scales of nodes move with z, coefficients and residual scales are those of nodes without that.
    _scales: MovingScales | None = None
    # Where residual scales of these move as well, as they do with the edges of a node: in units of
    # ``residual_scale_``.
    _residual_scales: MovingScales | None = None
    # Whether coefficients and residual scales are those of a precision matrix, whose edges never shrink.
    _definite = False
    # An estimator that ignores covariates accepts a Z without columns.
    _uses_covariates = True

    @abstractmethod
    def _coef_at(self, encoded: Encoded) -> NDArray[np.float32]:
        """Coefficients of the nodes divided by :meth:`_unit_at`, (m, p, p), one matrix per encoded row."""

    @abstractmethod
    def _mean_at(self, encoded: Encoded) -> NDArray[np.float64]:
        """Conditional means in the user's units, (m, p)."""

    def _unit_at(self, encoded: Encoded) -> NDArray[np.float64]:
        """What nodes are divided by in coefficients and residual scales, (m, p).

        Edges do not depend on units, so they are computed from numbers near one: node values of 1e50 and
        1e-50 fit into double precision, their coefficients not into single. For the same reason scales that
        move with z move no edge.
        """
        if self._scales is not None:
            return self.scaler_.scale * self._scales.at(features(self.encoder_, encoded))
        return np.broadcast_to(self.scaler_.scale, (len(encoded), self.n_features_in_))

    def _residual_scale_at(self, encoded: Encoded) -> NDArray[np.float64]:
        """Standard deviation of each node given the others, (m, p), in units of :meth:`_unit_at`."""
        scale = self.residual_scale_ / self.scaler_.scale
        if self._residual_scales is not None:
            return scale * self._residual_scales.at(features(self.encoder_, encoded))
        return np.broadcast_to(scale, (len(encoded), self.n_features_in_))

    def _node_scale_at(self, encoded: Encoded) -> NDArray[np.float64]:
        """Standard deviation of each node around its mean, (m, p), in units of :meth:`_unit_at`.

        Infinite where it does not matter.
        """
        known = getattr(self, "standardize", True) and not self._definite
        return np.full((len(encoded), self.n_features_in_), 1.0 if known else np.inf)

    def _standard(self, values: NDArray, encoded: Encoded) -> NDArray[np.float64]:
        """Node values, or their scores, less their mean at z and in units of :meth:`_unit_at`."""
        nodes = values if self._scores is None else self._scores.transform(values)
        return (nodes - self._mean_at(encoded)) / self._unit_at(encoded)

    def _encode_frame(self, frame: Frame) -> Encoded:
        """Covariates (checked, columns in the order of ``fit``) as the methods above want them."""
        return self.encoder_.transform(frame)

    def _missing_policy(self) -> str:
        return self.missing

    def _encoded_shape(self) -> tuple[int, int]:
        """Numeric columns and columns of codes that :meth:`_encode_frame` gives."""
        return len(self.encoder_.numeric), len(self.encoder_.categorical)

    @abstractmethod
    def _get_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """What this estimator learned beyond the base, as JSON values and arrays."""

    @abstractmethod
    def _set_state(self, state: Saved, arrays: SavedArrays) -> None:
        """Inverse of :meth:`_get_state`; whatever that could not have written is refused here, not later."""

    def _check_parameters(self) -> None:
        """Raise a ``ParameterError`` for a hyper-parameter that makes no sense, whatever the machine."""

    def _match_covariates(self, Z: TableLike) -> Frame:
        frame = match_columns(as_frame(Z, "Z"), self.encoder_.names, self.encoder_.named, "Z")
        return self.encoder_.pool(frame)

    def _encode(self, Z: TableLike) -> Encoded:
        check_is_fitted(self)
        frame = self._match_covariates(Z)
        check_complete(None, frame)
        return self._encode_frame(frame)

    def _fitted_values(self, values: NDArray, encoded: Encoded) -> Iterator[Part]:
        """Positions of some rows and their fitted node values, until all rows were there."""
        if self._scores is None:
            yield from self._regressions(values, encoded)
            return
        scores = self._scores.transform(values, values.dtype)
        for rows, fitted in joined_parts(self._regressions(scores, encoded)):
            yield rows, self._scores.restore(fitted)

    def _regressions(self, values: NDArray, encoded: Encoded) -> Iterator[Part]:
        """Positions of some rows and ``mu(z) + beta(z) (x - mu(z))`` there, until all rows were there."""
        for group in groups_of(encoded, self._rows_per_chunk()):
            coef, mean, unit = (at(group.distinct) for at in (self._coef_at, self._mean_at, self._unit_at))
            yield from group.regressions(values, coef, mean, unit)

    def _chunks(self, distinct: Encoded) -> Iterator[tuple[NDArray[np.float32], NDArray, NDArray]]:
        """Coefficients, residual scales and units of consecutive rows, in bounded memory."""
        for part in slices(len(distinct), self._rows_per_chunk()):
            rows = distinct.take(np.arange(part.start, part.stop))
            yield self._coef_at(rows), self._residual_scale_at(rows), self._unit_at(rows)

    def _rows_per_chunk(self) -> int:
        return rows_within(_CHUNK_BYTES, self.n_features_in_)

    def _worth_keeping(self, n_distinct: int, n_rows: int) -> bool:
        """Whether rows repeat, and their distinct coefficients fit in memory while going through them."""
        return n_distinct < n_rows and 4 * self.n_features_in_**2 * n_distinct <= _CACHE_BYTES

    def _per_row(
        self,
        Z: TableLike,
        function: Callable[..., NDArray],
        dtype: DTypeLike = np.float32,
        more: Sequence[Callable[[Encoded], NDArray]] = (),
        shape: tuple[int, ...] | None = None,
    ) -> NDArray:
        """``function`` of coefficients, residual scales, units (and ``more``) at every row, (p, p) each;
        equal rows are done once."""
        encoded = self._encode(Z)
        p = self.n_features_in_
        result = np.empty((len(encoded), *((p, p) if shape is None else shape)), dtype=dtype)
        for group in groups_of(encoded, self._rows_per_chunk()):
            scales = [at(group.distinct) for at in (self._residual_scale_at, self._unit_at, *more)]
            group.fill(result, function, self._coef_at(group.distinct), *scales)
        return result

    def _row_blocks(self, encoded: Encoded) -> Iterator[NDArray[np.float32]]:
        """Coefficients of blocks of consecutive rows, in bounded memory."""
        distinct, index = encoded.distinct()
        table = self._restored_at(distinct) if self._worth_keeping(len(distinct), len(index)) else None
        for rows in slices(len(index), self._rows_per_chunk()):
            if table is not None:
                yield table[index[rows]]
            elif len(distinct) == len(index):
                yield self._restored_at(distinct.take(np.arange(rows.start, rows.stop)))
            else:
                which, inverse = np.unique(index[rows], return_inverse=True)
                yield self._restored_at(distinct.take(which))[inverse]

    def _restored_at(self, encoded: Encoded) -> NDArray[np.float32]:
        """Coefficients in the user's units."""
        coef, unit = self._coef_at(encoded), self._unit_at(encoded)
        for part in cache_slices(len(coef), self.n_features_in_):
            coef[part] = self._restored(coef[part], unit[part])
        return coef

    def _restored(self, coef: NDArray[np.float32], unit: NDArray[np.float64]) -> NDArray[np.float32]:
        restored = rescale_coef(coef, unit)
        if not np.isfinite(restored).all():
            _, j, k = np.argwhere(~np.isfinite(restored))[0]
            raise DataError(
                f"The coefficient of node {self.node_names_[k]!r} for node {self.node_names_[j]!r} is too "
                "large for float32: their units differ too much. Use other units for one of them, or ask for "
                "partial_correlations, which need none."
            )
        return restored
