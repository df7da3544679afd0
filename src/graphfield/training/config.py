"""What the training loop needs to know, and how the budget follows from the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import torch

from graphfield.exceptions import ParameterError

Schedule = str | tuple[Any, ...]
CLIP_NORM = 1.0  # gradients are clipped at this norm, as published
WEIGHT_DECAY = 1e-6  # as published
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # of Adam, as everywhere
WARM_UP = 0.1  # share of the steps in which the one-cycle schedule rises


@dataclass(frozen=True)
class TrainingConfig:
    """All of it is required: defaults live in the estimators' signatures."""

    batch_size: int
    max_steps: int
    min_steps: int
    evaluate_every: int
    learning_rate: float
    schedule: Schedule
    patience: int | None


def default_batch_size(n_train: int) -> int:
    """64 rows, 128 from 4,000 rows on, more for long tables; chosen on held-out loss (G1)."""
    size = 64 if n_train < 4_000 else 128
    while size < 1024 and n_train / size > 500:
        size *= 2
    return max(2, min(size, n_train // 2))


def default_max_steps(n_train: int) -> int:
    """Gradient steps by sample size: about 1,000 for 1,000 rows, 5,000 for 10,000, at most 20,000.

    An epoch count would starve small tables and drown large ones. The exponent follows the step
    counts with the lowest held-out loss at 1,000, 2,000 and 10,000 rows of setting G1; the factor is
    generous, as stopping early ends a run that needs less.
    """
    return int(min(20_000, max(300, 8.0 * n_train**0.7)))


def check_schedule(schedule: Schedule) -> None:
    """``"cosine"``, ``"constant"``, ``("step", epochs, factor)`` or ``("multistep", (e1, ...), factor)``."""
    if isinstance(schedule, str) and schedule in ("cosine", "constant"):
        return
    valid = (
        isinstance(schedule, (tuple, list))
        and len(schedule) == 3
        and (
            (schedule[0] == "step" and isinstance(schedule[1], int) and schedule[1] > 0)
            or (schedule[0] == "multistep" and isinstance(schedule[1], (tuple, list)))
        )
        and isinstance(schedule[2], (int, float))
        and 0 < schedule[2] <= 1
    )
    if not valid:
        raise ParameterError.of(
            "schedule",
            "must be 'cosine', 'constant', ('step', epochs, factor) such as "
            "('step', 20, 0.25), or ('multistep', (epoch, ...), factor) such as "
            f"('multistep', (20, 50), 0.5); got {schedule!r}.",
        )


def learning_rate(config: TrainingConfig, step: int, steps_per_epoch: int) -> float:
    """The rate of gradient step ``step`` (from 0): a pure function, so a resumed run needs no state.

    Equal to torch's ``StepLR``, ``MultiStepLR`` and ``OneCycleLR`` stepped once per gradient step.
    """
    peak = config.learning_rate
    if config.schedule == "constant":
        return peak
    if config.schedule == "cosine":
        return _one_cycle(peak, step, config.max_steps)
    kind, when, factor = cast(tuple[Any, ...], config.schedule)
    epoch = step // steps_per_epoch
    drops = epoch // when if kind == "step" else sum(epoch >= milestone for milestone in when)
    return float(peak * factor**drops)


def _one_cycle(peak: float, step: int, max_steps: int) -> float:
    """Cosine rise from peak / 25 over the warm-up, then cosine fall to peak / 250,000."""
    last_rising = max(0.0, WARM_UP * max_steps - 1)
    start, end = peak / 25, peak / 25 / 1e4
    if last_rising > 0 and step <= last_rising:
        return _cosine(start, peak, step / last_rising)
    return _cosine(peak, end, (step - last_rising) / max(1.0, max_steps - 1 - last_rising))


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))


def resolve_device(device: str, *, fallback: bool = False) -> torch.device:
    """``"auto"`` is CUDA where there is one. ``fallback`` turns a missing CUDA into the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(str(device))  # a number alone would be one of CUDA's
    except (RuntimeError, TypeError) as error:
        raise ParameterError.of(
            "device", f"must be 'auto', 'cpu' or 'cuda' (or 'cuda:1'), got {device!r}."
        ) from error
    if chosen.type not in ("cpu", "cuda"):
        raise ParameterError.of("device", f"must be 'auto', 'cpu' or 'cuda', got {device!r}.")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        if fallback:
            return torch.device("cpu")
        raise ParameterError(
            "device='cuda' was asked for, but torch finds no CUDA device. Use 'auto'."
        ).about(argument="device")
    return chosen
