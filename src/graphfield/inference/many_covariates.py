"""Tests of single covariates where there are too many of them for ordinary regressions of the scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

_SWEEPS, _PRECISION = 50, 1e-4


@dataclass(frozen=True)
class SparseEffects:
    """Effects of each of many covariates on edges, given all others, few of which have any.

    A lasso of the scores of a pair on all covariates is freed of its bias: to each effect is added what the
    covariate explains of the rest of the scores, the covariate being without what a lasso of it on the others
    explains (van de Geer et al., 2014; SAGE of Meng, Zhang and Li, 2025). With as many covariates as a third
    of the rows this has nearly the errors of a regression on one alone.

    Attributes
    ----------
    names : tuple of str
        Of the covariates, all numbers or categories with two levels.
    columns : ndarray of shape (n, q)
        Their values, mean zero, mean square one.
    reading : ndarray of shape (n, q)
        What turns scores into effects.
    starts : ndarray or None
        Where each group begins; None where rows are independent.
    """

    names: tuple[str, ...]
    columns: NDArray[np.float64]
    reading: NDArray[np.float64]
    starts: NDArray[np.intp] | None

    @classmethod
    def of(
        cls, names: tuple[str, ...], columns: NDArray[np.float64], starts: NDArray[np.intp] | None
    ) -> SparseEffects:
        n = len(columns)
        gram = columns.T @ columns / n
        on_others = _lasso(gram, gram, _penalty(columns), alone=True)
        left = columns - columns @ on_others
        return cls(names, columns, left / (left * columns).sum(axis=0), starts)

    def p_values(
        self, scores: NDArray[np.float64], variances: NDArray[np.float64], inflation: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Of every covariate and pair, (q, pairs)."""
        n = len(scores)
        centred = scores - scores.mean(axis=0)
        together = self.columns.T @ centred / n
        sizes = _penalty(self.columns) * np.sqrt(np.square(centred).mean(axis=0))
        effects = _lasso(self.columns.T @ self.columns / n, together, sizes)
        left = centred - self.columns @ effects
        found = effects + self.reading.T @ left
        units = n if self.starts is None else len(self.starts)
        if self.starts is None:
            variance = np.square(self.reading).T @ (
                variances * np.square(left).mean(axis=0) / variances.mean(axis=0)
            )
        else:
            sums = (np.add.reduceat(own[:, None] * left, self.starts) for own in self.reading.T)
            variance = np.stack([np.square(own).sum(axis=0) for own in sums]) * units / (units - 1)
        size = np.abs(found) / np.sqrt(np.maximum(variance * inflation, 1e-20))
        freedom = np.maximum(1, units - 2 - (effects != 0).sum(axis=0))
        return np.asarray(2 * student.sf(size * np.sqrt(freedom / units), freedom))


def _penalty(columns: NDArray[np.float64]) -> float:
    """The size of the largest chance correlation with one of so many columns."""
    return float(np.sqrt(2 * np.log(max(2, columns.shape[1])) / len(columns)))


def _lasso(
    gram: NDArray[np.float64],
    together: NDArray[np.float64],
    penalty: NDArray[np.float64] | float,
    alone: bool = False,
) -> NDArray[np.float64]:
    """Of many responses at once, (q, responses), by coordinate descent; ``alone``: not on themselves."""
    found = np.zeros_like(together)
    for _ in range(_SWEEPS):
        change = 0.0
        for row, own in enumerate(gram):
            rest = together[row] - own @ found + own[row] * found[row]
            new = np.sign(rest) * np.maximum(np.abs(rest) - penalty, 0) / own[row]
            if alone:
                new[row] = 0.0
            change = max(change, float(np.abs(new - found[row]).max(initial=0)))
            found[row] = new
        if change < _PRECISION:
            break
    return found
