"""Time and memory of a fit and of prediction against n, p and q, each in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphfield.experiments.bench.child import in_child
from graphfield.folders import write_file
from graphfield.plots import png_bytes, pyplot
from graphfield.training.progress import progress_bar

MAX_STEPS = 50
BASE = {"n": 10_000, "p": 50, "q": 2}
FULL = {"n": [1_000, 10_000, 100_000, 1_000_000], "p": [10, 30, 100, 300, 1_000], "q": [1, 5, 20, 50]}
QUICK = {"n": [1_000, 10_000, 100_000], "p": [10, 30, 100], "q": [1, 10, 50]}
_LABELS = {"n": "rows n", "p": "nodes p", "q": "covariates q"}


def measure(quick: bool, device: str) -> list[dict[str, Any]]:
    """One entry per point: which size moved, n, p, q, seconds, memory."""
    grid = QUICK if quick else FULL
    points = [(axis, {**BASE, axis: size}) for axis, sizes in grid.items() for size in sizes]
    found = []
    with progress_bar("scaling", len(points), unit="fits") as advance:
        for done, (axis, sizes) in enumerate(points, start=1):
            result = in_child("fit", **sizes, max_steps=MAX_STEPS, device=device)
            found.append({"axis": axis, **sizes, "max_steps": MAX_STEPS, **result})
            advance(done, f"{axis} = {sizes[axis]:,}")
    return found


def draw(points: list[dict[str, Any]], path: Path) -> None:
    """Two rows of log-log pictures: seconds and memory against n, p and q."""
    figure, axes = pyplot().subplots(2, len(_LABELS), figsize=(11, 6), layout="constrained", sharey="row")
    for column, (axis, label) in enumerate(_LABELS.items()):
        part = [point for point in points if point["axis"] == axis]
        sizes = [point[axis] for point in part]
        fixed = ", ".join(f"{name} = {value:,}" for name, value in BASE.items() if name != axis)
        top, bottom = axes[:, column]
        top.loglog(sizes, [point["fit_s"] for point in part], "o-", label=f"fit, {MAX_STEPS} steps")
        top.loglog(sizes, [point["predict_s"] for point in part], "s--", label="predict 1,000 graphs")
        top.set_title(f"{label} ({fixed})", fontsize=10)
        for name, memory in _memory_lines(part).items():
            bottom.loglog(sizes, memory, "o-", label=name)
        bottom.set_xlabel(label)
        for ax in (top, bottom):
            ax.grid(alpha=0.3, which="both")
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("MB")
    axes[0, 0].legend(fontsize=8)
    axes[1, 0].legend(fontsize=8)
    write_file(path, png_bytes(figure, dpi=120), overwrite=True)


def _memory_lines(part: list[dict[str, Any]]) -> dict[str, list[float]]:
    above = [max(1.0, point["peak_mb"] - point["base_mb"]) for point in part]
    lines = {"peak above the imports": above}
    if all(point["gpu_mb"] for point in part):
        lines["peak on the GPU"] = [point["gpu_mb"] for point in part]
    return lines
