"""Work in a process of its own, so that its peak memory is its own: ``python -m ...child '{...}'``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import graphfield
from graphfield.exceptions import TrainingError
from graphfield.experiments.bench.problems import Problem

MODULE = "graphfield.experiments.bench.child"
_STEPS = 5
_PREDICTED_ENTRIES = 10_000_000  # of the graphs predicted in one measurement


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

    from graphfield.experiments.bench.ours import our_steps
    from graphfield.experiments.bench.straightforward import StraightforwardTraining

    sized = Problem(**problem)
    X, Z = sized.data()
    device = torch.device("cpu")
    steps = (
        our_steps(sized, X, Z, device)
        if side == "ours"
        else StraightforwardTraining(sized, X, Z, device).steps
    )
    steps(_STEPS)
    return {}


def _fit(n: int, p: int, q: int, max_steps: int, device: str) -> dict[str, Any]:
    """Seconds of a fit with a fixed number of steps, and of predicting 1,000 graphs; GPU memory, MB."""
    import torch

    from graphfield.estimators.dnncgm import DNNCGM
    from graphfield.training.config import resolve_device

    rng_x, rng_z = np.random.default_rng(0).spawn(2)
    X, Z = rng_x.standard_normal((n, p), dtype=np.float32), rng_z.random((n, q), dtype=np.float32)
    start = time.perf_counter()
    model = DNNCGM(rank=None, max_steps=max_steps, patience=None, device=device, random_state=0).fit(X, Z)
    fitted = time.perf_counter()
    rows = int(np.clip(_PREDICTED_ENTRIES // p**2, 1, min(n, 1_000)))
    model.edge_weights(Z[:rows])
    predicted = time.perf_counter()
    on_gpu = resolve_device(device).type == "cuda"
    return {
        "fit_s": fitted - start,
        "predict_s": (predicted - fitted) / rows * 1_000,
        "gpu_mb": torch.cuda.max_memory_allocated() / 1024**2 if on_gpu else None,
    }


TASKS: dict[str, Callable[..., dict[str, Any]]] = {"step": _step, "fit": _fit}


def main() -> None:
    from graphfield.experiments.bench import ours  # noqa: F401 - imports count as base memory
    from graphfield.experiments.bench.machine import peak_rss_mb

    warnings.simplefilter("ignore")
    arguments = json.loads(sys.argv[1])
    task = TASKS[arguments.pop("task")]
    base = peak_rss_mb()
    result = task(**arguments)
    sys.stdout.write(json.dumps({"base_mb": base, "peak_mb": peak_rss_mb(), **result}) + "\n")


if __name__ == "__main__":
    main()
