"""A function for every case and seed, each in a process of its own: a line each, then medians over seeds."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

Line = dict[str, Any]
# What is printed, a function, and its arguments but for seed and device.
Case = tuple[str, Callable[..., Line], tuple[Any, ...]]


def seed_options(parser: argparse.ArgumentParser, seeds: int) -> None:
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a JSON file for all lines")


def run_cases(cases: Iterable[Case], arguments: argparse.Namespace) -> None:
    seeds = [arguments.first_seed + which for which in range(arguments.seeds)]
    tasks = [(case, seed, arguments.device) for case in cases for seed in seeds]
    lines: dict[str, list[Line]] = {}
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        for label, line in pool.imap_unordered(_run, tasks):
            lines.setdefault(label, []).append(line)
            print(f"  {label}: " + "  ".join(f"{key} {value:.3f}" for key, value in line.items()), flush=True)
            if arguments.out:
                found = [{"case": name, **own} for name, several in lines.items() for own in several]
                arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    print("\nmedians over seeds (lowest to highest)")
    for label, own in lines.items():
        table = pd.DataFrame(own)
        spread = {key: f"{v.median():.3f} ({v.min():.3f} to {v.max():.3f})" for key, v in table.items()}
        print(f"{label}: " + "  ".join(f"{key} {value}" for key, value in spread.items()) + f"  [{len(own)}]")


def write_lines(lines: Iterable[Line], out: Path | None, about: dict[str, Any]) -> None:
    """Print each as soon as it is there; all, with what they are about, go into a file if one is named."""
    found = []
    for line in lines:
        print(json.dumps(line), flush=True)
        found.append(line)
    if out:
        out.write_text(json.dumps({**about, "lines": found}, indent=1) + "\n")


def _run(task: tuple[Case, int, str]) -> tuple[str, Line]:
    (label, function, values), seed, device = task
    warnings.simplefilter("ignore")
    start = time.process_time()
    line = function(*values, seed, device)
    return label, {**line, "seconds": time.process_time() - start}
