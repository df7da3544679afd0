"""Hidden features u(z) to coefficients."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphfield.nn.head_forms import coefficients
from graphfield.nn.layers import Dense, fill_off_diagonal, take_off_diagonal, uniform_parameter


class SharedHead(nn.Module):
    """One backbone for all edges: v_jk(u) = <w_jk, u> + c_jk.

    The weight is (members, h + 1, p, p): the last row is c. Its diagonal is zero and gets no gradient;
    files hold the p (p - 1) entries beside it.
    """

    def __init__(self, width: int, n_nodes: int, generator: torch.Generator) -> None:
        super().__init__()
        n_edges = n_nodes * (n_nodes - 1)
        bound = 1 / max(width, 1) ** 0.5
        slopes = uniform_parameter((width, n_edges), bound, generator)
        constant = uniform_parameter((1, n_edges), bound, generator)
        filled = fill_off_diagonal(torch.cat([slopes, constant]).detach(), n_nodes)
        self.weight = nn.Parameter(filled[None])

    def forward(self, u: Tensor) -> Tensor:  # (m or 1, 1, b, h)
        return coefficients(u[:, 0], self.weight)  # (m, b, p, p)

    @staticmethod
    def to_file(weight: Tensor) -> dict[str, Tensor]:
        """One member's weight (h + 1, p, p) as a file holds it: (h, p (p - 1)) and (p (p - 1),)."""
        edges = take_off_diagonal(weight)
        return {"weight": edges[:-1], "bias": edges[-1]}

    @staticmethod
    def from_file(weight: Tensor, bias: Tensor) -> Tensor:
        n_nodes = int(0.5 + (bias.numel() + 0.25) ** 0.5)
        return fill_off_diagonal(torch.cat([weight, bias[None]]), n_nodes)


class GroupedHead(nn.Module):
    """One backbone per node (p - 1 outputs each) or per edge (one output each)."""

    def __init__(self, groups: int, width: int, n_nodes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.n_nodes = n_nodes
        self.dense = Dense(groups, width, n_nodes * (n_nodes - 1) // groups, generator)

    def forward(self, u: Tensor) -> Tensor:  # (m, g, b, h)
        out = self.dense(u)  # (m, g, b, outputs of one group)
        flat = out.transpose(1, 2).reshape(out.shape[0], out.shape[2], -1)
        return fill_off_diagonal(flat, self.n_nodes)
