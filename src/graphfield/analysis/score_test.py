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
# Groups less columns of covariates, at least, for groups to be exchanged.
_LEAST_FREEDOM = 5


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
    signs: NDArray[np.float32],
) -> NDArray[np.float64]:
    """The statistics of :func:`score_statistics` when what rows add to the scores gets random signs.

    Where correlations do move with ``given``, products of nodes vary more at some values of z than at
    others. Exchanged rows would lose this, rows with signs keep it.

    Parameters
    ----------
    nodes, columns, given
        As for :func:`score_statistics`.
    signs : ndarray of shape (n_permutations, n)

    Returns
    -------
    ndarray of shape (4, n_permutations)
    """

    def strengths(products: NDArray[np.float64]) -> NDArray[np.float64]:
        products -= products.mean(axis=0)
        products -= given @ (given.T @ products / len(products))
        strength = np.zeros((len(signs), products.shape[1]))
        for column in columns.T:
            added = column[:, None] * products
            added /= np.maximum(np.sqrt(np.square(added).sum(axis=0)), 1e-30)
            strength += np.square(signs @ added.astype(np.float32), dtype=np.float64)
        return strength

    return _over_pairs(nodes, len(signs), strengths)


def exchanged_statistics(
    nodes: CleanedNodes,
    columns: NDArray[np.float64],
    given: NDArray[np.float64],
    starts: NDArray[np.intp],
    arrangements: NDArray[np.intp],
) -> NDArray[np.float64] | None:
    """The same when groups exchange what ``given`` leaves of their mean products (Freedman and Lane).

    A regression on ``given`` leaves residuals that have sum zero with every column of it. The score itself
    loses nothing by that; with exchanged residuals it does, and much with few groups. So each is divided by
    the standard deviation that it has where products are noise.

    Parameters
    ----------
    nodes, columns, given
        As for :func:`score_statistics`; columns and given do not vary within groups.
    starts : ndarray of int
        Where each group begins.
    arrangements : ndarray of shape (n_permutations, n_groups)
        For every group, the group that its covariates come from; the first says that all stay.

    Returns
    -------
    ndarray of shape (4, n_permutations), or None where too few groups are left to exchange
    """
    sizes = np.diff(np.append(starts, len(columns)))[:, None]
    fixed = _orthonormal(np.column_stack([np.ones(len(starts)), given[starts]]))
    own = columns[starts] - fixed @ (fixed.T @ columns[starts])
    own = _orthonormal(own)
    if not own.shape[1] or len(starts) - fixed.shape[1] - own.shape[1] < _LEAST_FREEDOM:
        return None
    moved = own[arrangements]  # (n_permutations, n_groups, m)
    moved = moved - fixed @ (fixed.T @ moved)
    root = np.linalg.cholesky(moved.transpose(0, 2, 1) @ moved + 1e-9 * np.eye(own.shape[1]))
    scores = np.linalg.solve(root, moved.transpose(0, 2, 1)).astype(
        np.float32
    )  # (n_permutations, m, n_groups)

    def strengths(products: NDArray[np.float64]) -> NDArray[np.float64]:
        means = np.add.reduceat(products, starts, axis=0) / sizes
        means -= fixed @ (fixed.T @ means)
        means /= np.maximum(np.sqrt(np.square(means).sum(axis=0)), 1e-30)
        found = scores.reshape(-1, len(starts)) @ means.astype(np.float32)
        return np.square(found, dtype=np.float64).reshape(len(scores), -1, found.shape[1]).sum(axis=1)

    return _over_pairs(nodes, len(arrangements), strengths)


def _over_pairs(
    nodes: CleanedNodes, n_permutations: int, strengths: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Sum and largest of the strengths of products of nodes, and of their residuals, some at a time."""
    sums, largest = np.zeros((2, n_permutations)), np.zeros((2, n_permutations))
    first, second = np.triu_indices(nodes.values.shape[1], k=1)
    step = max(1, _ENTRIES // max(len(nodes.values), n_permutations))
    for kind, values in enumerate((nodes.values, nodes.values @ _to_residuals(nodes.values))):
        for start in range(0, len(first), step):
            pairs = slice(start, start + step)
            strength = strengths(values[:, first[pairs]] * values[:, second[pairs]])
            sums[kind] += strength.sum(axis=1)
            largest[kind] = np.maximum(largest[kind], strength.max(axis=1))
    return np.vstack([sums, largest])


def _orthonormal(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """An orthonormal basis of the columns, without directions that are all but missing."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return left[:, sizes > 1e-6 * np.sqrt(len(columns))]


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
