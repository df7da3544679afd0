"""Arrays of a safetensors file, each read once its type and shape are what the reader says they must be."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphfield.data.saved_files import open_regular, parse_json
from graphfield.data.saved_values import Saved, refuse
from graphfield.exceptions import ModelFileError

# Types that we write. Files are little-endian on every machine.
_TYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4"}
# Of the table of contents: about 500,000 arrays.
MAX_CONTENTS_BYTES = 64 * 2**20
# Coefficients are handed out in single precision, which has no larger numbers by far.
MAX_COEFFICIENT = 1e30


@dataclass(frozen=True)
class AtMost:
    """A length that the reader does not know, but for its bounds."""

    most: int
    least: int = 0

    def __str__(self) -> str:
        return f"{self.least}..{self.most}"


Shape = tuple[int | AtMost, ...]


@dataclass(frozen=True)
class _Entry:
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


class ArrayFile:
    """The table of contents of a file whose size is what that table says; arrays are read on demand.

    Until an array is asked for with its shape, only the table is in memory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = cast(BufferedReader, open_regular(path))
        try:
            self.entries = self._contents()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def sha256(self) -> str:
        """Of the whole file, in bounded memory."""
        self._file.seek(0)
        return hashlib.file_digest(self._file, "sha256").hexdigest()

    def read(self, entry: _Entry) -> NDArray:
        array = np.empty(entry.shape, dtype=entry.dtype)
        self._file.seek(entry.start)
        if array.size and self._file.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:
            raise ModelFileError(f"{self.path} is damaged: it ends too early.")
        return array

    def _contents(self) -> dict[str, _Entry]:
        size = os.fstat(self._file.fileno()).st_size
        length = int.from_bytes(self._file.read(8), "little")
        if size < 8 or length > min(size - 8, MAX_CONTENTS_BYTES):
            self._damaged(f"it has {size:,} bytes and no table of contents of safetensors at its start")
        table = Saved(parse_json(self._file.read(length), self.path), str(self.path))
        entries = {
            name: _entry(value, 8 + length) for name, value in table.items().items() if name != "__metadata__"
        }
        end = 8 + length
        for entry in sorted(entries.values(), key=lambda entry: (entry.start, entry.stop)):
            if entry.start != end:
                self._damaged("its arrays do not lie one after the other")
            end = entry.stop
        if end != size:
            self._damaged(f"it has {size:,} bytes, its table of contents says {end:,}")
        return entries

    def _damaged(self, why: str) -> None:
        raise ModelFileError(f"{self.path} is damaged: {why}. Its checksum cannot match either.")


def _entry(value: Saved, start: int) -> _Entry:
    dtype = np.dtype(_TYPES[value["dtype"].choice(_TYPES)])
    shape = tuple(length.whole() for length in value["shape"].listed(most=8))
    first, last = (offset.whole() for offset in value["data_offsets"].listed(2, 2))
    if last - first != math.prod(shape) * dtype.itemsize:
        value.refuse(f"{math.prod(shape) * dtype.itemsize:,} bytes long", f"{last - first:,}")
    return _Entry(dtype, shape, start + first, start + last)


class SavedArrays:
    """Arrays by name; whoever reads one says what it must be."""

    def __init__(self, file: ArrayFile, prefix: str = "") -> None:
        self._file, self._prefix = file, prefix

    def below(self, prefix: str) -> SavedArrays:
        """Those whose names begin so, without it."""
        return SavedArrays(self._file, self._prefix + prefix)

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._file.entries

    def n_entries(self) -> int:
        """Numbers in all of them together."""
        entries = self._file.entries.items()
        return sum(math.prod(entry.shape) for name, entry in entries if name.startswith(self._prefix))

    def refuse(self, name: str, expected: str, got: str) -> None:
        refuse(str(self._file.path), self._prefix + name, expected, got)

    def check_shape(self, name: str, shape: Shape, dtype: DTypeLike = np.float64) -> None:
        """Raise unless the file has it, in this shape and kind of numbers (of any precision)."""
        if name not in self:
            self.refuse(name, "there", "nothing")
        entry, kind = self._file.entries[self._prefix + name], np.dtype(dtype).kind
        if entry.dtype.kind != kind:
            self.refuse(name, "whole numbers" if kind == "i" else "floating point numbers", str(entry.dtype))
        if len(shape) != len(entry.shape) or not all(map(_fits, entry.shape, shape)):
            self.refuse(name, f"of shape ({', '.join(map(str, shape))})", str(entry.shape))

    def read(
        self,
        name: str,
        shape: Shape,
        dtype: DTypeLike = np.float64,
        *,
        low: float = -np.inf,
        high: float = np.inf,
        above: bool = False,
        nan: bool = False,
    ) -> NDArray:
        """Finite numbers (or NaN, where we write it) from ``low``, or ``above`` it, to ``high``."""
        self.check_shape(name, shape, dtype)
        array = self._file.read(self._file.entries[self._prefix + name]).astype(dtype, copy=False)
        inside = np.isfinite(array) & (array >= low) & (array <= high)
        if above:
            inside &= array > low
        if nan:
            inside |= np.isnan(array)
        if not inside.all():
            bounds = "" if low == -np.inf and high == np.inf else f" from {low:g} to {high:g}"
            self.refuse(name, f"finite numbers{bounds}", f"{array[~inside].flat[0]!s}")
        return array

    def read_coefficients(
        self,
        name: str,
        shape: tuple[int, ...],
        most: float = MAX_COEFFICIENT,
        dtype: DTypeLike = np.float64,
    ) -> NDArray:
        """Matrices (..., p, p) of coefficients: no node is in its own regression."""
        array = self.read(name, shape, dtype, low=-most, high=most)
        if np.diagonal(array, axis1=-2, axis2=-1).any():
            self.refuse(name, "zero on the diagonal", "other numbers")
        return array


def _fits(length: int, expected: int | AtMost) -> bool:
    if isinstance(expected, AtMost):
        return expected.least <= length <= expected.most
    return length == expected
