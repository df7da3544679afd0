"""Do correlations of the nodes move with functions of the covariates? A permutation test of their scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from graphfield.analysis.cleaned_nodes import CleanedNodes

# Keeps the regressions of each node on all others steady, on standardised nodes.
_RIDGE = 0.05
# Products of nodes that are held at a time.
_ENTRIES = 4_000_000


def score_statistics(
    nodes: CleanedNodes,
    columns: NDArray[np.float64],
    given: NDArray[np.float64],
    alone: NDArray[np.float64],
    arrangements: NDArray[np.intp],
    tick: Callable[[], None],
) -> NDArray[np.float64]:
    """Four statistics against "no correlation of two nodes moves with ``columns``", for each arrangement.

    The score of a pair (j, k) and a column f is the sum over rows of ``f(z) v_j v_k``, where ``v`` are
    the nodes, or what their regression on all other nodes leaves of them. All correlations are constant
    just if all partial correlations are; the first kind sees best what many nodes share, the second what
    happens to single edges. Of both kinds, the sum over pairs of squared scores and the largest are compared
    with those of rearranged covariates (:func:`combined_p_value`).

    A mean and a scale that are fitted to z leave less of rows where z is extreme, which looks as if
    correlations moved with z. So they are fitted to rearranged covariates as well, and as much is taken away.

    Parameters
    ----------
    nodes : CleanedNodes
    columns, given : ndarray of shape (n, m), (n, m')
        Functions of z with mean zero, uncorrelated, with mean square one, those to test and those that
        correlations may move with; the latter keep their places.
    alone : ndarray of shape (n, c)
        What mean and scale of a node may depend on, uncorrelated, with mean square one.
    arrangements : ndarray of shape (n_permutations, n)
        For every row, the row that its covariates come from.
    tick : callable
        Called after each arrangement.

    Returns
    -------
    ndarray of shape (4, n_permutations)
    """
    values, given32 = nodes.values.astype(np.float32), given.astype(np.float32)
    moving = np.hstack([columns, alone]).astype(np.float32)
    to_residuals = _to_residuals(nodes.values).astype(np.float32)
    statistics = []
    for rows in arrangements:
        moved = moving[rows]
        f, own = moved[:, : columns.shape[1]], moved[:, columns.shape[1] :]
        f = f - f.mean(axis=0)
        f -= given32 @ (given32.T @ f / np.float32(len(f)))
        clean = nodes.again(values, own)
        kinds = [_strengths(v, f) for v in (clean, clean @ to_residuals)]
        statistics.append([*(kind.sum() for kind in kinds), *(kind.max() for kind in kinds)])
        tick()
    return np.array(statistics).T


def flipped_statistics(
    nodes: CleanedNodes,
    columns: NDArray[np.float64],
    given: NDArray[np.float64],
    starts: NDArray[np.intp],
    signs: NDArray[np.float32],
) -> NDArray[np.float64]:
    """The statistics of :func:`score_statistics` when what units add to the scores gets random signs.

    Where correlations do move with ``given``, products of nodes vary more at some values of z than at
    others. Exchanged rows would lose this, rows with signs keep it.

    Parameters
    ----------
    nodes, columns, given
        As for :func:`score_statistics`.
    starts : ndarray of int
        Where each unit begins: a group, or one row.
    signs : ndarray of shape (n_permutations, n_units)

    Returns
    -------
    ndarray of shape (4, n_permutations)
    """
    sums, largest = np.zeros((2, len(signs))), np.zeros((2, len(signs)))
    first, second = np.triu_indices(nodes.values.shape[1], k=1)
    step = max(1, _ENTRIES // len(columns))
    for kind, values in enumerate((nodes.values, nodes.values @ _to_residuals(nodes.values))):
        for start in range(0, len(first), step):
            pairs = slice(start, start + step)
            products = values[:, first[pairs]] * values[:, second[pairs]]
            products -= products.mean(axis=0)
            products -= given @ (given.T @ products / len(products))
            strength = np.zeros((len(signs), products.shape[1]))
            for column in columns.T:
                added = np.add.reduceat(column[:, None] * products, starts, axis=0)
                added /= np.maximum(np.sqrt(np.square(added).sum(axis=0)), 1e-30)
                strength += np.square(signs @ added.astype(np.float32), dtype=np.float64)
            sums[kind] += strength.sum(axis=1)
            largest[kind] = np.maximum(largest[kind], strength.max(axis=1))
    return np.vstack([sums, largest])


def operations(n_rows: int, n_nodes: int, n_columns: int, n_alone: int) -> float:
    """Of one arrangement, about."""
    return 2.0 * n_rows * n_nodes * (2 * n_nodes * n_columns + n_nodes + 4 * n_alone)


def combined_p_value(statistics: NDArray[np.float64]) -> float:
    """From several statistics, (k, 1 + n_permutations), the observed ones first.

    The one that stands out most counts, in observed and rearranged data alike, so that the p-value is
    valid whichever it is.

    >>> combined_p_value(np.array([[9.0, 1, 2, 1], [5.0, 4, 6, 5]]))
    0.25
    """
    logs = np.log(np.maximum(statistics, np.finfo(np.float64).tiny))
    spread = logs.std(axis=1, keepdims=True)
    standard = (logs - logs.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    most = standard.max(axis=0)
    # Single precision makes equal arrangements differ in the last digits.
    return float(np.mean(most >= most[0] - 1e-4))


def _strengths(values: NDArray[np.float32], f: NDArray[np.float32]) -> NDArray[np.float64]:
    """For each pair of nodes the sum over functions of squared scores, standardised, (pairs,)."""
    n, p = values.shape
    pairs = np.triu_indices(p, k=1)
    squares = values**2
    spread = (squares.T @ squares)[pairs] / n - np.square((values.T @ values)[pairs] / n)
    total = np.zeros(len(pairs[0]))
    for column in f.T:
        total += np.square(((values * column[:, None]).T @ values)[pairs].astype(np.float64))
    return total / (n * np.maximum(spread, 1e-6))


def _to_residuals(nodes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turns nodes into residuals of the static ridge regression of each on all others, up to scale."""
    correlation = nodes.T @ nodes / len(nodes)
    precision = np.linalg.inv(correlation + _RIDGE * np.eye(len(correlation)))
    return precision / np.sqrt(np.diag(precision))
