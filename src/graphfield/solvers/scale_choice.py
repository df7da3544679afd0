"""Scales of nodes that move with the covariates, as far as held-out rows support it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.data.moving_scales import MovingScales
from graphfield.data.row_store import take_rows
from graphfield.numbers import is_clear, mean_and_error
from graphfield.solvers.interaction import interaction_coefficients
from graphfield.solvers.scale_basis import ScaleBasis, scale_basis, smooth_functions

# Fewer rows (or groups) say nothing about scales.
MIN_ROWS, MIN_UNITS = 60, 10
# Rows that are looked at at most, fewer of very wide tables.
_MAX_ROWS, _MAX_ENTRIES = 10_000, 2_500_000
# Standard deviations of chance beyond which a node is looked at more closely.
_FIRST_SIGN = 2.5
# The mean size, in standard units of the node, of what is not worth a scale.
_NOTHING = 1e-4
# The least size of what is left of a node at a row, of their mean.
_LEAST_SIZE = 0.02
# Variances that the slope of a log scale is expected to have; held-out rows choose, node by node.
_AMPLITUDES = (0.001, 0.03, 1.0, 30.0)
# Of the size of a Gaussian value in units of its square: pi / 2 - 1, the noise of one row.
_NOISE = 0.57
# Functions that the largest amplitude leaves less than this share of are left out.
_LEAST_SHARE = 0.02
_ROUNDS, _STEP, _MOST, _PRECISION = 30, 1.0, 6.0, 1e-2


@dataclass(frozen=True)
class ScaleRows:
    """Nodes whose scales may move, and what with."""

    values: NDArray[np.floating]  # (n, p), less their mean at z
    W: NDArray[np.float64]  # (n, m), as ``data.covariates.features`` gives them; the first is one
    n_numeric: int  # features that are numbers; they come next, in standard units
    fold: NDArray[np.intp]  # (n,); rows with equal numbers are held out together
    units: NDArray | None = None  # (n,); rows with equal labels may go together in any way


@dataclass(frozen=True)
class FoundScales:
    """Scales, the rows that they were found from, and what the other folds say of these."""

    scales: MovingScales
    rows: NDArray[np.intp]
    units: NDArray[np.intp]  # of these rows
    held_out: NDArray[np.float32]  # log scales, (rows, p)


def learn_scales(rows: ScaleRows) -> MovingScales | None:
    """Scales s_j(z) of nodes that are centred at z; None where none of them moves.

    ``E|x_j| = exp(constant_j + f_j(z))`` with piecewise linear functions of the covariates, by a penalised
    gamma regression, which a few wild values do not decide. How smooth f_j is, and whether it is there at
    all, is decided node by node on rows that took no part in its fit.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.uniform(-1.7, 1.7, 900)
    >>> X, W = rng.normal(size=(900, 2)) * np.exp([0, 1] * z[:, None]), np.column_stack([np.ones(900), z])
    >>> scales = learn_scales(ScaleRows(X, W, 1, np.arange(900) % 3))
    >>> scales.moves
    array([False,  True])
    """
    found = find_scales(rows)
    return None if found is None else found.scales


def find_scales(given: ScaleRows) -> FoundScales | None:
    """As :func:`learn_scales`, with what it looked at."""
    values, W, units = given.values, given.W, given.units
    n, p = values.shape
    rows = np.arange(0, n, row_step(n, p))
    labels = np.unique(rows if units is None else units[rows], return_inverse=True)[1]
    if len(rows) < MIN_ROWS or labels.max() + 1 < MIN_UNITS:
        return None
    W = take_rows(W, rows)[:, 1:]
    basis = scale_basis(W, given.n_numeric)
    if basis is None:
        return None
    columns = basis.at(W)
    mix, shares = _smooth_functions(basis, columns)
    functions = (columns @ mix).astype(np.float32)
    functions -= functions.mean(axis=0)
    sizes = np.abs(take_rows(values, rows))
    # A node may have one value at some z: its scale is small there, but not beyond what can be divided by.
    sizes = np.maximum(sizes, np.maximum(_LEAST_SIZE * sizes.mean(axis=0), 1e-12)).astype(np.float32)
    nodes = np.flatnonzero(_may_move(sizes, functions))
    held_out, slopes = np.zeros(sizes.shape, dtype=np.float32), np.zeros((mix.shape[1], p))
    chosen, held_out[:, nodes] = _choose(sizes[:, nodes], functions, shares, given.fold[rows], labels)
    for which in np.unique(chosen[chosen >= 0]):
        own = nodes[chosen == which]
        slopes[:, own] = _fit(sizes[:, own], functions, shares[which], slopes[:, own])
    if not slopes.any():
        return None
    return FoundScales(_standardised(basis, mix @ slopes, columns), rows, labels, held_out)


def _smooth_functions(
    basis: ScaleBasis, columns: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How columns mix to functions that matter, (b, k), and what each amplitude leaves of these, (a, k)."""
    mix, roughness = smooth_functions(basis, columns)
    shares = 1 / (1 + roughness * _NOISE / len(columns) / np.array(_AMPLITUDES)[:, None])
    used = shares[-1] > _LEAST_SHARE
    return mix[:, used], shares[:, used]


def row_step(n: int, p: int) -> int:
    """Every how many rows are looked at.

    >>> row_step(9_000, 50), row_step(20_003, 50), row_step(9_000, 1_000)
    (1, 2, 4)
    """
    return max(1, round(n / min(_MAX_ROWS, max(2_000, _MAX_ENTRIES // p))))


def _may_move(sizes: NDArray[np.float32], functions: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Nodes whose sizes go with the smoothest few, or more, of the functions by more than chance, (p,).

    A quick look that spares the others the closer one. Of a node that the covariates determine, rounding is
    left, and that has no scale.
    """
    deviation = sizes / sizes.mean(axis=0) - 1
    error = np.maximum(deviation.var(axis=0), 1e-12) / len(sizes)
    found = np.square(functions.T @ deviation / len(sizes)) / error
    numbers = np.arange(1, len(found) + 1)[:, None]
    surplus = (found.cumsum(axis=0) - numbers) / np.sqrt(2 * numbers)
    return (surplus.max(axis=0) > _FIRST_SIGN) & (sizes.mean(axis=0) > _NOTHING)


def _choose(
    sizes: NDArray[np.float32],
    functions: NDArray[np.float32],
    shares: NDArray[np.float64],
    fold: NDArray[np.intp],
    units: NDArray[np.intp],
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Which of the amplitudes predicts the sizes of held-out rows best, node by node; -1 for none.

    Also the log scales of held-out rows with it, (n, p).
    """
    n, p = sizes.shape
    coef = {part: np.zeros((functions.shape[1], p)) for part in np.unique(fold)}
    best, chosen, kept = np.zeros(p), np.full(p, -1), np.zeros((n, p), dtype=np.float32)
    gains, held_out = np.empty_like(kept), np.empty_like(kept)
    for which, own in enumerate(shares):
        for part in coef:
            known, rows = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
            coef[part] = _fit(sizes[known], functions[known], own, coef[part])
            log_scale = _log_scale(functions, coef[part])
            held_out[rows], gains[rows] = log_scale[rows], _gains(sizes, log_scale, known, rows)
        mean, error = mean_and_error(gains, units)
        better = (mean > best) & is_clear(mean, error)
        best, chosen = np.where(better, mean, best), np.where(better, which, chosen)
        kept[:, better] = held_out[:, better]
    return chosen, kept


def _fit(
    sizes: NDArray[np.float32],
    functions: NDArray[np.float32],
    shares: NDArray[np.float64],
    start: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Coefficients (k, p) by Fisher scoring: every step is one product, as the functions are uncorrelated.

    A share of less than one is what a ridge penalty leaves of a coefficient.
    """
    coef = start
    for _ in range(_ROUNDS):
        ratio = sizes * np.exp(-_log_scale(functions, coef))
        ratio /= ratio.mean(axis=0)
        step = shares[:, None] * (coef + functions.T @ (ratio - 1) / len(ratio)) - coef
        size = np.abs(step).max(axis=0, initial=0)
        coef = coef + step * np.minimum(1, _STEP / np.maximum(size, 1e-12))
        if size.max(initial=0) < _PRECISION:
            break
    return coef


def _log_scale(functions: NDArray[np.float32], coef: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.clip(functions @ coef.astype(np.float32), -_MOST, _MOST)


def _gains(
    sizes: NDArray[np.float32],
    log_scale: NDArray[np.float32],
    known: NDArray[np.intp],
    rows: NDArray[np.intp],
) -> NDArray[np.float32]:
    """By how much the moving scale makes the sizes of ``rows`` more likely than one scale, (rows, p)."""
    ratio = sizes * np.exp(-log_scale)
    constant, moving = sizes[known].mean(axis=0), ratio[known].mean(axis=0)
    likely = sizes[rows] / constant - ratio[rows] / moving
    return likely + np.log(constant / moving) - log_scale[rows]


def _standardised(
    basis: ScaleBasis, slopes: NDArray[np.float64], columns: NDArray[np.float64]
) -> MovingScales:
    """Scales with a mean square of one over the rows."""
    squares = np.exp(2 * (columns @ slopes - (offset := (columns @ slopes).mean(axis=0)))).mean(axis=0)
    return MovingScales(basis.weights, basis.bias, basis.mix @ slopes, -offset - np.log(squares) / 2)


_RIDGE = 0.01  # of the regressions that are compared


def learn_node_scales(rows: ScaleRows) -> MovingScales | None:
    """Scales s_j(z) to divide nodes by before edges are fitted; None where that makes no graph simpler.

    The scale of a node moves with z on its own, or because its edges do. Where it moves on its own, one graph
    for everybody predicts nodes that are divided by their scales better than nodes as they are: that is what
    held-out rows have to say, by their Gaussian likelihood.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.uniform(-1.7, 1.7, 900), rng.normal(size=(900, 2))
    >>> W, fold = np.column_stack([np.ones(900), z]), np.arange(900) % 3
    >>> on_its_own = noise.cumsum(axis=1) * np.exp([0, 0.5] * z[:, None])
    >>> learn_node_scales(ScaleRows(on_its_own, W, 1, fold)).moves
    array([False,  True])
    >>> by_its_edge = np.column_stack([noise[:, 0], noise[:, 1] + z * noise[:, 0]])
    >>> learn_node_scales(ScaleRows(by_its_edge, W, 1, fold)) is None
    True
    """
    found = find_scales(rows)
    if found is None:
        return None
    nodes = take_rows(rows.values, found.rows).astype(np.float64, copy=False)
    scale = np.exp(found.held_out.astype(np.float64))
    part = rows.fold[found.rows]
    gains = np.empty(len(nodes))
    for held_out in np.unique(part):
        known, new = part != held_out, part == held_out
        divided = _log_likelihood(nodes, scale, scale, known)
        gains[new] = (divided - _log_likelihood(nodes, np.ones_like(scale), scale, known))[new]
    return found.scales if is_clear(*mean_and_error(gains, found.units)) else None


def _log_likelihood(
    nodes: NDArray[np.float64],
    unit: NDArray[np.float64],
    scale: NDArray[np.float64],
    known: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Of each row, mean over nodes: each node given all others, by one graph of nodes divided by ``unit``.

    Residual scales are constant or move as ``scale`` does, whichever the known rows prefer, node by node.
    """
    values = nodes / unit
    coef = interaction_coefficients(values[known], np.ones((int(known.sum()), 1)), _RIDGE)[0]
    left = unit * (values - values @ coef.T)
    likely = []
    for residual in (np.ones_like(scale), scale):
        residual = residual * np.sqrt(np.square(left / residual)[known].mean(axis=0))
        likely.append(-np.log(residual) - np.square(left / residual) / 2)
    better = likely[0][known].mean(axis=0) > likely[1][known].mean(axis=0)
    return np.where(better, *likely).mean(axis=1)
