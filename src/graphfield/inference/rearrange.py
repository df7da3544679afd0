"""Which rows may change places if the covariates do not matter, given groups and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

# A part of a covariate (between groups, within groups) with less of its variance is not looked at.
_LEAST_PART = 0.05
# A column of which this share is rearranged counts as one that is.
_MOST_OF_IT = 0.7
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

    def share_within(self, columns: NDArray[np.float64]) -> float:
        """Of the variance of columns with mean zero, the share within groups."""
        return float(np.square(columns - self.group_means(columns)).sum() / np.square(columns).sum())


@dataclass(frozen=True)
class Scheme:
    """One way to rearrange: whole groups (``between``), or rows within them or altogether."""

    rows: Rows
    between: bool

    def part(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of covariate columns with mean zero, the part that this scheme rearranges."""
        if not self.rows.grouped:
            return columns
        means = self.rows.group_means(columns)
        return means if self.between else columns - means

    def whole(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """The parts of columns of which most is rearranged, and nothing of the others.

        A level that varies within groups has shares of the rows of each, large ones in small groups; in a
        large group the same share would take away much more of its mean than it did.
        """
        part = self.part(columns)
        most = np.square(part).sum(axis=0) > _MOST_OF_IT * np.square(columns).sum(axis=0)
        return np.where(most, part, 0.0)

    @property
    def n_units(self) -> int:
        return len(self.rows.starts) if self.between else self.rows.n_rows

    @property
    def shifts(self) -> bool:
        """Whether covariates are shifted in time."""
        return self.rows.timed and not self.between

    @property
    def words(self) -> str:
        if self.between:
            return "every group gets the covariates of another group"
        if self.rows.timed:
            where = "within every group " if self.rows.grouped else ""
            return f"{where}the covariates are shifted in time against the nodes"
        return "every row gets the covariates of another row" + (" of its group" if self.rows.grouped else "")

    def arrangements(self, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
        """Random arrangements, one after the other, without end but for the shifts of one series.

        Each says for every row which row its covariates come from. Shifts may be short: their statistics
        are much like that of no shift, but to leave them out would make small p-values too frequent. Only
        all shifts together treat every start alike.
        """
        sizes, starts, n = self.rows.sizes, self.rows.starts, self.rows.n_rows
        if self.between:
            yield from (np.repeat(rng.permutation(starts), sizes) for _ in count())
        if not (self.rows.grouped or self.rows.timed):
            yield from (rng.permutation(n) for _ in count())
        if not self.rows.timed:
            group = np.repeat(np.arange(len(starts)), sizes)
            yield from (np.lexsort((rng.random(n), group)) for _ in count())
        first = np.repeat(starts, sizes)
        if self.rows.grouped:
            shifts: Iterable[NDArray] = (rng.integers(0, sizes) for _ in count())
        else:
            shifts = 1 + rng.permutation(n - 1)[:, None]
        for shift in shifts:
            yield first + (np.arange(n) - first + np.repeat(shift, sizes)) % np.repeat(sizes, sizes)


def schemes_of(columns: NDArray[np.float64], rows: Rows) -> list[Scheme]:
    """The schemes for one covariate: its part between groups, its part within them, or both."""
    if not rows.grouped:
        return [Scheme(rows, between=False)]
    share = rows.share_within(columns)
    n_groups = len(rows.starts)
    # Where most is within, small groups stand out by chance, and their mean products have long tails.
    even = share < 0.5 or rows.sizes.max() <= 2 * rows.sizes.min()
    between = share <= _LEAST_PART or (share < 1 - _LEAST_PART and n_groups >= _ENOUGH_GROUPS and even)
    kept = [Scheme(rows, between=True)] if between else []
    return [*kept, Scheme(rows, between=False)] if share > _LEAST_PART else kept


def independent_stretches(values: NDArray[np.float64]) -> float:
    """The length of a series with mean zero, divided by how many of its rows it needs to forget itself.

    >>> independent_stretches(np.random.default_rng(0).normal(size=1_000)) > 500
    True
    >>> independent_stretches(np.linspace(-1, 1, 1_000)) < 5
    True
    """
    n = len(values)
    spectrum = np.square(np.abs(np.fft.rfft(values, 2 * n)))
    correlation = np.fft.irfft(spectrum)[:n]
    correlation /= correlation[0]
    below = np.flatnonzero(correlation < 0)
    until = below[0] if len(below) else n
    return float(n / (1 + 2 * correlation[1:until].sum()))
