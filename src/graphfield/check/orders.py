"""Whether few different numbers are amounts, which other nodes rise or fall with, or codes of a category."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

# Numbers that enough rows have, so that the means of other nodes at each can be compared.
_ROWS_EACH, _FEWEST_NUMBERS, _ROWS, _NODES = 5, 6, 5_000, 40
# Of what the means at each number differ by, a line is at least this much; and they differ by at least so
# many times what chance explains. Of 200 labels of public tables, numbered at random, one has as straight a
# line; of 600 columns of whole numbers there about half.
_STRAIGHT, _BEYOND_CHANCE = 0.75, 2.0


def follow_an_order(nodes: pd.DataFrame, name: str) -> bool:
    """Whether the others of these nodes rise or fall along the numbers of one; what is missing is NaN.

    Numbers count by the root of their rows: two with most of the rows make a line of any code.

    >>> rng = np.random.default_rng(0)
    >>> visits = rng.integers(0, 9, 500)
    >>> follow_an_order(pd.DataFrame({"visits": visits, "cost": visits + rng.normal(size=500)}), "visits")
    True
    >>> price = rng.normal(size=9)[visits]
    >>> follow_an_order(pd.DataFrame({"shop": visits, "cost": price + rng.normal(size=500)}), "shop")
    False
    """
    rows = np.linspace(0, len(nodes) - 1, min(len(nodes), _ROWS)).astype(np.intp)
    others = nodes.columns[nodes.columns != name]
    asked = others[np.linspace(0, len(others) - 1, min(len(others), _NODES)).astype(np.intp)]
    numbers = nodes[name].to_numpy(np.float64)[rows]
    found = [_differences(numbers, nodes[other].to_numpy(np.float64)[rows]) for other in asked]
    clear = [(apart, straight) for apart, straight, chance in found if apart > _BEYOND_CHANCE * chance > 0]
    return bool(clear) and sum(straight for _, straight in clear) >= _STRAIGHT * sum(
        apart for apart, _ in clear
    )


def _differences(numbers: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float, float]:
    """Variance of the means of ``other`` at each number, of a line through these, and what chance adds."""
    there = np.isfinite(numbers) & np.isfinite(other)
    codes, sizes = np.unique(numbers[there], return_inverse=True, return_counts=True)[1:]
    enough = np.flatnonzero(sizes >= _ROWS_EACH)
    ranks = rankdata(other[there])
    n, k = len(ranks), len(sizes)
    if len(enough) < _FEWEST_NUMBERS or n <= k or np.ptp(ranks) == 0:
        return 0.0, 0.0, 0.0
    ranks = (ranks - ranks.mean()) / ranks.std()
    means = np.bincount(codes, ranks) / sizes
    noise = (n - sizes @ means**2) / (n - k) / sizes[enough]
    weights = np.sqrt(sizes[enough])
    weights /= weights.sum()
    line = enough - weights @ enough
    means = means[enough] - weights @ means[enough]
    width = weights @ line**2
    chance = (weights * (1 - weights)) @ noise
    straight = ((weights * line) @ means) ** 2 - (weights * line) ** 2 @ noise
    return float(weights @ means**2 - chance), float(straight / width), float(chance)
