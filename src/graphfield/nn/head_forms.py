"""The shared head in several forms: ``xhat_j = sum_k beta_jk x_k`` with ``beta_jk = sum_h u_h W_hjk``.

Nearly all arithmetic of a fit is here, and the order of the sums decides its cost:

coefficients
    beta first, for some response nodes j at a time: three matrix products (beta, the gradient of W,
    the gradient of u). The penalty on beta needs this one.
nodes
    ``M_hj = sum_k W_hjk x_k`` first: ``xhat_j = sum_h u_h M_hj`` and the gradient of u,
    ``sum_j g_j M_hj``, reuse it, so two products do. Its array is (rows, h, p), not (rows, p, p).

Both work on (h + 1) rows of W; the last is the constant term and belongs to a unit that is always 1.
The residual of node j needs no other node's, so loss and gradients come out of one pass, and no array
over all rows, nodes and neighbours ever exists. Tests compare both with autograd.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from graphfield.nn.losses import LOSSES, HeadTask
from graphfield.nn.precision import has_mkl, has_triton, large_products

# Entries of the array that a form works on at a time: small enough to stay in a cache that two
# cores share, large enough for the matrix products to run at full rate.
_TILE_ENTRIES = 2**21
# Entries of (rows, h, p) that stay in the cache of one core.
_CACHED_ENTRIES = 2**19
# Entries of (rows, h, p) at a time.
_NODE_ENTRIES = 2**24


# u (m, b, h), weight (m, h + 1, p, p), where its gradient goes, x (m or 1, b, p), task to the losses
# (m,) and the gradient of u.
Form = Callable[[Tensor, Tensor, Tensor, Tensor, HeadTask], tuple[Tensor, Tensor]]


def with_constant(u: Tensor) -> Tensor:
    """(..., h) to (..., h + 1): the unit that is always 1."""
    return torch.cat([u, u.new_ones(*u.shape[:-1], 1)], dim=-1)


def coefficients(u: Tensor, weight: Tensor) -> Tensor:
    """beta: (m or 1, b, h) and (m, h + 1, p, p) to (m, b, p, p)."""
    m, units, p, _ = weight.shape
    u = with_constant(u).expand(m, -1, -1)
    return torch.bmm(u, weight.reshape(m, units, p * p)).reshape(m, -1, p, p)


def fitted(u: Tensor, weight: Tensor, x: Tensor) -> Tensor:
    """xhat without beta: (m or 1, b, h), (m, h + 1, p, p), (m or 1, b, p) to (m, b, p)."""
    m, units, p, _ = weight.shape
    b = x.shape[1]
    u, x = with_constant(u).expand(m, -1, -1), x.expand(m, -1, -1)
    out = x.new_empty(m, b, p)
    for i in range(m):
        for rows in _row_blocks(b, units * p):
            first = (x[i, rows] @ weight[i].reshape(units * p, p).T).view(-1, units, p)
            out[i, rows] = _row_products(first.transpose(1, 2), u[i, rows])
    return out


def by_coefficients(
    u: Tensor, weight: Tensor, grad: Tensor, x: Tensor, task: HeadTask
) -> tuple[Tensor, Tensor]:
    """Loss (m,) and gradient of u (m, b, h), response nodes in tiles; that of W is written into ``grad``."""
    m, units, p, _ = weight.shape
    u1, x = with_constant(u).expand(m, -1, -1), x.expand(m, -1, -1)
    b = x.shape[1]
    penalties = [0.0] * m if task.penalty is None else task.penalty.tolist()
    slope_u = u1.new_zeros(m, units, b)  # transposed, the faster way to sum it up
    total = x.new_zeros(m)
    tile = max(1, min(p, _TILE_ENTRIES // (b * p)))

    def one_member(i: int) -> None:
        flat, flat_grad = weight[i].reshape(units, p * p), grad[i].view(units, p * p)
        xi, ui, by_u = x[i], u1[i], slope_u[i]
        room = xi.new_empty(2, b * tile * p)
        share = penalties[i] / (b * p)
        scale = share or 1.0  # a common factor of the slopes, put back at the end
        for start in range(0, p, tile):
            stop = min(start + tile, p)
            columns = slice(start * p, stop * p)
            flat_coef, product = room[:, : b * (stop - start) * p].view(2, b, -1)
            coef = torch.mm(ui, flat[:, columns], out=flat_coef).view(b, -1, p)
            error = xi[:, start:stop] - _row_products(coef, xi, product.view_as(coef))
            slope, value = _slope_and_value(error, task.loss, b * p)
            slope = slope.div_(scale)[:, :, None]
            if share:
                value = value + share * torch.abs(flat_coef, out=product).sum()
                coef.sign_().addcmul_(slope, xi[:, None, :])
            else:
                _outer(slope, xi, coef)
            total[i] += value
            by_u.addmm_(flat[:, columns], flat_coef.T)
            flat_grad[:, columns].addmm_(ui.T, flat_coef, beta=0, alpha=scale)
        by_u.mul_(scale)

    with large_products(x, b * units * tile * p):
        for i in range(m):
            one_member(i)
    _clear_diagonal(grad)
    return total, slope_u[:, :-1].transpose(1, 2)


def by_nodes(u: Tensor, weight: Tensor, grad: Tensor, x: Tensor, task: HeadTask) -> tuple[Tensor, Tensor]:
    """Like :func:`by_coefficients` without a penalty, in two matrix products."""
    m, units, p, _ = weight.shape
    u1, x = with_constant(u).expand(m, -1, -1), x.expand(m, -1, -1)
    b = x.shape[1]
    slope_u = torch.empty_like(u1)
    total = x.new_zeros(m)

    def one_member(i: int) -> None:
        flat, flat_grad = weight[i].reshape(units * p, p), grad[i].view(units * p, p)
        for rows in _row_blocks(b, units * p):
            xi, ui = x[i, rows], u1[i, rows]
            first = (xi @ flat.T).view(-1, units, p)
            error = xi - _row_products(first.transpose(1, 2), ui)
            slope, value = _slope_and_value(error, task.loss, b * p)
            total[i] += value
            slope_u[i, rows] = _row_products(first, slope)
            _outer(ui[:, :, None], slope, first)
            flat_grad.addmm_(first.view(-1, units * p).T, xi, beta=0 if rows.start == 0 else 1)

    with large_products(x, b * units * p * p):
        for i in range(m):
            one_member(i)
    _clear_diagonal(grad)
    return total, slope_u[:, :, :-1]


def choose_form(weight: Tensor, n_rows: int, task: HeadTask) -> Form:
    """The fused kernels on CUDA; else two products, or beta where the penalty asks for it or the
    array (rows, h, p) is so large that passes over it cost more than the third product."""
    if weight.is_cuda and has_triton():
        from graphfield.nn.triton_head import fused

        return fused
    units, p = weight.shape[1:3]
    cached = n_rows * units * p <= _CACHED_ENTRIES
    fits = (units <= p or cached) if has_mkl() else units <= 3 * p
    return by_nodes if task.penalty is None and fits else by_coefficients


def _row_products(matrices: Tensor, vectors: Tensor, room: Tensor | None = None) -> Tensor:
    """``sum_k matrices[b, j, k] vectors[b, k]``: (b, j, k) and (b, k) to (b, j).

    MKL and CUDA have batched products for this; elsewhere torch takes row by row, and multiplying
    out is faster.
    """
    if matrices.is_cuda or has_mkl():
        return torch.bmm(matrices, vectors[:, :, None])[:, :, 0]
    if room is None:
        return (matrices * vectors[:, None, :]).sum(dim=2)
    return torch.mul(matrices, vectors[:, None, :], out=room[:, : matrices.shape[1]]).sum(dim=2)


def _outer(left: Tensor, right: Tensor, out: Tensor) -> None:
    """``left[b, j, 0] right[b, k]`` into (b, j, k)."""
    if out.is_cuda or has_mkl():
        torch.bmm(left, right[:, None, :], out=out)
    else:
        torch.mul(left, right[:, None, :], out=out)


def _slope_and_value(error: Tensor, name: str, count: int) -> tuple[Tensor, Tensor]:
    """Derivative of the mean loss by the fitted values, and this part's share of the mean."""
    loss = LOSSES[name]
    return loss.slope(error).mul_(-1 / count), loss.value(error).sum() / count


def _row_blocks(n_rows: int, entries_per_row: int) -> list[slice]:
    step = max(1, _NODE_ENTRIES // entries_per_row)
    return [slice(start, start + step) for start in range(0, n_rows, step)]


def _clear_diagonal(grad: Tensor) -> None:
    """No edge from a node to itself: these weights are zero and stay zero."""
    torch.diagonal(grad, dim1=-2, dim2=-1).zero_()
