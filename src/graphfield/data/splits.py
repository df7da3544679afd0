"""Which rows are held out while training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit

from graphfield.data.containers import plain_array
from graphfield.data.frames import check_same_order
from graphfield.exceptions import DataError, ParameterError, agreed, count
from graphfield.messages import Argument, Message, Row

# Rows with values that the others lack, of which a held-out part has no more.
_MOST_ELSEWHERE = 0.1
_GROUPS = Message("groups", code="groups")


def labelled_rows(groups: Any) -> NDArray[np.bool_]:
    """Which rows have the label of a group."""
    return np.asarray(~pd.isna(_plain_labels(groups)[0]))


def _plain_labels(groups: Any) -> tuple[NDArray, pd.Index | None]:
    """Labels; of a category their codes, nan where there is none, and its levels, which are few."""
    if isinstance(groups, pd.Series) and isinstance(groups.dtype, pd.CategoricalDtype):
        codes = groups.cat.codes.to_numpy().astype(np.float64)
        return np.where(codes < 0, np.nan, codes), groups.cat.categories
    return plain_array(groups, "groups").astype(object), None


def group_labels(groups: Any, X: Any, rows: NDArray[np.intp] | None = None) -> NDArray | None:
    """Group labels as integer codes, one per row of X, or per row of those at these positions."""
    if groups is None:
        return None
    n_samples = len(X)
    if isinstance(groups, pd.Series) and isinstance(X, pd.DataFrame):
        check_same_order(X.index, groups.index, "X and groups")
    labels, levels = _plain_labels(groups)
    if labels.shape != (n_samples,):
        raise DataError(
            f"groups must hold one label per row of X ({n_samples}), got shape {labels.shape}."
        ).about(argument="groups")
    kept = np.arange(n_samples) if rows is None else rows
    labels = labels[kept]
    missing = pd.isna(labels)
    if missing.any():
        raise DataError(
            "{groups} has {labels} (first at {row}). Use {drop} to leave {these} out, or give each a label "
            "of its own.",
            groups=_GROUPS,
            labels=count(int(missing.sum()), "missing label"),
            row=Row(int(kept[np.argmax(missing)])),
            drop=Argument("missing", "drop"),
            these=agreed(int(missing.sum()), "this row", "these rows"),
        )
    if levels is not None:
        labels = np.unique(levels.astype(str), return_inverse=True)[1][labels.astype(np.intp)]
    codes = np.unique(labels if levels is not None else labels.astype(str), return_inverse=True)[1]
    if codes.max() == 0:
        raise DataError(
            "{groups} has one label only, so no group can be held out. Give each subject its own label, "
            "or {without}.",
            groups=_GROUPS,
            without=Message("leave groups out", code="no-groups"),
        )
    return codes


def hold_out(
    n_samples: int, fraction: float, groups: NDArray | None, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of training and held-out rows; rows of one group stay on one side.

    Groups are held out until they are this share of all groups and of all rows, at most twice as many rows;
    a group with more rows than that share is left to training where others are not.
    """
    if not 0 <= fraction < 1:
        raise ParameterError.of("validation_fraction", f"must be in [0, 1), got {fraction!r}.")
    if fraction == 0:
        return np.arange(n_samples), np.arange(0)
    if n_samples * (1 - fraction) < 2:
        raise ParameterError(
            f"validation_fraction={fraction} leaves no rows to train on: there are {n_samples} in all."
        ).about(argument="validation_fraction")
    if groups is not None:
        is_out = _held_out_groups(groups, fraction, seed)
        return np.flatnonzero(~is_out), np.flatnonzero(is_out)
    split = ShuffleSplit(n_splits=1, test_size=fraction, random_state=seed % 2**32)
    train, held_out = next(split.split(np.empty((n_samples, 0))))
    return np.sort(train), np.sort(held_out)


def _held_out_groups(groups: NDArray, fraction: float, seed: int) -> NDArray[np.bool_]:
    """Whether each row is of a group that is held out."""
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(sizes))
    taken: list[int] = []
    wanted = fraction * len(codes)
    for group in order[sizes[order] <= wanted][: len(order) - 1]:
        rows = sizes[taken].sum()
        if len(taken) >= fraction * len(sizes) and rows >= wanted:
            break
        if rows + sizes[group] <= 2 * wanted:
            taken.append(int(group))
    return np.isin(codes, taken or order[:1])


def last_in_time(moments: NDArray[np.float64], fraction: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the earlier rows and of the last ``fraction`` of them; rows of one moment stay together.

    >>> last_in_time(np.array([3.0, 1.0, 2.0, 3.0]), 0.25)
    (array([1, 2]), array([0, 3]))
    """
    order = np.sort(moments)
    start = order[len(order) - max(1, round(fraction * len(order)))]
    start = start if start > order[0] else order[order > order[0]][0]
    return np.flatnonzero(moments < start), np.flatnonzero(moments >= start)


def time_blocks(moments: NDArray[np.float64], n_blocks: int) -> NDArray[np.intp]:
    """Labels of stretches of time with about equally many rows; rows of one moment stay together.

    >>> time_blocks(np.array([5.0, 1.0, 2.0, 5.0]), 2)
    array([1, 0, 0, 1])
    """
    rank = np.searchsorted(np.sort(moments), moments, side="left")
    return rank * n_blocks // len(moments)


def is_elsewhere(Z: pd.DataFrame, rows: NDArray[np.intp]) -> bool:
    """Whether many of these rows have a covariate where the others have none: a level, or beyond their range.

    What is predicted there is no test of a model: the last rows of a year have months of their own.

    >>> Z = pd.DataFrame({"month": [1, 2, 1, 2, 3, 3], "site": list("abbaab")})
    >>> is_elsewhere(Z, np.array([4, 5])), is_elsewhere(Z, np.array([2, 3]))
    (True, False)
    """
    others = np.setdiff1d(np.arange(len(Z)), rows)
    for _, column in Z.items():
        own, known = column.iloc[rows], column.iloc[others]
        if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
            new = (own < known.min()) | (own > known.max())
        else:
            new = ~own.astype(str).isin(set(known.astype(str)))
        if new.mean() > _MOST_ELSEWHERE:
            return True
    return False


def folds(
    n_samples: int, groups: NDArray | None, n_folds: int, *, shuffle: bool = False, seed: int = 0
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Positions of training and held-out rows, fold by fold; rows of one group stay together.

    ``shuffle`` assigns rows at random but, for one ``seed``, always the same, so that rows sorted by a
    covariate do not leave a part of its range to one fold; it does not apply to groups.
    """
    return list(_each_fold(n_samples, groups, n_folds, shuffle, seed))


def _each_fold(
    n_samples: int, groups: NDArray | None, n_folds: int, shuffle: bool, seed: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    units, what = (n_samples, "rows") if groups is None else (len(np.unique(groups)), "groups")
    if n_folds > units:
        raise ParameterError(
            "{argument} is more than there are {what} ({units}). Use fewer folds.",
            argument=Argument("n_folds", n_folds),
            what=what,
            units=units,
        )
    mixed = KFold(n_folds, shuffle=shuffle, random_state=seed if shuffle else None)
    splitter = mixed if groups is None else GroupKFold(n_folds)
    yield from splitter.split(np.empty((n_samples, 0)), groups=groups)


def fold_labels(
    n_samples: int, n_folds: int, groups: NDArray | None, seed: int = 0, *, shuffle: bool = True
) -> NDArray[np.intp]:
    """The fold, 0 to n_folds - 1, that holds each row out; see :func:`folds`."""
    labels = np.empty(n_samples, dtype=np.intp)
    for fold, (_, held_out) in enumerate(_each_fold(n_samples, groups, n_folds, shuffle, seed)):
        labels[held_out] = fold
    return labels


def cross_parts(rows: NDArray[np.intp], groups: NDArray | None, n_parts: int = 3) -> list[NDArray[np.intp]]:
    """``rows`` (positions, perhaps repeated) in parts, copies of one row and rows of one group together.

    Groups are given for all positions. With fewer groups than parts, rows of one group are parted too.
    """
    distinct = np.unique(rows)
    part = cross_labels(len(distinct), None if groups is None else groups[distinct], n_parts)
    of_row = part[np.searchsorted(distinct, rows)]
    return [rows[of_row == k] for k in range(int(part.max()) + 1)]


def cross_labels(n_samples: int, groups: NDArray | None, n_parts: int = 3) -> NDArray[np.intp]:
    """The part, 0 to n_parts - 1, that each row belongs to in :func:`cross_parts`."""
    if groups is not None and len(np.unique(groups)) < n_parts:
        groups = None
    return fold_labels(n_samples, min(n_parts, n_samples), groups)
