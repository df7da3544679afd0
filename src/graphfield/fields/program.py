"""A field as a small program that a page without Python can run: z -> partial correlations.

Every part says how edges and residual variances follow from a few features u(z). Coefficients are in units of
reference scales, ``beta_jk ref_k / ref_j``, and residual standard deviations in units of ``ref``; where the
latter do not move with z they are 1, and the former are the directed strengths themselves. ``evaluate``
runs a program in NumPy, to say how far the page is from the model; ``page/model.js`` runs it in the page.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariates import MARGIN, CovariateEncoder
from graphfield.data.level_text import as_text
from graphfield.data.moving_scales import MovingScales
from graphfield.fields.store import Store, rounded


@dataclass(frozen=True)
class Inputs:
    """Covariates to numbers: ``(z - mean) / scale`` within bounds, then a row of a table per category.

    The last row of a table is for a level that the model has not seen.
    """

    numeric: list[dict[str, Any]]  # name, mean, scale, low, high
    categorical: list[tuple[str, tuple[str, ...], NDArray]]  # name, levels, (levels + 1, width)

    @classmethod
    def of(cls, encoder: CovariateEncoder, tables: Sequence[NDArray]) -> Inputs:
        numeric = []
        for column in encoder.numeric:
            margin = MARGIN * (column.high - column.low)
            bounds = {"low": column.low - margin, "high": column.high + margin}
            numeric.append({"name": column.name, "mean": column.mean, "scale": column.scale, **bounds})
        named = zip(encoder.categorical, tables, strict=True)
        return cls(numeric, [(column.name, column.levels, table) for column, table in named])

    def at(self, Z: pd.DataFrame) -> NDArray[np.float64]:
        parts = [np.empty((len(Z), 0))]
        for column in self.numeric:
            values = Z[column["name"]].to_numpy(dtype=np.float64).clip(column["low"], column["high"])
            parts.append(((values - column["mean"]) / column["scale"])[:, None])
        for name, levels, table in self.categorical:
            index = pd.Index(levels).get_indexer(pd.Index(as_text(Z[name])))
            parts.append(table.astype(np.float64)[index])  # -1, unknown, is the last row
        return np.hstack(parts)

    def stored(self, store: Store) -> dict[str, Any]:
        tables = [{"name": n, "levels": list(v), "table": store.add(t)} for n, v, t in self.categorical]
        return {"numeric": self.numeric, "categorical": tables}


@dataclass(frozen=True)
class Features:
    """u(z): inputs through steps such as ``("affine", W, b)``, ``("relu",)``, ``("softmax",)``.

    ``("join",)`` puts the inputs in front of what was computed, ``("one",)`` a one behind it, and
    ``("grid", axes)`` turns numbers into weights of the corners of a grid cell.
    """

    inputs: Inputs
    steps: list[tuple[Any, ...]]

    def at(self, Z: pd.DataFrame) -> NDArray[np.float64]:
        x = u = self.inputs.at(Z)
        for name, *values in self.steps:
            if name == "affine":
                u = u @ values[0].astype(np.float64) + values[1].astype(np.float64)
            elif name == "relu":
                u = np.maximum(u, 0)
            elif name == "join":
                u = np.hstack([x, u])
            elif name == "one":
                u = np.hstack([u, np.ones((len(u), 1))])
            elif name == "softmax":
                u = np.exp(u - u.max(axis=1, keepdims=True))
                u /= u.sum(axis=1, keepdims=True)
            else:
                u = grid_weights(u, values[0])
        return u

    def stored(self, store: Store) -> dict[str, Any]:
        steps = []
        for name, *values in self.steps:
            if name == "affine":
                shape = list(values[0].shape)
                steps.append(
                    {"op": name, "shape": shape, "weight": store.add(values[0]), "bias": store.add(values[1])}
                )
            else:
                steps.append({"op": name, **({"axes": values[0]} if values else {})})
        return {"inputs": self.inputs.stored(store), "steps": steps}


def grid_weights(x: NDArray, axes: Sequence[dict[str, Any]]) -> NDArray[np.float64]:
    """Weights of all points of a grid, the last axis fastest: linear between knots, exact at levels."""
    weights, start = np.ones((len(x), 1)), 0
    for axis in axes:
        if "knots" in axis:
            knots = np.asarray(axis["knots"])
            own = np.column_stack([np.interp(x[:, start], knots, row) for row in np.eye(len(knots))])
            start += 1
        else:
            own, start = x[:, start : start + axis["levels"]], start + axis["levels"]
        weights = (weights[:, :, None] * own[:, None, :]).reshape(len(x), -1)
    return weights


class NotExported(Exception):
    """A field that has no program; the message says why, as the end of a sentence."""


def indicators(encoder: CovariateEncoder) -> list[NDArray]:
    """One column per level; a level unseen in training has the shares of the known ones."""
    return [column.indicators for column in encoder.categorical]


def feature_inputs(encoder: CovariateEncoder) -> Inputs:
    """The features of the covariates as linear fields have them, without their one."""
    return Inputs.of(encoder, [table[:, 1:] for table in indicators(encoder)])


def log_scales(scales: MovingScales | None, encoder: CovariateEncoder) -> Features | None:
    if scales is None:
        return None
    steps: list[tuple[Any, ...]] = [("affine", scales.weights, scales.bias), ("relu",)]
    return Features(feature_inputs(encoder), [*steps, ("affine", scales.slopes, scales.constant)])


# Forward (j, k) and backward (k, j) coefficients of every pair j < k, (n, pairs), and variances (n, p).
Values = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


class Program(ABC):
    """Something that gives coefficients and residual variances at z, and that a page can run."""

    @abstractmethod
    def at(self, Z: pd.DataFrame) -> Values: ...

    @abstractmethod
    def stored(self, store: Store) -> dict[str, Any]: ...

    @abstractmethod
    def size(self) -> int:
        """How many numbers there are that grow with the square of the nodes."""

    @abstractmethod
    def rounded(self, kind: str) -> Program:
        """The same with these numbers as ``kind`` has them."""


@dataclass(frozen=True)
class Linear(Program):
    """``beta = sum_r u_r(z) patterns_r`` with residual variances that do not move."""

    features: Features
    pairs: NDArray  # positions of the pairs that have an edge in any pattern
    patterns: NDArray  # (2, R, pairs): forward and backward
    variance: NDArray  # (p,)

    @classmethod
    def of(cls, features: Features, patterns: NDArray, variance: NDArray) -> Linear:
        """From patterns as matrices, (R, p, p)."""
        j, k = np.triu_indices(len(variance), 1)
        both = np.stack([patterns[:, j, k], patterns[:, k, j]])
        used = np.flatnonzero((both != 0).any(axis=(0, 1)))
        return cls(features, used, both[:, :, used], variance)

    def at(self, Z: pd.DataFrame) -> Values:
        p = len(self.variance)
        found = np.zeros((2, len(Z), p * (p - 1) // 2))
        found[:, :, self.pairs] = self.features.at(Z) @ self.patterns.astype(np.float64)
        return found[0], found[1], np.broadcast_to(self.variance, (len(Z), p))

    def size(self) -> int:
        return self.patterns.size

    def rounded(self, kind: str) -> Linear:
        return replace(self, patterns=rounded(self.patterns, kind))

    def stored(self, store: Store) -> dict[str, Any]:
        return {
            "kind": "linear",
            "features": self.features.stored(store),
            "pairs": store.add(self.pairs),
            "forward": store.add(self.patterns[0], large=True),
            "backward": store.add(self.patterns[1], large=True),
            "variance": store.add(self.variance),
        }


@dataclass(frozen=True)
class Precision(Program):
    """``Theta = sum_r u_r(z) Theta_r``: coefficients ``-Theta_jk / Theta_jj``, variances ``1 / Theta_jj``."""

    features: Features
    matrices: NDArray  # (R, p, p)

    def at(self, Z: pd.DataFrame) -> Values:
        theta = np.einsum("nr,rjk->njk", self.features.at(Z), self.matrices.astype(np.float64))
        j, k = np.triu_indices(theta.shape[1], 1)
        own = theta.diagonal(axis1=1, axis2=2)
        return -theta[:, j, k] / own[:, j], -theta[:, j, k] / own[:, k], 1 / own

    def size(self) -> int:
        return self.matrices.size // 2

    def rounded(self, kind: str) -> Precision:
        return replace(self, matrices=rounded(self.matrices, kind))

    def stored(self, store: Store) -> dict[str, Any]:
        j, k = np.triu_indices(self.matrices.shape[1], 1)
        above = self.matrices[:, j, k]
        used = np.flatnonzero((above != 0).any(axis=0))
        return {
            "kind": "precision",
            "features": self.features.stored(store),
            "pairs": store.add(used),
            "values": store.add(above[:, used], large=True),
            "diagonal": store.add(self.matrices.diagonal(axis1=1, axis2=2)),
        }


@dataclass(frozen=True)
class Scaled(Program):
    """A part whose nodes were divided by ``unit`` and have residual scales ``residual`` times its own.

    Both are features of z with the logarithm of a scale per node.
    """

    part: Program
    unit: Features | None
    residual: Features | None

    def at(self, Z: pd.DataFrame) -> Values:
        forward, backward, variance = self.part.at(Z)
        unit, residual = (_exp(features, Z) for features in (self.unit, self.residual))
        if self.unit is not None:
            j, k = np.triu_indices(variance.shape[1], 1)
            ratio = unit[:, j] / unit[:, k]
            forward, backward = forward * ratio, backward / ratio
        return forward, backward, variance * (unit * residual) ** 2

    def size(self) -> int:
        return self.part.size()

    def rounded(self, kind: str) -> Self:
        return replace(self, part=self.part.rounded(kind))

    def stored(self, store: Store) -> dict[str, Any]:
        unit, residual = (own if own is None else own.stored(store) for own in (self.unit, self.residual))
        return {"kind": "scaled", "part": self.part.stored(store), "unit": unit, "residual": residual}


def _exp(features: Features | None, Z: pd.DataFrame) -> NDArray[np.float64]:
    return np.ones((1, 1)) if features is None else np.exp(features.at(Z))


@dataclass(frozen=True)
class Average(Program):
    """Weighted averages of coefficients and variances."""

    weights: list[float]
    parts: list[Program]

    def at(self, Z: pd.DataFrame) -> Values:
        found = [part.at(Z) for part in self.parts]
        forward, backward, variance = (
            np.tensordot(self.weights, each, 1) for each in zip(*found, strict=True)
        )
        return forward, backward, variance

    def size(self) -> int:
        return sum(part.size() for part in self.parts)

    def rounded(self, kind: str) -> Self:
        return replace(self, parts=[part.rounded(kind) for part in self.parts])

    def stored(self, store: Store) -> dict[str, Any]:
        return {
            "kind": "average",
            "weights": self.weights,
            "parts": [part.stored(store) for part in self.parts],
        }


@dataclass(frozen=True)
class Choice(Program):
    """One part per region: a tree over the features leads to a leaf, and a leaf has a part.

    ``tree`` has lists left, right, feature, threshold (left where feature <= threshold), part.
    """

    features: Features
    tree: dict[str, list[Any]]
    parts: list[Program]

    def at(self, Z: pd.DataFrame) -> Values:
        which = np.array([self._leaf(row) for row in self.features.at(Z).astype(np.float32)])
        found = [self.parts[part].at(Z.iloc[[row]]) for row, part in enumerate(which)]
        forward, backward, variance = (np.concatenate(each) for each in zip(*found, strict=True))
        return forward, backward, variance

    def _leaf(self, row: NDArray) -> int:
        node = 0
        while self.tree["left"][node] >= 0:
            goes_left = row[self.tree["feature"][node]] <= self.tree["threshold"][node]
            node = self.tree["left" if goes_left else "right"][node]
        return int(self.tree["part"][node])

    def size(self) -> int:
        return sum(part.size() for part in self.parts)

    def rounded(self, kind: str) -> Self:
        return replace(self, parts=[part.rounded(kind) for part in self.parts])

    def stored(self, store: Store) -> dict[str, Any]:
        parts = [part.stored(store) for part in self.parts]
        return {"kind": "choice", "features": self.features.stored(store), "tree": self.tree, "parts": parts}


def evaluate(program: Program, Z: pd.DataFrame) -> NDArray[np.float64]:
    """Partial correlations of all pairs j < k at each row, (n, pairs)."""
    forward, backward, variance = program.at(Z)
    j, k = np.triu_indices(variance.shape[1], 1)
    ratio = np.sqrt(variance[:, k] / variance[:, j])
    ahead, back = (np.clip(own, -1, 1) for own in (forward * ratio, backward / ratio))
    return (ahead + back) / 2
