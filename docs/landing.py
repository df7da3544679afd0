"""What the first page of the site shows that examples make: a graph that moves, and a report page to open."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# File of the site, and the example that writes it, under which name.
FILES = {
    "moving-graph.gif": ("individual_differences", "over_age.gif"),
    "report.html": ("from_table", "report.html"),
}


def write_landing(site: Path) -> None:
    """Copy these files into the folder "live" of the site; an example that the gallery has not run is run."""
    folder = site / "live"
    folder.mkdir(exist_ok=True)
    for name, (example, written) in FILES.items():
        # The gallery runs a script in the folder of the script.
        made = ROOT / "examples" / "build" / "examples" / example
        if not (made / written).exists():
            command = [sys.executable, str(ROOT / "examples" / f"{example}.py"), "--out", str(made)]
            subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        shutil.copy(made / written, folder / name)
