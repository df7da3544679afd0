"""Regressions of the scores of all pairs on functions of z, with variances that hold for rows or groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

# Where tested functions times all there are would be more, or multiplications, degrees of freedom follow from
# the sizes of groups alone: they are a little smaller then.
_MOST_SHARED, _MOST_PRODUCTS = 3_000, 10**10
# Entries of matrices of groups that are held at a time.
_ENTRIES = 4_000_000
# Sums of coefficients of which one group has more than this share are not tested: groups do not say how sure
# they are.
_MOST_OF_ONE = 0.4
# A direction of a group that the regression explains but for this share says nothing of its variance.
_LEAST_LEFT = 1e-8


@dataclass(frozen=True)
class Fit:
    """Coefficients of some pairs, (m, pairs), and their covariances, (pairs, m, m)."""

    coef: NDArray[np.float64]
    covariance: NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """Functions of z whose coefficients are asked for, beside others that are given."""

    reading: NDArray[np.float64]  # (n, m), what turns scores into coefficients
    whole: NDArray[np.float64]  # (n, m'), an orthonormal basis of all functions, those given included
    starts: NDArray[np.intp] | None  # of groups, rows being sorted by group; None: rows are independent
    # ``reading``, made larger where a group decides its own fit (CR2 of Bell and McCaffrey, 2002).
    spread: NDArray[np.float64]
    _freedoms: dict[range, float] = field(init=False, default_factory=dict, repr=False, compare=False)
    _by_many: dict[range, NDArray] = field(init=False, default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, columns: NDArray[np.float64], starts: NDArray[np.intp] | None = None) -> Design:
        """Of functions that are linearly independent."""
        return cls._made(columns, np.empty((len(columns), 0)), starts)

    @classmethod
    def beside(
        cls, given: NDArray[np.float64], columns: NDArray[np.float64], starts: NDArray[np.intp] | None = None
    ) -> Design | None:
        """What ``given`` leaves of the columns; None where that is nothing."""
        known = _orthonormal(given)
        unit = float(np.sqrt(np.square(columns).sum(axis=0).max(initial=0)))
        own = _orthonormal(columns - known @ (known.T @ columns), unit)
        return cls._made(own, known, starts) if own.shape[1] else None

    @classmethod
    def _made(
        cls, own: NDArray[np.float64], known: NDArray[np.float64], starts: NDArray[np.intp] | None
    ) -> Design:
        reading = own @ np.linalg.inv(own.T @ own)
        whole = np.column_stack([known, _orthonormal(own)])
        return cls(reading, whole, starts, reading if starts is None else _enlarged(reading, whole, starts))

    def toward(self, directions: NDArray[np.float64]) -> Design:
        """Of some sums of the coefficients, (sums, m), as many as are linearly independent."""
        turn = _orthonormal(directions.T)
        return replace(self, reading=self.reading @ turn, spread=self.spread @ turn)

    def fit(
        self, scores: NDArray[np.float64], variances: NDArray[np.float64], inflation: NDArray[np.float64]
    ) -> Fit:
        """``variances``, (n, pairs), are what rows add, where rows are independent; see ``Scores``."""
        covariance = self._by_rows(variances) if self.starts is None else self._by_groups(scores, self.starts)
        return Fit(self.reading.T @ scores, inflation[:, None, None] * covariance)

    def _by_rows(self, variances: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.stack([variances.T @ (self.reading * column[:, None]) for column in self.reading.T], axis=1)

    def _by_groups(self, scores: NDArray[np.float64], starts: NDArray[np.intp]) -> NDArray[np.float64]:
        left = scores - self.whole @ (self.whole.T @ scores)
        sums = np.stack([np.add.reduceat(column[:, None] * left, starts) for column in self.spread.T])
        return np.stack([np.einsum("gp,bgp->pb", own, sums) for own in sums], axis=1)

    def by_many(self, which: slice) -> NDArray[np.float64]:
        """Sums of these coefficients that no group decides nearly alone, as columns, (r, sums)."""
        columns = self._columns(which)
        if columns not in self._by_many:
            self._by_many[columns] = self._find_by_many(self.reading[:, which])
        return self._by_many[columns]

    def _find_by_many(self, reading: NDArray[np.float64]) -> NDArray[np.float64]:
        r = reading.shape[1]
        if self.starts is None:
            return np.eye(r)
        root = np.linalg.inv(np.linalg.cholesky(reading.T @ reading)).T
        own = reading @ root  # of sums whose squares add up to one over all groups
        large = np.add.reduceat(np.square(own).sum(axis=1), self.starts) > _MOST_OF_ONE
        ends = np.append(self.starts[1:], len(own))
        alone = [np.empty((0, r))]
        for first, last in zip(self.starts[large], ends[large], strict=True):
            shares, sums = np.linalg.eigh(own[first:last].T @ own[first:last])
            alone.append(sums.T[shares > _MOST_OF_ONE])
        left, sizes, _ = np.linalg.svd(np.concatenate(alone).T)
        kept = np.count_nonzero(sizes > _LEAST_LEFT)
        return np.asarray(root @ left[:, kept:]) if kept else np.eye(r)

    def freedom(self, which: slice) -> float:
        """Degrees of freedom of the estimated covariance (Pustejovsky and Tipton, 2018, for groups).

        Of sums that more than one or two groups decide, where there are any.
        """
        columns = self._columns(which)
        if columns not in self._freedoms:
            self._freedoms[columns] = self._find_freedom(which)
        return self._freedoms[columns]

    def _columns(self, which: slice) -> range:
        return range(*which.indices(self.reading.shape[1]))

    def _find_freedom(self, which: slice) -> float:
        n_units = len(self.reading) if self.starts is None else len(self.starts)
        counted = float(max(1, n_units - self.whole.shape[1]))
        if self.starts is None:
            return counted
        sums = self.by_many(which)
        r = sums.shape[1]
        if not r:
            return 1.0
        reading = self.reading[:, which] @ sums
        root = sums @ np.linalg.inv(np.linalg.cholesky(reading.T @ reading)).T
        spread, w = self.spread[:, which] @ root, self.whole.shape[1]
        is_exact = r * w <= _MOST_SHARED and n_units * (r * w) ** 2 <= _MOST_PRODUCTS
        squares, products = 0.0, np.zeros((r * w, r * w) if is_exact else (0, 0))
        for rows, starts in _some_groups(self.starts, len(spread), r * (r + w)):
            parts = np.split(spread[rows], starts[1:])
            own = np.stack([part.T @ part for part in parts])  # (g, r, r)
            squares += _squares(own, own)
            if is_exact:
                bases = np.split(self.whole[rows], starts[1:])
                shared = np.stack([part.T @ basis for part, basis in zip(parts, bases, strict=True)])
                squares -= 2 * _squares(own, shared @ shared.transpose(0, 2, 1))
                lines = shared.reshape(len(shared), -1)
                products += lines.T @ lines
        if is_exact:
            products = products.reshape(r, w, r, w)
            squares += float((products * (products + products.transpose(2, 1, 0, 3))).sum())
        return float(min(counted, r * (r + 1) / squares))

    def p_values(self, fit: Fit, which: slice) -> NDArray[np.float64]:
        """That all of some coefficients are zero, for each pair, as far as groups can tell."""
        sums = self.by_many(which)
        r = sums.shape[1]
        if not r:
            return np.ones(fit.coef.shape[1])
        coef = (sums.T @ fit.coef[which]).T[:, :, None]
        covariance = sums.T @ fit.covariance[:, which, which] @ sums
        size = np.trace(covariance, axis1=1, axis2=2)[:, None, None]
        steady = covariance + 1e-12 * (size + 1e-12) * np.eye(r)  # of a constant node, nothing is left
        wald = (coef * np.linalg.solve(steady, coef)).sum(axis=(1, 2))
        scale, second = self.distribution(which, r)
        return np.asarray(f_distribution.sf(wald * scale, r, second))

    def width(self, which: slice, level: float) -> float:
        """Standard errors to both sides that cover any sum of these coefficients (Scheffe, 1953)."""
        r = len(self._columns(which))
        scale, second = self.distribution(which, r)
        return float(np.sqrt(f_distribution.ppf(level, r, second) / scale))

    def distribution(self, which: slice, size: int) -> tuple[float, float]:
        """What Wald statistics of so many numbers are to be multiplied by, and second freedom of F."""
        freedom = self.freedom(which)
        if self.starts is None:
            return 1 / size, freedom
        # Of groups, the whole covariance is estimated (Hotelling); with next to no freedom, it says nothing.
        second = max(freedom - size + 1, 1e-3)
        return second / (freedom * size), second


def _squares(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Sums over groups of products of traces and traces of products of matrices, (g, r, r) each."""
    traces = np.trace(first, axis1=1, axis2=2) @ np.trace(second, axis1=1, axis2=2)
    return float(traces + (first * second.transpose(0, 2, 1)).sum())


def _some_groups(
    starts: NDArray[np.intp], n_rows: int, entries: int
) -> Iterator[tuple[slice, NDArray[np.intp]]]:
    """Rows of some groups after the other, each of which has so many entries, and where each starts."""
    ends, step = np.append(starts[1:], n_rows), max(1, _ENTRIES // entries)
    for first in range(0, len(starts), step):
        own = starts[first : first + step]
        yield slice(own[0], ends[min(first + step, len(starts)) - 1]), own - own[0]


def _orthonormal(columns: NDArray[np.float64], unit: float | None = None) -> NDArray[np.float64]:
    """Without directions of which hardly anything is there, beside ``unit`` where it is given."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return left[:, sizes > 1e-3 * (unit or sizes.max(initial=0))]


def _enlarged(
    reading: NDArray[np.float64], whole: NDArray[np.float64], starts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """(I - H_gg)^(-1/2) times the reading of each group, H being the hat matrix."""
    parts = []
    for own, basis in zip(np.split(reading, starts[1:]), np.split(whole, starts[1:]), strict=True):
        directions, sizes, _ = np.linalg.svd(basis, full_matrices=False)
        left = 1 - np.square(sizes)
        factor = np.where(left > _LEAST_LEFT, 1 / np.sqrt(np.maximum(left, _LEAST_LEFT)), 0.0)
        parts.append(own + directions @ ((factor - 1)[:, None] * (directions.T @ own)))
    return np.concatenate(parts)
