"""Where to cut: the gap of the edge-magnitude histogram, or a noise level where there is no gap."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from graphfield.exceptions import NoGapWarning, ParameterError

# Histogram of log10 of the normalised magnitudes: three decades, 20 bins each.
_DECADES = 3
_BINS = 20 * _DECADES
_SMOOTHING = 1.5  # in bins
# A valley counts as a gap when it is at most this share of the lower of its two shoulders ...
_DEPTH = 0.5
# ... and when at least this share of all magnitudes lies beyond it.
_MIN_SHARE = 1e-3
# Pairs of nodes below which a histogram says nothing.
_MIN_PAIRS = 10
# How many times the sampling noise of a static graph the noise of edges may be: as if a sixteenth of the
# rows were behind each graph.
_MOST_NOISE = 4.0
# Magnitudes that are computed with in double precision at a time.
_BLOCK = 1_000_000
# Covariate values whose edge magnitudes are pooled, and how many magnitudes there may be in all.
GAP_ROWS = 500
GAP_ENTRIES = 20_000_000


@dataclass(frozen=True)
class Threshold:
    """The cut found at fit time.

    Attributes
    ----------
    value : float
        In units of partial correlation.
    largest : float
        The magnitude that the histogram was normalised by, so ``value / largest`` is the cut on
        the scale where the largest entry is 1.
    is_gap : bool
        Whether a gap was there. If not, ``value`` is the noise level described in ``reason``.
    reason : str
        One sentence for a person.
    """

    value: float
    largest: float
    is_gap: bool
    reason: str


def chosen_cut(threshold: float | str | None, found: Threshold) -> float:
    """The number that a user's ``threshold`` stands for; called by what a method of an estimator calls."""
    if threshold is None:
        return 0.0
    if threshold == "gap":
        if not found.is_gap:
            warnings.warn(
                f"threshold='gap' found no gap ({found.reason}); edges with |partial "
                f"correlation| above {found.value:.3g} are shown, an estimate of the noise. "
                "Pass a number as threshold to choose yourself.",
                NoGapWarning,
                stacklevel=4,
            )
        return found.value
    is_number = np.isscalar(threshold) and not isinstance(threshold, (str, bool))
    if not (is_number and 0 <= float(threshold) <= 1):
        raise ParameterError(
            "threshold must be a partial correlation, a number from 0 to 1, or 'gap' or None, got "
            f"{threshold!r}."
        )
    return float(threshold)


def gap_rows(n_rows: int, n_nodes: int, seed: int) -> NDArray[np.intp]:
    """Positions of the rows whose magnitudes are pooled: 500, drawn at random.

    Above 283 nodes fewer rows are drawn, 40 at p = 1,000, so that there are never more than 20 million
    magnitudes.

    >>> [len(gap_rows(n, p, seed=0)) for n, p in ((300, 50), (3_000, 50), (3_000, 1_000))]
    [300, 500, 40]
    """
    wanted = min(GAP_ROWS, max(1, GAP_ENTRIES // (n_nodes * (n_nodes - 1) // 2)))
    if n_rows <= wanted:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, wanted, replace=False))


def find_threshold(weights: NDArray, n_samples: int) -> Threshold:
    """Find the gap between weak and strong edges in pooled magnitudes.

    The magnitudes are normalised so that the largest is 1. On a log scale, noise forms one hump
    and edges form another; the cut is the bottom of the valley between the two.

    Parameters
    ----------
    weights : ndarray of shape (m, n_pairs)
        Edge magnitudes, one row per covariate value, one column per pair of nodes.
    n_samples : int
        Rows the model was trained on; sets the noise level of very small graphs.
    """
    pooled = np.abs(weights).ravel()
    largest = float(pooled.max(initial=0.0))
    n_pairs = weights.shape[-1]
    noise = _noise_level(pooled, n_pairs, n_samples)
    if largest == 0.0:
        return Threshold(0.0, 0.0, False, "every edge weight is zero")
    if n_pairs < _MIN_PAIRS:
        return Threshold(noise, largest, False, f"{n_pairs} pairs of nodes are too few to show a gap")
    cut = _valley(pooled, largest)
    if cut is None:
        return Threshold(
            noise, largest, False, "the histogram of edge magnitudes has no gap: it falls steadily"
        )
    return Threshold(float(10.0**cut * largest), largest, True, "the gap of the edge-magnitude histogram")


def _valley(pooled: NDArray, largest: float) -> float | None:
    """Log of the centre of the lowest bin between the noise hump and the tallest hump to its right."""
    counts, edges = _histogram(pooled, largest)
    counts[0] = 0  # everything clipped from below is piled up there
    smooth = gaussian_filter1d(counts.astype(float), _SMOOTHING)
    noise_mode = int(np.argmax(smooth))
    best: tuple[float, int] | None = None
    for peak in range(noise_mode + 2, _BINS):
        bottom = noise_mode + int(np.argmin(smooth[noise_mode : peak + 1]))
        rise = smooth[peak] - smooth[bottom]
        if smooth[bottom] <= _DEPTH * smooth[peak] and (best is None or rise > best[0]):
            best = (rise, bottom)
    if best is None:
        return None
    bottom = best[1]
    if counts[bottom:].sum() < _MIN_SHARE * len(pooled):
        return None
    return float((edges[bottom] + edges[bottom + 1]) / 2)


def _histogram(pooled: NDArray, largest: float) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Counts and edges of the bins of ``log10(pooled / largest)``, block by block."""
    counts, edges = np.histogram([], bins=_BINS, range=(-_DECADES, 0.0))
    for start in range(0, len(pooled), _BLOCK):
        share = pooled[start : start + _BLOCK].astype(np.float64) / largest
        log_share = np.log10(np.maximum(share, 10.0**-_DECADES))
        counts = counts + np.histogram(log_share, bins=_BINS, range=(-_DECADES, 0.0))[0]
    return counts, edges


def _median(values: NDArray) -> float:
    """``np.median`` in double precision without a copy in double precision."""
    middle = [(len(values) - 1) // 2, len(values) // 2]
    return float(np.partition(values, middle)[middle].astype(np.float64).mean())


def _noise_level(pooled: NDArray, n_pairs: int, n_samples: int) -> float:
    """The size that the largest of ``n_pairs`` noise entries would have.

    The noise scale is read off the median magnitude (most pairs of a sparse graph are no edges).
    With very few pairs the median may itself be an edge, and in an estimate that is sparse itself it is
    zero or next to it. The level is never below twice the sampling noise ``1/sqrt(n)``. In a dense graph the
    median is an edge, too, so the scale is never above four times the sampling noise.
    """
    sampling = 1.0 / float(np.sqrt(n_samples))
    if n_pairs < _MIN_PAIRS:
        return 2.0 * sampling
    scale = min(_median(pooled) / 0.6745, _MOST_NOISE * sampling)
    return min(1.0, max(2.0 * sampling, scale * float(np.sqrt(2.0 * np.log(n_pairs)))))
