"""How many false ones to expect among what is selected from most half-samples.

Notation of Shah and Samworth (Variable selection with error control: another look at stability selection,
JRSS B 2013): of N candidates a procedure selects q on average from one half of the rows, theta = q / N. Those
that are selected from at least a share tau of 2B halves (B pairs of complementary halves) are kept. "False"
are candidates that are selected from a half with probability at most theta, no better than by guessing.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from graphfield.exceptions import check_choice

ASSUMPTIONS = ("none", "unimodal", "r-concave")
# Of the curves (a + i)^(-s) between those that reach k and k + 1 fully.
_GRID = 60
_FARTHEST, _NEAREST = 1e7, 1e-7


def expected_false(
    n_candidates: int, n_selected: float, n_pairs: int, frequency: float, assumption: str = "unimodal"
) -> float:
    """A bound on the expected number of false ones that are selected from so many halves.

    ``n_candidates`` is N, ``n_selected`` q, ``n_pairs`` B and ``frequency`` tau, above one half. What is
    assumed of how often false candidates are selected over pairs of halves: nothing (``"none"``: Theorem 1,
    the formula of Meinshausen and Buehlmann, 2010, q^2 / ((2 tau - 1) N)); that the distribution has one
    peak (``"unimodal"``: Theorem 2); or that it falls like one that is ``"r-concave"``, r = -1/2 for both
    halves of a pair at once and -1/4 for single ones (section 3.3), which gives the smallest number. None
    needs false candidates to be exchangeable, as the original bound did.

    The example of the R package stabs: 2 of 9 selected, 50 pairs, three quarters of halves.

    >>> round(expected_false(9, 2, 50, 0.75), 3)
    0.454
    >>> [round(expected_false(1_225, 50, 50, 0.9, kind), 2) for kind in ASSUMPTIONS]
    [2.55, 0.88, 0.14]
    """
    check_choice("assumption", assumption, ASSUMPTIONS)
    theta = n_selected / n_candidates
    if frequency <= 0.5 or theta >= 1:
        return float(n_candidates)
    bound = theta * n_selected / (2 * frequency - 1)
    if assumption != "none":
        bound = min(bound, _unimodal_factor(theta, frequency, n_pairs) * theta * n_selected)
    if assumption == "r-concave":
        together = _tail(theta**2, 2 * frequency - 1, n_pairs, 2.0)
        single = _tail(theta, frequency, 2 * n_pairs, 4.0)
        bound = min(bound, min(together, single) * n_candidates)
    return float(min(bound, n_candidates))


def _unimodal_factor(theta: float, frequency: float, n_pairs: int) -> float:
    """C(tau, B) of Theorem 2; infinite where that says nothing."""
    step = 1 / (2 * n_pairs)
    lowest = min(0.5 + theta**2, 0.5 + step + 0.75 * theta**2)
    if theta > 1 / np.sqrt(3) or frequency <= lowest:
        return np.inf
    if frequency <= 0.75:
        return 1 / (2 * (2 * frequency - 1 - step))
    return 4 * (1 - frequency + step) / (1 + 2 * step)


def _tail(mean: float, least: float, n_steps: int, power: float) -> float:
    """The largest P(V >= least) of a V on 0, 1/n, ..., 1 with this mean whose distribution is r-concave.

    With r = -1 / power it is reached by f(i) = (a + i)^(-power) up to some k, with f(k + 1) anything below
    that and nothing beyond (appendix A.4).
    """
    goal, first = mean * n_steps, int(np.ceil(least * n_steps - 1e-9))
    if first <= 2 * goal + 1:
        return 1.0
    ends = [_nearness(goal, k, power) for k in range(first, n_steps + 1)]
    inner = [
        _largest_tail(goal, k, power, first, np.geomspace(high, low, _GRID))
        for k, (low, high) in enumerate(pairwise(ends), start=first)
    ]
    whole = _largest_tail(goal, n_steps, power, first, np.array(ends[-1:]))
    return max([whole, *inner])


def _nearness(goal: float, k: int, power: float) -> float:
    """The a for which (a + i)^(-power) on 0, ..., k has its mean there."""

    def miss(log_a: float) -> float:
        shape = _curve(np.array([np.exp(log_a)]), k, power)[0]
        return float(shape @ np.arange(k + 1) / shape.sum() - goal)

    low, high = np.log(_NEAREST), np.log(_FARTHEST)
    if miss(low) > 0:  # a mean so small that all of it is at zero
        return _NEAREST
    return float(np.exp(brentq(miss, low, high)))


def _largest_tail(goal: float, k: int, power: float, first: int, a: NDArray[np.float64]) -> float:
    """Over these a, with as much at k + 1 as the mean asks for."""
    shape, steps = _curve(a, k, power), np.arange(k + 1)
    total = shape.sum(axis=1)
    beyond = np.maximum(0.0, (goal * total - shape @ steps) / (k + 1 - goal))
    return float(((shape[:, first:].sum(axis=1) + beyond) / (total + beyond)).max())


def _curve(a: NDArray[np.float64], k: int, power: float) -> NDArray[np.float64]:
    """In units of its first value, so that nothing is too large."""
    return ((a[:, None] + np.arange(k + 1)) / a[:, None]) ** (-power)
