"""Rows that are copies of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.check.codes import few_different
from graphfield.check.findings import Finding
from graphfield.data.frames import Frame
from graphfield.exceptions import count
from graphfield.messages import Argument, Message

# A share of rows above this that are copies of an earlier one is no coincidence.
COPIED_ROWS = 0.01
# Where rows are the same thing, the odds that all other nodes are equal are so many times as large for rows
# that are equal in one node as for rows next to each other in it; fewer repeats than this may be by chance.
_LARGER_ODDS, _FEWEST_REPEATS = 5, 10
# Share of different rows that have a like but for one node, without which odds cannot be compared.
_DIFFER_IN_ONE = 0.1
# How far apart in order rows are that are next to each other, as a share of all rows; distances looked at.
_NEXT_ROWS, _LAGS = 0.05, 20


def copied_rows(
    nodes: pd.DataFrame, Z: Frame, bad_x: pd.DataFrame, moments: list[pd.Series], *, grouped: bool
) -> Iterator[Finding]:
    """Rows that are equal in all nodes and covariates, and were not taken at different ``moments``."""
    if nodes.shape[1] < 2:
        return
    measured = np.asarray(~bad_x[list(nodes.columns)].to_numpy().all(axis=1))  # rows of nothing are no copies
    beside = [*(Z.values[name] for name in Z.names), *moments]
    key = _row_keys([*(nodes[name] for name in nodes.columns), *beside])
    copies = int(pd.Series(key[measured]).duplicated().sum())
    if copies <= COPIED_ROWS * len(nodes) or copies <= _copies_by_chance(nodes):
        return
    if _answers_alike(key, nodes, measured):
        return
    advice = Message(
        "Leave copies out (in pandas: table.drop_duplicates()); where they are repeated measurements, name "
        "the subject as the group ({group}).",
        group=Argument("group"),
    )
    yield Finding(
        "duplicate-rows",
        (),
        f"{count(copies, 'row')} of {len(nodes):,} {'is a copy' if copies == 1 else 'are copies'} of "
        f"an earlier row{_copies_elsewhere(nodes, measured, copies)}.",
        "Leave copies out: a row counts once." if grouped else advice,
    )


def _copies_elsewhere(nodes: pd.DataFrame, measured: NDArray[np.bool_], copies: int) -> str:
    """Rows that repeat the nodes of another one beside these, with other covariates or at another time."""
    key = _row_keys(nodes[name] for name in nodes.columns)
    more = int(pd.Series(key[measured]).duplicated().sum()) - copies
    if more <= max(_FEWEST_REPEATS, COPIED_ROWS * len(nodes)):
        return ""
    return f", and {more:,} more repeat the nodes of one with other covariates or at another time"


def repeated_nodes(nodes: pd.DataFrame, bad_x: pd.DataFrame) -> Iterator[Finding]:
    """Rows that are equal in all nodes, whatever the covariates, more often than by chance.

    Rows at the lowest value of a node with many are left aside: below a limit all are alike.
    """
    aside = bad_x[list(nodes.columns)].to_numpy().any(axis=1)
    for _, column in nodes.items():
        if not few_different(column.to_numpy()):
            aside |= (column == column.min()).to_numpy()
    nodes = nodes.loc[np.flatnonzero(~aside)]
    if nodes.shape[1] < 2 or len(nodes) < 2:
        return
    hashed = {name: _hashed(nodes[name], j) for j, name in enumerate(nodes.columns)}
    key = sum(hashed.values(), np.zeros(len(nodes), dtype=np.uint64))
    again = pd.Series(key).duplicated().to_numpy()
    finest = max(nodes.columns, key=lambda name: nodes[name].nunique())
    values, others = nodes[finest].to_numpy(), key - hashed[finest]
    if again.sum() <= max(_FEWEST_REPEATS, COPIED_ROWS * len(again)) or few_different(values):
        return
    if _repeat_by_chance(values, others, again):
        return
    yield Finding(
        "repeated-nodes",
        (),
        f"{again.sum():,} of {len(bad_x):,} rows repeat the nodes of an earlier row exactly, more than by "
        "chance: one thing measured again?",
        Message(
            "If so, name what it is as the group ({group}): else standard errors and p-values are too small.",
            group=Argument("group"),
        ),
    )


def _repeat_by_chance(
    values: NDArray[np.float64], others: NDArray[np.uint64], again: NDArray[np.bool_]
) -> bool:
    """Whether rows with equal ``values`` are equal in all ``others`` about as often as rows with close ones.

    This cannot be told where the others determine the values; but values that hardly come up twice in
    different rows are equal by no chance.
    """
    different = pd.Series(others[~again])
    if different.duplicated(keep=False).mean() < _DIFFER_IN_ONE:
        return len(np.unique(values)) < len(different) / 2
    order = np.lexsort((np.random.default_rng(0).random(len(values)), values))
    values, others = values[order], others[order]
    pairs = np.ones((2, 2))  # of close or equal values, by whether the others are equal; one more of each
    for lag in np.unique(np.geomspace(1, max(1, _NEXT_ROWS * len(values)), _LAGS).astype(np.intp)):
        equal, same = values[lag:] == values[:-lag], others[lag:] == others[:-lag]
        np.add.at(pairs, (equal.astype(np.intp), same.astype(np.intp)), 1)
    return bool(pairs[1, 1] * pairs[0, 0] <= _LARGER_ODDS * pairs[1, 0] * pairs[0, 1])


def _answers_alike(key: NDArray[np.uint64], nodes: pd.DataFrame, measured: NDArray[np.bool_]) -> bool:
    """Whether equal rows are people who answer alike: then more are like another one but for one node.

    Scores that follow from the answers are no more than these.
    """
    alike = pd.Series(key[measured])
    repeated = alike.duplicated(keep=False)
    places = {name: j for j, name in enumerate(nodes.columns)}
    scores = _scores(nodes, places)
    key = key - sum((_hashed(nodes[name], places[name]) for name in scores), np.zeros_like(key))
    nearly = 0
    for name in nodes.columns.difference(scores):
        others = pd.Series((key - _hashed(nodes[name], places[name]))[measured])
        nearly += int((others.duplicated(keep=False) & ~repeated).sum())
    return nearly >= alike[repeated].nunique()


def _scores(nodes: pd.DataFrame, places: dict[str, int]) -> list[str]:
    """Nodes with many values that are the same wherever all answers, nodes with few, are."""
    answers = [name for name in nodes.columns if few_different(nodes[name].to_numpy())]
    pattern = pd.Series(
        sum((_hashed(nodes[name], places[name]) for name in answers), np.zeros(len(nodes), np.uint64))
    )
    return [
        name
        for name in nodes.columns.difference(answers)
        if nodes[name].groupby(pattern.to_numpy()).nunique().max() == 1
    ]


def _row_keys(columns: Iterable[pd.Series]) -> NDArray[np.uint64]:
    """A number for every row, the same where all columns are equal."""
    return np.sum([_hashed(column, j) for j, column in enumerate(columns)], axis=0, dtype=np.uint64)


def _hashed(column: pd.Series, place: int) -> NDArray[np.uint64]:
    """A number for every value, the same for equal values; other numbers in another place."""
    codes = pd.factorize(column)[0].astype(np.int64)
    return np.asarray(pd.util.hash_array(codes + place * (1 << 32)))


def _copies_by_chance(nodes: pd.DataFrame) -> float:
    """Pairs of equal rows if nodes were independent: many where there are few nodes with few values."""
    same = [float(np.square(column.value_counts(normalize=True)).sum()) for _, column in nodes.items()]
    return float(len(nodes) ** 2 / 2 * np.prod(same))
