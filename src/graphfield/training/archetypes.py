"""Archetypes and the shares in which they are mixed, from a network that mixes patterns of coefficients.

Patterns of coefficients may be anything, archetypes must be positive definite, so shares of patterns are no
shares of archetypes. But patterns tell which rows have a network in common. Archetypes are put at the extreme
points of the shares that rows have: each is then the network of some rows. How many of these are needed is
decided by the likelihood of held-out rows. A new gate learns the shares that rows have of these points, and
is then improved by the likelihood itself, in turn with the archetypes, as long as held-out rows agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from graphfield.nn.fields import FieldConfig, Samples
from graphfield.nn.gates import GateField, LikelihoodGate
from graphfield.nn.pack import load_member_arrays, member_arrays
from graphfield.nn.threads import one_thread_each
from graphfield.solvers.penalties import PathSearch, compare_rows
from graphfield.training.config import TrainingConfig
from graphfield.training.joint_precision import JointProblem, best_penalty, cells_of, row_losses
from graphfield.training.loop import train
from graphfield.training.mixture import shares_of
from graphfield.training.plan import Member
from graphfield.training.progress import progress_bar

# Numbers of archetypes that are tried, and how many in a row may fail to help before the next are not.
NUMBERS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
_PATIENCE = 2
# Extreme points nearer to the hull of the others than this (shares go from 0 to 1) are no archetypes.
_NEAR = 0.05
# Rounds of gate and archetypes in turn, and the gate's part of one: every row needs a determinant.
_ROUNDS = 3
_STEPS, _BATCH = 300, 128


@dataclass(frozen=True)
class ArchetypeTask:
    """One fit: node values in standard units, rows, seeds; None means chosen on held-out rows."""

    data: Samples
    train: Tensor
    held_out: Tensor
    seed: int
    number: int | None
    penalty: float | None
    everything: Tensor  # rows from which archetypes are found once all is chosen

    @cached_property
    def x(self) -> Tensor:
        return self.data.x.double()


@dataclass(frozen=True)
class ArchetypeFit:
    """A gate, its archetypes (R, p, p), and what held-out rows said of each number of them."""

    gate: GateField
    matrices: Tensor
    penalty: float
    table: dict[str, list[Any]]


@one_thread_each()
def fit_archetypes(
    task: ArchetypeTask, patterns: Tensor, config: FieldConfig, training: TrainingConfig
) -> ArchetypeFit:
    """``patterns`` are the shares (n, R) of a fitted network; ``config``, ``training`` those of its gate."""
    points = extreme_points(patterns[task.train].double())
    number, penalty, table = _choose_number(task, patterns.double(), points)
    config = replace(config, rank=number)
    gate = GateField(config, torch.Generator().manual_seed(task.seed)).to(task.data.x.device)
    if number > 1:
        gate = _taught(gate, coordinates(patterns.double(), points[:number]), task, training)
        gate, penalty = _improved(gate, penalty, task, training)
    shares = shares_of(gate.eval(), task.data).double()
    everything = task.everything
    problem = JointProblem(shares[everything], task.x[everything])
    less = penalty * (len(task.train) / len(everything)) ** 0.5
    # From above, as every solution before: the end of a path depends a little on where it came from.
    first = problem.solve(2 * less, problem.start())
    return ArchetypeFit(gate, problem.matrices(problem.solve(less, first)), penalty, table)


def extreme_points(shares: Tensor) -> Tensor:
    """Shares (n, R) to the points (k, R) of which all others are mixtures, the most extreme first.

    Each is the mean of a cell of rows, so that a single odd row is none. By successive projection: the
    longest vector is one; what is left of the others after projecting it out gives the next.
    """
    cells, _ = cells_of(shares)
    left = cells.clone()
    found: list[int] = []
    for _ in range(cells.shape[1]):
        length = left.norm(dim=1)
        place = int(length.argmax())
        if found and float(length[place]) < _NEAR:
            break
        found.append(place)
        direction = left[place] / length[place]
        left = left - (left @ direction)[:, None] * direction
    return cells[found]


def coordinates(shares: Tensor, points: Tensor) -> Tensor:
    """Shares of the points in each row, (n, k): exact inside their hull, nearby outside."""
    own = (shares @ torch.linalg.pinv(points)).clamp(min=0) + 1e-9
    return own / own.sum(dim=1, keepdim=True)


def _choose_number(
    task: ArchetypeTask, patterns: Tensor, points: Tensor
) -> tuple[int, float, dict[str, list[Any]]]:
    """The fewest archetypes that held-out rows do not find clearly less likely than the best number."""
    numbers = [number for number in NUMBERS if number <= len(points)]
    if task.number is not None:
        numbers = [min(task.number, len(points))]
    x = task.x

    def attempt(number: int, _: tuple[float, Tensor] | None) -> tuple[float, tuple[float, Tensor]]:
        shares = coordinates(patterns, points[:number])
        problem = JointProblem(shares[task.train], x[task.train])
        held_out = (shares[task.held_out], x[task.held_out])
        penalty, matrices = _solved(problem, held_out, task.penalty)
        by_row = row_losses(matrices, *held_out)
        advance(numbers.index(number) + 1, f"{number} archetypes")
        return float(by_row.mean()), (penalty, by_row)

    with progress_bar("Archetypes", len(numbers), unit="numbers") as advance:
        search = PathSearch(numbers, attempt).walk(0, lambda s: s.worse >= _PATIENCE)
    penalties, losses = zip(*(one.solution for one in search.tried.values()), strict=True)
    found, place = compare_rows((-own.cpu().numpy() / 2 for own in losses), ddof=0)
    table = {"archetypes": numbers[: len(losses)]}
    table |= dict(zip(("log_likelihood", "behind", "standard_error"), found.T.tolist(), strict=True))
    return numbers[place], penalties[place], {**table, "penalty": list(penalties)}


def _solved(
    problem: JointProblem, held_out: tuple[Tensor, Tensor], fixed: float | None, known: float | None = None
) -> tuple[float, Tensor]:
    """Penalty and archetypes: the best on held-out rows, or for a penalty that is fixed."""
    if fixed is None:
        return best_penalty(problem, held_out, known)
    return fixed, problem.matrices(problem.solve(fixed, problem.start()))


def _taught(gate: GateField, shares: Tensor, task: ArchetypeTask, training: TrainingConfig) -> GateField:
    """A gate that has learned these shares: squared errors, written as the table of a gate."""
    rank = shares.shape[1]
    among = torch.eye(rank, device=shares.device).flatten().expand(len(shares), -1)
    own = shares.to(task.data.x.dtype)
    table = torch.cat([among, own, own.square().sum(dim=1, keepdim=True)], dim=1)
    _train(gate, table, task, training, turn=0)
    return gate


def _improved(
    gate: GateField, penalty: float, task: ArchetypeTask, training: TrainingConfig
) -> tuple[GateField, float]:
    """Archetypes and gate in turn by the likelihood; the gate and penalty that held-out rows like best."""
    training = replace(
        training,
        batch_size=min(training.batch_size, _BATCH),
        max_steps=min(training.max_steps, _STEPS),
        min_steps=min(training.max_steps, _STEPS) // 3,
        evaluate_every=max(1, min(training.max_steps, _STEPS) // 10),
    )
    x, best = task.x, None
    with progress_bar("Shares", _ROUNDS + 1, unit="rounds") as advance:
        for turn in range(_ROUNDS + 1):
            shares = shares_of(gate.eval(), task.data).double()
            problem = JointProblem(shares[task.train], x[task.train])
            held_out = (shares[task.held_out], x[task.held_out])
            penalty, matrices = _solved(problem, held_out, task.penalty, penalty)
            loss = float(row_losses(matrices, *held_out).mean())
            advance(turn + 1, f"held out {-loss / 2:.4f}")
            if best is not None and loss >= best[0]:
                break
            best = (loss, {k: v.detach().clone() for k, v in member_arrays(gate).items()}, penalty)
            if turn < _ROUNDS:
                gate = _by_likelihood(gate, matrices, task, training, turn + 1)
    assert best is not None
    result = GateField(gate.config, torch.Generator()).to(x.device)
    load_member_arrays(result, best[1])
    return result.eval(), best[2]


def _by_likelihood(
    gate: GateField, matrices: Tensor, task: ArchetypeTask, training: TrainingConfig, turn: int
) -> GateField:
    """The gate after some steps with these archetypes held fixed."""
    improved = LikelihoodGate(gate.config, matrices)
    load_member_arrays(improved, member_arrays(gate))
    powers = [((task.x @ matrix) * task.x).sum(dim=1) for matrix in matrices]
    _train(improved.to(task.data.x.device), torch.stack(powers, dim=1).float(), task, training, turn)
    return improved


def _train(gate: GateField, table: Tensor, task: ArchetypeTask, training: TrainingConfig, turn: int) -> None:
    member = Member(task.train, task.held_out, task.seed + 2 * turn + 1, task.seed + 2 * turn + 2)
    train(gate, replace(task.data, x=table), [member], training, description=None)
