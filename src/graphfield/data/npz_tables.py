"""NPZ files to pandas frames: the headers of all arrays are read before any of them is."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from math import prod
from typing import IO

import numpy as np
import pandas as pd
from numpy.lib import format as npy
from numpy.typing import NDArray

from graphfield.data.room import check_room
from graphfield.data.sources import UNPACK_ERRORS, Source, unpack_error
from graphfield.exceptions import DataError, listing

TRUTH = "truth_"  # arrays of an NPZ file that are no columns of the table
_NAMES = "_names"
_ENDING = ".npy"
# Arrays are held once as they are and once as columns.
_COPIES = 2


@dataclass(frozen=True)
class _Header:
    """What the first bytes of an array say of it."""

    key: str
    shape: tuple[int, ...]
    dtype: np.dtype
    packed: zipfile.ZipInfo

    @property
    def size(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    @property
    def is_names(self) -> bool:
        return self.key.endswith(_NAMES)


def read_npz(source: Source) -> pd.DataFrame:
    """The arrays of an NPZ file as columns; see :func:`~graphfield.data.tables.read_table`."""
    try:
        with source.open() as file, zipfile.ZipFile(file) as archive:
            headers = _headers(archive, source)
            wanted = _wanted(headers, source)
            _check_memory(wanted, source)
            arrays = {one.key: _array(archive, one, source) for one in wanted}
    except DataError:
        raise
    except UNPACK_ERRORS as error:
        raise unpack_error(source, "npz", error) from error
    return _frame(arrays, source)


def _headers(archive: zipfile.ZipFile, source: Source) -> list[_Header]:
    members = [one for one in archive.infolist() if not one.filename.startswith(TRUTH)]
    odd = [one.filename for one in members if not one.filename.endswith(_ENDING)]
    if odd:
        raise DataError(f"{source.name!r} holds {listing(odd)}, which is no array. Expected arrays alone.")
    headers = [_header(archive, one, source) for one in members]
    keys = [one.key for one in headers]
    again = sorted({key for key in keys if keys.count(key) > 1})
    if again:
        raise DataError(f"{source.name!r} has more than one array called {listing(again)}. Write it again.")
    return headers


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo, source: Source) -> _Header:
    key = member.filename.removesuffix(_ENDING)
    with archive.open(member) as file:
        try:
            shape, dtype = _read_header(file)
        except (ValueError, TypeError, SyntaxError, OverflowError, RecursionError, MemoryError) as error:
            raise DataError(f"{source.name!r}: {key!r} is no array: {str(error).splitlines()[0]}") from error
        begin = file.tell()
    header = _Header(key, shape, dtype, member)
    _check_kind(header, source)
    if header.size != member.file_size - begin:
        raise DataError(
            f"{source.name!r}: array {key!r} is damaged: by its header it has {header.size:,} bytes, by the "
            f"archive {member.file_size - begin:,}."
        )
    return header


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    version = npy.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = npy.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = npy.read_array_header_2_0(file)
    else:  # 3.0 is for fields with names beyond latin-1, which are no columns
        raise ValueError(f"its version {version} is not known.")
    if any(length < 0 for length in shape):
        raise ValueError(f"its shape {shape} is negative.")
    return shape, dtype


def _check_kind(header: _Header, source: Source) -> None:
    kinds = {"O": "pickled objects", "c": "complex numbers", "V": "records of several fields"}
    what = kinds.get(header.dtype.kind)
    if what is not None:
        raise DataError(
            f"{source.name!r} cannot be read as npz: array {header.key!r} holds {what} ({header.dtype}). "
            "Expected numbers, booleans, dates or text; write the parts that are wanted as such arrays."
        )


def _wanted(headers: list[_Header], source: Source) -> list[_Header]:
    """Arrays with as many rows as the first of two dimensions, and the names of their columns."""
    matrices = [one for one in headers if len(one.shape) == 2 and not one.is_names]
    if not matrices:
        found = listing(sorted(one.key for one in headers))
        raise DataError(
            f"{source.name!r} has no 2-D array. Expected, for example, X (samples x nodes) and Z "
            f"(samples x covariates); found {found}."
        )
    rows = matrices[0].shape[0]
    columns = [
        one for one in headers if not one.is_names and len(one.shape) in (1, 2) and one.shape[0] == rows
    ]
    named = {f"{one.key}{_NAMES}": one for one in columns if len(one.shape) == 2}
    for one in headers:
        if one.key in named and one.shape != named[one.key].shape[1:]:
            raise DataError(
                f"{source.name!r}: {one.key!r} must name each of the {named[one.key].shape[1]} columns of "
                f"{named[one.key].key!r}, but has the shape {one.shape}."
            )
    return [*columns, *(one for one in headers if one.key in named)]


def _check_memory(wanted: list[_Header], source: Source) -> None:
    largest = max(wanted, key=lambda one: one.size)
    shape = " x ".join(f"{length:,}" for length in largest.shape)
    check_room(
        _COPIES * sum(one.size for one in wanted),
        f"{source.name!r} ({largest.key!r} has {shape} values of {largest.dtype.itemsize} bytes, held twice)",
    )


def _array(archive: zipfile.ZipFile, header: _Header, source: Source) -> NDArray:
    with archive.open(header.packed) as file:
        array = npy.read_array(file, allow_pickle=False)
    if array.dtype.kind == "S":
        return _decoded(array, header.key, source)
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        return array.astype(np.float64)
    # In the order of bytes of this machine, which pandas wants
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _decoded(array: NDArray, key: str, source: Source) -> NDArray:
    try:
        return np.char.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{source.name!r}: array {key!r} holds bytes that are no UTF-8 text. Write it as text: "
            f"{key}.astype(str)."
        ) from error


def _frame(arrays: dict[str, NDArray], source: Source) -> pd.DataFrame:
    columns: dict[str, NDArray] = {}
    for key, array in arrays.items():
        if key.endswith(_NAMES):
            continue
        for name, column in _columns(key, array, arrays.get(f"{key}{_NAMES}")):
            if name in columns:
                raise DataError(f"{source.name!r} has more than one column called {name!r}.")
            columns[name] = column
    return pd.DataFrame(columns)


def _columns(key: str, array: NDArray, names: NDArray | None) -> list[tuple[str, NDArray]]:
    if array.ndim == 1:
        return [(key, array)]
    labels = (
        [f"{key.lower()}{i + 1}" for i in range(array.shape[1])]
        if names is None
        else [str(name) for name in names]
    )
    return list(zip(labels, array.T, strict=True))
