"""Run the numerical tests as other machines would: ``make portable``.

    python tests/portable.py [--only NAME,...] [--list] [pytest arguments]

Other processors take other paths through torch, OpenBLAS and MKL, and round in other ways. Environment
variables choose those paths; which of them this machine knows is looked up first. Exit code 1 where any run
fails.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

# Files whose results depend on rounding, beside all of solvers/.
NUMERICAL = (
    *("test_contract", "test_mixture", "test_together", "test_engines", "test_training", "test_mean"),
    *("test_archetype", "test_reggmm", "test_static", "test_partition", "test_marginals", "test_averaged"),
    *("test_recovery", "test_networks", "test_cores", "test_node_kinds", "test_kernel"),
)


@dataclass(frozen=True)
class Machine:
    """Variables that make this machine compute like another one, and what it must have for them."""

    name: str
    variables: dict[str, str]
    needs: frozenset[str] = field(default_factory=frozenset)  # flags of the processor
    kinds: tuple[str, ...] = ("x86_64", "AMD64")


ONE, TWO = {"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "2"}
ARM = ("aarch64", "arm64")
MACHINES = (
    Machine("two-threads", TWO, kinds=("x86_64", "AMD64", *ARM)),
    Machine(
        "no-vectors",
        {
            **ONE,
            "ATEN_CPU_CAPABILITY": "default",
            "OPENBLAS_CORETYPE": "Nehalem",
            "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        },
    ),
    Machine(
        "avx2",
        {
            **ONE,
            "ATEN_CPU_CAPABILITY": "avx2",
            "OPENBLAS_CORETYPE": "Haswell",
            "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        },
        frozenset({"avx2"}),
    ),
    Machine(
        "avx512",
        {**ONE, "ATEN_CPU_CAPABILITY": "avx512", "OPENBLAS_CORETYPE": "SkylakeX"},
        frozenset({"avx512f", "avx512bw"}),
    ),
    Machine("armv8", {**ONE, "ATEN_CPU_CAPABILITY": "default", "OPENBLAS_CORETYPE": "ARMV8"}, kinds=ARM),
    Machine("cortex-a57", {**ONE, "OPENBLAS_CORETYPE": "CORTEXA57"}, kinds=ARM),
    Machine("neoverse-n1", {**ONE, "OPENBLAS_CORETYPE": "NEOVERSEN1"}, frozenset({"asimddp"}), kinds=ARM),
    Machine("neoverse-v1", {**ONE, "OPENBLAS_CORETYPE": "NEOVERSEV1"}, frozenset({"sve"}), kinds=ARM),
)


def known_machines() -> list[Machine]:
    """Those that this processor can stand in for."""
    flags = processor_flags()
    return [one for one in MACHINES if platform.machine() in one.kinds and one.needs <= flags]


def processor_flags() -> set[str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:  # not Linux: only what needs no flag
        return set()
    lines = [line for line in text.splitlines() if line.lower().startswith(("flags", "features"))]
    return set(lines[0].split(":", 1)[1].split()) if lines else set()


def run_tests(machine: Machine, arguments: list[str]) -> int:
    here = Path(__file__).parent
    files = [str(next(here.rglob(f"{name}.py"))) for name in NUMERICAL]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", str(here / "solvers"), *files, *arguments]
    return subprocess.run(command, env={**os.environ, **machine.variables}, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="names of machines, separated by commas")
    parser.add_argument(
        "--list", action="store_true", help="only say which machines this one can stand in for"
    )
    chosen, arguments = parser.parse_known_args()
    machines = known_machines()
    if chosen.only:
        names = chosen.only.split(",")
        unknown = sorted(set(names) - {one.name for one in machines})
        if unknown:
            parser.error(f"not known here: {', '.join(unknown)}; there are {[one.name for one in machines]}")
        machines = [one for one in machines if one.name in names]
    lines = []
    for machine in machines:
        print(f"== {machine.name}: {machine.variables}", flush=True)  # noqa: T201
        if chosen.list:
            continue
        start = time.perf_counter()
        code = run_tests(machine, arguments)
        lines.append((machine.name, code, time.perf_counter() - start))
    for name, code, seconds in lines:
        print(f"{name:12s} {'passed' if code == 0 else f'FAILED ({code})'} {seconds:7.0f} s")  # noqa: T201
    return int(any(code for _, code, _ in lines))


if __name__ == "__main__":
    sys.exit(main())
