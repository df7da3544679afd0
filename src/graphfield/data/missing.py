"""Missing and infinite values: refused, dropped by row, or imputed - and said aloud."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.dates import date_text, is_date, to_days
from graphfield.data.frames import MIN_SAMPLES, ROWS_PER_NODE, Frame, node_values
from graphfield.data.nodes import row_blocks
from graphfield.exceptions import DataError, DataWarning, agreed, check_choice, count, first_few, named
from graphfield.messages import Argument, Message, Row, join_messages

POLICIES = ("error", "drop", "impute")
FILLED_IN = "filled-in values weaken the edges of their columns, and count as if they had been seen"
_MOST_NAMED = 5  # columns in one message


def handle_missing(X: Frame, Z: Frame, policy: str) -> tuple[Frame, Frame, NDArray[np.intp]]:
    """Apply ``policy`` to rows with NaN or infinity; also returns the positions of the rows kept.

    ``drop`` removes rows, ``impute`` puts the column's median (the most frequent level for text, the
    median day for dates) in place. Both warn with counts per column. Imputation pulls edges of the
    imputed columns towards zero; prefer ``drop`` where few rows are affected.
    """
    check_choice("missing", policy, POLICIES)
    rows = np.arange(len(X.values))
    if is_complete(X) and is_complete(Z):
        return X, Z, rows
    bad_x, bad_z = bad_entries(X), bad_entries(Z)
    _check_not_empty(bad_x, bad_z)
    if policy == "error":
        raise gap_refusal(_counts(bad_x, bad_z), int(_complete_rows(bad_x, bad_z).sum()), *bad_x.shape)
    warnings.warn(what_is_done(X, Z, bad_x, bad_z, policy), DataWarning, stacklevel=3)
    if policy == "impute":
        return imputed(X, bad_x), imputed(Z, bad_z), rows
    keep = _complete_rows(bad_x, bad_z)
    return X.take(rows[keep]), Z.take(rows[keep]), rows[keep]


def leaves_enough(n_left: int, n_rows: int, n_nodes: int) -> bool:
    """Whether so many of the rows do for a graph: half of them, or enough for so many nodes.

    >>> leaves_enough(12, 1000, 5), leaves_enough(60, 1000, 5), leaves_enough(40, 60, 22)
    (False, True, True)
    """
    return n_left >= max(MIN_SAMPLES, min(n_rows / 2, ROWS_PER_NODE * n_nodes))


def advise_policy(n_complete: int, n_rows: int, n_nodes: int) -> Message:
    """What to do about missing values; rows are left out only where enough of them stay."""
    impute = Argument("missing", "impute")
    if leaves_enough(n_complete, n_rows, n_nodes):
        drop = Argument("missing", "drop")
        return Message(
            "Use {drop} to leave out these rows or {impute} to fill them in", drop=drop, impute=impute
        )
    return Message(
        "Use {impute} to fill them in, or leave out the columns with most gaps: {complete} complete",
        impute=impute,
        complete=f"{count(n_complete, 'row')} {agreed(n_complete, 'is', 'are')}"
        if n_complete
        else "no row is",
    )


def gap_refusal(counts: str, n_complete: int, n_rows: int, n_nodes: int) -> DataError:
    return DataError(
        "NaN, missing or infinite values: {counts}. {advice}.",
        code="missing-values",
        counts=counts,
        advice=advise_policy(n_complete, n_rows, n_nodes),
    )


def _check_not_empty(bad_x: pd.DataFrame, bad_z: pd.DataFrame) -> None:
    for role, bad in (("Node", bad_x), ("Covariate", bad_z)):
        refuse_empty(role, [str(name) for name in bad.columns if len(bad) and bad[name].all()], len(bad))


def refuse_empty(role: str, empty: Sequence[str], n_rows: int) -> None:
    """No row can be kept and nothing can be filled in where a whole column is missing."""
    if not empty:
        return
    them = agreed(len(empty), "it", "them")
    raise DataError(
        "{names} {are} empty: NaN, missing or infinite in each of {n:,} rows. {advice}.",
        code="empty-column",
        names=named(role, empty),
        are=agreed(len(empty), "is", "are"),
        n=n_rows,
        advice=Message("Leave {them} out", code="leave-out-node" if role == "Node" else "", them=them),
    )


def _complete_rows(bad_x: pd.DataFrame, bad_z: pd.DataFrame) -> NDArray[np.bool_]:
    return np.asarray(~(bad_x.to_numpy().any(axis=1) | bad_z.to_numpy().any(axis=1)))


def what_is_done(
    X: Frame, Z: Frame, bad_x: pd.DataFrame, bad_z: pd.DataFrame, policy: str, *, planned: bool = False
) -> str:
    """What "drop" or "impute" does to these tables, or would do if ``planned``, in words and numbers."""
    if policy == "drop":
        keep = _complete_rows(bad_x, bad_z)
        return describe_dropped(int((~keep).sum()), len(keep), _counts(bad_x, bad_z), planned=planned)
    parts = []
    for frame, bad in ((X, bad_x), (Z, bad_z)):
        for name in frame.names:
            if gaps := int(bad[name].sum()):
                value, how = replacement(frame.values[name], bad[name].to_numpy())
                parts.append(describe_filled(name, gaps, value, how))
    return describe_imputed(int(bad_x.to_numpy().sum() + bad_z.to_numpy().sum()), parts, planned=planned)


def describe_dropped(n_incomplete: int, n_rows: int, counts: str, *, planned: bool = False) -> str:
    what = f"{n_incomplete:,} of {n_rows:,} rows with missing or infinite values"
    return _done("dropped", what, counts, planned)


def dropped_unlabelled(n_rows: int, *, planned: bool = False) -> str:
    """What is said of rows that belong to no group."""
    what = f"{count(n_rows, 'row')} without the label of a group"
    return f"{what} would be dropped." if planned else f"Dropped {what}."


def describe_imputed(n_cells: int, parts: list[str], *, planned: bool = False) -> str:
    where = join_messages(". ", [_first(parts), FILLED_IN.capitalize()])
    return _done("imputed", f"{n_cells:,} missing or infinite values", where, planned)


def describe_filled(name: str, gaps: int, value: object, how: str) -> str:
    return f"{name!r} {gaps:,} by the {how} {_short(value)}"


def _done(verb: str, what: str, where: str, planned: bool) -> str:
    head = f"{what} would be {verb}" if planned else f"{verb.capitalize()} {what}"
    return Message("{head}: {where}.", head=head, where=where)


def _first(parts: list[str]) -> str:
    """The first few, and how many columns more there are."""
    return first_few(parts, _MOST_NAMED, "; ", "column")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else repr(str(value))


def check_complete(X: Frame | None, Z: Frame | None) -> None:
    """At prediction every row is wanted, so nothing can be dropped: raise with the counts."""
    empty = Frame(pd.DataFrame(), named=False)
    x_frame, z_frame = X or empty, Z or empty
    if not (is_complete(x_frame) and is_complete(z_frame)):
        counts = _counts(bad_entries(x_frame), bad_entries(z_frame))
        raise DataError(
            "NaN, missing or infinite values: {counts}. A prediction is made for every row, so drop or "
            "fill these rows first.",
            code="missing-values",
            counts=counts,
        )


def is_complete(frame: Frame) -> bool:
    """Whether :func:`bad_entries` would be False everywhere, found in bounded memory."""
    values = frame.floats
    if values is None:
        return not any(_bad(frame.values[name]).any() for name in frame.names)
    return all(np.isfinite(values[rows]).all() for rows in row_blocks(*values.shape))


def bad_entries(frame: Frame) -> pd.DataFrame:
    """True where a value is missing or infinite."""
    bad = {name: _bad(frame.values[name]) for name in frame.names}
    return pd.DataFrame(bad, index=frame.values.index)


def _bad(column: pd.Series) -> NDArray[np.bool_]:
    missing = column.isna().to_numpy()
    if pd.api.types.is_float_dtype(column):
        return missing | np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return missing
    return missing | np.array([_is_blank(value) for value in column], dtype=bool)


def _is_blank(value: object) -> bool:
    """Empty text, and a number among objects that is infinite or too long for one."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, int):
        return abs(value) > sys.float_info.max
    return isinstance(value, float) and np.isinf(value)


def _counts(bad_x: pd.DataFrame, bad_z: pd.DataFrame) -> str:
    return gap_counts(
        [
            (int(bad[name].sum()), role, str(name), int(np.argmax(bad[name].to_numpy())))
            for role, bad in (("node", bad_x), ("covariate", bad_z))
            for name in bad.columns
            if bad[name].any()
        ]
    )


def gap_counts(found: list[tuple[int, str, str, int]]) -> str:
    """Of columns with gaps: how many, whether a node, its name, the first row with one."""
    return _first(
        [
            Message(
                "{column} has {gaps} (first at {row})", column=f"{role} {name!r}", gaps=gaps, row=Row(first)
            )
            for gaps, role, name, first in sorted(
                found, key=lambda one: -one[0]
            )  # those that cost most first
        ]
    )


def imputed(frame: Frame, bad: pd.DataFrame) -> Frame:
    filled = frame.values.copy()
    for name in frame.names:
        rows = bad[name].to_numpy()
        if not rows.any():
            continue
        value, how = replacement(filled[name], rows)
        if how == "median":
            column = node_values(Frame(filled[[name]], True))[:, 0].astype(np.float64)
            column[rows] = value
            filled[name] = column
        else:
            filled[name] = _filled(filled[name], rows, value)
    return Frame(filled, frame.named, frame.rows)


def _filled(column: pd.Series, rows: NDArray[np.bool_], value: Any) -> pd.Series:
    """A category stays one, with its order; other text may take any value."""
    if isinstance(column.dtype, pd.CategoricalDtype) and value in column.cat.categories:
        return column.where(~rows, value)
    return column.astype(object).where(~rows, value)


def replacement(column: pd.Series, rows: NDArray[np.bool_]) -> tuple[Any, str]:
    """What stands in for the entries ``rows`` of a column, and what that is called."""
    good = column[~rows]
    if is_date(good):
        return date_text(float(np.median(to_days(good)))), "median date"
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return float(np.median(good.to_numpy(dtype=np.float64))), "median"
    return good.mode().iloc[0], "most frequent level"
