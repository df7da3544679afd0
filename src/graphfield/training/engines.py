"""Engines: how a number of gradient steps is carried out.

Every engine takes the same steps (:class:`~graphfield.training.plan.Steps`) and does to the weights
what the plain one does: gather rows, loss and gradients, clip per member, Adam.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from graphfield.nn.branch import branching
from graphfield.nn.fields import Samples
from graphfield.nn.pack import Pack
from graphfield.nn.precision import has_triton, matmul_precision
from graphfield.nn.processes import ALONE, current
from graphfield.training.adam import adam_step
from graphfield.training.config import CLIP_NORM, WEIGHT_DECAY, TrainingConfig
from graphfield.training.plan import Steps, sent

# Multiplications (about three for each weight and row) of a step that processes share: some ten milliseconds
# of a core, where a message between processes takes less than one. Smaller steps each of them takes alike.
SHARED_WORK = 10**8

logger = logging.getLogger(__name__)


class PlainEngine:
    """Carries out steps on the members of a pack, one operation after another, on any device.

    Processes share the rows of each batch and add up their gradients, where that is worth a message.
    """

    def __init__(self, pack: Pack, data: Samples, config: TrainingConfig) -> None:
        self.pack, self.data, self.config = pack, data, config
        is_large = 3 * config.batch_size * pack.values.numel() >= SHARED_WORK
        self.processes = current() if is_large else ALONE
        self.load_state(_zero_state(pack.values))

    def prepare(self, steps: Steps) -> Steps:
        """What can be done for these steps before the weights are known; perhaps in another thread."""
        if self.processes.size == 1:
            return replace(steps, batches=self.data.take_each(steps.rows))
        own = self.processes.own_part(steps.rows.shape[-1])
        keep = None if steps.keep is None else steps.keep[..., own, :].contiguous()
        return replace(steps, keep=keep, batches=self.data.take_each(steps.rows, own))

    def run(self, steps: Steps) -> Tensor:
        """Change the weights step by step; the training losses, (steps, m)."""
        losses = []
        keep = [None] * len(steps) if steps.keep is None else steps.keep.unbind()
        for i, rate in enumerate(steps.rates):
            batch = self.data.take(steps.rows[i]) if steps.batches is None else steps.batches[i]
            losses.append(self._gradients(batch, keep[i]))
            self._add_up(losses[-1], batch, steps.rows.shape[-1])
            update(self.pack, self.adam, rate)
        return torch.stack(losses)

    def _add_up(self, losses: Tensor, batch: Samples, n_rows: int) -> None:
        """Over processes; what each has is a mean over its own rows."""
        if self.processes.size > 1:
            share = len(batch) / n_rows
            self.processes.add_up(self.pack.gradient.mul_(share), losses.mul_(share))

    def _gradients(self, batch: Samples, keep: Tensor | None) -> Tensor:
        return self.pack.field.backward(batch, keep)

    def keep(self, positions: Sequence[int]) -> None:
        """Only the members at these positions go on; the pack itself included."""
        index = torch.tensor(list(positions), device=self.pack.values.device)
        state = {name: value if name == "step" else value[index] for name, value in self.adam.items()}
        self.data = self.data.members(positions)
        self.pack.keep(positions)
        self.load_state(state)

    def state(self) -> dict[str, Tensor]:
        """What the optimiser has to remember."""
        return dict(self.adam)

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.adam = state


class GraphEngine(PlainEngine):
    """The whole step as one CUDA graph: its kernels are launched together, without Python between.

    What changes from step to step (rows, dropout factors, rate) lies in buffers that the graph reads at
    a counter, which it advances itself. Matrix products of the backbone may use TF32. Where the step
    cannot be recorded, it is carried out as by the plain engine, and a line is logged. Each process takes all
    steps: one takes less time than a message.
    """

    def __init__(self, pack: Pack, data: Samples, config: TrainingConfig) -> None:
        super().__init__(pack, data, config)
        self.processes = ALONE
        self.enabled = torch.zeros((), device=data.x.device)
        self.can_record = True

    def prepare(self, steps: Steps) -> Steps:
        return steps

    def run(self, steps: Steps) -> Tensor:
        if self.can_record and (self.graph is None or len(steps) > len(self.rates)):
            self._try_to_capture(steps)
        if not self.can_record:
            return super().run(steps)
        count = len(steps)
        self.rows[:count] = steps.rows
        if self.factors is not None and steps.keep is not None:
            self.factors[:count] = steps.keep
        self.rates[:count] = sent(torch.tensor(steps.rates), self.rates.device)
        self.counter.zero_()
        assert self.graph is not None
        for _ in range(count):
            self.graph.replay()
        return self.losses[:count].clone()

    def load_state(self, state: dict[str, Tensor]) -> None:
        super().load_state(state)
        self.graph: torch.cuda.CUDAGraph | None = None

    def _try_to_capture(self, steps: Steps) -> None:
        statistics = [buffer.clone() for buffer in self.pack.buffers]
        step = self.adam["step"].clone()
        try:
            self._capture(steps)
        except Exception as error:  # noqa: BLE001  whatever a driver or compiler says, the plain steps remain
            logger.info("the training step could not be recorded (%s); going on without", error)
            self.graph, self.can_record = None, False
        self.adam["step"].copy_(step)
        for buffer, before in zip(self.pack.buffers, statistics, strict=True):
            buffer.copy_(before)

    def _capture(self, steps: Steps) -> None:
        """Run the step without its update to have everything allocated and compiled; then record it."""
        device = self.pack.values.device
        self.graph = None  # frees the memory of an earlier one
        self.rows = steps.rows.clone()
        self.factors = None if steps.keep is None else steps.keep.clone()
        self.rates = torch.zeros(len(steps), device=device)
        self.counter = torch.zeros(1, dtype=torch.int64, device=device)
        self.losses = torch.empty(len(steps), len(self.pack), device=device)
        self.enabled.zero_()
        stream, self.second = torch.cuda.Stream(device), torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with matmul_precision("high"), torch.cuda.stream(stream):
            for _ in range(2):
                self.counter.zero_()
                self._counted_step()
        torch.cuda.current_stream(device).wait_stream(stream)
        self.enabled.fill_(1)
        graph = torch.cuda.CUDAGraph()
        with matmul_precision("high"), torch.cuda.graph(graph):
            self._counted_step()
        self.graph = graph

    def _counted_step(self) -> None:
        from graphfield.training.triton_adam import clipped_adam

        rows = self.rows.index_select(0, self.counter)[0]
        factors = None if self.factors is None else self.factors.index_select(0, self.counter)[0]
        with branching(self.second):
            losses = self._gradients(self.data.take(rows), factors)
        clipped_adam(
            self.pack.values,
            self.pack.gradient,
            self.adam,
            self.rates.index_select(0, self.counter),
            self.enabled,
            clip_norm=CLIP_NORM,
            weight_decay=WEIGHT_DECAY,
        )
        self.losses.index_copy_(0, self.counter, losses[None])
        self.counter.add_(1)


def _zero_state(values: Tensor) -> dict[str, Tensor]:
    """Adam before the first step."""
    zeros = torch.zeros_like(values)
    return {"step": zeros.new_zeros(()), "exp_avg": zeros, "exp_avg_sq": torch.zeros_like(values)}


@torch.no_grad()
def update(pack: Pack, adam: dict[str, Tensor], rate: float) -> None:
    """Clip each member's gradient to the norm that the published code allows; one step of Adam."""
    # Over all of one member: without a dimension to keep, torch uses every core.
    norm = (
        torch.linalg.vector_norm(pack.gradient)
        if len(pack) == 1
        else torch.linalg.vector_norm(pack.gradient, dim=1, keepdim=True)
    )
    excess = norm.add_(1e-6).div_(CLIP_NORM).clamp_(min=1.0)
    adam["step"].add_(1)
    if len(pack) > 1:
        pack.gradient.div_(excess)
    # The kernel divides by it, which saves a pass over the gradient of a single member.
    adam_step(pack.values, pack.gradient, adam, rate, excess if len(pack) == 1 else None)


def make_engine(pack: Pack, data: Samples, config: TrainingConfig) -> PlainEngine:
    """The fastest engine for where the data are."""
    if data.x.is_cuda and has_triton():
        return GraphEngine(pack, data, config)
    return PlainEngine(pack, data, config)
