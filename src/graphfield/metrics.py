"""Per-sample scores of estimated edge weights against a known skeleton.

Every function takes ``weights`` and ``skeleton`` of shape (n, p, p) (or (p, p) for one graph) and
returns one value per sample, shape (n,). Only off-diagonal entries count; both directions of a
pair count, so that an asymmetric score (the paper's |beta_jk|) can be evaluated too. The paper's own
tables leave the diagonal in the ranking; ``diagonal=True`` repeats that, to compare with them.
A sample whose true graph is empty or complete has no ranking to judge: its score is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphfield.exceptions import DataError

__all__ = [
    "auprc",
    "auroc",
    "balanced_accuracy",
    "edge_counts",
    "f1",
    "ranking_scores",
    "sensitivity",
    "specificity",
]

# Entries handled at a time: a few arrays of this size stay in a processor's cache.
_CHUNK_ENTRIES = 250_000


class RankingScores(NamedTuple):
    """Scores of the order of the weights, (n,) each."""

    auroc: NDArray[np.float64]
    auprc: NDArray[np.float64]


class EdgeCounts(NamedTuple):
    """True and false positives and negatives of a graph, (n,) each, and the scores they make."""

    tp: NDArray[np.float64]
    fp: NDArray[np.float64]
    fn: NDArray[np.float64]
    tn: NDArray[np.float64]

    def f1(self) -> NDArray[np.float64]:
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn, empty=0.0)

    def sensitivity(self) -> NDArray[np.float64]:
        return _ratio(self.tp, self.tp + self.fn)

    def specificity(self) -> NDArray[np.float64]:
        return _ratio(self.tn, self.tn + self.fp)

    def balanced_accuracy(self) -> NDArray[np.float64]:
        return (self.sensitivity() + self.specificity()) / 2


def ranking_scores(weights: ArrayLike, skeleton: ArrayLike, *, diagonal: bool = False) -> RankingScores:
    """:func:`auroc` and :func:`auprc` for the price of one: each ranking is sorted once."""
    parts = [_ranked_scores(w, s) for w, s in _entries(weights, skeleton, diagonal=diagonal, pairs_once=True)]
    empty = (np.empty(0), np.empty(0))
    return RankingScores(*map(np.concatenate, zip(*(parts or [empty]), strict=True)))


def edge_counts(weights: ArrayLike, skeleton: ArrayLike, threshold: float = 0.0) -> EdgeCounts:
    """Counts of the edges with weight above ``threshold``: everything but the rankings follows."""
    parts = [_counted(w > threshold, s) for w, s in _entries(weights, skeleton)]
    return EdgeCounts(*np.concatenate(parts or [np.empty((0, 4))]).T)


def auroc(weights: ArrayLike, skeleton: ArrayLike, *, diagonal: bool = False) -> NDArray[np.float64]:
    """Area under the ROC curve, ties counted half (equal to scikit-learn's ``roc_auc_score``).

    >>> W = np.array([[0, .9, .1], [.9, 0, .2], [.1, .2, 0]])
    >>> auroc(W, W > .5)
    array([1.])
    """
    return ranking_scores(weights, skeleton, diagonal=diagonal).auroc


def auprc(weights: ArrayLike, skeleton: ArrayLike, *, diagonal: bool = False) -> NDArray[np.float64]:
    """Average precision, ties taken together (equal to ``average_precision_score``).

    >>> W = np.array([[0, .9, .1], [.9, 0, .2], [.1, .2, 0]])
    >>> auprc(W, W > .15).round(3)
    array([1.])
    """
    return ranking_scores(weights, skeleton, diagonal=diagonal).auprc


def f1(weights: ArrayLike, skeleton: ArrayLike, threshold: float = 0.0) -> NDArray[np.float64]:
    """``2 TP / (2 TP + FP + FN)`` of the edges with weight above ``threshold``; 0 if none is right."""
    return edge_counts(weights, skeleton, threshold).f1()


def sensitivity(weights: ArrayLike, skeleton: ArrayLike, threshold: float = 0.0) -> NDArray[np.float64]:
    """Share of true edges found; NaN where there is no true edge."""
    return edge_counts(weights, skeleton, threshold).sensitivity()


def specificity(weights: ArrayLike, skeleton: ArrayLike, threshold: float = 0.0) -> NDArray[np.float64]:
    """Share of true non-edges left out; NaN where every pair is an edge."""
    return edge_counts(weights, skeleton, threshold).specificity()


def balanced_accuracy(weights: ArrayLike, skeleton: ArrayLike, threshold: float = 0.0) -> NDArray[np.float64]:
    """Mean of sensitivity and specificity."""
    return edge_counts(weights, skeleton, threshold).balanced_accuracy()


def _entries(
    weights: ArrayLike, skeleton: ArrayLike, *, diagonal: bool = False, pairs_once: bool = False
) -> Iterator[tuple[NDArray, NDArray[np.bool_]]]:
    """The entries of each matrix that count, one row per sample, some samples at a time.

    ``pairs_once`` leaves out one direction of the pairs of symmetric matrices: a ranking with every
    entry there twice has the same scores.
    """
    w, s = np.asarray(weights), np.asarray(skeleton)
    if w.ndim == 2:
        w, s = w[None], s[None] if s.ndim == 2 else s
    if w.shape != s.shape or w.ndim != 3 or w.shape[1] != w.shape[2]:
        raise DataError(
            "weights and skeleton must have the same shape (n, p, p), got "
            f"{np.shape(weights)} and {np.shape(skeleton)}."
        ).about(argument="skeleton")
    p = w.shape[1]
    step = max(1, _CHUNK_ENTRIES // max(1, p * p))
    keep = np.flatnonzero(np.ones((p, p)) if diagonal else 1 - np.eye(p))
    for start in range(0, len(w), step):
        part, truth = w[start : start + step], s[start : start + step].astype(bool, copy=False)
        if part.dtype.kind == "f" and not np.isfinite(part).all():
            raise DataError.of("weights", f"hold {int((~np.isfinite(w)).sum())} NaN or infinite entries.")
        count = keep
        if pairs_once and not diagonal and _symmetric(part) and _symmetric(truth):
            count = keep[keep // p < keep % p]
        # (m, p * (p - 1)), half of it, or (m, p * p)
        yield part.reshape(-1, p * p)[:, count], truth.reshape(-1, p * p)[:, count]


def _symmetric(matrices: NDArray) -> bool:
    return bool((matrices == matrices.swapaxes(1, 2)).all())


class _TrueEdges:
    """The true edges of each row, from weak to strong, and their ranks among all entries of the row.

    Only the ranks of true edges are needed, so only entries from the weakest true edge up are sorted, by
    value; sorting the positions of all is ten times slower.
    """

    def __init__(self, w: NDArray, s: NDArray[np.bool_]) -> None:
        self.n_entries = w.shape[1]
        self.count = np.count_nonzero(s, axis=1)
        self.end = np.cumsum(self.count)
        self.row = np.repeat(np.arange(len(w)), self.count)
        self.value = w[s]  # row by row
        self.parts = [slice(e - c, e) for e, c in zip(self.end.tolist(), self.count.tolist(), strict=True)]
        self.contenders = [self._contenders(*pair) for pair in zip(w, self.parts, strict=True)]

    def _contenders(self, entries: NDArray, part: slice) -> NDArray:
        mine = self.value[part]
        mine.sort()
        strong = entries[entries >= mine[0]] if len(mine) else entries[:0]
        strong.sort()
        return strong

    def beaten(self, ties: Literal["left", "right"]) -> NDArray[np.int64]:
        """How many entries each true edge beats; with ``ties="right"`` also itself and its equals."""
        rank = np.empty(len(self.value), dtype=np.int64)
        for strong, part in zip(self.contenders, self.parts, strict=True):
            rank[part] = strong.searchsorted(self.value[part], ties)
            rank[part] += self.n_entries - len(strong)
        return rank


def _ranked_scores(w: NDArray, s: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """AUROC and average precision of each row."""
    true = _TrueEdges(w, s)
    n_true = true.count.astype(np.float64)
    beaten = true.beaten("left")
    # With ties half, n_true^2 / 2 of the wins is true edges against each other; halves do not round.
    wins = np.bincount(true.row, weights=(beaten + true.beaten("right")) / 2, minlength=len(w))
    auroc_rows = _ratio(wins - n_true**2 / 2, n_true * (w.shape[1] - n_true))
    return auroc_rows, _ratio(_precision_area(true, beaten), n_true)


def _precision_area(true: _TrueEdges, beaten: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum over the true edges of each row of the precision at the end of the run of ties they are in."""
    row, value = true.row, true.value
    first_of_tie = np.ones(len(row), dtype=bool)
    first_of_tie[1:] = (row[1:] != row[:-1]) | (value[1:] != value[:-1])
    tie = np.flatnonzero(first_of_tie)
    row = row[tie]
    gained = np.diff(tie, append=len(value))
    found = true.end[row] - tie  # true edges at least as strong
    said = true.n_entries - beaten[tie]  # entries at least as strong
    area = np.zeros(len(true.count))
    np.add.at(area, row, gained * found / said)
    return area


def _counted(said: NDArray[np.bool_], true: NDArray[np.bool_]) -> NDArray[np.float64]:
    """TP, FP, FN, TN of each row: (m, 4)."""
    tp = np.count_nonzero(said & true, axis=1)
    fp, fn = np.count_nonzero(said, axis=1) - tp, np.count_nonzero(true, axis=1) - tp
    return np.stack([tp, fp, fn, said.shape[1] - tp - fp - fn], axis=1).astype(np.float64)


def _ratio(top: NDArray, bottom: NDArray, empty: float = np.nan) -> NDArray[np.float64]:
    return np.divide(top, bottom, out=np.full(top.shape, empty), where=bottom > 0)
