"""One fit by one process and by two: time of each of its stages, what they exchange, and a model of more.

    .venv/bin/python benchmarks/processes.py [--rows 20000] [--nodes 50] [--repeats 3] [--fit]
        [--share-all] [--latency 5e-5] [--bandwidth 10e9] [--out FILE]

Stages of a fit, each with one thread per process: moments (shared by rows), patterns (by responses), tables
of the gate (by rows), steps of a full head (rows of a batch, gradients added up) and of a gate (too small to
share: each process takes them, unless --share-all). "strong" is seconds of one process over those of two for
the same rows (2 is best), "core" the same of the time that each spends on its core, without waiting, "weak"
seconds of one process over those of two with twice as many rows (1 is best). All are ratios within this run;
seconds need two cores that nothing else uses. With --fit a whole default fit is timed as well, and its graphs
are compared.

The columns "model" are no measurement but how many times faster P = 8 and 64 processes would be, were their
time seconds of one process / P + messages * latency * log2(P) + 2 (P - 1) / P * bytes / bandwidth.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

import graphfield as gf
from graphfield.nn.backbone import CovariateShape
from graphfield.nn.fields import CoefField, FieldConfig, Samples
from graphfield.nn.gates import GateField
from graphfield.nn.processes import current, shared_work
from graphfield.nn.threads import one_thread_each
from graphfield.training import engines
from graphfield.training.config import TrainingConfig
from graphfield.training.loop import train
from graphfield.training.mixture import MixtureTask, _lines_of
from graphfield.training.plan import Member, Seeds
from graphfield.training.sparse_patterns import Moments, PatternProblem

RANK, HIDDEN, BATCH, STEPS = 8, 64, 512, 100
MODELLED = (8, 64)


@dataclass(frozen=True)
class Stage:
    """What is timed; ``sent`` is (messages, bytes) that each process exchanges."""

    run: Callable[[], object]
    sent: tuple[int, float] | None  # None: each process does all of it


def field_config(p: int, rank: int | None) -> FieldConfig:
    return FieldConfig(p, CovariateShape(2, ()), "residual", "all", HIDDEN, 0.3, True, "squared", 0.0, rank)


def steps(kind: type, p: int, rank: int | None, data: Samples) -> Stage:
    config, rows = field_config(p, rank), torch.arange(len(data))
    member = Member(rows, rows[:0], 0, 0)
    training = TrainingConfig(BATCH, STEPS, 1, STEPS, 1e-3, "constant", None)
    weights = sum(value.numel() for value in kind(config, torch.Generator()).parameters())

    def run() -> object:
        field = kind(config, torch.Generator().manual_seed(0))
        return train(field, data, [member], training, description=None)

    is_shared = 3 * BATCH * weights >= engines.SHARED_WORK
    return Stage(run, (STEPS, 4.0 * weights * STEPS) if is_shared else None)


def stages(n: int, p: int) -> dict[str, Stage]:
    rng = torch.Generator().manual_seed(0)
    x, z = torch.randn(n, p, generator=rng), torch.randn(n, 2, generator=rng)
    shares = torch.softmax(torch.randn(n, RANK, generator=rng), dim=1)
    data = Samples(x, z, torch.zeros(n, 0, dtype=torch.int64))
    problem = PatternProblem(Moments.of(shares[:5_000], x[:5_000]))
    patterns = problem.solve(0.02)
    rows = torch.arange(n)
    task = MixtureTask((rows,), rows[:0], Seeds(0, 0, 0), None)
    table = _lines_of(x, task, [patterns], rows)
    pairs = (RANK + 1) * (RANK + 2) / 2 * p * (p + 1) / 2
    return {
        "moments": Stage(lambda: Moments.of(shares, x), (1, 4 * pairs)),
        "patterns": Stage(
            lambda: problem.solve(0.01, None, 1e-5), (len(problem.blocks()), 4.0 * RANK * p * p)
        ),
        "tables": Stage(lambda: _lines_of(x, task, [patterns], rows), (2, 4.0 * table.numel())),
        "gate, 100 steps": steps(GateField, p, RANK, Samples(table, z, data.codes)),
        "full head, 100 steps": steps(CoefField, p, None, data),
    }


def timed(run: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Seconds, and those of this process's core: the shortest of several, after one to warm up."""
    found = []
    for _ in range(repeats + 1):
        if current().size > 1:
            dist.barrier()
        start = time.perf_counter(), time.process_time()
        run()
        found.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    seconds, of_core = zip(*found[1:], strict=True)
    return min(seconds), min(of_core)


@one_thread_each()
def work(arguments: argparse.Namespace) -> dict[str, Any]:
    """What one of the processes does: all stages and, where there are two, some with twice as many rows."""
    found: dict[str, Any] = {}
    with shared_work() as processes:
        for name, stage in stages(arguments.rows, arguments.nodes).items():
            seconds, of_core = timed(stage.run, arguments.repeats)
            found[name] = {"seconds": seconds, "core": of_core, "sent": stage.sent}
        if processes.size > 1:
            for name, stage in stages(2 * arguments.rows, arguments.nodes).items():
                if name in ("moments", "tables"):
                    found[name]["twice"] = timed(stage.run, arguments.repeats)[0]
    if arguments.fit:
        sim = gf.make_setting("G1", n_samples=3_000, random_state=0)
        model = gf.DNNCGM(random_state=0, device="cpu")
        start = time.perf_counter(), time.process_time()
        model.fit(sim.X[:, :30], sim.Z)
        seconds, of_core = time.perf_counter() - start[0], time.process_time() - start[1]
        found["whole fit"] = {"seconds": seconds, "core": of_core}
        found["edges"] = model.edge_weights(sim.Z[:100]).tolist()
    return found


def ask(count: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """What so many processes say; the first one speaks."""
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
        told = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        free.close()
        said = Path(folder, "said.json")
        words = [sys.executable, __file__, *sys.argv[1:], "--worker", str(said)]
        common = {**os.environ, "OMP_NUM_THREADS": "1", **told}
        started = [subprocess.Popen(words, env={**common, "RANK": str(rank)}) for rank in range(count)]
        codes = [one.wait() for one in started]
        if any(codes):
            raise SystemExit("a process failed")
        return json.loads(said.read_text())


def model(seconds: float, sent: tuple[int, float], count: int, arguments: argparse.Namespace) -> float:
    messages, size = sent
    waited = messages * arguments.latency * math.log2(count)
    return seconds / count + waited + 2 * (count - 1) / count * size / arguments.bandwidth


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--latency", type=float, default=5e-5)
    parser.add_argument("--bandwidth", type=float, default=10e9)
    parser.add_argument("--share-all", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.share_all:
        engines.SHARED_WORK = 0
    if arguments.worker is not None:
        dist.init_process_group("gloo")
        found = work(arguments)
        if dist.get_rank() == 0:
            arguments.worker.write_text(json.dumps(found))
        dist.destroy_process_group()
        return
    one, two = (ask(count, arguments) for count in (1, 2))
    lines = []
    modelled = (f"model {count:>4d}" for count in MODELLED)
    print(f"{'stage':22s} {'1 process':>10s} {'strong':>7s} {'core':>6s} {'weak':>6s}", *modelled)
    for name in [name for name in one if name != "edges"]:
        seconds, sent = one[name]["seconds"], one[name].get("sent")
        line = {"stage": name, "seconds": seconds, "strong": seconds / two[name]["seconds"]}
        line["core"] = one[name]["core"] / two[name]["core"]
        line["weak"] = seconds / two[name]["twice"] if "twice" in two[name] else math.nan
        if sent is not None:
            line |= {f"model_{count}": seconds / model(seconds, sent, count, arguments) for count in MODELLED}
        lines.append(line)
        values = (f"{line.get(f'model_{count}', math.nan):10.1f}" for count in MODELLED)
        print(
            f"{name:22s} {seconds:8.3f} s {line['strong']:7.2f} {line['core']:6.2f} {line['weak']:6.2f}",
            *values,
        )
    if arguments.fit:
        apart = float(np.abs(np.subtract(one["edges"], two["edges"])).max())
        lines.append({"stage": "edge weights apart", "largest": apart})
        print(f"largest difference of edge weights, one process and two: {apart:.1e}")
    if arguments.out is not None:
        arguments.out.write_text(json.dumps({"lines": lines}, indent=1))


if __name__ == "__main__":
    main()
