"""Node values without what the covariates do to each node alone: its mean and its scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.data.marginals import normal_scores
from graphfield.inference.directions import MOST_FACTORS, Directions
from graphfield.numbers import is_clear, mean_and_error

_MAX_ROUNDS, _PRECISION = 30, 1e-3  # of the scale that is fitted
# Roughness up to which a mean or scale may follow z, to choose from: next to nothing, to nearly all.
_REACHES = (0.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 40.0)
# What predicts best leaves as much of a mean as chance adds, and what is left looks like edges that move. So
# functions this much rougher are taken away as well.
_FURTHER = 1.5
# The least scale, where one is fitted to rearranged covariates.
_LEAST_SCALE = 0.1
# A node with less than this standard deviation, of one, is all mean; what is left is rounding.
_NOTHING = 1e-9
# Near copies: nodes of whose scores all others leave less than this share. Rows for each node to know that.
_NEAR_COPY, _LEAST_ROWS = 0.1, 2
# Standard errors by which near copies must have a scale that moves.
_CLEARLY = 4.0
# A node of which two rows have the same value with this probability has steps: 20 even ones.
_STEPS = 0.05
# Values that are nearer to each other than this share of the node's range are one, as after rounding.
_ONE_VALUE = 1e-4
# A column of which less than this share is taken away from every node is left alone.
_LEAST_SHARE = 0.02


@dataclass(frozen=True)
class CleanedNodes:
    """Normal scores of ``(x_j - mu_j(z)) / s_j(z)``, or of near copies the values, standardised, (n, p).

    Of nodes with steps, such as answers on a scale, normal scores of x_j less their mean and scale: ranks of
    what a mean leaves would put rows of one step in the order of this mean, and make edges of it.

    ``columns``, (n, m), are functions of z, uncorrelated, with mean square one. ``mean_shares`` and
    ``scale_shares``, (m, p), say how much of what each explained of a node's mean and logarithm of the
    scale was taken away: all for levels of a category, about nothing for functions that do no more than
    chance.
    """

    values: NDArray[np.float64]
    columns: NDArray[np.float64]
    mean_shares: NDArray[np.float64]
    scale_shares: NDArray[np.float64]

    def again(self, values: NDArray[np.float32], columns: NDArray[np.float32]) -> NDArray[np.float32]:
        """These values, cleaned by other columns as much as they were by theirs, and standardised."""
        centred = values - values.mean(axis=0) - _fitted(values, columns, self.mean_shares)
        sizes = np.maximum(np.abs(centred), np.float32(1e-12))
        relative = 1 + _fitted(sizes / sizes.mean(axis=0), columns, self.scale_shares)
        clean = centred / np.maximum(relative, np.float32(_LEAST_SCALE))
        return (clean - clean.mean(axis=0)) / _scale(clean).astype(np.float32)


def cleaned_nodes(X: NDArray[np.floating], functions: Directions, starts: NDArray[np.intp]) -> CleanedNodes:
    """Take a mean and a scale that move with z away from each node.

    If partial correlations are the same at every z, what is left has the same correlations at every z,
    however means and variances move. Normal scores keep a few wild values from deciding; nodes that are
    nearly linear in each other stay as they are, as ranks would hide what is left of them. Mean and logarithm
    of the scale are linear in ``functions``, beside a constant; how rough these may be is chosen for each
    node, by an unbiased estimate of the error. Where a node nearly follows from others, errors of means and
    scales count for much beside what these leave of it: then means of all nodes are as rough as any, so that
    what is linear stays so, and scales move only where that is clear. ``starts``: where each stretch of rows
    begins that may go together by chance (a subject, some days, one row).

    >>> rng = np.random.default_rng(0)
    >>> z = np.sign(np.arange(1_000) - 499.5)
    >>> X = 3 * z[:, None] + rng.normal(size=(1_000, 2)) * np.exp(z)[:, None]
    >>> level = Directions(z[:, None], np.zeros(1), np.ones(1, dtype=int))
    >>> values = cleaned_nodes(X, level, np.arange(1_000)).values
    >>> bool(abs(values[z > 0].std() - values[z < 0].std()) < 0.1)
    True
    """
    columns, whole = functions.columns, _rounded(X)
    standard, steps = _standardised(X), have_steps(whole)
    standard[:, steps] = _standardised(normal_scores(whole[:, steps]))
    mean, mean_shares = explained(standard, functions, starts)
    related = _has_near_copies(standard - mean)
    if related:
        mean_shares = np.tile(mean_shares.max(axis=1, keepdims=True, initial=0), len(standard.T))
        mean = _fitted(standard, columns, mean_shares)
    standard = np.where((standard - mean).std(axis=0) > _NOTHING, standard - mean, 0.0)
    sizes = np.maximum(np.abs(standard / _scale(standard)), 1e-12)
    relative = sizes / sizes.mean(axis=0) - 1
    scale_shares = _shares(relative, functions, starts)
    if related:
        scale_shares = scale_shares * _clearly_explained(relative, functions, starts, scale_shares)
    clean = standard / np.exp(_log_scale(sizes, columns, scale_shares))
    scores = np.where(steps, clean, normal_scores(clean))
    values = _scores_or_values(clean, scores, starts)
    used = np.maximum(mean_shares, scale_shares).max(axis=1, initial=0) >= _LEAST_SHARE
    return CleanedNodes(values, columns[:, used], mean_shares[used], scale_shares[used])


def _has_near_copies(left: NDArray[np.float64]) -> bool:
    """Whether a node nearly follows from others, by rows that are enough to know it."""
    values = left[:, left.std(axis=0) > _NOTHING]
    if len(values) <= _LEAST_ROWS * values.shape[1]:
        return False
    return bool((_left_by_others(_standardised(values)).mean(axis=0) < _NEAR_COPY).any())


def _clearly_explained(
    values: NDArray[np.float64], functions: Directions, starts: NDArray[np.intp], shares: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether functions of z explain clearly more of each node than chance, with these shares, (p,)."""
    _, found, chance = _errors(values, functions, starts)
    more = (shares * (found**2 / np.maximum(chance, 1e-30) - 1)).sum(axis=0)
    return np.asarray(more > _CLEARLY * np.sqrt(2 * np.square(shares).sum(axis=0)))


def have_steps(X: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which nodes have few values, or one that is very common, (p,).

    >>> have_steps(np.column_stack([np.arange(100), np.arange(100) % 3, np.maximum(np.arange(100), 30)]))
    array([False,  True,  True])
    """
    counts = (np.unique(column, return_counts=True)[1] for column in X.T)
    return np.array([np.square(own / len(X)).sum() > _STEPS + 1 / len(X) for own in counts], dtype=bool)


def _rounded(X: NDArray[np.floating]) -> NDArray[np.float64]:
    """In whole numbers of a ten-thousandth of each node's range."""
    low, high = np.quantile(X, [0.05, 0.95], axis=0)
    unit = np.where(high > low, high - low, X.std(axis=0, dtype=np.float64)) * _ONE_VALUE
    return np.round(X / np.where(unit > 0, unit, 1.0))


def _scores_or_values(
    clean: NDArray[np.float64], scores: NDArray[np.float64], starts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Scores, standardised; near copies as they are where scores leave clearly more of them.

    Ranks of n rows are noise of about ``d / n`` where nodes differ by d, which is small beside the nodes and
    large beside ``d^2``.
    """
    values, scores = ((own - own.mean(axis=0)) / _scale(own) for own in (clean, scores))
    if len(clean) <= _LEAST_ROWS * clean.shape[1]:
        return scores
    left, left_of_scores = (_left_by_others(own) for own in (values, scores))
    unit = left_of_scores.mean(axis=0)
    near = unit < _NEAR_COPY
    if not near.any():
        return scores
    units = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(clean)))
    more = ((left_of_scores - left) / np.maximum(unit, 1e-12))[:, near].mean(axis=1)
    return np.where(near & is_clear(*mean_and_error(more, units)), values, scores)


def _left_by_others(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squares of what least squares on all others leaves of each node, (n, p)."""
    precision = np.linalg.inv(values.T @ values / len(values) + 1e-9 * np.eye(values.shape[1]))
    return np.square(values @ precision / np.diag(precision))


def explained(
    values: NDArray[np.float64], functions: Directions, starts: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What functions of z explain of values with mean zero, (n, p), and their shares, (m, p).

    As rough as it takes, column by column; see :func:`cleaned_nodes`.
    """
    shares = _shares(values, functions, starts)
    return _fitted(values, functions.columns, shares), shares


def _log_scale(
    sizes: NDArray[np.float64], columns: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """E|x| = exp(constant + columns @ b), by Fisher scoring as in a gamma regression with a penalty."""
    log_scale = np.zeros_like(sizes)
    for _ in range(_MAX_ROUNDS):
        ratio = sizes / np.exp(log_scale)
        working = log_scale + ratio / ratio.mean(axis=0)
        step = np.clip(_fitted(working, columns, shares) - log_scale, -1, 1)
        log_scale = np.clip(log_scale + step, -30, 30)
        if np.abs(step).max(initial=0) < _PRECISION:
            break
    return log_scale


def _fitted(values: NDArray, columns: NDArray, shares: NDArray) -> NDArray:
    """What the columns explain of each node, times the shares, in the precision of the values."""
    slopes = columns.T @ values / values.dtype.type(len(values))
    return columns @ (slopes * shares.astype(values.dtype))


def _shares(
    values: NDArray[np.float64], functions: Directions, starts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """How much to believe of each slope, (m, p), by the reach whose estimated error is least, node by node.

    Of a slope b with chance variance v, a share d has the error ``d^2 v + (1 - d)^2 (b^2 - v)``, up to
    chance, whatever the truth is (Stein).
    """
    errors, _, _ = _errors(values, functions, starts)
    further = np.stack([_believed(functions, factors, _FURTHER * reach) for factors, reach in _reaches()])
    return further[np.argmin(errors, axis=0)].T


def _errors(
    values: NDArray[np.float64], functions: Directions, starts: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Estimated errors, (n_reaches, p), and slopes and their chance variances, (m, p), node by node."""
    found = functions.columns.T @ values / len(values)
    chance = _chance(values - functions.columns @ found, functions.columns, starts)
    tried = np.stack([_believed(functions, *reach) for reach in _reaches()])
    return tried**2 @ chance + (1 - tried) ** 2 @ (found**2 - chance), found, chance


def mean_error(values: NDArray[np.float64], functions: Directions, starts: NDArray[np.intp]) -> float:
    """Estimated error of what functions of z explain of all nodes, up to a constant."""
    errors, found, chance = _errors(values, functions, starts)
    return float(errors.min(axis=0).sum() - (found**2 - chance).sum())


def in_units_of_noise(
    X: NDArray[np.floating], functions: Directions, starts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Nodes with mean zero, divided by the standard deviation that functions of z leave; zero without any."""
    standard = _standardised(X)
    left = (standard - explained(standard, functions, starts)[0]).std(axis=0)
    return np.where(left > _NOTHING, standard / np.maximum(left, _NOTHING), 0.0)


def _standardised(X: NDArray[np.floating]) -> NDArray[np.float64]:
    """In any units: a node is constant beside its own size."""
    spread = X.std(axis=0, dtype=np.float64)
    varies = spread > 1e-15 * np.abs(X).max(axis=0).astype(np.float64)
    return np.asarray((X - X.mean(axis=0, dtype=np.float64)) / np.where(varies, spread, 1.0))


def _reaches() -> list[tuple[int, float]]:
    return [(factors, reach) for factors in range(1, MOST_FACTORS + 1) for reach in _REACHES]


def _believed(functions: Directions, factors: int, reach: float) -> NDArray[np.float64]:
    """As a smoothing spline does, whose penalty grows with the fourth power of the frequency."""
    shares = 1 / (1 + (functions.roughness / reach) ** 4)
    return np.where(functions.factors <= factors, shares, 0.0)


def _chance(
    left: NDArray[np.float64], columns: NDArray[np.float64], starts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Variance of each slope, (m, p), when stretches of rows are independent of each other."""
    n = len(left)
    leverage = (1 + np.square(columns).sum(axis=1)) / n
    left = left / np.sqrt(np.maximum(1 - leverage, 0.1))[:, None]
    if len(starts) == n:
        return np.square(columns).T @ np.square(left) / n**2
    sums = [
        np.square(np.add.reduceat(column[:, None] * left, starts, axis=0)).sum(axis=0) for column in columns.T
    ]
    return np.reshape(sums, (columns.shape[1], left.shape[1])) / n**2


def _scale(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Standard deviations; one for a node of which the covariates leave nothing."""
    spread = values.std(axis=0, dtype=np.float64)
    return np.where(spread > 1e-12, spread, 1.0)
