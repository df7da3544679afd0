"""Design columns of nodes of any kind: each node owns a block of them, in standard units.

A number, a binary, an ordinal node or a count has one column, a node of L levels L - 1. Within a block
columns are uncorrelated with variance one in the training rows, whatever levels are called and in whichever
order they come. So all edges are in one unit, and so are all penalties: that of the score where no edge is
there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graphfield.data.edge_features import Curve, functions_of, n_functions
from graphfield.data.families import Binary, Categorical, Count, Family, Gaussian, contrasts
from graphfield.data.node_types import NodeTypes
from graphfield.data.nodes import read_scale
from graphfield.data.saved_arrays import SavedArrays

Array = NDArray[np.float64]
# Variances of columns, and of what is left of them, that count as none, in standard units.
_NO_VARIANCE = 1e-10
# How far log-odds, or logarithms of rates, of some rows are from those of all at most.
_MOST_OFFSET = 4.0


def _widths(types: NodeTypes, features: str) -> NDArray[np.intp]:
    numbers = np.array([kind == "gaussian" for kind in types.kinds])
    return np.where(numbers, n_functions(features), types.widths)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Types of nodes and the units of their columns: ``(f - center) @ root`` are in standard units.

    ``most`` (p,) are the largest codes of the training rows. Numbers may enter by more ``features`` than
    themselves; ``location`` and ``spread`` (p,) are what these are in units of, ``lines`` (p, M - 1) what is
    taken from them.
    """

    types: NodeTypes
    center: Array  # (d,)
    root: Array  # (d, d), zero between blocks
    most: Array  # (p,)
    location: Array
    spread: Array
    lines: Array
    features: str = "linear"

    @classmethod
    def learn(cls, types: NodeTypes, X: Array, features: str = "linear") -> Blocks:
        """From codes (n, p).

        A level that these rows lack, but other rows of the table have, counts as there in half a row.
        """
        location, spread = X.mean(axis=0), X.std(axis=0)
        u = (X - location) / np.where(spread > 0, spread, 1.0)
        lines = np.array([(u[:, j] @ functions_of(features, u[:, j])) / len(u) for j in range(len(u.T))])
        plain = cls._in_own_units(types, location, spread, lines, features)
        f = plain.columns(X)
        center, covariance = f.mean(axis=0), np.zeros((plain.n_columns,) * 2)
        for own in plain.slices:
            covariance[own, own] = np.atleast_2d(np.cov(f[:, own].T, bias=True))
        for j, one in enumerate(types.types):
            lacking = np.setdiff1d(np.arange(len(one.levels)), X[:, j])
            if one.kind == "categorical" and len(lacking):
                own = plain.slices[j]
                with_lacking = np.vstack([f[:, own], contrasts(len(one.levels))[lacking]])
                weights = np.repeat([1.0, 0.5], [len(f), len(lacking)])
                center[own] = np.average(with_lacking, axis=0, weights=weights)
                covariance[own, own] = np.cov(with_lacking.T, bias=True, aweights=weights)
        root = block_power(covariance, plain.slices, -0.5)
        return replace(plain, center=center, root=root, most=X.max(axis=0))

    @classmethod
    def of_links(cls, types: NodeTypes) -> Blocks:
        """In the nodes' own units, whatever the rows: parameters are means of numbers, log-odds, logarithms.

        What one model says can then be compared with what another says, and averaged (:meth:`to_links`).
        """
        p = len(types.types)
        return cls._in_own_units(types, np.zeros(p), np.ones(p), np.zeros((p, 0)), "linear")

    @classmethod
    def _in_own_units(
        cls, types: NodeTypes, location: Array, spread: Array, lines: Array, features: str
    ) -> Blocks:
        d, most = int(_widths(types, features).sum()), np.full(len(types.types), np.inf)
        return cls(types, np.zeros(d), np.eye(d), most, location, spread, lines, features)

    @cached_property
    def widths(self) -> NDArray[np.intp]:
        return _widths(self.types, self.features)

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """First column of each node, (p,)."""
        return np.cumsum(self.widths) - self.widths

    @cached_property
    def slices(self) -> list[slice]:
        return [slice(start, start + w) for start, w in zip(self.starts, self.widths, strict=True)]

    @cached_property
    def nodes(self) -> NDArray[np.intp]:
        """Node of each column, (d,)."""
        return np.repeat(np.arange(len(self.widths)), self.widths)

    @cached_property
    def are_numbers(self) -> NDArray[np.bool_]:
        """Nodes whose loss is a square, (p,)."""
        return np.isin(self.types.kinds, ("gaussian", "ordinal"))

    @property
    def n_columns(self) -> int:
        return len(self.center)

    @cached_property
    def column_names(self) -> list[str]:
        pairs = zip(self.types.names, self.widths, strict=True)
        return [name if w == 1 else f"{name} {c + 1}" for name, w in pairs for c in range(w)]

    @cached_property
    def families(self) -> list[tuple[Family, NDArray[np.intp]]]:
        """Families and their columns; nodes whose formulas are by element come together."""
        known = {"ordinal": "gaussian", "gaussian": "gaussian" if self.features == "linear" else "curve"}
        kinds = np.array([known.get(kind, kind) for kind in self.types.kinds])[self.nodes]
        found: list[tuple[Family, NDArray[np.intp]]] = []
        if len(own := np.flatnonzero(kinds == "gaussian")):
            variance = np.diagonal(self.root)[own] ** -2.0
            found.append((Gaussian(self.center[own], variance), own))
        if len(own := np.flatnonzero(kinds == "binary")):
            found.append((Binary(), own))
        if len(own := np.flatnonzero(kinds == "count")):
            found.append((Count(self.most[self.nodes[own]]), own))
        for j, one in enumerate(self.types.types):
            if one.kind == "categorical":
                found.append((Categorical(len(one.levels)), np.flatnonzero(self.nodes == j)))
            elif one.kind == "gaussian" and self.features != "linear":
                found.append((self._curve(j), np.flatnonzero(self.nodes == j)))
        return found

    def is_curve(self, node: int) -> bool:
        """Whether a number enters by more than itself."""
        return self.features != "linear" and self.types.kinds[node] == "gaussian"

    def curve_at(self, node: int, values: Array) -> Array:
        """The functions of a number at these values, less their means, (m, M)."""
        return np.asarray(self._curve(node).columns(values[:, None]) - self.center[self.slices[node]])

    def _curve(self, j: int) -> Curve:
        own = self.slices[j]
        root = np.linalg.inv(self.root[own, own])
        units = float(self.location[j]), float(self.spread[j]), self.lines[j]
        return Curve(self.features, *units, self.center[own], root @ root)

    @cached_property
    def answers(self) -> NDArray[np.bool_]:
        """Columns that are explained by those of others, (d,): not functions of a number, but itself."""
        curves = np.array([self.is_curve(j) for j in range(len(self.widths))])[self.nodes]
        return ~curves | np.isin(np.arange(self.n_columns), self.starts)

    @cached_property
    def null(self) -> Array:
        """Natural parameters at which nodes have the means of the training rows, (d,), in standard units."""
        return self.null_at(np.zeros(self.n_columns))

    def null_at(self, means: Array) -> Array:
        """Natural parameters at which columns have these means, (d,); both in standard units."""
        return self._times_inverse_root(self._natural_at(means[None]))[0]

    def offsets_at(self, means: Array) -> Array:
        """The same for means of rows, (n, d), less those of all; zero of numbers, and not without end."""
        natural = self._natural_at(means) - self._natural_at(np.zeros((1, self.n_columns)))
        for family, own in self.families:
            if isinstance(family, Gaussian):
                natural[:, own] = 0.0
        return self._times_inverse_root(np.clip(natural, -_MOST_OFFSET, _MOST_OFFSET))

    def _natural_at(self, means: Array) -> Array:
        natural, values = np.empty_like(means), self.natural_means(means)
        for family, own in self.families:
            natural[:, own] = family.null(values[:, own])
        return natural

    def bounded_at(self, means: Array) -> Array:
        """Natural parameters, (n, d), at means that were fitted by least squares; both in standard units."""
        eta, natural = np.empty_like(means), self.natural_means(means)
        for family, own in self.families:
            eta[:, own] = family.null(family.bounded(natural[:, own], self.center[own]))
        return self._times_inverse_root(eta)

    def natural_means(self, means: Array) -> Array:
        """Means of columns, (n, d), in the units of :meth:`of_links`."""
        return self.center + self._times_inverse_root(means)

    def columns(self, X: NDArray) -> Array:
        """Of codes (n, p): (n, d) in standard units."""
        return self._times_root(self._statistics(X) - self.center)

    def means(self, eta: Array) -> Array:
        """Means of the columns, (n, d), from natural parameters; both in standard units."""
        natural, means = self._times_root(eta), np.empty_like(eta)
        for family, own in self.families:
            means[:, own] = family.mean(natural[:, own])
        return self._times_root(means - self.center)

    def to_links(self, eta: Array) -> Array:
        """Natural parameters in the units of :meth:`of_links`, (n, d); of counts as far as means go.

        Functions of a number have none.
        """
        links = self._times_root(eta)
        for family, own in self.families:
            if isinstance(family, Gaussian | Curve):
                links[:, own] = family.mean(links[:, own])
            elif isinstance(family, Count):
                links[:, own] = family.log_mean(links[:, own])
        return links[:, self.answers]

    def link_weights(self, weights: NDArray) -> Array:
        """Weights from columns, (m, answers, d), in the units of :meth:`of_links`."""
        numbers = self.are_numbers[self.nodes]
        ahead = np.where(numbers[:, None], np.diag(1 / np.diagonal(self.root)), self.root)
        for j in np.flatnonzero(self.widths > self.types.widths):  # curves
            own = self.slices[j]
            ahead[own, own] = np.linalg.inv(self.root[own, own])
        return np.asarray(ahead[self.answers] @ weights @ self.root, dtype=np.float64)

    def losses(self, eta: Array, columns: Array) -> Array:
        """Half the deviance of each node, (n, p)."""
        natural, losses = self._times_root(eta), np.empty((len(eta), len(self.widths)))
        f = self.natural_means(columns)
        for family, own in self.families:
            loss = family.loss(natural[:, own], f[:, own])
            losses[:, np.unique(self.nodes[own])] = loss if family.elementwise else loss[:, None]
        return losses

    def deviance_residuals(self, eta: Array, X: NDArray) -> Array:
        """Roots of the deviance of each node of codes X, (n, p), with the sign of what is left of it.

        Of numbers in their own units it is just what is left; levels without an order have no sign.
        """
        columns = self.columns(X)
        sign = np.where(self.widths == 1, np.sign(columns - self.means(eta))[:, self.starts], 1.0)
        return sign * np.sqrt(2 * np.maximum(self.losses(eta, columns), 0.0))

    def slopes(self, eta: Array) -> Array:
        """Derivatives of means by natural parameters, averaged, (d, d), in standard units."""
        natural, slopes = self._times_root(eta), np.zeros((self.n_columns,) * 2)
        for family, own in self.families:
            slopes[np.ix_(own, own)] = family.slopes(natural[:, own])
        return self.root @ slopes @ self.root

    def variances(self, eta: Array) -> list[Array]:
        """Derivatives of the means of each node at each row, (n, width, width), in standard units."""
        natural, found = self._times_root(eta), [np.empty(0)] * len(self.widths)
        for family, columns in self.families:
            of_rows = family.variances(natural[:, columns])
            if family.elementwise:
                of_rows = of_rows * np.diagonal(self.root)[columns] ** 2
                for column, own in zip(columns, of_rows.T, strict=True):
                    found[self.nodes[column]] = own[:, None, None]
            else:
                root = self.root[np.ix_(columns, columns)]
                found[self.nodes[columns[0]]] = root @ of_rows @ root
        return found

    def node_means(self, eta: Array) -> Array:
        """What to expect of each node, (n, p): its mean, of levels the mean code or the most likely one."""
        natural, means = self._times_root(eta), np.empty((len(eta), len(self.widths)))
        for family, own in self.families:
            where = np.unique(self.nodes[own])
            if isinstance(family, Categorical):
                means[:, where[0]] = family.shares(natural[:, own]).argmax(axis=1)
            elif isinstance(family, Curve):
                means[:, where[0]] = family.mean(natural[:, own])[:, 0]
            else:
                means[:, where] = family.mean(natural[:, own])
        return means

    def probabilities(self, eta: Array, node: int) -> Array:
        """Of the levels of a binary or categorical node, (n, levels)."""
        natural = self._times_root(eta)
        family, own = next((one, own) for one, own in self.families if node in self.nodes[own])
        if isinstance(family, Categorical):
            return family.shares(natural[:, own])
        second = family.mean(natural[:, own])[:, self.nodes[own] == node]
        return np.hstack([1 - second, second])

    def to_arrays(self) -> dict[str, NDArray]:
        units = {"block_location": self.location, "block_spread": self.spread, "block_lines": self.lines}
        own = {"block_center": self.center, "block_root": self.root, "block_most": self.most}
        return own if self.features == "linear" else own | units

    @classmethod
    def from_arrays(cls, types: NodeTypes, arrays: SavedArrays, features: str = "linear") -> Blocks:
        d, p, read = int(_widths(types, features).sum()), len(types.types), arrays.read
        center, root = read("block_center", (d,)), read("block_root", (d, d))
        more = n_functions(features) - 1
        units = np.zeros(p), np.ones(p), np.zeros((p, more))
        if features != "linear":
            spread = read_scale(arrays, "block_spread", p)
            units = read("block_location", (p,)), spread, read("block_lines", (p, more))
        found = cls(types, center, root, read("block_most", (p,)), *units, features)
        apart = root[found.nodes[:, None] != found.nodes]
        if apart.any() or np.linalg.matrix_rank(root) < d:
            arrays.refuse("block_root", "units of blocks", "others")
        return found

    def _statistics(self, X: NDArray) -> Array:
        f = np.empty((len(X), self.n_columns))
        for family, own in self.families:
            f[:, own] = family.columns(np.asarray(X[:, np.unique(self.nodes[own])], dtype=np.float64))
        return f

    def _wide(self) -> Iterator[slice]:
        return (own for own, w in zip(self.slices, self.widths, strict=True) if w > 1)

    def _times_root(self, values: Array) -> Array:
        result = values * np.diagonal(self.root)
        for own in self._wide():
            result[:, own] = values[:, own] @ self.root[own, own]
        return result

    def _times_inverse_root(self, values: Array) -> Array:
        result = values / np.diagonal(self.root)
        for own in self._wide():
            result[:, own] = values[:, own] @ np.linalg.inv(self.root[own, own])
        return result


def block_power(matrix: Array, slices: list[slice], power: float) -> Array:
    """Powers of the blocks on the diagonal of a symmetric matrix, zero elsewhere."""
    result = np.zeros_like(matrix)
    for own in slices:
        values, vectors = np.linalg.eigh(matrix[own, own])
        least = _NO_VARIANCE * max(values[-1], np.finfo(float).tiny)
        result[own, own] = (vectors * np.maximum(values, least) ** power) @ vectors.T
    return result
