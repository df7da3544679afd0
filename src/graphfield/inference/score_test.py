"""Do correlations of the nodes move with functions of the covariates? A permutation test of their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.inference.cleaned_nodes import CleanedNodes
from graphfield.inference.directions import in_order

# Keeps the regressions of each node on all others steady, on standardised nodes.
_RIDGE = 0.05
# A function with less mean square than this once others are taken from it is one of them.
_NOTHING_LEFT = 1e-3
# Products of nodes that are held at a time.
_ENTRIES = 4_000_000

Functions = Callable[[NDArray[np.intp]], NDArray[np.float32]]


@dataclass(frozen=True)
class Pairs:
    """What the scores of all pairs of nodes need, of the nodes themselves and of their residuals.

    The score of a pair is ``v_j v_k`` less what a scale that moves does to it: where node l is larger by a
    share d at some z, products of nodes change by ``d (v_l r_lk + ...)``, and half of ``v_l^2 - 1`` says
    what d is. So with r the correlations, the matrix of all scores is

        V - (diag(V) r + r diag(V)) / 2,    V = v v'

    and that of residuals ``u = t' v`` is ``t' (.) t``. Scales that were fitted not quite rightly then
    change no score, but for the square of what is wrong.
    """

    values: NDArray[np.float64]
    correlation: NDArray[np.float64]
    to_residuals: NDArray[np.float64]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Pairs:
        correlation = values.T @ values / len(values)
        precision = np.linalg.inv(correlation + _RIDGE * np.eye(len(correlation)))
        return cls(values, correlation, precision / np.sqrt(np.diag(precision)))

    def spreads(self) -> list[NDArray[np.float64]]:
        """About the variances of the scores of nodes and of residuals, (p, p) each."""
        shared = np.square(self.correlation)
        nodes = _product_variances(self.values) * (1 - shared) ** 2 / (1 + shared)
        return [nodes, _product_variances(self.values @ self.to_residuals)]

    def turns(self) -> list[NDArray[np.float64]]:
        """What turns nodes into nodes, and into residuals."""
        return [np.eye(len(self.correlation)), self.to_residuals]

    def parts(
        self, n_rows: int
    ) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]]:
        """The kind (nodes, residuals), pairs and their scores, as many as ``n_rows`` leave room for."""
        first, second = np.triu_indices(self.values.shape[1], k=1)
        step = max(1, _ENTRIES // n_rows)
        for kind, turn in enumerate(self.turns()):
            turned = self.values @ turn
            for start in range(0, len(first), step):
                some = slice(start, start + step)
                yield (kind, first[some], second[some], self.scores(turned, turn, first[some], second[some]))

    def scores(
        self, turned: NDArray, turn: NDArray, first: NDArray[np.intp], second: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Of some pairs, row by row; ``turned`` are the values times ``turn``."""
        with_turned = self.correlation @ turn
        scales = turn[:, first] * with_turned[:, second] + with_turned[:, first] * turn[:, second]
        return turned[:, first] * turned[:, second] - np.square(self.values) @ (scales / 2)


def score_statistics(
    nodes: CleanedNodes,
    functions: Functions,
    alone: NDArray[np.float64],
    arrangements: Iterable[NDArray[np.intp]],
    tick: Callable[[], None],
    *,
    spreads: list[NDArray[np.float64]] | None = None,
    uneven: bool = False,
) -> NDArray[np.float64]:
    """Four statistics against "no correlation of two nodes moves with z", for each arrangement.

    For a pair (j, k) and a function f it is the sum over rows of f(z) times the score of the pair, where
    scores are those of the nodes, or of what their regression on all other nodes leaves of them. All
    correlations are constant just if all partial correlations are; the first kind sees best what many
    nodes share, the second what happens to single edges. Of both kinds, the sum over pairs of squares and
    the largest are compared with those of rearranged covariates (:func:`combined_p_value`).

    A mean and a scale that are fitted to z leave less of rows where z is extreme, and correlations of few
    rows that vary more, which looks as if they moved with z. So mean and scale are fitted to rearranged
    covariates as well, and as much is taken away.

    ``functions`` gives, for an arrangement, functions of z as they then are, (n, m), with sum zero;
    ``alone`` (n, c) is what mean and scale of a node may depend on, uncorrelated, with mean square one.
    Arrangements (n,) say for every row which row its covariates come from; they are
    ``uneven`` where some are taken more often than others, as where groups of different size change places.
    ``spreads`` (p, p) are about the variances of the scores of nodes and of residuals; default those of
    independent rows. Returns (4, n_permutations); ``tick`` is called after each.
    """
    pairs = Pairs.of(nodes.values)
    spreads = [np.maximum(spread, 1e-6) for spread in spreads or pairs.spreads()]
    values, moving = nodes.values.astype(np.float32), alone.astype(np.float32)
    turn = pairs.to_residuals.astype(np.float32)
    statistics = []
    for rows in arrangements:
        f, own = functions(rows), moving[rows]
        clean = nodes.again(values, in_order(own) if uneven else own)
        kinds = _squared_scores(clean, f, turn)
        strengths = [_above(kind / spread) / len(f) for kind, spread in zip(kinds, spreads, strict=True)]
        statistics.append([*(kind.sum() for kind in strengths), *(kind.max() for kind in strengths)])
        tick()
    return np.array(statistics).T


def row_functions(columns: NDArray[np.float64], given: NDArray[np.float64]) -> Functions:
    """What ``given``, which keeps its place, leaves of rearranged columns; all rows count the same.

    Both, (n, m) and (n, m'), have mean zero and are uncorrelated, with mean square one.
    """
    columns32, given32 = columns.astype(np.float32), given.astype(np.float32)

    def functions(rows: NDArray[np.intp]) -> NDArray[np.float32]:
        f = columns32[rows]
        f = f - f.mean(axis=0)
        return _decorrelated(f - given32 @ (given32.T @ f / np.float32(len(f))))

    return functions


def _squared_scores(
    values: NDArray[np.float32], f: NDArray[np.float32], turn: NDArray[np.float32]
) -> list[NDArray[np.float64]]:
    """For each pair the sum over functions of squared scores, of nodes and of residuals, (p, p) each."""
    correlation = values.T @ values / np.float32(len(values))
    nodes, residuals = np.zeros((2, *correlation.shape))
    for column in f.T:
        products = (values * column[:, None]).T @ values
        half = np.diag(products) / 2
        products -= half[:, None] * correlation + correlation * half
        nodes += np.square(products)
        residuals += np.square(turn.T @ products @ turn)
    return [nodes, residuals]


def flipped_statistics(
    nodes: CleanedNodes, columns: NDArray[np.float64], given: NDArray[np.float64], signs: NDArray[np.float32]
) -> NDArray[np.float64]:
    """The statistics of :func:`score_statistics` when what rows add to the scores gets random signs.

    Where correlations do move with ``given``, products of nodes vary more at some values of z than at
    others. Exchanged rows would lose this, rows with signs keep it. A regression on ``given`` makes what it
    leaves of a row smaller by its leverage; with signs this is made good.

    ``columns`` and ``given`` are as for :func:`row_functions`; ``signs`` (n_permutations, n) begin with ones.
    Returns (4, n_permutations).
    """

    def strengths(products: NDArray[np.float64]) -> NDArray[np.float64]:
        return signed_strengths(products, columns, given, signs)

    return _over_pairs(nodes, len(signs), strengths)


def signed_strengths(
    products: NDArray[np.float64],
    columns: NDArray[np.float64],
    given: NDArray[np.float64],
    signs: NDArray[np.float32],
) -> NDArray[np.float64]:
    """Sums over functions of the squared scores of each pair, with each set of signs: (sets, pairs)."""
    leverage = (1 + np.square(given).sum(axis=1)) / len(given)
    larger = 1 / np.sqrt(np.maximum(1 - leverage, 0.1))[:, None]
    products -= products.mean(axis=0)
    products -= given @ (given.T @ products / len(products))
    strength = np.zeros((len(signs), products.shape[1]))
    for column in columns.T:
        added = column[:, None] * products
        observed = added.sum(axis=0)
        added *= larger
        size = np.maximum(np.sqrt(np.square(added).sum(axis=0)), 1e-30)
        strength[0] += np.square(observed / size)
        strength[1:] += np.square(signs[1:] @ (added / size).astype(np.float32), dtype=np.float64)
    return strength


def _over_pairs(
    nodes: CleanedNodes, n_permutations: int, strengths: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Sum and largest of the strengths of pairs of nodes, and of their residuals, some at a time."""
    sums, largest = np.zeros((2, n_permutations)), np.zeros((2, n_permutations))
    for kind, _, _, scores in Pairs.of(nodes.values).parts(max(len(nodes.values), n_permutations)):
        strength = strengths(scores)
        sums[kind] += strength.sum(axis=1)
        largest[kind] = np.maximum(largest[kind], strength.max(axis=1))
    return np.vstack([sums, largest])


def operations(n_rows: int, n_nodes: int, n_columns: int, n_alone: int) -> float:
    """Of one arrangement, about."""
    return 2.0 * n_nodes * (n_rows * (n_nodes * (n_columns + 1) + 4 * n_alone) + 2 * n_columns * n_nodes**2)


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


def _decorrelated(f: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same functions, uncorrelated, with mean square one; nothing of those of which nothing is left."""
    values, vectors = np.linalg.eigh(f.T @ f / np.float32(len(f)))
    sizes = np.where(values > _NOTHING_LEFT, 1 / np.sqrt(np.maximum(values, _NOTHING_LEFT)), 0)
    return f @ (vectors * sizes)


def _product_variances(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the products of two columns, (p, p)."""
    squares = np.square(values)
    return squares.T @ squares / len(values) - np.square(values.T @ values / len(values))


def _above(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return matrix[np.triu_indices(len(matrix), k=1)]
