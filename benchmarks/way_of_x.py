"""Through how many functions and files the node values pass in one fit, and how often back up a layer.

    python benchmarks/way_of_x.py [--list]

A stay is a function of the package that is called with node values (an array, frame or tensor with a column
for each node and at least half of the rows, or a value that holds one), each counted once, in the order of
the first call. A climb is a stay in a higher layer than the one before it, by the layers of pyproject.toml.
"""

from __future__ import annotations

import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import graphfield as gf

ROWS, NODES = 211, 7
ROOT = Path(gf.__file__).parent


def read_layers() -> dict[str, int]:
    """The height of each folder or file below the package."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"][::-1]
    return {name.strip(): height for height, line in enumerate(layers) for name in line.split(":")}


def holds_nodes(value: Any, depth: int = 2) -> bool:
    shape = getattr(value, "shape", ())  # of a class: a descriptor
    if isinstance(shape, tuple) and len(shape) >= 2 and shape[-1] == NODES and shape[-2] >= ROWS // 2:
        return True
    inside = (
        getattr(value, "__dict__", None)
        if depth and type(value).__module__.startswith("graphfield")
        else None
    )
    return inside is not None and any(holds_nodes(part, depth - 1) for part in inside.values())


class Way:
    def __init__(self) -> None:
        self.stays: dict[tuple[str, str], None] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(ROOT)) or code.co_name.startswith("<"):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = [frame.f_locals.get(name) for name in names if name != "self"]
        if any(holds_nodes(value) for value in values):
            self.stays[str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname] = None


def main() -> None:
    rng = np.random.default_rng(0)
    Z, X = rng.uniform(-1, 1, (ROWS, 2)), rng.normal(size=(ROWS, NODES))
    model, way = gf.DNNCGM(max_steps=6, device="cpu", random_state=0), Way()
    model.fit(X, Z)  # what is done in the first fit of a session only
    sys.setprofile(way)
    model.fit(X, Z)
    sys.setprofile(None)
    layers = read_layers()
    heights = [layers[Path(file).parts[0].removesuffix(".py")] for file, _ in way.stays]
    climbs = sum(after > before for before, after in pairwise(heights))
    for file, name in way.stays if "--list" in sys.argv else ():
        print(f"{file:45} {name}")
    print(f"{len(way.stays)} stays in {len({file for file, _ in way.stays})} files, {climbs} climbs")


if __name__ == "__main__":
    main()
