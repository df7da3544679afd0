"""Design columns of nodes of any kind: each node owns a block of them, in standard units.

A number, a binary, an ordinal node or a count has one column, a node of L levels L - 1. Within a block
columns are uncorrelated with variance one in the training rows, whatever levels are called and in whichever
order they come. So all edges are in one unit, and so are all penalties: that of the score where no edge is
there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graphfield.data.families import Binary, Categorical, Count, Family, Gaussian
from graphfield.data.node_types import NodeTypes
from graphfield.data.saved_arrays import SavedArrays

Array = NDArray[np.float64]
# Variances of columns, and of what is left of them, that count as none, in standard units.
_NO_VARIANCE = 1e-10


def width_of(n_levels: int, kind: str) -> int:
    return n_levels - 1 if kind == "categorical" else 1


@dataclass(frozen=True, eq=False)
class Blocks:
    """Types of nodes and the units of their columns: ``(f - center) @ root`` are in standard units.

    ``most`` (p,) are the largest codes of the training rows.
    """

    types: NodeTypes
    center: Array  # (d,)
    root: Array  # (d, d), zero between blocks
    most: Array  # (p,)

    @classmethod
    def learn(cls, types: NodeTypes, X: Array) -> Blocks:
        """From codes (n, p)."""
        widths = [width_of(len(one.levels), one.kind) for one in types.types]
        d = sum(widths)
        plain = cls(types, np.zeros(d), np.eye(d), X.max(axis=0))
        f = plain._statistics(X)
        covariance = np.zeros((d, d))
        for own in plain.slices:
            covariance[own, own] = np.atleast_2d(np.cov(f[:, own].T, bias=True))
        return cls(types, f.mean(axis=0), block_power(covariance, plain.slices, -0.5), X.max(axis=0))

    @cached_property
    def widths(self) -> NDArray[np.intp]:
        return np.array([width_of(len(one.levels), one.kind) for one in self.types.types], dtype=np.intp)

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
        kinds = np.array(["gaussian" if kind == "ordinal" else kind for kind in self.types.kinds])[self.nodes]
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
        return found

    @cached_property
    def null(self) -> Array:
        """Natural parameters at which nodes have the means of the training rows, (d,), in standard units."""
        return self.null_at(np.zeros(self.n_columns))

    def null_at(self, means: Array) -> Array:
        """Natural parameters at which columns have these means, (d,); both in standard units."""
        eta, natural = np.empty((1, self.n_columns)), self.center + self._times_inverse_root(means[None])[0]
        for family, own in self.families:
            eta[0, own] = family.null(natural[own])
        return self._times_inverse_root(eta)[0]

    def columns(self, X: NDArray) -> Array:
        """Of codes (n, p): (n, d) in standard units."""
        return self._times_root(self._statistics(X) - self.center)

    def means(self, eta: Array) -> Array:
        """Means of the columns, (n, d), from natural parameters; both in standard units."""
        natural, means = self._times_root(eta), np.empty_like(eta)
        for family, own in self.families:
            means[:, own] = family.mean(natural[:, own])
        return self._times_root(means - self.center)

    def losses(self, eta: Array, columns: Array) -> Array:
        """Half the deviance of each node, (n, p)."""
        natural, losses = self._times_root(eta), np.empty((len(eta), len(self.widths)))
        f = self.center + self._times_inverse_root(columns)
        for family, own in self.families:
            loss = family.loss(natural[:, own], f[:, own])
            losses[:, np.unique(self.nodes[own])] = loss if family.elementwise else loss[:, None]
        return losses

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
        return {"block_center": self.center, "block_root": self.root, "block_most": self.most}

    @classmethod
    def from_arrays(cls, types: NodeTypes, arrays: SavedArrays) -> Blocks:
        d = sum(width_of(len(one.levels), one.kind) for one in types.types)
        read = arrays.read
        center, root = read("block_center", (d,)), read("block_root", (d, d))
        found = cls(types, center, root, read("block_most", (len(types.types),)))
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
