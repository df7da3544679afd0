"""Nodes as they are or as their normal scores: which of the two predicts held-out rows better."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.data.marginals import SKEPTIC, NormalScores, normal_scores
from graphfield.data.nodes import NodeScaler, columns_of
from graphfield.data.row_store import take_rows
from graphfield.data.saved_values import Saved
from graphfield.data.splits import folds, hold_out
from graphfield.numbers import CLEAR, is_clear, mean_and_error
from graphfield.solvers.interaction import interaction_coefficients, interaction_fit

# Rows the choice looks at at most (fewer of very wide tables).
MAX_CHECK_ROWS, MAX_CHECK_ENTRIES, MIN_CHECK_ROWS = 20_000, 5_000_000, 2_000
# What it needs to be made at all: rows, and groups where rows belong to any.
FEWEST_ROWS, FEWEST_GROUPS = 250, 50
# Products of a node and a feature of the covariates at most; beyond that relations are the same at every z.
MAX_PRODUCTS = 1_000
_HELD_OUT_SHARE = 0.2
# Fewer rows than this are all held out, a fifth at a time: a fifth of them alone would not see heavy tails.
_FEW_ROWS = 2_500
_RIDGE = 0.05  # of the regressions that are compared, added to the variances of standardised nodes
# Normal scores must be better by so many standard errors, and by so much: with many rows, gains are certain
# long before they matter.
_EVIDENCE, _LEAST_GAIN = 3.0, 1e-3
# Standard errors by which nodes as they are must explain more variance to be kept all the same.
_COUNTER_EVIDENCE = CLEAR
# The share of a node's variance that no single value may make up.
_MOST_OF_ONE = 0.5


@dataclass(frozen=True)
class MarginalCheck:
    """Whether normal scores of the nodes predict held-out rows better than the nodes as they are.

    Attributes
    ----------
    prefers : bool
        Whether they do, by more than three standard errors and more than 0.001, and do not explain less
        variance by more than two standard errors; or ``one_value_decides``.
    gain : float
        By how much, as a rank correlation of predicted and actual values, averaged over nodes. Not a
        number where there are too few rows to tell.
    standard_error : float
        Of the gain.
    explained_gain : float
        How much more of a node's variance in held-out rows the others explain where all are normal scores, as
        a share of it, averaged over nodes.
    hides : bool
        Whether it is less, by more than two standard errors.
    one_value_decides : bool
        Whether they are preferred only because a single value makes up most of a node's variance, as typing
        errors do: as it is, such a node has no relation to any other.
    lacks : {"", "rows", "groups"}
        What there is too little of to tell: fewer than 250 rows, or than 50 groups of rows.
    """

    prefers: bool
    gain: float
    standard_error: float
    explained_gain: float = float("nan")
    hides: bool = False
    one_value_decides: bool = False
    lacks: str = ""

    @classmethod
    def from_saved(cls, values: Saved) -> MarginalCheck:
        """From the fields as JSON has them, where null stands for what is not a number."""
        numbers = (values[name].number_or_nan() for name in ("gain", "standard_error", "explained_gain"))
        gain, error, explained = numbers
        hides, one = (values[name].flag() for name in ("hides", "one_value_decides"))
        return cls(values["prefers"].flag(), gain, error, explained, hides, one, values["lacks"].text())

    @classmethod
    def too_few(cls, lacks: str) -> MarginalCheck:
        return cls(False, float("nan"), float("nan"), lacks=lacks)


def prefer_normal_scores(
    X: NDArray[np.floating], W: NDArray[np.floating], groups: NDArray | None = None
) -> MarginalCheck:
    """Predict every node of held-out rows from all others by ridge regressions, both ways.

    The regressions are the same for all rows, or linear in the covariates: whichever predicts better, so that
    relations that change with z, and may cancel over all rows, are seen as well. Predicted and actual values
    are compared by the normal scores of their ranks among the held-out rows, which no increasing transform
    can change.

    Ranks make little of the ends of the scale. So normal scores are not preferred either where the others
    clearly explain more of the variance of a node as it is: where Gaussian relations are seen through
    increasing functions, no transform has larger correlations than the normal scores; larger ones, say
    because extreme values go together, mean that this model does not hold and scores would hide relations.
    Where a single value makes up most of a node's variance, scores are preferred in any case.

    At most 20,000 rows (fewer beyond 250 nodes), evenly spread, are used; a fifth of them is held out,
    always the same, or with fewer than 2,500 rows each fifth in turn. W (n, m) are features of the
    covariates, as ``data.covariates.features`` gives them; with more than 1,000 products of nodes and
    features, only regressions that are the same for all rows are tried. Rows of one group are held out
    together, and count as one when the gain is judged.

    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(2_000, 6)).cumsum(axis=1), np.ones((2_000, 1))
    >>> prefer_normal_scores(X, W).prefers, prefer_normal_scores(np.exp(X), W).prefers
    (False, True)
    """
    rows = np.linspace(0, len(X) - 1, check_rows(*X.shape)).round().astype(np.intp)
    labels = None if groups is None else groups[rows]
    if len(rows) < FEWEST_ROWS:
        return MarginalCheck.too_few("rows")
    if labels is not None and len(np.unique(labels)) < FEWEST_GROUPS:
        return MarginalCheck.too_few("groups")
    if len(rows) < _FEW_ROWS:
        splits = folds(len(rows), labels, round(1 / _HELD_OUT_SHARE), shuffle=True)
    else:
        splits = [hold_out(len(rows), _HELD_OUT_SHARE, labels, seed=0)]
    parts, units = [], []
    for train, held_out in ((rows[kept], rows[out]) for kept, out in splits):
        own = held_out if groups is None else groups[held_out]
        codes = np.unique(own, return_inverse=True)[1]
        known, new, W_known, W_new = (take_rows(table, at) for table in (X, W) for at in (train, held_out))
        parts.append(np.stack(_gains(known, new, W_known, W_new, codes)))
        units.append(own)
    gains, explained = np.concatenate(parts, axis=1)
    codes = np.unique(np.concatenate(units), return_inverse=True)[1]
    gain, error = _mean_of_units(gains, codes)
    explained_gain, explained_error = _mean_of_units(explained, codes)
    hides = is_clear(-explained_gain, explained_error, _COUNTER_EVIDENCE)
    better = is_clear(gain, error, _EVIDENCE, _LEAST_GAIN) and not hides
    one_decides = not better and any(_largest_share(node) > _MOST_OF_ONE for node in columns_of(X))
    return MarginalCheck(better or one_decides, gain, error, explained_gain, hides, one_decides)


def _largest_share(node: NDArray[np.float64]) -> float:
    """Of a node's variance about its median that one value makes up; the values are overwritten."""
    node -= np.median(node, overwrite_input=True)  # a column of a long table has no room for copies
    squares = np.square(node, out=node)
    total = squares.sum()
    return float(squares.max() / total) if total > 0 else 0.0


def _mean_of_units(values: NDArray[np.float64], units: NDArray[np.intp]) -> tuple[float, float]:
    """Mean over units of their means, and its standard error."""
    mean, error = mean_and_error(np.bincount(units, weights=values) / np.bincount(units))
    return float(mean), float(error)


def _gains(
    known: NDArray, new: NDArray, W_known: NDArray, W_new: NDArray, units: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What normal scores add to the rank correlation of each held-out row, and to the explained variance.

    By the regressions with the higher rank correlations. In the first, nodes count by their rank correlation
    in the other half of the held-out units: what is predicted of a node that depends on no other is noise,
    whichever way.
    """
    scores = NormalScores.learn(known)
    known_scores, new_scores = scores.transform(known), scores.transform(new)
    actual = _by_rank(new)
    best, gains, explained = -np.inf, np.zeros(new.shape), np.zeros(len(new))
    for m in {1, used_features(W_known.shape[1], known.shape[1])}:
        raw, left = _predicted(known, new, W_known[:, :m], W_new[:, :m])
        normal, left_of_scores = _predicted(known_scores, new_scores, W_known[:, :m], W_new[:, :m])
        raw, normal = _by_rank(raw), _by_rank(normal)
        correlation = actual * (normal + raw)
        if correlation.mean() > best:
            best, gains = correlation.mean(), (actual * (normal - raw)) * _weights(correlation, units % 2)
            explained = left - left_of_scores
    return gains.sum(axis=1), explained


def _weights(correlation: NDArray[np.float64], half: NDArray[np.intp]) -> NDArray[np.float64]:
    """Of the nodes in each row; they sum to one, or are zero where no node can be predicted."""
    weights = np.maximum([correlation[half == 1].mean(axis=0), correlation[half == 0].mean(axis=0)], 0.0)
    total = weights.sum(axis=1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)[half]


def check_rows(n_rows: int, n_nodes: int) -> int:
    """How many rows :func:`prefer_normal_scores` looks at.

    >>> check_rows(30_000, 50), check_rows(30_000, 500), check_rows(300, 50)
    (20000, 10000, 300)
    """
    return min(n_rows, MAX_CHECK_ROWS, max(MIN_CHECK_ROWS, MAX_CHECK_ENTRIES // n_nodes))


def used_features(n_features: int, n_nodes: int) -> int:
    """How many features of the covariates :func:`prefer_normal_scores` looks at: all, or only the first.

    >>> used_features(11, 50), used_features(11, 200)
    (11, 1)
    """
    return n_features if n_features * n_nodes <= MAX_PRODUCTS else 1


def _predicted(
    known: NDArray, new: NDArray, W_known: NDArray, W_new: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Every node of the new rows from all others, in standard units of the known rows; and what is left.

    That is the squared error of each row as a share of the node's mean square, averaged over nodes that vary.
    """
    own = NodeScaler.learn(known, center=True, scale=True)
    varies = np.ptp(known, axis=0) > 0  # the others are to be zero exactly, so that nothing follows from them
    scaler = NodeScaler(np.where(varies, own.center, known[0]), np.where(varies, own.scale, 1.0))
    coef = interaction_coefficients(scaler.transform(known), W_known, _RIDGE)
    values = scaler.transform(new)
    fitted = interaction_fit(values, W_new, coef)
    total = np.square(values).mean(axis=0)
    counts = varies & (total > 0)
    left = np.square(values - fitted)[:, counts] / total[counts]
    return fitted, left.sum(axis=1) / max(1, counts.sum())


def _by_rank(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Standardised normal scores; zero where all values are equal."""
    scores = normal_scores(values)
    scores -= scores.mean(axis=0)
    spread = scores.std(axis=0)
    return np.divide(scores, spread, out=np.zeros_like(scores), where=spread > 1e-9)


_USED = {
    "raw": "Nodes: as they are",
    "normal": "Nodes: normal scores",
    "log1p": "Nodes: logarithms, log(1 + x)",
    "clr": "Nodes: log-ratios, logarithms less the level of their row",
    SKEPTIC: "Nodes: normal scores, with correlations from ranks",
}


def describe_nodes(marginals: str, check: MarginalCheck | None) -> str:
    """Whether the model is one of the nodes or of their normal scores, and why."""
    used = _USED[marginals]
    if check is None:
        return f"{used}."
    if math.isnan(check.gain):
        return f"{used} ({_too_few(check.lacks)} to tell whether normal scores predict better)."
    if check.one_value_decides:
        return f"{used} (as it is, a single value makes up most of some node's variance)."
    if check.hides:
        return f"{used} (normal scores explain less of each other's variance in held-out rows)."
    if not check.prefers:
        return f"{used} (normal scores do not predict held-out rows clearly better)."
    gain = f"{check.gain:.3f} ± {check.standard_error:.3f}"
    return f"{used} (they predict held-out rows better than raw values, by {gain} in rank correlation)."


def _too_few(lacks: str) -> str:
    if lacks == "groups":
        return f"fewer than {FEWEST_GROUPS} groups or stretches of time are too few"
    return f"fewer than {FEWEST_ROWS} rows are too few"
