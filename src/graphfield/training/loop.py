"""The training loop."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from graphfield.exceptions import TrainingError
from graphfield.nn.fields import Samples
from graphfield.training.checkpoint import Snapshot, StageFile
from graphfield.training.config import CLIP_NORM, TrainingConfig, learning_rate
from graphfield.training.progress import progress_bar

# Entries of a (rows, p, p) array evaluated at a time when computing the held-out loss.
_EVALUATION_ENTRIES = 8_000_000


class Trainable(Protocol):
    """A module whose ``loss`` is the mean over the rows of a batch."""

    def loss(self, batch: Samples, generator: torch.Generator | None = None) -> Tensor: ...


@dataclass
class Curve:
    """The loss curve: one entry per evaluation."""

    step: list[int] = field(default_factory=list)
    train_loss: list[float] = field(default_factory=list)
    held_out_loss: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)


@dataclass
class TrainingResult:
    """What a training run leaves behind besides the module's weights."""

    curve: Curve
    n_steps: int
    best_step: int
    stopped_early: bool


def train(
    module: nn.Module,
    data: Samples,
    held_out: Samples | None,
    config: TrainingConfig,
    *,
    seeds: tuple[int, int],
    description: str,
    checkpoint: StageFile | None = None,
) -> TrainingResult:
    """Train ``module`` in place on ``data``; both must be on one device.

    With ``patience`` set and held-out rows given, training stops after that many evaluations
    without improvement (but not before ``min_steps``) and the best weights are restored.
    Otherwise it runs to ``max_steps`` and keeps the last weights.
    The same seeds give the same bits on the same device, interrupted or not.
    """
    run = _Run(module, data, held_out, config, seeds, checkpoint)
    with progress_bar(description, config.max_steps) as advance:
        while not run.finished:
            run.window()
            advance(run.step, run.note())
    return run.result()


class _Run:
    """State of one training run, advanced window by window (from one evaluation to the next)."""

    def __init__(
        self,
        module: nn.Module,
        data: Samples,
        held_out: Samples | None,
        config: TrainingConfig,
        seeds: tuple[int, int],
        checkpoint: StageFile | None,
    ) -> None:
        self.module, self.data, self.config = module, data, config
        self.held_out = held_out if held_out is not None and len(held_out) else None
        self.checkpoint = checkpoint
        self.device = data.x.device
        self.batch_size = min(config.batch_size, len(data))
        self.steps_per_epoch = max(1, len(data) // self.batch_size)
        self.order_seed = seeds[0]
        self.dropout = torch.Generator(self.device).manual_seed(seeds[1])
        self.optimizer = torch.optim.Adam(
            module.parameters(),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self.curve = Curve()
        self.step, self.best_step, self.best_loss = 0, 0, math.inf
        self.best: dict[str, Tensor] = {}
        self.finished = self.stopped_early = False
        self._order: tuple[int, Tensor] | None = None
        if checkpoint is not None:
            self._restore(checkpoint.load(self.device))

    @property
    def selects_best(self) -> bool:
        return self.held_out is not None and self.config.patience is not None

    def window(self) -> None:
        """Train up to the next evaluation, evaluate, decide whether to go on, save."""
        self.module.train()
        count = min(self.config.evaluate_every, self.config.max_steps - self.step)
        losses = torch.stack([self._one_step() for _ in range(count)])
        train_loss = self._checked_mean(losses)
        self._evaluate(train_loss)
        if self.step >= self.config.max_steps or self.stopped_early:
            self.finished = True
            if self.selects_best:
                self.module.load_state_dict(self.best)
        if self.checkpoint is not None:
            self.checkpoint.save(self._snapshot())

    def _one_step(self) -> Tensor:
        batch = self.data.take(self._rows())
        loss = self.module.loss(batch, self.dropout)  # type: ignore[operator]
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.module.parameters(), CLIP_NORM)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.config, self.step, self.steps_per_epoch)
        self.optimizer.step()
        self.step += 1
        return loss.detach()

    def _rows(self) -> Tensor:
        """Rows of this step's batch: a permutation per epoch that depends on seed and epoch alone.

        It is drawn on the CPU, so every device sees the same batches; the last, partial batch of
        an epoch is dropped.
        """
        epoch, position = divmod(self.step, self.steps_per_epoch)
        if self._order is None or self._order[0] != epoch:
            generator = torch.Generator().manual_seed(_mix(self.order_seed, epoch))
            order = torch.randperm(len(self.data), generator=generator).to(self.device)
            self._order = (epoch, order)
        start = position * self.batch_size
        return self._order[1][start : start + self.batch_size]

    def _checked_mean(self, losses: Tensor) -> float:
        values = losses.cpu()
        bad = torch.nonzero(~torch.isfinite(values))
        if len(bad):
            step = self.step - len(values) + int(bad[0]) + 1
            raise TrainingError(
                f"The training loss became {float(values[bad[0, 0]])} at step {step} of "
                f"{self.config.max_steps}. Try a smaller learning_rate (now "
                f"{self.config.learning_rate:g}), standardize=True, or look for extreme values in X."
            )
        return float(values.mean())

    def _evaluate(self, train_loss: float) -> None:
        held_out_loss = math.nan
        if self.held_out is not None:
            held_out_loss = evaluate(self.module, self.held_out)
        self.curve.step.append(self.step)
        self.curve.train_loss.append(train_loss)
        self.curve.held_out_loss.append(held_out_loss)
        self.curve.learning_rate.append(float(self.optimizer.param_groups[0]["lr"]))
        if not self.selects_best:
            self.best_step = self.step
            return
        if held_out_loss < self.best_loss:
            self.best_loss, self.best_step = held_out_loss, self.step
            self.best = {k: v.clone() for k, v in self.module.state_dict().items()}
        since = len([s for s in self.curve.step if s > self.best_step])
        patience = self.config.patience or 0
        self.stopped_early = since >= patience and self.step >= self.config.min_steps

    def note(self) -> str:
        held_out = self.curve.held_out_loss[-1]
        return f"loss {self.curve.train_loss[-1]:.4f}" + (
            "" if math.isnan(held_out) else f", held out {held_out:.4f}"
        )

    def result(self) -> TrainingResult:
        self.module.eval()
        return TrainingResult(self.curve, self.step, self.best_step, self.stopped_early)

    def _snapshot(self) -> Snapshot:
        tensors = {f"weights/{k}": v for k, v in self.module.state_dict().items()}
        tensors |= {f"best/{k}": v for k, v in self.best.items()}
        tensors["random/dropout"] = self.dropout.get_state()
        for i, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{i}/{name}": value for name, value in state.items()}
        record: dict[str, Any] = {
            "curve": vars(self.curve),
            "best_step": self.best_step,
            "best_loss": self.best_loss if math.isfinite(self.best_loss) else None,
            "stopped_early": self.stopped_early,
        }
        return Snapshot(self.step, self.finished, tensors, record)

    def _restore(self, snapshot: Snapshot | None) -> None:
        if snapshot is None:
            return
        parts = _by_prefix(snapshot.tensors)
        self.module.load_state_dict(parts["weights"])
        self.best = dict(parts.get("best", {}))
        self.dropout.set_state(parts["random"]["dropout"])
        state = self.optimizer.state_dict()
        state["state"] = {}
        for key, value in parts["optimizer"].items():
            index, name = key.split("/")
            state["state"].setdefault(int(index), {})[name] = value
        self.optimizer.load_state_dict(state)
        self.step, self.finished = snapshot.step, snapshot.finished
        record = snapshot.record
        self.curve = Curve(**record["curve"])
        self.best_step, self.stopped_early = record["best_step"], record["stopped_early"]
        self.best_loss = math.inf if record["best_loss"] is None else record["best_loss"]


@torch.no_grad()
def evaluate(module: nn.Module, samples: Samples) -> float:
    """Mean loss over all rows in evaluation mode, in bounded memory."""
    module.eval()
    rows = max(1, _EVALUATION_ENTRIES // samples.x.shape[1] ** 2)
    total = 0.0
    for start in range(0, len(samples), rows):
        part = samples.take(slice(start, start + rows))
        total += float(module.loss(part)) * len(part)  # type: ignore[operator]
    return total / len(samples)


def _by_prefix(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    parts: dict[str, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        prefix, rest = key.split("/", 1)
        parts.setdefault(prefix, {})[rest] = value
    return parts


def _mix(seed: int, epoch: int) -> int:
    """One seed per epoch, far apart (the constant is the 64-bit golden ratio)."""
    return (seed + 0x9E3779B97F4A7C15 * (epoch + 1)) % 2**63
