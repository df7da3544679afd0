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
from graphfield.nn.layers import Dense
from graphfield.nn.private_kernels import softmax_slope, softmax_slope_plain

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
# Entries of a vector of a processor, at the most.
_VECTOR = 16
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

    def forward(
        self, numeric: Tensor, codes: Tensor, keep: Tensor | None = None, own: slice | None = None
    ) -> Tensor:
        hidden = self.hidden(numeric, codes, keep, own)
        return torch.softmax(self.bottleneck(hidden)[:, 0], dim=-1)  # (m, b, R)

    def row_losses(self, batch: Samples) -> Tensor:
        return self._errors(self(batch.numeric, batch.codes), batch.x)

    def training_loss(self, batch: Samples, keep: Tensor | None) -> Tensor:
        shares = self(batch.numeric, batch.codes, keep, batch.own)
        return self._errors(shares, batch.x).mean(dim=1)

    def backward(self, batch: Samples, keep: Tensor | None) -> Tensor:
        if not isinstance(self.backbone, ResidualBackbone):
            return super().backward(batch, keep)
        return self._written_out(self.backbone, batch, keep, partial(self._through_head, table=batch.x))

    @torch.no_grad()
    def _through_head(self, u: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        layer = self._dense_head(self.bottleneck)
        shares = _softmax(layer.forward(u))
        among, with_x, power = self._parts(table if u.ndim == 3 else table[0])
        error = _mixed(among, shares) - with_x
        losses = (power + (shares * (error - with_x)).sum(dim=-1)).mean(dim=-1)
        slope = _softmax_slope(shares, error.mul_(2 / u.shape[-2]))
        layer.write(u, slope)
        return losses, layer.back(slope)

    def _errors(self, shares: Tensor, table: Tensor) -> Tensor:
        among, with_x, power = self._parts(table)
        mixed = _mixed(among, shares)
        return power + (shares * (mixed - 2 * with_x)).sum(dim=-1)

    def _parts(self, table: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Products among the patterns (..., b, R, R), with x (..., b, R), and of x with itself (..., b)."""
        among, with_x, power = table.split([self.rank**2, self.rank, 1], dim=-1)
        return among.unflatten(-1, (self.rank, self.rank)), with_x, power[..., 0]

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
    """``sum_s among_rs shares_s`` of every row, (..., b, R); ``among`` is symmetric.

    MKL is faster with many small products if they come from the left, from some size on; without it, on a
    CPU, they cost more than multiplying out.
    """
    if among.is_cuda or shares.shape[-1] < _MULTIPLY_OUT:
        return torch.matmul(among, shares[..., None])[..., 0]
    if torch.backends.mkl.is_available():
        return torch.matmul(shares[..., None, :], among)[..., 0, :]
    return (among * shares[..., None]).sum(dim=-2)


def _softmax(logits: Tensor) -> Tensor:
    """Over the last axis, (..., b, R).

    Along an axis shorter than its vectors (16 numbers), an x86 processor would go number by number, ten times
    slower than along the one beside it.
    """
    if logits.is_cuda or logits.shape[-1] >= _VECTOR or not torch.backends.mkl.is_available():
        return torch.softmax(logits, dim=-1)
    return torch.softmax(logits.mT.contiguous(), dim=-2).mT.contiguous()


def _softmax_slope(shares: Tensor, slope: Tensor) -> Tensor:
    """The slope by the logits, given that by the shares; see :func:`_softmax`."""
    if shares.is_cuda or shares.shape[-1] >= _VECTOR or not torch.backends.mkl.is_available():
        return softmax_slope(shares, slope)
    return softmax_slope_plain(shares, slope)


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
        among = out[:, : rank * rank].unflatten(1, (rank, rank))
        for r in range(rank):
            torch.sum(fits[:, r:] * fits[:, r : r + 1], dim=2, out=among[:, r, r:])
            among[:, r + 1 :, r] = among[:, r, r + 1 :]
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
