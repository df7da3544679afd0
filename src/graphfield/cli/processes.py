"""``torchrun ... -m graphfield fit``: its processes share one fit, and the first one speaks."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager

from graphfield.cli.values import estimator_class, settings
from graphfield.exceptions import DataError, GraphfieldError, ParameterError, TrainingError

# What torchrun tells each process.
_RANK_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def count_processes() -> int:
    """How many were started together."""
    return int(os.environ["WORLD_SIZE"]) if all(name in os.environ for name in _RANK_VARIABLES) else 1


def process_number() -> int:
    """Which of them this one is; the first, 0, writes and speaks."""
    return int(os.environ["RANK"]) if count_processes() > 1 else 0


def check_command(arguments: argparse.Namespace) -> None:
    """Raise for what several processes cannot do together."""
    if count_processes() == 1:
        return
    if arguments.run.__name__ != "fit" or arguments.model != "dnncgm":
        raise ParameterError(
            "Several processes share the work of 'fit --model dnncgm' alone. Run this without torchrun."
        ).about(argument="model")
    if str(arguments.table) == "-":
        raise DataError(
            "The table - is standard input, which one process alone can read. Name a file that all can read."
        ).about(argument="table")


@contextmanager
def process_group(arguments: argparse.Namespace) -> Iterator[None]:
    """Inside of it, a model is fitted by all processes, on the CPU or on a CUDA device each."""
    if count_processes() == 1:
        yield
        return
    import torch
    import torch.distributed as dist

    from graphfield.training.config import resolve_device

    chosen = settings(arguments.set, estimator_class(arguments.model))
    backend = "gloo"
    if resolve_device(chosen.get("device", "auto")).type == "cuda":
        backend = "nccl"
        torch.cuda.set_device(_own_device(torch.cuda.device_count(), dist.is_nccl_available()))
    try:
        dist.init_process_group(backend)
    except (RuntimeError, ValueError, OSError) as error:
        raise TrainingError(
            f"The {count_processes()} processes did not find each other at {os.environ['MASTER_ADDR']}, port "
            f"{os.environ['MASTER_PORT']} ({error}). All machines must reach that one; start torchrun on "
            "all of them with the same --rdzv-endpoint."
        ) from error
    try:
        yield
    finally:
        dist.destroy_process_group()


def _own_device(n_devices: int, has_nccl: bool) -> int:
    """The number of this process's CUDA device."""
    on_cpu = "Add --set device=cpu"
    if not has_nccl:
        raise ParameterError(
            f"Several processes exchange what is on CUDA devices by NCCL, which this torch lacks. {on_cpu}, "
            "or install a torch that has it (that of Linux with CUDA does)."
        ).about(argument="device")
    n_here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if n_here > n_devices:
        raise ParameterError(
            f"{n_here} processes of this machine need a CUDA device each, but torch finds {n_devices}. Start "
            f"torchrun with --nproc-per-node {n_devices}. {on_cpu} to do without."
        ).about(argument="device")
    return int(os.environ.get("LOCAL_RANK", "0"))


@contextmanager
def all_or_none() -> Iterator[None]:
    """Where one of the processes fails with what is inside, all do, and the first one says why."""
    if count_processes() == 1:
        yield
        return
    from graphfield.nn.processes import group

    failure: GraphfieldError | OSError | None = None
    try:
        yield
    except (GraphfieldError, OSError) as error:
        failure = error
    found = group().gather(None if failure is None else str(failure))
    if failure is not None:
        raise failure
    for number, said in enumerate(found):
        if said is not None:
            raise TrainingError(f"Process {number} cannot go on: {said}")
