"""The shared head as fused kernels for CUDA, which store no coefficient at all.

Same task as :mod:`graphfield.nn.head_forms`, in its order "nodes": for one response node j at a time
``M_h = sum_k W_hjk x_k`` is summed up in registers and used for the fitted value and for the gradient
of u; a second kernel forms the gradient of W from ``u_h g_j`` and ``x_k``. Where edges are penalised,
both also form the tile of beta at hand to get its sign. Sums run in a fixed order: same input, same bits.

Factors are copied once per step to rows of a length divisible by 16, which lets the kernels load 16 bytes
at a time; arrays by response node are (p, b), so that a column of nodes is contiguous.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphfield.nn.branch import aside
from graphfield.nn.losses import HUBER_DELTA, HeadTask

# Programs that keep a large GPU busy; splitting further only adds partial sums.
_PROGRAMS = 264
_ALIGNED = 16


def fused(
    u: Tensor, weight: Tensor, grad: Tensor, x: Tensor, task: HeadTask, precision: str = "bf16"
) -> tuple[Tensor, Tensor]:
    """Like :func:`graphfield.nn.head_forms.reference`.

    ``precision`` of the factors in the products: "bf16", "tf32" or "ieee" (float32); sums are float32.
    """
    m, units, p, _ = weight.shape
    h, b = units - 1, u.shape[1]
    width = max(16, triton.next_power_of_2(h))
    length = triton.cdiv(p, _ALIGNED) * _ALIGNED
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    x = x.expand(m, b, p)
    uf, xf = _padded(u, width, kind), _padded(x, length, kind)
    wf = _padded(weight, length, kind)
    aim = torch.baddbmm(x.transpose(1, 2), weight[:, h], x.transpose(1, 2), alpha=-1)  # (m, p, b)
    slope = torch.empty_like(aim)
    penalised = task.penalty is not None
    fit, weights = tiles(width, p, penalised)
    rows, nodes = fit["BM"], fit["NJ"]
    row_tiles = triton.cdiv(b, rows)
    splits = max(1, min(triton.cdiv(p, nodes), _PROGRAMS // (row_tiles * m)))
    slope_u = torch.empty(splits, m, b, h, device=u.device)
    values = torch.empty(m, splits, row_tiles, device=u.device)
    penalty = task.penalty if task.penalty is not None else slope
    scale = 1 / (b * p)
    common = {"H": h, "BH": width, "LENGTH": length, "PENALISED": penalised, "PRECISION": precision}
    _fit[(row_tiles, splits, m)](
        uf, xf, wf, aim, penalty, slope, slope_u, values, b, p, splits, scale,
        HUBER=task.loss == "huber", DELTA=HUBER_DELTA, **fit, **common,
    )  # fmt: skip
    with aside(uf, xf, wf, slope, x):
        _weights[(triton.cdiv(p, weights["NJ"]), triton.cdiv(p, weights["BK"]), m)](
            uf, xf, wf, slope, penalty, grad, b, p, grad.stride(0), scale, **weights, **common,
        )  # fmt: skip
        if not penalised:
            torch.bmm(slope, x, out=grad[:, h])
            torch.diagonal(grad[:, h], dim1=1, dim2=2).zero_()
    return values.sum(dim=(1, 2)), slope_u.sum(dim=0)


def tiles(width: int, p: int, penalised: bool) -> tuple[dict[str, int], dict[str, int]]:
    """Tile sizes of the two kernels, found by measuring on an H200 at p = 268 and 1,000."""
    inner = 64 if p > 32 else 32
    if penalised:
        fit = {"BM": 64, "BK": inner, "NJ": 1, "num_warps": 4, "num_stages": 3}
        return fit, {"BB": 64, "BK": 64, "NJ": 1, "num_warps": 4, "num_stages": 3}
    rows, nodes = (128, 2) if width <= 64 else (64, 1)
    columns = 64 if p <= 64 else 128 if p < 512 else 256
    fit = {"BM": rows, "BK": inner, "NJ": nodes, "num_warps": 8, "num_stages": 3}
    return fit, {"BB": 64, "BK": columns, "NJ": nodes, "num_warps": 8, "num_stages": 3}


def _padded(values: Tensor, length: int, kind: torch.dtype) -> Tensor:
    """A copy with rows of this length, zeros after the values."""
    members, (rows, width) = values.shape[0], values[0].flatten(0, -2).shape
    out = torch.empty(*values.shape[:-1], length, dtype=kind, device=values.device)
    if values.stride(-1) != 1 or not values[0].is_contiguous():
        values = values.contiguous()
    block = 1024
    _pad[(triton.cdiv(rows * length, block), members)](
        values, out, values.stride(0), rows, width, LENGTH=length, BLOCK=block
    )
    return out


@triton.jit
def _pad(in_ptr, out_ptr, in_member, rows, width, LENGTH: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    member = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row, column = at // LENGTH, at % LENGTH
    inside = row < rows
    value = tl.load(
        in_ptr + member * in_member + row * width + column, mask=inside & (column < width), other=0.0
    )
    tl.store(out_ptr + member * rows * LENGTH + at, value.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _product(a, b, PRECISION: tl.constexpr):  # type: ignore[no-untyped-def]
    if PRECISION == "bf16":
        out = tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16))
    else:
        out = tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision=PRECISION)
    return out


@triton.jit
def _sign(x):  # type: ignore[no-untyped-def]
    return tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0))


@triton.jit
def _fit(  # type: ignore[no-untyped-def]
    u_ptr, x_ptr, w_ptr, aim_ptr, penalty_ptr, slope_ptr, slope_u_ptr, value_ptr, b, p, splits, scale,
    H: tl.constexpr, BH: tl.constexpr, LENGTH: tl.constexpr, PENALISED: tl.constexpr,
    PRECISION: tl.constexpr, HUBER: tl.constexpr, DELTA: tl.constexpr,
    BM: tl.constexpr, BK: tl.constexpr, NJ: tl.constexpr,
):  # fmt: skip
    """Residual slopes, losses and the gradient of u for BM rows and every splits-th block of NJ nodes."""
    tile, split, member = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    rows = tile * BM + tl.arange(0, BM)
    inside = rows < b
    units = tl.arange(0, BH)
    stacked = tl.arange(0, NJ * BH)  # NJ nodes side by side: unit and node of each column
    unit, node = stacked % BH, stacked // BH
    uf = tl.load(u_ptr + (member * b + rows)[:, None] * BH + units[None, :], mask=inside[:, None], other=0.0)
    u = uf.to(tl.float32)
    w_ptr += member * (H + 1) * p * LENGTH
    x_ptr += member * b * LENGTH
    aim_ptr += member * p * b
    slope_ptr += member * p * b
    slope_u = tl.zeros((BM, BH), dtype=tl.float32)
    losses = tl.zeros((BM, NJ), dtype=tl.float32)
    sizes = tl.zeros((BM, BK), dtype=tl.float32)
    if PENALISED:
        share = scale * tl.load(penalty_ptr + member)
    for first in range(split * NJ, p, splits * NJ):
        sums = tl.zeros((BM, NJ * BH), dtype=tl.float32)
        w_rows = w_ptr + unit[:, None].to(tl.int64) * p * LENGTH + (first + node)[:, None] * LENGTH
        there = (unit < H)[:, None] & (first + node < p)[:, None]
        for start in range(0, LENGTH, BK):
            k = start + tl.arange(0, BK)
            x = tl.load(
                x_ptr + rows[:, None] * LENGTH + k[None, :],
                mask=inside[:, None] & (k < LENGTH)[None, :],
                other=0.0,
            )
            w = tl.load(w_rows + k[None, :], mask=there & (k < LENGTH)[None, :], other=0.0)
            sums += _product(x, tl.trans(w), PRECISION)
            if PENALISED:
                tl.static_assert(NJ == 1)
                constant = tl.load(
                    w_ptr + H * tl.cast(p, tl.int64) * LENGTH + first * LENGTH + k, mask=k < LENGTH, other=0.0
                )
                beta = _product(uf, w, PRECISION) + constant[None, :].to(tl.float32)
                beta = tl.where(inside[:, None], beta, 0.0)
                sizes += tl.abs(beta)
                slope_u += share * _product(_sign(beta), tl.trans(w), PRECISION)
        sums = tl.reshape(sums, (BM, NJ, BH))
        nodes = first + tl.arange(0, NJ)
        valid = inside[:, None] & (nodes < p)[None, :]
        at = nodes[None, :] * b + rows[:, None]
        fitted = tl.sum(sums * u[:, None, :], axis=2)
        error = tl.where(valid, tl.load(aim_ptr + at, mask=valid, other=0.0) - fitted, 0.0)
        if HUBER:
            inner = tl.minimum(tl.maximum(error, -DELTA), DELTA)
            losses += inner * (error - inner / 2)
            slope = -scale * inner
        else:
            losses += error * error
            slope = -2 * scale * error
        tl.store(slope_ptr + at, slope, mask=valid)
        slope_u += tl.sum(sums * slope[:, :, None], axis=1)
    total = scale * tl.sum(losses)
    if PENALISED:
        total += share * tl.sum(sizes)
    members = tl.num_programs(2)
    tl.store(
        slope_u_ptr + ((split * members + member) * b + rows)[:, None] * H + units[None, :],
        slope_u,
        mask=inside[:, None] & (units < H)[None, :],
    )
    tl.store(value_ptr + (member * splits + split) * tl.num_programs(0) + tile, total)


@triton.jit
def _weights(  # type: ignore[no-untyped-def]
    u_ptr, x_ptr, w_ptr, slope_ptr, penalty_ptr, grad_ptr, b, p, grad_member, scale,
    H: tl.constexpr, BH: tl.constexpr, LENGTH: tl.constexpr, PENALISED: tl.constexpr,
    PRECISION: tl.constexpr, BB: tl.constexpr, BK: tl.constexpr, NJ: tl.constexpr,
):  # fmt: skip
    """Gradient of the weights of NJ nodes and BK neighbours, summed over the rows."""
    first, member = tl.program_id(0) * NJ, tl.program_id(2).to(tl.int64)
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    units = tl.arange(0, BH)
    nodes = first + tl.arange(0, NJ)
    stacked = tl.arange(0, NJ * BH)
    unit, node = stacked % BH, first + stacked // BH
    u_ptr += member * b * BH
    x_ptr += member * b * LENGTH
    slope_ptr += member * p * b
    w_ptr += member * (H + 1) * p * LENGTH
    grad_ptr += member * grad_member
    sums = tl.zeros((NJ * BH, BK), dtype=tl.float32)
    constants = tl.zeros((BB, BK), dtype=tl.float32)
    if PENALISED:
        tl.static_assert(NJ == 1)
        share = scale * tl.load(penalty_ptr + member)
        w = tl.load(
            w_ptr + unit[:, None].to(tl.int64) * p * LENGTH + node[:, None] * LENGTH + k[None, :],
            mask=(unit < H)[:, None] & (k < LENGTH)[None, :],
            other=0.0,
        )
        constant = tl.load(
            w_ptr + H * tl.cast(p, tl.int64) * LENGTH + first * LENGTH + k, mask=k < LENGTH, other=0.0
        ).to(tl.float32)
    for start in range(0, b, BB):
        rows = start + tl.arange(0, BB)
        inside = rows < b
        u = tl.load(u_ptr + rows[:, None] * BH + units[None, :], mask=inside[:, None], other=0.0)
        slope = tl.load(
            slope_ptr + nodes[:, None] * b + rows[None, :],
            mask=(nodes < p)[:, None] & inside[None, :],
            other=0.0,
        )
        x = tl.load(
            x_ptr + rows[:, None] * LENGTH + k[None, :],
            mask=inside[:, None] & (k < LENGTH)[None, :],
            other=0.0,
        )
        turned = tl.trans(u)
        scaled = slope[:, None, :] * turned.to(tl.float32)[None, :, :]
        sums += _product(tl.reshape(scaled, (NJ * BH, BB)), x, PRECISION)
        if PENALISED:
            beta = _product(u, w, PRECISION) + constant[None, :]
            signs = tl.where(inside[:, None], share * _sign(beta), 0.0)
            sums += _product(turned, signs, PRECISION)
            constants += tl.trans(slope) * x.to(tl.float32) + signs
    valid = (unit < H)[:, None] & (node < p)[:, None] & (k < p)[None, :]
    out = tl.where(node[:, None] == k[None, :], 0.0, sums)
    tl.store(grad_ptr + unit[:, None].to(tl.int64) * p * p + node[:, None] * p + k[None, :], out, mask=valid)
    if PENALISED:
        out = tl.where(k == first, 0.0, tl.sum(constants, axis=0))
        tl.store(grad_ptr + H * tl.cast(p, tl.int64) * p + first * p + k, out, mask=k < p)
