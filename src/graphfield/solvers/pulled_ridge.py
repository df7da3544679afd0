"""Coefficients linear in z that a ridge pulls to one sparse graph; held-out rows say how strongly.

First comes the penalty of the sparse graph, the same at all z, and then the ridge on all that differs from
it, from strong to weak: with the strongest, nothing does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from graphfield.numbers import standard_errors
from graphfield.solvers.interaction import coefficients_from_gram, fold_grams, squared_errors
from graphfield.solvers.lasso import nodewise_lasso_path
from graphfield.solvers.penalties import PathSearch, Tried, search_path, smallest_penalty
from graphfield.solvers.sparse_blocks import solve_path, zero_solution
from graphfield.solvers.working import FamilyRows, RidgeStep, fit_families

Array = NDArray[np.float64]
# Penalties of the sparse graph, and how many of them are solved before the search looks whether it gains.
_N_PENALTIES, _BLOCK = 12, 4
# Ridges in units of the mean square of the nodes. The first that is tried is as strong as the data are.
_RIDGES = np.geomspace(100, 1e-4, 13)
_FIRST = int(np.argmin(np.abs(_RIDGES - 1.0)))
# A fifth of so many values of nodes chooses as well as all of them in turn.
_ENOUGH_VALUES = 20_000
# By how much coefficients of nodes that are no numbers change at last while penalties are compared.
_PATH_TOLERANCE = 1e-3


class Regressions(Protocol):
    """Of all nodes, on the rows outside of a fold or, where that is None, on all that a fit is given."""

    unit: float  # the mean square of the nodes

    @property
    def counts(self) -> NDArray[np.intp]:
        """Rows that each fold holds out."""

    def penalties(self) -> Array:
        """Of the sparse graph, from the largest down."""

    def still(self, fold: int | None, penalties: Array, near: Array | None) -> Array:
        """Coefficients of one sparse graph at each of falling penalties."""

    def pulled(self, fold: int | None, still: Array, ridge: float) -> Array:
        """Coefficients that move with z, with a ridge on what differs from ``still``."""

    def loss(self, fold: int, coef: Array) -> float:
        """Of the rows that the fold holds out, on average; of one graph or of one that moves."""


@dataclass(frozen=True)
class Pulled:
    """Coefficients, the ridge on what differs from one graph, and those that were tried.

    ``path`` (tries, 3): ridge, strongest first, held-out loss and its standard error over folds.
    """

    coef: Array
    ridge: float
    path: Array


class _Block(NamedTuple):
    """Some penalties of the sparse graph: the best one, its coefficients fold by fold, and all of them."""

    penalty: float
    coef: list[Array]
    paths: list[Array]


def pull(rows: Regressions) -> Pulled:
    """Both strengths are common to all nodes."""
    folds, shares = range(len(rows.counts)), rows.counts / rows.counts.sum()

    def loss(coef: list[Array]) -> tuple[float, Array]:
        found = np.array([rows.loss(fold, own) for fold, own in zip(folds, coef, strict=True)])
        return float(found @ shares), found

    def attempt_block(penalties: Array, near: _Block | None) -> tuple[float, _Block]:
        begin = [None] * len(folds) if near is None else [path[-1] for path in near.paths]
        paths = [rows.still(fold, penalties, begin[fold]) for fold in folds]
        losses = [loss(list(coef))[0] for coef in zip(*paths, strict=True)]
        best = int(np.argmin(losses))
        return losses[best], _Block(float(penalties[best]), [path[best] for path in paths], paths)

    blocks = np.split(rows.penalties(), range(_BLOCK, _N_PENALTIES, _BLOCK))
    best = PathSearch(blocks, attempt_block).walk(0, lambda s: s.worse > 0).best.solution

    def attempt(ridge: float, _: Array | None) -> tuple[float, Array]:
        return loss([rows.pulled(fold, best.coef[fold], rows.unit * ridge) for fold in folds])

    search = PathSearch(_RIDGES, attempt).walk(_FIRST, lambda s: s.worse > 0).walk_back()
    ridge, tried = float(rows.unit * search.best.value), [search.tried[step] for step in sorted(search.tried)]
    coef = rows.pulled(None, rows.still(None, np.array([best.penalty]), None)[0], ridge)
    return Pulled(coef, ridge, _path(tried, rows.unit))


def _path(tried: list[Tried], unit: float) -> Array:
    errors = standard_errors(np.array([one.solution for one in tried]).T)
    return np.column_stack([[unit * one.value for one in tried], [one.loss for one in tried], errors])


def _folds_that_choose(folds: NDArray[np.intp], n_nodes: int) -> NDArray[np.intp]:
    return np.where(folds > 0, -1, folds) if len(folds) * n_nodes > _ENOUGH_VALUES else folds


class GramRegressions:
    """Of centred numbers X (n, p) by least squares, with features W (n, m) of z, the first of which is one.

    ``folds`` (n,) is the fold, counted from 0, that holds a row out, or -1 for rows that none does; the first
    ``n_known`` rows are those that a fit is given.
    """

    def __init__(self, X: Array, W: Array, folds: NDArray[np.intp], n_known: int) -> None:
        self._p, folds = X.shape[1], _folds_that_choose(folds, X.shape[1])
        self._parts, self._total = fold_grams(X, W, folds)
        self._n, self._n_known, self.counts = len(X), n_known, np.bincount(folds[folds >= 0])
        self.unit = float(np.diag(self._total)[: self._p].mean() / len(X))

    def penalties(self) -> Array:
        return search_path(self._gram(None, slice(self._p)), self._n_known, _N_PENALTIES)

    def still(self, fold: int | None, penalties: Array, near: Array | None) -> Array:
        return nodewise_lasso_path(self._gram(fold, slice(self._p)), penalties, near)

    def pulled(self, fold: int | None, still: Array, ridge: float) -> Array:
        gram = self._gram(fold, slice(None))
        return coefficients_from_gram(gram, self._p, np.full(len(gram) // self._p, ridge), still)

    def loss(self, fold: int, coef: Array) -> float:
        own, coef = slice(coef.size // self._p), coef.reshape(-1, self._p, self._p)
        return float(squared_errors(coef, self._parts[fold][own, own]).mean() / self.counts[fold])

    def _gram(self, fold: int | None, own: slice) -> Array:
        if fold is not None:
            return (self._total[own, own] - self._parts[fold][own, own]) / (self._n - self.counts[fold])
        if self._n_known == self._n:
            return self._total[own, own] / self._n
        return (self._total[own, own] - sum(part[own, own] for part in self._parts)) / self._n_known


class FamilyRegressions:
    """Of nodes of any kind; ``folds`` and ``n_known`` as in :class:`GramRegressions`."""

    unit = 1.0

    def __init__(self, rows: FamilyRows, folds: NDArray[np.intp], n_known: int) -> None:
        folds = _folds_that_choose(folds, len(rows.blocks.slices))
        self.counts = np.bincount(folds[folds >= 0])
        self._known = {fold: rows.take(folds != fold) for fold in range(len(self.counts))}
        self._known_all = rows.take(slice(n_known))
        self._new = [rows.take(folds == fold) for fold in range(len(self.counts))]
        self._start, self._top = zero_solution(_at_rest(self._known_all), 1.0)

    def penalties(self) -> Array:
        ratio = min(0.1, smallest_penalty(len(self._known_all.W)) / self._top)
        return np.geomspace(self._top, self._top * ratio, _N_PENALTIES)

    def still(self, fold: int | None, penalties: Array, near: Array | None) -> Array:
        return solve_path(_at_rest(self._rows(fold)), penalties, self._start if near is None else near)

    def pulled(self, fold: int | None, still: Array, ridge: float) -> Array:
        rows, d = self._rows(fold), still.shape[1]
        toward = np.zeros(rows.shape)
        toward[:d], toward[rows.W.shape[1] * d :] = still[:d], still[d:]
        return fit_families(rows, RidgeStep(rows, ridge, toward), toward, _PATH_TOLERANCE)

    def loss(self, fold: int, coef: Array) -> float:
        new = self._new[fold]
        return float((new if len(coef) == new.shape[0] else _at_rest(new)).losses(coef).mean())

    def _rows(self, fold: int | None) -> FamilyRows:
        return self._known_all if fold is None else self._known[fold]


def _at_rest(rows: FamilyRows) -> FamilyRows:
    return replace(rows, W=rows.W[:, :1])
