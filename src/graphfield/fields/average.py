"""Weighted averages of fields, and how far their members are apart."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import unknown_levels
from graphfield.data.encoded import Encoded
from graphfield.data.frames import Frame
from graphfield.data.marginals import NodeMap
from graphfield.data.nodes import rescale_coef
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved
from graphfield.exceptions import ExtrapolationWarning
from graphfield.fields.base import Common, Draws, GraphField, State
from graphfield.fields.program import Average, Program
from graphfield.fields.schema import Rows
from graphfield.fields.state import pack_parts, unpack_parts
from graphfield.fields.streaming import Part, rows_within
from graphfield.fields.walker import groups_of, parts_of

# How far from one the weights of a file may add up.
_WEIGHTS_OFF = 1e-6
# What members are, where they differ by chance.
DRAWS = ("seeds", "resamples", "posterior")


@dataclass(frozen=True, eq=False, repr=False)
class AverageField(GraphField):
    """Weights, means and residual variances at z are averages of those of the members.

    The members have the same nodes and covariates; ``shares`` sum to one. ``drawn`` says by which chance
    members differ, where they differ by nothing else.
    """

    members: Sequence[GraphField]
    shares: NDArray[np.float64]
    drawn: Literal["seeds", "resamples", "posterior"] | None = None

    kind: ClassVar[str] = "average"

    @property
    def made_of(self) -> Sequence[GraphField]:
        return self.members

    @property
    def uses_covariates(self) -> bool:
        return any(member.uses_covariates for member in self.members)

    def encode(self, frame: Frame) -> Rows:
        with warnings.catch_warnings():
            if not self.uses_covariates:  # no range matters to one graph for everybody
                warnings.simplefilter("ignore", ExtrapolationWarning)
            rows = super().encode(frame)
            warnings.simplefilter("ignore", ExtrapolationWarning)  # what is odd was said once
            return replace(rows, members=tuple(member.encode(frame) for member in self.members))

    def alike(self, rows: Rows) -> Encoded:
        own = [member.alike(seen) for member, seen in zip(self.members, rows.members, strict=True)]
        return reduce(Encoded.beside, own)

    def weights_at(self, rows: Rows) -> NDArray[np.float32]:
        if len(self.members) == 1:
            return self.members[0].weights_at(rows.members[0])
        if self.schema.types is not None:
            return self.block_weights_at(rows)
        # Doubles, so that equal members average to themselves after rounding.
        total = np.zeros((len(rows), self.n_nodes, self.n_nodes))
        unit = self.units_at(rows)
        for share, member, own in zip(self.shares, self.members, rows.members, strict=True):
            weights = rescale_coef(member.weights_at(own), member.units_at(own) / unit)
            total += np.multiply(weights, share, dtype=np.float64)
        return total.astype(np.float32)

    def offsets_at(self, rows: Rows) -> NDArray[np.float64]:
        return self._average(rows, lambda member, own: member.offsets_at(own))

    def _average(self, rows: Rows, value: Callable[[GraphField, Rows], NDArray]) -> NDArray[np.float64]:
        """Of values of the members at their own rows."""
        both = zip(self.shares, self.members, rows.members, strict=True)
        return np.asarray(sum(share * value(member, own) for share, member, own in both), dtype=np.float64)

    def column_strengths_at(self, rows: Rows) -> NDArray[np.float32]:
        found = self._average(rows, lambda member, own: member.column_strengths_at(own).astype(np.float64))
        return found.astype(np.float32)

    def column_residuals(self, values: NDArray, rows: Rows) -> NDArray[np.float64]:
        return self._average(rows, lambda member, own: member.column_residuals(values, own))

    def fit_links(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        def links(member: GraphField, own: Rows) -> NDArray[np.float64]:
            found = np.empty((len(values), self.n_links))
            for where, part in member.fit_links(values, own):
                found[where] = part
            return found

        yield slice(0, len(values)), self._average(rows, links)

    def links_at(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        found = [member.links_at(own) for member, own in zip(self.members, rows.members, strict=True)]
        weights, means = (np.tensordot(self.shares, parts, axes=1) for parts in zip(*found, strict=True))
        return weights, means

    def curve_values_at(self, rows: Rows, node: int) -> NDArray[np.float64]:
        return self._average(rows, lambda member, own: member.curve_values_at(own, node))

    def curves_at(self, rows: Rows, node: int, values: NDArray) -> NDArray[np.float64]:
        return self._average(rows, lambda member, own: member.curves_at(own, node, values))

    def units_at(self, rows: Rows) -> NDArray[np.float64]:
        """Those of the first member; those of the others are much the same."""
        return self.members[0].units_at(rows.members[0])

    def scales_at(self, rows: Rows) -> NDArray[np.float64]:
        unit = self.units_at(rows)

        def variance(member: GraphField, own: Rows) -> NDArray:
            return (member.scales_at(own) * (member.units_at(own) / unit)) ** 2

        return np.sqrt(self._average(rows, variance))

    def node_scales_at(self, rows: Rows) -> NDArray[np.float64]:
        if len(self.members) == 1:
            return self.members[0].node_scales_at(rows.members[0])
        unit = self.units_at(rows)
        return np.sqrt(self._average(rows, lambda member, own: (member.units_at(own) / unit) ** 2))

    def draws(self) -> Draws | None:
        return None if self.drawn is None else Draws(self.members, self.drawn)

    def with_scores(self, scores: NodeMap | None) -> Self:
        members = [member.with_scores(scores) for member in self.members]
        return replace(super().with_scores(scores), members=members)

    def own_program(self, reference: NDArray) -> Program:
        parts = [member.program(reference) for member in self.members]
        return Average([float(share) for share in self.shares], parts)

    def own_state(self) -> State:
        state, arrays = pack_parts(self.members)
        return {"members": state, "drawn": self.drawn}, {**arrays, "shares": self.shares}

    @classmethod
    def from_state(cls, common: Common, state: Saved, arrays: SavedArrays) -> AverageField:
        names = common.schema.encoder.names
        members = unpack_parts(state["members"], arrays, common.schema, names)
        for header, member in zip(state["members"].listed(), members, strict=True):
            missing = unknown_levels(common.schema.encoder, member.schema.encoder)
            if missing:
                header["schema"]["encoder"]["columns"].refuse(
                    "those of the whole model", f"none of {missing}"
                )
        shares = arrays.read("shares", (len(members),), low=0, high=1, above=True)
        if abs(shares.sum() - 1) > _WEIGHTS_OFF:
            arrays.refuse("shares", "shares that sum to one", str(shares.sum()))
        drawn = state.known("drawn")
        return cls(common, members, shares, None if drawn is None else drawn.choice(DRAWS))  # type: ignore[arg-type]


def average(common: Common, fields: Sequence[GraphField], weights: Sequence[float] | NDArray) -> AverageField:
    """The average of fields of the same nodes and covariates; those without weight are left out.

    Numbers that enter all of them by curves do so in their average.
    """
    given = np.asarray(weights, dtype=np.float64)
    if len(given) != len(fields) or not (given >= 0).all() or not given.sum() > 0:
        raise ValueError(f"one weight >= 0 per member is needed, got {given} for {len(fields)}")
    members = [field for field, share in zip(fields, given, strict=True) if share > 0]
    schema = replace(common.schema, types=members[0].schema.types)
    return AverageField(replace(common, schema=schema), members, given[given > 0] / given.sum())


# Bytes of weights of one member held at a time where members are told apart: sums are doubles.
_MEMBER_BYTES = 16 * 2**20


def member_parts(draws: Draws, rows: Rows) -> Iterator[tuple[slice, Iterator[NDArray]]]:
    """Some rows at a time and, for these, the partial correlations of one member after the other."""
    for part, own in parts_of(rows, _rows_at_a_time(draws)):
        yield part, member_correlations(draws, own)


def member_correlations(draws: Draws, rows: Rows) -> Iterator[NDArray]:
    """Partial correlations (n, p, p) of one member after the other."""
    for member, seen in zip(draws.members, draws.rows(rows), strict=True):
        yield member.at(seen).partial_correlations


def member_spread(field: GraphField, Z: Any) -> NDArray[np.float32]:
    """Standard deviation of partial correlations over the members of a field that has some, (n, p, p)."""
    draws = field.draws()
    assert draws is not None
    rows, p = field.rows(Z), field.n_nodes
    result = np.empty((len(rows), p, p), dtype=np.float32)
    for group in groups_of(*field.distinct(rows), _rows_at_a_time(draws)):
        group.fill(result, lambda values: values, _spread_at(draws, group.distinct))
    return result


def _spread_at(draws: Draws, rows: Rows) -> NDArray[np.float64]:
    """One member at a time: mean and squares about it are updated, so no member is kept."""
    p = draws.members[0].n_nodes
    mean, squares = np.zeros((2, len(rows), p, p))
    for count, partial in enumerate(member_correlations(draws, rows), start=1):
        step = partial - mean
        mean += step / count
        squares += step * (partial - mean)
    return np.sqrt(squares / (len(draws.members) - 1))


def _rows_at_a_time(draws: Draws) -> int:
    return rows_within(_MEMBER_BYTES, draws.members[0].n_nodes)
