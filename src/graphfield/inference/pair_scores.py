"""What each row says about the partial correlation of each pair of nodes, at its own z."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.inference.cleaned_nodes import CleanedNodes
from graphfield.numbers import is_clear, mean_and_error
from graphfield.solvers.moving_lasso import MovingCoefficients, cross_fitted_coefficients

# Scores that are held at a time.
_ENTRIES = 4_000_000
# A residual variance at some z is no smaller or larger than its mean by more than this factor.
_MOST_SCALE = 4.0
# Standard errors by which rows must be more likely for a scale to move; many, as there is one for each node.
_CLEARLY = 4.0
# A first estimate of a partial correlation is no larger.
_MOST_PARTIAL = 0.95
# One less the product of both coefficients of a pair is no smaller, where they are undone.
_LEAST_LEFT = 0.04


@dataclass(frozen=True)
class Scores:
    """What rows say of some pairs of nodes.

    Attributes
    ----------
    pairs : slice
    values : ndarray of shape (n, pairs)
    partial : ndarray of shape (n, pairs)
        First estimates of the partial correlations, not fitted to these rows.
    first, second : ndarray of shape (n, pairs)
        What all others leave of both nodes, in standard units, the second with its sign turned.
    inflation : ndarray of shape (pairs,)
        By how much variances are larger since means of the nodes were fitted.
    """

    pairs: slice
    values: NDArray[np.float64]
    partial: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    inflation: NDArray[np.float64]

    def at(self, rows: NDArray[np.intp] | slice) -> Scores:
        """What some of the rows say."""
        values, partial = self.values[rows], self.partial[rows]
        return Scores(self.pairs, values, partial, self.first[rows], self.second[rows], self.inflation)

    def variances(self, partial: NDArray[np.float64]) -> NDArray[np.float64]:
        """See :func:`score_variances`."""
        return score_variances(self.first, self.second, partial)


def left_by_others(
    u: NDArray[np.float64],
    v: NDArray[np.float64],
    on_second: NDArray[np.float64],
    on_first: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What all nodes but the two of a pair leave of both, from what also the other one leaves of each."""
    shrink = np.sqrt(np.minimum(1, (1 - _LEAST_LEFT) / np.maximum(on_second * on_first, 1e-12)))
    on_second, on_first = on_second * shrink, on_first * shrink
    left = 1 - on_second * on_first
    return (u + on_second * v) / left, (v + on_first * u) / left


def score_values(
    a: NDArray[np.float64], b: NDArray[np.float64], partial: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Of what all others leave of two nodes, in standard units, with a first estimate of the correlation."""
    return np.asarray(a * b - partial / 2 * (a**2 + b**2 - 2))


def score_variances(
    first: NDArray[np.float64], second: NDArray[np.float64], partial: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What rows add to the variance of a weighted sum of scores, given partial correlations (n, pairs).

    At z, what all others leave of both nodes has correlation -r, and the score less its mean is
    ``(1 - r^2) s t`` with s and t the uncorrelated variables that are nearest to them. Given s the sum of
    such products is normal, exactly, for Gaussian data; and given t. So ``(1 - r^2)^2 s^2``, or t^2 in place
    of s^2, or their mean, is what a row adds.
    """
    plus = np.square(first + second) / (2 * (1 - partial))
    minus = np.square(first - second) / (2 * (1 + partial))
    return np.asarray(np.square(1 - np.square(partial)) * (plus + minus) / 2)


@dataclass(frozen=True)
class PairScores:
    """Cross-fitted residuals of all nodes given all others, and the coefficients they were found with.

    With u_j the residual of node j and b_jk(z) the coefficient of k in its regression, what all nodes but j
    and k leave of both solves

        u_j = a_j - b_jk a_k,    u_k = a_k - b_kj a_j

    and with these in standard units the score of a row is

        a_j a_k - r (a_j^2 + a_k^2 - 2) / 2

    where r is the mean of b_jk and b_kj in units of the standard deviations of residuals, ``scales``, at z.

    Its mean at z is the partial correlation at z, but for products of two errors: in what others explain of
    j and of k, or in r and a standard deviation. Errors in the coefficients of the pair itself, which count
    for much where the edge is strong, are undone with them. With no errors at all this is the statistic of
    Liu (2013) at each z, made orthogonal to scales as well (Chernozhukov et al., 2018); its variance is that
    of the efficient score.
    """

    residuals: NDArray[np.float64]
    scales: NDArray[np.float64]
    coef: NDArray[np.float64]
    fold: NDArray[np.intp]  # (cuts, n)
    functions: NDArray[np.float64]
    inflation: NDArray[np.float64]  # (p, p)
    scales_move: NDArray[np.bool_]  # (p,)
    # The same where coefficients of which it is in doubt whether they move do not; None without doubt.
    if_still: PairScores | None = None

    @property
    def n_pairs(self) -> int:
        p = self.residuals.shape[1]
        return p * (p - 1) // 2

    def parts(self) -> Iterator[Scores]:
        """All pairs j < k, some at a time."""
        step = max(1, _ENTRIES // len(self.residuals))
        for start in range(0, self.n_pairs, step):
            yield self.of(slice(start, min(start + step, self.n_pairs)))

    def of(self, pairs: slice) -> Scores:
        first, second = (side[pairs] for side in np.triu_indices(self.residuals.shape[1], 1))
        u, v = self.residuals[:, first], self.residuals[:, second]
        on_second, on_first = self._coefficients(first, second), self._coefficients(second, first)
        ratio = self.scales[:, second] / self.scales[:, first]
        partial = np.clip((on_second * ratio + on_first / ratio) / 2, -_MOST_PARTIAL, _MOST_PARTIAL)
        a, b = left_by_others(u, v, on_second, on_first)
        a, b = self._in_standard_units(a, first), self._in_standard_units(b, second)
        return Scores(pairs, score_values(a, b, partial), partial, a, -b, self.inflation[first, second])

    def _in_standard_units(self, left: NDArray[np.float64], nodes: NDArray[np.intp]) -> NDArray[np.float64]:
        scales, moving = _scales(left, self.functions[:, :1]), self.scales_move[nodes]
        if moving.any():
            scales[:, moving] = _scales(left[:, moving], self.functions)
        return left / scales

    def _coefficients(self, response: NDArray[np.intp], neighbour: NDArray[np.intp]) -> NDArray[np.float64]:
        found = np.zeros((len(self.functions), len(response)))
        for number, coef in enumerate(self.coef):
            rows = (self.fold == number).any(axis=0)
            found[rows] += self.functions[rows] @ coef[response, neighbour].T / len(self.fold)
        return found


def pair_scores(
    nodes: CleanedNodes,
    functions: NDArray[np.float64],
    fold: NDArray[np.intp],
    tick: Callable[[], None] = lambda: None,
    *,
    scales_move: bool | None = None,
    starts: NDArray[np.intp] | None = None,
) -> PairScores:
    """Regress every node on all others with coefficients linear in ``functions``, without each fold in turn.

    Parameters
    ----------
    nodes : CleanedNodes
        Without means and scales that move with z.
    functions : ndarray of shape (n, m)
        Of z, the first one, the others uncorrelated with mean square one.
    fold : ndarray of int of shape (cuts, n)
        The folds that hold each row out, in each of several cuts of the rows.
    scales_move : bool, optional
        Whether residuals have a scale of their own at each z. Where graphs differ in many edges, that
        makes differences clearer; but scales of heavy tails are noise, which looks like edges that move. By
        default those of nodes have one whose held-out rows are clearly more likely with it.
    starts : ndarray of int, optional
        Where each stretch of rows begins that counts as one, where these are not the rows.
    """
    found, inflation = cross_fitted_coefficients(nodes.values, functions, fold, tick), scores_inflation(nodes)

    def scores_by(coef: NDArray[np.float64], if_still: PairScores | None) -> PairScores:
        left = MovingCoefficients(coef, fold).residuals(nodes.values, functions)
        scales = _scales(left, functions[:, :1])
        moving = np.full(left.shape[1], functions.shape[1] > 1 and scales_move is not False)
        if moving.any():
            if not scales_move:
                moving = _scales_that_move(left, functions, fold, starts)
            scales = np.where(moving, _scales(left, functions), scales)
        return PairScores(left, scales, coef, fold, functions, inflation, moving, if_still)

    return scores_by(found.coef, None if found.if_still is None else scores_by(found.if_still, None))


def _scales(left: NDArray[np.float64], functions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations of residuals at each row's z, (n, p)."""
    squares = np.square(left)
    mean = np.maximum(squares.mean(axis=0), 1e-12)
    relative = functions @ (functions.T @ (squares / mean) / len(left))
    scales = np.sqrt(mean * np.clip(relative, 1 / _MOST_SCALE, _MOST_SCALE))
    return np.asarray(scales * np.sqrt(np.maximum(np.mean(squares / scales**2, axis=0), 1e-12)))


def _scales_that_move(
    left: NDArray[np.float64],
    functions: NDArray[np.float64],
    fold: NDArray[np.intp],
    starts: NDArray[np.intp] | None,
) -> NDArray[np.bool_]:
    """Nodes whose residuals in each fold are clearly more likely with scales found without it, (p,)."""
    gains, squares = np.zeros_like(left), np.square(left)
    for number in range(int(fold.max()) + 1):
        new = (fold == number).any(axis=0)
        known = ~new
        mean = np.maximum(squares[known].mean(axis=0), 1e-12)
        slopes = functions[known].T @ (squares[known] / mean) / known.sum()
        relative = np.clip(functions[new] @ slopes, 1 / _MOST_SCALE, _MOST_SCALE)
        gains[new] += (squares[new] / mean * (1 - 1 / relative) - np.log(relative)) / len(fold)
    if starts is not None:
        gains = np.add.reduceat(gains, starts)
    return np.asarray(is_clear(*mean_and_error(gains), _CLEARLY))


def scores_inflation(nodes: CleanedNodes) -> NDArray[np.float64]:
    """By how much sums of products of two nodes vary more than such of n independent rows, (p, p).

    Of m functions of z, a mean that was fitted and taken away has taken shares of the node's variance, and of
    both nodes the same rows; what is left was brought to variance one again. Were all of m functions taken
    away, n - m rows would be left.
    """
    n, left = len(nodes.values), np.square(1 - nodes.mean_shares)
    free = n - len(left)
    own = free + left.sum(axis=0)
    return n * (free + left.T @ left) / np.outer(own, own)
