"""One step of Adam: torch's fused kernel, which has no public name, or the same where it is gone."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from graphfield.training.config import BETA1, BETA2, EPSILON, WEIGHT_DECAY


def adam_step(
    values: Tensor, gradient: Tensor, state: dict[str, Tensor], rate: float, scale: Tensor | None
) -> None:
    """One step of Adam in place; the gradient is divided by ``scale`` where there is one.

    ``state`` holds ``step`` (which counts this step already), ``exp_avg`` and ``exp_avg_sq``.
    """
    (_fused_step if has_fused_adam() else _plain_step)(values, gradient, state, rate, scale)


@cache
def has_fused_adam() -> bool:
    """Whether the kernel is there, takes what we give it and does what the plain step does."""
    results = []
    for take_step in (_fused_step, _plain_step):
        values, gradient = torch.tensor([1.0, -2.0]), torch.tensor([0.5, 3.0])
        state = {name: torch.full_like(values, 0.25) for name in ("exp_avg", "exp_avg_sq")}
        state["step"] = torch.tensor(3.0)
        try:
            take_step(values, gradient, state, 0.1, torch.tensor(2.0))
        except (AttributeError, TypeError, RuntimeError):
            return False
        results.append(values)
    fused, plain = results
    return torch.allclose(fused, plain)


def _fused_step(
    values: Tensor, gradient: Tensor, state: dict[str, Tensor], rate: float, scale: Tensor | None
) -> None:
    torch._fused_adam_(
        [values],
        [gradient],
        [state["exp_avg"]],
        [state["exp_avg_sq"]],
        [],
        [state["step"]],
        lr=rate,
        beta1=BETA1,
        beta2=BETA2,
        weight_decay=WEIGHT_DECAY,
        eps=EPSILON,
        amsgrad=False,
        maximize=False,
        # The kernel divides by it, which saves a pass over the gradient.
        grad_scale=scale,
    )


def _plain_step(
    values: Tensor, gradient: Tensor, state: dict[str, Tensor], rate: float, scale: Tensor | None
) -> None:
    if scale is not None:
        gradient.div_(scale)
    slope = gradient.add(values, alpha=WEIGHT_DECAY)
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    mean.lerp_(slope, 1 - BETA1)
    square.mul_(BETA2).addcmul_(slope, slope, value=1 - BETA2)
    step = float(state["step"])
    spread = square.div(1 - BETA2**step).sqrt_().add_(EPSILON)
    values.addcdiv_(mean, spread, value=-rate / (1 - BETA1**step))
