"""Models made of other fitted models: what they have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import Inputs
from graphfield.estimators.judged_pairs import KnownCut
from graphfield.exceptions import ParameterError, listing


class CompositeGraph(GraphEstimator):
    """Base of the estimators that hold fitted models in ``_parts`` and are saved with them."""

    _parts: list[GraphEstimator]

    def _finish(self, inputs: Inputs, labels: NDArray | None, seed: int) -> None:
        """What the base keeps about all rows together; nodes as the user gave them."""
        encoded = self._encode_frame(inputs.Z)
        scale = self._residual_scale_at(encoded) * (self._unit_at(encoded) / self.scaler_.scale)
        self.residual_scale_ = self.scaler_.scale * np.sqrt((scale**2).mean(axis=0))
        self._set_threshold(inputs.X, encoded, labels, seed, self._known_cut())

    def _known_cut(self) -> KnownCut | None:
        """Where the parts say above which strength a pair is an edge; None: the rows do."""
        return None

    def _get_state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        from graphfield.estimators.persistence import pack

        headers: list[dict[str, Any]] = []
        arrays: dict[str, NDArray] = {}
        for which, model in enumerate(self._parts):
            header, own = pack(model)
            headers.append(header)
            arrays |= {f"part/{which}/{name}": array for name, array in own.items()}
        return {"parts": headers}, arrays

    def _set_state(self, state: Saved, arrays: SavedArrays) -> None:
        from graphfield.estimators.persistence import unpack

        self._parts = []
        names = self._part_covariates()
        for which, header in enumerate(state["parts"].listed(least=1)):
            part = unpack(header, arrays.below(f"part/{which}/"))
            if part.node_names_ != self.node_names_:
                header["node_names"].refuse("those of the whole model", listing(part.node_names_, most=4))
            if part.encoder_.names != names:
                expected = listing(names, most=4) or "none"
                header["encoder"]["names"].refuse(expected, listing(part.encoder_.names, most=4))
            self._parts.append(part)

    @abstractmethod
    def _part_covariates(self) -> list[str]:
        """Names of the covariates that the parts are given."""


def given_estimator(estimator: Any) -> GraphEstimator:
    """The estimator that the user passed to be cloned and fitted."""
    if not isinstance(estimator, GraphEstimator):
        raise ParameterError(
            "estimator must be an estimator of graphfield (an object, such as gf.RegGMM()) or None, "
            f"got {estimator!r}."
        )
    return estimator


def node_table(inputs: Inputs, rows: NDArray[np.intp] | slice) -> Any:
    """Some rows of X as the user gave it: with names where it had any."""
    values = inputs.X[rows]
    return pd.DataFrame(values, columns=inputs.node_names) if inputs.nodes_named else values


def covariate_table(frame: pd.DataFrame, rows: NDArray[np.intp] | slice) -> pd.DataFrame:
    """Some rows of the covariates, numbered from 0."""
    return frame.iloc[rows].reset_index(drop=True)
