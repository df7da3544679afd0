"""What is minimised: the loss of one residual and its slope, and the penalty beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

HUBER_DELTA = 1.0  # in standard units of x


@dataclass(frozen=True)
class Loss:
    """A loss per entry and its derivative, both as functions of the residual ``x - fitted``."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]


def _huber(error: Tensor) -> Tensor:
    inner = error.clamp(-HUBER_DELTA, HUBER_DELTA)
    return inner * (error - inner / 2)


LOSSES: dict[str, Loss] = {
    "squared": Loss(torch.square, lambda error: 2 * error),
    "huber": Loss(_huber, lambda error: error.clamp(-HUBER_DELTA, HUBER_DELTA)),
}


@dataclass(frozen=True)
class HeadTask:
    """What a head is asked for: mean loss over rows and nodes + penalty * mean of ``sum_k |beta_jk|``."""

    loss: str
    penalty: Tensor | None  # (m,), None where every one is zero
