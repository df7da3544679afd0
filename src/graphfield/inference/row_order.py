"""Rows that are like those before them: what may be said of them, and what is said first."""

from __future__ import annotations

from typing import Any

from graphfield.check.table import check_table
from graphfield.exceptions import count
from graphfield.inference.question import MIN_STRETCHES, Question
from graphfield.messages import Message

AS_IF = "as if rows were independent"
_CHANGES = "Of a series such as prices, take changes from row to row."
IN_BLOCKS = (
    "Rows are not independent: they are like those before them, as in a series over time, or in a table "
    "sorted by what is not used. Blocks of them are "
    f"counted below, which may be alike as well. Name the column with the time. {_CHANGES}"
)
# What follows on "Rows are not independent".
_ONLY_IF = "P-values and counts below hold only if they were"
_NO_PROMISE = "They are worth about {rows}: no errors can be promised for p-values and counts"
_IN_ORDER = "They were tested as a series, in the order in which they come"


def are_in_order(X: Any, Z: Any, groups: Any, time: Any, in_order: bool | None) -> bool:
    """Whether rows follow each other though nobody says when: as the caller knows, or by the data check."""
    if groups is not None or time is not None:
        return False
    return check_table(X, Z).is_series if in_order is None else in_order


def rows_one_by_one(question: Question) -> str:
    """What to say first of tests that take rows in their order for independent ones."""
    n = question.node_stretches()
    return _caveat(_ONLY_IF if n >= MIN_STRETCHES else _NO_PROMISE.format(rows=_worth(n)))


def rows_as_series() -> str:
    return _caveat(_IN_ORDER)


def few_stretches(question: Question) -> str:
    """What to say first of tests of rows whose time is known; nothing where they hold enough stretches."""
    n = question.node_stretches()
    if n >= MIN_STRETCHES:
        return ""
    return (
        f"Nodes change so slowly that the series is worth about {_worth(n)}, and at "
        f"least {MIN_STRETCHES} are needed: no errors can be promised for p-values and counts. {_CHANGES}"
    )


def _worth(n: float) -> str:
    return count(max(round(n), 1), "independent row")


def _caveat(what: str) -> Message:
    return Message(
        "Rows are not independent: they are like those before them, as in a series over time, or in a table "
        "sorted by what is not used. {what}. Name the column with the time ({time}), or make that by which "
        "they were sorted a covariate or the group. {changes}",
        what=what,
        time=Message("time", code="time-column"),
        changes=_CHANGES,
    )
