"""Text tables to pandas frames: found out how they are written, read to the last bit, and asked about."""

from __future__ import annotations

import csv
import re
import warnings
from contextlib import closing
from dataclasses import replace
from typing import Any

import pandas as pd

from graphfield.data.frames import with_columns
from graphfield.data.reading import Reading, ReadOptions
from graphfield.data.sources import Source
from graphfield.data.text_encoding import find_encoding
from graphfield.data.text_format import SPACE, Layout, find_layout, open_text, read_records
from graphfield.data.text_numbers import Misread, find_evidence, is_number, settle_column
from graphfield.exceptions import DataError, DataWarning, agreed, count, first_few, listing
from graphfield.messages import Argument, join_messages

# From this version on pandas reads every number to the last bit and warns of being told to.
_EXACT_BY_DEFAULT = (3, 1)
_VERSION = tuple(int(part) for part in re.findall(r"\d+", pd.__version__)[:2])
EXACT: dict[str, Any] = {} if _VERSION >= _EXACT_BY_DEFAULT else {"float_precision": "round_trip"}
_CHUNK = 2**20  # letters that are looked through at a time
UNNAMED = "Unnamed: "  # what pandas calls a column without a name, and we as well


def read_text(source: Source, kind: str, packed: str, options: ReadOptions) -> tuple[pd.DataFrame, Reading]:
    """A text table, and how it was read."""
    encoding = find_encoding(source, packed, options.encoding)
    layout = find_layout(source, packed, encoding, options.sep)
    names = _column_names(layout, source)
    reading = Reading(
        kind,
        encoding,
        layout.sep,
        _sampled_decimal(layout, source, options),
        options.thousands,
        skipped=layout.skipped,
    )
    frame, reading = _read_settled(source, packed, reading, names, options)
    _warn_of_short_rows(frame, layout, source, packed, reading)
    frame = _with_own_blanks(frame, source, packed, reading, names)
    frame = _without_unnamed(frame, layout, source)
    return _without_empty_end(frame, reading)


def _column_names(layout: Layout, source: Source) -> list[str]:
    """Names as they are: pandas would rename the second of two equal ones silently."""
    names = [name or f"{UNNAMED}{position}" for position, name in enumerate(layout.names)]
    repeated = (
        sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    )
    if repeated:
        raise DataError(f"{source.name!r} has more than one column called {listing(repeated)}. Rename them.")
    given = [name for name in layout.names if name]
    if given and all(is_number(name, ".") for name in given) and not all(name.isdigit() for name in given):
        raise DataError(
            f"{source.name!r} has no header: line {layout.header.line} holds {listing(given, most=3)}. "
            "Write the names of the columns above them."
        )
    return names


def _sampled_decimal(layout: Layout, source: Source, options: ReadOptions) -> str:
    """The decimal mark by the first rows; what can be two things is asked about."""
    if options.decimal is not None:
        return options.decimal
    if options.thousands in (".", ","):
        return "," if options.thousands == "." else "."
    width = len(layout.names)
    rows = [row for row in layout.rows if len(row.cells) == width]
    found = find_evidence([row.cells[j] for row in rows] for j in range(width))
    if found.certain:
        return "," if found.certain == {","} else "."
    asked = found.ambiguous if layout.sep == ";" else found.ambiguous - {"."}
    for mark in sorted(asked):
        name, row = next(
            (name, row)
            for row in rows
            for name, cell in zip(layout.names, row.cells, strict=True)
            if mark in cell and is_number(cell.strip(), mark)
        )
        cell = row.cells[layout.names.index(name)].strip()
        raise DataError(
            "{file!r}: column {column!r} holds {cell!r} in line {line}, and no number of the table tells "
            "whether {mark!r} is a decimal mark or stands between thousands. Say which: {decimal} or "
            "{thousands}.",
            file=source.name,
            column=name,
            cell=cell,
            line=row.line,
            mark=mark,
            decimal=Argument("decimal", mark),
            thousands=Argument("thousands", mark),
        )
    return "."


def _read_settled(
    source: Source, packed: str, reading: Reading, names: list[str], options: ReadOptions
) -> tuple[pd.DataFrame, Reading]:
    """The frame with its numbers as numbers; the decimal mark is the other one if later rows say so."""
    frame, misread = _settled(_parsed(source, packed, reading, names), reading, options)
    free = options.decimal is None and options.thousands is None
    if misread and all(one.certain for one in misread) and free and not _has_fractions(frame):
        reading = replace(reading, decimal="," if reading.decimal == "." else ".")
        frame, misread = _settled(_parsed(source, packed, reading, names), reading, options)
    if misread:
        raise _ask(misread[0], source, packed, reading)
    return frame, reading


def _with_own_blanks(
    frame: pd.DataFrame, source: Source, packed: str, reading: Reading, names: list[str]
) -> pd.DataFrame:
    """The frame with ' F' as it stands beside 'F' in the file, as other kinds of files have it.

    Blanks after separators are not read, as they mean nothing where a file is written so throughout: before
    some cells of a column of text they belong to the cells, before all to the notation.
    """
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    if reading.sep == SPACE or not texts or not _has_blanks(source, packed, reading):
        return frame
    try:
        raw = _read_rows(source, packed, reading, names, dict.fromkeys(texts, str), blanks=True)
    except DataError:  # blanks before quotation marks: cells that cannot be read with them
        return frame
    if len(raw) != len(frame):  # quotation marks behind blanks are marks of their own then
        return frame
    return with_columns(frame, {name: _with_blanks(frame[name], raw[name]) for name in texts})


def _has_blanks(source: Source, packed: str, reading: Reading) -> bool:
    with closing(open_text(source, packed, str(reading.encoding))) as handle:
        end = "\n"
        for chunk in iter(lambda: handle.read(_CHUNK), ""):
            chunk = end + chunk
            if f"{reading.sep} " in chunk or "\n " in chunk:
                return True
            end = chunk[-1]
    return False


def _with_blanks(column: pd.Series, raw: pd.Series) -> pd.Series:
    known = column.notna()
    begun = raw.str.startswith(" ") & known
    own = begun & (raw.str.strip() == column.astype(object).map(str).str.strip())
    return column if begun[known].all() or not own.any() else column.astype(object).where(~own, raw)


def _has_fractions(frame: pd.DataFrame) -> bool:
    return any(bool((frame[name] % 1 > 0).any()) for name in frame.columns if frame[name].dtype.kind == "f")


def _settled(
    frame: pd.DataFrame, reading: Reading, options: ReadOptions
) -> tuple[pd.DataFrame, list[Misread]]:
    misread = []
    for name in frame.columns:
        column = frame[name]
        if options.is_text(name):
            continue
        if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)):
            new, odd = settle_column(column, reading.decimal or ".", reading.thousands)
            misread += [] if odd is None else [odd]
            if new is not column:
                frame[name] = new
    return frame, misread


def _ask(misread: Misread, source: Source, packed: str, reading: Reading) -> DataError:
    line = line_of_row(source, packed, reading, misread.row)
    written = "decimal commas" if reading.decimal == "," else "decimal points"
    return DataError(
        "{file!r}: column {column!r} holds {text!r} in line {line}, which is no number in a table with "
        "{written}. Say how numbers are written ({options}), or write all of them in the same way. If they "
        "are no numbers, take the column as categories or drop it.",
        file=source.name,
        column=misread.column,
        text=misread.text,
        line=line,
        written=written,
        options=join_messages(" or ", misread.options),
    )


def _parsed(source: Source, packed: str, reading: Reading, names: list[str]) -> pd.DataFrame:
    """The rows below the header as pandas reads them; columns of text with other things among it as text."""
    as_text: dict[str, type] = dict.fromkeys(names, str)
    if reading.thousands is not None:
        return _read_rows(source, packed, reading, names, as_text)
    try:
        frame = _read_rows(source, packed, reading, names, {})
    except OverflowError:  # what pandas 3.0 makes of a whole number with hundreds of digits
        return _read_rows(source, packed, reading, names, as_text)
    mixed = [name for name in names if _is_mixed(frame[name])]
    return _read_rows(source, packed, reading, names, dict.fromkeys(mixed, str)) if mixed else frame


def _is_mixed(column: pd.Series) -> bool:
    """Long whole numbers, or what pandas read in parts that do not agree."""
    if column.dtype != object:
        return False
    return pd.api.types.infer_dtype(column, skipna=True) not in ("string", "boolean", "empty")


def _read_rows(
    source: Source,
    packed: str,
    reading: Reading,
    names: list[str],
    kinds: dict[str, type],
    *,
    blanks: bool = False,
) -> pd.DataFrame:
    """Rows as pandas reads them; with ``blanks``, cells of the columns of ``kinds`` as they stand there."""
    with closing(open_text(source, packed, str(reading.encoding))) as handle, warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        warnings.simplefilter("error", pd.errors.ParserWarning)
        _skip_header(handle, reading)
        try:
            frame = pd.read_csv(
                handle,
                sep=r"\s+" if reading.sep == SPACE else reading.sep,
                decimal=reading.decimal or ".",
                header=None,
                names=names,
                index_col=False,
                dtype=kinds or None,
                skipinitialspace=not blanks,
                keep_default_na=not blanks,
                usecols=list(kinds) if blanks else None,
                **EXACT,
            )
        except pd.errors.EmptyDataError:
            return pd.DataFrame({name: [] for name in names})
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            raise _ragged(source, packed, reading, len(names), error) from error
    return frame


def _skip_header(handle: Any, reading: Reading) -> int:
    """Leave the handle behind the header; returns the number of the line that follows."""
    for _ in range(reading.skipped):
        handle.readline()
    if reading.sep == SPACE:
        handle.readline()
        return reading.skipped + 2
    reader = csv.reader(iter(handle.readline, ""), delimiter=str(reading.sep), skipinitialspace=True)
    next(reader, None)
    return reading.skipped + reader.line_num + 1


def line_of_row(source: Source, packed: str, reading: Reading, row: int) -> int | None:
    """The line of the file on which a row, counted from 0, begins; None where there is no such row."""
    with closing(open_text(source, packed, str(reading.encoding))) as handle:
        first = _skip_header(handle, reading)
        try:
            records = read_records(handle, str(reading.sep), first)
            return next((one.line for position, one in enumerate(records) if position == row), None)
        except csv.Error:
            return None


def _ragged(source: Source, packed: str, reading: Reading, width: int, error: Exception) -> DataError:
    """Which line has more cells than the header; else what pandas says."""
    with closing(open_text(source, packed, str(reading.encoding))) as handle:
        first, trailing = _skip_header(handle, reading), 0
        try:
            for record in read_records(handle, str(reading.sep), first):
                # Separators at the end of all lines are fine, and then of the first as well
                if record.line == first and not any(cell.strip() for cell in record.cells[width:]):
                    trailing = len(record.cells) - width
                if len(record.cells) > width + trailing:
                    return DataError(
                        f"{source.name!r}: line {record.line} has {len(record.cells)} cells, but the header "
                        f"has {width}. Put cells that hold {reading.sep!r} in quotation marks, or correct it."
                    )
        except csv.Error:
            pass
    return DataError(f"{source.name!r} cannot be read as {reading.kind}: {str(error).splitlines()[0]}.")


def _warn_of_short_rows(
    frame: pd.DataFrame, layout: Layout, source: Source, packed: str, reading: Reading
) -> None:
    """Say which lines have fewer cells than the header: often a cell is lacking elsewhere than at the end."""
    width = max((position for position, name in enumerate(layout.names, 1) if name), default=0)
    if not width or not frame.iloc[:, width - 1].isna().any():
        return
    with closing(open_text(source, packed, str(reading.encoding))) as handle:
        first = _skip_header(handle, reading)
        try:
            records = read_records(handle, str(reading.sep), first)
            short = [one.line for one in records if len(one.cells) < width and any(one.cells)]
        except csv.Error:
            return
    if short:
        some = first_few([f"{line:,}" for line in short], most=5)
        warnings.warn(
            f"{source.name!r}: {count(len(short), 'line')} ({some}) {agreed(len(short), 'has', 'have')} "
            f"fewer cells than the header, which has {width}: the last columns are taken as missing there. "
            "Where another cell is lacking, those behind it are in wrong columns. Correct such lines.",
            DataWarning,
            stacklevel=6,
        )


def _without_unnamed(frame: pd.DataFrame, layout: Layout, source: Source) -> pd.DataFrame:
    """Columns without name and values, as spreadsheets write them, are none.

    The first ones may hold the index that pandas or R wrote; anywhere else a name is missing.
    """
    names = layout.names
    leading = next((position for position, name in enumerate(names) if name), len(names))
    unnamed = [position for position, name in enumerate(names) if not name]
    empty = [position for position in unnamed if frame.iloc[:, position].isna().all()]
    lacking = [position for position in unnamed if position >= leading and position not in empty]
    if lacking:
        values = frame.iloc[:, lacking[0]].dropna()
        raise DataError(
            f"{source.name!r}: column {lacking[0] + 1} has no name in line {layout.header.line}, but holds "
            f"values such as {str(values.iloc[0])!r}. Name it, or remove what stands above the header."
        )
    return frame.drop(columns=frame.columns[empty])


def _without_empty_end(frame: pd.DataFrame, reading: Reading) -> tuple[pd.DataFrame, Reading]:
    """Without the rows of nothing that spreadsheets write below a table."""
    if frame.shape[1] < 2 or len(frame) == 0 or not frame.iloc[-1].isna().all():
        return frame, reading
    filled = frame.notna().any(axis=1).to_numpy()
    kept = len(frame) - int(filled[::-1].argmax()) if filled.any() else 0
    return frame.iloc[:kept], replace(reading, empty_rows=len(frame) - kept)
