"""The training loop: one for every neural model, for one fit or several together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from torch import Tensor

from graphfield.cores import one_ahead
from graphfield.data.saved_values import Saved
from graphfield.exceptions import DataError, TrainingError
from graphfield.messages import Argument
from graphfield.nn.fields import Field, Samples
from graphfield.nn.pack import Pack, packed, release, unpacked
from graphfield.nn.processes import current, work_alone
from graphfield.numbers import is_clear, mean_and_error
from graphfield.training.checkpoint import Snapshot, StageFile, check_like, restoring
from graphfield.training.config import TrainingConfig, learning_rate
from graphfield.training.engines import make_engine
from graphfield.training.evaluation import HeldOut
from graphfield.training.plan import Member, Plan, Steps, seen_rows
from graphfield.training.progress import progress_bar

# When fits compete, losers are looked for once these shares of the steps are done.
_JUDGED_AT = (1 / 3, 2 / 3)
# A fit has lost when its held-out loss is this many standard errors above the leader's, row by row,
# and falling as far again as in the second half of its steps would not make up for it.
_LOST_BY = 3.0


@dataclass
class Curve:
    """The loss curve: one entry per evaluation."""

    step: list[int] = field(default_factory=list)
    train_loss: list[float] = field(default_factory=list)
    held_out_loss: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)


@dataclass
class TrainingResult:
    """What the training of one member leaves behind besides its weights."""

    curve: Curve = field(default_factory=Curve)
    n_steps: int = 0
    best_step: int = 0
    best_loss: float = math.inf
    stopped_early: bool = False
    lost: bool = False  # dropped because another member was clearly ahead


def train(
    module: Field,
    data: Samples,
    members: Sequence[Member],
    config: TrainingConfig,
    *,
    description: str | None,
    compete: bool = False,
    checkpoint: StageFile | None = None,
) -> list[TrainingResult]:
    """Train the members of ``module`` in place on ``data``; both must be on one device.

    With ``patience`` set and held-out rows given, a member stops after that many evaluations
    without improvement (but not before ``min_steps``) and gets its best weights back.
    Otherwise it runs to ``max_steps`` and keeps the last weights. Members that ``compete`` are
    dropped when they have clearly lost, with the weights they had then.
    The same seeds give the same bits on the same device, interrupted or not.
    """
    members, rows = seen_rows(members, config)
    data = data if rows is None else data.take(rows)
    description = current().only_first(description)
    if len(members) >= current().size > 1 and not compete and checkpoint is None:
        return _train_apart(module, data, members, config, description)
    run = TrainingRun(module, data, members, config, compete, checkpoint)
    with progress_bar(description, config.max_steps) as advance:
        while run.active:
            run.window()
            advance(run.step, run.note())
    return run.finish()


def _train_apart(
    module: Field, data: Samples, members: Sequence[Member], config: TrainingConfig, description: str | None
) -> list[TrainingResult]:
    """Each process trains some of the members; then all have all of them."""
    processes, penalties, pack = current(), module.penalties, Pack(module)
    config = replace(config, batch_size=min(config.batch_size, *(len(member.rows) for member in members)))
    mine, singles = processes.own_items(range(len(members))), unpacked(module)
    own = packed([singles[i] for i in mine])
    with work_alone():
        found = train(own, data.members(mine), [members[i] for i in mine], config, description=description)
    trained, states = Pack(own), pack.state(0).new_zeros(len(members), len(pack.state(0)))
    for position, member in enumerate(mine):
        states[member] = trained.state(position)
    processes.add_up(states)
    pack.assemble(list(states), penalties)
    release(module)
    module.eval()
    results = [dict(zip(own, results, strict=True)) for own, results in processes.gather((mine, found))]
    return [results[member % processes.size][member] for member in range(len(members))]


class TrainingRun:
    """State of a training run, advanced window by window (from one evaluation to the next)."""

    def __init__(
        self,
        module: Field,
        data: Samples,
        members: Sequence[Member],
        config: TrainingConfig,
        compete: bool,
        checkpoint: StageFile | None,
    ) -> None:
        self.module, self.config, self.checkpoint = module, config, checkpoint
        self.compete = compete and all(len(member.held_out) for member in members)
        self.penalties = module.penalties
        self.device = data.x.device
        self.pack = Pack(module)
        self.engine = make_engine(self.pack, data, config)
        self.plan = Plan(members, module, config, self.device)
        self._check_batch()
        self.held_out = HeldOut(data, [member.held_out for member in members])
        self.results = [TrainingResult() for _ in members]
        self.kept: dict[int, Tensor] = {}  # best, or else final, weights by member
        self.active = list(range(len(members)))
        self.step = 0
        if checkpoint is not None:
            self._restore(checkpoint.load(self.device))

    def _check_batch(self) -> None:
        if self.plan.batch_size < self.engine.processes.size:
            raise DataError(
                "{n} rows in each step are too few for {size} processes, which share them. Start fewer "
                "processes, fit more rows, or raise {batch_size}.",
                n=self.plan.batch_size,
                size=self.engine.processes.size,
                batch_size=Argument("batch_size"),
            )

    def window(self) -> None:
        """Train up to the next evaluation, evaluate, decide who goes on, save."""
        self.module.train()
        first = self.step
        until = min(first + self.config.evaluate_every, self.config.max_steps)
        losses = []
        drawn = self._draw(until)
        for steps in one_ahead(drawn) if self.device.type == "cpu" else drawn:
            losses.append(self.engine.run(steps))
            self.step += len(steps)
        current().copy_from(0, self.pack.values, *self.pack.buffers)  # else rounding might part them
        train_losses = self._checked(torch.cat(losses), first).mean(dim=0).tolist()
        self._judge(train_losses)
        if self.checkpoint is not None:
            self.checkpoint.save(self._snapshot())

    def _draw(self, until: int) -> Iterator[Steps]:
        """The steps up to ``until``, a few at a time."""
        for first in range(self.step, until, self.plan.chunk):
            yield self.engine.prepare(self.plan.draw(first, min(self.plan.chunk, until - first)))

    def _checked(self, losses: Tensor, first: int) -> Tensor:
        values = losses.cpu()
        bad = torch.nonzero(~torch.isfinite(values))
        if len(bad):
            step, value = first + int(bad[0, 0]) + 1, float(values[tuple(bad[0])])
            raise TrainingError(
                f"The training loss became {value} at step {step} of "
                f"{self.config.max_steps}. Try a smaller learning_rate (now "
                f"{self.config.learning_rate:g}), standardize=True, or look for extreme values in X."
            )
        return values

    def _judge(self, train_losses: list[float]) -> None:
        """Write down the losses, keep the best weights, and let go of members that are done."""
        self.module.eval()
        by_row = self.held_out.row_losses(self.module)
        rate = learning_rate(self.config, self.step - 1, self.plan.steps_per_epoch)
        for position, member in enumerate(self.active):
            loss = float(by_row[position].mean()) if len(by_row[position]) else math.nan
            result = self.results[member]
            result.curve.step.append(self.step)
            result.curve.train_loss.append(train_losses[position])
            result.curve.held_out_loss.append(loss)
            result.curve.learning_rate.append(rate)
            result.n_steps = self.step
            self._update_best(position, member, loss)
        self._mark_lost(by_row)
        done = [self._is_done(self.results[member]) for member in self.active]
        self._let_go(done)

    def _update_best(self, position: int, member: int, loss: float) -> None:
        result = self.results[member]
        if self.config.patience is None or math.isnan(loss):
            result.best_step = self.step
            return
        if loss < result.best_loss:
            result.best_loss, result.best_step = loss, self.step
            self.kept[member] = self.pack.state(position)
        since = sum(step > result.best_step for step in result.curve.step)
        result.stopped_early = since >= self.config.patience and self.step >= self.config.min_steps

    def _mark_lost(self, by_row: list[Tensor]) -> None:
        judged = [math.ceil(share * self.config.max_steps) for share in _JUDGED_AT]
        previous = self.step - self.config.evaluate_every
        if not self.compete or not len(by_row[0]) or not any(previous < at <= self.step for at in judged):
            return
        leader = min(range(len(by_row)), key=lambda i: float(by_row[i].mean()))
        for position, member in enumerate(self.active):
            excess = (by_row[position] - by_row[leader]).double().cpu().numpy()
            behind, error = mean_and_error(excess)
            is_behind = is_clear(behind, error, _LOST_BY) and error > 0
            self.results[member].lost = bool(is_behind and behind > self._fell(member))

    def _fell(self, member: int) -> float:
        """How far the held-out loss came down in the second half of the steps taken."""
        curve = self.results[member].curve
        middle = next(
            loss for step, loss in zip(curve.step, curve.held_out_loss, strict=True) if 2 * step >= self.step
        )
        return middle - curve.held_out_loss[-1]

    def _is_done(self, result: TrainingResult) -> bool:
        return self.step >= self.config.max_steps or result.stopped_early or result.lost

    def _let_go(self, done: list[bool]) -> None:
        if not any(done):
            return
        for position, member in enumerate(self.active):
            if done[position] and member not in self.kept:
                self.kept[member] = self.pack.state(position)
        stay = [position for position, is_done in enumerate(done) if not is_done]
        self.active = [self.active[position] for position in stay]
        if stay:
            self.engine.keep(stay)
            self.plan.keep(stay)
            self.held_out.keep(stay)

    def note(self) -> str:
        shown = min(self.results, key=lambda result: (-result.n_steps, result.best_loss)).curve
        held_out = shown.held_out_loss[-1]
        running = f", {len(self.active)} of {len(self.results)} fits" if len(self.results) > 1 else ""
        return f"loss {shown.train_loss[-1]:.4f}" + (
            running if math.isnan(held_out) else f", held out {held_out:.4f}{running}"
        )

    def finish(self) -> list[TrainingResult]:
        del self.engine  # its moments are as large as the weights
        states = [self.kept.pop(member) for member in range(len(self.results))]
        self.pack.assemble(states, self.penalties)
        release(self.module)
        self.module.eval()
        return self.results

    def _snapshot(self) -> Snapshot:
        tensors = {f"kept/{member}": state for member, state in self.kept.items()}
        for position, member in enumerate(self.active):
            tensors[f"weights/{member}"] = self.pack.state(position)
            tensors[f"random/{member}"] = self.plan.generators[position].get_state()
        tensors |= {f"optimizer/{name}": value for name, value in self.engine.state().items()}
        record: dict[str, Any] = {
            "active": self.active,
            "results": [_plain(result) for result in self.results],
        }
        return Snapshot(self.step, not self.active, tensors, record)

    def _restore(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            with restoring(snapshot.file):
                self._adopt(snapshot)

    def _adopt(self, snapshot: Snapshot) -> None:
        parts = _by_prefix(snapshot.tensors)
        self.step = snapshot.step
        results = Saved(snapshot.record["results"], snapshot.file, "results")
        self.results = [_from_plain(one) for one in results.listed(len(self.results), len(self.results))]
        self.kept = {int(member): state for member, state in parts.get("kept", {}).items()}
        members = list(range(len(self.results)))
        self.active = [member for member in members if member in list(snapshot.record["active"])]
        if self.active != snapshot.record["active"] or not 0 <= self.step <= self.config.max_steps:
            raise ValueError(f"members {snapshot.record['active']} at step {self.step}")
        check_like(parts.get("kept", {}), dict.fromkeys(map(str, self.kept), self.pack.state(0)))
        if not {*self.kept, *self.active} >= set(members):
            raise ValueError("the weights of a member are not there")
        if not self.active:
            return
        check_like(parts["weights"], dict.fromkeys(map(str, self.active), self.pack.state(0)))
        self.engine.keep(self.active)
        self.plan.keep(self.active)
        self.held_out.keep(self.active)
        penalties = tuple(self.penalties[member] for member in self.active)
        self.pack.assemble([parts["weights"][str(member)] for member in self.active], penalties)
        check_like(parts["optimizer"], self.engine.state())
        self.engine.load_state(parts["optimizer"])
        for position, member in enumerate(self.active):
            self.plan.generators[position].set_state(parts["random"][str(member)])


def _plain(result: TrainingResult) -> dict[str, Any]:
    return {**vars(result), "curve": vars(result.curve)}


def _from_plain(record: Saved) -> TrainingResult:
    best = record.known("best_loss")
    return TrainingResult(
        Curve(**_curve_columns(record["curve"])),
        record["n_steps"].whole(),
        record["best_step"].whole(),
        math.inf if best is None else best.number(),
        record["stopped_early"].flag(),
        record["lost"].flag(),
    )


def _curve_columns(record: Saved) -> dict[str, list[Any]]:
    columns = {column.name: record[column.name].listed() for column in fields(Curve)}
    if len({len(column) for column in columns.values()}) > 1:
        record.refuse("lists of one length")
    steps = [value.whole() for value in columns.pop("step")]
    return {"step": steps} | {
        name: [value.number_or_nan() for value in column] for name, column in columns.items()
    }


def _by_prefix(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    parts: dict[str, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        prefix, rest = key.split("/", 1)
        parts.setdefault(prefix, {})[rest] = value
    return parts
