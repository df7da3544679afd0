"""Accelerated proximal steps (Beck and Teboulle, 2009), of NumPy's arrays and of torch's tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def next_momentum(momentum: Any) -> Any:
    return (1 + (1 + 4 * momentum**2) ** 0.5) / 2


def go_ahead(new: Any, change: Any, share: float) -> Any:
    """Beyond a point, by a share of the change that led to it."""
    return new + share * change


def accelerate(
    start: Any,
    step: Callable[[Any], Any],
    is_settled: Callable[[Any, Any], Any],
    n_steps: int,
    *,
    check_every: int = 1,
    ahead: Callable[[Any, Any, float], Any] = go_ahead,
) -> Any:
    """Where proximal steps lead from ``start``, each from a point ahead of the one before.

    ``step`` leads from a point to the next one. Every so many steps it is asked whether a change and the
    point that it led to are settled; and momentum that leads uphill is dropped.

    >>> import numpy as np
    >>> accelerate(np.array([4.0]), lambda x: x / 2, lambda change, _: abs(change).max() < 1e-9, 100).round(6)
    array([0.])
    """
    found, point, momentum = start, start, 1.0
    for i in range(1, n_steps + 1):
        new = step(point)
        change = new - found
        if i % check_every == 0:
            if is_settled(change, new):
                return new
            if (point - new).ravel() @ change.ravel() > 0:
                momentum = 1.0
        following = next_momentum(momentum)
        found, point, momentum = new, ahead(new, change, (momentum - 1) / following), following
    return found
