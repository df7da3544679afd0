"""Covariates z to hidden features u(z): the shared part of every coefficient function.

Shapes are (members, groups, rows, units), see :mod:`graphfield.nn.layers`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphfield.nn.layers import BatchNorm, Dense

NETWORKS = ("residual", "mlp", "linear")


@dataclass(frozen=True)
class CovariateShape:
    """How many numeric covariates there are, and the level frequencies of each categorical one."""

    n_numeric: int
    level_shares: tuple[tuple[float, ...], ...]


class CovariateEmbedding(nn.Module):
    """Categories through an embedding, concatenated with the numeric covariates (the remark).

    Level ``l`` of a column with L levels gets row ``l`` of a table with ``ceil(L / 2)`` columns (at
    most 16). A level unseen in training has code L and gets the average row by frequency.
    """

    def __init__(self, shape: CovariateShape, generator: torch.Generator) -> None:
        super().__init__()
        self.tables = nn.ParameterList()
        for i, shares in enumerate(shape.level_shares):
            width = min(16, -(-len(shares) // 2))
            table = torch.empty(1, len(shares), width).normal_(generator=generator)
            self.tables.append(nn.Parameter(table))
            self.register_buffer(f"shares_{i}", torch.tensor(shares, dtype=torch.float32))
        self.width = shape.n_numeric + sum(table.shape[2] for table in self.tables)

    def forward(self, numeric: Tensor, codes: Tensor) -> Tensor:  # (m or 1, b, q_num), (m or 1, b, q_cat)
        parts = [numeric]
        for i, table in enumerate(self.tables):
            average = self.get_buffer(f"shares_{i}")[None] @ table
            rows = torch.cat([table, average], dim=1)  # (m, levels + 1, width)
            # A product with one-hot rows rather than a gather: its gradient is deterministic on CUDA.
            one_hot = nn.functional.one_hot(codes[..., i], rows.shape[1]).to(rows.dtype)
            parts.append(one_hot @ rows)
        if len(parts) == 1:
            return numeric
        parts[0] = numeric.expand(parts[1].shape[0], -1, -1)
        return torch.cat(parts, dim=2)  # (m, b, q)

    @torch.no_grad()
    def settle_untrained(self, codes: Tensor) -> None:
        """Give levels that are not among the ``codes`` (b, q_cat) of training the most frequent one's row.

        They are where they began, which is anywhere: all rows of a rare level may have been held out, or not
        drawn into a resample. (Between levels, where an average would be, a network has learned nothing.)
        """
        for i, table in enumerate(self.tables):
            counts = codes[:, i].bincount(minlength=table.shape[1])
            table[:, counts == 0] = table[:, [int(counts.argmax())]]


def own_rows(values: Tensor, own: slice | None) -> Tensor:
    """Of (..., b, h); all where no other process has any."""
    return values if own is None else values[..., own, :]


def dropped(hidden: Tensor, keep: Tensor | None, place: int) -> Tensor:
    """Dropout with factors drawn beforehand, (2, m, g, b, h); None means evaluation."""
    return hidden if keep is None else hidden * keep[place]


class FirstBlock(nn.Module):
    """``Dropout(ReLU(BatchNorm(Linear(q, h)(z))))``: (m or 1, b, q) to (m, g, b, h).

    A batch norm takes the bias of the layer before it out again, so the gradient of that bias is zero.
    Computed, it is nothing but rounding, which Adam would blow up to steps of full size: results then
    differ between machines, and between the places of a pack, a thousand times more than rounding does.

    Where processes share a batch, each normalises all of its rows, which costs little and needs no word
    from the others, and goes on with its own.
    """

    def __init__(
        self, d_in: int, width: int, *, groups: int, batch_norm: bool, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.dense = Dense(groups, d_in, width, generator)
        self.norm = BatchNorm(groups, width) if batch_norm else nn.Identity()

    def forward(self, z: Tensor, keep: Tensor | None, own: slice | None) -> Tensor:
        normed = self.norm(self.dense(z[:, None], train_bias=isinstance(self.norm, nn.Identity)))
        return dropped(torch.relu(own_rows(normed, own)), keep, 0)


class ResidualBackbone(nn.Module):
    """The paper's network, with the batch norm that its published code has in the first block.

    ``u1 = Linear(h, h/2)(Dropout(ReLU(BatchNorm(Linear(q, h)(z)))))``,
    ``u = Dropout(ReLU(Linear(q + h/2, h)([z, u1])))``.
    """

    def __init__(self, first: FirstBlock, d_in: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        groups, half = first.dense.weight.shape[1], max(1, width // 2)
        self.first = first
        self.narrow = Dense(groups, width, half, generator)
        self.second = Dense(groups, d_in + half, width, generator)
        self.width = width

    def forward(self, z: Tensor, keep: Tensor | None, own: slice | None = None) -> Tensor:
        hidden = self.narrow(self.first(z, keep, own))
        copied = own_rows(z, own)[:, None].expand(*hidden.shape[:3], -1)
        hidden = torch.relu(self.second(torch.cat([copied, hidden], dim=3)))
        return dropped(hidden, keep, 1)  # (m, g, b, h)


class MLPBackbone(nn.Module):
    """Two plain hidden layers: the residual network without the copy of z in the middle."""

    def __init__(self, first: FirstBlock, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = first
        self.second = Dense(first.dense.weight.shape[1], width, width, generator)
        self.width = width

    def forward(self, z: Tensor, keep: Tensor | None, own: slice | None = None) -> Tensor:
        return dropped(torch.relu(self.second(self.first(z, keep, own))), keep, 1)


class LinearBackbone(nn.Module):
    """u(z) = z: coefficients linear in the covariates, as in RegGMM."""

    def __init__(self, d_in: int) -> None:
        super().__init__()
        self.width = d_in

    def forward(self, z: Tensor, keep: Tensor | None, own: slice | None = None) -> Tensor:  # noqa: ARG002
        return own_rows(z, own)[:, None]


def make_backbone(
    network: str, d_in: int, width: int, *, groups: int, batch_norm: bool, generator: torch.Generator
) -> ResidualBackbone | MLPBackbone | LinearBackbone:
    if network == "linear":
        return LinearBackbone(d_in)
    first = FirstBlock(d_in, width, groups=groups, batch_norm=batch_norm, generator=generator)
    if network == "mlp":
        return MLPBackbone(first, width, generator)
    return ResidualBackbone(first, d_in, width, generator)
