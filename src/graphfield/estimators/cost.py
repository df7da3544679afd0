"""How long a default :class:`DNNCGM` takes to fit on this machine, and how much memory, before it is fitted.

Seconds are operations, counted as the fit carries them out, at the speed of this machine, which is measured
once by a short probe: steps of the network, each some tens of small operations; proximal steps for patterns,
each one product with a matrix of (R p)^2 numbers; and second moments of all rows. How many proximal steps a
table takes, and whether its rows ask for the largest number of patterns, is not known before: taken is what
was typical of the chains of ``benchmarks/cost_curves.py``, which compares estimates with other tables, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from graphfield.data.room import size_text
from graphfield.estimators.dnncgm_setup import GATE_BATCH, GATE_STEPS, default_ranks
from graphfield.estimators.inputs import check_number
from graphfield.estimators.memory import estimate_fit_memory
from graphfield.exceptions import count
from graphfield.nn.threads import one_thread_each
from graphfield.training.config import default_max_steps, resolve_device
from graphfield.training.mixture import RANKS, ROUNDS, ROUNDS_AFTER_SPLIT

# Of the rows, the share that is trained on.
_TRAINED = 0.9
# Probed operations that take as long as a step of the network; and by how much each pattern adds to it.
_OPERATIONS, _PER_PATTERN = 30, 0.013
# The share of their steps after which means stop, typically: at a third at the earliest.
_MEAN_SHARE = 0.4
# Proximal steps of a round and all that follows, at the first number of patterns, and at later ones.
_FIRST_STEPS, _LATER_STEPS = 4_000, 2_000
# Each number of patterns is tried if the one before is better: by the first two it always is or may be.
_TRIED = (1.0, 1.0, 0.35)
# Operations, probed like the others, around each proximal step.
_AROUND = 2
# How often second moments of all rows are found in a round: of parts, held-out rows, the table of the gate.
_MOMENTS = 3
# What else there is: scales, means, which pairs are edges.
_REST = 1.15
_HIDDEN, _PRODUCT, _REPEATS = 64, 800, 5


@dataclass(frozen=True)
class Cost:
    """What a fit takes.

    Attributes
    ----------
    seconds : float
        On this machine, if nothing else runs there.
    bytes : int
        Beyond what is there before the fit, at its peak.
    device : str
        Where it would run.
    """

    seconds: float
    bytes: int
    device: str

    def __str__(self) -> str:
        return f"about {_duration(self.seconds)} and {size_text(self.bytes)} of memory ({self.device})"


def estimate_cost(n: int, p: int, q: int = 1, *, device: str = "auto") -> Cost:
    """What fitting a default :class:`DNNCGM` to a table of this size takes on this machine.

    Meant to be right within a factor of two on a CPU, less surely where others use it: it is measured
    at one moment, and how long the search for patterns takes depends on the table.
    The first call measures the machine, which takes less than a third of a second.

    Parameters
    ----------
    n, p, q : int
        Rows, nodes, covariates.
    device : str
        As in :class:`DNNCGM`.

    Returns
    -------
    Cost
        ``seconds``, ``bytes`` and ``device``; as text, one line.

    Examples
    --------
    >>> import graphfield as gf
    >>> small, large = gf.estimate_cost(1_000, 20, 2), gf.estimate_cost(20_000, 200, 2)
    >>> small.seconds < large.seconds and small.bytes < large.bytes
    True
    """
    check_number("q", q, 0, integer=True)
    where = resolve_device(device)
    memory = estimate_fit_memory(n, p, max(1, q), rank=RANKS[0])["peak"]
    ranks = default_ranks(p, int(_TRAINED * n))
    speed = _machine_speed(str(where))
    return Cost(speed.seconds(*_count(n, p, ranks)), memory, where.type)


@dataclass(frozen=True)
class _Speed:
    """Seconds of a small operation, and of one multiplication and addition of a large product."""

    operation: float
    multiplication: float

    def seconds(self, operations: float, multiplications: float) -> float:
        return _REST * (operations * self.operation + multiplications * self.multiplication)


def _count(n: int, p: int, ranks: tuple[int, ...]) -> tuple[float, float]:
    """Small operations, and multiplications in large products, of a default fit."""
    # Means, and the gate once more at the end.
    operations = _OPERATIONS * (_MEAN_SHARE * default_max_steps(int(_TRAINED * n)) + GATE_STEPS)
    multiplications = 0.0
    for i, (rank, chance) in enumerate(zip(ranks, _TRIED, strict=False)):
        rounds, steps = (ROUNDS_AFTER_SPLIT, _LATER_STEPS) if i else (ROUNDS, _FIRST_STEPS)
        network = _OPERATIONS * (1 + _PER_PATTERN * rank) * GATE_STEPS * (rounds - 1)
        operations += chance * (network + _AROUND * steps)
        multiplications += chance * (steps * p + _MOMENTS * rounds * n / 4) * (rank * p) ** 2
    return operations, multiplications


@cache
def _machine_speed(device: str) -> _Speed:
    """Of this device, measured once."""
    where = torch.device(device)
    generator = torch.Generator().manual_seed(0)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).to(where)

    rows, weight, bias = numbers(GATE_BATCH, _HIDDEN), numbers(_HIDDEN, _HIDDEN), numbers(_HIDDEN)
    lines, square = numbers(_PRODUCT // 8, _PRODUCT), numbers(_PRODUCT, _PRODUCT)
    small = _fastest(lambda: torch.addmm(bias, rows, weight).relu_(), where, 100)
    large = _fastest(lambda: torch.mm(lines, square), where, 3)
    return _Speed(small, large / (lines.numel() * _PRODUCT))


@one_thread_each()
def _fastest(function: Callable[[], object], device: torch.device, times: int) -> float:
    """Seconds of one call, by the fastest of a few turns; of the processor's time, which others may share."""
    now, turns = time.perf_counter if device.type == "cuda" else time.thread_time, []
    for _ in range(_REPEATS):
        started = now()
        for _ in range(times):
            function()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        turns.append((now() - started) / times)
    return min(turns)


def _duration(seconds: float) -> str:
    """
    >>> _duration(8.3), _duration(100), _duration(7_000)
    ('8 seconds', '2 minutes', '2 hours')
    """
    for size, unit in ((3_600, "hour"), (60, "minute")):
        if seconds >= 1.5 * size:
            return count(round(seconds / size), unit)
    return count(max(1, round(seconds)), "second")
