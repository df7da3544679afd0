"""How does a fit behave beside other programs, and what does a second core give?

    .venv/bin/python benchmarks/beside_others.py [--model dnncgm] [--rows 10000] [--out FILE.json]

Fits run in processes of their own on the first two cores that this one may use: one alone, one on one core,
one with one thread, and two at once. Prints wall and CPU seconds of each, a checksum of its coefficients
(they must all agree), and the ratios. A fit longer than ``--limit`` seconds is stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CASES = {  # fits at once, cores they may use, environment
    "alone": (1, 2, {}),
    "alone, one core": (1, 1, {}),
    "alone, OMP_NUM_THREADS=1": (1, 2, {"OMP_NUM_THREADS": "1"}),
    "two at once": (2, 2, {}),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=("dnncgm", "auto"), default="dnncgm")
    parser.add_argument("--setting", default="G1")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--limit", type=int, default=600, help="seconds after which a fit is stopped")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _fit(arguments)
        return
    found = []
    for repeat in range(arguments.repeats):
        for name, case in CASES.items():
            for line in _measure(*case, arguments.limit):
                found.append({"case": name, "repeat": repeat, **line})
                print(found[-1], flush=True)
    _print_ratios(found)
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


def _fit(arguments: argparse.Namespace) -> None:
    import graphfield as gf

    sim = gf.make_setting(arguments.setting, n_samples=arguments.rows, random_state=0)
    kind = {"dnncgm": gf.DNNCGM, "auto": gf.AutoCGM}[arguments.model]
    cpu, wall = time.process_time(), time.perf_counter()
    model = kind(random_state=0).fit(sim.X, sim.Z)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    digest = hashlib.sha256(model.predict_coef(sim.Z[:200]).tobytes()).hexdigest()[:12]
    print(json.dumps({"wall": round(wall, 1), "cpu": round(cpu, 1), "bits": digest}))


def _measure(fits: int, cores: int, environment: dict[str, str], limit: int) -> list[dict[str, Any]]:
    """Start that many fits on the first cores of this process, and wait for all."""
    mine = sorted(os.sched_getaffinity(0))[:cores]
    command = [sys.executable, __file__, "--child", *(a for a in sys.argv[1:] if a != "--child")]
    running = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
            preexec_fn=lambda: os.sched_setaffinity(0, mine),
        )
        for _ in range(fits)
    ]
    started, lines = time.perf_counter(), []
    for child in running:
        try:
            printed, _ = child.communicate(timeout=max(1, limit - (time.perf_counter() - started)))
            lines.append(json.loads(printed.splitlines()[-1]))
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            lines.append({"wall": None, "stopped after": limit})
    return lines


def _print_ratios(found: list[dict[str, Any]]) -> None:
    walls: dict[str, list[float]] = {}
    for line in found:
        if line["wall"] is not None:
            walls.setdefault(line["case"], []).append(line["wall"])
    middle = {name: sorted(values)[len(values) // 2] for name, values in walls.items()}
    if "two at once" in middle:
        print(f"two at once / one alone: {middle['two at once'] / middle['alone']:.2f}")
    if "alone, one core" in middle:
        print(f"one core / two cores: {middle['alone, one core'] / middle['alone']:.2f}")
    print(f"different results: {len({line['bits'] for line in found if 'bits' in line})}")


if __name__ == "__main__":
    main()
