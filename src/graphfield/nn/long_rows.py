"""Tensors with a line per row of a long table, made and looked at some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from graphfield.data.row_store import allocate_rows
from graphfield.nn.fields import Samples

# Rows that are computed with at a time.
ROWS_AT_A_TIME = 2**14
# Rows far apart that are gathered at a time.
_GATHERED_ROWS = 1_000


def empty_rows(n_rows: int, width: int, like: Tensor) -> Tensor:
    """Of the type of ``like`` and on its device; on the CPU perhaps in a scratch file."""
    if like.device.type != "cpu":
        return like.new_empty(n_rows, width)
    return torch.from_numpy(allocate_rows((n_rows, width), like.new_empty(0).numpy().dtype))


def row_parts(rows: slice, device: torch.device) -> Sequence[Tensor]:
    return torch.arange(rows.start, rows.stop, device=device).split(ROWS_AT_A_TIME)


def gather(values: Tensor, rows: Tensor) -> Tensor:
    """``values[rows]``, some at a time: each may bring in many pages of a file."""
    return torch.cat([values[part] for part in rows.split(_GATHERED_ROWS)])


def mean_of_rows(values: Tensor, rows: Tensor) -> Tensor:
    """``values[rows].mean(dim=0)`` without a copy of these rows."""
    parts = [values[part].mean(dim=0).double() * len(part) for part in rows.split(ROWS_AT_A_TIME)]
    return (torch.stack(parts).sum(dim=0) / len(rows)).to(values.dtype)


def by_parts(function: Callable[[Samples], Tensor], data: Samples, rows: Tensor, dim: int = 0) -> Tensor:
    """What a function gives for a batch of these rows, (..., rows, ...) along ``dim``."""
    return torch.cat([function(data.take(part[None])) for part in rows.split(ROWS_AT_A_TIME)], dim=dim)
