"""One fitted model per part of the covariate space: what the estimators built so have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import Encoded
from graphfield.data.frames import Frame
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.composite import CompositeGraph, covariate_table, node_table
from graphfield.estimators.inputs import Inputs
from graphfield.estimators.streaming import Part
from graphfield.exceptions import GraphfieldError


class PartitionedGraph(CompositeGraph):
    """Base of the estimators that send each row to one of several fitted models.

    A subclass says in :meth:`_part_of` which model is responsible for a row, in :meth:`_part_covariates`
    which covariates that model is given, and calls :meth:`_fit_parts` in its ``fit``.
    """

    @abstractmethod
    def _part_of(self, encoded: Encoded) -> NDArray[np.intp]:
        """Position in ``_parts`` of the model for each row, from the covariates as encoded here."""

    def _part_covariates(self) -> list[str]:
        """Here none."""
        return []

    def _inner_frame(self, frame: Frame) -> Frame:
        """Covariates for the models of the parts."""
        return Frame(frame.values[self._part_covariates()], named=True)

    def _fit_parts(
        self,
        models: Sequence[GraphEstimator],
        inputs: Inputs,
        part: NDArray[np.intp],
        groups: NDArray | None,
        names: Sequence[str],
    ) -> None:
        """Fit each model on its own rows; ``names`` tell the user which part an error is about."""
        inner = self._inner_frame(inputs.Z).values
        for which, (model, name) in enumerate(zip(models, names, strict=True)):
            rows = np.flatnonzero(part == which)
            X, Z = node_table(inputs, rows), covariate_table(inner, rows)
            try:
                model.fit(X, Z, groups=None if groups is None else groups[rows])
            except GraphfieldError as error:
                raise type(error)(f"In {name} ({len(rows)} rows): {error}") from error
        self._parts = list(models)

    def _encoded_shape(self) -> tuple[int, int]:
        numeric, codes = zip(*(model._encoded_shape() for model in self._parts), strict=True)
        return max(numeric), 1 + max(codes)

    def _encode_frame(self, frame: Frame) -> Encoded:
        """The part in the first column of the codes, then the row as the model of its part sees it."""
        part = self._part_of(super()._encode_frame(frame))
        inner = self._inner_frame(frame)
        n_numeric, n_codes = self._encoded_shape()
        numeric, codes = np.zeros((len(part), n_numeric)), np.zeros((len(part), n_codes), dtype=np.int64)
        codes[:, 0] = part
        for which in np.unique(part):
            rows = np.flatnonzero(part == which)
            seen = self._parts[which]._encode_frame(Frame(inner.values.iloc[rows], inner.named))
            numeric[rows, : seen.numeric.shape[1]] = seen.numeric
            codes[rows, 1 : 1 + seen.codes.shape[1]] = seen.codes
        return Encoded(numeric, codes)

    def _by_part(self, encoded: Encoded) -> Iterator[tuple[NDArray[np.intp], GraphEstimator, Encoded]]:
        """Rows of each part, its model, and the rows as that model sees them."""
        part = encoded.codes[:, 0]
        for which in np.unique(part):
            rows, model = np.flatnonzero(part == which), self._parts[which]
            n_numeric, n_codes = model._encoded_shape()
            own = encoded.take(rows)
            yield rows, model, Encoded(own.numeric[:, :n_numeric], own.codes[:, 1 : 1 + n_codes])

    def _coef_at(self, encoded: Encoded) -> NDArray[np.float32]:
        p = self.n_features_in_
        coef = np.empty((len(encoded), p, p), dtype=np.float32)
        for rows, model, own in self._by_part(encoded):
            coef[rows] = model._coef_at(own)
        return coef

    def _mean_at(self, encoded: Encoded) -> NDArray[np.float64]:
        mean = np.empty((len(encoded), self.n_features_in_))
        for rows, model, own in self._by_part(encoded):
            mean[rows] = model._mean_at(own)
        return mean

    def _unit_at(self, encoded: Encoded) -> NDArray[np.float64]:
        unit = np.empty((len(encoded), self.n_features_in_))
        for rows, model, own in self._by_part(encoded):
            unit[rows] = model._unit_at(own)
        return unit

    def _residual_scale_at(self, encoded: Encoded) -> NDArray[np.float64]:
        scale = np.empty((len(encoded), self.n_features_in_))
        for rows, model, own in self._by_part(encoded):
            scale[rows] = model._residual_scale_at(own)
        return scale

    def _node_scale_at(self, encoded: Encoded) -> NDArray[np.float64]:
        scale = np.empty((len(encoded), self.n_features_in_))
        for rows, model, own in self._by_part(encoded):
            scale[rows] = model._node_scale_at(own)
        return scale

    def _standard(self, values: NDArray, encoded: Encoded) -> NDArray[np.float64]:
        standard = np.empty(values.shape)
        for rows, model, own in self._by_part(encoded):
            standard[rows] = model._standard(values[rows], own)
        return standard

    def _fitted_values(self, values: NDArray, encoded: Encoded) -> Iterator[Part]:
        """Each model speaks for its rows: one may be a model of normal scores, another not."""
        for rows, model, own in self._by_part(encoded):
            for inner, fitted in model._fitted_values(values[rows], own):
                yield rows[inner], fitted
