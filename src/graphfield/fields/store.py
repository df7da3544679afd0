"""Arrays for a page: one run of bytes as base64, and where in it each array lies."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Typed arrays of a browser want to start at multiples of their item size.
_ALIGN = 8


class Store:
    """Collects arrays; large ones are kept as ``kind``, the others as float32 or int32.

    "int16" keeps numbers as multiples of their largest size / 32767.

    >>> store = Store("int16")
    >>> store.add(np.array([0.5, -1.0]), large=True)
    {'type': 'int16', 'start': 0, 'length': 2, 'unit': 3.051850947599719e-05}
    >>> store.text()
    'AEABgAAAAAA='
    """

    def __init__(self, kind: str = "float32") -> None:
        self.kind = kind
        self._blocks: list[bytes] = []
        self._length = 0

    def add(self, array: NDArray, *, large: bool = False) -> dict[str, Any]:
        values = np.asarray(array)
        entry: dict[str, Any] = {"type": "int32" if values.dtype.kind in "iu" else "float32"}
        if large and values.dtype.kind == "f":
            entry["type"] = self.kind
        entry |= {"start": self._length, "length": int(values.size)}
        if entry["type"] == "int16":
            entry["unit"] = _unit(values)
            values = np.rint(values / entry["unit"])
        data = np.ascontiguousarray(values, dtype=np.dtype(entry["type"]).newbyteorder("<")).tobytes()
        self._blocks.append(data + bytes(-len(data) % _ALIGN))
        self._length += len(self._blocks[-1])
        return entry

    def text(self) -> str:
        return base64.b64encode(b"".join(self._blocks)).decode("ascii")


def rounded(array: NDArray, kind: str) -> NDArray[np.float64]:
    """Numbers as they come out of a store of this kind."""
    if kind == "int16":
        unit = _unit(array)
        return np.rint(array / unit) * unit
    return array.astype(kind).astype(np.float64)


def _unit(values: NDArray) -> float:
    return float(np.abs(values).max(initial=0.0) / 32767) or 1.0
