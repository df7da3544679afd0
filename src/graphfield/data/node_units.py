"""Units of nodes in which noise is even: as they are, logarithms, or normal scores.

Means that move with z, and levels of groups, are added to noise. Where the noise grows with them, or has long
tails, sums are those of other units: what is taken away from values as they are would be made by a few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.data.marginals import NormalScores, normal_scores
from graphfield.exceptions import count, listing

# Of a squared correlation of one between what is left of a node and its normal scores: what may be lacking
# in any units, beside what chance does, and the share of it that other units may have.
_MAY_LACK, _BY_CHANCE, _SHARE = 0.03, 3.0, 0.5
# The least scale of rows at some z, of that of all.
_LEAST_SCALE = 0.1
# Rows that are looked at, at most.
_MOST_ROWS = 4_000


@dataclass(frozen=True)
class NodeUnits:
    """Which nodes are taken as logarithms or normal scores, (p,) each; no node is both."""

    logs: NDArray[np.bool_]
    scores: NDArray[np.bool_]
    maps: NormalScores  # of the latter, in this order

    @property
    def others(self) -> NDArray[np.bool_]:
        """Nodes that are not as they are."""
        return self.logs | self.scores

    def transform(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        if not self.others.any():
            return X
        values = X.astype(np.float64)
        values[:, self.logs] = np.log(values[:, self.logs])
        if self.scores.any():
            values[:, self.scores] = self.maps.transform(values[:, self.scores])
        return values

    def restore(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """Inverse of :meth:`transform`; a score beyond those that there were is the last of them."""
        if not self.others.any():
            return values
        X = values.copy()
        X[:, self.logs] = np.exp(X[:, self.logs])
        if self.scores.any():
            X[:, self.scores] = self.maps.restore(X[:, self.scores])
        return X

    def without_levels(self, X: NDArray[np.floating], levels: NDArray[np.float64]) -> NDArray[np.floating]:
        """Values less the levels of their rows, (n, p), which are in these units; as they are without any."""
        values = self.restore(self.transform(X) - levels.astype(X.dtype))
        return np.where(levels.any(axis=0), values, X).astype(X.dtype, copy=False)

    def describe(self, names: Sequence[str], what: str) -> str:
        """A sentence about nodes that are not as they are; nothing where there are none."""
        parts = [
            f"{units} of {listing((name for name, its in zip(names, own, strict=True) if its), most=3)}"
            for units, own in (("logarithms", self.logs), ("normal scores", self.scores))
            if own.any()
        ]
        if not parts:
            return ""
        n = int(self.others.sum())
        them = "it" if n == 1 else "them"
        return (
            f"Of {count(n, 'node')}, {what} were taken out of {' and '.join(parts)}: what is left of {them} "
            "is nearer to normal than that of values as they are."
        )


def choose_units(
    X: NDArray[np.floating], W: NDArray[np.floating], labels: NDArray[np.intp] | None = None
) -> NodeUnits:
    """Per node the units in which a mean linear in W, (n, m), and levels of groups leave normal noise.

    Values stay as they are unless what is left of them is clearly not normal, and other units have less than
    half of that. Logarithms, of values that are all above zero, are tried first, and do where noise is near
    normal beside a scale that moves with W. Normal scores are taken where it is far from that in either: they
    would make little of a scale, and bend what two nodes have in common where levels of W hardly overlap.

    >>> rng = np.random.default_rng(0)
    >>> levels, labels = rng.normal(size=(50, 3)), np.repeat(np.arange(50), 8)
    >>> X = levels[labels] + rng.normal(size=(400, 3))
    >>> X[:, 1], X[:, 2] = np.exp(X[:, 1]), X[:, 2] ** 3
    >>> units = choose_units(X, np.ones((400, 1)), labels)
    >>> units.logs, units.scores
    (array([False,  True, False]), array([False, False,  True]))
    """
    rows = _looked_at(len(X), labels)
    codes = None if labels is None else np.unique(labels[rows], return_inverse=True)[1]
    if codes is not None:
        shared = np.bincount(codes)[codes] > 1
        if shared.any():
            rows, codes = rows[shared], np.unique(codes[shared], return_inverse=True)[1]
        else:
            codes = None
    given = W[rows]
    if codes is not None:
        given = given - group_means(given, codes)[codes]
    of_mean, of_scale = np.linalg.pinv(given), np.linalg.pinv(W[rows])
    most = _MAY_LACK + _BY_CHANCE / len(rows)

    def left_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
        left = values if codes is None else values - group_means(values[:, None], codes)[codes, 0]
        return left - given @ (of_mean @ left)

    def in_even_scale(left: NDArray[np.float64]) -> NDArray[np.float64]:
        sizes = np.abs(left)
        scale = np.maximum(W[rows] @ (of_scale @ sizes), _LEAST_SCALE * sizes.mean())
        return left / np.where(scale > 0, scale, 1.0)

    logs, scores = np.zeros((2, X.shape[1]), dtype=bool)
    for j, node in enumerate(X.T):
        values = node[rows].astype(np.float64)
        left = left_of(values)
        if node.min() > 0 and (lacks := _lack_of_normality(left)) > most:
            left_of_logs = left_of(np.log(values))
            logs[j] = _lack_of_normality(left_of_logs) < _SHARE * lacks
            left = left_of_logs if logs[j] else left
        if (lacks := _lack_of_normality(in_even_scale(left))) > most:
            if node.min() > 0 and not logs[j]:
                logs[j] = _lack_of_normality(in_even_scale(left_of(np.log(values)))) <= most
                if logs[j]:
                    continue
            left = left_of(normal_scores(values[:, None])[:, 0])
            scores[j] = _lack_of_normality(in_even_scale(left)) < _SHARE * lacks
    logs &= ~scores
    return NodeUnits(logs, scores, NormalScores.learn(X[:, scores]) if scores.any() else _NO_MAPS)


_NO_MAPS = NormalScores(np.zeros(0), np.zeros(0), np.zeros(1, dtype=np.int64))


def _looked_at(n_rows: int, labels: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """Rows, or whole groups, evenly spread."""
    if n_rows <= _MOST_ROWS:
        return np.arange(n_rows)
    if labels is None:
        return np.linspace(0, n_rows - 1, _MOST_ROWS).round().astype(np.intp)
    n_groups = int(labels.max()) + 1
    kept = np.linspace(0, n_groups - 1, max(1, n_groups * _MOST_ROWS // n_rows)).round().astype(np.intp)
    return np.flatnonzero(np.isin(labels, kept))


def group_means(table: NDArray[np.floating], codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Of each column in each of the groups 0, 1, 2 and so on, (groups, m)."""
    sizes = np.bincount(codes)
    return np.column_stack([np.bincount(codes, weights=column) / sizes for column in table.T])


def _lack_of_normality(values: NDArray[np.float64]) -> float:
    """One less the squared correlation of values and their normal scores (Shapiro and Francia)."""
    spread = values.std()
    if spread <= 1e-12 * max(1.0, np.abs(values).max(initial=0)):
        return 0.0
    return 1 - float(np.corrcoef(values, normal_scores(values[:, None])[:, 0])[0, 1]) ** 2
