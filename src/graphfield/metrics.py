"""Per-sample scores of estimated edge weights against a known skeleton.

Every function takes ``weights`` and ``skeleton`` of shape (n, p, p) (or (p, p) for one graph) and
returns one value per sample, shape (n,). Only off-diagonal entries count; both directions of a
pair count, so that an asymmetric score (the paper's |beta_jk|) can be evaluated too. The paper's own
tables leave the diagonal in the ranking; ``diagonal=True`` repeats that, to compare with them.
A sample whose true graph is empty or complete has no ranking to judge: its score is NaN.
"""

from __future__ import annotations

from collections.abc import Callable

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
    p = w.shape[1]
    keep = np.ones((p, p), dtype=bool) if diagonal else ~np.eye(p, dtype=bool)
    return w[:, keep], s[:, keep].astype(bool)  # (n, p * (p - 1)), or (n, p * p)


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


def _ranked(w: NDArray, s: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray[np.bool_]]:
    """True positives and false positives down each ranking, and where a run of ties ends."""
    order = np.argsort(-w, axis=1, kind="stable")
    ranked_w = np.take_along_axis(w, order, axis=1)
    hits = np.take_along_axis(s, order, axis=1)
    tp = np.cumsum(hits, axis=1, dtype=np.float64)
    fp = np.arange(1, w.shape[1] + 1) - tp
    last_of_tie = np.ones_like(hits)
    last_of_tie[:, :-1] = ranked_w[:, 1:] != ranked_w[:, :-1]
    return tp, fp, hits, last_of_tie


def _previous_tie_end(values: NDArray, last_of_tie: NDArray[np.bool_]) -> NDArray:
    """At each position, ``values`` at the end of the tie run before this one (0 for the first)."""
    ends = np.where(last_of_tie, values, 0.0)
    shifted = np.zeros_like(ends)
    shifted[:, 1:] = np.maximum.accumulate(ends, axis=1)[:, :-1]  # values never decrease
    return shifted


def _auroc_rows(w: NDArray, s: NDArray) -> NDArray[np.float64]:
    tp, fp, _, last = _ranked(w, s)
    width = fp - _previous_tie_end(fp, last)
    height = (tp + _previous_tie_end(tp, last)) / 2  # trapezoid: ties count half
    area = np.where(last, width * height, 0.0).sum(axis=1)
    return _ratio(area, tp[:, -1] * fp[:, -1])


def _auprc_rows(w: NDArray, s: NDArray) -> NDArray[np.float64]:
    tp, fp, _, last = _ranked(w, s)
    gained = tp - _previous_tie_end(tp, last)
    area = np.where(last, gained * tp / (tp + fp), 0.0).sum(axis=1)
    return _ratio(area, tp[:, -1])


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
