"""The residual backbone of a step, forward and backward, written out.

For a small batch most of a step's time is the overhead of small operations. Written out, the backbone
takes half as many as through autograd, which serves the tests as the check.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphfield.nn.backbone import ResidualBackbone
from graphfield.nn.branch import aside
from graphfield.nn.layers import BatchNorm, Dense, gradient_of, turned


class ResidualStep:
    """``u(z)`` of a residual backbone with one group, and the gradients of its parameters.

    :meth:`forward` keeps what :meth:`backward` needs; call them in turn. It holds on to the weights and
    gradients it was made with, so it must be made anew when these move.
    """

    def __init__(self, backbone: ResidualBackbone) -> None:
        self.first, self.narrow, self.second = (
            _Layer(dense) for dense in (backbone.first.dense, backbone.narrow, backbone.second)
        )
        self.norm = _Norm(backbone.first.norm) if isinstance(backbone.first.norm, BatchNorm) else None

    @torch.no_grad()
    def forward(self, z: Tensor, keep: Tensor | None) -> Tensor:  # (m or 1, b, q), (2, m, 1, b, h)
        m, q = self.first.weight.shape[:2]
        b = z.shape[1]
        self.keep = None if keep is None else keep.flatten(1, 2).unbind()
        # Detached: what is kept from step to step must not keep the graph of the embedding alive.
        self.z, self.wants_z = z.detach().expand(m, b, q), z.requires_grad
        before = self.first.forward(self.z)
        self.hidden = (before if self.norm is None else self.norm.forward(before)).relu_()
        self.joined = z.new_empty(m, b, q + self.narrow.weight.shape[2])
        self.joined[:, :, :q] = self.z
        if self.keep is not None:
            self.hidden.mul_(self.keep[0])
        self.narrow.forward(self.hidden, out=self.joined[:, :, q:])
        self.out = self.second.forward(self.joined).relu_()
        return self.out if self.keep is None else self.out.mul_(self.keep[1])  # (m, b, h)

    @torch.no_grad()
    def backward(self, slope: Tensor) -> Tensor | None:
        """Write the gradients for the slope of the loss by u; that by z where z asks for it."""
        m, b, q = self.z.shape
        ones = self.z.new_ones(1, 1, b).expand(m, 1, b)
        slope = self._through_relu(slope, self.out, 1)
        self.second.write(self.joined, slope, ones)
        narrow = torch.bmm(slope, turned(self.second.weight[:, q:]))
        self.narrow.write(self.hidden, narrow, ones)
        inner = self._through_relu(torch.bmm(narrow, turned(self.narrow.weight)), self.hidden, 0)
        if self.norm is not None:
            inner = self.norm.backward(inner)
        # A batch norm takes every constant out, see FirstBlock.
        self.first.write(self.z, inner, None if self.norm is not None else ones)
        if not self.wants_z:
            return None
        by_z = torch.bmm(slope, turned(self.second.weight[:, :q]))
        return by_z.baddbmm_(inner, turned(self.first.weight))

    def _through_relu(self, slope: Tensor, out: Tensor, place: int) -> Tensor:
        """Zero where the unit or dropout gave zero; dropout's factor elsewhere."""
        passed = torch.ops.aten.threshold_backward(slope, out, 0.0)
        return passed if self.keep is None else passed.mul_(self.keep[place])


class _Layer:
    """A dense layer with one group: weight (m, d_in, d_out), bias (m, 1, d_out), their gradients."""

    def __init__(self, dense: Dense) -> None:
        self.weight, self.bias = dense.weight.detach()[:, 0], dense.bias.detach()[:, 0]
        self.by_weight, self.by_bias = gradient_of(dense.weight)[:, 0], gradient_of(dense.bias)[:, 0]
        # One member: the plain product adds its bias on the way.
        self.single = (self.weight[0], self.bias[0, 0]) if len(self.weight) == 1 else None

    def forward(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        if self.single is None:
            return torch.baddbmm(self.bias, x, self.weight, out=out)
        weight, bias = self.single
        return torch.addmm(bias, x[0], weight, out=None if out is None else out[0])[None]

    def write(self, x: Tensor, slope: Tensor, ones: Tensor | None) -> None:
        """Gradients of weight and bias; without ``ones`` that of the bias is known to be zero."""
        with aside(x, slope):
            torch.bmm(x.transpose(1, 2), slope, out=self.by_weight)
            if ones is None:
                self.by_bias.zero_()
            else:
                torch.bmm(ones, slope, out=self.by_bias)


class _Norm:
    """Batch normalisation of (m, b, h)."""

    def __init__(self, norm: BatchNorm) -> None:
        self.norm = norm
        self.gradients = [gradient_of(norm.weight), gradient_of(norm.bias)]
        self.running = [norm.get_buffer(f"running_{what}").view(-1) for what in ("mean", "var")]

    def forward(self, before: Tensor) -> Tensor:
        self.weight = self.norm.weight.detach().reshape(-1)
        self.before = _side_by_side(before)
        bias = self.norm.bias.detach().reshape(-1)
        out, self.mean, self.scale = torch.ops.aten.native_batch_norm(
            self.before, self.weight, bias, *self.running, True, 0.1, 1e-5
        )
        return _apart(out, len(before))

    def backward(self, slope: Tensor) -> Tensor:
        back, *found = torch.ops.aten.native_batch_norm_backward(
            _side_by_side(slope),
            self.before,
            self.weight,
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
            torch._foreach_copy_(self.gradients, shaped)
        return _apart(back, len(slope))


def _side_by_side(values: Tensor) -> Tensor:
    """(m, b, h) to (b, m h); no copy for one member."""
    return values[0] if len(values) == 1 else values.transpose(0, 1).reshape(values.shape[1], -1)


def _apart(values: Tensor, members: int) -> Tensor:
    """Inverse of :func:`_side_by_side`."""
    if members == 1:
        return values[None]
    return values.view(len(values), members, -1).transpose(0, 1).contiguous()
