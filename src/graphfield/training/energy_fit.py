"""From rows to the energies of a log-density: which pairs, of which degree, and how they move with z."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from scipy.special import chdtrc
from torch import Tensor

from graphfield.graphs.false_discoveries import q_values
from graphfield.graphs.pair_tests import FALSE_SHARE
from graphfield.nn.energies import EnergyConfig, EnergyField, PairTerms
from graphfield.nn.fields import Samples
from graphfield.nn.threads import one_thread_each
from graphfield.solvers.penalties import compare_rows
from graphfield.training.config import TrainingConfig
from graphfield.training.loop import TrainingResult, train
from graphfield.training.pair_energies import EnergyProblem, ScoreMoments, best_energies, moving_pairs
from graphfield.training.plan import Member, Seeds

_STEPS, _RATE, _EVALUATIONS, _PATIENCE, _BATCH = 400, 5e-3, 40, 10, 512


@dataclass(frozen=True)
class EnergyTask:
    """The rows, features of z that pairs may move with (n, m), seeds, and the degrees to try."""

    config: EnergyConfig
    data: Samples
    features: Tensor
    rows: Tensor
    held_out: Tensor
    seeds: Seeds
    degrees: Sequence[int]
    max_steps: int | None

    def held_out_losses(self, network: EnergyField) -> Tensor:
        with torch.no_grad():
            return network.eval().row_losses(self.data.take(self.held_out[None]))[0].double()


@dataclass(frozen=True)
class EnergyFit:
    """A network, and how it was found."""

    network: EnergyField
    penalty: float
    moves: bool
    tried: list[dict[str, Any]]  # one for each degree
    curve: dict[str, list[Any]]


@one_thread_each()
def fit_energies(task: EnergyTask) -> EnergyFit:
    """A convex problem says which pairs have terms, the loop how they move with z; held-out rows judge."""
    fits = [_fit_degree(task, degree) for degree in task.degrees]
    losses = [task.held_out_losses(fit.network) for fit in fits]
    chosen = fits[compare_rows((-own.cpu().numpy() for own in losses), ddof=0)[1]]
    return replace(chosen, tried=[line for fit in fits for line in fit.tried])


def _fit_degree(task: EnergyTask, degree: int) -> EnergyFit:
    still, penalty = _fit_still(task, degree)
    network, result = _train(task, _with_movers(task, still))
    before, after = (float(task.held_out_losses(own).mean()) for own in (still, network))
    moves = after < before
    line = {"degree": degree, "held_out_loss": min(before, after), "still_loss": before}
    line |= {"pairs": (network if moves else still).n_pairs, "penalty": penalty}
    return EnergyFit(network if moves else still, penalty, moves, [line], vars(result.curve))


def _fit_still(task: EnergyTask, degree: int) -> tuple[EnergyField, float]:
    """The same coefficients at all z, and their penalty."""
    terms, x = PairTerms(degree), task.data.x
    one = x.new_ones(len(x), 1)
    known, new = (ScoreMoments.of(one[rows], x[rows], terms) for rows in (task.rows, task.held_out))
    problem = EnergyProblem(known)
    penalty, lines = best_energies(problem, new)
    found = problem.coefficients(lines)
    pairs, own = found[:, : known.n_pairs].view(problem.shape)[:, 0], found[:, known.n_pairs :]
    return _still_network(task, degree, pairs, own, pairs.abs().sum(dim=1) > 0), penalty


def _still_network(task: EnergyTask, degree: int, pairs: Tensor, own: Tensor, there: Tensor) -> EnergyField:
    """Coefficients of pairs (p, T, p) that are ``there`` (p, p), and of nodes (p, O)."""
    first, second = torch.nonzero(torch.triu(there, 1)).T
    places = tuple((int(j), int(k)) for j, k in zip(first, second, strict=True))
    config = replace(task.config, degree=degree, pairs=places)
    network = EnergyField(config, torch.Generator().manual_seed(task.seeds.weights)).to(own.device)
    network.begin_at(pairs[first, :, second], own)
    return network.eval()


@torch.no_grad()
def _with_movers(task: EnergyTask, still: EnergyField) -> EnergyField:
    """With pairs that clearly move with z, at zero so far; pairs that are not clear will not move."""
    rows, p = task.data.take(task.rows[None]), task.config.n_nodes
    pairs, own = still(rows.numeric, rows.codes)
    added = still.pair_slopes(pairs, rows.x)
    slopes = still.slopes(own, added, rows.x)
    movers = own.new_zeros(p, p, dtype=torch.bool)
    if task.features.shape[1]:
        movers = moving_pairs(slopes[0], rows.x[0], task.features[task.rows], still.terms)
    first, second = still.get_buffer("ends")
    clear = movers.clone()
    clear[first, second] |= _are_clear(still.pair_gains(slopes, added, rows.x)[0], still.terms.size)
    there = movers.clone()
    there[first, second] = True
    known = own.new_zeros(p, still.terms.size, p)
    known[first, :, second] = pairs[0, 0]
    network = _still_network(task, still.config.degree, known, own[0, 0], there | there.T)
    network.hold_still(~clear[tuple(network.get_buffer("ends"))])
    return network


def _are_clear(gains: Tensor, freedom: int) -> Tensor:
    """Pairs (E,) whose gains (n, E) stand clear of their noise, given that they were found in these rows."""
    total, squares = gains.sum(dim=0).clamp(min=0), gains.square().sum(dim=0).clamp(min=1e-12)
    p_values = chdtrc(freedom, (total.square() / squares).double().cpu().numpy())
    return torch.as_tensor(q_values(p_values) <= FALSE_SHARE, device=gains.device)


def _train(task: EnergyTask, network: EnergyField) -> tuple[EnergyField, TrainingResult]:
    steps, n = task.max_steps or _STEPS, len(task.rows)
    batch = max(2, min(_BATCH, n // 4))
    every = max(1, steps // _EVALUATIONS)
    training = TrainingConfig(batch, steps, steps // 4, every, _RATE, "cosine", _PATIENCE)
    member = Member(task.rows, task.held_out, task.seeds.order, task.seeds.dropout)
    (result,) = train(network, task.data, [member], training, description="Energies")
    network.embedding.settle_untrained(task.data.codes[task.rows])
    return network, result
