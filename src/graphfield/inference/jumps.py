"""Values of numbers at which the means of nodes jump."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from graphfield.inference.directions import Cuts, in_order

# The share of rows that must lie on either side of a jump, jumps at most, and how many in a row may explain
# nothing before the search ends: of a staircase, the first steps do not help.
_LEAST_SIDE, _MOST_JUMPS, _PATIENCE = 0.02, 8, 2
# Keeps steps apart from what else there is, as a share of the rows.
_STEADY = 1e-4
# Bends of each number that a jump must stand out from where one is looked for.
_BENDS = 3


def find_jumps(
    values: NDArray[np.float64], numbers: dict[str, NDArray[np.float64]], error: Callable[[Cuts], float]
) -> Cuts:
    """Where means jump, one after the other: as many jumps as ``error`` says explain them best.

    ``values`` (n, p) are nodes with mean zero, in units of their noise, ``numbers`` what a jump may lie on,
    ``error`` estimates the error of means that jump at some values, beside all else that they do. The best of
    many steps makes it smaller by chance: that much must be gained beyond.
    """
    best, least, since = Cuts(), error({}), 0
    cuts = best
    for count in range(1, _MOST_JUMPS + 1 if numbers else 1):
        more = _with_jump(cuts, *_largest_jump(values, numbers, cuts))
        if more is None or since == _PATIENCE:
            break
        cuts = more
        now = error(cuts) + count * _by_chance(*values.shape)
        since = 0 if now < least else since + 1
        best, least = (cuts, now) if now < least else (best, least)
    return best


def _by_chance(n: int, p: int) -> float:
    """What the best of n steps explains of noise in p nodes, beyond what one step does, at most.

    By the tail of a chi-squared distribution (Laurent and Massart).
    """
    rare = 2 * np.log(n)
    return float(2 * np.sqrt(p * rare) + 2 * rare) / n


def _with_jump(cuts: Cuts, name: str, at: float) -> Cuts | None:
    """None where it is no new one."""
    own = cuts.get(name, ())
    return None if not name or at in own else {**cuts, name: tuple(sorted((*own, at)))}


def _largest_jump(
    values: NDArray[np.float64], numbers: dict[str, NDArray[np.float64]], cuts: Cuts
) -> tuple[str, float]:
    """The number and the value at which a step explains most of what lines, bends and known jumps leave.

    A step alone and times each number, as means may jump up at some values of another and down at others.
    """
    base = np.column_stack([np.ones(len(values)), in_order(np.column_stack(list(_smooth(numbers, cuts))))])
    base /= np.sqrt(len(values))
    left = values - base @ (base.T @ values)
    lines = np.column_stack([np.ones(len(values)), *_standard(numbers).values()])
    gain, name, at = max(
        (_largest_gain(z, name, lines, base, left) for name, z in numbers.items()), key=lambda found: found[0]
    )
    return (name, at) if gain > 0 else ("", 0.0)


def _largest_gain(
    z: NDArray[np.float64],
    name: str,
    lines: NDArray[np.float64],
    base: NDArray[np.float64],
    left: NDArray[np.float64],
) -> tuple[float, str, float]:
    """Of all steps of one number, by sums over the rows above each."""
    order = np.argsort(z, kind="stable")
    sorted_z, n = z[order], len(z)
    starts = 1 + np.flatnonzero(np.diff(sorted_z) > 0)
    starts = starts[np.minimum(starts, n - starts) >= max(1, _LEAST_SIDE * n)]
    if not len(starts):
        return 0.0, name, 0.0
    lines, base, left = lines[order], base[order], left[order]

    def above(columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums of lines times columns over the rows from each start on, (n_starts, n_lines, n_columns)."""
        sums = [np.add.reduceat(line[:, None] * columns, starts, axis=0) for line in lines.T]
        return np.stack([np.cumsum(part[::-1], axis=0)[::-1] for part in sums], axis=1)

    shared, with_base, with_left = above(lines), above(base), above(left)
    own = shared - with_base @ with_base.transpose(0, 2, 1) + _STEADY * n * np.eye(lines.shape[1])
    gains = (with_left * np.linalg.solve(own, with_left)).sum(axis=(1, 2))
    best = int(np.argmax(gains))
    return float(gains[best]), name, float(sorted_z[starts[best] - 1 : starts[best] + 1].mean())


def _standard(numbers: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    return {name: (z - z.mean()) / (z.std() or 1.0) for name, z in numbers.items()}


def _smooth(numbers: dict[str, NDArray[np.float64]], cuts: Cuts) -> Iterator[NDArray[np.float64]]:
    """Powers of each number, products of two, and steps at known jumps, alone and times numbers."""
    lines = list(_standard(numbers).values())
    for i, line in enumerate(lines):
        yield from (line**power for power in range(1, _BENDS + 1))
        yield from (line * other for other in lines[:i])
    for name, own in cuts.items():
        for at in own:
            step = (numbers[name] > at) - np.mean(numbers[name] > at)
            yield step
            yield from (step * line for line in lines)
