"""``graphfield bench``: speed and memory beside a straightforward implementation."""

from __future__ import annotations

import argparse
import shlex
import sys
import time

from graphfield.cli.values import names
from graphfield.cli.words import say
from graphfield.exceptions import TrainingError


def bench(arguments: argparse.Namespace) -> None:
    from graphfield.experiments.bench import run

    only = names(arguments.only) if arguments.only is not None else None
    run.choose("case", only, run.CASES)
    run.devices_of(arguments.device)
    if arguments.scaling:
        from graphfield.plots import draw_to_files

        draw_to_files()
    run.check_folder(arguments.out, arguments.force, arguments.scaling)
    start = time.perf_counter()
    say(run.screen_header())
    results = run.run_bench(only, arguments.device, arguments.quick, _command(arguments), say)
    for name, reason in results.not_measured.items():
        say(f"{name:28s} not measured: {reason}")
    if not run.is_quiet(results):
        say(run.BUSY)
    run.write_results(results, arguments.out)
    written = "bench.md and bench.json"
    if arguments.scaling:
        run.run_scaling(arguments.out, arguments.quick, arguments.device)
        written += ", scaling.json and scaling.png"
    say(f"Wrote {written} to {arguments.out} in {time.perf_counter() - start:.0f} s.")
    if results.failures:
        sys.stderr.write("".join(results.traces))
        lines = "; ".join(f"{name}: {reason}" for name, reason in results.failures.items())
        raise TrainingError(f"{len(results.failures)} of the cases failed: {lines}. The others are written.")


def _command(arguments: argparse.Namespace) -> str:
    parts = ["graphfield", "bench"]
    parts += ["--quick"] if arguments.quick else []
    parts += ["--only", arguments.only] if arguments.only else []
    parts += ["--device", arguments.device] if arguments.device != "auto" else []
    parts += ["--scaling"] if arguments.scaling else []
    return shlex.join(parts)
