"""Where a table comes from: a file or bytes, packed or not, and what kind of table that is."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, cast

from graphfield.data.room import free_memory, size_text
from graphfield.exceptions import DataError

TEXT_KINDS = ("csv", "tsv", "txt")
KINDS = (*TEXT_KINDS, "parquet", "feather", "xlsx", "npz")
# Endings of packed text, and how such a file is packed.
PACKED = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zip": "zip"}
# The first bytes of files, and what they are called.
_MAGIC = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "feather"),
    (b"FEA1", "feather"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\xd0\xcf\x11\xe0", "xls"),
)
_CALLED = {
    "parquet": "a Parquet file (.parquet)",
    "feather": "a Feather file (.feather)",
    "zip": "a ZIP archive (.xlsx, .npz, .csv.zip)",
    "gzip": "packed with gzip (.csv.gz)",
    "bzip2": "packed with bzip2 (.csv.bz2)",
    "xz": "packed with xz (.csv.xz)",
    "xls": "an old Excel file (save it as .xlsx)",
}
# Packed text that is more than so many times as long unpacked, and longer than this, is no table: it would
# say the same over and over.
_MOST_UNPACKED, _UNPACKED_BYTES = 300, 100_000_000
# What unpacking damaged files raises.
UNPACK_ERRORS = (
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class Source:
    """A table as bytes that can be opened again and again: a file, or ``content`` from elsewhere."""

    name: str
    content: bytes | None = None

    def __str__(self) -> str:
        return self.name

    def open(self) -> BinaryIO:
        return Path(self.name).open("rb") if self.content is None else io.BytesIO(self.content)

    @property
    def size(self) -> int:
        return Path(self.name).stat().st_size if self.content is None else len(self.content)


def as_source(table: str | Path | Source) -> Source:
    """A file that is there, is not empty and has a name that ends as tables do, or bytes that are given."""
    if isinstance(table, Source):
        source = table
    else:
        source, path = Source(str(table)), Path(table)
        if path.is_dir():
            raise DataError(f"{str(path)!r} is a folder. Name the table in it.")
        _kind_by_name(source)
        if path.exists() and not path.is_file():
            raise DataError(f"{str(path)!r} is no regular file. Copy what it gives into one.")
        if not path.is_file():
            raise DataError(f"There is no file {str(path)!r}.")
    if source.size == 0:
        raise DataError(f"{source.name!r} is empty. Expected a header line and one row per sample.")
    return source


def looks_like_table(name: str) -> bool:
    """Whether a name ends as tables do.

    >>> looks_like_table("vix.csv.gz"), looks_like_table("vix")
    (True, False)
    """
    return _endings(name)[0] in KINDS


def _endings(name: str) -> tuple[str, str]:
    """The ending that says what kind of table it is, and the one that says how it is packed."""
    endings = [ending[1:].lower() for ending in Path(name).suffixes]
    if endings and endings[-1] in PACKED:
        return (endings[-2] if len(endings) > 1 else ""), endings[-1]
    return (endings[-1] if endings else ""), ""


def _kind_by_name(source: Source) -> tuple[str, str]:
    kind, packed = _endings(source.name)
    if kind not in KINDS:
        known = ", ".join(f".{one}" for one in KINDS)
        raise DataError(
            f"{Path(source.name).name!r} is not a table: expected a name ending in {known}, or text packed "
            "as in .csv.gz."
        )
    if packed and kind not in TEXT_KINDS:
        raise DataError(f"{source.name!r}: a .{kind} file is not read packed. Unpack it first.")
    return kind, PACKED.get(packed, "")


def find_kind(source: Source) -> tuple[str, str]:
    """What kind of table it is and how it is packed ("" for not at all): by the name, else by the bytes."""
    found = _kind_by_bytes(source)
    if source.content is not None:
        return _kind_of_bytes(source, found)
    kind, packed = _kind_by_name(source)
    expected = packed or {"xlsx": "zip", "npz": "zip"}.get(kind, "" if kind in TEXT_KINDS else kind)
    if found != expected:
        called = f"it is {_CALLED[found]}" if found else f"it is not {_CALLED[expected]}"
        raise DataError(
            f"{source.name!r} cannot be read as {kind}: by its first bytes {called}. Give it the name of "
            "what it is."
        )
    return kind, packed


def _kind_by_bytes(source: Source) -> str:
    with source.open() as file:
        head = file.read(8)
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), "")


def _kind_of_bytes(source: Source, found: str) -> tuple[str, str]:
    if found == "xls":
        raise DataError(f"{source.name!r} is {_CALLED['xls']}.")
    if found != "zip":
        return (found, "") if found in KINDS else ("csv", found)
    try:
        with source.open() as file, zipfile.ZipFile(file) as archive:
            members = archive.namelist()
    except UNPACK_ERRORS as error:
        raise unpack_error(source, "zip", error) from error
    if "[Content_Types].xml" in members:
        return "xlsx", ""
    return ("npz", "") if any(name.endswith(".npy") for name in members) else ("csv", "zip")


def unpack_error(source: Source, packed: str, error: BaseException) -> DataError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return DataError(
        f"{source.name!r} cannot be unpacked ({packed}): {reason}. It is damaged or cut off; get it again."
    )


def open_unpacked(source: Source, packed: str) -> BinaryIO:
    """The bytes of a text table, unpacked on the way and counted, so that little cannot become too much."""
    file = source.open()
    if not packed:
        return file
    limit = min(free_memory(), max(_UNPACKED_BYTES, _MOST_UNPACKED * source.size))
    try:
        inner = _UNPACKERS[packed](file)
    except UNPACK_ERRORS as error:
        file.close()
        raise unpack_error(source, packed, error) from error
    return cast(BinaryIO, io.BufferedReader(_Unpacked(inner, file, source, packed, limit), 1 << 16))


def _only_member(file: BinaryIO) -> IO[bytes]:
    archive = zipfile.ZipFile(file)
    members = [one for one in archive.infolist() if not one.is_dir()]
    if len(members) != 1:
        raise zipfile.BadZipFile(f"it must hold one text table, but holds {len(members)} files")
    return archive.open(members[0])


_UNPACKERS: dict[str, Callable[[BinaryIO], IO[bytes]]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file),  # type: ignore[dict-item, return-value]
    "bzip2": lambda file: bz2.BZ2File(file),
    "xz": lambda file: lzma.LZMAFile(file),  # noqa: SIM115
    "zip": _only_member,
}


class _Unpacked(io.RawIOBase):
    """Unpacked bytes with a limit, and typed errors for packed files that are damaged."""

    def __init__(self, inner: IO[bytes], file: BinaryIO, source: Source, packed: str, limit: int) -> None:
        self.inner, self.file = inner, file
        self.source, self.packed = source, packed
        self.limit, self.total = limit, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        try:
            data = self.inner.read(len(buffer))
        except UNPACK_ERRORS as error:
            raise unpack_error(self.source, self.packed, error) from error
        self.total += len(data)
        if self.total > self.limit:
            raise DataError(
                f"{self.source.name!r} has {size_text(self.source.size)} and unpacks to more than "
                f"{size_text(self.limit)}, which is too much for a table. Unpack it yourself and look at it."
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.inner.close()
        self.file.close()
        super().close()
