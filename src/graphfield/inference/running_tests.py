"""Tests by rearranging that go on as long as chance alone would decide what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from graphfield.inference.score_test import combined_p_value
from graphfield.numbers import is_significant

# A p-value from n rearrangements is one of a sample. Where more of them might bring it to the other side of
# .05, the test goes on: until that has no more than this chance on either side, or so many are done, or they
# have taken so many operations.
_CHANCE, _MOST, _OPERATIONS = 0.01, 9_999, 2e11
# Rearrangements that are held at a time.
_TOGETHER = 250


@dataclass(frozen=True)
class Tested:
    """A p-value and the number of rearrangements it is based on."""

    p_value: float
    n_permutations: int


class Sample:
    """Statistics of the rows as they are, and of those rearranged so far: (k, 1 + n).

    ``draw`` gives those of so many more (of fewer where there are no more shifts), each of which takes
    about ``work`` operations.
    """

    def __init__(
        self, found: NDArray[np.float64], draw: Callable[[int], NDArray[np.float64]], work: float
    ) -> None:
        self.found, self.draw = found, draw
        self.at_first, self.most = self.n_permutations, min(_MOST, int(_OPERATIONS / work))
        self.is_all = False

    @property
    def n_permutations(self) -> int:
        return self.found.shape[1] - 1

    @property
    def p_value(self) -> float:
        """Of a test that went on it is never the least one that it could have had at first.

        Such a test was not among the clearest, and would otherwise have two chances to be.
        """
        least = 0.0 if self.n_permutations == self.at_first else 2 / (self.at_first + 1)
        return max(least, combined_p_value(self.found))

    def bounds(self) -> tuple[float, float]:
        """Where the p-value of all rearrangements is (Clopper and Pearson, 1934)."""
        n, p = self.n_permutations, combined_p_value(self.found)
        if self.is_all:
            return p, p
        as_large = round(p * (n + 1)) - 1
        low = betaincinv(as_large, n - as_large + 1, _CHANCE) if as_large else 0.0
        high = betaincinv(as_large + 1, n - as_large, 1 - _CHANCE) if as_large < n else 1.0
        return float(low), float(high)

    def go_on(self) -> bool:
        """About as many again; whether that says more than before."""
        before = self.n_permutations, self.is_all
        until = min(2 * self.n_permutations + 1, self.most)
        while self.n_permutations < until and not self.is_all:
            wanted = min(_TOGETHER, until - self.n_permutations)
            more = self.draw(wanted)
            self.is_all = more.size < wanted * len(self.found)
            self.found = np.hstack([self.found, more.reshape(len(self.found), -1)])
        return (self.n_permutations, self.is_all) != before


@dataclass(frozen=True)
class RunningTest:
    """One question, asked in one or several independent ways, as between and within groups."""

    samples: list[Sample]

    def result(self) -> Tested:
        """The smallest p-value counts, about as often as there are."""
        least = min(self.samples, key=lambda sample: sample.p_value)
        return Tested(self._of_smallest(least.p_value), least.n_permutations)

    def bounds(self) -> tuple[float, float]:
        low, high = np.min([sample.bounds() for sample in self.samples], axis=0).tolist()
        return self._of_smallest(low), self._of_smallest(high)

    def go_on(self) -> bool:
        went_on = [sample.go_on() for sample in self.samples]
        return any(went_on)

    def _of_smallest(self, p_value: float) -> float:
        n = len(self.samples)
        return p_value if n == 1 else 1 - (1 - p_value) ** n


def settle(tests: Mapping[str, RunningTest | None]) -> list[str]:
    """Go on with tests whose p-values, adjusted for their number, might be on the other side of .05.

    Returns the names of those that still might when as many rearrangements are done as may be.
    """
    while True:
        bounds = {name: test.bounds() for name, test in tests.items() if test is not None}
        low, high = (holm({name: ends[side] for name, ends in bounds.items()}) for side in (0, 1))
        near = [name for name in bounds if _passes(low[name]) != _passes(high[name])]
        went_on = [test.go_on() for name in near if (test := tests[name])]
        if not any(went_on):
            return near


def _passes(p_value: float | None) -> bool:
    return p_value is not None and is_significant(p_value)


def holm(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Adjusted for their number by Holm's method; None stays None.

    >>> holm({"a": 0.01, "b": None, "c": 0.04})
    {'a': 0.02, 'b': None, 'c': 0.04}
    """
    known = sorted((value, name) for name, value in p_values.items() if value is not None)
    adjusted: dict[str, float | None] = dict.fromkeys(p_values)
    largest = 0.0
    for position, (value, name) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - position) * value))
        adjusted[name] = largest
    return adjusted
