"""Nodes that own several columns each: what belongs to a pair of nodes comes and goes together."""

from __future__ import annotations

import torch
from torch import Tensor


class ColumnBlocks:
    """Which columns each node owns; arrays (columns, R, columns) lead from columns to columns."""

    def __init__(self, nodes: Tensor) -> None:
        self.nodes = nodes  # (d,), in order
        # Averages over the columns of each node, (p, d): a product, which has the same bits every time.
        own = torch.nn.functional.one_hot(nodes).T.to(torch.float32)
        self.average = own / own.sum(dim=1, keepdim=True)

    def sizes(self, values: Tensor) -> Tensor:
        """Root mean squares of (columns, R, columns) over blocks, (p, R, p)."""
        averages = torch.tensordot(self.average, values.square() @ self.average.T, dims=1)
        return averages.clamp_(min=0).sqrt_()

    def averages(self, values: Tensor) -> Tensor:
        """Of (columns,), (p,)."""
        return self.average @ values

    def common(self, values: Tensor) -> Tensor:
        """Of (..., columns): each of the columns of a node has their average."""
        return (values @ self.average.T)[..., self.nodes]

    def shrink(self, values: Tensor, of_entries: float | Tensor, of_edges: float | Tensor) -> Tensor:
        """Entries (blocks of columns, R, blocks of columns), then edges as a whole, drawn towards zero.

        Amounts are those for blocks of one column, of all or by pair of nodes, (p, R, p) and (p, p); for
        others they grow with the root of the size.
        """
        size = self.sizes(values)
        kept = remaining_share(size, of_entries)
        edges = (size * kept).square().sum(dim=1).sqrt_()
        kept = kept * remaining_share(edges, of_edges).unsqueeze(1)
        return values * kept[self.nodes][:, :, self.nodes]


def remaining_share(lengths: Tensor, by: float | Tensor) -> Tensor:
    """:func:`graphfield.solvers.shrinkage.remaining_share` of tensors."""
    return torch.clamp(1 - by / lengths.clamp(min=1e-30), min=0)
