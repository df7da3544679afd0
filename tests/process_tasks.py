"""What each of two processes does in tests/test_processes.py: ``python process_tasks.py TASK FOLDER``.

Run alone, without the variables that torchrun sets, it is the same for one process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

import graphfield as gf
from conftest import FULL, SMALL, small_data
from graphfield.exceptions import GraphfieldError
from graphfield.nn import processes
from graphfield.training import engines


def fits(folder: Path) -> dict[str, Any]:
    """One short fit in each way of fitting, and one to kinds of nodes."""
    X, Z = small_data()
    kinds = X.assign(n0=X["n0"] > 0, n2=X["n2"].round().clip(0).astype(int))
    models = {
        "patterns": gf.DNNCGM(**{**SMALL, "max_steps": 20}),
        "full head": gf.DNNCGM(**FULL),
        "linear": gf.DNNCGM(**{**FULL, "network": "linear"}),
        "by node": gf.DNNCGM(**{**FULL, "sharing": "node", "network": "mlp", "max_steps": 10}),
    }
    for name, model in models.items():
        save(folder, name, model.fit(X, Z).edge_weights(Z[:20]))
    save(folder, "kinds", gf.DNNCGM(**SMALL, node_types={"n2": "count"}).fit(kinds, Z).edge_weights(Z[:20]))
    return {"penalty": models["patterns"].penalty_}


def short(folder: Path) -> dict[str, Any]:
    X, Z = small_data()
    save(folder, "short", gf.DNNCGM(**SMALL).fit(X, Z).edge_weights(Z[:20]))
    return {}


def few_groups(folder: Path) -> dict[str, Any]:
    """Two groups, which are held out and subtracted as wholes: rows are divided, not groups."""
    X, Z = small_data()
    model = gf.DNNCGM(**SMALL).fit(X, Z, groups=np.arange(len(X)) % 2)
    save(folder, "few", model.edge_weights(Z[:20]))
    return {}


def together(folder: Path) -> dict[str, Any]:
    """Three models as one pack, of which one process trains two."""
    X, Z = small_data()
    models = [gf.DNNCGM(**{**FULL, "random_state": seed}) for seed in range(3)]
    for i, model in enumerate(gf.fit_together(models, X, Z)):
        save(folder, f"model {i}", model.edge_weights(Z[:20]))
    return {"steps": [model.n_steps_ for model in models]}


def any_seed(folder: Path) -> dict[str, Any]:
    X, Z = small_data()
    save(folder, "own", gf.DNNCGM(**{**SMALL, "random_state": None}).fit(X, Z).edge_weights(Z[:20]))
    return {}


def other_rows(folder: Path) -> dict[str, Any]:
    X, Z = small_data()
    gf.DNNCGM(**SMALL).fit(X + processes.group().rank, Z)
    return {}


def checkpointed(folder: Path) -> dict[str, Any]:
    X, Z = small_data()
    model = gf.DNNCGM(**FULL).fit(X, Z, checkpoint=folder / "checkpoint", resume=_resumes())
    save(folder, "checkpointed", model.edge_weights(Z[:20]))
    return {}


def killed(folder: Path) -> dict[str, Any]:
    """The second process dies in the middle of the fit."""
    add_up, calls = processes.Processes.add_up, iter(range(60))

    def die_later(self: processes.Processes, *tensors: torch.Tensor) -> None:
        if next(calls, None) is None and self.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        add_up(self, *tensors)

    processes.Processes.add_up = die_later  # type: ignore[method-assign]
    return checkpointed(folder)


def _resumes() -> bool:
    return "RESUME" in os.environ


def save(folder: Path, name: str, values: np.ndarray) -> None:
    np.save(folder / f"{name}-{processes.group().size}-{processes.group().rank}.npy", values)


TASKS: dict[str, Callable[[Path], dict[str, Any]]] = {
    task.__name__: task
    for task in (short, fits, few_groups, together, any_seed, other_rows, checkpointed, killed)
}


def main() -> None:
    task, folder = sys.argv[1], Path(sys.argv[2])
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    if task != "short":
        engines.SHARED_WORK = 0  # the steps of small networks, too
    said: dict[str, Any] = {}
    try:
        said = TASKS[task](folder)
    except GraphfieldError as error:
        said = {"error": type(error).__name__, "message": str(error)}
    (folder / f"{task}-{processes.group().size}-{processes.group().rank}.json").write_text(json.dumps(said))
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
