"""Counts that vary by more than their law says, given all else: regressions of them by that law mislead."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graphfield.exceptions import agreed, first_few

Array = NDArray[np.float64]
# By how much more the variance of a count may be than by its law, for what functions of the others miss, and
# for chance: in standard errors of it. Of emergencies with 1.4 an edge of .43 was told as .57.
_MORE, _BY_CHANCE = 0.2, 3.0
# Rows that it is found from, at most; others that explain a count, at most, and rows for each of them.
_MOST_ROWS, _MOST_COLUMNS, _PER_COLUMN = 5_000, 30, 5
_RIDGE, _MOST_STEPS, _REACH = 1e-2, 200, 4.0


def find_wide_counts(
    names: Sequence[str], codes: Array, are_counts: NDArray[np.bool_], columns: Array, owner: NDArray[np.intp]
) -> dict[str, float]:
    """The variance of such counts given the others, in units of their mean, which is 1 by their law.

    By regressions whose logarithm of the mean is linear in the others, and in logarithms of counts.

    Parameters
    ----------
    names, codes, are_counts
        Of all nodes, (n, p); those that are no counts do not matter.
    columns, owner
        What may explain a count, (n, d): columns of nodes, and of covariates with the owner -1.
    """
    rows = np.linspace(0, len(codes) - 1, min(len(codes), _MOST_ROWS)).round().astype(np.intp)
    logs = np.log1p(codes[rows][:, are_counts])
    design = np.hstack([columns[rows], logs])
    owner = np.concatenate([owner, np.flatnonzero(are_counts)])
    spread = design.std(axis=0)
    design = ((design - design.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).clip(-_REACH, _REACH)
    found = {}
    for j, log in zip(np.flatnonzero(are_counts), logs.T, strict=True):
        others = np.flatnonzero((owner != j) & (spread > 0))
        near = np.abs(design[:, others].T @ (log - log.mean()))
        few = others[np.argsort(-near, kind="stable")[: min(_MOST_COLUMNS, len(rows) // _PER_COLUMN)]]
        by = _dispersion(codes[rows, j], design[:, few])
        if by > 1 + max(_MORE, _BY_CHANCE * np.sqrt(2 / len(rows))):
            found[names[int(j)]] = by
    return found


def _dispersion(counts: Array, others: Array) -> float:
    """Sums of squares over sums of means, for the rows that the regression leaves free."""
    from sklearn.linear_model import PoissonRegressor

    n, columns = others.shape
    if not counts.any():
        return 0.0
    fitted = np.full(n, counts.mean())
    if columns:
        with warnings.catch_warnings(action="ignore"):  # that more steps would still improve it
            model = PoissonRegressor(alpha=_RIDGE, solver="newton-cholesky", max_iter=_MOST_STEPS)
            fitted = model.fit(others, counts).predict(others)
    return float(np.square(counts - fitted).sum() / fitted.sum() * n / max(1, n - 1 - columns))


def describe_wide(wide: Mapping[str, float]) -> str:
    """Such counts by name, with their variance."""
    told = [f"{name!r} {by:.2g}" for name, by in sorted(wide.items(), key=lambda one: -one[1])]
    return first_few(told, 4)


def words_of_wide(wide: Mapping[str, float]) -> str:
    """A sentence about counts that tests take as numbers."""
    if not wide:
        return ""
    return (
        f"Tests take {agreed(len(wide), 'one count as a number', 'some counts as numbers')}, whose variance "
        f"given all else is more than their mean, as it is not for separate events (so many times: "
        f"{describe_wide(wide)})."
    )
