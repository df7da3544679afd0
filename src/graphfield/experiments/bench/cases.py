"""The comparisons that ``graphfield bench`` runs, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from graphfield import metrics
from graphfield.estimators.dnncgm import DNNCGM
from graphfield.estimators.dnncgm_setup import DEFAULT_PENALTY
from graphfield.estimators.together import fit_together
from graphfield.experiments.bench import peers
from graphfield.experiments.bench.child import step_memory
from graphfield.experiments.bench.machine import MatrixProduct, cuda_peak_mb
from graphfield.experiments.bench.ours import our_curve, our_steps
from graphfield.experiments.bench.problems import (
    FMRI,
    FMRI_EPOCHS,
    G1_SMALL_BATCH,
    G1_STEP,
    P268,
    P1000,
    Problem,
)
from graphfield.experiments.bench.records import Check, Record, Timing, first_at_or_below, interleaved, timed
from graphfield.experiments.bench.straightforward import StraightforwardTraining
from graphfield.experiments.specs import paper_recipe
from graphfield.simulate import make_setting

CPU = torch.device("cpu")
_MS = 1e3
_EPOCHS = 100  # of the straightforward recipe on G1
_RAW: dict[str, Any] = {"center": "none", "standardize": False}  # so that losses mean the same
_WEIGHT_NOISE = {"good": 0.03, "poor": 0.1}  # added to the true coefficients: AUPRC .98 and .54


@dataclass(frozen=True)
class Effort:
    """How much to measure: ``quick`` uses fewer rounds and, where said, smaller problems."""

    quick: bool

    @property
    def rounds(self) -> int:
        return 5 if self.quick else 9


@dataclass(frozen=True)
class Case:
    """A comparison; ``device`` is "cpu", "cuda", or "any" where the device does not matter."""

    device: str
    run: Callable[[Effort], list[Record]]


def cpu_step(
    name: str, problem: Problem, full_steps: tuple[int, int], required: float, share: float | None
) -> Case:
    def run(effort: Effort) -> list[Record]:
        steps = (full_steps[0] // 2, full_steps[1] // 2) if effort.quick else full_steps
        X, Z = problem.data()
        reference = StraightforwardTraining(problem, X, Z, CPU)
        mine = our_steps(problem, X, Z, CPU)
        product = MatrixProduct(CPU)
        rates: list[float] = []

        timing = interleaved(
            lambda: mine(steps[0]),
            lambda: reference.steps(steps[1]),
            effort.rounds,
            steps,
            between=lambda: rates.append(product.rate(2)),  # a shared machine's rate moves
        )
        limits = [problem.head_flops / rate for rate in rates]
        reached = median(limit / t for limit, t in zip(limits, timing.ours, strict=True))
        memory = step_memory(problem)
        checks = () if share is None else (Check("share of the matrix-product rate", reached, share),)
        details = {
            "limit_ms": median(limits) * _MS,
            "share_of_limit": reached,
            "reference_compute_only_ms": timed(lambda: reference.compute_only(steps[1])) / steps[1] * _MS,
            "ours_with_default_penalty_ms": _penalised_ms(problem, X, Z, CPU, steps[0]),
        }
        used = memory["ours"], memory["reference"]
        return [_record_step(timing, name, "CPU", problem, required, used, checks, details)]

    return Case("cpu", run)


def _record_step(
    timing: Timing,
    name: str,
    machine: str,
    problem: Problem,
    required: float,
    memory: tuple[float, float],
    checks: tuple[Check, ...],
    details: dict[str, Any],
) -> Record:
    title = f"{machine}, one step, p={problem.n_nodes}, h={problem.hidden}, batch {problem.batch}"
    used = {"memory_ours": memory[0], "memory_reference": memory[1]}
    return timing.record(
        name, title, "ms", scale=_MS, required=required, **used, checks=checks, details=details
    )


def gpu_step(name: str, problem: Problem, required: float, memory_share: float | None) -> Case:
    def run(effort: Effort) -> list[Record]:
        device = torch.device("cuda")
        X, Z = problem.data()
        memory = _cuda_memory(problem, X, Z, device)
        reference = StraightforwardTraining(problem, X, Z, device)
        mine = our_steps(problem, X, Z, device)
        epoch = min(problem.steps_per_epoch, 40)  # a whole epoch: its start is part of training
        steps = (10 * epoch, epoch)
        timing = interleaved(lambda: mine(steps[0]), lambda: reference.steps(steps[1]), effort.rounds, steps)
        alone = timed(lambda: reference.compute_only(steps[1])) / steps[1]
        limit = problem.head_flops / MatrixProduct(device, "bfloat16").rate()
        ours = median(timing.ours)
        checks: tuple[Check, ...] = ()
        if memory_share is not None:
            share = memory[0] / memory[1]
            checks = (Check("share of the reference's memory", share, memory_share, at_most=True),)
        details = {
            "limit_ms": limit * _MS,
            "times_the_limit": ours / limit,
            "share_of_limit": limit / ours,
            "reference_compute_only_ms": alone * _MS,
            "ours_with_default_penalty_ms": _penalised_ms(problem, X, Z, device, steps[0]),
        }
        return [_record_step(timing, name, "GPU", problem, required, memory, checks, details)]

    return Case("cuda", run)


def _penalised_ms(problem: Problem, X: Any, Z: Any, device: torch.device, steps: int) -> float:
    """Our step with the penalty of a full head; the straightforward step has none."""
    run = our_steps(problem, X, Z, device, DEFAULT_PENALTY)
    run(steps)
    return timed(lambda: run(steps)) / steps * _MS


def _cuda_memory(problem: Problem, X: Any, Z: Any, device: torch.device) -> tuple[float, float]:
    """Peak of ours and of the reference: model, optimiser, data on the device and a few steps."""

    def ours() -> object:
        steps = our_steps(problem, X, Z, device)
        steps(5)
        return steps

    def reference() -> object:
        training = StraightforwardTraining(problem, X, Z, device)
        training.compute_only(5)
        return training

    return cuda_peak_mb(ours), cuda_peak_mb(reference)


def time_to_loss(effort: Effort) -> list[Record]:
    """Seconds until the held-out loss that the straightforward recipe ends with, same held-out rows."""
    n, n_held_out, rounds = (1_000, 300, 1) if effort.quick else (10_000, 1_000, 3)
    kinds = ("defaults",) if effort.quick else ("defaults", "full-head", "recipe")
    races: dict[str, list[Race]] = {kind: [] for kind in kinds}
    for seed in range(rounds):
        sim = make_setting("G1", n + n_held_out, seed)
        X, Z = sim.X.astype(np.float32), sim.Z.astype(np.float32)
        rows = (X[:n], Z[:n], X[n:], Z[n:])
        problem = replace(G1_STEP, n_rows=n)
        reference = StraightforwardTraining(problem, *rows[:2], CPU, seed)
        seconds, target = reference.train(_EPOCHS, *rows[2:])[-1]
        recipe = paper_recipe("G1", n) | {"max_steps": _EPOCHS * problem.steps_per_epoch}
        full = DNNCGM(**_RAW, rank=None)
        models = {"defaults": DNNCGM(**_RAW), "full-head": full, "recipe": DNNCGM(**recipe)}
        for kind in races:
            curve = our_curve(models[kind], *rows, CPU, target)
            races[kind].append(Race(curve, seconds, target))
    titles = {"defaults": "our defaults", "full-head": "our full head", "recipe": "the paper's settings"}
    # The paper's settings end at the same loss up to chance, so that only the defaults must get there.
    required = {"defaults": None if effort.quick else 8.0, "full-head": None, "recipe": None}
    return [_race_record(kind, f"(n={n:,}), {titles[kind]}", races[kind], required[kind]) for kind in races]


@dataclass(frozen=True)
class Race:
    """Our loss curve against the time and final loss of the straightforward recipe."""

    curve: list[tuple[float, float]]
    seconds: float
    target: float

    @property
    def reached(self) -> float | None:
        return first_at_or_below(self.curve, self.target)

    @property
    def ratio(self) -> float:
        """Zero where the loss was not reached."""
        return 0.0 if self.reached is None else self.seconds / self.reached


def _race_record(kind: str, title: str, races: list[Race], required: float | None) -> Record:
    ratios = [race.ratio for race in races]
    return Record(
        f"cpu-time-to-loss/{kind}",
        f"CPU, time to the straightforward recipe's final held-out loss on G1 {title}",
        median(race.curve[-1][0] for race in races),
        median(race.seconds for race in races),
        "s",
        median(ratios),
        (min(ratios), max(ratios)),
        required=required,
        details={
            "targets": [race.target for race in races],
            "our_best": [min(loss for _, loss in race.curve) for race in races],
            "reached": f"in {sum(race.reached is not None for race in races)} of {len(races)} runs",
        },
    )


def fmri(effort: Effort) -> list[Record]:
    """The whole training, data transfer included; the straightforward loop is timed for some steps."""
    device = torch.device("cuda")
    X, Z = FMRI.data()
    n_steps = FMRI_EPOCHS * FMRI.steps_per_epoch
    counted = 50 if effort.quick else 200
    memory = _cuda_memory(FMRI, X, Z, device)
    reference = StraightforwardTraining(FMRI, X, Z, device)
    reference.steps(20)
    theirs = timed(lambda: reference.steps(counted)) / counted * n_steps
    ours = timed(lambda: our_steps(FMRI, X, Z, device)(n_steps))
    title = "GPU, the fMRI problem: 439,200 x 268, q=1, 50 epochs, batch 1024"
    note = f"straightforward: {counted} steps measured, extrapolated to {n_steps:,}; ours in full"
    used = {"memory_ours": memory[0], "memory_reference": memory[1]}
    checks = (Check("seconds", ours, 10.0, at_most=True),)
    timing = Timing([ours], [theirs])
    return [
        timing.record("gpu-fmri", title, "s", required=14.0, **used, checks=checks, details={"note": note})
    ]


def packed(name: str, kind: str, at_most: float) -> Case:
    """Eight fits together against one after the other; together they may cost ``at_most`` times one."""

    def run(effort: Effort) -> list[Record]:
        device = torch.device(kind)
        problem, steps, n_fits = replace(G1_SMALL_BATCH, batch=128, hidden=64), 20, 8
        X, Z = problem.data()
        together = our_steps(problem, X, Z, device, DEFAULT_PENALTY, n_fits)
        one = our_steps(problem, X, Z, device, DEFAULT_PENALTY)
        units = (steps, steps / n_fits)
        timing = interleaved(lambda: together(steps), lambda: one(steps), effort.rounds, units)
        title = f"{kind.upper().replace('CUDA', 'GPU')}, one step of {n_fits} fits together, p=50"
        return [timing.record(name, title, "ms", scale=_MS, required=n_fits / at_most)]

    return Case(kind, run)


def path_of_penalties(effort: Effort) -> list[Record]:
    """Whole fits: a path of eight penalties that compete, against eight fits one after the other."""
    n, steps = (1_000, 200) if effort.quick else (2_000, None)
    sim = make_setting("G1", n, 0)
    penalties = np.geomspace(0.005, 0.6, 8)

    def model(penalty: float) -> DNNCGM:
        return DNNCGM(rank=None, penalty=float(penalty), max_steps=steps, device="cpu", random_state=0)

    models = [model(penalty) for penalty in penalties]
    together = timed(lambda: fit_together(models, sim.X, sim.Z, compete=True))
    alone = [timed(partial(model(penalty).fit, sim.X, sim.Z)) for penalty in penalties]
    details = {
        "times_one_fit": together / (sum(alone) / len(alone)),
        "dropped": sum(one.lost_ for one in models),
        "steps_taken": [one.n_steps_ for one in models],
    }
    title = f"CPU, eight penalties that compete (G1, n={n:,}), whole fits"
    timing = Timing([together], [sum(alone)])
    return [timing.record("cpu-path", title, "s", required=8 / 5, details=details)]


def simulators(effort: Effort) -> list[Record]:
    """Data and true graphs; the loop draws fewer samples, as its time per sample is constant."""
    n, looped = 10_000, 50 if effort.quick else 500
    trees = make_setting("D1", 1, 0).candidates
    rng = np.random.default_rng(0)
    references: dict[str, Callable[[], object]] = {
        "G1": lambda: peers.simulate_g1(looped, rng),
        "D1": lambda: peers.simulate_d1(looped, trees, rng),
    }
    records = []
    for setting, reference in references.items():
        ours = partial(_skeletons, setting, n)
        with threadpool_limits(1):  # threads slow down the loop's small matrices
            timing = interleaved(ours, reference, effort.rounds, (n, looped))
        few = interleaved(ours, reference, 1, (n, looped))
        details = {
            "note": f"one thread; the loop drew {looped} samples, times are for {n:,}",
            "ratio_with_the_default_threads": few.ratios[0],
        }
        title = f"simulating {setting} with its graphs, {n:,} samples"
        name = f"simulators/{setting}"
        records.append(timing.record(name, title, "s", scale=n, required=50.0, details=details))
    return records


def _skeletons(setting: str, n: int) -> object:
    return make_setting(setting, n, 0).skeleton


def scoring(effort: Effort) -> list[Record]:
    """AUROC and AUPRC of 1,000 graphs against scikit-learn's functions, graph by graph.

    Our time depends on how many other entries are as strong as the weakest true edge, so a good and
    a poor estimate are both timed.
    """
    n, looped = 1_000, 50 if effort.quick else 500
    sim = make_setting("G1", n, 0)
    records = []
    for kind, size in _WEIGHT_NOISE.items():
        noise = np.random.default_rng(0).normal(0, size, sim.skeleton.shape)
        weights = np.abs(np.asarray(sim.coef) + noise).astype(np.float32)
        timing = interleaved(
            partial(metrics.ranking_scores, weights, sim.skeleton, diagonal=True),
            partial(peers.scores, weights[:looped], sim.skeleton[:looped]),
            effort.rounds,
            (n, looped),
        )
        details = {
            "auprc": float(metrics.auprc(weights, sim.skeleton).mean()),
            "note": f"the loop scored {looped} graphs; times are for {n:,}",
        }
        title = f"AUROC and AUPRC of {n:,} graphs, p=50, a {kind} estimate"
        name = f"metrics/{kind}"
        records.append(timing.record(name, title, "s", scale=n, required=50.0, details=details))
    return records


CASES: dict[str, Case] = {
    "cpu-step-512": cpu_step("cpu-step-512", G1_STEP, (20, 5), 5.0, 0.55),
    "cpu-step-64": cpu_step("cpu-step-64", G1_SMALL_BATCH, (60, 20), 3.0, None),
    "cpu-time-to-loss": Case("cpu", time_to_loss),
    "gpu-step-g1": gpu_step("gpu-step-g1", G1_STEP, 60.0, None),
    "gpu-step-268": gpu_step("gpu-step-268", P268, 20.0, 0.25),
    "gpu-step-1000": gpu_step("gpu-step-1000", P1000, 15.0, 0.1),
    "gpu-fmri": Case("cuda", fmri),
    "cpu-packed": packed("cpu-packed", "cpu", 5.0),
    "cpu-path": Case("cpu", path_of_penalties),
    "gpu-packed": packed("gpu-packed", "cuda", 2.0),
    "simulators": Case("any", simulators),
    "metrics": Case("any", scoring),
    "reggmm": Case("any", lambda effort: peers.reggmm(effort.quick, effort.rounds)),
    "nodewise-lasso": Case("any", lambda effort: peers.nodewise_lasso(effort.quick)),
    "contextualized": Case("any", lambda effort: peers.contextualized(effort.quick)),
}
