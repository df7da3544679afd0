"""Fields of nodes of any kind: a field of design columns, and the families that lead from it to nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks, block_power
from graphfield.data.covariates import n_features
from graphfield.data.edge_features import FEATURES
from graphfield.data.encoded import Encoded
from graphfield.data.frames import Frame
from graphfield.data.nodes import NodeScaler
from graphfield.data.saved_arrays import MAX_COEFFICIENT, AtMost, SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.fields.base import Common, Conditionals, GraphField, State
from graphfield.fields.columns import CURVE_STEPS
from graphfield.fields.schema import Rows, Schema
from graphfield.fields.state import pack_parts, unpack_field
from graphfield.fields.streaming import Part, joined_parts

# What is left of a node given the others, in standard units: the least that is told apart from nothing.
_LEAST_SCALE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class BlockField(GraphField):
    """Nodes that own blocks of columns.

    ``columns`` is a field of the columns, in their standard units: its weights lead from columns of
    neighbours, less their means at z, to the natural parameters of a node, whose part that depends on z alone
    is linear in the first features of z (``base``); where means move freely with z, it follows, so far
    (``slopes``), the natural parameters at these means. ``left`` and ``right`` (d, d) take weights to units
    of what is left of both nodes: with the covariance V of that and the slope M of means,
    V_j^(-1/2) M_j B_jk V_k^(1/2), which is a partial correlation between numbers. Weights of this field
    itself are those strengths as coefficients.
    """

    columns: GraphField
    blocks: Blocks
    base: NDArray[np.float64]  # (u, d)
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    slopes: NDArray[np.float64] | None = None  # (p,)

    kind: ClassVar[str] = "blocks"

    @property
    def column_starts(self) -> NDArray[np.intp]:
        return self.blocks.starts

    @property
    def n_columns(self) -> int:
        return self.blocks.n_columns

    @property
    def uses_covariates(self) -> bool:
        return self.columns.uses_covariates

    def encode(self, frame: Frame) -> Rows:
        return self.columns.encode(frame)

    def alike(self, rows: Rows) -> Encoded:
        return self.columns.alike(rows)

    def weights_at(self, rows: Rows) -> NDArray[np.float32]:
        return self.block_weights_at(rows)

    def column_strengths_at(self, rows: Rows) -> NDArray[np.float32]:
        left, right = self.left.astype(np.float32), self.right.astype(np.float32)
        strengths = np.asarray(left @ self.columns.weights_at(rows) @ right, dtype=np.float32)
        answers = self.blocks.answers
        if not answers.all():
            # What leads from a function of a number is known in one direction, which counts for both: the
            # correlation of that function with what is left of the other node.
            ahead = strengths[:, :, ~answers]
            ahead = ahead / np.sqrt(1 + np.square(ahead))
            strengths[:, :, ~answers] = ahead
            strengths[:, ~answers, :] = ahead.swapaxes(1, 2)
        return strengths

    def offsets_at(self, rows: Rows) -> NDArray[np.float64]:
        return self.blocks.node_means(self._base_at(self.columns.at(rows)))

    def fit_values(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        for where, eta in self.fit_parameters(values, rows):
            yield where, self.blocks.node_means(eta)

    def pair_parts(self, values: NDArray, rows: Rows) -> Iterator[tuple[slice, Any, Any]]:
        return self.column_parts(values, rows)

    def fit_links(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        for where, eta in self.fit_parameters(values, rows):
            yield where, self.blocks.to_links(eta)

    def links_at(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        here = self.columns.at(rows)
        return self.blocks.link_weights(here.weights), self.blocks.natural_means(here.offsets)

    def curve_columns(self, values: NDArray) -> NDArray[np.float64]:
        return self.blocks.natural_means(self.blocks.columns(values))

    def curve_values_at(self, rows: Rows, node: int) -> NDArray[np.float64]:
        """Within two standard deviations of the mean of the training rows."""
        values = self.blocks.location[node] + self.blocks.spread[node] * CURVE_STEPS
        return np.broadcast_to(values, (len(rows), len(values)))

    def curves_at(self, rows: Rows, node: int, values: NDArray) -> NDArray[np.float64]:
        weights = self.links_at(rows)[0][:, :, self.blocks.slices[node]]
        functions = self.blocks.curve_at(node, values.reshape(-1)).reshape(*values.shape, -1)
        return np.asarray(weights @ functions.swapaxes(1, 2))

    def fit_parameters(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        """Positions of some rows and the natural parameters of the columns there, until all rows were."""
        return joined_parts(self._parameters(self.blocks.columns(values), rows))

    def column_residuals(self, values: NDArray, rows: Rows) -> NDArray[np.float64]:
        """Uncorrelated within a block."""
        columns, here = self.blocks.columns(values), self.columns.at(rows)
        eta = self._base_at(here) + np.einsum("bjk,bk->bj", here.weights, columns - here.offsets)
        alone = block_power(self.right, self.blocks.slices, -1.0)
        return np.asarray((columns - self.blocks.means(eta)) @ alone)

    def _base_at(self, here: Conditionals) -> NDArray[np.float64]:
        """Natural parameters by z alone, with all neighbours at their means, (m, d)."""
        null = self.blocks.null
        base = null + self.schema.features(here.at)[:, : len(self.base)] @ self.base
        if self.slopes is None:
            return base
        return base + self.slopes[self.blocks.nodes] * (self.blocks.bounded_at(here.offsets) - null)

    def _parameters(self, columns: NDArray, rows: Rows) -> Iterator[Part]:
        for group in self.walk(rows):
            here = self.columns.at(group.distinct)
            base = self._base_at(here) - here.offsets
            shifts = [base] if isinstance(group.rows, slice) else list(base)
            parts = group.regressions(columns, here.weights, here.offsets, here.units)
            for (where, found), shift in zip(parts, shifts, strict=True):
                yield where, found + shift

    def own_state(self) -> State:
        header, arrays = pack_parts([self.columns])
        own = {"base": self.base, "left": self.left, "right": self.right}
        if self.slopes is not None:
            own["slopes"] = self.slopes
        return {"columns": header[0], "features": self.blocks.features}, {
            **arrays,
            **self.blocks.to_arrays(),
            **own,
        }

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> BlockField:
        types = common.schema.types
        if types is None:
            state.refuse("that of nodes with types", "numbers alone")
        blocks = Blocks.from_arrays(types, arrays, state["features"].choice(FEATURES))
        columns = unpack_field(state["columns"], arrays.below("part/0/"))
        if columns.schema.node_names != blocks.column_names:
            state["columns"]["schema"]["node_names"].refuse("those of the columns of the nodes")
        if columns.schema.encoder.names != common.schema.encoder.names:
            state["columns"]["schema"]["encoder"].refuse("that of the whole model")
        d, most = blocks.n_columns, MAX_COEFFICIENT
        left, right = (arrays.read(name, (d, d), low=-most, high=most) for name in ("left", "right"))
        base = arrays.read("base", (AtMost(n_features(common.schema.encoder)), d), low=-most, high=most)
        slopes = None
        if "slopes" in arrays:
            slopes = arrays.read("slopes", (len(blocks.widths),), low=-most, high=most)
        return cls(common, columns, blocks, base, left, right, slopes)


def block_field(
    schema: Schema,
    blocks: Blocks,
    X: NDArray,
    columns: GraphField,
    base: NDArray[np.float64],
    rows: Rows,
    slopes: NDArray[np.float64] | None = None,
) -> BlockField:
    """The field of nodes from that of their columns, with what training rows, of codes X, leave of them."""
    d = blocks.n_columns
    whole = np.eye(d)
    common = Common(schema, NodeScaler.learn(X, center=True, scale=True), np.ones(schema.n_nodes))
    plain = BlockField(common, columns, blocks, base, whole, whole, slopes)
    values, covariance, variances = blocks.columns(X), np.zeros((d, d)), np.zeros((d, d))
    for where, eta in plain.fit_parameters(X, rows):
        residuals = values[where] - blocks.means(eta)
        covariance += residuals.T @ residuals / len(X)
        variances += blocks.slopes(eta) * (len(eta) / len(X))
    covariance *= blocks.answers[:, None] == blocks.answers  # functions of a number stay apart from itself
    right = block_power(covariance, blocks.slices, 0.5)
    scale = np.maximum(np.sqrt(_node_variances(blocks, covariance)), _LEAST_SCALE)
    common = Common(schema, common.scaler, common.scaler.scale * scale)
    left = block_power(covariance, blocks.slices, -0.5) @ variances
    return BlockField(common, columns, blocks, base, left, right, slopes)


def _node_variances(blocks: Blocks, covariance: NDArray) -> NDArray[np.float64]:
    """What is left of the variance of each node, as a share: (p,)."""
    return np.asarray(np.add.reduceat(np.diagonal(covariance), blocks.starts) / blocks.widths)


def column_schema(schema: Schema, blocks: Blocks) -> Schema:
    """Of the field of the columns."""
    return Schema(list(blocks.column_names), False, schema.encoder)


def column_common(schema: Schema, blocks: Blocks) -> Common:
    """Of the field of the columns, which are in standard units."""
    ones = np.ones(blocks.n_columns)
    return Common(column_schema(schema, blocks), NodeScaler(np.zeros(blocks.n_columns), ones), ones)
