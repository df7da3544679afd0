"""Second moments of rows, added up some rows at a time: all that a Gaussian likelihood needs of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Self

import numpy as np
from numpy.typing import NDArray

from graphfield.data.nodes import row_blocks

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RowMoments:
    """Of some rows (n, p), to which those of others can be added."""

    n: int
    mean: Array  # (p,)
    scatter: Array  # (p, p), products about the mean, summed over rows
    low: Array  # (p,)
    high: Array

    @classmethod
    def none(cls, n_nodes: int) -> Self:
        ends = np.full(n_nodes, np.inf)
        return cls(0, np.zeros(n_nodes), np.zeros((n_nodes, n_nodes)), ends, -ends)

    @classmethod
    def of(cls, X: Array) -> Self:
        return reduce(add, (cls._at_once(X[rows]) for rows in row_blocks(*X.shape)), cls.none(X.shape[1]))

    @classmethod
    def _at_once(cls, X: Array) -> Self:
        mean = X.mean(axis=0)
        return cls(len(X), mean, (X - mean).T @ (X - mean), X.min(axis=0), X.max(axis=0))

    @classmethod
    def of_folds(cls, X: Array, folds: NDArray[np.intp]) -> dict[int, Self]:
        """Of the rows of each fold, in one pass."""
        found = {int(fold): cls.none(X.shape[1]) for fold in np.unique(folds)}
        for rows in row_blocks(*X.shape):
            block, fold_of_row = X[rows], folds[rows]
            for fold in np.unique(fold_of_row).tolist():
                found[fold] += cls._at_once(block[fold_of_row == fold])
        return found

    def __add__(self, other: Self) -> Self:
        n, apart = self.n + other.n, other.mean - self.mean
        return type(self)(
            n,
            self.mean + apart * (other.n / n),
            self.scatter + other.scatter + np.outer(apart, apart) * (self.n * other.n / n),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    def about(self, center: Array | float) -> Array:
        """Mean products of the nodes less a center, (p, p)."""
        apart = self.mean - center
        return self.scatter / self.n + np.outer(apart, apart)

    @property
    def covariance(self) -> Array:
        return self.about(self.mean)


@dataclass(frozen=True)
class FoldMoments:
    """Second moments of the rows that a fold is fitted to, and of those that it holds out, (p, p)."""

    known: Array
    new: Array
    new_about_known: Array  # about the means of the known rows
    n_known: int
    n_new: int
    varies: bool  # every node among the known rows

    @classmethod
    def of(cls, known: RowMoments, new: RowMoments) -> Self:
        varies = bool((known.high > known.low).all())
        return cls(known.covariance, new.covariance, new.about(known.mean), known.n, new.n, varies)

    @classmethod
    def of_each(cls, X: Array, folds: NDArray[np.intp]) -> list[Self]:
        """Fold by fold, counted from 0; the rows of no fold (-1) are always known."""
        parts = RowMoments.of_folds(X, folds)

        def others(fold: int) -> Iterable[RowMoments]:
            return (own for other, own in parts.items() if other != fold)

        return [cls.of(reduce(add, others(fold)), own) for fold, own in parts.items() if fold >= 0]
