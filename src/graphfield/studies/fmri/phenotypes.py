"""The table with one row per subject: found columns, missing values, and whose scan belongs to which row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from graphfield.data.frames import Frame
from graphfield.data.missing import bad_entries
from graphfield.data.tables import read_table
from graphfield.exceptions import DataError, listing, suggestion
from graphfield.messages import Row

# Numbers that phenotype files write for "not known".
_CODES = (-9999, -999)


def read_phenotypes(
    table: Any, id_column: str | None, columns: Sequence[str]
) -> tuple[pd.DataFrame, list[str] | None]:
    """The wanted columns, and the subjects of the rows (None without a column of them)."""
    frame = read_table(table) if isinstance(table, (str, Path)) else pd.DataFrame(table)
    frame = frame.reset_index(drop=True).rename(columns=str)
    names = list(frame.columns)
    for column in [*columns, *([id_column] if id_column is not None else [])]:
        if column not in names:
            raise DataError(
                f"The phenotype table has no column {column!r}.{suggestion(column, names)} "
                f"It has {listing(names)}."
            ).about(column=column)
    twice = [name for name in dict.fromkeys(columns) if list(columns).count(name) > 1]
    if twice or id_column in columns:
        what = listing(twice) if twice else f"{id_column!r}, the column of subjects,"
        raise DataError(f"{what} is asked for twice. The score and each covariate are named once.").about(
            argument="covariates"
        )
    if id_column is None:
        return frame[list(columns)], None
    if frame[id_column].isna().any():
        row = int(np.argmax(frame[id_column].isna().to_numpy()))
        raise DataError(
            "Column {column!r} has no subject in {row} of the phenotype table.",
            column=id_column,
            row=Row(row),
        )
    ids = [_text(value) for value in frame[id_column]]
    repeated = [name for name in dict.fromkeys(ids) if ids.count(name) > 1]
    if repeated:
        raise DataError(
            f"The phenotype table must have one row per subject, but {listing(repeated, most=5)} "
            "is there more than once. Keep one visit of each."
        ).about(argument="id_column")
    return frame[list(columns)], ids


def match_subjects(scans: Sequence[str], rows: Sequence[str]) -> tuple[dict[str, int], list[str], list[str]]:
    """Scan to row of the table; scans without a row; subjects of rows without a scan.

    Names are compared as text. Where that leaves some out, ``sub-`` in front, zeros in front and ``.0``
    behind are ignored, as long as this confuses no two subjects.
    """
    where = {name: row for row, name in enumerate(rows)}
    if not set(scans) <= set(where):
        plain_rows, plain_scans = [plain(name) for name in rows], [plain(name) for name in scans]
        if len(set(plain_rows)) == len(plain_rows) and len(set(plain_scans)) == len(plain_scans):
            by_plain = {name: row for row, name in enumerate(plain_rows)}
            where = {scan: by_plain[plain(scan)] for scan in scans if plain(scan) in by_plain}
    found = {scan: where[scan] for scan in scans if scan in where}
    taken = set(found.values())
    alone = [scan for scan in scans if scan not in found]
    return found, alone, [name for row, name in enumerate(rows) if row not in taken]


def plain(name: str) -> str:
    """
    >>> plain("sub-0050952"), plain("50952.0")
    ('50952', '50952')
    """
    text = re.sub(r"^sub-", "", name.strip())
    text = re.sub(r"^(\d+)\.0$", r"\1", text)
    return text.lstrip("0") or "0" if text.isdigit() else text


def unmatched(alone: Sequence[str], absent: Sequence[str], n_found: int, rows: Sequence[str]) -> str:
    """Who has no counterpart, in words; advice where no name matches at all."""
    parts = []
    if alone:
        verb = "subject has" if len(alone) == 1 else "subjects have"
        parts.append(
            f"{len(alone)} {verb} a scan but no row in the phenotype table: {listing(alone, most=5)}"
        )
    if absent:
        verb = "row has" if len(absent) == 1 else "rows have"
        parts.append(f"{len(absent)} {verb} no scan: {listing(absent, most=5)}")
    hint = ""
    if alone and not n_found:
        inside = next(((a, r) for a in alone for r in rows if len(plain(r)) > 2 and plain(r) in a), None)
        hint = " No name matches."
        if inside is not None:
            form = inside[0].replace(inside[1] if inside[1] in inside[0] else plain(inside[1]), "{id}")
            hint += f" Perhaps the files have the subject inside their names: try pattern='{form}.*'."
    return "; ".join(parts) + "." + hint


def incomplete(table: pd.DataFrame) -> tuple[pd.Series, str]:
    """Which rows lack a value (or have -9999 or -999, which stand for that), and the counts by column."""
    bad = bad_entries(Frame(table, named=True))
    coded = []
    for name in table.columns:
        if pd.api.types.is_numeric_dtype(table[name]) and not pd.api.types.is_bool_dtype(table[name]):
            codes = table[name].isin(_CODES)
            if codes.any():
                coded.append(name)
                bad[name] = bad[name] | codes
    counts = [f"{name!r} in {int(n)}" for name, n in bad.sum().items() if n]
    text = ", ".join(counts)
    if coded:
        text += f" (-9999 or -999 in {listing(coded)} is taken for not known)"
    return bad.any(axis=1), text


def _text(value: Any) -> str:
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if whole else str(value).strip()
