"""Gates: shares a(z) on the simplex, in which a field mixes a few patterns of coefficients.

A gate is trained while the patterns are held fixed. How well a row likes each mixture is then a small
table (one line per row), and training touches nothing of the size of a graph.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from graphfield.nn.backbone import ResidualBackbone
from graphfield.nn.fields import CoefField, Field, FieldConfig, Samples
from graphfield.nn.layers import Dense, gradient_of, turned

# Logits of a gate that has not been trained are spread by this factor: its shares must differ between
# rows for the patterns to become different.
_SPREAD = 4.0
# How far apart the halves of a divided share begin.
_APART = 4.0
# Passes that bring the running statistics of an untrained network close to those of the data.
_WARM_PASSES = 50
_WARM_ROWS = 2_048
# Rows whose determinants are computed at a time.
_LIKELIHOOD_ROWS = 512
# Patterns from which mixtures of a row are multiplied out (measured: 16 as fast, 32 up to four times faster).
_MULTIPLY_OUT = 16
# Rows of a table that are computed at a time, to stay in a cache.
_TABLE_ROWS = 256


class GateField(Field):
    """a(z) = softmax(network(z)), trained on squared errors of mixed predictions.

    A line of the table holds, for one row, the products ``<f_r, f_s> / p`` of the patterns'
    predictions, ``<f_r, x> / p`` and ``<x, x> / p``: the error of the mixture is then a quadratic
    function of its shares.
    """

    def __init__(self, config: FieldConfig, generator: torch.Generator) -> None:
        super().__init__(config, generator)
        assert config.rank is not None
        self.rank = config.rank
        self.bottleneck = Dense(1, self.backbone.width, self.rank, generator)

    def forward(self, numeric: Tensor, codes: Tensor, keep: Tensor | None = None) -> Tensor:
        return torch.softmax(self.bottleneck(self.hidden(numeric, codes, keep))[:, 0], dim=-1)  # (m, b, R)

    def row_losses(self, batch: Samples) -> Tensor:
        return self._errors(self(batch.numeric, batch.codes), batch.x)

    def training_loss(self, batch: Samples, keep: Tensor | None) -> Tensor:
        return self._errors(self(batch.numeric, batch.codes, keep), batch.x).mean(dim=1)

    def backward(self, batch: Samples, keep: Tensor | None) -> Tensor:
        if not isinstance(self.backbone, ResidualBackbone):
            return super().backward(batch, keep)
        return self._written_out(self.backbone, batch, keep, partial(self._head, table=batch.x))

    @torch.no_grad()
    def _head(self, u: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        weight, bias = self.bottleneck.weight, self.bottleneck.bias
        shares = torch.softmax(torch.baddbmm(bias[:, 0], u, weight[:, 0]), dim=-1)
        among, with_x, power = self._parts(table, len(shares))
        mixed = _mixed(among, shares)
        losses = (power + (shares * (mixed - 2 * with_x)).sum(dim=-1)).mean(dim=1)
        slope = (mixed - with_x).mul_(2 / u.shape[1])
        slope = torch.ops.aten._softmax_backward_data(slope, shares, -1, slope.dtype)
        torch.bmm(u.transpose(1, 2), slope, out=gradient_of(weight)[:, 0])
        torch.sum(slope, dim=1, keepdim=True, out=gradient_of(bias)[:, 0])
        return losses, torch.bmm(slope, turned(weight[:, 0]))

    def _errors(self, shares: Tensor, table: Tensor) -> Tensor:
        among, with_x, power = self._parts(table, len(shares))
        mixed = _mixed(among, shares)
        return power + (shares * (mixed - 2 * with_x)).sum(dim=-1)

    def _parts(self, table: Tensor, members: int) -> tuple[Tensor, Tensor, Tensor]:
        """Products among the patterns (m, b, R, R), with x (m, b, R), and of x with itself (m, b)."""
        rank, table = self.rank, table.expand(members, -1, -1)
        among = table[..., : rank * rank].unflatten(-1, (rank, rank))
        return among, table[..., rank * rank : -1], table[..., -1]

    @torch.no_grad()
    def spread(self, data: Samples) -> None:
        """Make the shares of an untrained gate differ between the rows of ``data``."""
        self.bottleneck.weight.mul_(_SPREAD)
        some = data.take(slice(None, None, -(-len(data) // _WARM_ROWS)))
        self.train()
        for _ in range(_WARM_PASSES):
            self.hidden(some.numeric[None], some.codes[None])
        self.eval()


class LikelihoodGate(GateField):
    """The same shares, trained on the Gaussian likelihood of mixed precision matrices, (R, p, p).

    A line of the table holds ``x' Theta_r x`` of one row.
    """

    def __init__(self, config: FieldConfig, matrices: Tensor) -> None:
        super().__init__(config, torch.Generator())
        self.matrices = matrices

    def backward(self, batch: Samples, keep: Tensor | None) -> Tensor:
        return Field.backward(self, batch, keep)

    def _errors(self, shares: Tensor, table: Tensor) -> Tensor:
        p = self.matrices.shape[1]
        parts = []
        for own in shares[0].split(_LIKELIHOOD_ROWS):
            # Twice as exact as the rest: determinants of nearly singular matrices are sensitive.
            mixed = (own.double() @ self.matrices.flatten(1)).view(-1, p, p)
            root = torch.linalg.cholesky(mixed)
            parts.append(2 * root.diagonal(dim1=1, dim2=2).log().sum(dim=1).to(own.dtype))
        return ((shares * table).sum(dim=-1) - torch.cat(parts)) / p


def _mixed(among: Tensor, shares: Tensor) -> Tensor:
    """``sum_s among_rs shares_s`` of every row, (m, b, R); ``among`` is symmetric.

    On the CPU many small products cost more than multiplying out, from some size on.
    """
    if among.is_cuda or shares.shape[-1] < _MULTIPLY_OUT:
        return torch.matmul(among, shares[..., None])[..., 0]
    return (among * shares[..., None]).sum(dim=-2)


def split_gate(gate: GateField, generator: torch.Generator) -> GateField:
    """A gate for twice as many patterns: each share is divided in two by a random function of z."""
    config = replace(gate.config, rank=2 * gate.rank)
    twice = GateField(config, torch.Generator())
    state = {name: value.detach().clone() for name, value in gate.state_dict().items()}
    weight, bias = state["bottleneck.weight"], state["bottleneck.bias"]
    apart = torch.empty(weight.shape).uniform_(-1, 1, generator=generator).to(weight.device)
    apart = apart * _APART / weight.shape[2] ** 0.5
    state["bottleneck.weight"] = torch.cat([weight + apart, weight - apart], dim=3)
    state["bottleneck.bias"] = torch.cat([bias, bias], dim=3)
    twice.load_state_dict(state)
    return twice.to(weight.device).eval()


def mixture_table(patterns: Tensor, x: Tensor) -> Tensor:
    """What :class:`GateField` is trained on: patterns (R, p, p) and x (n, p) to (n, R R + R + 1)."""
    rank, p = patterns.shape[:2]
    table = x.new_empty(len(x), rank * (rank + 1) + 1)
    for start in range(0, len(x), _TABLE_ROWS):
        rows = x[start : start + _TABLE_ROWS]
        out = table[start : start + _TABLE_ROWS]
        fits = (rows @ patterns.reshape(rank * p, p).T).view(-1, rank, p)
        for r in range(rank):
            torch.sum(fits * fits[:, r : r + 1], dim=2, out=out[:, r * rank : (r + 1) * rank])
        torch.sum(fits * rows[:, None], dim=2, out=out[:, rank * rank : -1])
        torch.sum(rows.square(), dim=1, out=out[:, -1])
    return table.div_(p)


def mixed_field(gate: GateField, patterns: Tensor) -> CoefField:
    """The coefficients ``beta(z) = sum_r a_r(z) patterns_r`` as a field."""
    field = CoefField(gate.config, torch.Generator()).to(patterns.device)
    weights = {f"{name}": value for name, value in gate.state_dict().items()}
    weights["head.weight"] = torch.cat([patterns, torch.zeros_like(patterns[:1])])[None]
    field.load_state_dict(weights)
    return field.eval()
