"""Cells of ``reproduce rates``: how far estimated coefficients are from true ones, by n, p and margin."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.dnncgm import DNNCGM
from graphfield.estimators.persistence import plain_params
from graphfield.estimators.reggmm import RegGMM
from graphfield.experiments.folders import Cell, Result
from graphfield.experiments.methods import hardware
from graphfield.graphs.strength import coef_from_precision
from graphfield.simulate.chain import STRENGTH, Chain
from graphfield.theory import edge_errors

# The model of the paper, stopped where held-out rows say so; its size does not grow with n.
PAPER = {"rank": None, "marginals": "raw", "center": "none", "standardize": False, "penalty": 0.0}
MOVEMENT = 0.1  # by how much coefficients move with z where their margin is varied
TITLES = {
    "reggmm": "RegGMM: linear in z",
    "dnn-cgm": "network of the paper's model",
    "dnn-cgm-default": "DNNCGM, our defaults",
}


@dataclass(frozen=True)
class Truth:
    """A chain of nodes; with a margin, coefficients are zero or at least that in size at every z."""

    shape: str
    n_nodes: int
    margin: float | None = None

    @property
    def name(self) -> str:
        margin = "" if self.margin is None else f"-margin{self.margin:g}"
        return f"chain-{self.shape}-p{self.n_nodes}{margin}"

    def field(self, rng: np.random.Generator) -> Chain:
        low = -STRENGTH if self.margin is None else self.margin
        high = STRENGTH if self.margin is None else self.margin + MOVEMENT
        return Chain(self.n_nodes, rng, shape=self.shape, low=low, high=high)


@dataclass(frozen=True)
class Curve:
    """Truths with a number of rows each, of which one thing grows: "n", "p" or the "margin"."""

    where: str
    axis: str
    points: tuple[tuple[Truth, int], ...]

    @property
    def sizes(self) -> list[float]:
        if self.axis == "margin":
            return [float(truth.margin or 0) for truth, _ in self.points]
        return [float(n if self.axis == "n" else truth.n_nodes) for truth, n in self.points]

    @property
    def metric(self) -> str:
        return "wrong_edges" if self.axis == "margin" else "error"


@dataclass(frozen=True)
class Grid:
    """What is varied while the rest stays: rows at ``at_nodes``, nodes at ``at_rows``, margins."""

    rows: tuple[int, ...]
    nodes: tuple[int, ...]
    margins: tuple[float, ...]
    at_rows: int
    at_nodes: int
    margin_rows: int
    shapes: tuple[str, ...] = ("linear", "smooth", "kinked")
    node_shapes: tuple[str, ...] = ("linear", "smooth")
    margin_shape: str = "smooth"
    n_test: int = 500

    def curves(self) -> list[Curve]:
        by_rows = [
            Curve(
                f"{shape} in z, p = {self.at_nodes}",
                "n",
                tuple((Truth(shape, self.at_nodes), n) for n in self.rows),
            )
            for shape in self.shapes
        ]
        by_nodes = [
            Curve(
                f"{shape} in z, n = {self.at_rows:,}",
                "p",
                tuple((Truth(shape, p), self.at_rows) for p in self.nodes),
            )
            for shape in self.node_shapes
        ]
        chain = [Truth(self.margin_shape, self.at_nodes, margin) for margin in self.margins]
        where = f"{self.margin_shape} in z, p = {self.at_nodes}, n = {self.margin_rows:,}"
        by_margin = Curve(where, "margin", tuple((truth, self.margin_rows) for truth in chain))
        return [*by_rows, *by_nodes, by_margin]


FULL = Grid(
    rows=(1_000, 2_500, 5_000, 10_000, 20_000, 40_000, 80_000),
    nodes=(10, 20, 50, 100),
    margins=(0.05, 0.1, 0.15, 0.2, 0.3),
    at_rows=10_000,
    at_nodes=20,
    margin_rows=5_000,
)
QUICK = Grid(
    rows=(500, 1_000, 2_000, 4_000),
    nodes=(5, 10, 20),
    margins=(0.05, 0.15, 0.3),
    at_rows=1_000,
    at_nodes=10,
    margin_rows=1_000,
    n_test=200,
)


@dataclass(frozen=True)
class RateCell(Cell):
    """One fit to rows of a chain, scored by how far its coefficients are from the true ones."""

    truth: Truth

    def parameters(self) -> dict[str, Any]:
        seeded = {} if self.method == "reggmm" else {"random_state": self.seed}
        return {**(PAPER if self.method == "dnn-cgm" else {}), **seeded}

    def run(self, device: str) -> Result:
        structure, covariates, noise = np.random.default_rng(self.seed).spawn(3)
        field = self.truth.field(structure)
        Z = field.covariates(self.n_test + self.n_train, covariates)  # test rows are the same for every n
        Z_test, Z_train = Z[: self.n_test], Z[self.n_test :]
        X_train = field.sample(Z_train, noise)
        model = self._model(device)
        start = time.perf_counter()
        model.fit(X_train, Z_train)
        seconds = {"fit": time.perf_counter() - start}
        samples, gamma = score_coefficients(model.predict_coef(Z_test), field, Z_test, self.truth.margin)
        metrics = {str(name): float(value) for name, value in samples.mean().items()}
        if self.truth.margin is not None:
            metrics["edge_bound"] = float(
                edge_errors(metrics["error"], self.truth.n_nodes, self.truth.margin, gamma=gamma)
            )
        details = {"gamma": gamma, "device": "cpu" if self.method == "reggmm" else hardware(device)}
        found = {"coefficients": {"beta": metrics}}
        return Result(TITLES[self.method], found, samples, seconds, plain_params(model), details)

    def _model(self, device: str) -> GraphEstimator:
        parameters = self.parameters()
        return RegGMM(**parameters) if self.method == "reggmm" else DNNCGM(**parameters, device=device)


def score_coefficients(
    coef: NDArray[np.floating], field: Chain, Z: NDArray[np.float64], margin: float | None
) -> tuple[pd.DataFrame, float]:
    """At every z the error of Corollary 1 and, with a margin, the wrong edges; and gamma of Assumption 6.

    The error is the mean over j of (b_j - beta*_j)' A_j(z) (b_j - beta*_j), A_j(z) from the true
    covariance. Edges are those above half the margin.
    """
    theta = field.precision(Z)
    truth = coef_from_precision(theta)
    off = coef - truth
    samples = {"error": (off @ np.linalg.inv(theta) * off).sum(axis=2).mean(axis=1)}
    if margin is not None:
        wrong = (np.abs(coef) >= margin / 2) != (truth != 0)
        samples["wrong_edges"] = wrong.sum(axis=(1, 2))
    gamma = 1 / float(np.linalg.eigvalsh(theta)[:, -1].max())
    return pd.DataFrame(samples), gamma


def plan_rates(grid: Grid, methods: Sequence[str], seeds: Sequence[int]) -> list[RateCell]:
    """Every fit once, a whole replicate after the other and the longest first."""
    points = dict.fromkeys(point for curve in grid.curves() for point in curve.points)
    longest_first = sorted(points, key=lambda point: -point[1] * point[0].n_nodes)
    return [
        RateCell(truth.name, method, n, grid.n_test, seed, truth)
        for seed in seeds
        for truth, n in longest_first
        for method in methods
    ]
