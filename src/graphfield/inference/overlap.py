"""Rows whose other covariates occur at all values that are compared.

Graphs at two levels of a category are averaged over the other covariates of the same rows. Over all rows that
would ask for combinations that nobody has: houses in a row that were all built after 1970 have no graph in
1920. The rows are chosen by covariates alone, so tests keep their level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from graphfield.data.covariates import Categorical, CovariateEncoder, Numeric
from graphfield.data.encoded import Encoded
from graphfield.exceptions import first_few, listing
from graphfield.inference.asked_values import evenly, position_of
from graphfield.inference.covariate_basis import covariate_columns
from graphfield.inference.enough_rows import LEAST_LEVEL, has_curves

# The share of rows that may lie outside of what the rows of one side have: near its edges some do by chance.
_MOST_OUTSIDE = 0.1
# Fewer common rows are none. Rows that are looked at, at most.
_LEAST_ROWS, _MOST_ROWS = 10, 2_000
# Rows of a side with a level, for the level to occur there. Levels that are named.
_LEAST_OF_LEVEL, _MOST_LEVELS = 3, 4
# Rows at a number: this share, those nearest to it, and no fewer than these.
_NEAR, _LEAST_NEAR = 0.2, 20
# Rows have what those of a side have within this times what most of these are apart, and a tenth of a
# standard deviation at least. Different levels are two apart.
_REACH, _MOST_OF_ROWS, _LEAST_REACH, _LEVELS_APART = 2.0, 0.9, 0.1, 2.0
# Standard deviations within which rows must lie of values of all covariates.
_NEAR_PLACE = 0.5


@dataclass(frozen=True)
class Common:
    """Rows to average over, and the share of rows that are common: one where nothing was left out, zero
    where hardly any are, so that all were taken."""

    rows: Encoded
    share: float
    named: tuple[str, ...]
    others: tuple[str, ...]
    occur: bool = True  # whether rows are near the values that are named
    left: str = ""  # levels of others that the common rows have, where these are not all

    @property
    def words(self) -> str:
        """For a person, where not all rows are common."""
        if self.share == 1:
            return ""
        if self.share:
            return (
                f"Averaged over {self.share:.0%} of the rows, whose values of {listing(self.others)} occur "
                f"with all of these values{self.left and f': those with {self.left}'}."
            )
        if not self.occur:
            return (
                f"No rows are near some of these values of {listing(self.named)}: graphs there are "
                "extrapolated, and so are their differences. Compare values that rows have together."
            )
        return (
            f"Hardly any rows have values of {listing(self.others)} that occur with all values of "
            f"{listing(self.named)} that are compared. Graphs are averaged over the former of all rows, so "
            "they are extrapolated, and so are their differences. Compare fewer values, leave a covariate "
            "out, or name a value that all have."
        )


def common_rows(
    encoder: CovariateEncoder,
    encoded: Encoded,
    places: Sequence[Mapping[str, float]],
    near: float = _NEAR,
) -> Common:
    """Rows whose other covariates occur at each of the places (values by name, as they are encoded).

    All rows where nearly all do, or hardly any. ``near``: the share of rows that are at a number.
    """
    named = tuple(places[0])
    names = tuple(column.name for column in encoder.columns if column.name not in named)
    if len(named) > 1 and not all(_occurs(encoder, encoded, place) for place in places):
        return Common(encoded, 0.0, named, names, occur=False)
    if not names:
        return Common(encoded, 1.0, named, names)
    looked_at = evenly(len(encoded), _MOST_ROWS)
    others = _coordinates(encoder, encoded, names)
    found = np.ones(len(looked_at), dtype=bool)
    for place in places:
        side = _rows_at(encoder, encoded, place, near)
        found &= _is_near(others[side], others[looked_at])
        found &= _levels_occur(encoder, encoded.take(side), encoded.take(looked_at), names)
    share = float(found.mean())
    if share >= 1 - _MOST_OUTSIDE:
        return Common(encoded, 1.0, named, names)
    if found.sum() < _LEAST_ROWS:
        return Common(encoded, 0.0, named, names)
    rows = encoded.take(looked_at[found])
    return Common(rows, share, named, names, left=_levels_left(encoder, encoded, rows, names))


@dataclass(frozen=True)
class Stratum:
    """Rows that share some levels, and where units of them begin, where these are not the rows."""

    rows: NDArray[np.intp] | slice
    encoded: Encoded
    starts: NDArray[np.intp] | None
    # Covariates with the levels that these rows have, which say how many functions there are (and encode no
    # row).
    counted: CovariateEncoder

    @property
    def n_units(self) -> int:
        return len(self.encoded) if self.starts is None else len(self.starts)

    @property
    def is_part(self) -> bool:
        """Whether there are other rows."""
        return not isinstance(self.rows, slice)


def stratum_of(
    encoder: CovariateEncoder,
    encoded: Encoded,
    starts: NDArray[np.intp] | None,
    places: Sequence[Mapping[str, float]],
) -> Stratum:
    """Rows with the levels that all places have in common, where they are enough for curves of their own.

    What an edge does with other covariates may be different at each level, and other rows would not know it.
    Where rows with such levels are not enough for all that moves in them, those that have all levels of a
    place may be: there is less to tell apart. All rows where nothing is in common, or too few rows have it.
    """
    fixed = held(places)
    rows = rows_with_levels(encoder, encoded, {name: places[0][name] for name in fixed})
    if not rows.all():
        at_places = np.any([rows_with_levels(encoder, encoded, place) for place in places], axis=0)
        for own in (rows, rows & at_places):
            found = _stratum(encoder, encoded, starts, np.flatnonzero(own))
            if _is_enough(found, encoder, places):
                return found
    return Stratum(slice(None), encoded, starts, encoder)  # no copies


def held(places: Sequence[Mapping[str, float]]) -> list[str]:
    """Covariates that have one value at all places."""
    return [name for name, value in places[0].items() if all(own[name] == value for own in places)]


def _stratum(
    encoder: CovariateEncoder, encoded: Encoded, starts: NDArray[np.intp] | None, rows: NDArray[np.intp]
) -> Stratum:
    units = None if starts is None else np.searchsorted(starts, rows, side="right")
    own = None if units is None else np.flatnonzero(np.diff(units, prepend=0))
    few, counted = encoded.take(rows), copy(encoder)
    counted.columns = [
        replace(column, levels=tuple(column.levels[code] for code in np.unique(values)))
        if isinstance(column, Categorical)
        else column
        for column, _, values in covariate_columns(encoder, few)
    ]
    return Stratum(rows, few, own, counted)


def _is_enough(found: Stratum, encoder: CovariateEncoder, places: Sequence[Mapping[str, float]]) -> bool:
    sizes = (rows_with_levels(encoder, found.encoded, place).sum() for place in places)
    return min(sizes) >= LEAST_LEVEL and has_curves(found.counted, found.n_units)


def rows_with_levels(
    encoder: CovariateEncoder, encoded: Encoded, place: Mapping[str, float]
) -> NDArray[np.bool_]:
    """Of a place, whatever its numbers are."""
    rows = np.ones(len(encoded), dtype=bool)
    for name, value in place.items():
        position, column = position_of(encoder, name)
        if isinstance(column, Categorical):
            rows &= encoded.codes[:, position] == value
    return rows


def _rows_at(
    encoder: CovariateEncoder, encoded: Encoded, place: Mapping[str, float], share: float
) -> NDArray[np.intp]:
    """Rows with the levels of a place, and of these the ones nearest to its numbers."""
    rows, distance = rows_with_levels(encoder, encoded, place), np.zeros(len(encoded))
    for name, value in place.items():
        position, column = position_of(encoder, name)
        if not isinstance(column, Categorical):
            distance += np.square(encoded.numeric[:, position] - value)
    own = distance[rows]
    most = min(len(own), max(_LEAST_NEAR, round(share * len(own))))
    near = distance <= (np.sort(own)[most - 1] if most else -1.0)
    return np.flatnonzero(rows & near)


def _occurs(encoder: CovariateEncoder, encoded: Encoded, place: Mapping[str, float]) -> bool:
    """Whether rows have values of all covariates near these."""
    rows = np.flatnonzero(rows_with_levels(encoder, encoded, place))
    numbers = [name for name in place if isinstance(position_of(encoder, name)[1], Numeric)]
    if len(rows) < 2 or not numbers:
        return bool(len(rows))
    own = encoded.numeric[rows][:, [position_of(encoder, name)[0] for name in numbers]].astype(np.float64)
    return bool(_is_near(own, np.array([[place[name] for name in numbers]]), _NEAR_PLACE)[0])


def _levels_occur(
    encoder: CovariateEncoder, side: Encoded, rows: Encoded, names: Sequence[str]
) -> NDArray[np.bool_]:
    """Rows whose levels some rows of a side have, and not one or two by chance."""
    found = np.ones(len(rows), dtype=bool)
    for name in names:
        position, column = position_of(encoder, name)
        if isinstance(column, Categorical):
            sizes = np.bincount(side.codes[:, position], minlength=len(column.levels))
            found &= sizes[rows.codes[:, position]] >= _LEAST_OF_LEVEL
    return found


def _levels_left(encoder: CovariateEncoder, all_rows: Encoded, rows: Encoded, names: Sequence[str]) -> str:
    """For a person, what categories are left with some of their levels only."""
    parts = []
    for name in names:
        position, column = position_of(encoder, name)
        if isinstance(column, Categorical):
            own = np.unique(rows.codes[:, position])
            if len(own) < len(np.unique(all_rows.codes[:, position])):
                levels = first_few([str(column.levels[code]) for code in own], _MOST_LEVELS, " or ", "level")
                parts.append(f"{name} = {levels}")
    return " and ".join(parts)


def _coordinates(encoder: CovariateEncoder, encoded: Encoded, names: Sequence[str]) -> NDArray[np.float64]:
    """Covariates as places of rows: numbers in standard units, and levels."""
    columns = []
    for name in names:
        position, column = position_of(encoder, name)
        if isinstance(column, Categorical):
            is_level = encoded.codes[:, position, None] == np.arange(len(column.levels))
            columns.append(_LEVELS_APART / np.sqrt(2) * is_level)
        else:
            columns.append(encoded.numeric[:, [position]])
    return np.hstack(columns).astype(np.float64)


def _is_near(
    own: NDArray[np.float64], asked: NDArray[np.float64], least: float = _LEAST_REACH
) -> NDArray[np.bool_]:
    """Whether the rows of a side have something as near to what is asked as they are to each other."""
    own = own[evenly(len(own), _MOST_ROWS)]
    if len(own) < 2:
        return np.zeros(len(asked), dtype=bool)
    tree = KDTree(own)
    apart = np.quantile(tree.query(own, k=2)[0][:, 1], _MOST_OF_ROWS)
    return np.asarray(tree.query(asked)[0] <= max(_REACH * apart, least))
