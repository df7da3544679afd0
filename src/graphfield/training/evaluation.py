"""The loss on rows that training does not see, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from graphfield.nn.fields import Field, Samples
from graphfield.nn.processes import ALONE, current

# Entries of hidden features and fitted values, all members together, computed at a time.
_ENTRIES = 8_000_000


class HeldOut:
    """Held-out rows of each member of a pack."""

    def __init__(self, data: Samples, rows: Sequence[Tensor]) -> None:
        self.data = data
        self.rows = list(rows)
        self.table = self._table()

    def keep(self, positions: Sequence[int]) -> None:
        """Only the members at these positions go on."""
        self.rows = [self.rows[i] for i in positions]
        self.data = self.data.members(positions)
        self.table = self._table()

    @torch.no_grad()
    def row_losses(self, field: Field) -> list[Tensor]:
        """Loss of each held-out row, one vector per member."""
        longest = self.table.shape[1]
        if longest == 0:
            return [rows.new_empty(0, dtype=torch.float32) for rows in self.rows]
        p = self.data.x.shape[-1]
        width = field.groups * field.backbone.width + (p if field.groups == 1 else p * p)
        step = max(1, _ENTRIES // (len(self.rows) * width))
        processes = current() if longest >= current().size else ALONE
        own = processes.own_part(longest)
        parts = [
            field.row_losses(self.data.take(self.table[:, start : min(start + step, own.stop)]))
            for start in range(own.start, own.stop, step)
        ]
        losses = torch.cat(parts, dim=1)
        if processes.size > 1:
            by_row = losses.new_empty(longest, len(losses))
            by_row[own] = losses.T
            processes.fill_rows(by_row)
            losses = by_row.T
        return [losses[i, : len(rows)] for i, rows in enumerate(self.rows)]

    def _table(self) -> Tensor:
        """Rows by member, short lists padded; one line where all members have the same rows."""
        longest = max(len(rows) for rows in self.rows)
        if self.data.x.ndim == 2 and all(torch.equal(rows, self.rows[0]) for rows in self.rows[1:]):
            return self.rows[0][None]
        table = torch.zeros(len(self.rows), longest, dtype=torch.int64, device=self.data.x.device)
        for line, rows in zip(table, self.rows, strict=True):
            line[: len(rows)] = rows
        return table
