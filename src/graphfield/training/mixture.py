"""Fields that mix a few patterns, ``beta(z) = sum_r a_r(z) B_r``: the shares and the patterns in turn.

Given the shares, the patterns are a convex problem, solved for a path of penalties. Given the patterns, the
gate learns on a small table per row. The table of a row comes from patterns that were found without it
(cross-fitting): otherwise a gate follows the noise that its own rows left in the patterns. What held-out
rows like best among all rounds is taken; :mod:`finished_mixture` has the last step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphfield.exceptions import TrainingError
from graphfield.nn.fields import CoefField, FieldConfig, Samples, by_parts
from graphfield.nn.gates import GateField, mixed_field, mixture_table, split_gate
from graphfield.nn.long_rows import empty_rows, row_parts
from graphfield.nn.pack import load_member_arrays, member_arrays, packed, unpacked
from graphfield.nn.processes import current
from graphfield.nn.threads import spread
from graphfield.numbers import is_clear, mean_and_error
from graphfield.training.checkpoint import Stage, check_like, restoring
from graphfield.training.config import TrainingConfig
from graphfield.training.loop import train
from graphfield.training.mixture_state import Arrays, Mixture, Standing, from_snapshot, to_snapshot
from graphfield.training.penalty_path import best_penalty
from graphfield.training.plan import Member, Seeds, seen_rows
from graphfield.training.progress import progress_bar
from graphfield.training.sparse_patterns import Moments, PatternProblem, solve_each, total

# Numbers of patterns that are tried where none is given: each twice the one before, as long as held-out
# rows like it better by one standard error: in the end, movement must be clear as a whole.
RANKS = (8, 16, 32)
_EVIDENCE = 1.0
# Rounds at the first number of patterns, and after patterns were split.
ROUNDS, ROUNDS_AFTER_SPLIT = 6, 4
# Rounds without progress on held-out rows, and what counts as progress, before the rounds end.
_PATIENCE, _PROGRESS = 2, 2e-4
# Rows of the gate's table that one core fills in at a time.
_TABLE_ROWS = 1_024


@dataclass(frozen=True)
class MixtureTask:
    """One fit: its rows in parts for cross-fitting, its held-out rows, its seeds, its penalty."""

    parts: tuple[Tensor, ...]
    held_out: Tensor  # may be empty
    seeds: Seeds
    penalty: float | None  # None: the best on held-out rows
    start: Arrays | None = None  # weights of a gate to begin with
    labels: Tensor | None = None  # of the groups of all rows; None: each row is on its own
    nodes: Tensor | None = None  # the node that owns each column of x, where some own several
    answers: Tensor | None = None  # whether each column of x is explained by others, where some are not

    def moments(self, shares: Tensor, x: Tensor, rows: Tensor) -> Moments:
        moments = Moments.of(shares, x, self.nodes, rows)
        return moments if self.answers is None else moments.answered_by(self.answers)

    @property
    def rows(self) -> Tensor:
        return torch.cat(self.parts)

    def units(self, rows: Tensor) -> Tensor:
        """What goes together in any way: rows of one group, copies of one row."""
        return rows if self.labels is None else self.labels[rows]


@dataclass(frozen=True)
class Again:
    """How coefficients are found from other responses of the same rows, all that was chosen being as it is.

    ``features`` gives what patterns are mixed by, (n, R); ``find`` takes moments with it, and with one alone.
    """

    features: Callable[[], Tensor]
    find: Callable[[Moments, Moments], CoefField]


class MixtureFits:
    """Fits of all tasks, their gates together, in rounds at one rank after the other.

    A task is open until more patterns do not help it. With a ``checkpoint``, a killed fit goes on.
    """

    def __init__(
        self,
        config: FieldConfig,
        data: Samples,
        tasks: Sequence[MixtureTask],
        training: TrainingConfig,
        ranks: Sequence[int],
        checkpoint: Stage | None = None,
    ) -> None:
        self.config, self.data, self.tasks, self.training = config, data, tasks, training
        self.ranks, self.checkpoint = ranks, checkpoint
        self.standings = [Standing() for _ in tasks]
        self.level = self.rounds = 0
        snapshot = None if checkpoint is None else checkpoint.load(data.x.device)
        if snapshot is not None:
            with restoring(snapshot.file):
                self.standings, self.level, self.rounds = from_snapshot(snapshot)
                self._check_standings()

    def _check_standings(self) -> None:
        """What a file says must be where a fit of these tasks can stand."""
        if len(self.standings) != len(self.tasks) or self.level > len(self.ranks):
            raise ValueError(f"it is of {len(self.standings)} fits at level {self.level}")
        rank = 0 if self.level == len(self.ranks) else self.ranks[self.level]
        for standing in self.standings:
            if standing.patterns is not None:
                self._check_patterns(standing.patterns, rank)
            for mixture in (standing.best, standing.chosen):
                if mixture is not None:
                    self._check_patterns(mixture.patterns, mixture.rank)
                    self._gate(mixture.gate, mixture.rank)
            if rank and standing.is_open:
                if self.rounds:
                    self._gate(standing.gate, rank)
            elif standing.chosen is None:
                raise ValueError("what was chosen is not there")

    def _check_patterns(self, patterns: Tensor, rank: int) -> None:
        if rank not in self.ranks:
            raise ValueError(f"{rank} patterns are none of {list(self.ranks)}")
        wanted = self.data.x.new_empty(rank, self.config.n_nodes, self.config.n_nodes)
        check_like({"patterns": patterns}, {"patterns": wanted})

    @property
    def open(self) -> list[int]:
        return [i for i, standing in enumerate(self.standings) if standing.is_open]

    def run(self) -> list[Standing]:
        """Where each task stands at the end; ``chosen`` is its best mixture."""
        while self.level < len(self.ranks) and self.open:
            self._rounds_at(self.ranks[self.level])
            for i in self.open:
                self._settle(i)
            self.level, self.rounds = self.level + 1, 0
            self._save()
        return self.standings

    def _rounds_at(self, rank: int) -> None:
        most = ROUNDS if self.standings[self.open[0]].chosen is None else ROUNDS_AFTER_SPLIT
        description = current().only_first(f"Graphs, {rank} patterns")
        with progress_bar(description, most, unit="rounds") as advance:
            while self.rounds < most:
                if self.rounds == 0:
                    for i in self.open:
                        self.standings[i].gate = _arrays(self._first_gate(i, rank))
                moving = [i for i in self.open if self.standings[i].stale < _PATIENCE]
                if not moving:
                    break
                last = self.rounds + 1 == most
                found = [self._improve_patterns(i, rank, last) for i in moving]
                self.rounds += 1
                losses = [s.best.loss for s in self.standings if s.best is not None]
                advance(self.rounds, f"held out {min(losses):.4f}")
                if not last:
                    self._improve_gates(moving, found, rank)
                    self._save()

    def _save(self) -> None:
        if self.checkpoint is not None:
            self.checkpoint.save(to_snapshot(self.standings, self.level, self.rounds))

    def _first_gate(self, i: int, rank: int) -> GateField:
        """A gate that knows nothing, one that is given, or the best one with half the patterns, split."""
        task, smaller = self.tasks[i], self.standings[i].chosen
        if smaller is not None and rank == 2 * smaller.rank:
            generator = torch.Generator().manual_seed(task.seeds.weights + rank)
            return split_gate(self._gate(smaller.gate, smaller.rank), generator)
        return new_gate(task, rank, self.config, self.data)

    def _improve_patterns(self, i: int, rank: int, last: bool) -> list[Tensor]:
        """Patterns for the shares of the moment; but for the last round, also without each part."""
        task, standing, x = self.tasks[i], self.standings[i], self.data.member(i).x
        shares = shares_of(self._gate(standing.gate, rank), self.data)
        parts = [task.moments(shares, x, rows) for rows in task.parts]
        held_out = task.moments(shares, x, task.held_out) if len(task.held_out) else None
        together = total(parts)
        if not bool(torch.isfinite(together.gram).all()):
            raise TrainingError(
                "Products of node values are too large to compute with. Use standardize=True, and look for "
                "extreme values in X."
            )
        others = problems_without(parts, together)
        penalty, patterns = self._choose(task, standing, together, parts, others, held_out)
        self._write_down(i, rank, penalty, patterns, together, held_out)
        return [] if last else cross_fitted(others, patterns, penalty)

    def _choose(
        self,
        task: MixtureTask,
        standing: Standing,
        together: Moments,
        parts: Sequence[Moments],
        others: Sequence[PatternProblem],
        held_out: Moments | None,
    ) -> tuple[float, Tensor]:
        """The penalty that held-out rows, or else the parts in turn, like best; patterns from all rows."""
        problem = PatternProblem(together)
        if task.penalty is not None:
            return task.penalty, problem.solve(task.penalty, standing.patterns)
        if held_out is not None:
            penalty, (patterns,) = best_penalty([(problem, held_out)], standing.penalty)
            return penalty, patterns
        penalty, found = best_penalty(list(zip(others, parts, strict=True)), standing.penalty)
        return penalty, problem.solve(penalty, found[0])

    def _write_down(
        self, i: int, rank: int, penalty: float, patterns: Tensor, together: Moments, held_out: Moments | None
    ) -> None:
        standing, trace = self.standings[i], self.standings[i].trace
        first = standing.best is None
        step = (trace.step[-1] if trace.step else 0) + (0 if first else self.training.max_steps)
        train_loss = together.error(patterns)
        loss = train_loss if held_out is None else held_out.error(patterns)
        trace.step.append(step)
        trace.rank.append(rank)
        trace.penalty.append(penalty)
        trace.train_loss.append(train_loss)
        trace.held_out_loss.append(None if held_out is None else loss)
        standing.patterns, standing.penalty = patterns, penalty
        progress = standing.best is None or loss < standing.best.loss * (1 - _PROGRESS)
        standing.stale = 0 if progress else standing.stale + 1
        if standing.best is None or loss < standing.best.loss:
            gate = {name: value.clone() for name, value in standing.gate.items()}
            standing.best = Mixture(gate, patterns, rank, penalty, loss, step)

    def _improve_gates(self, moving: list[int], found: list[list[Tensor]], rank: int) -> None:
        gates = [self._gate(self.standings[i].gate, rank) for i in moving]
        tasks = [self.tasks[i] for i in moving]
        turn = 1_000 * self.level + self.rounds
        members = [Member(t.rows, t.held_out, t.seeds.order + turn, t.seeds.dropout + turn) for t in tasks]
        known = [(self.data.member(i).x, self.tasks[i], own) for i, own in zip(moving, found, strict=True)]
        data, members = gate_table(self.data, members, self.training, known)
        together = packed(gates)
        train(together, data, members, self.training, description=None)
        for i, gate in zip(moving, unpacked(together), strict=True):
            self.standings[i].gate = _arrays(gate)

    def _gate(self, arrays: Arrays, rank: int) -> GateField:
        return gate_of(arrays, rank, self.config, self.data.x.device)

    def _settle(self, i: int) -> None:
        """Compare with fewer patterns; a task goes on as long as more of them clearly help.

        Without held-out rows nothing could tell whether they do, so there the first number is kept.
        """
        standing = self.standings[i]
        new, old = standing.best, standing.chosen
        assert new is not None
        is_better = old is None or self._is_better(i, new, old)
        standing.is_open = is_better and len(self.tasks[i].held_out) > 1
        if is_better:
            standing.chosen = new
        standing.best, standing.patterns, standing.stale = None, None, 0
        standing.penalty = new.penalty

    @torch.no_grad()
    def _is_better(self, i: int, new: Mixture, old: Mixture) -> bool:
        """Whether held-out rows prefer it by more than a standard error, row by row."""
        task, data = self.tasks[i], self.data.member(i)
        fields = (mixed_field(self._gate(one.gate, one.rank), one.patterns) for one in (new, old))
        after, before = (by_parts(field.row_losses, data, task.held_out, dim=1)[0] for field in fields)
        gain = (before - after).double()
        return bool(is_clear(*mean_and_error(gain.cpu().numpy()), _EVIDENCE))


def gate_of(arrays: Arrays, rank: int, config: FieldConfig, device: torch.device) -> GateField:
    gate = GateField(replace(config, rank=rank), torch.Generator()).to(device)
    load_member_arrays(gate, arrays)
    return gate.eval()


def new_gate(task: MixtureTask, rank: int, config: FieldConfig, data: Samples) -> GateField:
    """A gate that knows nothing, or the one that is given."""
    if task.start is not None:
        return gate_of(task.start, rank, config, data.x.device)
    generator = torch.Generator().manual_seed(task.seeds.weights)
    gate = GateField(replace(config, rank=rank), generator).to(data.x.device)
    gate.spread(data)
    return gate


def problems_without(parts: Sequence[Moments], together: Moments) -> list[PatternProblem]:
    """Without each of the parts."""
    return spread(lambda part: PatternProblem(together.without(part)), parts, together.gram.device)


def cross_fitted(others: Sequence[PatternProblem], patterns: Tensor, penalty: float) -> list[Tensor]:
    """Patterns found without each of the parts, and those from all, for the rows held out."""
    more = (len(others) / (len(others) - 1)) ** 0.5  # as the noise of fewer rows asks for
    return [*solve_each(others, penalty * more, [patterns] * len(others)), patterns]


def gate_table(
    data: Samples,
    members: Sequence[Member],
    training: TrainingConfig,
    found: Sequence[tuple[Tensor, MixtureTask, Sequence[Tensor]]],
) -> tuple[Samples, list[Member]]:
    """What gates are trained on, in place of x: for each member its line of every row that training will see.

    The line of a row comes from patterns that were found without its part. ``found`` has node values, parts
    and their patterns; one for all members, or one for each.
    """
    members, rows = seen_rows(members, training)
    if rows is not None:
        data = replace(data, x=data.x.new_empty(len(data), 0)).take(rows)
    else:
        rows = torch.arange(len(data), device=data.x.device)
    tables = [_lines_of(x, task, own, rows) for x, task, own in found]
    return replace(data, x=tables[0] if len(tables) == 1 else torch.stack(tables)), members


def _lines_of(x: Tensor, task: MixtureTask, found: Sequence[Tensor], rows: Tensor) -> Tensor:
    rank = len(found[0])
    table = empty_rows(len(rows), rank * (rank + 1) + 1, x).zero_()
    part_of = torch.full((len(x),), len(found), dtype=torch.int8, device=x.device)
    for part, own in enumerate((*task.parts, task.held_out)):
        part_of[own] = part
    part_of = part_of[rows]

    def fill(piece: tuple[Tensor, Tensor]) -> None:
        places, own = piece
        table[places] = mixture_table(own, x[rows[places]])

    step, mine = len(x) if x.is_cuda else _TABLE_ROWS, current().own_part(len(rows))
    pieces = [
        (places, own)
        for part, own in enumerate(found)
        for places in (torch.nonzero(part_of[mine] == part)[:, 0] + mine.start).split(step)
    ]
    spread(fill, pieces, x.device)
    current().fill_rows(table)
    return table


@torch.no_grad()
def shares_of(gate: GateField, data: Samples) -> Tensor:
    """a(z) of every row, (n, R)."""
    shares = empty_rows(len(data), gate.rank, data.numeric)
    for rows in row_parts(current().own_part(len(data)), data.x.device):
        shares[rows] = gate(data.numeric[rows][None], data.codes[rows][None])[0]
    current().fill_rows(shares)
    return shares


def _arrays(gate: GateField) -> Arrays:
    return {name: value.detach().clone() for name, value in member_arrays(gate).items()}
