"""Work in a process of its own, so that its peak memory is its own: ``python -m ...child '{...}'``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import graphfield
from graphfield.exceptions import TrainingError
from graphfield.experiments.bench.problems import Problem

MODULE = "graphfield.experiments.bench.child"
_STEPS = 5


def in_child(task: str, **arguments: Any) -> dict[str, Any]:
    """Run a task of :data:`TASKS` in a fresh interpreter; its result and ``peak_mb``, ``base_mb``.

    ``base_mb`` is the memory after all imports: what any program with torch needs.
    """
    source = str(Path(graphfield.__file__).parents[1])
    paths = [source, os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", MODULE, json.dumps({"task": task, **arguments})],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise TrainingError(f"Measuring {task!r} with {arguments} failed: {lines[-1] if lines else 'killed'}")
    return json.loads(done.stdout.splitlines()[-1])


def step_memory(problem: Problem) -> dict[str, float]:
    """Peak memory of training steps on the CPU above the imports, MB; data included, both sides."""
    found = {side: in_child("step", side=side, problem=asdict(problem)) for side in ("ours", "reference")}
    return {side: result["peak_mb"] - result["base_mb"] for side, result in found.items()}


def _step(side: str, problem: dict[str, Any]) -> dict[str, Any]:
    import torch

    from graphfield.experiments.bench.ours import our_step
    from graphfield.experiments.bench.straightforward import StraightforwardTraining

    sized = Problem(**problem)
    X, Z = sized.data()
    device = torch.device("cpu")
    steps = (
        our_step(sized, X, Z, device)
        if side == "ours"
        else StraightforwardTraining(sized, X, Z, device).steps
    )
    steps(_STEPS)
    return {}


def _fit(n: int, p: int, q: int, max_steps: int, device: str) -> dict[str, Any]:
    from graphfield.experiments.bench.scaling import fit_once

    return fit_once(n, p, q, max_steps, device)


TASKS: dict[str, Callable[..., dict[str, Any]]] = {"step": _step, "fit": _fit}


def main() -> None:
    from graphfield.experiments.bench import ours, scaling  # noqa: F401 - imports count as base memory
    from graphfield.experiments.bench.machine import peak_rss_mb

    warnings.simplefilter("ignore")
    arguments = json.loads(sys.argv[1])
    task = TASKS[arguments.pop("task")]
    base = peak_rss_mb()
    result = task(**arguments)
    sys.stdout.write(json.dumps({"base_mb": base, "peak_mb": peak_rss_mb(), **result}) + "\n")


if __name__ == "__main__":
    main()
