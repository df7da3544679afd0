"""Nodes as normal scores, logarithms or log-ratios: the transforms and their inverses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from graphfield.data.nodes import NodeScaler, columns_of
from graphfield.data.ranges import MAX_MAGNITUDE
from graphfield.data.saved_arrays import AtMost, SavedArrays
from graphfield.exceptions import DataError
from graphfield.messages import Argument

MARGINALS = ("auto", "raw", "normal", "log1p", "clr")
SKEPTIC = "skeptic"  # normal scores, and correlations from ranks, where an estimator works from these
# Points of the map of one node at most; between them it is a straight line.
MAX_KNOTS = 1_024


def normal_scores(X: NDArray[np.floating]) -> NDArray[np.float64]:
    """Each column as the normal quantiles of its ranks, ``Phi^-1(rank / (n + 1))``, ties averaged.

    A graph of Gaussian data seen through unknown increasing functions (the nonparanormal model) can
    be estimated from these as if the data were Gaussian.

    >>> normal_scores(np.array([[1.0], [100.0], [3.0]])).round(2).ravel()
    array([-0.67,  0.67,  0.  ])
    """
    return ndtri(rankdata(X, axis=0) / (len(X) + 1))


@dataclass(frozen=True)
class NormalScores:
    """Per node an increasing, piecewise linear map from its values to their normal scores, and back.

    Scores are stretched to the node's own mean and standard deviation, so that they have its unit. Beyond
    the values that were there to learn from, a value counts as the nearest of them; a node that was
    constant has this one value always.

    The maps of all nodes are stored one after the other: those of node j are
    ``knots[offsets[j] : offsets[j + 1]]`` (its values) and the same part of ``targets`` (their scores).

    >>> X = np.exp(np.random.default_rng(0).normal(size=(500, 1)))
    >>> scores = NormalScores.learn(X)
    >>> bool(np.isclose(scores.transform(X).std(), X.std()))
    True
    >>> bool(np.allclose(scores.restore(scores.transform(X)), X))
    True
    """

    knots: NDArray[np.float64]
    targets: NDArray[np.float64]
    offsets: NDArray[np.int64]

    name: ClassVar[str] = "normal"

    @classmethod
    def learn(cls, X: NDArray[np.floating]) -> NormalScores:
        """Knots are the distinct values of a node, at most 1,024 of them, evenly spread in rank."""
        own = NodeScaler.learn(X, center=True, scale=True)
        maps = [_map(*column) for column in zip(columns_of(X), own.center, own.scale, strict=True)]
        return cls(
            np.concatenate([knots for knots, _ in maps]),
            np.concatenate([targets for _, targets in maps]),
            np.cumsum([0, *(len(knots) for knots, _ in maps)], dtype=np.int64),
        )

    def to_arrays(self) -> dict[str, NDArray]:
        return {"knots": self.knots, "targets": self.targets, "offsets": self.offsets}

    @classmethod
    def from_arrays(cls, arrays: SavedArrays, n_nodes: int) -> NormalScores:
        """Inverse of :meth:`to_arrays`: maps that never fall, with at least one point for each node."""
        length = AtMost(MAX_KNOTS * n_nodes, n_nodes)
        knots = arrays.read("knots", (length,), low=-MAX_MAGNITUDE, high=MAX_MAGNITUDE)
        targets = arrays.read("targets", (len(knots),), low=-10 * MAX_MAGNITUDE, high=10 * MAX_MAGNITUDE)
        offsets = arrays.read("offsets", (n_nodes + 1,), np.int64)
        if offsets[0] != 0 or offsets[-1] != len(knots) or (np.diff(offsets) < 1).any():
            arrays.refuse("offsets", f"rising from 0 to {len(knots)}", str(offsets[:8]))
        within = np.delete(np.arange(1, len(knots)), offsets[1:-1] - 1)  # no step from one node to the next
        for name, values in (("knots", knots), ("targets", targets)):
            if (values[within] < values[within - 1]).any():
                arrays.refuse(name, "rising within each node", "numbers that fall")
        return cls(knots, targets, offsets)

    def transform(self, X: NDArray[np.floating], dtype: DTypeLike = np.float64) -> NDArray:
        """Values to scores, computed in double precision and kept as ``dtype``.

        Values beyond the range of the training rows count as its end.
        """
        return self._mapped(X, self.knots, self.targets, dtype)

    def restore(
        self,
        X: NDArray[np.floating],
        beside: NDArray[np.floating] | None = None,  # noqa: ARG002
    ) -> NDArray[np.float64]:
        """Scores to values; scores beyond those of the training rows count as the last of them."""
        return self._mapped(X, self.targets, self.knots, np.float64)

    def _mapped(self, X: NDArray, start: NDArray, end: NDArray, dtype: DTypeLike) -> NDArray:
        values = np.empty(X.shape, dtype=dtype)
        for j in range(X.shape[1]):
            own = slice(self.offsets[j], self.offsets[j + 1])
            values[:, j] = np.interp(X[:, j], start[own], end[own])
        return values


def _map(
    values: NDArray[np.float64], center: float, scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Knots and targets of one node."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) == 1:
        return distinct, distinct
    ranks = np.cumsum(counts) - (counts - 1) / 2
    kept = np.linspace(0, len(distinct) - 1, min(len(distinct), MAX_KNOTS)).round().astype(np.intp)
    knots, scores = distinct[kept], ndtri(ranks[kept] / (len(values) + 1))
    # Mean and spread of what comes out, straight lines between the knots included.
    seen = np.interp(distinct, knots, scores)
    mean = np.average(seen, weights=counts)
    spread = np.sqrt(np.average((seen - mean) ** 2, weights=counts))
    return knots, center + scale * (scores - mean) / spread


@dataclass(frozen=True)
class LogNodes:
    """Logarithms of nodes that are never negative: ``log(x + add)``, less the level of the row if "clr".

    The level of a row is the median over its nodes of what their logarithms are above their means
    (``typical``, of the training rows). With the mean in place of the median, which is the usual centred
    log-ratio, each node would be minus the sum of the others, and no regression could say more than that.

    >>> shares = np.random.default_rng(0).dirichlet(np.ones(5), 100)
    >>> logs = LogNodes.learn(shares, "clr", list("abcde"))
    >>> bool(np.allclose(logs.restore(logs.transform(shares), shares), shares))
    True
    """

    add: float
    typical: NDArray[np.float64] | None = None  # (p,)

    @property
    def name(self) -> str:
        return "log1p" if self.typical is None else "clr"

    @classmethod
    def learn(cls, X: NDArray[np.floating], name: str, nodes: Sequence[str]) -> LogNodes:
        """One is added for "log1p", and half the smallest value above zero for "clr"."""
        found = _first_below_zero(X)
        if found is not None:
            raise DataError(
                "{marginals} takes logarithms of counts or shares, but node {column!r} goes down to "
                "{least:g}. Leave it out, or use {auto}.",
                marginals=Argument("marginals", name),
                column=nodes[found[0]],
                least=found[1],
                auto=Argument("marginals", "auto"),
            )
        if name == "log1p":
            return cls(1.0)
        add = float(X[X > 0].min()) / 2
        return cls(add, np.log(X.astype(np.float64) + add).mean(axis=0))

    def to_arrays(self) -> dict[str, NDArray]:
        own = {"log_add": np.array([self.add])}
        return own if self.typical is None else {**own, "log_typical": self.typical}

    @classmethod
    def from_arrays(cls, arrays: SavedArrays, n_nodes: int) -> LogNodes:
        add = arrays.read("log_add", (1,), low=0, high=MAX_MAGNITUDE, above=True)
        typical = arrays.read("log_typical", (n_nodes,)) if "log_typical" in arrays else None
        return cls(float(add[0]), typical)

    def check(self, X: NDArray[np.floating], nodes: Sequence[str]) -> None:
        """Raise for values of new rows that have no logarithm."""
        found = _first_below_zero(X)
        if found is not None:
            raise DataError(
                "The model takes logarithms of its nodes (marginals {name!r}), which were never negative, "
                "but in X node {column!r} goes down to {least:g}. Correct it, or leave these rows out.",
                name=self.name,
                column=nodes[found[0]],
                least=found[1],
            ).about(argument="X")

    def transform(self, X: NDArray[np.floating], dtype: DTypeLike = np.float64) -> NDArray:
        """Values to logarithms; what is below zero, as a fitted value may be, counts as zero."""
        logs = np.log(np.maximum(X, 0).astype(np.float64) + self.add)
        return (logs - self._levels(logs)).astype(dtype)

    def restore(
        self, X: NDArray[np.floating], beside: NDArray[np.floating] | None = None
    ) -> NDArray[np.float64]:
        """Logarithms to values, with the levels of the rows of node values ``beside``, else typical ones."""
        if beside is not None:
            X = X + self._levels(np.log(np.maximum(beside, 0).astype(np.float64) + self.add))
        return np.maximum(np.exp(X) - self.add, 0.0)

    def _levels(self, logs: NDArray[np.float64]) -> NDArray[np.float64] | float:
        """(n, 1), or zero."""
        return 0.0 if self.typical is None else np.median(logs - self.typical, axis=1, keepdims=True)


NodeMap = NormalScores | LogNodes


def _first_below_zero(X: NDArray[np.floating]) -> tuple[int, float] | None:
    """The position of the first node with a negative value, and its smallest."""
    least = X.min(axis=0, initial=0)
    below = np.flatnonzero(least < 0)
    return (int(below[0]), float(least[below[0]])) if len(below) else None


def learn_map(X: NDArray[np.floating], name: str, nodes: Sequence[str]) -> NodeMap | None:
    """What nodes of these rows are turned into; None where they stay as they are."""
    if name == "raw":
        return None
    return NormalScores.learn(X) if name == "normal" else LogNodes.learn(X, name, nodes)


def read_map(arrays: SavedArrays, n_nodes: int) -> NodeMap | None:
    """Of a file that has one."""
    if "log_add" in arrays:
        return LogNodes.from_arrays(arrays, n_nodes)
    return NormalScores.from_arrays(arrays, n_nodes) if "knots" in arrays else None
