"""Print the lowest versions that pyproject.toml allows, as a pip constraints file. Used by ``make lowest``.

torch is kept at the version of constraints.txt: its older wheels for x86 bring gigabytes of CUDA packages.
With ``--torch-floor`` it is at its floor as well, for ARM or an index of CPU wheels.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def read_floors() -> dict[str, str]:
    """Package to its lowest version, for everything but the tools of development."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra, lines in project["optional-dependencies"].items():
        if extra not in ("dev", "docs"):
            wanted += [line for line in lines if not line.startswith("graphfield[")]
    floors = {}
    for line in wanted:
        pair = re.fullmatch(r"([\w.-]+)>=([\w.]+)", line)
        if pair is None:
            raise SystemExit(f"pyproject.toml: {line!r} is not of the form NAME>=VERSION.")
        floors[pair[1]] = pair[2]
    return floors


def read_pin(package: str) -> str:
    """The version that constraints.txt has of a package."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    found = re.search(rf"^{package}==(\S+)$", pins, re.MULTILINE)
    assert found is not None
    return found[1]


if __name__ == "__main__":
    floors = read_floors()
    if "--torch-floor" not in sys.argv[1:]:
        floors["torch"] = read_pin("torch")
    sys.stdout.writelines(f"{package}=={version}\n" for package, version in sorted(floors.items()))
