"""Fields that send each row to one of several."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariates import features
from graphfield.data.encoded import Encoded
from graphfield.data.frames import Frame, with_columns
from graphfield.data.level_text import as_text
from graphfield.data.marginals import NodeMap
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.exceptions import DataError, listing
from graphfield.fields.base import Common, GraphField, State
from graphfield.fields.columns import CURVE_STEPS
from graphfield.fields.program import Choice, Features, Inputs, Program, indicators
from graphfield.fields.schema import Rows
from graphfield.fields.state import pack_parts, unpack_parts
from graphfield.fields.streaming import Part
from graphfield.fields.tree import Tree


@dataclass(frozen=True, eq=False, repr=False)
class PartitionField(GraphField):
    """One field for each part of the covariate space; each part knows some of the covariates, or none."""

    parts: Sequence[GraphField]

    @property
    def made_of(self) -> Sequence[GraphField]:
        return self.parts

    @abstractmethod
    def part_of(self, rows: Rows) -> NDArray[np.intp]:
        """Which of the parts each row belongs to."""

    def by_part(self, rows: Rows) -> Iterator[tuple[NDArray[np.intp], GraphField, Rows]]:
        """Positions of the rows of each part, its field, and the rows as that field sees them."""
        which = self.part_of(rows)
        for part in np.unique(which):
            own, field = np.flatnonzero(which == part), self.parts[part]
            inner = Frame(rows.frame.values[field.schema.encoder.names], named=True)
            yield own, field, field.encode(inner.take(own))

    def alike(self, rows: Rows) -> Encoded:
        which = self.part_of(rows)
        part = Encoded(np.empty((len(rows), 0)), which[:, None].astype(np.int64))
        varies = any(field.uses_covariates for field in self.parts)
        return part.beside(rows.encoded) if varies else part

    def _filled(self, name: str, rows: Rows) -> NDArray[np.float64]:
        result = np.empty((len(rows), self.n_nodes))
        for own, field, seen in self.by_part(rows):
            result[own] = getattr(field, name)(seen)
        return result

    def _filled_pairs(self, name: str, rows: Rows, size: int) -> NDArray[np.float32]:
        result = np.empty((len(rows), size, size), dtype=np.float32)
        for own, field, seen in self.by_part(rows):
            result[own] = getattr(field, name)(seen)
        return result

    def weights_at(self, rows: Rows) -> NDArray[np.float32]:
        return self._filled_pairs("weights_at", rows, self.n_nodes)

    def column_strengths_at(self, rows: Rows) -> NDArray[np.float32]:
        return self._filled_pairs("column_strengths_at", rows, self.n_columns)

    def column_residuals(self, values: NDArray, rows: Rows) -> NDArray[np.float64]:
        left = np.empty((len(rows), self.n_columns))
        for own, field, seen in self.by_part(rows):
            left[own] = field.column_residuals(values[own], seen)
        return left

    def fit_links(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        for own, field, seen in self.by_part(rows):
            for inner, links in field.fit_links(values[own], seen):
                yield own[inner], links

    def links_at(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        weights, means = (
            np.empty((len(rows), self.n_links, self.n_columns)),
            np.empty((len(rows), self.n_columns)),
        )
        for own, field, seen in self.by_part(rows):
            weights[own], means[own] = field.links_at(seen)
        return weights, means

    def curve_values_at(self, rows: Rows, node: int) -> NDArray[np.float64]:
        """Those of each part, which knows no others."""
        values = np.empty((len(rows), len(CURVE_STEPS)))
        for own, field, seen in self.by_part(rows):
            values[own] = field.curve_values_at(seen, node)
        return values

    def curves_at(self, rows: Rows, node: int, values: NDArray) -> NDArray[np.float64]:
        curves = np.empty((len(rows), self.n_links, values.shape[1]))
        for own, field, seen in self.by_part(rows):
            curves[own] = field.curves_at(seen, node, values[own])
        return curves

    def offsets_at(self, rows: Rows) -> NDArray[np.float64]:
        return self._filled("offsets_at", rows)

    def units_at(self, rows: Rows) -> NDArray[np.float64]:
        return self._filled("units_at", rows)

    def scales_at(self, rows: Rows) -> NDArray[np.float64]:
        return self._filled("scales_at", rows)

    def node_scales_at(self, rows: Rows) -> NDArray[np.float64]:
        return self._filled("node_scales_at", rows)

    def standardize(self, values: NDArray, rows: Rows) -> NDArray[np.float64]:
        standard = np.empty(values.shape)
        for own, field, seen in self.by_part(rows):
            standard[own] = field.standardize(values[own], seen)
        return standard

    def fit_values(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        """Each field speaks for its rows: one may be of normal scores, another not."""
        for own, field, seen in self.by_part(rows):
            for inner, fitted in field.fit_values(values[own], seen):
                yield own[inner], fitted

    def with_scores(self, scores: NodeMap | None) -> Self:
        parts = [field.with_scores(scores) for field in self.parts]
        return replace(super().with_scores(scores), parts=parts)


@dataclass(frozen=True, eq=False, repr=False)
class TreeField(PartitionField):
    """A tree over all levels and numbers of z leads to a leaf, and a leaf to a part whose graph ignores z."""

    tree: Tree
    part_of_leaf: NDArray[np.intp]  # (leaves,)

    kind: ClassVar[str] = "tree"

    def part_of(self, rows: Rows) -> NDArray[np.intp]:
        return self.part_of_leaf[self.tree.apply(tree_features(self.schema.encoder, rows.encoded))]

    def own_program(self, reference: NDArray) -> Program:
        part = np.full(len(self.tree.left), -1)
        part[self.tree.leaves] = self.part_of_leaf
        encoder = self.schema.encoder
        arrays = {name: array.tolist() for name, array in self.tree.to_arrays().items()}
        parts = [field.program(reference) for field in self.parts]
        features = Features(Inputs.of(encoder, indicators(encoder)), [])
        return Choice(features, {**arrays, "part": part.tolist()}, parts)

    def own_state(self) -> State:
        state, arrays = pack_parts(self.parts)
        arrays |= {f"tree/{name}": array for name, array in self.tree.to_arrays().items()}
        return {"parts": state}, {**arrays, "tree/part": self.part_of_leaf}

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> TreeField:
        whole = common.schema
        parts = unpack_parts(state["parts"], arrays, whole, whole.encoder.names, some=True)
        own = arrays.below("tree/")
        tree = Tree.from_arrays(own, tree_features(common.schema.encoder, None).shape[1])
        part_of_leaf = own.read("part", (len(tree.leaves),), np.int64)
        if not np.array_equal(np.unique(part_of_leaf), np.arange(len(parts))):
            own.refuse("part", f"one of the {len(parts)} parts for each leaf", str(part_of_leaf[:8]))
        return cls(common, parts, tree, part_of_leaf)


def tree_features(encoder: Any, encoded: Encoded | None) -> NDArray[np.float64]:
    """What a tree may split: numbers, and an indicator of every level."""
    if encoded is None:
        n, k = len(encoder.numeric), len(encoder.categorical)
        encoded = Encoded(np.empty((0, n)), np.empty((0, k), dtype=np.int64))
    return features(encoder, encoded, all_levels=True)[:, 1:]


@dataclass(frozen=True, eq=False, repr=False)
class ClusterField(PartitionField):
    """One part for each level of the covariate ``by``."""

    by: str

    kind: ClassVar[str] = "clusters"

    @property
    def column(self) -> int:
        """Position of the clusters among the categorical covariates."""
        return [column.name for column in self.schema.encoder.categorical].index(self.by)

    @property
    def clusters(self) -> list[str]:
        return list(self.schema.encoder.categorical[self.column].levels)

    def encode(self, frame: Frame) -> Rows:
        frame = clusters_as_text(frame, self.by)
        unseen = sorted(set(as_text(frame.values[self.by])) - set(self.clusters))
        if unseen:
            raise DataError(
                f"Covariate {self.by!r} has {listing(unseen)}, which training did not have, so there is "
                f"no graph for it. Known: {listing(self.clusters)}."
            ).about(column=self.by)
        return super().encode(frame)

    def part_of(self, rows: Rows) -> NDArray[np.intp]:
        return rows.encoded.codes[:, self.column].astype(np.intp)

    def own_program(self, reference: NDArray) -> Program:
        inputs = Inputs.of(self.schema.encoder, indicators(self.schema.encoder))
        inputs = replace(inputs, numeric=[], categorical=[inputs.categorical[self.column]])
        parts = [field.program(reference) for field in self.parts]
        return Choice(Features(inputs, []), _chain(len(parts)), parts)

    def own_state(self) -> State:
        state, arrays = pack_parts(self.parts)
        return {"parts": state, "by": self.by}, arrays

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> ClusterField:
        encoder = common.schema.encoder
        by = state["by"].choice([column.name for column in encoder.categorical])
        (levels,) = (column.levels for column in encoder.categorical if column.name == by)
        state["parts"].listed(len(levels), len(levels))
        others = [name for name in encoder.names if name != by]
        unpack = partial(unpack_parts, state["parts"], arrays, common.schema)
        first = state["parts"].listed()[0]["schema"]["encoder"]["names"].names()
        return cls(common, unpack(others if first else []), by)


def clusters_as_text(frame: Frame, by: str) -> Frame:
    """Labels 0, 1, 2 count as levels, not as numbers; categories are levels already, and have their order."""
    if isinstance(frame.values[by].dtype, pd.CategoricalDtype):
        return frame
    return Frame(with_columns(frame.values, {by: as_text(frame.values[by])}), frame.named, frame.rows)


def _chain(n: int) -> dict[str, list[Any]]:
    """A tree that goes through indicators 0 to n - 2 and stops at the first that is one."""
    tree: dict[str, list[Any]] = {"left": [], "right": [], "feature": [], "threshold": [], "part": []}
    for which in range(n):
        last = which == n - 1
        here = len(tree["left"])
        node = {"left": -1 if last else here + 2, "right": -1 if last else here + 1, "feature": which}
        for name, value in {**node, "threshold": 0.5, "part": which if last else -1}.items():
            tree[name].append(value)
        if not last:  # the leaf of this level
            for name, value in {"left": -1, "right": -1, "feature": 0, "threshold": 0, "part": which}.items():
                tree[name].append(value)
    return tree
