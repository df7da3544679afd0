"""Arrays of a safetensors file, each read once its type and shape are what the reader says they must be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from safetensors import SafetensorError, safe_open

from graphfield.data.ranges import MAX_MAGNITUDE
from graphfield.data.saved_files import open_regular
from graphfield.data.saved_values import refuse
from graphfield.exceptions import ModelFileError

# Types that we write, and the kind of their numbers.
_KINDS = {"F64": "f", "F32": "f", "I64": "i", "I32": "i"}
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


@contextmanager
def open_arrays(path: Path) -> Iterator[SavedArrays]:
    """The arrays of a regular file. Until one is asked for with its shape, only the table is in memory."""
    open_regular(path).close()  # which refuses a pipe or a device, where the library would wait
    try:
        with safe_open(path, framework="numpy") as file:
            entries = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            yield SavedArrays(path, file, entries)
    except SafetensorError as error:
        raise ModelFileError(f"{path} is damaged: {error}. Copy it again, or write it again.").about(
            file=path
        ) from error


class SavedArrays:
    """Arrays by name; whoever reads one says what it must be."""

    def __init__(self, path: Path, file: safe_open, entries: dict[str, Any], prefix: str = "") -> None:
        self._path, self._file, self._entries, self._prefix = path, file, entries, prefix

    def below(self, prefix: str) -> SavedArrays:
        """Those whose names begin so, without it."""
        return SavedArrays(self._path, self._file, self._entries, self._prefix + prefix)

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._entries

    def n_entries(self) -> int:
        """Numbers in all of them together."""
        own = (entry for name, entry in self._entries.items() if name.startswith(self._prefix))
        return sum(math.prod(entry.get_shape()) for entry in own)

    def refuse(self, name: str, expected: str, got: str) -> None:
        refuse(str(self._path), self._prefix + name, expected, got)

    def check_shape(self, name: str, shape: Shape, dtype: DTypeLike = np.float64) -> None:
        """Raise unless the file has it, in this shape and kind of numbers (of any precision)."""
        if name not in self:
            self.refuse(name, "there", "nothing")
        entry, kind = self._entries[self._prefix + name], np.dtype(dtype).kind
        found, there = tuple(entry.get_shape()), entry.get_dtype()
        if _KINDS.get(there) != kind:
            self.refuse(name, "whole numbers" if kind == "i" else "floating point numbers", there)
        if len(shape) != len(found) or not all(map(_fits, found, shape)):
            self.refuse(name, f"of shape ({', '.join(map(str, shape))})", str(found))

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
        array = self._file.get_tensor(self._prefix + name).astype(dtype, copy=False)
        inside = np.isfinite(array) & (array >= low) & (array <= high)
        if above:
            inside &= array > low
        if nan:
            inside |= np.isnan(array)
        if not inside.all():
            bounds = "" if low == -np.inf and high == np.inf else f" from {low:g} to {high:g}"
            self.refuse(name, f"finite numbers{bounds}", f"{array[~inside].flat[0]!s}")
        return array

    def read_means(self, name: str, shape: Shape) -> NDArray:
        """Of nodes, in their units, on features of z: errors of predictions are squared."""
        return self.read(name, shape, low=-MAX_MAGNITUDE, high=MAX_MAGNITUDE)

    def read_coefficients(
        self, name: str, shape: tuple[int, ...], most: float = MAX_COEFFICIENT, dtype: DTypeLike = np.float64
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
