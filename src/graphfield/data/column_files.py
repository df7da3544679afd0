"""Parquet, Feather and Excel files to pandas frames, none of them before its size is known."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import pandas as pd

from graphfield.data.reading import Reading
from graphfield.data.room import check_room, free_memory, size_text
from graphfield.data.sources import UNPACK_ERRORS, Source
from graphfield.exceptions import DataError, check_package, listing
from graphfield.messages import Argument

# What a kind of file needs: the package, and the extra of graphfield that brings it.
_NEEDS = {"parquet": ("pyarrow", "parquet"), "feather": ("pyarrow", "parquet"), "xlsx": ("openpyxl", "excel")}
# What the packages raise for damaged files, besides errors of their own.
_DAMAGED = (
    *UNPACK_ERRORS,
    AssertionError,
    AttributeError,
    LookupError,
    OverflowError,
    SyntaxError,  # of XML
    TypeError,
)
# Bytes of memory for a byte of the XML of a sheet, measured; each cell becomes an object.
_PER_XML_BYTE = 4


def check_kind(kind: str) -> None:
    """Refuse a kind of file whose package is missing, and say how to get it."""
    if kind in _NEEDS:
        check_package(*_NEEDS[kind], f"A file of kind {kind}")


def read_columns(source: Source, kind: str, sheet: str | None) -> tuple[pd.DataFrame, Reading]:
    """A Parquet, Feather or Excel file, and how it was read."""
    readers: dict[str, Callable[[Source, str | None], tuple[pd.DataFrame, Reading]]] = {
        "parquet": _read_parquet,
        "feather": _read_feather,
        "xlsx": _read_excel,
    }
    try:
        with warnings.catch_warnings(action="ignore"):  # about styles and extensions of a workbook
            return readers[kind](source, sheet)
    except DataError:
        raise
    except _errors(kind) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{source.name!r} cannot be read as {kind}: {reason}") from error


def _errors(kind: str) -> tuple[type[BaseException], ...]:
    """What reading a damaged file of this kind raises."""
    if kind == "xlsx":
        return _DAMAGED
    import pyarrow

    return (*_DAMAGED, pyarrow.ArrowException)


def _read_parquet(source: Source, sheet: str | None) -> tuple[pd.DataFrame, Reading]:
    import pyarrow.parquet as pq

    with source.open() as file:
        found = pq.ParquetFile(file).metadata
        needed = sum(found.row_group(i).total_byte_size for i in range(found.num_row_groups))
        rows, columns = found.num_rows, found.num_columns
        check_room(needed, f"{source.name!r} ({rows:,} rows of {columns:,} columns)")
        file.seek(0)
        return pd.read_parquet(file), Reading("parquet")


def _read_feather(source: Source, sheet: str | None) -> tuple[pd.DataFrame, Reading]:
    import pyarrow
    from pyarrow import feather

    with source.open() as file:
        if file.read(4) == b"FEA1":  # the first version, which knows no compression
            file.seek(0)
            return feather.read_feather(file), Reading("feather")
        file.seek(0)
        batches, free, total = [], free_memory(), 0
        with pyarrow.ipc.open_file(file) as reader:
            for position in range(reader.num_record_batches):
                batches.append(reader.get_batch(position))
                total += batches[-1].nbytes
                if total > free:
                    raise DataError(
                        f"{source.name!r} ({size_text(source.size)}) takes more than the {size_text(free)} "
                        "of memory that are free. Use fewer rows or columns."
                    )
            table = pyarrow.Table.from_batches(batches, reader.schema)
    return table.to_pandas(), Reading("feather")


def _read_excel(source: Source, sheet: str | None) -> tuple[pd.DataFrame, Reading]:
    with source.open() as file:
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(one.file_size for one in archive.infolist())
        check_room(_PER_XML_BYTE * unpacked, f"{source.name!r} ({size_text(unpacked)} unpacked)")
        file.seek(0)
        with pd.ExcelFile(file, engine="openpyxl") as book:
            name = _chosen_sheet(book, sheet, source)
            cells = book.parse(name, header=None, dtype=object)
    return _from_cells(cells, source), Reading("xlsx", sheet=name)


def _chosen_sheet(book: pd.ExcelFile, sheet: str | None, source: Source) -> str:
    """The sheet that is asked for, or the only one that holds anything."""
    names = [str(name) for name in book.sheet_names]
    if sheet is not None:
        if sheet not in names:
            raise DataError(f"{source.name!r} has no sheet {sheet!r}. It has {listing(names)}.")
        return sheet
    filled = [name for name in names if len(names) == 1 or not book.parse(name, header=None, nrows=5).empty]
    if len(filled) > 1:
        raise DataError(
            "{file!r} has several sheets: {sheets}. Say which: {option}.",
            file=source.name,
            sheets=listing(filled),
            option=Argument("sheet", filled[0]),
        )
    if not filled:
        raise DataError(f"{source.name!r} holds no data: its sheets are empty.")
    return filled[0]


def _from_cells(cells: pd.DataFrame, source: Source) -> pd.DataFrame:
    """Rows below the first one that is not empty, named by it; columns without name and values are none."""
    cells = cells.dropna(how="all").dropna(axis=1, how="all")
    if cells.empty:
        raise DataError(f"{source.name!r} holds no data: the sheet is empty.")
    header, rows = cells.iloc[0], cells.iloc[1:].reset_index(drop=True)
    names = [_column_name(name, position) for position, name in enumerate(header)]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"{source.name!r} has more than one column called {listing(repeated)}. Rename them.")
    if sum(header.notna()) < min(2, len(names)) or not all(header.notna()[1:]):
        lacking = int(header.isna().to_numpy()[1:].argmax()) + 1
        raise DataError(
            f"{source.name!r}: column {lacking + 1} of the sheet has values, but no name in the first row "
            "that holds anything. Name it, or remove what stands above the header."
        )
    return rows.set_axis(names, axis=1).infer_objects()


def _column_name(name: Any, position: int) -> str:
    return f"Unnamed: {position}" if pd.isna(name) else str(name).strip()
