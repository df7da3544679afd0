"""When an edge is there: pairs that stand clear of their noise, above a cut; or the paper's gap."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from graphfield.exceptions import NoGapWarning, ParameterError, ThresholdWarning, agreed, count
from graphfield.graphs.false_discoveries import false_words
from graphfield.graphs.pair_tests import FALSE_SHARE
from graphfield.messages import Argument, Message

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
# Edges per node up to which there are nearly none, and the share of pairs from which there are nearly all.
_NEARLY_NONE, _NEARLY_ALL = 0.1, 0.9
# How many times the sampling noise of a static graph the noise of edges may be: as if a sixteenth of the
# rows were behind each graph.
_MOST_NOISE = 4.0
# Magnitudes that are computed with in double precision at a time.
_BLOCK = 1_000_000
# Covariate values whose edge magnitudes are pooled, and how many magnitudes there may be in all.
GAP_ROWS = 500
GAP_ENTRIES = 20_000_000
_GIVE_A_NUMBER = Message("Pass a number as threshold", code="give-threshold")


@dataclass(frozen=True)
class Gap:
    """The cut between weak and strong edges: what ``threshold="gap"`` stands for.

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


@dataclass(frozen=True, eq=False)
class Threshold:
    """What ``threshold="auto"`` stands for, found at fit time: edges of some pairs, above one cut.

    Attributes
    ----------
    value : float
        The size of a partial correlation above which a pair that is ``clear`` is an edge: the largest cut
        that predicts as well as any, within one standard error; of :class:`BayesianCGM` the typical spread of
        the posterior.
    clear : ndarray of shape (p, p), bool
        Pairs that stand clear of their noise, at a false discovery rate of .1 over all pairs (the rule of
        :func:`graphfield.infer_edges`, with the tests that a fitted model allows), or so many by their
        posterior probabilities. No other pair is an edge at any z.
    n_edges : int or None
        Pairs that are an edge at some z of the training rows; None where it is not known.
    reason : str
        How many pairs and why, for a person.
    gap : Gap
        What ``threshold="gap"`` stands for.
    steady : ndarray of shape (p, p), bool, or None
        Pairs for which the cut is zero: tests have found an edge that is there wherever one looks.
    """

    value: float
    clear: NDArray[np.bool_]
    n_edges: int | None
    reason: str
    gap: Gap
    steady: NDArray[np.bool_] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Threshold):
            return NotImplemented
        same = all(
            getattr(self, name) == getattr(other, name) for name in ("value", "n_edges", "reason", "gap")
        )
        return same and np.array_equal(self.clear, other.clear)

    def state(self) -> dict[str, Any]:
        """All but pairs, as values of JSON."""
        own = {"value": self.value, "n_edges": self.n_edges, "reason": self.reason}
        return {**own, "gap": asdict(self.gap)}

    @property
    def cuts(self) -> NDArray[np.float64]:
        """The cut of every pair, (p, p); infinite where the pair is never an edge."""
        cuts = np.where(self.clear, self.value, np.inf)
        return cuts if self.steady is None else np.where(self.steady, 0.0, cuts)

    @property
    def pair_cuts(self) -> NDArray[np.float64]:
        """``cuts`` of each pair once, in the order of ``numpy.triu_indices(p, 1)``."""
        return self.cuts[np.triu_indices(len(self.clear), 1)]

    @property
    def clear_pairs(self) -> NDArray[np.bool_]:
        """``clear`` of each pair once, in the order of ``numpy.triu_indices(p, 1)``."""
        return self.clear[np.triu_indices(len(self.clear), 1)]

    @property
    def caution(self) -> str:
        """What to know where nearly none or nearly all pairs are edges; empty elsewhere."""
        n_nodes = len(self.clear)
        n_pairs = n_nodes * (n_nodes - 1) // 2
        if self.n_edges is None or n_pairs < _MIN_PAIRS:
            return ""
        if self.n_edges <= _NEARLY_NONE * n_nodes:
            return Message(
                "which is nearly none: either few nodes are connected, or there are too few rows to tell. "
                "{everything} has all estimates, with their noise",
                everything=Argument("threshold", None),
            )
        if self.n_edges >= _NEARLY_ALL * n_pairs:
            return Message(
                "which is nearly all: either nearly all nodes are connected, or with so many rows weak "
                "edges are clear of their noise, too. {number} to see the strong ones",
                number=_GIVE_A_NUMBER,
            )
        return ""


def auto_threshold(rates: NDArray[np.float64], value: float, correlations: NDArray, gap: Gap) -> Threshold:
    """Edges of the pairs that pass by their ``rates`` (p, p), q-values, above ``value``, in words.

    ``correlations`` (m, pairs) are those at some covariate values of the training rows.
    """
    clear, pairs = rates <= FALSE_SHARE, np.triu_indices(len(rates), 1)
    upper = clear[pairs]
    n_edges = int((np.abs(correlations[:, upper]) > value).any(axis=0).sum())
    if not upper.any():
        reason = f"none of {len(upper):,} pairs stands clear of its noise"
        return Threshold(value, clear, n_edges, reason, gap)
    n_clear = int(upper.sum())
    stand = agreed(n_clear, "stands clear of its", "stand clear of their")
    reason = (
        f"{n_clear:,} of {len(upper):,} pairs {stand} noise"
        f"{false_words(rates[pairs], 'to be false', FALSE_SHARE)}; at each z those "
        f"above {value:.3g} are edges, as smaller ones do not improve predictions"
    )
    return Threshold(value, clear, n_edges, reason, gap)


def chosen_cut(threshold: float | str | None, found: Threshold) -> float | NDArray[np.float64]:
    """The cut, or the (p, p) cuts, that a user's ``threshold`` stands for.

    Called by what a method of an estimator calls, whose caller a warning names.
    """
    if threshold is None:
        return 0.0
    if isinstance(threshold, str) and threshold == "auto":
        if found.caution:
            warnings.warn(
                Message(
                    "{auto} keeps {edges} over all z, {caution} ({reason}).",
                    auto=Argument("threshold", "auto"),
                    edges=count(found.n_edges or 0, "edge"),
                    caution=found.caution,
                    reason=found.reason,
                ),
                ThresholdWarning,
                stacklevel=4,
            )
        return found.cuts
    if isinstance(threshold, str) and threshold == "gap":
        if not found.gap.is_gap:
            warnings.warn(
                Message(
                    "{gap} found no gap ({reason}); edges with |partial correlation| above {cut:.3g} are "
                    "shown, an estimate of the noise. {number} to choose yourself.",
                    gap=Argument("threshold", "gap"),
                    reason=found.gap.reason,
                    cut=found.gap.value,
                    number=_GIVE_A_NUMBER,
                ),
                NoGapWarning,
                stacklevel=4,
            )
        return found.gap.value
    is_number = np.isscalar(threshold) and not isinstance(threshold, (str, bool))
    if not (is_number and 0 <= float(threshold) <= 1):
        raise ParameterError.of(
            "threshold",
            "must be 'auto', 'gap', None, or a partial correlation, a number from 0 to 1, "
            f"got {threshold!r}.",
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


def find_gap(weights: NDArray, n_samples: int) -> Gap:
    """Find the gap between weak and strong edges in pooled magnitudes.

    The magnitudes, (m, pairs), are normalised so that the largest is 1. On a log scale, noise forms one hump
    and edges form another; the cut is the bottom of the valley between the two. ``n_samples``, the rows the
    model was trained on, sets the noise level of very small graphs.
    """
    pooled = np.abs(weights).ravel()
    largest = float(pooled.max(initial=0.0))
    n_pairs = weights.shape[-1]
    noise = _noise_level(pooled, n_pairs, n_samples)
    if largest == 0.0:
        return Gap(0.0, 0.0, False, "every edge weight is zero")
    if n_pairs < _MIN_PAIRS:
        return Gap(noise, largest, False, f"{n_pairs} pairs of nodes are too few to show a gap")
    cut = _valley(pooled, largest)
    if cut is None:
        return Gap(noise, largest, False, "the histogram of edge magnitudes has no gap: it falls steadily")
    return Gap(float(10.0**cut * largest), largest, True, "the gap of the edge-magnitude histogram")


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
