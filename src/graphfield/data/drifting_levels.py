"""Levels of groups that drift: rows of a group that are near each other, in time say, are more alike.

Such levels are more than a constant, and subtracting their mean takes less of them out at the ends of a
group's rows than in the middle. What is left there has the graph of the drift, in the middle less of it: a
graph that never moves looks as if it moved along the covariate in whose order the drift goes. Differences of
neighbouring rows have no ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from graphfield.data.covariates import CovariateEncoder, features
from graphfield.data.frames import Frame
from graphfield.data.node_units import group_means
from graphfield.exceptions import agreed, listing
from graphfield.numbers import is_clear, mean_and_error

# Drift is there where it is clear of chance over the groups, so many at least, and near rows are more alike
# than others by this share of what varies within groups.
_CONFIDENCE, _FEWEST_GROUPS, _LEAST = 0.975, 5, 0.02
# A covariate tells the order of the rows of a group where this share of its steps leads to another value, and
# steps are even (visits, years), as values drawn at random are not, or rows are listed in its order.
_STEPS, _EVEN_STEPS, _LISTED = 0.9, 0.35, 0.95
# What is looked at: rows, nodes, how far apart rows are in their order at most. A number of so few values has
# a mean at each. Values farther from the mean, in standard deviations, count as if they were so far.
_ROWS, _NODES, _MOST_LAGS, _FEW_VALUES, _FARTHEST = 20_000, 40, 20, 50, 5.0
WHAT_TO_DO = (
    "Ask again of differences of neighbouring rows, in which levels cancel (one row for each two neighbours "
    "of a group: each node's later value less its earlier one, covariates in the middle between both): what "
    "does not move there as well is no evidence."
)


def words_of_drift(covariates: Sequence[str], after: str | None = None) -> str:
    """That levels drift, what that looks like and, unless something else comes ``after``, what to do.

    Nothing without covariates.
    """
    return f"{what_drift_is(covariates)} {after or WHAT_TO_DO}" if covariates else ""


def what_drift_is(covariates: Sequence[str]) -> str:
    them = agreed(len(covariates), "it", "them")
    return (
        f"Levels of groups drift along {listing(covariates)}: rows of a group that are near each other in "
        f"{them} are more alike than rows far apart. The mean of a group, which is subtracted, takes less of "
        "a drift away at the ends of its rows than in their middle, so graphs seem to move along "
        f"{them} though none does."
    )


def drifting_covariates(
    X: NDArray[np.floating], Z: Frame, labels: NDArray[np.intp], rows: NDArray[np.intp] | None = None
) -> list[str]:
    """Numbers (and ordered levels) in whose order nodes drift within groups; means linear in z do not count.

    ``labels`` are the groups of the rows; ``rows`` their order in the table, where that is not theirs.

    >>> import pandas as pd
    >>> from graphfield.data.frames import as_frame
    >>> rng, labels = np.random.default_rng(0), np.repeat(np.arange(100), 8)
    >>> Z = as_frame(pd.DataFrame({"year": np.tile(np.arange(8), 100)}), "Z")
    >>> noise, levels = rng.normal(size=(100, 8, 3)), rng.normal(size=(100, 1, 3))
    >>> drift = (levels + noise.cumsum(axis=1)).reshape(-1, 3)
    >>> drifting_covariates((levels + noise).reshape(-1, 3), Z, labels), drifting_covariates(drift, Z, labels)
    ([], ['year'])
    """
    if not X.shape[1] or len(Z.values) == 0:
        return []
    chosen = _looked_at(labels)
    order = chosen if rows is None else rows[chosen]
    X, Z, labels = X[chosen], Z.take(chosen), np.unique(labels[chosen], return_inverse=True)[1]
    nodes = np.linspace(0, X.shape[1] - 1, min(X.shape[1], _NODES)).round().astype(np.intp)
    encoder = CovariateEncoder(standardize=True, unknown="average", says_average=False)
    encoder.fit(Z, allow_empty=True)
    encoded = encoder.transform(Z)
    known = features(encoder, encoded)
    found = []
    for name, place in _places(encoder, encoded.numeric, encoded.codes):
        if _tells_order(place, labels, order):
            left = _beside(X[:, nodes].astype(np.float64), known, place, labels)
            if _are_alike(left, place, labels):
                found.append(name)
    return found


def _looked_at(labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows of groups, evenly chosen, as many as are to be looked at."""
    own, codes = np.unique(labels, return_inverse=True)
    most = max(_FEWEST_GROUPS, len(own) * _ROWS // max(1, len(labels)))
    kept = np.linspace(0, len(own) - 1, min(len(own), most)).round().astype(np.intp)
    return np.flatnonzero(np.isin(codes, kept))


def _places(
    encoder: CovariateEncoder, numbers: NDArray[np.float64], codes: NDArray[np.int64]
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    for column, values in zip(encoder.numeric, numbers.T, strict=True):
        yield column.name, values
    for level, own in zip(encoder.categorical, codes.T, strict=True):
        if level.ordered:
            yield level.name, own.astype(np.float64)


def _tells_order(place: NDArray[np.float64], labels: NDArray[np.intp], rows: NDArray[np.intp]) -> bool:
    """Whether a covariate is a clock within groups: nothing else says at which end of them a row is."""
    order = np.lexsort((place, labels))
    same = labels[order][1:] == labels[order][:-1]
    steps = np.diff(place[order])
    if not same.any() or (steps[same] > 0).mean() < _STEPS:
        return False
    both = same[1:] & same[:-1]
    apart, whole = np.abs(np.diff(steps))[both].sum(), (steps[1:] + steps[:-1])[both].sum()
    listed = np.lexsort((rows, labels))
    up = (np.diff(place[listed]) > 0)[labels[listed][1:] == labels[listed][:-1]].mean()
    return bool(both.any()) and bool(apart <= _EVEN_STEPS * whole or max(up, 1 - up) >= _LISTED)


def _beside(
    X: NDArray[np.float64], known: NDArray[np.float64], place: NDArray[np.float64], labels: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Nodes less their groups' means and what is a function of the covariates, within groups in one scale.

    A mean at each value of a covariate of few values, else a curve; slopes that differ by other covariates.
    """
    values, codes = np.unique(place, return_inverse=True)
    if len(values) <= _FEW_VALUES:
        shape = np.eye(len(values))[codes]
    else:
        scaled = (place - place.mean()) / (place.std() or 1.0)
        shape = scaled[:, None] ** np.arange(6)
    given = np.hstack([known, shape, known[:, 1:] * place[:, None]])
    table = np.hstack([given, X])
    table = table - group_means(table, labels)[labels]  # of both, so that slopes are those within groups
    inner, own = table[:, : given.shape[1]], table[:, given.shape[1] :]
    if given.shape[1] * 5 <= len(X):
        own = own - inner @ np.linalg.lstsq(inner, own, rcond=None)[0]
    size = own.std(axis=0)
    own, size = own[:, size > 0], size[size > 0]
    return np.clip(own / size, -_FARTHEST, _FARTHEST)


def _are_alike(values: NDArray[np.float64], place: NDArray[np.float64], labels: NDArray[np.intp]) -> bool:
    """Whether neighbours in the order of a covariate are more alike than rows that are farther apart.

    Of four rows in this order, ``ab + cd - ac - bd`` is ``(a - d)(b - c)``: levels of the group cancel, and
    noise that is independent from row to row has mean zero in it, whatever its size at each place.
    """
    order = np.lexsort((place, labels))
    values, place, labels = values[order], place[order], labels[order]
    sums, times = np.zeros(int(labels[-1]) + 1), np.zeros(int(labels[-1]) + 1)
    longest = int(np.bincount(labels).max())
    if not values.shape[1]:
        return False
    for lag in np.unique(np.linspace(2, max(2, longest - 2), _MOST_LAGS).round().astype(int)):
        a = np.flatnonzero(labels[: -lag - 1] == labels[lag + 1 :])
        a = a[place[a + 1] < place[a + lag]]
        product = (values[a] - values[a + lag + 1]) * (values[a + 1] - values[a + lag])
        sums += np.bincount(labels[a], product.mean(axis=1), minlength=len(sums))
        times += np.bincount(labels[a], minlength=len(sums))
    seen = times > 0
    if seen.sum() < _FEWEST_GROUPS:
        return False
    gains = sums[seen] / times[seen].mean()
    n_errors = float(student.ppf(_CONFIDENCE, int(seen.sum()) - 1))
    return bool(is_clear(*mean_and_error(gains), n_errors, _LEAST))
