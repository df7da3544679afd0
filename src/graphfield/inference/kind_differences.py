"""Do edges differ between graphs, where an edge may be several numbers? Covariances, tests, intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from graphfield.inference.node_effects import Effects
from graphfield.inference.pair_columns import PairColumns
from graphfield.inference.sparse_differences import q_values_of_differences

Array = NDArray[np.float64]
# Influences of rows on estimates that are held at a time.
_ENTRIES = 8_000_000


@dataclass(frozen=True)
class Units:
    """Which rows of each graph belong together; the same number is the same unit in all graphs.

    Rows of a graph are in the order of their units.
    """

    labels: list[NDArray[np.intp]]

    @property
    def number(self) -> int:
        return 1 + max(int(own.max()) for own in self.labels)

    def sums(self, influences: Sequence[Array]) -> list[Array]:
        """Of the rows of each unit, (units, columns), zero where a graph has none of them."""
        found = []
        for own, rows in zip(self.labels, influences, strict=True):
            starts = np.flatnonzero(np.diff(own, prepend=-1))
            sums = np.zeros((self.number, rows.shape[1]))
            sums[own[starts]] = np.add.reduceat(rows, starts)
            found.append(sums * np.sqrt(len(starts) / max(1, len(starts) - 1)))
        return found

    def least(self) -> int:
        """Units of the graph that has fewest."""
        return min(len(np.unique(own)) for own in self.labels)


def kind_differences(effects: Sequence[Effects], units: Units | None, level: float) -> dict[str, Array]:
    """Wald tests of all pairs one by one, intervals, and what all pairs say together (q-values)."""
    pairs, k = effects[0].pairs, len(effects)
    estimates, covariances = np.stack([one.estimates for one in effects]), pair_covariances(effects, units)
    found = {name: np.empty(len(pairs)) for name in ("difference", "low", "high", "p_value")}
    for width in np.unique(pairs.widths):
        which, columns = pairs.with_width(width)
        own = np.stack([covariances[pair] for pair in which])
        values = estimates[:, columns].transpose(1, 0, 2)  # (pairs, graphs, width)
        apart = np.kron(np.column_stack([-np.ones(k - 1), np.eye(k - 1)]), np.eye(width))
        off = (values.reshape(len(which), -1) @ apart.T)[:, :, None]
        wald = (off * np.linalg.solve(apart @ own @ apart.T, off)).sum(axis=(1, 2))
        scale, second = _distribution(effects, units, len(apart))
        found["p_value"][which] = f_distribution.sf(wald * scale, len(apart), second)
        difference, error = _largest(values, own)
        half = np.sqrt(f_distribution.ppf(level, len(apart), second) / scale) * error
        found["difference"][which] = difference
        found["low"][which] = np.maximum(difference - half, -2.0 if width == 1 else 0.0)
        found["high"][which] = np.minimum(difference + half, 2.0)
    q_values = q_values_of_differences(
        estimates, covariances, found["p_value"], dependent=units is not None, pairs=pairs
    )
    return {**found, "q_value": q_values}


def _distribution(effects: Sequence[Effects], units: Units | None, rank: int) -> tuple[float, float]:
    """What Wald statistics are to be multiplied by, and second degrees of freedom of F."""
    if units is None:
        freedom = min(len(one.fits.design) - one.fits.design.shape[1] for one in effects)
        return 1 / rank, max(1.0, freedom)
    # Of units, the whole covariance is estimated (Hotelling).
    freedom = units.least() - 1
    second = max(freedom - rank + 1, 1e-3)
    return second / (freedom * rank), second


def _largest(values: Array, covariance: Array) -> tuple[Array, Array]:
    """Differences between two graphs, (pairs,), and their errors; of more, those that are furthest apart.

    Edges that are several numbers have no sign: the size of the difference, whose error is that of the
    direction which is known least.
    """
    m, k, width = values.shape
    apart = covariance.reshape(m, k, width, k, width)
    sizes, errors = [], []
    for a, b in combinations(range(k), 2):
        off = values[:, b] - values[:, a]
        own = apart[:, a, :, a] + apart[:, b, :, b] - apart[:, a, :, b] - apart[:, b, :, a]
        signed = width == 1 and k == 2
        sizes.append(off[:, 0] if signed else np.sqrt(np.square(off).sum(axis=1)))
        errors.append(np.sqrt(np.maximum(np.linalg.eigvalsh(own)[:, -1], 1e-20)))
    most = np.argmax(np.abs(sizes), axis=0)
    rows = np.arange(m)
    return np.array(sizes)[most, rows], np.array(errors)[most, rows]


def pair_covariances(effects: Sequence[Effects], units: Units | None) -> list[Array]:
    """Of each pair in all graphs, (graphs * width, graphs * width), from what each row or unit adds.

    Never less than the likelihoods say: rows that a separated class fits without error say nothing of
    how sure that is.
    """
    pairs, k, found = effects[0].pairs, len(effects), []
    for part in _parts(pairs, max(len(one.fits.design) for one in effects)):
        start, stop = pairs.starts[part.start], pairs.starts[part.stop]
        influences = [one.influences(slice(start, stop)) for one in effects]
        if units is not None:
            influences = units.sums(influences)
        for pair in range(part.start, part.stop):
            width = pairs.widths[pair]
            own = slice(pairs.starts[pair] - start, pairs.starts[pair + 1] - start)
            whole = np.zeros((k, width, k, width))
            for g, h in ((g, h) for g in range(k) for h in range(k) if g == h or units is not None):
                whole[g, :, h] = influences[g][:, own].T @ influences[h][:, own]
            for g, one in enumerate(effects):
                whole[g, :, g] = at_least(whole[g, :, g], one.expected_covariance(pair))
            found.append(whole.reshape(k * width, k * width))
    return found


def _parts(pairs: PairColumns, n_rows: int) -> Iterator[slice]:
    step = max(1, _ENTRIES // n_rows // int(pairs.widths.max()))
    return (slice(start, min(start + step, len(pairs))) for start in range(0, len(pairs), step))


def at_least(covariance: Array, least: Array) -> Array:
    """The first, in no direction less than the second.

    >>> at_least(np.diag([2.0, 0.5]), np.eye(2)).tolist()
    [[2.0, 0.0], [0.0, 1.0]]
    """
    if len(least) == 1:
        return np.maximum(covariance, least)
    root = np.linalg.cholesky(least)
    inner = np.linalg.solve(root, np.linalg.solve(root, covariance).T)
    values, vectors = np.linalg.eigh((inner + inner.T) / 2)
    return root @ (vectors * np.maximum(values, 1.0)) @ vectors.T @ root.T
