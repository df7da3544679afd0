"""Combinations of values of two covariates that hardly any rows have, though many would if unrelated."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.check.findings import EMPTY_CORNER, Finding
from graphfield.data.dates import date_text
from graphfield.exceptions import count, first_few

# A corner is where two covariates are each among these shares of their lowest or highest values. It is empty
# if at most this part of the rows are there that would be if the two were unrelated. It is told if these
# would be so many, and so large a share of all; and a pair if one of its corners is a large one.
_SHARES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
_EMPTY, _LEAST_ROWS, _LEAST_SHARE, _LARGE_SHARE = 0.02, 20, 0.04, 0.07
# Fewer different values make a category, as far as corners go. More covariates are not looked at.
_LEAST_VALUES, _MOST_COVARIATES = 5, 40
_MOST_LEVELS = 20  # with more, single cells are no news
_MOST_NAMED = 3  # pairs, the largest corners first


@dataclass(frozen=True)
class _End:
    """Rows in which a covariate is up to ``value``, or from it on."""

    name: str
    low: bool
    value: float
    rows: NDArray[np.bool_]


@dataclass(frozen=True)
class _Corner:
    one: _End
    other: _End
    n_rows: int
    expected: float  # rows, if the two were unrelated


def are_levels(values: NDArray[np.float64]) -> bool:
    """Whether numbers are so few different ones that they are levels here."""
    return len(np.unique(values[~np.isnan(values)])) < _LEAST_VALUES


def corner_findings(
    numbers: dict[str, NDArray[np.float64]], dates: Collection[str], told: Collection[frozenset[str]]
) -> Iterator[Finding]:
    """About columns without gaps; ``told`` are pairs that are nearly the same, which was said before."""
    if len(numbers) > _MOST_COVARIATES:
        return
    ends = {name: _ends(name, values) for name, values in numbers.items()}
    pairs = [_empty_corners(ends[a], ends[b]) for a, b in combinations(ends, 2) if {a, b} not in told]
    pairs = [corners for corners in pairs if corners and _share(corners[0]) >= _LARGE_SHARE]
    for corners in sorted(pairs, key=lambda found: -_share(found[0]))[:_MOST_NAMED]:
        yield _finding(corners, numbers, dates)


def cell_findings(levels: dict[str, NDArray[np.object_]]) -> Iterator[Finding]:
    """About combinations of levels; of each covariate the level of each row, None where there is none.

    Of numbers, levels are their values where these are few.
    """
    few = {name: own for name, own in levels.items() if len(set(own) - {None}) <= _MOST_LEVELS}
    if len(few) > _MOST_COVARIATES:
        return
    pairs = [(a, b, _empty_cells(few[a], few[b])) for a, b in combinations(few, 2)]
    told = sorted((found for found in pairs if found[2]), key=lambda found: -found[2][0][2])
    for a, b, cells in told[:_MOST_NAMED]:
        where = [
            f"{a} = {one} with {b} = {other} ({count(n_rows, 'row') if n_rows else 'none'}, where "
            f"{expected:,.0f} would be if the two were unrelated)"
            for one, other, expected, n_rows in cells
        ]
        yield Finding(
            EMPTY_CORNER,
            (a, b),
            f"Hardly any rows have some combinations of covariates {a!r} and {b!r}: "
            f"{first_few(where, _MOST_NAMED)}.",
            "Graphs there are extrapolated, and what the one does and what the other does is told apart by "
            "the other rows alone.",
        )


def _empty_cells(ones: NDArray[np.object_], others: NDArray[np.object_]) -> list[tuple[str, str, float, int]]:
    """Level, level, rows if the two were unrelated, and rows; the largest first."""
    cells = pd.crosstab(ones, others)  # without rows where either has none
    rows = cells.to_numpy()
    expected = np.outer(rows.sum(axis=1), rows.sum(axis=0)) / max(rows.sum(), 1)
    empty = np.argwhere((rows <= _EMPTY * expected) & (expected >= _LEAST_ROWS))
    found = [
        (str(cells.index[i]), str(cells.columns[j]), float(expected[i, j]), int(rows[i, j])) for i, j in empty
    ]
    return sorted(found, key=lambda cell: -cell[2])


def _ends(name: str, values: NDArray[np.float64]) -> list[_End]:
    if len(values) < _LEAST_ROWS or len(np.unique(values)) < _LEAST_VALUES:
        return []
    found = {}
    for share in _SHARES:
        low = float(np.quantile(values, share, method="inverted_cdf"))
        high = float(np.quantile(values, 1 - share, method="higher"))
        found[True, low] = _End(name, True, low, values <= low)
        found[False, high] = _End(name, False, high, values >= high)
    return [end for end in found.values() if _SHARES[0] <= end.rows.mean() <= _SHARES[-1]]


def _empty_corners(ones: list[_End], others: list[_End]) -> list[_Corner]:
    """Of each of the four the largest empty one, the largest of all first."""
    found: dict[tuple[bool, bool], _Corner] = {}
    for one in ones:
        for other in others:
            corner = _Corner(
                one, other, int((one.rows & other.rows).sum()), float(one.rows.sum() * other.rows.mean())
            )
            place = one.low, other.low
            if (
                corner.n_rows <= _EMPTY * corner.expected
                and corner.expected >= _LEAST_ROWS
                and _share(corner) >= _LEAST_SHARE
                and (place not in found or found[place].expected < corner.expected)
            ):
                found[place] = corner
    return sorted(found.values(), key=lambda corner: -corner.expected)


def _share(corner: _Corner) -> float:
    return corner.expected / len(corner.one.rows)


def _finding(
    corners: list[_Corner], numbers: dict[str, NDArray[np.float64]], dates: Collection[str]
) -> Finding:
    def text(name: str, value: float) -> str:
        return date_text(value) if name in dates else f"{value + 0.0:.6g}"  # no -0

    def side(end: _End) -> str:
        value = text(end.name, end.value)
        return f"{end.name!r} up to {value}" if end.low else f"{end.name!r} from {value} on"

    def instead(corner: _Corner) -> str:
        name = corner.other.name
        low, high = np.quantile(numbers[name][corner.one.rows], [0.05, 0.95], method="nearest")
        return f"with {side(corner.one)}, most have {name!r} {text(name, low)} to {text(name, high)}"

    names = corners[0].one.name, corners[0].other.name
    where = [
        f"{side(one.one)} with {side(one.other)} ({count(one.n_rows, 'row') if one.n_rows else 'none'}, "
        f"where {one.expected:,.0f} would be if the two were unrelated)"
        for one in corners
    ]
    return Finding(
        EMPTY_CORNER,
        names,
        f"Hardly any rows have some combinations of covariates {names[0]!r} and {names[1]!r}: "
        f"{'; '.join(where)}.",
        "Curves and graphs there are extrapolated. Name values that rows have together: "
        f"{'; '.join(dict.fromkeys(instead(corner) for corner in corners))}.",
    )
