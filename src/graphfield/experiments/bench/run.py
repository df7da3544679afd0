"""Runs the cases, and writes what was found as JSON and as a Markdown table."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from graphfield import __version__
from graphfield.data.saved_files import json_bytes
from graphfield.experiments.bench import scaling
from graphfield.experiments.bench.cases import CASES, Effort
from graphfield.experiments.bench.machine import card
from graphfield.experiments.bench.records import NotMeasuredError, Record
from graphfield.experiments.runner import choose
from graphfield.folders import already_exists, make_folder, write_file
from graphfield.training.config import resolve_device
from graphfield.training.progress import progress_bar

FORMAT, FORMAT_VERSION = "graphfield-bench", 1
FILES = ("bench.json", "bench.md")
SCALING_FILES = ("scaling.json", "scaling.png")
QUIET = 0.85  # share of the cores that must be free for figures of the CPU to mean something
HEADER = ("work", "ours", "reference", "ratio", "spread", "required", "memory", "met")


@dataclass
class Results:
    """What was measured, what was not and why, and what failed."""

    quick: bool
    command: str
    machine: dict[str, Any]
    records: list[Record] = field(default_factory=list)
    not_measured: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    traces: list[str] = field(default_factory=list)


BUSY = "Other programs were using the processor: repeat this when they have ended."


def is_quiet(results: Results) -> bool:
    return results.machine.get("free_share_of_cores", 1.0) >= QUIET


def devices_of(device: str) -> list[torch.device]:
    """The CPU always with "auto", and the GPU where there is one; otherwise the one that is named."""
    chosen = resolve_device(device)
    if device == "auto" and chosen.type == "cuda":
        return [torch.device("cpu"), chosen]
    return [chosen]


def run_bench(
    only: Sequence[str] | None, device: str, quick: bool, command: str, tell: Callable[[str], None]
) -> Results:
    """Run the cases one after the other; one that fails does not stop the others."""
    names = choose("case", only, CASES)
    devices = devices_of(device)
    kinds = {"any", *(d.type for d in devices)}
    todo = [name for name in names if CASES[name].device in kinds]
    results = Results(quick, command, card(devices))
    for name in names:
        if name not in todo:
            results.not_measured[name] = f"needs the device {CASES[name].device}, this run had {_list(kinds)}"
    with progress_bar("measuring", len(todo), unit="cases") as advance:
        for done, name in enumerate(todo, start=1):
            advance(done - 1, name)
            _run_case(name, results)
            for record in results.records:
                if record.name.partition("/")[0] == name:
                    tell(line(record))
            advance(done, name)
    return results


def _run_case(name: str, results: Results) -> None:
    try:
        results.records += CASES[name].run(Effort(results.quick))
    except NotMeasuredError as reason:
        results.not_measured[name] = str(reason)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in one case, the others must go on
        results.failures[name] = f"{type(error).__name__}: {error}"
        results.traces.append(traceback.format_exc())


def check_folder(out: Path, force: bool, with_scaling: bool) -> None:
    """Earlier results are only replaced when told to; complain before hours of measuring."""
    for name in (*FILES, *(SCALING_FILES if with_scaling else ())):
        if (out / name).exists() and not force:
            raise already_exists(out / name)
    make_folder(out)


def write_results(results: Results, out: Path) -> None:
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "graphfield": __version__,
        "command": results.command,
        "quick": results.quick,
        "machine": results.machine,
        "records": [record.to_json() for record in results.records],
        "not_measured": results.not_measured,
        "failures": results.failures,
    }
    write_file(out / "bench.json", json_bytes(content), overwrite=True)
    write_file(out / "bench.md", markdown(results).encode(), overwrite=True)


def run_scaling(out: Path, quick: bool, device: str) -> None:
    points = scaling.measure(quick, device)
    content = json_bytes({"base": scaling.BASE, "points": points})
    write_file(out / "scaling.json", content, overwrite=True)
    scaling.draw(points, out / "scaling.png")


def cells(record: Record) -> tuple[str, ...]:
    """One line of the table, in the order of :data:`HEADER`."""
    met = {True: "yes", False: "no", None: ""}[record.met]
    memory = ""
    if record.memory_ours is not None and record.memory_reference is not None:
        memory = f"{record.memory_ours:,.0f} / {record.memory_reference:,.0f} MB"
    low, high = record.spread
    return (
        record.title,
        f"{record.ours:.3g} {record.unit}",
        f"{record.reference:.3g} {record.unit}",
        f"{record.ratio:.3g}x",
        f"{low:.3g}-{high:.3g}",
        "" if record.required is None else f"{record.required:g}x",
        memory,
        met,
    )


def line(record: Record) -> str:
    """One line for the screen."""
    _, ours, reference, ratio, _, required, _, met = cells(record)
    return f"{record.name:28s} {ours:>10s} {reference:>10s} {ratio:>8s} {required:>8s}  {met}".rstrip()


def screen_header() -> str:
    return f"{'':28s} {'ours':>10s} {'reference':>10s} {'ratio':>8s} {'required':>8s}  met"


def markdown(results: Results) -> str:
    rows = [HEADER, tuple("---" for _ in HEADER), *(cells(record) for record in results.records)]
    lines = ["# Speed", "", f"`{results.command}`", ""]
    if results.quick:
        lines += ["A quick run: fewer rounds, and smaller problems where the size stands in the name.", ""]
    if not is_quiet(results):
        lines += [BUSY, ""]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines += [
        "",
        "Ratio: reference / ours, the median over rounds in which both took turns; spread: lowest and "
        "highest round. Memory: ours / reference, of training above what the imports need.",
    ]
    for record in results.records:
        extra = [
            f"{c.what} {c.value:.3g} ({'at most' if c.at_most else 'at least'} {c.needed:g})"
            for c in record.checks
        ]
        extra += [f"{key} {_text(value)}" for key, value in record.details.items()]
        if extra:
            lines += ["", f"- {record.title}: " + "; ".join(extra)]
    lines += ["", "## Machine", ""]
    lines += [f"- {key}: {_text(value)}" for key, value in results.machine.items() if value is not None]
    if results.not_measured or results.failures:
        lines += ["", "## Not measured", ""]
        lines += [f"- {name}: {reason}" for name, reason in results.not_measured.items()]
        lines += [f"- {name} failed: {reason}" for name, reason in results.failures.items()]
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    return str(value)


def _list(kinds: set[str]) -> str:
    return " and ".join(sorted(kinds - {"any"}))
