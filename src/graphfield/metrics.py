"""Per-sample scores of estimated edge weights against a known skeleton.

Every function takes ``weights`` and ``skeleton`` of shape (n, p, p) (or (p, p) for one graph) and
returns one value per sample, shape (n,). Only off-diagonal entries count; both directions of a
pair count, so that an asymmetric score (the paper's |beta_jk|) can be evaluated too. The paper's own
tables leave the diagonal in the ranking; ``diagonal=True`` repeats that, to compare with them.
A sample whose true graph is empty or complete has no ranking to judge: its score is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphfield.exceptions import DataError

__all__ = ["auprc", "auroc", "balanced_accuracy", "f1", "sensitivity", "specificity"]

# Rows handled at a time, in entries: the sort needs a few arrays of this size.
_CHUNK_ENTRIES = 2_000_000


def auroc(weights: ArrayLike, skeleton: ArrayLike, *, diagonal: bool = False) -> NDArray[np.float64]:
    """Area under the ROC curve, ties counted half (equal to scikit-learn's ``roc_auc_score``).

    >>> W = np.array([[0, .9, .1], [.9, 0, .2], [.1, .2, 0]])
    >>> auroc(W, W > .5)
    array([1.])
    """
    return _by_rows(_auroc_rows, weights, skeleton, diagonal)


def auprc(weights: ArrayLike, skeleton: ArrayLike, *, diagonal: bool = False) -> NDArray[np.float64]:
    """Average precision, ties taken together (equal to ``average_precision_score``).

    >>> W = np.array([[0, .9, .1], [.9, 0, .2], [.1, .2, 0]])
    >>> auprc(W, W > .15).round(3)
    array([1.])
    """
    return _by_rows(_auprc_rows, weights, skeleton, diagonal)


def f1(weights: ArrayLike, skeleton: ArrayLike, threshold: float = 0.0) -> NDArray[np.float64]:
    """``2 TP / (2 TP + FP + FN)`` of the edges with weight above ``threshold``; 0 if none is right."""
    tp, fp, fn, _ = _confusion(weights, skeleton, threshold)
    return _ratio(2 * tp, 2 * tp + fp + fn, empty=0.0)


def sensitivity(weights: ArrayLike, skeleton: ArrayLike, threshold: float = 0.0) -> NDArray[np.float64]:
    """Share of true edges found; NaN where there is no true edge."""
    tp, _, fn, _ = _confusion(weights, skeleton, threshold)
    return _ratio(tp, tp + fn)


def specificity(weights: ArrayLike, skeleton: ArrayLike, threshold: float = 0.0) -> NDArray[np.float64]:
    """Share of true non-edges left out; NaN where every pair is an edge."""
    _, fp, _, tn = _confusion(weights, skeleton, threshold)
    return _ratio(tn, tn + fp)


def balanced_accuracy(weights: ArrayLike, skeleton: ArrayLike, threshold: float = 0.0) -> NDArray[np.float64]:
    """Mean of sensitivity and specificity."""
    tp, fp, fn, tn = _confusion(weights, skeleton, threshold)
    return (_ratio(tp, tp + fn) + _ratio(tn, tn + fp)) / 2


def _entries(
    weights: ArrayLike, skeleton: ArrayLike, diagonal: bool = False
) -> tuple[NDArray, NDArray[np.bool_]]:
    """The entries of each matrix that count, one row per sample."""
    w, s = np.asarray(weights), np.asarray(skeleton)
    if w.ndim == 2:
        w, s = w[None], s[None] if s.ndim == 2 else s
    if w.shape != s.shape or w.ndim != 3 or w.shape[1] != w.shape[2]:
        raise DataError(
            "weights and skeleton must have the same shape (n, p, p), got "
            f"{np.shape(weights)} and {np.shape(skeleton)}."
        )
    if w.dtype.kind == "f" and not np.isfinite(w).all():
        raise DataError(f"weights hold {int((~np.isfinite(w)).sum())} NaN or infinite entries.")
    s = s.astype(bool, copy=False)
    return (_flat(w), _flat(s)) if diagonal else (_off_diagonal(w), _off_diagonal(s))


def _flat(matrices: NDArray) -> NDArray:
    return matrices.reshape(len(matrices), matrices.shape[1] ** 2)  # (n, p * p)


def _off_diagonal(matrices: NDArray) -> NDArray:
    """(n, p, p) to (n, p * (p - 1)), by row: after the first entry every (p + 1)-th is diagonal."""
    n, p, _ = matrices.shape
    return _flat(matrices)[:, 1:].reshape(n, p - 1, p + 1)[:, :, :-1].reshape(n, p * (p - 1))


def _by_rows(
    score: Callable[[NDArray, NDArray], NDArray[np.float64]],
    weights: ArrayLike,
    skeleton: ArrayLike,
    diagonal: bool,
) -> NDArray[np.float64]:
    w, s = _entries(weights, skeleton, diagonal)
    step = max(1, _CHUNK_ENTRIES // max(1, w.shape[1]))
    parts = [score(w[i : i + step], s[i : i + step]) for i in range(0, len(w), step)]
    return np.concatenate(parts) if parts else np.empty(0)


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


def _auroc_rows(w: NDArray, s: NDArray) -> NDArray[np.float64]:
    true = _TrueEdges(w, s)
    n_true = true.count.astype(np.float64)
    half_ties = (true.beaten("left") + true.beaten("right")) / 2
    beaten = np.bincount(true.row, weights=half_ties, minlength=len(w))
    # Of that, n_true^2 / 2 is true edges against each other; halves add up without rounding.
    return _ratio(beaten - n_true**2 / 2, n_true * (w.shape[1] - n_true))


def _auprc_rows(w: NDArray, s: NDArray) -> NDArray[np.float64]:
    true = _TrueEdges(w, s)
    row, value = true.row, true.value
    first_of_tie = np.ones(len(row), dtype=bool)
    first_of_tie[1:] = (row[1:] != row[:-1]) | (value[1:] != value[:-1])
    tie = np.flatnonzero(first_of_tie)
    row = row[tie]
    gained = np.diff(tie, append=len(value)).astype(np.float64)
    found = true.end[row] - tie  # true edges at least as strong
    said = w.shape[1] - true.beaten("left")[tie]  # entries at least as strong
    area = np.zeros(w.shape)
    area[row, said - 1] = gained * found / said
    return _ratio(area.sum(axis=1), true.count.astype(np.float64))


def _confusion(
    weights: ArrayLike, skeleton: ArrayLike, threshold: float
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    w, s = _entries(weights, skeleton)
    said = w > threshold
    counts = (said & s, said & ~s, ~said & s, ~said & ~s)
    tp, fp, fn, tn = (c.sum(axis=1).astype(np.float64) for c in counts)
    return tp, fp, fn, tn


def _ratio(top: NDArray, bottom: NDArray, empty: float = np.nan) -> NDArray[np.float64]:
    return np.divide(top, bottom, out=np.full_like(top, empty), where=bottom > 0)
