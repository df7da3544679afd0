"""One line of the results, and how two sides are timed against each other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any


class NotMeasuredError(Exception):
    """A case that cannot be measured here; the message says why."""


@dataclass(frozen=True)
class Check:
    """A figure that must be reached."""

    what: str
    value: float
    needed: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.value <= self.needed if self.at_most else self.value >= self.needed


@dataclass(frozen=True)
class Record:
    """Ours beside a reference. ``ratio`` is reference / ours, so more is better.

    ``required`` is the ratio to reach and None where none is set, or where a quick run is too small
    to judge; ``checks`` are further figures to reach (share of the limit, memory).
    """

    name: str
    title: str
    ours: float
    reference: float
    unit: str
    ratio: float
    spread: tuple[float, float]
    required: float | None = None
    memory_ours: float | None = None  # MB
    memory_reference: float | None = None
    checks: tuple[Check, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether everything that was asked for is reached; None where nothing was."""
        asked = [check.met for check in self.checks]
        if self.required is not None:
            asked.append(self.ratio >= self.required)
        return all(asked) if asked else None

    def to_json(self) -> dict[str, Any]:
        record = asdict(self)
        record["checks"] = [{**asdict(check), "met": check.met} for check in self.checks]
        return {**record, "spread": list(self.spread), "met": self.met}


@dataclass(frozen=True)
class Timing:
    """Seconds per unit of work of both sides, round by round."""

    ours: list[float]
    reference: list[float]

    @property
    def ratios(self) -> list[float]:
        return [theirs / mine for mine, theirs in zip(self.ours, self.reference, strict=True)]

    def record(self, name: str, title: str, unit: str, *, scale: float = 1.0, **more: Any) -> Record:
        """Medians over the rounds; the ratio is the median of the rounds' ratios."""
        ratios = self.ratios
        return Record(
            name,
            title,
            median(self.ours) * scale,
            median(self.reference) * scale,
            unit,
            median(ratios),
            (min(ratios), max(ratios)),
            **more,
        )


Work = Callable[[], object]


def interleaved(
    ours: Work, reference: Work, rounds: int, units: tuple[float, float] = (1, 1), between: Work | None = None
) -> Timing:
    """Time both sides in turns, who goes first alternating: a busy neighbour then slows both.

    ``units`` are how many units of work one call of each side does. A first, untimed call warms up.
    ``between`` is called once in every round, untimed.
    """
    sides = (ours, reference)
    for work in sides:
        work()
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            seconds[side].append(timed(sides[side]) / units[side])
        if between is not None:
            between()
    return Timing(*seconds)


def timed(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def first_at_or_below(curve: list[tuple[float, float]], target: float) -> float | None:
    """Seconds at the first loss at or below ``target``; None if it is not reached.

    >>> first_at_or_below([(1.0, 0.9), (2.0, 0.5), (3.0, 0.4)], 0.5)
    2.0
    """
    return next((seconds for seconds, loss in curve if loss <= target), None)
