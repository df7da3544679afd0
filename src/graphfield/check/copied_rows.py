"""Rows that are copies of others."""

from __future__ import annotations

from collections.abc import Iterator

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


def copied_rows(
    nodes: pd.DataFrame, Z: Frame, bad_x: pd.DataFrame, moments: list[pd.Series], *, grouped: bool
) -> Iterator[Finding]:
    """Rows that are equal in all nodes and covariates, and were not taken at different ``moments``."""
    if nodes.shape[1] < 2:
        return
    measured = np.asarray(~bad_x[list(nodes.columns)].to_numpy().all(axis=1))  # rows of nothing are no copies
    beside = [*(Z.values[name] for name in Z.names), *moments]
    columns = [*(nodes[name] for name in nodes.columns), *beside]
    key = sum((_hashed(column, j) for j, column in enumerate(columns)), np.zeros(len(nodes), dtype=np.uint64))
    copies = int(pd.Series(key[measured]).duplicated().sum())
    if copies <= COPIED_ROWS * len(nodes) or copies <= _copies_by_chance(nodes):
        return
    if _answers_alike(key, nodes, measured):
        return
    advice = Message(
        "Leave copies out; where they are repeated measurements, name the subject as the group ({group}).",
        group=Argument("group"),
    )
    yield Finding(
        "duplicate-rows",
        (),
        f"{count(copies, 'row')} of {len(nodes):,} {'is a copy' if copies == 1 else 'are copies'} of "
        "an earlier row.",
        "Leave copies out: a row counts once." if grouped else advice,
    )


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


def _hashed(column: pd.Series, place: int) -> NDArray[np.uint64]:
    """A number for every value, the same for equal values; other numbers in another place."""
    codes = pd.factorize(column)[0].astype(np.int64)
    return np.asarray(pd.util.hash_array(codes + place * (1 << 32)))


def _copies_by_chance(nodes: pd.DataFrame) -> float:
    """Pairs of equal rows if nodes were independent: many where there are few nodes with few values."""
    same = [float(np.square(column.value_counts(normalize=True)).sum()) for _, column in nodes.items()]
    return float(len(nodes) ** 2 / 2 * np.prod(same))
