"""Which rows each of many fits sees: halves, all but a share, rows drawn with replacement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# All rows; one of two complementary halves; without a share of the rows; drawn with replacement.
KINDS = ("all", "half", "drop", "draw")
_NAME = re.compile(r"(all|half|drop|draw)-(\d{1,20})-(\d{1,9})-(\d{1,2})")
_FIT = 1  # beside what the rows are drawn from


@dataclass(frozen=True, order=True)
class Resample:
    """The rows of one fit, known by what they are drawn from.

    ``part`` is the side of a half, 0 or 1, or the share of rows that are dropped, in percent.

    >>> halves = [Resample("half", 0, 3, side).rows(np.arange(6)) for side in (0, 1)]
    >>> np.sort(np.concatenate(halves)).tolist()
    [0, 1, 2, 3, 4, 5]
    """

    kind: str
    seed: int = 0
    number: int = 0
    part: int = 0

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.seed}-{self.number}-{self.part}"

    @classmethod
    def named(cls, name: str) -> Resample | None:
        """Inverse of :attr:`name`; None for what is no such name."""
        found = _NAME.fullmatch(name)
        return None if found is None else cls(found[1], *(int(number) for number in found.groups()[1:]))

    @property
    def dropped(self) -> float:
        """The share of rows that it is without."""
        return {"half": 0.5, "drop": self.part / 100}.get(self.kind, 0.0)

    @property
    def fit_seed(self) -> int:
        """For what is random in the fit itself."""
        state = np.random.SeedSequence([*self._key, self.part, _FIT]).generate_state(1, np.uint64)
        return int(state[0] >> np.uint64(1))

    def rows(self, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Positions of its rows, rows with equal codes (0, 1, 2 and so on) together."""
        counts = self._counts(int(codes.max()) + 1)
        return np.repeat(np.arange(len(codes)), counts[codes])

    @property
    def _key(self) -> list[int]:
        return [self.seed, KINDS.index(self.kind), self.number]

    def _counts(self, n_units: int) -> NDArray[np.intp]:
        """How often each row or group is there."""
        if self.kind == "all":
            return np.ones(n_units, dtype=np.intp)
        key = self._key if self.kind == "half" else [*self._key, self.part]
        rng = np.random.default_rng(key)
        if self.kind == "draw":
            return np.bincount(rng.integers(n_units, size=n_units), minlength=n_units)
        order, half = rng.permutation(n_units), n_units // 2
        chosen = order[: round((1 - self.dropped) * n_units)]
        if self.kind == "half":
            chosen = order[half * self.part : half * (self.part + 1)]
        return np.bincount(chosen, minlength=n_units)


def planned_resamples(
    seed: int, n_pairs: int, n_drops: int, shares: Sequence[float], n_draws: int
) -> list[Resample]:
    """All rows, pairs of halves, and so many of the others; halves are what dropping half the rows is."""
    halves = [Resample("half", seed, number, side) for number in range(n_pairs) for side in (0, 1)]
    percent = [round(100 * share) for share in shares]
    drops = [
        Resample("drop", seed, number, part)
        for part in percent
        for number in range(max(0, n_drops - (2 * n_pairs if part == 50 else 0)))
    ]
    return [Resample("all"), *halves, *drops, *(Resample("draw", seed, number) for number in range(n_draws))]
