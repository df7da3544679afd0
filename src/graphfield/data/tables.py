"""Files to pandas frames: text in many spellings, Parquet, Feather, Excel and NPZ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from graphfield.data.column_files import check_kind, read_columns
from graphfield.data.npz_tables import read_npz
from graphfield.data.reading import Reading, ReadOptions
from graphfield.data.room import check_room
from graphfield.data.row_files import is_read_by_rows, open_files
from graphfield.data.sources import TEXT_KINDS, Source, as_source, find_kind
from graphfield.data.text_tables import line_of_row, read_text
from graphfield.exceptions import DataError, GraphfieldError, listing
from graphfield.messages import Argument, Message

_BY_ROWS = Message(
    "Fit a model, which takes it by rows (gf.open_table), or write fewer rows or columns to another table",
    code="fit-by-rows",
)
_FOR_TEXT = ("sep", "decimal", "thousands", "encoding")


@dataclass(frozen=True)
class TableFile:
    """A table that was read from a file, and how."""

    frame: pd.DataFrame
    reading: Reading


def read_table(
    path: str | Path,
    *,
    sep: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> pd.DataFrame:
    """Read a table; its kind follows the file's ending.

    Text (``.csv``, ``.tsv``, ``.txt``, or packed: ``.csv.gz``, ``.bz2``, ``.xz``, ``.zip``) may have commas,
    semicolons, tabs, bars or spaces between cells and decimal commas, and be UTF-8, UTF-16 or Windows-1252
    (latin-1): this is found out. What can be read in two ways is asked about, and the options answer.

    An NPZ file is read column-wise: a 2-D array ``A`` gives the columns named in ``A_names`` (or
    ``a1, a2, ...``), a 1-D array gives one column. Arrays of another length than the first 2-D one,
    or with more dimensions, and those called ``truth_...`` (the known answer in the output of
    ``graphfield simulate``) are no columns.

    Parameters
    ----------
    path : str or Path
        A text table, or a ``.parquet``, ``.feather``, ``.xlsx`` or ``.npz`` file; or what
        :func:`~graphfield.open_table` takes, such as a folder of Parquet files, if it fits in memory.
    sep : str, optional
        The mark between cells of text: ``","``, ``";"``, ``"\\t"``, ``"|"`` or ``" "``.
    decimal : {".", ","}, optional
        The decimal mark of text.
    thousands : {".", ",", " ", "'"}, optional
        A mark between groups of three digits. Such marks are never guessed.
    encoding : str, optional
        The encoding of text, by a name that Python knows.
    sheet : str, optional
        The sheet of an Excel file that has several.
    """
    return read_file(path, ReadOptions(sep, decimal, thousands, encoding, sheet)).frame


def read_file(table: str | Path | Source, options: ReadOptions) -> TableFile:
    """As :func:`read_table`, with how it was read."""
    options = options.checked()
    name = table.name if isinstance(table, Source) else str(table)
    try:
        if not isinstance(table, Source) and is_read_by_rows(Path(table)):
            return _read_by_rows(Path(table), options)
        return _read_source(as_source(table), options)
    except DataError as error:
        error.about(file=name)
        raise
    except OSError as error:
        if isinstance(error, GraphfieldError):
            raise
        reason = error.strerror or error
        raise DataError(f"{name!r} cannot be read: {reason}.").about(file=name) from error


def _read_source(source: Source, options: ReadOptions) -> TableFile:
    kind, packed = find_kind(source)
    check_kind(kind)
    options.refuse(kind, ("sheet",) if kind in TEXT_KINDS else _FOR_TEXT)
    if kind in TEXT_KINDS:
        frame, reading = read_text(source, kind, packed, options)
    elif kind == "npz":
        options.refuse(kind, ("sheet",))
        frame, reading = read_npz(source), Reading("npz")
    else:
        options.refuse(kind, () if kind == "xlsx" else ("sheet",))
        frame, reading = read_columns(source, kind, options.sheet)
    if kind not in TEXT_KINDS:  # text has its names without blanks at their ends already
        frame = frame.rename(columns=lambda name: name.strip() if isinstance(name, str) else name)
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        rows, columns = frame.shape
        raise DataError(
            "{file!r} holds no data: {rows} rows and {columns} columns.",
            file=source.name,
            rows=rows,
            columns=columns,
        )
    return TableFile(frame, reading)


def _read_by_rows(path: Path, options: ReadOptions) -> TableFile:
    """All rows at once of what may be larger than memory, where it is not."""
    files = open_files(path)
    options.refuse("no text", (*_FOR_TEXT, "sheet"))
    files.check_columns(files.names)
    n, p = files.n_rows, len(files.names)
    check_room(8 * n * p, f"{str(path)!r} ({n:,} rows of {p:,} columns) as a whole", _BY_ROWS)
    return TableFile(pd.concat(files.blocks(files.names), ignore_index=True), Reading("parquet"))


def find_line(
    table: str | Path | Source, row: int, options: ReadOptions, reading: Reading | None = None
) -> int | None:
    """The line of a text table on which a row, counted from 0, begins; None where it is no text.

    How it was read need not be found out again where that is known.
    """
    try:
        source = as_source(table)
        kind, packed = find_kind(source)
        if kind not in TEXT_KINDS:
            return None
        known = reading or read_text(source, kind, packed, options.checked())[1]
        return line_of_row(source, packed, known, row)
    except (DataError, OSError):
        return None


def read_pairs(path: str | Path, first: str, second: str) -> dict[str, str]:
    """The first two columns of a table, what they hold being called so: each ``first`` has one ``second``."""
    table = read_table(path)
    if table.shape[1] < 2:
        raise DataError(
            f"{str(path)!r} must have two columns, {first} and {second}, got {table.shape[1]}."
        ).about(file=str(path))
    keys, values = table.iloc[:, 0], table.iloc[:, 1]
    if keys.isna().any() or values.isna().any():
        raise DataError(
            f"{str(path)!r} has empty cells in its first two columns, {first} and {second}."
        ).about(file=str(path))
    names = [str(name) for name in keys]
    again = sorted({name for name in names if names.count(name) > 1})
    if again:
        raise DataError(f"{str(path)!r} must name each {first} once, but has {listing(again)} again.").about(
            file=str(path)
        )
    return dict(zip(names, [str(value) for value in values], strict=True))


def check_described(
    descriptions: Mapping[str, str],
    names: Sequence[str],
    option: Argument,
    path: str | Path,
    first: str,
    second: str,
) -> None:
    """Raise unless the table of ``option``, from :func:`read_pairs`, has a ``second`` for all these names.

    It may well be another table, so its columns are in the message.
    """
    lacking = [name for name in names if name not in descriptions]
    if not lacking:
        return
    columns = listing(read_table(path).columns)
    raise DataError(
        "{option}: {path!r} must have the columns {first} and {second} with a row for every {first}, but it "
        "lacks {lacking}. Its columns are {columns}, and it names {named}.",
        option=option,
        path=str(path),
        first=first,
        second=second,
        lacking=listing(lacking, most=5),
        columns=columns,
        named=listing(descriptions, most=5),
    )
