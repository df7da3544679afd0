"""Which rows may change places if the covariates do not matter, given groups and time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The least distance of a circular shift, as a share of the series: nearer ones are much like no shift.
LEAST_SHIFT = 0.05
# A part of a covariate (between groups, within groups) with less of its variance is not looked at.
_LEAST_PART = 0.05
# A covariate that also varies within groups is compared between them if there are so many.
_ENOUGH_GROUPS = 20


@dataclass(frozen=True)
class Rows:
    """Rows sorted by group and time; ``starts`` is where each group begins (all rows are one without)."""

    starts: NDArray[np.intp]
    n_rows: int
    grouped: bool
    timed: bool

    @property
    def sizes(self) -> NDArray[np.intp]:
        return np.diff(np.append(self.starts, self.n_rows))

    def group_sums(self, values: NDArray) -> NDArray:
        return np.add.reduceat(values, self.starts, axis=0)

    def group_means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean of its group for every row."""
        return np.repeat(self.group_sums(values) / self.sizes[:, None], self.sizes, axis=0)


@dataclass(frozen=True)
class Scheme:
    """One way to rearrange: whole groups (``between``), or rows within them or altogether.

    The covariates' columns that :meth:`part` gives are rearranged; products of nodes go through
    :meth:`products` to match them.
    """

    rows: Rows
    between: bool

    def part(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of covariate columns with mean zero, the part that this scheme rearranges, row by row."""
        if not self.rows.grouped:
            return columns
        means = self.rows.group_means(columns)
        return means if self.between else columns - means

    def products(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """One line per unit that moves: the sum of a group, or a row less the mean of its group."""
        if self.between:
            return self.rows.group_sums(values)
        return values - self.rows.group_means(values) if self.rows.grouped else values

    def per_unit(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Columns of :meth:`part` with one line per unit."""
        return columns[self.rows.starts] if self.between else columns

    @property
    def n_units(self) -> int:
        return len(self.rows.starts) if self.between else self.rows.n_rows

    @property
    def n_shifts(self) -> int | None:
        """How many different circular shifts there are; None where rows or groups are permuted."""
        if self.between or not self.rows.timed or self.rows.grouped:
            return None
        least = _least_shift(self.rows.n_rows)
        return self.rows.n_rows - 2 * int(least) + 1

    @property
    def words(self) -> str:
        if self.between:
            return "covariates exchanged between whole groups"
        if self.rows.timed:
            where = "within each group" if self.rows.grouped else "in time"
            return f"covariates shifted circularly {where}, by at least {LEAST_SHIFT:.0%} of the series"
        return "covariates exchanged between rows" + (" of one group" if self.rows.grouped else "")

    def arrangements(self, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """``count`` random arrangements (fewer where there are not so many shifts), (count, n_units)."""
        if self.between or not (self.rows.grouped or self.rows.timed):
            return np.stack([rng.permutation(self.n_units) for _ in range(count)])
        sizes, starts = self.rows.sizes, self.rows.starts
        if not self.rows.timed:
            group = np.repeat(np.arange(len(starts)), sizes)
            keys = rng.random((count, self.rows.n_rows))
            return np.stack([np.lexsort((key, group)) for key in keys])
        least = _least_shift(sizes)
        if self.n_shifts is not None:
            shifts = rng.permutation(self.n_shifts)[:count, None] + least
        else:
            shifts = least + rng.integers(0, sizes - 2 * least + 1, size=(count, len(sizes)))
        place = np.arange(self.rows.n_rows) - np.repeat(starts, sizes)
        moved = (place + np.repeat(shifts, sizes, axis=1)) % np.repeat(sizes, sizes)
        return np.repeat(starts, sizes) + moved


def _least_shift(sizes: NDArray[np.intp] | int) -> NDArray[np.intp]:
    return np.minimum(np.ceil(LEAST_SHIFT * np.asarray(sizes)), np.asarray(sizes) // 2).astype(np.intp)


def schemes_of(columns: NDArray[np.float64], rows: Rows) -> list[Scheme]:
    """The schemes for one covariate: its part between groups, its part within them, or both."""
    if not rows.grouped:
        return [Scheme(rows, between=False)]
    share = np.square(columns - rows.group_means(columns)).sum() / np.square(columns).sum()
    n_groups = len(rows.starts)
    between = share <= _LEAST_PART or (share < 1 - _LEAST_PART and n_groups >= _ENOUGH_GROUPS)
    kept = [Scheme(rows, between=True)] if between else []
    return [*kept, Scheme(rows, between=False)] if share > _LEAST_PART else kept
