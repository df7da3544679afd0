"""``graphfield reproduce``: the paper's tables and figures, and its rates."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphfield.cli.values import names
from graphfield.cli.words import render_for_shell, say
from graphfield.exceptions import ParameterError, TrainingError, first_few

if TYPE_CHECKING:
    from graphfield.experiments.folders import Cell
    from graphfield.experiments.runner import Failure

MAX_REPLICATES = 1_000


def reproduce(arguments: argparse.Namespace) -> None:
    _check(arguments)
    settings = names(arguments.settings) if arguments.settings is not None else None
    methods = names(arguments.methods) if arguments.methods is not None else None
    if arguments.table == "figures":
        _figures(arguments, settings, methods)
    elif arguments.table == "rates":
        _rates(arguments, settings, methods)
    else:
        _tables(arguments, settings, methods)


def _figures(arguments: argparse.Namespace, settings: list[str] | None, methods: list[str] | None) -> None:
    from graphfield.experiments.figures import draw_figures
    from graphfield.plots import draw_to_files
    from graphfield.training.config import resolve_device

    if methods is not None:
        raise ParameterError.of("methods", "does not apply to figures, which show DNNCGM.")
    resolve_device(arguments.device)
    draw_to_files()
    for path in draw_figures(arguments.out, settings, arguments.seed, arguments.device, arguments.force):
        say(f"Wrote {path}.")


def _rates(arguments: argparse.Namespace, settings: list[str] | None, methods: list[str] | None) -> None:
    from graphfield.experiments.rate_tables import write_rates
    from graphfield.experiments.rates import FULL, QUICK, TITLES, plan_rates
    from graphfield.experiments.runner import choose
    from graphfield.plots import draw_to_files, pyplot

    if settings is not None:
        raise ParameterError.of("settings", "does not apply to rates, which have truths of their own.")
    draw_to_files()
    pyplot()  # a missing package is heard of before any work
    grid = QUICK if arguments.quick else FULL
    cells = plan_rates(grid, choose("method", methods, TITLES), _seeds(arguments))
    failures, seconds = _run(cells, arguments)
    for line in write_rates(arguments.out, grid, cells, _command(arguments, "rates")).shell_lines():
        say(line)
    say(f"Wrote {arguments.out}/rates.md (and .json, .html, .png) in {seconds:.0f} s.")
    if failures:
        raise TrainingError(_failed(failures, arguments))


def _tables(arguments: argparse.Namespace, settings: list[str] | None, methods: list[str] | None) -> None:
    from graphfield.experiments.runner import plan
    from graphfield.experiments.specs import TABLES, load_table
    from graphfield.experiments.tables import write_cells, write_table

    tables = [load_table(name) for name in (TABLES if arguments.table == "all" else (arguments.table,))]
    seeds = _seeds(arguments)
    cells = plan(tables, settings, methods, seeds, lines=not arguments.no_lines)
    failures, seconds = _run(cells, arguments)
    for table in tables:
        name = table.name if arguments.table == "all" else arguments.table
        for line in write_table(table, arguments.out, seeds, _command(arguments, name)).shell_lines():
            say(line)
    write_cells(arguments.out)
    written = ", ".join(f"{arguments.out}/{table.name}.md" for table in tables)
    say(f"Wrote {written} (and .csv, .html) and cells.csv in {seconds:.0f} s.")
    if failures:
        raise TrainingError(_failed(failures, arguments))


def _seeds(arguments: argparse.Namespace) -> list[int]:
    return list(range(arguments.seed, arguments.seed + arguments.replicates))


def _run(cells: Sequence[Cell], arguments: argparse.Namespace) -> tuple[list[Failure], float]:
    """What failed, and the seconds it took."""
    import joblib

    from graphfield.experiments.runner import run_cells

    start = time.perf_counter()
    jobs = arguments.jobs or joblib.cpu_count()
    with _polite_end():
        failures = run_cells(cells, arguments.out, force=arguments.force, jobs=jobs, device=arguments.device)
    return failures, time.perf_counter() - start


@contextmanager
def _polite_end() -> Iterator[None]:
    """``kill`` ends a run like Ctrl-C does: the worker processes go too."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check(arguments: argparse.Namespace) -> None:
    if not 1 <= arguments.replicates <= MAX_REPLICATES:
        raise ParameterError.of(
            "replicates", f"must be at least 1 and at most {MAX_REPLICATES:,}, got {arguments.replicates}."
        )
    if arguments.seed < 0:
        raise ParameterError.of("seed", f"must not be negative, got {arguments.seed}.")
    if arguments.quick and arguments.table != "rates":
        raise ParameterError.of("quick", "applies to rates only; take fewer --replicates or --settings.")
    if arguments.jobs is not None and arguments.jobs < 1:
        raise ParameterError.of("jobs", f"must be at least 1, got {arguments.jobs}.")


def _command(arguments: argparse.Namespace, name: str) -> str:
    """The command that makes this table again, without what does not change its numbers."""
    parts = ["graphfield", "reproduce", name, "--replicates", str(arguments.replicates)]
    parts += ["--settings", arguments.settings] if arguments.settings else []
    parts += ["--methods", arguments.methods] if arguments.methods else []
    parts += ["--quick"] if arguments.quick else []
    parts += ["--no-lines"] if arguments.no_lines else []
    parts += ["--seed", str(arguments.seed)] if arguments.seed else []
    return shlex.join(parts)


def _failed(failures: list[Failure], arguments: argparse.Namespace) -> str:
    for failure in failures:
        sys.stderr.write(failure.trace)
    reasons = {failure.cell.name: render_for_shell(failure.reason, arguments) for failure in failures}
    lines = first_few([f"{name}: {reason}" for name, reason in reasons.items()], 5, "; ")
    noun = "cell" if len(failures) == 1 else "cells"
    return f"{len(failures)} {noun} failed: {lines}. The others are kept; the same command tries these again."
