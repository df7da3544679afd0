"""Layers for several networks at once.

A *group* axis in front turns one layer into many independent ones: ``g = 1`` is an ordinary
network, ``g = p`` one network per node, ``g = p (p - 1)`` one per edge. All run in the same
batched products. Randomness comes from a generator that is passed in, never from global state.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Dense(nn.Module):
    """``y_g = x_g W_g + b_g``: input (g or 1, b, d_in), output (g, b, d_out)."""

    def __init__(self, groups: int, d_in: int, d_out: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1 / math.sqrt(max(d_in, 1))  # torch's own default for linear layers
        self.weight = uniform_parameter((groups, d_in, d_out), bound, generator)
        self.bias = uniform_parameter((groups, 1, d_out), bound, generator)

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x.expand(self.weight.shape[0], -1, -1), self.weight)


class BatchNorm(nn.Module):
    """Batch normalisation per group and unit, input (g, b, h)."""

    def __init__(self, groups: int, width: int) -> None:
        super().__init__()
        units = groups * width
        self.weight = nn.Parameter(torch.ones(units))
        self.bias = nn.Parameter(torch.zeros(units))
        self.register_buffer("running_mean", torch.zeros(units))
        self.register_buffer("running_var", torch.ones(units))

    def forward(self, x: Tensor) -> Tensor:
        g, b, h = x.shape
        flat = x.transpose(0, 1).reshape(b, g * h)
        out = nn.functional.batch_norm(
            flat,
            self.get_buffer("running_mean"),
            self.get_buffer("running_var"),
            self.weight,
            self.bias,
            training=self.training,
        )
        return out.reshape(b, g, h).transpose(0, 1)


def dropout(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Inverted dropout; no generator means evaluation, where nothing is dropped."""
    if generator is None or rate == 0:
        return x
    keep = torch.empty_like(x).bernoulli_(1 - rate, generator=generator)
    return x * keep.div_(1 - rate)


def uniform_parameter(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))


def fill_off_diagonal(values: Tensor, n_nodes: int) -> Tensor:
    """Off-diagonal entries in row order (..., p (p - 1)) to matrices (..., p, p), zero diagonal.

    Between two neighbouring diagonal entries of a p x p matrix lie p others, so the entries are
    (p - 1) rows of p, each followed by one diagonal zero, after a first zero.
    """
    lead = values.shape[:-1]
    rows = values.reshape(*lead, n_nodes - 1, n_nodes)
    padded = nn.functional.pad(rows, (0, 1)).reshape(*lead, n_nodes**2 - 1)
    return nn.functional.pad(padded, (1, 0)).reshape(*lead, n_nodes, n_nodes)
