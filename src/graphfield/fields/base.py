"""A field of graphs: for every z, each node given all the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphfield.data.encoded import Encoded
from graphfield.data.frames import Frame
from graphfield.data.marginals import NodeMap
from graphfield.data.missing import check_complete
from graphfield.data.moving_scales import MovingScales
from graphfield.data.nodes import NodeScaler, rescale_coef
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.exceptions import listing
from graphfield.fields.columns import ColumnQuestions
from graphfield.fields.program import Features, Linear, NotExported, Program, Scaled, log_scales
from graphfield.fields.schema import Rows, Schema
from graphfield.fields.streaming import Part, joined_parts, pair_slices
from graphfield.fields.walker import Group, groups_of, parts_of, rows_at_a_time
from graphfield.graphs.strength import directed_strengths, partial_correlations
from graphfield.graphs.threshold import Threshold

# What a field keeps of itself: values of JSON, and arrays.
State = tuple[dict[str, Any], dict[str, NDArray]]


@dataclass(frozen=True, eq=False)
class Common:
    """What every kind of field has.

    ``scaler`` holds the units of the nodes and ``residual_scale`` what is typically left of each, given the
    others, in the user's units. Where ``scales`` of nodes move with z, weights and residual scales are those
    of nodes without that, and where ``residual_scales`` of these move as well, they are in units of
    ``residual_scale``. ``standardized`` says that nodes are in units of their own spread. ``threshold`` says
    when an edge is there.
    """

    schema: Schema
    scaler: NodeScaler
    residual_scale: NDArray[np.float64]
    scales: MovingScales | None = None
    residual_scales: MovingScales | None = None
    standardized: bool = True
    threshold: Threshold | None = None


@dataclass(frozen=True, eq=False)
class Draws:
    """Fields that differ by chance, and by which: seeds alone, rows too, or a posterior."""

    members: Sequence[GraphField]
    kind: Literal["seeds", "resamples", "posterior"]

    def rows(self, rows: Rows) -> Sequence[Rows]:
        """As each member reads them."""
        return rows.members or [rows] * len(self.members)


F = TypeVar("F", bound="GraphField")


@dataclass(frozen=True, eq=False, repr=False)
class GraphField(ColumnQuestions, ABC):
    """z -> graph, as a frozen value. NumPy in, NumPy out.

    Weights of edges, and what is left of each node given the others, are in units of :meth:`units_at`: edges
    do not depend on units, so they are computed from numbers near one. Node values of 1e50 and 1e-50 fit
    into double precision, their coefficients not into single; and scales that move with z move no edge.

    A kind says what the weights and means are (:meth:`weights_at`, :meth:`offsets_at`), how it is stored
    (:meth:`own_state`, :meth:`from_state`) and, if it can, what a page carries out (:meth:`own_program`).
    """

    common: Common

    # Name in files.
    kind: ClassVar[str]
    # Whether weights and residual scales are those of a precision matrix, whose edges never shrink.
    definite: ClassVar[bool] = False

    def of_kind(self, kind: type[F]) -> F:
        """Itself, which is of this kind."""
        assert isinstance(self, kind)
        return self

    def __repr__(self) -> str:
        covariates = listing(self.schema.encoder.names, most=4) or "nothing"
        return f"<{type(self).__name__}: {self.n_nodes} nodes given {covariates}>"

    # -- what is known ----------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        return self.common.schema

    @property
    def n_nodes(self) -> int:
        return self.schema.n_nodes

    @property
    def threshold(self) -> Threshold:
        assert self.common.threshold is not None, "a field of a finished fit has one"
        return self.common.threshold

    @property
    def uses_covariates(self) -> bool:
        """Whether anything it says depends on z."""
        return True

    # -- at z -------------------------------------------------------------------------------

    def rows(self, Z: Any) -> Rows:
        """A table of covariates, checked, as :meth:`at` wants it."""
        frame = self.schema.match_covariates(Z)
        check_complete(None, frame)
        return self.encode(frame)

    def encode(self, frame: Frame) -> Rows:
        """Checked covariates, with columns in the order of the fit, as :meth:`at` wants them."""
        return Rows(frame, self.schema.encoder.transform(frame))

    def at(self, rows: Rows | Any) -> Conditionals:
        """Every node given the others, at rows of covariates (a table, or what :meth:`rows` gives)."""
        return Conditionals(self, rows if isinstance(rows, Rows) else self.rows(rows))

    def alike(self, rows: Rows) -> Encoded:
        """Rows that are equal here have the same graph."""
        return rows.encoded

    def distinct(self, rows: Rows) -> tuple[Rows, NDArray[np.intp]]:
        """Rows that are not :meth:`alike`, in order of appearance, and for each row which of them it is."""
        first, index = self.alike(rows).distinct_positions()
        return rows if len(first) == len(rows) else rows.take(first), index

    @abstractmethod
    def weights_at(self, rows: Rows) -> NDArray[np.float32]:
        """Weight of node k in the regression of node j on the others, (m, p, p), in units of the nodes."""

    @abstractmethod
    def offsets_at(self, rows: Rows) -> NDArray[np.float64]:
        """Means of the nodes given z alone, (m, p), in the user's units."""

    def units_at(self, rows: Rows) -> NDArray[np.float64]:
        """What nodes are divided by in weights and residual scales, (m, p)."""
        scale, moving = self.common.scaler.scale, self.common.scales
        if moving is not None:
            return scale * moving.at(self.schema.features(rows))
        return np.broadcast_to(scale, (len(rows), self.n_nodes))

    def scales_at(self, rows: Rows) -> NDArray[np.float64]:
        """Standard deviation of each node given the others, (m, p), in units of :meth:`units_at`."""
        scale, moving = self.common.residual_scale / self.common.scaler.scale, self.common.residual_scales
        if moving is not None:
            return scale * moving.at(self.schema.features(rows))
        return np.broadcast_to(scale, (len(rows), self.n_nodes))

    def node_scales_at(self, rows: Rows) -> NDArray[np.float64]:
        """Standard deviation of each node around its mean, (m, p), in units of :meth:`units_at`.

        Infinite where it does not matter or is not known.
        """
        return np.full(
            (len(rows), self.n_nodes), 1.0 if self.common.standardized and not self.definite else np.inf
        )

    # -- node values ------------------------------------------------------------------------

    def standardize(self, values: NDArray, rows: Rows) -> NDArray[np.float64]:
        """Node values, or their scores, less their mean at z and in units of :meth:`units_at`."""
        scores = self.schema.scores
        nodes = values if scores is None else scores.transform(values)
        return (nodes - self.offsets_at(rows)) / self.units_at(rows)

    def pair_parts(self, values: NDArray, rows: Rows) -> Iterator[tuple[slice, Any, Any]]:
        """Some rows after the other: what is left of columns, in its own units, and their directed strengths.

        (b, columns) and (b, columns, columns).
        """
        if self.schema.types is not None:
            yield from self.column_parts(values, rows)
            return
        here = self.at(rows)
        x = self.standardize(values, here.at)
        residuals = (x - np.einsum("bjk,bk->bj", here.weights, x)) / here.scales
        for few in pair_slices(len(x), self.n_nodes):
            yield few, residuals[few], directed_strengths(here.weights[few], here.scales[few])

    def fit_values(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        """Positions of some rows and what the other nodes say of each node there, until all rows were."""
        scores = self.schema.scores
        if self.schema.types is not None:
            yield from self.fit_means(values, rows)
            return
        if scores is None:
            yield from self.regressions(values, rows)
            return
        for where, fitted in joined_parts(self.regressions(scores.transform(values, values.dtype), rows)):
            yield where, scores.restore(fitted, values[where])

    def regressions(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        """:meth:`fit_values` of numbers, in units of their scores where they have any."""
        for group in self.walk(rows):
            here = self.at(group.distinct)
            yield from group.regressions(values, here.weights, here.offsets, here.units)

    # -- at many rows -----------------------------------------------------------------------

    def walk(self, rows: Rows) -> Iterator[Group]:
        """All rows in bounded memory; those that are alike come together."""
        return groups_of(*self.distinct(rows), rows_at_a_time(self.n_columns))

    def chunks(self, distinct: Rows) -> Iterator[Conditionals]:
        """Consecutive rows, few enough for the memory at a time."""
        for _, part in parts_of(distinct, rows_at_a_time(self.n_columns)):
            yield self.at(part)

    # -- as a whole -------------------------------------------------------------------------

    def draws(self) -> Draws | None:
        """Members that differ by chance, of a field that has any."""
        return None

    def with_threshold(self, threshold: Threshold) -> Self:
        return replace(self, common=replace(self.common, threshold=threshold))

    def with_scores(self, scores: NodeMap | None) -> Self:
        """The same field of nodes whose values are turned into these scores first."""
        schema = self.schema.with_scores(scores)
        return replace(self, common=replace(self.common, schema=schema))

    def program(self, reference: NDArray | None = None) -> Program:
        """What a page without Python carries out, in units of its residual scales (or of ``reference``)."""
        scale = self.common.residual_scale if reference is None else reference
        # Units of a field on its own change no edge.
        unit = None if reference is None else log_scales(self.common.scales, self.schema.encoder)
        residual = log_scales(self.common.residual_scales, self.schema.encoder)
        program = self.own_program(np.where(scale > 0, scale, 1.0))
        return program if unit is residual is None else Scaled(program, unit, residual)

    def own_program(self, reference: NDArray) -> Program:  # noqa: ARG002
        raise NotExported(f"{self.kind} fields have no form that a page can run")

    def linear_program(self, features: Features, weights: NDArray, reference: NDArray) -> Program:
        """Of weights (R, p, p), in units of the nodes, that are mixed by features of z."""
        patterns = rescale_coef(weights, self.common.scaler.scale / reference)
        return Linear.of(features, patterns, (self.common.residual_scale / reference) ** 2)

    def state(self) -> State:
        """Values of JSON and arrays; :func:`~graphfield.fields.state.unpack_field` is the inverse."""
        common, (own, arrays) = self.common, self.own_state()
        schema, schema_arrays = common.schema.state()
        header = {
            "kind": self.kind,
            "schema": schema,
            "standardized": common.standardized,
            "threshold": None if common.threshold is None else common.threshold.state(),
            "own": own,
        }
        node = {
            **schema_arrays,
            "center": common.scaler.center,
            "scale": common.scaler.scale,
            "residual_scale": common.residual_scale,
        }
        if common.threshold is not None:
            node["clear"] = np.flatnonzero(common.threshold.clear)
        for kind, scales in (("scales", common.scales), ("residual_scales", common.residual_scales)):
            if scales is not None:
                node |= {f"{kind}/{name}": array for name, array in scales.to_arrays().items()}
        return header, {**arrays, **{f"node/{name}": array for name, array in node.items()}}

    @abstractmethod
    def own_state(self) -> State:
        """What there is beyond :class:`Common`, as values of JSON and arrays."""

    @classmethod
    @abstractmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> GraphField:
        """Inverse of :meth:`own_state`; what could not come from it is refused here, not later."""


@dataclass(frozen=True, eq=False)
class Conditionals:
    """Each node given all the others, at some rows; each part is computed when it is asked for, once."""

    field: GraphField
    at: Rows

    def __len__(self) -> int:
        return len(self.at)

    @cached_property
    def weights(self) -> NDArray[np.float32]:
        """(m, p, p), see :meth:`GraphField.weights_at`."""
        return self.field.weights_at(self.at)

    @cached_property
    def offsets(self) -> NDArray[np.float64]:
        """(m, p), see :meth:`GraphField.offsets_at`."""
        return self.field.offsets_at(self.at)

    @cached_property
    def units(self) -> NDArray[np.float64]:
        """(m, p), see :meth:`GraphField.units_at`."""
        return self.field.units_at(self.at)

    @cached_property
    def scales(self) -> NDArray[np.float64]:
        """(m, p), see :meth:`GraphField.scales_at`."""
        return self.field.scales_at(self.at)

    @cached_property
    def node_scales(self) -> NDArray[np.float64]:
        """(m, p), see :meth:`GraphField.node_scales_at`."""
        return self.field.node_scales_at(self.at)

    @property
    def partial_correlations(self) -> NDArray[np.float32]:
        """(m, p, p), symmetric, with a zero diagonal."""
        return partial_correlations(self.weights, self.scales)

    @property
    def directed(self) -> NDArray[np.float32]:
        """Weights free of units, (m, p, p): partial correlations where both directions agree."""
        return directed_strengths(self.weights, self.scales)
