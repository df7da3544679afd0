"""The residual backbone of a step and dense layers, forward and backward, written out.

For a small batch most of a step's time is the overhead of small operations. Written out, the backbone
takes half as many as through autograd, which serves the tests as the check. A field with one member, the
usual case on a CPU, goes without the member axis: what is (m, b, h) below is (b, h) then, and views of
the weights are made once, for on a CPU a view costs half as much as a small operation.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from graphfield.nn.backbone import ResidualBackbone, own_rows
from graphfield.nn.branch import aside
from graphfield.nn.layers import BatchNorm, Dense, gradient_of, turned
from graphfield.nn.private_kernels import copy_all


class ResidualStep:
    """``u(z)`` of a residual backbone with one group, and the gradients of its parameters.

    :meth:`forward` keeps what :meth:`backward` needs; call them in turn. It holds on to the weights and
    gradients it was made with, so it must be made anew when these move.
    """

    def __init__(self, backbone: ResidualBackbone) -> None:
        self.first, self.narrow, self.second = (
            DenseStep(dense) for dense in (backbone.first.dense, backbone.narrow, backbone.second)
        )
        self.members = len(backbone.first.dense.weight)
        norm = backbone.first.norm
        self.norm = _Norm(norm, self.members) if isinstance(norm, BatchNorm) else None
        q = self.first.weight.shape[-2]
        self.by_z, self.by_narrow = self.second.weight[..., :q, :], self.second.weight[..., q:, :]
        self.joined = self.first.weight.new_empty(0, 0)

    @torch.no_grad()
    def forward(self, z: Tensor, keep: Tensor | None, own: slice | None = None) -> Tensor:
        """(m or 1, b, q) and (2, m, 1, b, h) to (m, b, h); as in :class:`FirstBlock`, of the own rows."""
        # Detached: what is kept from step to step must not keep the graph of the embedding alive.
        self.wants_z = z.requires_grad
        self.z = self._own(z.detach() if self.wants_z else z)
        self.keep = None if keep is None else self._factors(keep)
        self.own = own
        before = self.first.forward(self.z)
        normed = before if self.norm is None else self.norm.forward(before)
        self.hidden = own_rows(normed, own).relu_()
        if self.keep is not None:
            self.hidden.mul_(self.keep[0])
        self._make_room()
        self.parts[0].copy_(own_rows(self.z, own))
        self.narrow.forward(self.hidden, out=self.parts[1])
        self.out = self.second.forward(self.joined).relu_()
        return self.out if self.keep is None else self.out.mul_(self.keep[1])

    @torch.no_grad()
    def backward(self, slope: Tensor) -> Tensor | None:
        """Write the gradients for the slope of the loss by u; that by z where z asks for it."""
        slope = self._through_relu(slope, self.out, 1)
        self.second.write(self.joined, slope)
        narrow = torch.matmul(slope, turned(self.by_narrow))
        self.narrow.write(self.hidden, narrow)
        inner = self._among_all(self._through_relu(self.narrow.back(narrow), self.hidden, 0))
        if self.norm is not None:
            inner = self.norm.backward(inner)
        # A batch norm takes every constant out, see FirstBlock.
        self.first.write(self.z, inner, train_bias=self.norm is None)
        if not self.wants_z:
            return None
        by_z = self._among_all(torch.matmul(slope, turned(self.by_z))) + self.first.back(inner)
        return by_z[None] if self.members == 1 else by_z

    def _among_all(self, slope: Tensor) -> Tensor:
        """The slope by all rows of the batch: this process says nothing of rows that others have."""
        if self.own is None:
            return slope
        whole = slope.new_zeros(*self.z.shape[:-1], slope.shape[-1])
        whole[..., self.own, :] = slope
        return whole

    def _own(self, z: Tensor) -> Tensor:
        return z[0] if self.members == 1 else z.expand(self.members, -1, -1)

    def _factors(self, keep: Tensor) -> tuple[Tensor, ...]:
        return (keep[:, 0, 0] if self.members == 1 else keep[:, :, 0]).unbind()

    def _make_room(self) -> None:
        """For z and what follows it, side by side."""
        lead, widths = self.hidden.shape[:-1], (self.z.shape[-1], self.narrow.weight.shape[-1])
        if self.joined.shape[:-1] != lead:
            self.joined = self.z.new_empty(*lead, sum(widths))
            self.parts = self.joined.split(widths, dim=-1)

    def _through_relu(self, slope: Tensor, out: Tensor, place: int) -> Tensor:
        """Zero where the unit or dropout gave zero; dropout's factor elsewhere."""
        passed = torch.ops.aten.threshold_backward(slope, out, 0.0)
        return passed if self.keep is None else passed.mul_(self.keep[place])


class DenseStep:
    """A dense layer with one group: weight (m, d_in, d_out), bias (m, 1, d_out), their gradients.

    Like the backbone's step it must be made anew when these move.
    """

    def __init__(self, dense: Dense) -> None:
        single = len(dense.weight) == 1
        own = (0, 0) if single else (slice(None), 0)
        self.weight, self.bias = dense.weight.detach()[own], dense.bias.detach()[own]
        self.by_weight, self.by_bias = gradient_of(dense.weight)[own], gradient_of(dense.bias)[own]
        self.product: Callable[..., Tensor] = torch.mm if single else torch.bmm
        self.add_product: Callable[..., Tensor] = torch.addmm if single else torch.baddbmm
        self.ones = self.bias.new_empty(0)

    def forward(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        return self.add_product(self.bias, x, self.weight, out=out)

    def write(self, x: Tensor, slope: Tensor, *, train_bias: bool = True) -> None:
        """Gradients of weight and bias, that of the bias zero where it is not to be trained."""
        if self.ones.shape[-1] != x.shape[-2]:
            self.ones = x.new_ones(*x.shape[:-2], 1, x.shape[-2])
        with aside(x, slope):
            self.product(x.mT, slope, out=self.by_weight)
            if train_bias:
                self.product(self.ones, slope, out=self.by_bias)
            else:
                self.by_bias.zero_()

    def back(self, slope: Tensor) -> Tensor:
        """The slope by the inputs, given that by the outputs."""
        return self.product(slope, turned(self.weight))


class _Norm:
    """Batch normalisation of (m, b, h)."""

    def __init__(self, norm: BatchNorm, members: int) -> None:
        self.members = members
        self.affine = [one.detach().flatten() for one in (norm.weight, norm.bias)]
        self.norm = norm
        self.gradients = [gradient_of(one) for one in (norm.weight, norm.bias)]
        self.running = [norm.get_buffer(f"running_{what}").view(-1) for what in ("mean", "var")]

    def forward(self, before: Tensor) -> Tensor:
        self.before = self._side_by_side(before)
        if self.members > 1:  # their weights lie apart, so what is flat is a copy
            self.affine = [one.detach().flatten() for one in (self.norm.weight, self.norm.bias)]
        out, self.mean, self.scale = torch.ops.aten.native_batch_norm(
            self.before, *self.affine, *self.running, True, 0.1, 1e-5
        )
        return self._apart(out)

    def backward(self, slope: Tensor) -> Tensor:
        back, *found = torch.ops.aten.native_batch_norm_backward(
            self._side_by_side(slope),
            self.before,
            self.affine[0],
            None,
            None,
            self.mean,
            self.scale,
            True,
            1e-5,
            [True, True, True],
        )
        shaped = [one.view_as(into) for one, into in zip(found, self.gradients, strict=True)]
        with aside(*found):
            copy_all(self.gradients, shaped)
        return self._apart(back)

    def _side_by_side(self, values: Tensor) -> Tensor:
        """(m, b, h) to (b, m h); nothing to do for one member."""
        return values if self.members == 1 else values.transpose(0, 1).flatten(1)

    def _apart(self, values: Tensor) -> Tensor:
        """Inverse of :meth:`_side_by_side`."""
        if self.members == 1:
            return values
        return values.view(len(values), self.members, -1).transpose(0, 1).contiguous()
