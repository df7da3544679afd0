"""Several fields as one: their weights side by side in one matrix, one row per member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor, nn

from graphfield.nn.fields import Field
from graphfield.nn.heads import SharedHead
from graphfield.nn.layers import BatchNorm

F = TypeVar("F", bound=Field)


def packed(fields: Sequence[F]) -> F:
    """One field with the members of all of them; the first one is changed and returned."""
    field = fields[0]
    for name, parameter in field.named_parameters():
        joined = torch.cat([other.get_parameter(name).detach() for other in fields])
        parameter.data = joined
    for name, buffer in _member_buffers(field).items():
        buffer.set_(torch.cat([_member_buffers(other)[name] for other in fields]))  # type: ignore[call-overload]
    field.set_penalties(tuple(value for other in fields for value in other.penalties))
    return field


def unpacked(field: F) -> list[F]:
    """One field per member, with weights of their own."""
    if len(field.penalties) == 1:
        return [field]
    fields = []
    for member, penalty in enumerate(field.penalties):
        config = replace(field.config, penalty=penalty)
        single = type(field)(config, torch.Generator())
        load_member_arrays(single, member_arrays(field, member))
        fields.append(single.to(next(field.parameters()).device).eval())
    return fields


class Pack:
    """The weights and gradients of a field as two matrices (members, weights).

    The field's parameters become views into them, so that clipping, the optimiser, keeping the best
    weights and dropping a member are each one operation on a matrix.
    """

    def __init__(self, field: Field) -> None:
        self.field = field
        self.parameters = list(field.parameters())
        self.buffers = list(_member_buffers(field).values())
        self._adopt(torch.cat([p.detach().reshape(len(p), -1) for p in self.parameters], dim=1))

    def __len__(self) -> int:
        return len(self.values)

    def keep(self, members: Sequence[int]) -> None:
        """Only these members stay."""
        index = torch.tensor(list(members), device=self.values.device)
        for buffer in self.buffers:
            buffer.set_(buffer[index])  # type: ignore[call-overload]
        self.field.set_penalties(tuple(self.field.penalties[i] for i in members))
        self.field.to(self.values.device)
        self._adopt(self.values[index])

    def state(self, member: int) -> Tensor:
        """Weights and running statistics of one member as one vector (a copy)."""
        parts = [self.values[member], *(buffer[member].reshape(-1) for buffer in self.buffers)]
        return torch.cat(parts).detach()

    def assemble(self, states: Sequence[Tensor], penalties: tuple[float, ...]) -> None:
        """Members with these states, whatever the pack held before."""
        together = states[0][None] if len(states) == 1 else torch.stack(list(states))
        sizes = [self.values.shape[1], *(buffer[0].numel() for buffer in self.buffers)]
        values, *rest = together.split(sizes, dim=1)
        for buffer, part in zip(self.buffers, rest, strict=True):
            shape = (len(states), *buffer.shape[1:])
            buffer.set_(part.reshape(shape).contiguous())
        self.field.set_penalties(penalties)
        self.field.to(self.values.device)
        self._adopt(values.contiguous())

    def _adopt(self, values: Tensor) -> None:
        self.values = values
        self.gradient = torch.zeros_like(values)
        start = 0
        for parameter in self.parameters:
            shape = (len(values), *parameter.shape[1:])
            columns = slice(start, start + parameter[0].numel())
            parameter.grad = None
            parameter.data = values[:, columns].view(shape)
            parameter.grad = self.gradient[:, columns].view(shape)
            start = columns.stop
        self.field.forget_step()


def release(field: Field) -> None:
    """Give the field weights of its own again and drop the gradients."""
    for parameter in field.parameters():
        parameter.grad = None
        parameter.data = parameter.data.clone(memory_format=torch.contiguous_format)
    field.forget_step()


def member_arrays(field: Field, member: int = 0) -> dict[str, Tensor]:
    """One member's state as files hold it."""
    arrays: dict[str, Tensor] = {}
    for name, value in field.state_dict().items():
        module, _, last = name.rpartition(".")
        owner = field.get_submodule(module)
        if isinstance(owner, SharedHead):
            arrays |= {f"{module}.{key}": part for key, part in owner.to_file(value[member]).items()}
        elif isinstance(owner, BatchNorm):
            arrays[name] = value[member].reshape(-1)
        else:
            arrays[name] = value if last.startswith("shares_") else value[member]
    return arrays


def load_member_arrays(field: Field, arrays: dict[str, Tensor]) -> None:
    """Inverse of :func:`member_arrays` for a field with one member."""
    state = {}
    for name, value in field.state_dict().items():
        module = name.rpartition(".")[0]
        if isinstance(field.get_submodule(module), SharedHead):
            state[name] = SharedHead.from_file(arrays[name], arrays[f"{module}.bias"])[None]
        else:
            state[name] = arrays[name].reshape(value.shape)
    field.load_state_dict(state)


def _member_buffers(field: nn.Module) -> dict[str, Tensor]:
    return {
        f"{name}.{key}": buffer
        for name, module in field.named_modules()
        if isinstance(module, BatchNorm)
        for key, buffer in module.named_buffers(recurse=False)
    }
