"""A log-density of the nodes given z with terms of single nodes and of pairs, through its slopes.

``log p(x | z) = sum_jm c_jm(z) h_m(x_j) + sum over pairs of theta_jkmo(z) h_m(x_j) h_o(x_k)`` with Hermite
polynomials h; the coefficients are a network of z. Training is score matching (Hyvarinen 2005) with weights
g(x_j) that fall off in the tails, where polynomials are wild (Yu, Drton and Shojaie 2019): the slopes
s_j = d log p / dx_j minimise ``g (s_j^2 / 2 + ds_j / dx_j) + g' s_j``, which needs no integral over x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from graphfield.nn.fields import Field, FieldConfig, Samples
from graphfield.nn.layers import Dense

# Orders of the terms of a single node: a quartic can bound what pairs add.
OWN_ORDERS = 4
# Rows count in the loss of a node by exp(-x^2 / 2 reach^2), x in standard units.
_REACH = 1.5


@dataclass(frozen=True)
class PairTerms:
    """Products h_m(x_j) h_o(x_k) up to a degree m + o; each pair of orders is there in both ways."""

    degree: int

    @cached_property
    def orders(self) -> list[tuple[int, int]]:
        """(m, o) of each kind of product."""
        all_orders = range(1, self.degree)
        return [(m, o) for m in all_orders for o in all_orders if m + o <= self.degree]

    @property
    def turned(self) -> list[int]:
        """The kind of product that each is from the other node's side."""
        return [self.orders.index((o, m)) for m, o in self.orders]

    @property
    def size(self) -> int:
        return len(self.orders)

    @property
    def highest(self) -> int:
        return max(self.degree - 1, OWN_ORDERS)

    def weights(self, device: torch.device) -> Tensor:
        """What squares of a coefficient add to the squared slopes of its two nodes, on average over these."""
        return torch.tensor([(m + o) / 2 for m, o in self.orders], device=device)


def hermite_functions(x: Tensor, order: int) -> tuple[Tensor, Tensor, Tensor]:
    """h_1 to h_order of each value, their first and their second derivatives, each (..., order).

    ``h_m' = sqrt(m) h_(m-1)``, so that moments of derivatives follow from those of the functions.
    """
    values = [torch.ones_like(x), x]
    for m in range(1, order):
        values.append((x * values[m] - math.sqrt(m) * values[m - 1]) / math.sqrt(m + 1))
    orders = range(1, order + 1)
    slopes = [math.sqrt(m) * values[m - 1] for m in orders]
    bends = [math.sqrt(m * (m - 1)) * values[max(m - 2, 0)] for m in orders]
    return torch.stack(values[1 : order + 1], dim=-1), torch.stack(slopes, dim=-1), torch.stack(bends, dim=-1)


def tail_weights(x: Tensor) -> tuple[Tensor, Tensor]:
    """g and g' of each value."""
    weight = torch.exp(-x.square() / (2 * _REACH**2))
    return weight, -x / _REACH**2 * weight


@dataclass(frozen=True)
class EnergyConfig(FieldConfig):
    """Which pairs (j, k), j < k, have terms, and of which degree m + o."""

    degree: int = 2
    pairs: tuple[tuple[int, int], ...] = ()

    @property
    def least_weights(self) -> int:
        outputs = len(self.pairs) * PairTerms(self.degree).size + self.n_nodes * OWN_ORDERS
        return (self.hidden_size + 1) * outputs


@dataclass(frozen=True)
class PairSlopes:
    """What each pair adds to the slopes of its two nodes, and to the derivatives of these; each (m, b, E)."""

    first: Tensor
    second: Tensor
    bend_first: Tensor
    bend_second: Tensor


class EnergyField(Field):
    """z to the coefficients of the log-density."""

    config: EnergyConfig

    def __init__(self, config: EnergyConfig, generator: torch.Generator) -> None:
        super().__init__(config, generator)
        self.terms, self.n_pairs = PairTerms(config.degree), len(config.pairs)
        self.n_outputs = self.n_pairs * self.terms.size
        self.head = Dense(1, self.backbone.width, self.n_outputs + config.n_nodes * OWN_ORDERS, generator)
        ends = torch.tensor(config.pairs, dtype=torch.int64).reshape(-1, 2).T
        self.register_buffer("ends", ends, persistent=False)
        self.register_buffer("free", torch.ones(self.head.bias.shape[-1]), persistent=False)
        # Places of h_m(x_j) and h_o(x_k) among the functions of all nodes, (2, E T).
        orders = torch.tensor(self.terms.orders).T - 1
        places = ends[:, :, None] * self.terms.highest + orders[:, None]
        self.register_buffer("places", places.flatten(1), persistent=False)

    @torch.no_grad()
    def begin_at(self, pairs: Tensor, own: Tensor) -> None:
        """The same coefficients at all z: those of pairs (E, T) and of nodes (p, O)."""
        self.head.weight.zero_()
        self.head.bias.copy_(torch.cat([pairs.flatten(), own.flatten()]).view_as(self.head.bias))

    def hold_still(self, pairs: Tensor) -> None:
        """In training, coefficients of these pairs (E,) will stay as they are."""
        free = self.get_buffer("free")
        free[: self.n_outputs] = (~pairs).to(free.dtype).repeat_interleave(self.terms.size)

    def forward(self, numeric: Tensor, codes: Tensor, keep: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Coefficients of pairs (m, b, E, T) and of nodes (m, b, p, O)."""
        still, free = self.head.bias.detach()[:, 0], self.get_buffer("free")
        out = torch.lerp(still, self.head(self.hidden(numeric, codes, keep))[:, 0], free)
        pairs, own = out[..., : self.n_outputs], out[..., self.n_outputs :]
        return pairs.unflatten(-1, (self.n_pairs, self.terms.size)), own.unflatten(-1, (-1, OWN_ORDERS))

    def row_losses(self, batch: Samples) -> Tensor:
        pairs, own = self(batch.numeric, batch.codes)
        return self.losses(pairs, own, batch.x)

    def training_loss(self, batch: Samples, keep: Tensor | None) -> Tensor:
        pairs, own = self(batch.numeric, batch.codes, keep)
        return self.losses(pairs, own, batch.x).mean(dim=1)

    def losses(self, pairs: Tensor, own: Tensor, x: Tensor) -> Tensor:
        """Of each row, averaged over nodes, (m, b)."""
        added, (weight, slope) = self.pair_slopes(pairs, x), tail_weights(x)
        along = self.slopes(own, added, x)
        bend = (own * hermite_functions(x, OWN_ORDERS)[2]).sum(dim=-1)
        bend = bend + self.to_nodes(added.bend_first, 0) + self.to_nodes(added.bend_second, 1)
        return (weight * (along.square() / 2 + bend) + slope * along).mean(dim=-1)

    def slopes(self, own: Tensor, added: PairSlopes, x: Tensor) -> Tensor:
        """d log p / dx, (m, b, p)."""
        along = (own * hermite_functions(x, OWN_ORDERS)[1]).sum(dim=-1)
        return along + self.to_nodes(added.first, 0) + self.to_nodes(added.second, 1)

    def to_nodes(self, of_pairs: Tensor, end: int) -> Tensor:
        """Sums over the pairs that have a node at this end, (..., E) to (..., p).

        A product with one-hot rows rather than sums by place: it is deterministic on CUDA.
        """
        nodes = torch.eye(self.config.n_nodes, dtype=of_pairs.dtype, device=of_pairs.device)
        return of_pairs @ nodes[self.get_buffer("ends")[end]]

    def functions(self, x: Tensor) -> list[list[Tensor]]:
        """h, h' and h'' of the terms of pairs, at the first node of each and at the second, (..., E, T)."""
        flat = [part.flatten(-2) for part in hermite_functions(x, self.terms.highest)]
        size = (self.n_pairs, self.terms.size)
        places = self.get_buffer("places")
        return [[part.index_select(-1, where).unflatten(-1, size) for part in flat] for where in places]

    def pair_slopes(self, pairs: Tensor, x: Tensor) -> PairSlopes:
        (f, df, ddf), (g, dg, ddg) = self.functions(x)
        parts = (df * g, f * dg, ddf * g, f * ddg)
        return PairSlopes(*((pairs * part).sum(dim=-1) for part in parts))

    def pair_gains(self, slopes: Tensor, added: PairSlopes, x: Tensor) -> Tensor:
        """By how much each pair lowers the loss, to first order, for each unit of what it adds: (m, b, E).

        ``-[g ((s - v) v + dv / dx) + g' v]``, summed over both nodes, with v what the pair adds to the slope
        s; without an edge its mean is zero (integration by parts).
        """
        gains = torch.zeros_like(added.first)
        bends = added.bend_first, added.bend_second
        for end, own, bend in zip(self.get_buffer("ends"), (added.first, added.second), bends, strict=True):
            weight, fall = (part[..., end] for part in tail_weights(x))
            gains -= weight * ((slopes[..., end] - own) * own + bend) + fall * own
        return gains

    def pulls(self, pairs: Tensor, own: Tensor, x: Tensor) -> Tensor:
        """Coefficients of h_1(x_j) to h_highest(x_j) in log p, given the other nodes, (m, b, p, orders)."""
        (f, *_), (g, *_) = self.functions(x)
        total = torch.nn.functional.pad(own, (0, self.terms.highest - OWN_ORDERS))
        columns = list(total.unbind(dim=-1))
        for kind, (m, o) in enumerate(self.terms.orders):
            columns[m - 1] = columns[m - 1] + self.to_nodes((pairs * g)[..., kind], 0)
            columns[o - 1] = columns[o - 1] + self.to_nodes((pairs * f)[..., kind], 1)
        return torch.stack(columns, dim=-1)

    def sizes(self, pairs: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
        """Root mean squares of the second derivatives of log p: of pairs (..., E), of nodes (..., p).

        Means are those of independent standard normal nodes, under which h_m' = sqrt(m) h_(m-1) are
        orthogonal; a Gaussian density has its precision matrix, whatever the nodes are.
        """

        def weighted(values: Tensor, weights: list[int]) -> Tensor:
            return (values.square() * torch.tensor(weights, dtype=values.dtype)).sum(dim=-1)

        orders = self.terms.orders
        nodes = weighted(own, [m * (m - 1) for m in range(1, OWN_ORDERS + 1)])
        nodes = nodes + self.to_nodes(weighted(pairs, [m * (m - 1) for m, _ in orders]), 0)
        nodes = nodes + self.to_nodes(weighted(pairs, [o * (o - 1) for _, o in orders]), 1)
        return weighted(pairs, [m * o for m, o in orders]).sqrt(), nodes.sqrt()
