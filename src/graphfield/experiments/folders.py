"""One folder per cell: what was run, its numbers, the scores of every sample, and a mark that it is whole.

OUT/run.json                                         the format of this folder
OUT/cells/G1/dnn-cgm/n10000-test1000-seed0/spec.json    what decides the result
                                          report.json   metrics, times, versions, hardware
                                          samples.parquet   one row per evaluation and test sample
                                          DONE
OUT/table1.md, .csv, .html
"""

from __future__ import annotations

import json
import os
import platform
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from graphfield import __version__
from graphfield.data.saved_files import json_bytes
from graphfield.exceptions import DataWarning, OutputError
from graphfield.folders import clear_leftovers, holds_others, make_folder, write_file, write_folder
from graphfield.graphs.export import parquet_bytes
from graphfield.messages import Message, message_of


@dataclass
class Result:
    """What a cell found.

    ``metrics`` are means over the test samples (evaluation -> truth -> metric), ``samples`` what they are
    means of; ``config`` is the full configuration of the model, ``details`` what else was learned.
    """

    title: str
    metrics: dict[str, dict[str, dict[str, float]]]
    samples: pd.DataFrame
    seconds: dict[str, float]
    config: dict[str, Any]
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell(ABC):
    """One fit: its fields and ``parameters`` decide its result, and nothing else."""

    setting: str
    method: str
    n_train: int
    n_test: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.setting}/{self.method}/n{self.n_train}-test{self.n_test}-seed{self.seed}"

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Of the model, as JSON can hold them."""

    @abstractmethod
    def run(self, device: str) -> Result:
        """Simulate, fit, predict, score."""

    def check_installed(self) -> None:  # noqa: B027 - most need nothing
        """Raise where a package is missing that ``run`` needs."""


FORMAT, FORMAT_VERSION = "graphfield-reproduction", 1
_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pandas", "skglm")
SomeCell = TypeVar("SomeCell", bound=Cell)
_FORCE = Message("Pass force=True", code="force")


def open_results(out: Path) -> None:
    """Create ``out`` as a results folder, or check that it is one that this version can go on with."""
    header = out / "run.json"
    clear_leftovers(header)
    if header.is_file():
        _check_header(out, header)
        return
    if out.is_dir() and holds_others(out):
        raise OutputError(
            "{file} holds other files and no results of experiments. Name another folder.", file=out
        )
    make_folder(out)
    content = {"format": FORMAT, "format_version": FORMAT_VERSION}
    write_file(header, json_bytes(content), overwrite=True)


def _check_header(out: Path, header: Path) -> None:
    try:
        content = json.loads(header.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OutputError(f"{header} is damaged: {error}.").about(file=header) from error
    found = content.get("format_version") if isinstance(content, dict) else None
    if not isinstance(content, dict) or content.get("format") != FORMAT or found != FORMAT_VERSION:
        raise OutputError(
            f"{out} has results of format version {found!r}; this graphfield ({__version__}) writes "
            f"{FORMAT_VERSION}. Name another folder."
        ).about(file=out)


def cell_folder(out: Path, cell: Cell) -> Path:
    return out / "cells" / cell.name


def cell_spec(cell: Cell) -> dict[str, Any]:
    """What decides a cell's result, as plain JSON values."""
    return json.loads(json.dumps({**asdict(cell), "parameters": cell.parameters()}))


def is_done(out: Path, cell: Cell) -> bool:
    """Whether the cell is whole. Another configuration under its name is an error, not a hit."""
    folder = cell_folder(out, cell)
    clear_leftovers(folder)
    if not (folder / "DONE").is_file():
        return False
    try:
        stored = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(folder / "spec.json", error) from error
    if stored != cell_spec(cell):
        raise OutputError(
            "{file} was run with other parameters. {force} to replace it, or name another folder.",
            file=folder,
            force=_FORCE,
        )
    return True


def read_report(out: Path, cell: Cell) -> dict[str, Any]:
    path = cell_folder(out, cell) / "report.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error


def read_done(out: Path, cells: Iterable[SomeCell], reader: str) -> dict[SomeCell, dict[str, Any]]:
    """Reports of the cells that are done; one that cannot be used is left out with a warning."""
    reports = {}
    for cell in cells:
        try:
            if is_done(out, cell):
                reports[cell] = read_report(out, cell)
        except OutputError as error:
            warn_left_out(reader, cell.name, error)
    return reports


def warn_left_out(reader: str, cell: str, error: Exception) -> None:
    said = Message("{reader} leaves out {cell}: {error}", reader=reader, cell=cell, error=message_of(error))
    warnings.warn(said, DataWarning, stacklevel=3)


def _damaged(path: Path, error: Exception) -> OutputError:
    return OutputError(
        "{file} is damaged: {error}. {force} to run it again.", file=path, error=error, force=_FORCE
    )


def write_cell(out: Path, cell: Cell, report: dict[str, Any], samples: pd.DataFrame) -> None:
    """The whole folder or none of it: an interrupted run leaves no DONE, and an earlier cell as it was."""
    files = {"spec.json": json_bytes(cell_spec(cell)), "report.json": json_bytes(report)}
    if find_spec("pyarrow") is None:
        files["samples.csv"] = samples.to_csv(index=False).encode()
    else:
        files["samples.parquet"] = parquet_bytes(samples)
    folder = cell_folder(out, cell)
    for above in reversed(folder.relative_to(out).parents[:-1]):
        make_folder(out / above)
    write_folder(folder, {**files, "DONE": b""}, overwrite=True)


def environment(device: str) -> dict[str, Any]:
    """Versions and hardware of a run."""
    return {
        "graphfield": __version__,
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES if find_spec(_module(name))},
        "device": device,
        "machine": platform.machine(),
        "system": sys.platform,
        "threads": os.environ.get("OMP_NUM_THREADS") or os.cpu_count(),
    }


def _module(package: str) -> str:
    return {"scikit-learn": "sklearn"}.get(package, package)
