"""The data of the question whether the graph depends on z, sorted, and what the test makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks
from graphfield.data.covariates import Categorical, CovariateEncoder
from graphfield.data.group_levels import LevelCheck
from graphfield.data.node_types import NodeType, NodeTypes
from graphfield.data.node_units import choose_units
from graphfield.data.roles import time_values
from graphfield.data.splits import folds, time_blocks
from graphfield.data.wide_counts import find_wide_counts
from graphfield.estimators.inputs import Inputs
from graphfield.estimators.training_set import smooth_features, without_levels
from graphfield.exceptions import DataError
from graphfield.inference.cleaned_nodes import (
    CleanedNodes,
    cleaned_nodes,
    explained,
    in_units_of_noise,
    mean_error,
)
from graphfield.inference.covariate_basis import Smooth, smooth_covariates
from graphfield.inference.directions import Cuts, Directions, Room, directions
from graphfield.inference.drift import Drift
from graphfield.inference.jumps import find_jumps
from graphfield.inference.rearrange import Rows, Scheme, independent_stretches, schemes_of
from graphfield.messages import Argument
from graphfield.solvers.node_likelihood import NUMBERS

# Thinning never leaves fewer rows than this.
_LEAST_MOST = 2_000
# With fewer rows, or fewer groups to exchange, the answer is "not known".
MIN_ROWS, MIN_GROUPS = 50, 10
# Circular shifts need independent stretches of a time series; with fewer the answer is "not known".
MIN_STRETCHES = 8
# Length of a block of time, in stretches that rows need to forget themselves. Functions of each covariate
# that means may have where this is found, rows for each of them, and stretches that each function costs.
_MEMORIES = 3.0
_MEAN_DEGREES, _ROWS_PER_DEGREE, _COST = 5, 100, 3.0
# Functions of z that a mean or a scale may follow, at most, and rows or groups for each of them, or for each
# level; and the same for what correlations may owe to the other covariates where one of them is tested.
# Groups have means of their own: functions of few groups take much of how these differ, and p-values would
# be too small. A function that varies within groups as well takes as much less of that.
_MOST_FUNCTIONS, _ROWS_PER_FUNCTION, _GROUPS_PER_FUNCTION, _PER_LEVEL = 200, 5, 20, 5
_MOST_GIVEN, _PER_GIVEN = 100, 20
# A number of so few values, years say, that vary within groups, has a mean of its own at each.
_FEW_VALUES = 12
# Rows in which jumps of means are looked for, or values of nodes, at most.
_JUMP_ROWS, _JUMP_ENTRIES = 4_000, 400_000
# Blocks of consecutive rows that count as one each in standard errors, when rows are a time series.
TIME_BLOCKS = 50


@dataclass(frozen=True)
class Question:
    """Checked data, sorted by group and time, and what to do with them."""

    inputs: Inputs
    encoder: CovariateEncoder
    labels: NDArray[np.intp] | None
    timed: bool
    degrees: int
    n_folds: int
    n_permutations: int
    jumps: Cuts = field(default_factory=dict)
    blocks: NDArray[np.intp] | None = None  # stretches of time that count as one each, where not all alike
    in_order: bool = False  # rows follow each other though nobody says when
    levels: LevelCheck | None = None  # whether groups have levels of their own, which were then subtracted
    as_numbers: tuple[str, ...] = ()  # other kinds of nodes that count as numbers for it
    drift: Drift | None = None  # covariates along which levels drift that were subtracted
    wide: Mapping[str, float] = field(default_factory=dict)  # counts that are numbers: their law is wrong

    @property
    def rows(self) -> Rows:
        n = len(self.inputs.X)
        if self.labels is None:
            return Rows(np.zeros(1, dtype=np.intp), n, False, self.timed)
        starts = np.flatnonzero(np.diff(self.labels, prepend=-1))
        return Rows(starts, n, True, self.timed)

    def smooths(self, degrees: int) -> list[Smooth]:
        return smooth_covariates(self.encoder, self.encoder.transform(self.inputs.Z), degrees)

    def thinned(self, most_rows: int, most_entries: int) -> Question:
        """With fewer rows, evenly chosen (whole groups where there are groups), if there are too many."""
        n, p = self.inputs.X.shape
        most = min(most_rows, max(_LEAST_MOST, most_entries // p))
        if n <= most:
            return self
        if self.labels is None:
            rows = np.linspace(0, n - 1, most).round().astype(np.intp)
        else:
            n_groups = len(self.rows.starts)
            kept = np.linspace(0, n_groups - 1, max(1, n_groups * most // n)).round().astype(np.intp)
            rows = np.flatnonzero(np.isin(self.labels, kept))
        inputs, labels = _taken(self.inputs, self.labels, rows)
        return replace(self, inputs=inputs, labels=labels)

    def nodes(self) -> CleanedNodes:
        return cleaned_nodes(self.inputs.X, self._functions_of_means(), self.starts())

    def means(self) -> NDArray[np.float64]:
        """What functions of z explain of nodes in standard units, (n, p)."""
        values = self.inputs.X.astype(np.float64)
        return explained(values, self._functions_of_means(), self.starts())[0]

    def _functions_of_means(self) -> Directions:
        """With all that was left to means when levels of groups were subtracted: it holds much of these."""
        found = self._functions(cuts=self.jumps)
        if self.levels is None or not self.levels.prefers:
            return found
        return found.after(smooth_features(self.inputs.Z)[:, 1:])

    def with_jumps(self) -> Question:
        """Knowing where means jump, if rows are independent: what few groups do by chance looks the same."""
        if self.labels is not None or self.timed:
            return self
        few = self.thinned(_JUMP_ROWS, _JUMP_ENTRIES)
        starts = few.starts()
        values = in_units_of_noise(few.inputs.X, few._functions(), starts)

        def error(cuts: Cuts) -> float:
            return mean_error(values, few._functions(cuts=cuts), starts)

        return replace(self, jumps=find_jumps(values, few._numbers(), error))

    def _numbers(self) -> dict[str, NDArray[np.float64]]:
        names = [column.name for column in self.encoder.columns if not isinstance(column, Categorical)]
        return dict(zip(names, self.encoder.transform(self.inputs.Z).numeric.T, strict=True))

    @property
    def together(self) -> NDArray[np.intp] | None:
        """Rows that are held out together: those of a group, or of one of the blocks."""
        return self.blocks if self.labels is None else self.labels

    def in_blocks(self, times: NDArray[np.float64]) -> Question:
        """With stretches of time that are long beside what rows remember; rows are sorted by ``times``."""
        n_blocks = int(np.clip(self.node_stretches() / _MEMORIES, MIN_STRETCHES, TIME_BLOCKS))
        blocks = np.unique(time_blocks(times, n_blocks), return_inverse=True)[1]
        return replace(self, blocks=blocks)

    def starts(self) -> NDArray[np.intp]:
        """Where each stretch of rows begins that counts as one."""
        return np.flatnonzero(np.diff(self.units(), prepend=-1))

    def apart(
        self, name: str, columns: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Functions of a covariate without what the others explain, and functions of these, (n, m) each."""
        others = {column.name for column in self.encoder.columns} - {name}
        schemes = [scheme for smooth in self.smooths(1) for scheme in self.schemes(smooth)]
        n_units = min(scheme.n_units for scheme in schemes)
        room = Room(min(_MOST_GIVEN, n_units // _PER_GIVEN), n_units // _PER_LEVEL)
        given = directions(self.encoder, self.encoder.transform(self.inputs.Z), room, others)
        return columns - explained(columns, self._functions(others), self.starts())[0], given.columns

    def _functions(self, names: set[str] | None = None, cuts: Cuts | None = None) -> Directions:
        encoded = self.encoder.transform(self.inputs.Z)
        rooms = {smooth.name: self._room(smooth) for smooth in self.smooths(1)}
        return directions(self.encoder, encoded, rooms, names, cuts)

    def _room(self, smooth: Smooth) -> Room:
        """By how many rows there are, and by groups as far as the covariate differs between them."""
        n, rows = len(self.inputs.X), self.rows
        room = Room(min(_MOST_FUNCTIONS, n // _ROWS_PER_FUNCTION), n // _PER_LEVEL)
        between = {scheme.between for scheme in schemes_of(smooth.columns, rows)}
        if True in between:
            n_groups = len(rows.starts) / (1 - rows.share_within(smooth.columns))
            most = int(n_groups / _GROUPS_PER_FUNCTION), int(n_groups / _PER_LEVEL)
            room = Room(*np.minimum(room[:2], most).tolist())
        if False in between and rows.grouped:
            room = room._replace(values=min(_FEW_VALUES, room.levels))
        return room

    def lacking(self) -> str | None:
        """Why there is no answer, if so."""
        n = len(self.inputs.X)
        if n < MIN_ROWS:
            return f"There are {n} rows, and at least {MIN_ROWS} are needed"
        if self.labels is not None and not any(self.schemes(smooth) for smooth in self.smooths(1)):
            n_groups = len(self.rows.starts)
            return (
                f"The covariates differ between groups only, and there are {n_groups}; at least "
                f"{MIN_GROUPS} are needed"
            )
        slowest, stretches = self.slowest()
        if stretches < MIN_STRETCHES:
            levels = slowest in [column.name for column in self.encoder.numeric]
            others = (
                ". Without it, others can be tested"
                f"{', or with its values as levels' if levels else ''}: p-values of the others are given it"
                if len(self.encoder.columns) > 1
                else ""
            )
            return (
                f"{slowest} changes so slowly that the series holds only about {stretches:.0f} independent "
                f"stretches, and at least {MIN_STRETCHES} are needed{others}"
            )
        return None

    def slowest(self) -> tuple[str, float]:
        """The covariate that changes most slowly, and how many independent stretches of it a series holds."""
        if not self.timed or self.labels is not None:
            return "", np.inf
        found = {smooth.name: independent_stretches(smooth.columns[:, 0]) for smooth in self.smooths(1)}
        return min(found.items(), key=lambda item: item[1])

    def node_stretches(self) -> float:
        """How many independent stretches the node that changes most slowly holds, beside functions of z.

        Means that are too stiff are left as memory; but functions follow what wanders, too, so each of them
        costs some. Of several numbers of functions, that counts which leaves most.
        """
        values = self.inputs.X.astype(np.float64)

        def beside(degrees: int) -> float:
            known = np.column_stack([np.ones(len(values)), *(own.columns for own in self.smooths(degrees))])
            left = values - known @ np.linalg.lstsq(known, values, rcond=None)[0]
            found = [independent_stretches(own) for own in left.T if own.any()]
            return min(found, default=np.inf) - _COST * known.shape[1]

        most = int(np.clip(len(values) // _ROWS_PER_DEGREE, 2, _MEAN_DEGREES))
        return max(beside(degrees) for degrees in range(2, most + 1))

    def schemes(self, smooth: Smooth) -> list[Scheme]:
        """How this covariate can be rearranged, as far as there are enough units."""
        found = schemes_of(smooth.columns, self.rows)
        return [scheme for scheme in found if not scheme.between or scheme.n_units >= MIN_GROUPS]

    def units(self) -> NDArray[np.intp]:
        """Rows that count as one in standard errors."""
        if self.labels is not None:
            return self.labels
        if self.blocks is not None:
            return self.blocks
        rows = np.arange(len(self.inputs.X))
        return rows * TIME_BLOCKS // len(rows) if self.timed else rows

    def splits(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        n_units = len(np.unique(self.units()))
        return folds(len(self.inputs.X), self.labels, min(self.n_folds, n_units), shuffle=not self.timed)


def without_wide_counts(inputs: Inputs) -> tuple[Inputs, dict[str, float]]:
    """Counts that vary by more than their law says as numbers, whose tests need none; and by how much."""
    types = inputs.types
    if types is None or "count" not in types.kinds:
        return inputs, {}
    codes, W = inputs.X.astype(np.float64), smooth_features(inputs.Z)[:, 1:]
    blocks, counts = Blocks.learn(types, codes), np.array(types.kinds) == "count"
    columns = np.hstack([blocks.columns(codes), W])
    owner = np.concatenate([blocks.nodes, np.full(W.shape[1], -1)])
    wide = find_wide_counts(list(types.names), codes, counts, columns, owner)
    named = zip(types.names, types.types, strict=True)
    known = NodeTypes(types.names, tuple(NodeType() if name in wide else one for name, one in named))
    return replace(inputs, types=known if known.others else None), wide


def numbers_alone(inputs: Inputs) -> Inputs:
    """Without types where all nodes are numbers or ordinal, whose codes are taken for numbers."""
    if inputs.types is not None and set(inputs.types.kinds) <= set(NUMBERS):
        return replace(inputs, types=None)
    return inputs


def within_groups(
    inputs: Inputs, groups: Any, X: Any, *, wanted: bool = True
) -> tuple[Inputs, NDArray | None, LevelCheck | None, list[str]]:
    """Nodes less the levels of their groups, where these have any, and those that count as numbers for it.

    Levels can be taken from numbers alone. Where some nodes kept theirs, edges between these would be about
    groups as well, so binary nodes and counts are taken for numbers here: what is left of them has none.
    """
    types = inputs.types
    if groups is None or not wanted or types is None or "categorical" in types.kinds:
        return *without_levels(inputs, groups, X, wanted=wanted), []
    found, labels, levels = without_levels(replace(inputs, types=None), groups, X)
    if levels is None or not levels.prefers:
        return inputs, labels, levels, []
    return found, labels, levels, types.others


def in_even_units(inputs: Inputs, labels: NDArray[np.intp] | None) -> tuple[Inputs, str]:
    """Numbers in units in which their noise is even, and a sentence about those that are not as they are."""
    kinds = None if inputs.types is None else inputs.types.kinds
    numbers = [j for j in range(inputs.X.shape[1]) if kinds is None or kinds[j] == "gaussian"]
    if not numbers:
        return inputs, ""
    units = choose_units(inputs.X[:, numbers], smooth_features(inputs.Z), labels)
    if not units.others.any():
        return inputs, ""
    values = inputs.X.astype(np.float64)
    values[:, numbers] = units.transform(values[:, numbers])
    names = [inputs.node_names[j] for j in numbers]
    return replace(inputs, X=values), units.describe(names, "means that move with the covariates")


def times_of(time: Any, X: Any) -> NDArray[np.float64]:
    """When each row of X was taken."""
    values = pd.Series(np.asarray(time), name="time")
    if len(values) != len(X):
        raise DataError(
            "{argument} must hold one value per row of X ({n}), got {found}.",
            argument=Argument("time"),
            n=len(X),
            found=len(values),
        )
    return time_values(values)


def sort_rows(
    inputs: Inputs, labels: NDArray[np.intp] | None, times: NDArray | None, in_order: bool
) -> tuple[Inputs, NDArray[np.intp] | None]:
    """Rows sorted by group and time, or those of no order by their values."""
    keys = [key for key in (times, labels) if key is not None]
    if not keys:
        return (inputs if in_order else inputs.take(inputs.value_order())), None
    return _taken(inputs, labels, np.lexsort(keys))


def _taken(
    inputs: Inputs, labels: NDArray[np.intp] | None, rows: NDArray[np.intp]
) -> tuple[Inputs, NDArray[np.intp] | None]:
    return inputs.take(rows), None if labels is None else np.unique(labels[rows], return_inverse=True)[1]
