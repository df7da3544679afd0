"""A fitted field as a truth that rows can be drawn from."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.analysis.rows import ask
from graphfield.fields import GraphField
from graphfield.graphs.strength import precision_from_partial
from graphfield.simulate.gaussian import GaussianField


class PilotField(GaussianField):
    """Gaussian nodes with the edges of a field, no others; covariates are rows of a table, drawn anew.

    Each node has mean zero and variance one at every z. Where edges that were estimated one by one make no
    covariance matrix, all of that z shrink by one factor.
    """

    def __init__(self, field: GraphField, table: pd.DataFrame, threshold: float | str | None) -> None:
        self.field, self.table, self.threshold = field, table, threshold
        self.candidates = np.zeros((1, field.n_nodes, field.n_nodes))

    def covariates(self, n_samples: int, rng: np.random.Generator) -> pd.DataFrame:
        rows = rng.integers(len(self.table), size=n_samples)
        return self.table.iloc[rows].reset_index(drop=True)

    def regime(self, Z: pd.DataFrame) -> NDArray[np.int64]:
        return np.zeros(len(Z), dtype=np.int64)

    def skeleton(self, Z: pd.DataFrame) -> NDArray[np.bool_]:
        return self._edges(Z) != 0

    def precision(self, Z: pd.DataFrame) -> NDArray[np.float64]:
        precision = precision_from_partial(self._edges(Z), np.ones(self.field.n_nodes))
        spread = np.sqrt(np.diagonal(np.linalg.inv(precision), axis1=1, axis2=2))
        return precision * spread[:, :, None] * spread[:, None, :]

    def _edges(self, Z: pd.DataFrame) -> NDArray[np.float64]:
        """Partial correlations, zero where there is no edge, (n, p, p)."""
        asked = ask(self.field, Z, self.threshold)
        found = [np.where(block.graph, block.partial, 0.0) for block in asked.blocks()]
        return np.concatenate(found)[asked.index]
