"""Runs the cells of a table in parallel, each once, and goes on where it was interrupted."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from graphfield.cores import in_processes
from graphfield.exceptions import (
    ExtrapolationWarning,
    GraphfieldError,
    ParameterError,
    TrainingError,
    TrainingWarning,
    listing,
    suggestion,
)
from graphfield.experiments.folders import Cell, environment, is_done, open_results, write_cell
from graphfield.experiments.methods import LINES, METHODS, TableCell
from graphfield.experiments.specs import TableSpec
from graphfield.messages import Argument, Message
from graphfield.training.config import resolve_device
from graphfield.training.progress import progress_bar


@dataclass(frozen=True)
class Failure:
    """A cell that did not finish, and why."""

    cell: Cell
    reason: str
    trace: str


def choose(kind: str, wanted: Sequence[str] | None, known: Iterable[str]) -> list[str]:
    """The wanted names, checked against the known ones; all of these when nothing was asked for."""
    options = list(known)
    if wanted is None:
        return options
    for name in wanted:
        if name not in options:
            raise ParameterError(
                f"Unknown {kind} {name!r}.{suggestion(name, options)} Known here: "
                f"{listing(options, most=len(options))}."
            ).about(argument=f"{kind}s")
    if not wanted:
        raise ParameterError(
            f"No {kind} was named. Known here: {listing(options, most=len(options))}."
        ).about(argument=f"{kind}s")
    return [name for name in options if name in wanted]


def plan(
    tables: Sequence[TableSpec],
    settings: Sequence[str] | None,
    methods: Sequence[str] | None,
    seeds: Sequence[int],
    *,
    lines: bool = True,
) -> list[TableCell]:
    """Every fit that the tables need, once each.

    The lines to compare with come along whatever ``methods`` are named, unless ``lines`` is False.
    """
    rows = [row for table in tables for row in table.rows]
    for row in rows:
        choose("method", [row.method], METHODS)
        choose(f"evaluation of {row.method!r}", [row.evaluation], METHODS[row.method].evaluations)
    of_tables = dict.fromkeys([row.method for row in rows] + list(LINES))
    wanted_methods = {*choose("method", methods, of_tables), *(LINES if lines else ())}
    wanted_settings = choose("setting", settings, dict.fromkeys(s for t in tables for s in t.settings))
    cells = [
        TableCell(setting, method, table.n_train, table.n_test, seed)
        for table in tables
        for setting in table.settings
        for method in dict.fromkeys([*(row.method for row in table.rows), *LINES])
        for seed in seeds
        if setting in wanted_settings and method in wanted_methods
    ]
    for cell in cells:
        cell.parameters()  # a setting without a recipe is heard of before any work
    return list(dict.fromkeys(cells))


def run_cells(cells: Sequence[Cell], out: Path, *, force: bool, jobs: int, device: str) -> list[Failure]:
    """Run what is not done yet; returns the cells that failed."""
    resolve_device(device)
    open_results(out)
    todo = [cell for cell in cells if force or not is_done(out, cell)]
    for cell in todo:
        cell.check_installed()
    failures = []
    with progress_bar("reproducing", len(todo), unit="cells") as advance:
        for done, (cell, failure) in enumerate(_results(todo, out, jobs, device), start=1):
            advance(done, cell.name)
            if failure is not None:
                failures.append(failure)
    return failures


def _results(todo: list[Cell], out: Path, jobs: int, device: str) -> Iterator[tuple[Cell, Failure | None]]:
    """In-process with all threads for one job; otherwise one thread per process.

    Several fits with several threads each wait for each other and are many times slower.
    """
    left = set(todo)
    work = partial(run_cell, out=out, device=device)
    try:
        for cell, failure in in_processes(work, todo, sure=jobs > 1, ordered=False, most=jobs):
            left.discard(cell)
            yield cell, failure
    except TrainingError:
        reason = Message(
            "a worker process was killed, perhaps for want of memory; try fewer {jobs}",
            jobs=Argument("jobs"),
        )
        yield from ((cell, Failure(cell, reason, "")) for cell in todo if cell in left)


def run_cell(cell: Cell, out: Path, device: str) -> tuple[Cell, Failure | None]:
    """Simulate, fit, predict, score, write. A failure is reported and does not stop the others."""
    try:
        _run(cell, out, device)
    except GraphfieldError as error:
        return cell, Failure(cell, error.message, "")
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in one cell, the others must go on
        return cell, Failure(cell, f"{type(error).__name__}: {error}", traceback.format_exc())
    return cell, None


def _run(cell: Cell, out: Path, device: str) -> None:
    with warnings.catch_warnings():
        # Test covariates a little outside the training range, and recipes that stop mid-way, are
        # part of the experiment.
        warnings.simplefilter("ignore", ExtrapolationWarning)
        warnings.simplefilter("ignore", TrainingWarning)
        result = cell.run(device)
    report: dict[str, Any] = {
        **asdict(cell),
        "title": result.title,
        "parameters": cell.parameters(),
        "config": result.config,
        "metrics": result.metrics,
        "seconds": {name: round(value, 3) for name, value in result.seconds.items()},
        "details": result.details,
        "environment": environment(str(result.details.get("device", "cpu"))),
    }
    write_cell(out, cell, report, result.samples)
