"""Fields that are known at the points of a grid over the covariates, with straight lines between these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import CovariateEncoder, n_features
from graphfield.data.encoded import Encoded
from graphfield.data.saved_arrays import AtMost, SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.fields.base import Common, GraphField, State
from graphfield.fields.program import (
    Features,
    Inputs,
    Linear,
    Precision,
    Program,
    Scaled,
    grid_weights,
    indicators,
)
from graphfield.fields.schema import Rows
from graphfield.graphs.strength import are_positive_definite, coef_from_precision

# Points of a grid in a file, and the logarithm of a scale there.
_MOST_POINTS, _LARGEST_LOG = 100_000, 100.0


@dataclass(frozen=True, eq=False)
class Grid:
    """Knots of each numeric covariate in its standard units, ascending, and all levels of each category."""

    knots: Sequence[NDArray[np.float64]]
    encoder: CovariateEncoder

    @property
    def axes(self) -> list[dict[str, Any]]:
        levels = [{"levels": len(column.levels)} for column in self.encoder.categorical]
        return [*({"knots": own.tolist()} for own in self.knots), *levels]

    @property
    def shape(self) -> tuple[int, ...]:
        levels = (len(column.levels) for column in self.encoder.categorical)
        return (*(len(own) for own in self.knots), *levels)

    def points(self) -> Encoded:
        """The covariates of all points, the last axis fastest."""
        index = np.indices(self.shape).reshape(len(self.shape), -1)
        n = len(self.knots)
        numeric = [own[where] for own, where in zip(self.knots, index[:n], strict=True)]
        size = index.shape[1]
        return Encoded(np.column_stack([np.empty((size, 0)), *numeric]), index[n:].T.astype(np.int64))

    def shares(self, encoded: Encoded) -> NDArray[np.float64]:
        """How much each point has to say at each row, (n, points)."""
        tables = zip(indicators(self.encoder), encoded.codes.T, strict=True)
        known = np.hstack([encoded.numeric, *(table[codes] for table, codes in tables)])
        return grid_weights(known, self.axes)


@dataclass(frozen=True, eq=False)
class GridValues:
    """What is known at each of G points of a grid.

    ``matrices`` (G, p, p) are precision matrices or, with ``log_scales`` (G, p) of what is left of the nodes,
    coefficients of nodes in units of ``exp(log_units)`` (G, p) times that of the scaler. ``centers`` (G, p),
    in units of the scaler, come on top of what is linear in z.
    """

    matrices: NDArray[np.float64]
    centers: NDArray[np.float64]
    log_units: NDArray[np.float64]
    log_scales: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False, repr=False)
class GridField(GraphField):
    """The graph at z is mixed of those at the corners of its cell of the grid."""

    grid: Grid
    values: GridValues
    mean: NDArray[np.float64]  # (m, p), on the features of z

    kind: ClassVar[str] = "grid"

    @property
    def definite(self) -> bool:  # type: ignore[override]
        return self.values.log_scales is None

    def _mixed(self, rows: Rows, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.grid.shares(rows.encoded) @ values

    def matrices_at(self, rows: Rows) -> NDArray[np.float64]:
        """Precision matrices, or coefficients, (m, p, p)."""
        flat = self.values.matrices.reshape(len(self.values.matrices), -1)
        # One product per row: the graph at z has the same bits whatever else is asked for.
        found = [share @ flat for share in self.grid.shares(rows.encoded)]
        return np.array(found).reshape(len(rows), self.n_nodes, self.n_nodes)

    def weights_at(self, rows: Rows) -> NDArray[np.float32]:
        matrices = self.matrices_at(rows)
        return (coef_from_precision(matrices) if self.definite else matrices).astype(np.float32)

    def scales_at(self, rows: Rows) -> NDArray[np.float64]:
        if self.values.log_scales is not None:
            return np.exp(self._mixed(rows, self.values.log_scales))
        diagonals = self.values.matrices.diagonal(axis1=1, axis2=2)
        return 1 / np.sqrt(self._mixed(rows, diagonals))

    def units_at(self, rows: Rows) -> NDArray[np.float64]:
        return self.common.scaler.scale * np.exp(self._mixed(rows, self.values.log_units))

    def offsets_at(self, rows: Rows) -> NDArray[np.float64]:
        linear = self.schema.features(rows) @ self.mean
        return self.common.scaler.restore(linear + self._mixed(rows, self.values.centers))

    def own_program(self, reference: NDArray) -> Program:
        inputs = Inputs.of(self.schema.encoder, indicators(self.schema.encoder))
        shares = Features(inputs, [("grid", self.grid.axes)])
        scale, none = self.common.scaler.scale, np.zeros(self.n_nodes)
        units = Features(inputs, [*shares.steps, ("affine", self.values.log_units, none)])
        if self.values.log_scales is None:
            ratio = reference / scale
            return Scaled(Precision(shares, self.values.matrices * ratio[:, None] * ratio), units, None)
        residual = Features(inputs, [*shares.steps, ("affine", self.values.log_scales, none)])
        ratio = scale / reference
        patterns = self.values.matrices * (ratio[:, None] / ratio)
        return Scaled(Linear.of(shares, patterns, ratio**2), units, residual)

    def own_state(self) -> State:
        values = {name: value for name, value in vars(self.values).items() if value is not None}
        knots = {f"knots/{which}": own for which, own in enumerate(self.grid.knots)}
        return {"definite": self.definite}, {**values, **knots, "mean": self.mean}

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> GridField:
        encoder, p = common.schema.encoder, common.schema.n_nodes
        grid = Grid([_read_knots(arrays, which) for which in range(len(encoder.numeric))], encoder)
        size = int(np.prod(grid.shape))
        log = partial(arrays.read, shape=(size, p), low=-_LARGEST_LOG, high=_LARGEST_LOG)
        definite = state["definite"].flag()
        matrices = arrays.read("matrices", (size, p, p))
        if definite and not are_positive_definite(matrices):
            arrays.refuse("matrices", "positive definite, each of them", "one that is not")
        values = GridValues(
            matrices,
            arrays.read("centers", (size, p)),
            log("log_units"),
            None if definite else log("log_scales"),
        )
        return cls(common, grid, values, arrays.read_means("mean", (n_features(encoder), p)))


def _read_knots(arrays: SavedArrays, which: int) -> NDArray[np.float64]:
    knots = arrays.read(f"knots/{which}", (AtMost(_MOST_POINTS, 1),))
    if not (np.diff(knots) > 0).all():
        arrays.refuse(f"knots/{which}", "ascending", str(knots[:8]))
    return knots
