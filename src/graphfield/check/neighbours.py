"""Rows next to each other that share a value which rows apart hardly ever share: members of one household."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.check.findings import Finding
from graphfield.messages import Argument, Message

# Pairs of rows that share a value by chance, at most: other columns say nothing by it.
_BY_CHANCE = 0.01
# Rows next to each other that share one, at least, as a share and a number, and times those apart by so many.
_SHARED, _FEWEST, _TIMES, _APART = 0.05, 20, 5, 20
# Ranks of different neighbours differ by at least this share of what those of any two rows do: else values
# move slowly along the rows, as in a series or a sorted table.
_JUMPS = 0.5


class SharedValue(NamedTuple):
    """A column whose value is that of the next row in ``n_pairs`` cases, of which ``expected`` by chance."""

    name: str
    n_pairs: int
    expected: float


def neighbour_findings(*tables: pd.DataFrame) -> Iterator[Finding]:
    """Rows that look like members of one household, by columns of numbers in these tables."""
    numbers = [table.select_dtypes("number", exclude=["complex", "timedelta"]) for table in tables]
    found = shared_with_next(pd.concat(numbers, axis=1))
    if found is not None:
        yield Finding(
            "neighbours-alike",
            (found.name,),
            f"{found.n_pairs:,} rows have the same {found.name!r} as the next row, where "
            f"{found.expected:,.0f} would by chance, as if they belonged together, like members of a "
            "household or visits of a patient.",
            Message(
                "If so, number what they belong to in a column of its own and name that as the group "
                "({group}): else standard errors and p-values are too small.",
                group=Argument("group"),
            ),
        )


def shared_with_next(table: pd.DataFrame) -> SharedValue | None:
    """The column of finely measured numbers that most rows share with the next one, if any says something.

    >>> rng = np.random.default_rng(0)
    >>> couples = np.repeat(rng.normal(size=150), 2)
    >>> shared_with_next(pd.DataFrame({"age": rng.normal(size=300), "income": couples})).name
    'income'
    >>> shared_with_next(pd.DataFrame({"age": rng.normal(size=300), "income": np.sort(couples)})) is None
    True
    """
    columns = ((str(name), own.to_numpy(np.float64, na_value=np.nan)) for name, own in table.items())
    found = [one for name, own in columns if (one := _shared(name, own)) is not None]
    return max(found, key=lambda one: one.n_pairs, default=None)


def _shared(name: str, values: NDArray[np.float64]) -> SharedValue | None:
    there = values[np.isfinite(values)]
    if len(there) <= _APART:
        return None
    shares = np.square(np.unique(there, return_counts=True)[1] / len(there))
    chance = float(shares.sum())
    same = there[1:] == there[:-1]
    apart = max(chance, float((there[_APART:] == there[:-_APART]).mean()))
    if chance > _BY_CHANCE or same.sum() < _FEWEST or same.mean() < max(_SHARED, _TIMES * apart):
        return None
    ranks = pd.Series(there).rank().to_numpy()
    steps = np.abs(np.diff(ranks))[~same]
    if len(steps) == 0 or np.median(steps) < _JUMPS * (1 - np.sqrt(0.5)) * len(there):
        return None
    return SharedValue(name, int(same.sum()), chance * len(same))
