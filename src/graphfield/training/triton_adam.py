"""Clipping and Adam in one pass over the weights, for CUDA.

The update is that of ``torch.optim.Adam`` with ``weight_decay``, after scaling each member's gradient
to at most a given norm. torch's own fused kernel gives one block to 65,536 weights and so leaves most of
a GPU idle on a network of this size.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphfield.training.config import BETA1, BETA2, EPSILON

_BLOCK = 1024


def clipped_adam(
    values: Tensor,
    gradient: Tensor,
    state: dict[str, Tensor],
    rate: Tensor,
    enabled: Tensor,
    *,
    clip_norm: float,
    weight_decay: float,
) -> None:
    """One update of ``values`` (m, P) in place; nothing is changed where ``enabled`` is zero."""
    members, size = values.shape
    norm = torch.linalg.vector_norm(gradient, dim=1)
    state["step"].add_(enabled)
    _update[(triton.cdiv(size, _BLOCK), members)](
        values, gradient, state["exp_avg"], state["exp_avg_sq"], norm, state["step"], rate, enabled,
        size, clip_norm, weight_decay, BETA1, BETA2, EPSILON, BLOCK=_BLOCK,
    )  # fmt: skip


@triton.jit
def _update(  # type: ignore[no-untyped-def]
    value_ptr, gradient_ptr, mean_ptr, square_ptr, norm_ptr, step_ptr, rate_ptr, enabled_ptr,
    size, clip_norm, weight_decay, beta1, beta2, epsilon, BLOCK: tl.constexpr,
):  # fmt: skip
    if tl.load(enabled_ptr) != 0:
        member = tl.program_id(1).to(tl.int64)
        place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = place < size
        at = member * size + place
        step, rate = tl.load(step_ptr), tl.load(rate_ptr)
        factor = tl.minimum(1.0, clip_norm / (tl.load(norm_ptr + member) + 1e-6))
        value = tl.load(value_ptr + at, mask=inside, other=0.0)
        slope = tl.load(gradient_ptr + at, mask=inside, other=0.0) * factor + weight_decay * value
        mean = tl.load(mean_ptr + at, mask=inside, other=0.0)
        square = tl.load(square_ptr + at, mask=inside, other=0.0)
        mean = beta1 * mean + (1 - beta1) * slope
        square = beta2 * square + (1 - beta2) * slope * slope
        correction1 = 1 - tl.exp(step * tl.log(beta1 + 0.0 * step))
        correction2 = 1 - tl.exp(step * tl.log(beta2 + 0.0 * step))
        value -= rate / correction1 * mean / (tl.sqrt(square / correction2) + epsilon)
        tl.store(value_ptr + at, value, mask=inside)
        tl.store(mean_ptr + at, mean, mask=inside)
        tl.store(square_ptr + at, square, mask=inside)
