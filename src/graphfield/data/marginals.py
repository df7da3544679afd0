"""Nodes as they are or as normal scores: the transform, its inverse, and which of the two pays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from graphfield.data.nodes import NodeScaler
from graphfield.data.splits import hold_out

MARGINALS = ("auto", "raw", "normal")
# Points of the map of one node at most; between them it is a straight line.
MAX_KNOTS = 1_024
# The choice: rows it looks at at most (fewer of very wide tables), and what it needs to be made at all.
MAX_CHECK_ROWS, MAX_CHECK_ENTRIES, MIN_CHECK_ROWS = 20_000, 5_000_000, 2_000
MIN_HELD_OUT, MIN_HELD_OUT_GROUPS = 50, 10
_HELD_OUT_SHARE = 0.2
_RIDGE = 0.05  # of the regressions that are compared, added to the variances of standardised nodes
# Normal scores must be better by so many standard errors, and by so much: with many rows, gains are certain
# long before they matter.
_EVIDENCE, _LEAST_GAIN = 3.0, 1e-3


def normal_scores(X: NDArray[np.floating]) -> NDArray[np.float64]:
    """Each column as the normal quantiles of its ranks, ``Phi^-1(rank / (n + 1))``, ties averaged.

    A graph of Gaussian data seen through unknown increasing functions (the nonparanormal model) can
    be estimated from these as if the data were Gaussian.

    >>> normal_scores(np.array([[1.0], [100.0], [3.0]])).round(2).ravel()
    array([-0.67,  0.67,  0.  ])
    """
    return ndtri(rankdata(X, axis=0) / (len(X) + 1))


@dataclass(frozen=True)
class NormalScores:
    """Per node an increasing, piecewise linear map from its values to their normal scores, and back.

    Scores are stretched to the node's own mean and standard deviation, so that they have its unit. Beyond
    the values that were there to learn from, a value counts as the nearest of them; a node that was
    constant has this one value always.

    The maps of all nodes are stored one after the other: those of node j are
    ``knots[offsets[j] : offsets[j + 1]]`` (its values) and the same part of ``targets`` (their scores).

    Examples
    --------
    >>> X = np.exp(np.random.default_rng(0).normal(size=(500, 1)))
    >>> scores = NormalScores.learn(X)
    >>> bool(np.isclose(scores.transform(X).std(), X.std()))
    True
    >>> bool(np.allclose(scores.restore(scores.transform(X)), X))
    True
    """

    knots: NDArray[np.float64]
    targets: NDArray[np.float64]
    offsets: NDArray[np.int64]

    @classmethod
    def learn(cls, X: NDArray[np.floating]) -> NormalScores:
        """Knots are the distinct values of a node, at most 1,024 of them, evenly spread in rank."""
        own = NodeScaler.learn(X, center=True, scale=True)
        maps = [_map(X[:, j], own.center[j], own.scale[j]) for j in range(X.shape[1])]
        return cls(
            np.concatenate([knots for knots, _ in maps]),
            np.concatenate([targets for _, targets in maps]),
            np.cumsum([0, *(len(knots) for knots, _ in maps)], dtype=np.int64),
        )

    def transform(self, X: NDArray[np.floating], dtype: DTypeLike = np.float64) -> NDArray:
        """Values to scores, computed in double precision and kept as ``dtype``.

        Values beyond the range of the training rows count as its end.
        """
        return self._mapped(X, self.knots, self.targets, dtype)

    def restore(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Scores to values; scores beyond those of the training rows count as the last of them."""
        return self._mapped(X, self.targets, self.knots, np.float64)

    def _mapped(self, X: NDArray, start: NDArray, end: NDArray, dtype: DTypeLike) -> NDArray:
        values = np.empty(X.shape, dtype=dtype)
        for j in range(X.shape[1]):
            own = slice(self.offsets[j], self.offsets[j + 1])
            values[:, j] = np.interp(X[:, j], start[own], end[own])
        return values


def _map(
    values: NDArray[np.floating], center: float, scale: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Knots and targets of one node."""
    distinct, counts = np.unique(values.astype(np.float64), return_counts=True)
    if len(distinct) == 1:
        return distinct, distinct
    ranks = np.cumsum(counts) - (counts - 1) / 2
    kept = np.linspace(0, len(distinct) - 1, min(len(distinct), MAX_KNOTS)).round().astype(np.intp)
    knots, scores = distinct[kept], ndtri(ranks[kept] / (len(values) + 1))
    # Mean and spread of what comes out, straight lines between the knots included.
    seen = np.interp(distinct, knots, scores)
    mean = np.average(seen, weights=counts)
    spread = np.sqrt(np.average((seen - mean) ** 2, weights=counts))
    return knots, center + scale * (scores - mean) / spread


@dataclass(frozen=True)
class MarginalCheck:
    """Whether normal scores of the nodes predict held-out rows better than the nodes as they are.

    Attributes
    ----------
    prefers : bool
        Whether they do, by more than three standard errors and more than 0.001.
    gain : float
        By how much, as a rank correlation of predicted and actual values, averaged over nodes. Not a
        number where there are too few rows to tell.
    standard_error : float
        Of the gain.
    """

    prefers: bool
    gain: float
    standard_error: float

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> MarginalCheck:
        """From the fields as JSON has them, where null stands for what is not a number."""
        numbers = (values["gain"], values["standard_error"])
        return cls(values["prefers"], *(float("nan") if number is None else number for number in numbers))


_TOO_FEW = MarginalCheck(False, float("nan"), float("nan"))


def prefer_normal_scores(X: NDArray[np.floating], groups: NDArray | None) -> MarginalCheck:
    """Predict every node of held-out rows from all others by a static ridge regression, both ways.

    Predicted and actual values are compared by the normal scores of their ranks among the held-out rows,
    which no increasing transform can change, so that neither way is judged on its home ground.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        At most 20,000 rows (fewer beyond 250 nodes), evenly spread, are used; a fifth of them is held out,
        always the same.
    groups : ndarray of shape (n,), optional
        Rows with equal labels are held out together, and count as one when the gain is judged.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2_000, 6)).cumsum(axis=1)
    >>> prefer_normal_scores(X, None).prefers, prefer_normal_scores(np.exp(X), None).prefers
    (False, True)
    """
    rows = np.linspace(0, len(X) - 1, check_rows(*X.shape)).round().astype(np.intp)
    labels = None if groups is None else groups[rows]
    if labels is not None and len(np.unique(labels)) < 2:
        return _TOO_FEW
    train, held_out = hold_out(len(rows), _HELD_OUT_SHARE, labels, seed=0)
    if len(held_out) < MIN_HELD_OUT:
        return _TOO_FEW
    known, new = X[rows[train]], X[rows[held_out]]
    actual, raw = _by_rank(new), _by_rank(_predicted(known, new))
    scores = NormalScores.learn(known)
    normal = _by_rank(_predicted(scores.transform(known), scores.transform(new)))
    gains = (actual * (normal - raw)).mean(axis=1)
    if labels is not None:
        _, group = np.unique(labels[held_out], return_inverse=True)
        gains = np.bincount(group, weights=gains) / np.bincount(group)
        if len(gains) < MIN_HELD_OUT_GROUPS:
            return _TOO_FEW
    gain, error = float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains)))
    return MarginalCheck(gain > max(_EVIDENCE * error, _LEAST_GAIN), gain, error)


def check_rows(n_rows: int, n_nodes: int) -> int:
    """How many rows :func:`prefer_normal_scores` looks at.

    >>> check_rows(30_000, 50), check_rows(30_000, 500), check_rows(300, 50)
    (20000, 10000, 300)
    """
    return min(n_rows, MAX_CHECK_ROWS, max(MIN_CHECK_ROWS, MAX_CHECK_ENTRIES // n_nodes))


def _predicted(known: NDArray[np.floating], new: NDArray[np.floating]) -> NDArray[np.float64]:
    """Every node of the new rows from all others, in standard units of the known rows."""
    own = NodeScaler.learn(known, center=True, scale=True)
    varies = np.ptp(known, axis=0) > 0  # the others are to be zero exactly, so that nothing follows from them
    scaler = NodeScaler(np.where(varies, own.center, known[0]), np.where(varies, own.scale, 1.0))
    values = scaler.transform(known)
    precision = np.linalg.inv(values.T @ values / len(values) + _RIDGE * np.eye(values.shape[1]))
    coef = -precision / np.diag(precision)[:, None]
    np.fill_diagonal(coef, 0.0)
    return scaler.transform(new) @ coef.T


def _by_rank(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Standardised normal scores; zero where all values are equal."""
    scores = normal_scores(values)
    scores -= scores.mean(axis=0)
    spread = scores.std(axis=0)
    return np.divide(scores, spread, out=np.zeros_like(scores), where=spread > 1e-9)
