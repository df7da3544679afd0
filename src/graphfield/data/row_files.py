"""Files whose rows are read block by block, each a table with named columns: Parquet, NPY, Zarr, h5ad."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.nodes import row_blocks
from graphfield.exceptions import DataError, check_package, count, listing

# What a kind needs, by the ending of its name: the package, and the extra of graphfield that brings it.
_NEEDS = {".parquet": ("pyarrow", "parquet"), ".zarr": ("zarr", "zarr"), ".h5ad": ("h5py", "h5ad")}
KINDS = (".parquet", ".npy", ".zarr", ".h5ad")
_CHANGED = "Wait until it is written, and open the table again."


class RowFiles(ABC):
    """One or several files as one table, of which only some rows are in memory at a time."""

    names: list[str]
    n_rows: int

    @abstractmethod
    def blocks(self, columns: Sequence[str]) -> Generator[pd.DataFrame, None, None]:
        """These columns of consecutive rows, counted from 0 in each block."""

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise where a column is of different types in different files; one file has one type."""
        assert set(columns) <= set(self.names)

    def _numbered(self, n_columns: int) -> None:
        self.names = [f"x{i + 1}" for i in range(n_columns)]


def is_read_by_rows(path: Path) -> bool:
    """Whether it is a table of a kind that is read in no other way: not one Parquet file."""
    return path.is_dir() or (path.suffix in KINDS and path.suffix != ".parquet")


def open_files(path: Path) -> RowFiles:
    """By the ending of the name; a folder without one holds Parquet files."""
    is_folder = path.is_dir() and path.suffix not in (".zarr", ".parquet")
    kind = ".parquet" if is_folder else path.suffix.lower()
    if not path.exists():
        raise DataError("There is no file {file!r}.", file=str(path))
    if kind not in KINDS:
        raise DataError(
            "{file!r} cannot be read by rows: expected a name ending in {known}, or a folder of Parquet "
            "files. Write the table as Parquet (pandas: to_parquet).",
            file=str(path),
            known=", ".join(KINDS),
        )
    if kind in _NEEDS:
        check_package(*_NEEDS[kind], f"A file of kind {kind[1:]}")
    readers: dict[str, type[RowFiles]] = {
        ".parquet": ParquetFiles,
        ".npy": NpyFile,
        ".zarr": ZarrArray,
        ".h5ad": AnnDataFile,
    }
    found = readers[kind](path)  # type: ignore[call-arg]
    if found.n_rows == 0 or not found.names:
        size = f"{count(found.n_rows, 'row')} and {count(len(found.names), 'column')}"
        raise DataError(f"{str(path)!r} holds no data: {size}.").about(file=str(path))
    return found


@dataclass(frozen=True)
class _Stamp:
    """A file as it was when the table was opened."""

    path: Path
    size: int
    time: int

    @classmethod
    def of(cls, path: Path) -> _Stamp:
        now = path.stat()
        return cls(path, now.st_size, now.st_mtime_ns)

    def check(self, error: BaseException | None = None) -> None:
        """Raise where the file is another by now, or where reading it brought this error."""
        try:
            now = _Stamp.of(self.path)
        except OSError as gone:
            raise DataError("{file!r} is gone. " + _CHANGED, file=str(self.path)) from gone
        if now != self:
            raise DataError(
                "{file!r} changed while it was read: it had {before:,} bytes and has {now:,} now. "
                + _CHANGED,
                file=str(self.path),
                before=self.size,
                now=now.size,
            ) from error
        if error is not None:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(
                "{file!r} cannot be read: {reason}. It is damaged or cut off; get it again.",
                file=str(self.path),
                reason=reason,
            ) from error


class ParquetFiles(RowFiles):
    """One file, or all of a folder in the order of their names; they must have the same columns."""

    def __init__(self, path: Path) -> None:
        found = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
        files = [file for file in found if not file.name.startswith((".", "_"))]
        if not files:
            raise DataError(
                "{file!r} is a folder. Name the table in it: it holds no Parquet files (.parquet).",
                file=str(path),
            )
        self.stamps = [_Stamp.of(file) for file in files]
        parts = [_parquet_facts(stamp) for stamp in self.stamps]
        self.schemas, self.counts = [schema for schema, _ in parts], [rows for _, rows in parts]
        self.n_rows, self.names = sum(self.counts), _flat(self.schemas[0])
        for stamp, schema in zip(self.stamps, self.schemas, strict=True):
            self._check_names(stamp.path, _flat(schema))

    def _check_names(self, file: Path, names: Sequence[str]) -> None:
        lacking = [name for name in self.names if name not in names]
        extra = [name for name in names if name not in self.names]
        if lacking or extra:
            parts = [f"lacks {listing(lacking)}"] if lacking else []
            parts += [f"has {listing(extra)}"] if extra else []
            raise DataError(
                "Files of one table must have the same columns, but {file!r} {what}, unlike {first!r}. Write "
                "it again with the same columns, or move it to another folder.",
                file=str(file),
                what=" and ".join(parts),
                first=self.stamps[0].path.name,
            )

    def check_columns(self, columns: Sequence[str]) -> None:
        for name in columns:
            known = self.schemas[0].field(name).type
            for stamp, schema in zip(self.stamps, self.schemas, strict=True):
                if (kind := schema.field(name).type) != known:
                    raise DataError(
                        "Column {column!r} is of type {kind} in {file!r}, but of type {known} in {first!r}. "
                        "Write the files with one type, or leave the column out.",
                        column=name,
                        kind=str(kind),
                        file=str(stamp.path),
                        known=str(known),
                        first=self.stamps[0].path.name,
                    )

    def blocks(self, columns: Sequence[str]) -> Generator[pd.DataFrame, None, None]:
        for stamp, expected in zip(self.stamps, self.counts, strict=True):
            stamp.check()
            n_rows = 0
            for block in _parquet_blocks(stamp, list(columns)):
                n_rows += len(block)
                yield block
            stamp.check(None if n_rows == expected else EOFError(f"{n_rows:,} of {expected:,} rows"))


def _flat(schema: Any) -> list[str]:
    """Columns with one value in each cell."""
    return [column.name for column in schema if not column.type.num_fields]


def _parquet_facts(stamp: _Stamp) -> tuple[Any, int]:
    """The schema of a file, and its number of rows."""
    import pyarrow
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(stamp.path) as file:
            return file.schema_arrow, file.metadata.num_rows
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        stamp.check(error)
        raise


def _parquet_blocks(stamp: _Stamp, columns: list[str]) -> Generator[pd.DataFrame, None, None]:
    import pyarrow
    import pyarrow.parquet as pq

    step = next(row_blocks(2**62, len(columns))).stop
    try:
        with pq.ParquetFile(stamp.path) as file:
            for batch in file.iter_batches(step, columns=columns, use_threads=False):
                yield batch.to_pandas().reset_index(drop=True)[columns]
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        if isinstance(error, DataError):
            raise
        stamp.check(error)
    finally:
        pyarrow.default_memory_pool().release_unused()


class NpyFile(RowFiles):
    """A matrix of numbers; columns are called x1, x2 and so on. It is read, not mapped: it may shrink."""

    def __init__(self, path: Path) -> None:
        self.stamp = _Stamp.of(path)
        try:
            with path.open("rb") as file:
                version = np.lib.format.read_magic(file)
                reader = {
                    (1, 0): np.lib.format.read_array_header_1_0,
                    (2, 0): np.lib.format.read_array_header_2_0,
                }
                shape, by_columns, self.dtype = reader[version](file)
                self.start = file.tell()
        except (ValueError, KeyError, OSError) as error:
            self.stamp.check(error)
        if len(shape) != 2 or by_columns or self.dtype.kind not in "fiub":
            raise DataError(
                "{file!r} must hold a matrix of numbers, row after row, got {kind} of shape {shape}{order}. "
                "Save numpy.ascontiguousarray of it.",
                file=str(path),
                kind=str(self.dtype),
                shape=str(shape),
                order=", column after column" if by_columns else "",
            )
        self.n_rows, self.width = shape
        self._numbered(self.width)

    def blocks(self, columns: Sequence[str]) -> Generator[pd.DataFrame, None, None]:
        places = [self.names.index(name) for name in columns]
        self.stamp.check()
        with self.stamp.path.open("rb") as file:
            file.seek(self.start)
            for rows in row_blocks(self.n_rows, self.width):
                values = self._read(file, rows.stop - rows.start)
                yield pd.DataFrame(values[:, places], columns=list(columns))

    def _read(self, file: IO[bytes], n_rows: int) -> NDArray:
        values = np.fromfile(file, self.dtype, n_rows * self.width)
        if len(values) < n_rows * self.width:
            self.stamp.check(EOFError("it ends before its last row"))
        return values.reshape(n_rows, self.width).astype(self.dtype.newbyteorder("="), copy=False)


class ZarrArray(RowFiles):
    """A two-dimensional array of numbers; columns are called x1, x2 and so on."""

    def __init__(self, path: Path) -> None:
        self.path, found = path, import_module("zarr").open(str(path), mode="r")
        if len(getattr(found, "shape", ())) != 2 or found.dtype.kind not in "fiub":
            raise DataError("{file!r} must be one Zarr array of numbers, (rows, columns).", file=str(path))
        self.array, self.n_rows = found, found.shape[0]
        self._numbered(found.shape[1])

    def blocks(self, columns: Sequence[str]) -> Generator[pd.DataFrame, None, None]:
        places = [self.names.index(name) for name in columns]
        for rows in row_blocks(self.n_rows, len(self.names)):
            values = np.asarray(self.array[rows])
            if len(values) != rows.stop - rows.start:
                raise DataError("{file!r} changed while it was read. " + _CHANGED, file=str(self.path))
            yield pd.DataFrame(values[:, places], columns=list(columns))


class AnnDataFile(RowFiles):
    """Columns are those of ``obs`` and, from the matrix ``X``, which must be dense, the names of ``var``."""

    def __init__(self, path: Path) -> None:
        self.stamp = _Stamp.of(path)
        with self._open() as file:
            if not hasattr(file["X"], "shape"):
                raise DataError(
                    "{file!r} has a sparse X, which cannot be read by rows here. Write it dense "
                    "(adata.X = adata.X.toarray()) with the genes that are to be nodes.",
                    file=str(path),
                )
            self.n_rows = file["X"].shape[0]
            self.of_rows = _texts(file["obs"].attrs["column-order"])
            self.genes = _texts(file["var"][file["var"].attrs["_index"]][:])
        self.names = [*self.of_rows, *self.genes]

    def blocks(self, columns: Sequence[str]) -> Generator[pd.DataFrame, None, None]:
        places = {name: place for place, name in enumerate(self.genes)}
        self.stamp.check()
        with self._open() as file:
            for rows in row_blocks(self.n_rows, len(self.names)):
                matrix = file["X"][rows]
                yield pd.DataFrame(
                    {
                        name: matrix[:, places[name]] if name in places else _of_rows(file["obs"][name], rows)
                        for name in columns
                    }
                )
        self.stamp.check()

    def _open(self) -> Any:
        try:
            return import_module("h5py").File(self.stamp.path, "r")
        except OSError as error:
            self.stamp.check(error)


def _texts(values: Any) -> list[str]:
    return [value.decode() if isinstance(value, bytes) else str(value) for value in values]


def _of_rows(column: Any, rows: slice) -> Any:
    """Some rows of a column of ``obs``: numbers, text, or levels by their codes."""
    if hasattr(column, "shape"):
        values = column[rows]
        return values if values.dtype.kind in "fiub" else _texts(values)
    kind = pd.CategoricalDtype(_texts(column["categories"][:]), bool(column.attrs.get("ordered", False)))
    return pd.Categorical.from_codes(column["codes"][rows], dtype=kind)
