"""What is missing of nodes and covariates: columns, rows, and rows that lack the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.check.findings import Column, Finding, drop_argument
from graphfield.data.missing import FILLED_IN, advise_policy, leaves_enough
from graphfield.exceptions import count, first_few, listing
from graphfield.messages import Argument, Message, Row

# A column with a larger share of missing values than this is named.
MUCH_MISSING = 0.3
# So many columns are named with their shares.
_LEVELS_NAMED = 6
# Rows that lack the same columns, two or more of them, are a block if they are this share of all rows, and
# if these gaps go together by this share of what they could beyond chance.
_BLOCK_ROWS, _TOGETHER = 0.05, 0.5
# Blocks that are told, and frequent patterns of gaps that are looked at for each.
_BLOCKS, _PATTERNS = 3, 50


def rows_with_gaps(bad_x: pd.DataFrame, bad_z: pd.DataFrame) -> NDArray[np.bool_]:
    """Rows that "drop" leaves out; columns without any value count for nothing, as no fit takes them."""
    bad = np.column_stack([bad_x.to_numpy(), bad_z.to_numpy()])
    return np.asarray(bad[:, ~bad.all(axis=0)].any(axis=1))


def _empty(column: Column, n_rows: int) -> Finding:
    return Finding(
        "empty-column",
        (column.name,),
        f"{column.role.capitalize()} {column.name!r} is empty: it has no value in any of "
        f"{count(n_rows, 'row')}, and fit refuses it.",
        Message("Leave it out ({drop}).", drop=drop_argument([column.name]))
        if column.role == "node"
        else "Leave it out.",
    )


def missing_findings(
    columns: list[Column], bad_x: pd.DataFrame, bad_z: pd.DataFrame, policy: str
) -> list[Finding]:
    """About what is missing of nodes and covariates, before the ``policy`` does something about it."""
    n_rows, gaps = len(bad_x), [column for column in columns if column.missing]
    empty = [column for column in gaps if column.kind == "empty"]
    found = [_empty(column, n_rows) for column in empty]
    used = [column for column in gaps if column not in empty]
    if not used:
        return found
    lost = int(rows_with_gaps(bad_x, bad_z).sum())
    if policy == "error":
        found.append(
            Finding(
                "missing-values",
                tuple(column.name for column in used),
                f"{count(lost, 'row')} of {n_rows:,} {'has' if lost == 1 else 'have'} missing or infinite "
                f"values, in {listing(column.name for column in used)}; fit refuses them.",
                Message(
                    "{advice}; {what_it_does}.",
                    advice=advise_policy(n_rows - lost, n_rows, bad_x.shape[1]),
                    what_it_does=FILLED_IN,
                ),
            )
        )
    advice: str = "If they are, the graph is one of the other rows alone."
    if policy != "drop" and leaves_enough(n_rows - lost, n_rows, bad_x.shape[1]):
        advice = Message("If they are, leave them out ({drop}).", drop=Argument("missing", "drop"))
    elif policy != "drop":
        advice = "If they are, leave them out of the table."
    found += _blocks([column.name for column in used], pd.concat([bad_x, bad_z], axis=1), advice)
    much = [column for column in used if column.missing > MUCH_MISSING * n_rows]
    if much:
        shares = first_few([f"{c.name!r} {c.missing / n_rows:.0%}" for c in much], _LEVELS_NAMED)
        found.append(
            Finding(
                "mostly-missing",
                tuple(column.name for column in much),
                f"Much is missing: {shares} of the rows.",
                Message(
                    "Leave such columns out (nodes with {drop}), or be sure that what is missing is missing "
                    "by chance (the texts NA, None and null in a file count as missing).",
                    drop=Argument("drop"),
                ),
            )
        )
    if policy == "error" and lost > MUCH_MISSING * n_rows:
        most = sorted(used, key=lambda column: -column.missing)[:3]
        found.append(
            Finding(
                "many-rows-lost",
                tuple(column.name for column in used),
                f"Without rows that have missing values, {n_rows - lost:,} of {n_rows:,} rows are left; "
                f"most are missing in {listing(column.name for column in most)}.",
                Message(
                    "Leave out the columns that cost most rows (nodes with {drop}).",
                    drop=Argument("drop"),
                )
                if any(column.role == "covariate" for column in much)  # filled in, it says little of graphs
                else Message(
                    "Leave out the columns that cost most rows (nodes with {drop}), or use {impute}.",
                    drop=Argument("drop"),
                    impute=Argument("missing", "impute"),
                ),
            )
        )
    return found


def _blocks(names: list[str], bad: pd.DataFrame, advice: str) -> Iterator[Finding]:
    """Rows that lack the same columns, those with most gaps first; a row is in one block at most."""
    gaps = bad[names].to_numpy()
    left = np.flatnonzero(gaps.any(axis=1))
    for _ in range(_BLOCKS):
        block = _largest_block(gaps[left], len(gaps))
        if block is None:
            return
        columns, inside = block
        rows, lacking = left[inside], tuple(names[j] for j in columns)
        left = left[~inside]
        in_one_piece = rows[-1] - rows[0] + 1 == len(rows)
        where = "from {first} to {last}" if in_one_piece else "the first at {first}"
        yield Finding(
            "rows-lack-the-same",
            lacking,
            Message(
                "{rows} (" + where + ") lack {columns} together: they may be of another kind (another visit, "
                "another study).",
                rows=count(len(rows), "row"),
                first=Row(int(rows[0])),
                last=Row(int(rows[-1])),
                columns=listing(lacking),
            ),
            advice,
        )


def _largest_block(gaps: NDArray[np.bool_], n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]] | None:
    """Columns and rows of the block with most gaps, of rows that have any among ``n_rows``."""
    often = np.flatnonzero(gaps.sum(axis=0) >= _BLOCK_ROWS * n_rows)
    if len(often) < 2:
        return None
    own = gaps[:, often]
    patterns, times = np.unique(np.packbits(own, axis=1), axis=0, return_counts=True)
    frequent = patterns[np.argsort(-times, kind="stable")[:_PATTERNS]]
    best, most = None, 0
    for pattern in np.unpackbits(frequent, axis=1, count=len(often)).astype(bool):
        inside = np.asarray(own[:, pattern].all(axis=1))
        n_inside, n_gaps = int(inside.sum()), int(inside.sum() * pattern.sum())
        if pattern.sum() < 2 or n_inside < _BLOCK_ROWS * n_rows or n_gaps <= most:
            continue
        shares = own[:, pattern].sum(axis=0) / n_rows
        by_chance = n_rows * shares.prod()
        if n_inside - by_chance >= _TOGETHER * (n_rows * shares.min() - by_chance):
            best, most = (often[pattern], inside), n_gaps
    return best
