"""Do correlations of the nodes move with functions of the covariates? A permutation test of their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from graphfield.analysis.rearrange import Scheme

# Keeps the regressions of each node on all others steady, on standardised nodes.
_RIDGE = 0.05
# Numbers held at a time, of products of nodes and of rearranged covariates.
_ENTRIES = 8_000_000


def score_test(
    nodes: NDArray[np.float64],
    columns: NDArray[np.float64],
    given: NDArray[np.float64],
    scheme: Scheme,
    arrangements: NDArray[np.intp],
    tick: Callable[[], None],
) -> float:
    """The p-value of "no correlation of two nodes moves with ``columns``".

    The score of a pair (j, k) and a column f is the sum over rows of ``f(z) v_j v_k``, where ``v`` are
    the nodes, or what their regression on all other nodes leaves of them. All correlations are constant
    just if all partial correlations are; the first kind sees best what many nodes share, the second what
    happens to single edges. Of both kinds, the sum over pairs of squared scores and the largest are compared
    with those of rearranged covariates: four statistics, of which the one that stands out most counts, in
    observed and rearranged data alike, so that the p-value is valid whichever it is.

    Parameters
    ----------
    nodes : ndarray of shape (n, p)
        From :func:`~graphfield.analysis.cleaned_nodes.cleaned_nodes`.
    columns, given : ndarray of shape (n, m), (n, m')
        Uncorrelated functions of z, with mean square one, as ``scheme.part`` gives them; what products
        of nodes owe to ``given`` is subtracted first.
    arrangements : ndarray of shape (n_permutations, n_units)
    tick : callable
        Called after each block of pairs.
    """
    arrangements = np.vstack([np.arange(scheme.n_units), arrangements])
    features = scheme.per_unit(columns).T.astype(np.float32)
    totals, largest = np.zeros((2, len(arrangements))), np.zeros((2, len(arrangements)))
    for kind, values in enumerate((nodes, _left_by_others(nodes))):
        for products in _products(values):
            products -= products.mean(axis=0)
            products -= given @ (given.T @ products / len(products))
            units = scheme.products(products)
            size = np.sqrt(np.square(units).sum(axis=0))
            units = (units / np.where(size > 0, size, 1.0)).astype(np.float32)
            for some in _batches(len(arrangements), features.size):
                moved = features[:, arrangements[some]]  # (m, b, units)
                scores = moved.reshape(-1, len(units)) @ units
                strength = np.square(scores).reshape(*moved.shape[:2], -1).sum(axis=0)  # (b, pairs)
                totals[kind, some] += strength.sum(axis=1)
                largest[kind, some] = np.maximum(largest[kind, some], strength.max(axis=1))
            tick()
    return combined_p_value(np.vstack([totals, largest]))


def n_ticks(n_rows: int, n_nodes: int) -> int:
    """How often :func:`score_test` calls ``tick``."""
    return 2 * len(list(_batches(n_nodes * (n_nodes - 1) // 2, n_rows)))


def operations(n_nodes: int, n_columns: int, n_units: int) -> float:
    """Of one rearrangement, about."""
    return 2.0 * n_nodes * (n_nodes - 1) * n_columns * n_units


def combined_p_value(statistics: NDArray[np.float64]) -> float:
    """From several statistics, (k, 1 + n_permutations), the observed ones first.

    >>> combined_p_value(np.array([[9.0, 1, 2, 1], [5.0, 4, 6, 5]]))
    0.25
    """
    logs = np.log(np.maximum(statistics, np.finfo(np.float64).tiny))
    spread = logs.std(axis=1, keepdims=True)
    standard = (logs - logs.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    most = standard.max(axis=0)
    # Single precision makes equal arrangements differ in the last digits.
    return float(np.mean(most >= most[0] - 1e-5))


def _left_by_others(nodes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Residuals of every node's static ridge regression on all others, up to scale."""
    correlation = nodes.T @ nodes / len(nodes)
    precision = np.linalg.inv(correlation + _RIDGE * np.eye(len(correlation)))
    return nodes @ (precision / np.sqrt(np.diag(precision)))


def _products(values: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Products of two nodes, some pairs at a time, (n, pairs)."""
    first, second = np.triu_indices(values.shape[1], k=1)
    for pairs in _batches(len(first), len(values)):
        yield values[:, first[pairs]] * values[:, second[pairs]]


def _batches(count: int, entries_each: int) -> Iterator[slice]:
    step = max(1, _ENTRIES // entries_each)
    return (slice(start, start + step) for start in range(0, count, step))
