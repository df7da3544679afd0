"""Fields of nodes of any kind: a field of design columns, and the families that lead from it to nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks, block_power
from graphfield.data.covariates import n_features
from graphfield.data.encoded import Encoded
from graphfield.data.frames import Frame
from graphfield.data.nodes import NodeScaler
from graphfield.data.saved_arrays import MAX_COEFFICIENT, AtMost, SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.fields.base import Common, Conditionals, GraphField, State
from graphfield.fields.schema import Rows, Schema
from graphfield.fields.state import pack_parts, unpack_field
from graphfield.fields.streaming import Part, cache_slices, joined_parts
from graphfield.fields.walker import Group, groups_of, parts_of, rows_at_a_time
from graphfield.graphs.strength import block_strengths

# What is left of a node given the others, in standard units: the least that is told apart from nothing.
_LEAST_SCALE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class BlockField(GraphField):
    """Nodes that own blocks of columns.

    ``columns`` is a field of the columns, in their standard units: its weights lead from columns of
    neighbours, less their means at z, to the natural parameters of a node, whose part that depends on z alone
    is linear in the first features of z (``base``). ``left`` and ``right`` (d, d) take weights to units of
    what is left of both nodes: with the covariance V of that and the slope M of means,
    V_j^(-1/2) M_j B_jk V_k^(1/2), which is a partial correlation between numbers. Weights of this field
    itself are those strengths as coefficients.
    """

    columns: GraphField
    blocks: Blocks
    base: NDArray[np.float64]  # (u, d)
    left: NDArray[np.float64]
    right: NDArray[np.float64]

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
        strengths = block_strengths(self._column_strengths(self.columns.at(rows)), self.blocks.starts)
        scale = self.scales_at(rows)
        return (strengths * (scale[:, :, None] / scale[:, None, :])).astype(np.float32)

    def _column_strengths(self, here: Conditionals) -> NDArray[np.float32]:
        """Weights of the columns in units of what is left of them, (m, d, d)."""
        left, right = self.left.astype(np.float32), self.right.astype(np.float32)
        return np.asarray(left @ here.weights @ right)

    def offsets_at(self, rows: Rows) -> NDArray[np.float64]:
        return self.blocks.node_means(self._base_at(rows))

    def walk(self, rows: Rows) -> Iterator[Group]:
        return groups_of(*self.distinct(rows), rows_at_a_time(self.n_columns))

    def chunks(self, distinct: Rows) -> Iterator[Conditionals]:
        for _, part in parts_of(distinct, rows_at_a_time(self.n_columns)):
            yield self.at(part)

    def fit_values(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        for where, eta in self.fit_parameters(values, rows):
            yield where, self.blocks.node_means(eta)

    def fit_parameters(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        """Positions of some rows and the natural parameters of the columns there, until all rows were."""
        return joined_parts(self._parameters(self.blocks.columns(values), rows))

    def pair_parts(self, values: NDArray, rows: Rows) -> Iterator[tuple[slice, NDArray, NDArray]]:
        """What is left is uncorrelated within a block."""
        columns, here = self.blocks.columns(values), self.columns.at(rows)
        eta = self._base_at(rows) + np.einsum("bjk,bk->bj", here.weights, columns - here.offsets)
        alone = block_power(self.right, self.blocks.slices, -1.0)
        residuals, strengths = (columns - self.blocks.means(eta)) @ alone, self._column_strengths(here)
        for few in cache_slices(len(columns), self.n_columns):
            yield few, residuals[few], np.clip(strengths[few], -1, 1)

    def _base_at(self, rows: Rows) -> NDArray[np.float64]:
        return self.blocks.null + self.schema.features(rows)[:, : len(self.base)] @ self.base

    def _parameters(self, columns: NDArray, rows: Rows) -> Iterator[Part]:
        for group in self.walk(rows):
            here = self.columns.at(group.distinct)
            base = self._base_at(group.distinct) - here.offsets
            shifts = [base] if isinstance(group.rows, slice) else list(base)
            parts = group.regressions(columns, here.weights, here.offsets, here.units)
            for (where, found), shift in zip(parts, shifts, strict=True):
                yield where, found + shift

    def own_state(self) -> State:
        header, arrays = pack_parts([self.columns])
        own = {"base": self.base, "left": self.left, "right": self.right}
        return {"columns": header[0]}, {**arrays, **self.blocks.to_arrays(), **own}

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> BlockField:
        types = common.schema.types
        if types is None:
            state.refuse("that of nodes with types", "numbers alone")
        blocks = Blocks.from_arrays(types, arrays)
        columns = unpack_field(state["columns"], arrays.below("part/0/"))
        if columns.schema.node_names != blocks.column_names:
            state["columns"]["schema"]["node_names"].refuse("those of the columns of the nodes")
        if columns.schema.encoder.names != common.schema.encoder.names:
            state["columns"]["schema"]["encoder"].refuse("that of the whole model")
        d, most = blocks.n_columns, MAX_COEFFICIENT
        left, right = (arrays.read(name, (d, d), low=-most, high=most) for name in ("left", "right"))
        base = arrays.read("base", (AtMost(n_features(common.schema.encoder)), d), low=-most, high=most)
        return cls(common, columns, blocks, base, left, right)


def block_field(
    schema: Schema,
    blocks: Blocks,
    X: NDArray,
    columns: GraphField,
    base: NDArray[np.float64],
    rows: Rows,
) -> BlockField:
    """The field of nodes from that of their columns, with what training rows, of codes X, leave of them."""
    d = blocks.n_columns
    whole = np.eye(d)
    common = Common(schema, NodeScaler.learn(X, center=True, scale=True), np.ones(schema.n_nodes))
    plain = BlockField(common, columns, blocks, base, whole, whole)
    values, covariance, slopes = blocks.columns(X), np.zeros((d, d)), np.zeros((d, d))
    for where, eta in plain.fit_parameters(X, rows):
        residuals = values[where] - blocks.means(eta)
        covariance += residuals.T @ residuals / len(X)
        slopes += blocks.slopes(eta) * (len(eta) / len(X))
    right = block_power(covariance, blocks.slices, 0.5)
    scale = np.maximum(np.sqrt(_node_variances(blocks, covariance)), _LEAST_SCALE)
    common = Common(schema, common.scaler, common.scaler.scale * scale)
    return BlockField(
        common, columns, blocks, base, block_power(covariance, blocks.slices, -0.5) @ slopes, right
    )


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
