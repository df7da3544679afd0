"""Kernels of torch that have no public name, and the same in public operations where they are gone.

Names that begin with an underscore may change with any version: everything else goes through here.
"""

from __future__ import annotations

import torch
from torch import Tensor


def copy_all(into: list[Tensor], values: list[Tensor]) -> None:
    """Each of the values into its place, at once."""
    kernel = getattr(torch, "_foreach_copy_", None)
    if kernel is not None:
        kernel(into, values)
        return
    for place, value in zip(into, values, strict=True):
        place.copy_(value)


def softmax_slope(shares: Tensor, slope: Tensor) -> Tensor:
    """The slope by the logits of a softmax over the last axis, given that by the shares."""
    kernel = getattr(torch.ops.aten, "_softmax_backward_data", None)
    if kernel is not None:
        return kernel(slope, shares, -1, slope.dtype)
    return softmax_slope_plain(shares, slope)


def softmax_slope_plain(shares: Tensor, slope: Tensor) -> Tensor:
    weighted = slope * shares
    return torch.addcmul(weighted, shares, weighted.sum(dim=-1, keepdim=True), value=-1)
