"""Slopes of the errors of ``reproduce rates``, and what the theory says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from graphfield.experiments.folders import read_done
from graphfield.experiments.rates import Curve, RateCell
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
