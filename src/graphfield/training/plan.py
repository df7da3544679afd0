"""What each gradient step gets: rows, dropout factors and a learning rate.

All randomness of training is drawn here, ahead of the steps that use it. An engine is then a function
of its inputs alone, and two engines given the same steps must give the same weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from graphfield.nn.fields import Field, Samples
from graphfield.nn.layers import dropout_factors
from graphfield.training.config import TrainingConfig, learning_rate

# Dropout factors drawn at a time, in entries of all members.
_FACTOR_ENTRIES = 4_000_000
# Held-out rows that are looked at during training, at the most.
_WATCHED_ROWS = 100_000
# Steps drawn at a time on the CPU, where the next ones are drawn during the last.
_STEPS_AHEAD = 8


class Seeds(NamedTuple):
    """What the training of a network draws at random."""

    weights: int
    order: int  # of rows
    dropout: int


@dataclass(frozen=True)
class Member:
    """One of the fits that train together: its rows and its seeds."""

    rows: Tensor  # positions in the samples; repeated where drawn with replacement
    held_out: Tensor  # may be empty
    order_seed: int
    dropout_seed: int
    in_order: bool = False  # the rows are those of the first epoch, in the order in which they are drawn


@dataclass(frozen=True)
class Steps:
    """Consecutive gradient steps."""

    rows: Tensor  # (steps, m, b)
    keep: Tensor | None  # (steps, 2, m, g, b, h)
    rates: tuple[float, ...]
    batches: tuple[Samples, ...] | None = None  # the rows themselves, where they were gathered beforehand

    def __len__(self) -> int:
        return len(self.rates)


class Plan:
    """Draws the steps of the members of a pack."""

    def __init__(
        self, members: Sequence[Member], field: Field, config: TrainingConfig, device: torch.device
    ) -> None:
        self.members = list(members)
        self.config = config
        self.device = device
        self.batch_size = min(config.batch_size, *(len(member.rows) for member in members))
        # As the schedules count epochs: by the member with most rows, whoever leaves later.
        self.steps_per_epoch = max(1, max(len(member.rows) for member in members) // self.batch_size)
        self.factors_shape = field.factors_shape(self.batch_size)
        self.rate = field.config.dropout
        self.generators = [torch.Generator(device).manual_seed(m.dropout_seed) for m in members]
        self._orders: dict[int, tuple[int, Tensor]] = {}

    @property
    def chunk(self) -> int:
        """Steps drawn at a time."""
        if self.device.type == "cpu":
            return _STEPS_AHEAD
        if self.factors_shape is None:
            return 64
        per_step = len(self.members) * torch.Size(self.factors_shape).numel()
        return max(1, min(64, _FACTOR_ENTRIES // per_step))

    def keep(self, positions: Sequence[int]) -> None:
        """Only the members at these positions go on."""
        self.members = [self.members[i] for i in positions]
        self.generators = [self.generators[i] for i in positions]
        self._orders = {}

    def draw(self, first: int, count: int) -> Steps:
        """Steps ``first`` to ``first + count - 1``; to be asked for in order."""
        rows = torch.stack([self._rows(i, first, count) for i in range(len(self.members))], dim=1)
        rates = tuple(learning_rate(self.config, first + s, self.steps_per_epoch) for s in range(count))
        return Steps(rows, self._factors(count), rates)

    def _factors(self, count: int) -> Tensor | None:
        if self.factors_shape is None:
            return None
        shape = (count, *self.factors_shape)
        drawn = [dropout_factors(shape, self.rate, g, self.device) for g in self.generators]
        return drawn[0][:, :, None] if len(drawn) == 1 else torch.stack(drawn, dim=2)

    def _rows(self, position: int, first: int, count: int) -> Tensor:
        """(count, b): consecutive pieces of one permutation per epoch, which depends on seed and epoch
        alone. It is drawn on the CPU, so every device sees the same batches; the last, partial batch
        of an epoch is dropped."""
        size = self.batch_size
        per_epoch = max(1, len(self.members[position].rows) // size)
        parts, step, left = [], first, count
        while left:
            epoch, place = divmod(step, per_epoch)
            take = min(left, per_epoch - place)
            order = self._order(position, epoch)
            parts.append(order[place * size : (place + take) * size].view(take, size))
            step, left = step + take, left - take
        return torch.cat(parts)

    def _order(self, position: int, epoch: int) -> Tensor:
        known = self._orders.get(position)
        if known is None or known[0] != epoch:
            known = self._orders[position] = (epoch, _order_of(self.members[position], epoch))
        return known[1]


def _order_of(member: Member, epoch: int) -> Tensor:
    """The rows as an epoch has them."""
    if member.in_order:
        return member.rows
    generator = torch.Generator().manual_seed(_mix(member.order_seed, epoch))
    order = torch.randperm(len(member.rows), generator=generator)
    return member.rows[sent(order, member.rows.device)]


def seen_rows(members: Sequence[Member], config: TrainingConfig) -> tuple[list[Member], Tensor | None]:
    """The rows (rising) that training will look at, and the members by positions among these.

    None, and the members as they are, unless each sees less than all of its rows. Of many rows held out, some
    evenly spread ones say when to stop.
    """
    members = [replace(one, held_out=evenly_spread(one.held_out, _WATCHED_ROWS)) for one in members]
    size = min(config.batch_size, *(len(member.rows) for member in members))
    n_seen = size * config.max_steps
    if any(n_seen > size * (len(member.rows) // size) or member.in_order for member in members):
        return members, None
    drawn = [_order_of(member, 0)[:n_seen] for member in members]
    rows = torch.unique(torch.cat([*drawn, *(member.held_out for member in members)]))
    return [
        replace(
            member,
            rows=torch.searchsorted(rows, own),
            held_out=torch.searchsorted(rows, member.held_out),
            in_order=True,
        )
        for member, own in zip(members, drawn, strict=True)
    ], rows


def evenly_spread(rows: Tensor, most: int) -> Tensor:
    """So many of them at most."""
    return rows[:: max(1, -(-len(rows) // most))].contiguous()


def sent(values: Tensor, device: torch.device) -> Tensor:
    """On the device; a CUDA device gets them when it comes to it, and the CPU goes on meanwhile."""
    if device.type != "cuda":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


def _mix(seed: int, epoch: int) -> int:
    """One seed per epoch, far apart (the constant is the 64-bit golden ratio)."""
    return (seed + 0x9E3779B97F4A7C15 * (epoch + 1)) % 2**63
