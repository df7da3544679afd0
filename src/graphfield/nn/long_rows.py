"""Tensors with a line per row of a long table, made and looked at some rows at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from graphfield.data.row_store import GATHERED_ROWS, allocate_rows, has_scratch_files, release_if_many

# Rows that are computed with at a time.
ROWS_AT_A_TIME = 2**14


def empty_rows(n_rows: int, width: int, like: Tensor) -> Tensor:
    """Of the type of ``like`` and on its device; on the CPU perhaps in a scratch file."""
    if like.device.type != "cpu":
        return like.new_empty(n_rows, width)
    return torch.from_numpy(allocate_rows((n_rows, width), like.new_empty(0).numpy().dtype))


def row_parts(rows: slice, device: torch.device) -> Sequence[Tensor]:
    return torch.arange(rows.start, rows.stop, device=device).split(ROWS_AT_A_TIME)


def gather(values: Tensor, rows: Tensor) -> Tensor:
    """``values[rows]``, some at a time where they may be in a file."""
    if values.device.type != "cpu" or not has_scratch_files():
        return values.index_select(0, rows)  # twice as fast as values[rows]
    parts = []
    for part in rows.split(GATHERED_ROWS):
        parts.append(values.index_select(0, part))
        release_if_many()
    return torch.cat(parts)


def mean_of_rows(values: Tensor, rows: Tensor) -> Tensor:
    """``values[rows].mean(dim=0)`` without a copy of these rows."""
    parts = [values[part].mean(dim=0).double() * len(part) for part in rows.split(ROWS_AT_A_TIME)]
    return (torch.stack(parts).sum(dim=0) / len(rows)).to(values.dtype)
