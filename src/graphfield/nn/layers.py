"""Layers for several networks at once.

Two axes stand in front. A *member* is a fit of its own: several trained together share the products
and nothing else. A *group* is one of the networks of a member: one for all edges, one per node (p)
or one per edge, p (p - 1). Every parameter is therefore (members, groups, ...). Randomness is passed
in, never taken from global state.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Dense(nn.Module):
    """``y = x W + b`` per member and group: (m, g or 1, b, d_in) to (m, g, b, d_out)."""

    def __init__(self, groups: int, d_in: int, d_out: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1 / math.sqrt(max(d_in, 1))  # torch's own default for linear layers
        self.weight = uniform_parameter((1, groups, d_in, d_out), bound, generator)
        self.bias = uniform_parameter((1, groups, 1, d_out), bound, generator)

    def forward(self, x: Tensor, *, train_bias: bool = True) -> Tensor:
        m, g, d_in, d_out = self.weight.shape
        b = x.shape[2]
        bias = self.bias if train_bias else self.bias.detach()
        out = torch.baddbmm(
            bias.reshape(m * g, 1, d_out),
            x.expand(m, g, b, d_in).reshape(m * g, b, d_in),
            self.weight.reshape(m * g, d_in, d_out),
        )
        return out.reshape(m, g, b, d_out)


class BatchNorm(nn.Module):
    """Batch normalisation per member, group and unit, input (m, g, b, h)."""

    def __init__(self, groups: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, groups, width))
        self.bias = nn.Parameter(torch.zeros(1, groups, width))
        self.register_buffer("running_mean", torch.zeros(1, groups, width))
        self.register_buffer("running_var", torch.ones(1, groups, width))

    def forward(self, x: Tensor) -> Tensor:
        m, g, b, h = x.shape
        flat = x.permute(2, 0, 1, 3).reshape(b, m * g * h)
        out = nn.functional.batch_norm(
            flat,
            self.get_buffer("running_mean").view(-1),
            self.get_buffer("running_var").view(-1),
            self.weight.reshape(-1),
            self.bias.reshape(-1),
            training=self.training,
        )
        return out.reshape(b, m, g, h).permute(1, 2, 0, 3)


def dropout_factors(
    shape: tuple[int, ...], rate: float, generator: torch.Generator, device: torch.device
) -> Tensor:
    """What dropout multiplies by: 0 with probability ``rate``, else ``1 / (1 - rate)``.

    Four numbers of 15 bits are cut from each random integer, which on the CPU is four times faster
    than drawing one number each; the rate is thereby rounded to a multiple of 2^-15.
    """
    count = math.prod(shape)
    words = torch.empty(-(-count // 4), dtype=torch.int64, device=device).random_(generator=generator)
    bits = words.view(torch.int16)[:count].bitwise_and_(0x7FFF)
    factors = torch.empty(count, dtype=torch.float32, device=device)
    # Compared straight into them: several times faster than truth values that are converted afterwards.
    return torch.ge(bits, round(rate * 2**15), out=factors).mul_(1 / (1 - rate)).reshape(shape)


def uniform_parameter(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))


def gradient_of(parameter: nn.Parameter) -> Tensor:
    """Where the gradient of a parameter is kept; see :class:`graphfield.nn.pack.Pack`."""
    if parameter.grad is None:
        raise RuntimeError("A field that trains must be in a Pack, which gives its parameters gradients.")
    return parameter.grad


def turned(weight: Tensor) -> Tensor:
    """``weight`` (..., d_in, d_out) transposed for a product from the right.

    Without MKL, a product with a small transposed matrix takes four times as long as with its copy.
    """
    view = weight.mT
    return view if weight.is_cuda or torch.backends.mkl.is_available() else view.contiguous()


def fill_off_diagonal(values: Tensor, n_nodes: int) -> Tensor:
    """Off-diagonal entries in row order (..., p (p - 1)) to matrices (..., p, p), zero diagonal.

    Between two neighbouring diagonal entries of a p x p matrix lie p others, so the entries are
    (p - 1) rows of p, each followed by one diagonal zero, after a first zero.
    """
    lead = values.shape[:-1]
    rows = values.reshape(*lead, n_nodes - 1, n_nodes)
    padded = nn.functional.pad(rows, (0, 1)).reshape(*lead, n_nodes**2 - 1)
    return nn.functional.pad(padded, (1, 0)).reshape(*lead, n_nodes, n_nodes)


def take_off_diagonal(matrices: Tensor) -> Tensor:
    """Inverse of :func:`fill_off_diagonal`: (..., p, p) to (..., p (p - 1))."""
    p = matrices.shape[-1]
    lead = matrices.shape[:-2]
    rows = matrices.reshape(*lead, p * p)[..., 1:].reshape(*lead, p - 1, p + 1)
    return rows[..., :p].reshape(*lead, p * (p - 1))
