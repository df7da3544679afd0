"""What ``reproduce rates`` writes: errors with their slopes beside the theory's, numbers and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from graphfield import __version__
from graphfield.data.saved_files import json_bytes
from graphfield.experiments.folders import read_done
from graphfield.experiments.rates import TITLES, Curve, Grid, RateCell
from graphfield.experiments.sheets import Line, Section, Sheet
from graphfield.folders import write_file
from graphfield.plots import png_bytes, pyplot
from graphfield.simulate.chain import N_COVARIATES
from graphfield.theory import coefficient_error, network_coefficient_error, rate_exponent

LEVEL = 0.95
# m of Assumption 4, which the theorem takes to be at most of the order of q = 2.
SMOOTHNESS = {"linear": 2.0, "smooth": 2.0, "kinked": 1.0}
_METRICS = ("error", "wrong_edges", "edge_bound")


@dataclass(frozen=True)
class Slope:
    """Of log error on log size: mean over replicates and half the width of its interval (t, 95 %)."""

    value: float
    half_width: float | None

    def __str__(self) -> str:
        return f"{self.value:+.2f}" + ("" if self.half_width is None else f" ± {self.half_width:.2f}")


def found_slope(sizes: Sequence[float], errors: NDArray[np.float64]) -> Slope | None:
    """One slope per replicate (row of ``errors``): replicates are independent, sizes of one are not.

    Sizes at which some error is zero or missing are left out; None where fewer than two are left.
    """
    usable = (np.nan_to_num(errors) > 0).all(axis=0)
    if usable.sum() < 2 or not len(errors):
        return None
    x = np.log(np.asarray(sizes, dtype=float)[usable])
    slopes = np.polyfit(x, np.log(errors[:, usable]).T, 1)[0]
    if len(slopes) < 2:
        return Slope(float(slopes.mean()), None)
    width = stats.t.ppf((1 + LEVEL) / 2, len(slopes) - 1) * stats.sem(slopes)
    return Slope(float(slopes.mean()), float(width))


@dataclass(frozen=True)
class Bound:
    """A result of the theory along a curve, up to its universal constant, and the method it speaks of."""

    title: str
    method: str
    values: NDArray[np.float64]

    def slope(self, sizes: Sequence[float]) -> Slope:
        """Over the same sizes, logarithms included."""
        slope = found_slope(sizes, self.values[None])
        assert slope is not None  # a bound is positive everywhere
        return slope


def bounds_along(curve: Curve) -> list[Bound]:
    """Theorem 2 with its refinement; where a linear family holds the truth, Theorem 1 too."""
    shape = curve.points[0][0].shape
    m, q = SMOOTHNESS[shape], N_COVARIATES
    title = f"Theorem 2, m = {m:g}: n^-{rate_exponent(q, m):.2f} without logarithms"
    sizes = [(n, truth.n_nodes) for truth, n in curve.points]
    networks = Bound(
        title, "dnn-cgm", np.array([float(network_coefficient_error(n, p, q, m)) for n, p in sizes])
    )
    if shape != "linear":
        return [networks]
    values = np.array([float(coefficient_error(n, p, q + 1)) for n, p in sizes])
    return [Bound("Theorem 1, linear in z: n^-1 without logarithms", "reggmm", values), networks]


class Found:
    """Numbers of the cells that are done."""

    def __init__(self, out: Path, cells: Sequence[RateCell]) -> None:
        self.frame = pd.DataFrame(
            [_record(cell, report) for cell, report in read_done(out, cells, "rates").items()]
        )

    def along(self, curve: Curve, method: str, metric: str) -> NDArray[np.float64]:
        """(replicates, points), NaN where a cell is not done; replicates without any are left out."""
        keys = [(truth.name, n) for truth, n in curve.points]
        rows = self.frame[self.frame["method"] == method] if len(self.frame) else self.frame
        if not len(rows):
            return np.empty((0, len(keys)))
        table = rows.pivot_table(index="seed", columns=["setting", "n_train"], values=metric)
        return table.reindex(columns=pd.MultiIndex.from_tuples(keys)).dropna(how="all").to_numpy()

    def methods(self, known: Sequence[str]) -> list[str]:
        present = set(self.frame["method"]) if len(self.frame) else set()
        return [method for method in known if method in present]


def _record(cell: RateCell, report: dict[str, Any]) -> dict[str, Any]:
    metrics = report["metrics"]["coefficients"]["beta"]
    return {
        "setting": cell.setting,
        "shape": cell.truth.shape,
        "n_nodes": cell.truth.n_nodes,
        "margin": cell.truth.margin,
        "n_train": cell.n_train,
        "method": cell.method,
        "seed": cell.seed,
        **{name: metrics.get(name) for name in _METRICS},
        "fit_seconds": report["seconds"]["fit"],
        "device": report["environment"]["device"],
    }


NAME = "rates"
NOTES = (
    "Truth: a chain of nodes, x_j = sum over its neighbours of beta_jk(z) x_k + noise of variance 1, z "
    "uniform on [-1, 1]^2; every edge has a function of its own, up to .4 in size: linear in z, a sine or a "
    "triangle wave (kinked) along a random direction.",
    "Error: mean over z and nodes of (b_j - beta*_j)' A_j(z) (b_j - beta*_j), the left side of Corollary 1, "
    "with A_j(z) from the true covariance. An estimate of zero has about .2 (linear: .05).",
    "Slopes are of log error on log size: one per replicate, their mean ± half of a 95 % interval (t).",
    "Values of the theory have 1 for its universal constant and are no sizes; their slopes are over the same "
    "sizes with all logarithms. A bound from above may fall more slowly than the error, not faster.",
    "Wrong edges: pairs (j, k) whose |b_jk(z)| is on the wrong side of half the margin, mean over z; "
    "coefficients are zero or at least the margin, and move by .1 with z. The bound is that of Corollary 2 "
    "from the measured error, without any constant to choose.",
)


def write_rates(out: Path, grid: Grid, cells: Sequence[RateCell], command: str) -> Sheet:
    """``OUT/rates.md``, ``.html``, ``.json`` and ``.png`` from the cells that are done."""
    found = Found(out, cells)
    sections = [section_of(curve, found) for curve in grid.curves()]
    seeds = sorted({cell.seed for cell in cells})
    footer = f"Seeds {seeds[0]} to {seeds[-1]}. graphfield {__version__}."
    title = "Errors by rows, nodes and margin, beside the theory's rates"
    sheet = Sheet(NAME, title, command, list(NOTES), sections, footer, picture_of(grid, found))
    sheet.write(out)
    content = {
        "command": command,
        "graphfield": __version__,
        "seeds": seeds,
        "grid": asdict(grid),
        "slopes": [line for curve in grid.curves() for line in _slopes(curve, found)],
        "cells": found.frame.to_dict(orient="records"),
    }
    write_file(out / f"{NAME}.json", json_bytes(content), overwrite=True)
    return sheet


def section_of(curve: Curve, found: Found) -> Section:
    what = "Wrong edges" if curve.axis == "margin" else "Error"
    columns = [f"{curve.axis} = {size:,g}" for size in curve.sizes] + ["slope"]
    upper = _upper(curve)
    columns += [f"slope from {curve.sizes[upper]:,g}"] if curve.axis == "n" else []
    return Section(f"{what} by {curve.axis}: {curve.where}", columns, list(_lines(curve, found)))


def _upper(curve: Curve) -> int:
    """Where the upper half of the sizes begins."""
    return len(curve.sizes) // 2


def _lines(curve: Curve, found: Found) -> Iterator[Line]:
    for method in found.methods(list(TITLES)):
        yield _line(TITLES[method], curve, found.along(curve, method, curve.metric), "ours")
        if curve.axis == "margin":
            at_most = found.along(curve, method, "edge_bound")
            yield _line("at most, by Corollary 2", curve, at_most, "published")
    if curve.axis != "margin":
        for bound in bounds_along(curve):
            yield _line(bound.title, curve, bound.values[None], "published")


def _line(label: str, curve: Curve, errors: NDArray[np.float64], kind: str) -> Line:
    means = errors.mean(axis=0) if len(errors) else np.full(len(curve.sizes), np.nan)
    cells = ["-" if np.isnan(mean) else f"{mean:.3g}" for mean in means]
    cells.append(_slope_text(found_slope(curve.sizes, errors)))
    if curve.axis == "n":
        upper = _upper(curve)
        cells.append(_slope_text(found_slope(curve.sizes[upper:], errors[:, upper:])))
    return Line(label, cells, kind)


def _slope_text(slope: Slope | None) -> str:
    return "-" if slope is None else str(slope)


def _slopes(curve: Curve, found: Found) -> Iterator[dict[str, Any]]:
    key = {"curve": curve.where, "axis": curve.axis, "metric": curve.metric}
    for method in found.methods(list(TITLES)):
        slope = found_slope(curve.sizes, found.along(curve, method, curve.metric))
        yield {**key, "of": method, **({} if slope is None else asdict(slope))}
    if curve.axis != "margin":
        for bound in bounds_along(curve):
            yield {**key, "of": bound.title, **asdict(bound.slope(curve.sizes))}


def picture_of(grid: Grid, found: Found) -> bytes:
    """One panel per curve. Dashed: the theory's slope from our first point on, and Corollary 2."""
    curves = grid.curves()
    columns = -(-len(curves) // 2)
    figure, axes = pyplot().subplots(
        2, columns, figsize=(4.3 * columns, 8), layout="constrained", squeeze=False
    )
    for ax, curve in zip(axes.flat, curves, strict=False):
        _draw(ax, curve, found)
    axes.flat[0].legend(fontsize=8)
    figure.suptitle(
        "Dashed: the slopes of Theorem 1 and 2 from our first point on; for wrong edges, Corollary 2",
        fontsize=10,
    )
    return png_bytes(figure, dpi=110)


def _draw(ax: Any, curve: Curve, found: Found) -> None:
    for i, method in enumerate(TITLES):
        errors = found.along(curve, method, curve.metric)
        if not len(errors):
            continue
        colour, means = f"C{i}", errors.mean(axis=0)
        ax.fill_between(curve.sizes, errors.min(axis=0), errors.max(axis=0), color=colour, alpha=0.2)
        ax.plot(curve.sizes, means, "o-", color=colour, label=TITLES[method])
        for bound in _dashed(curve, method, means[0], found):
            ax.plot(curve.sizes, bound, "--", color=colour)
    ax.set(xscale="log", yscale="log", xlabel=curve.axis, title=curve.where)
    ax.set_xticks(curve.sizes, [f"{size:,g}" for size in curve.sizes], fontsize=8)
    ax.set_xticks([], minor=True)
    ax.set_ylabel("wrong edges" if curve.axis == "margin" else "error of beta")


def _dashed(curve: Curve, method: str, start: float, found: Found) -> list[NDArray[np.float64]]:
    if curve.axis == "margin":
        return [found.along(curve, method, "edge_bound").mean(axis=0)]
    return [b.values * start / b.values[0] for b in bounds_along(curve) if b.method == method]
