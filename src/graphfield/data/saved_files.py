"""Files that may have been damaged or replaced: read without waiting and in bounded memory, or refused."""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from graphfield.exceptions import ModelFileError

# Of a file of JSON. The names and numbers of a model take kilobytes; its arrays are another file.
MAX_JSON_BYTES = 64 * 2**20
# Lists and objects inside each other: a model inside a model takes three.
MAX_NESTING = 64
# Of a whole number: more than any seed has.
MAX_DIGITS = 100
# The name of a checksum in the object that it is of.
SEAL = "sha256"


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read; a pipe, a device or a folder is refused and never waited for."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            # It may be replaced at this moment: without O_NONBLOCK, opening a pipe waits for a writer.
            flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            file = os.fdopen(os.open(path, flags), "rb")
            mode = os.fstat(file.fileno()).st_mode
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        raise ModelFileError(f"Cannot read {path}: {getattr(error, 'strerror', error)}.").about(
            file=path
        ) from error
    if not stat.S_ISREG(mode):
        raise ModelFileError("Cannot read {file}: it is not a regular file.", file=path)
    return file


def read_regular(path: Path, most_bytes: int = MAX_JSON_BYTES) -> bytes:
    """The content of a regular file that is not larger than it may be."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise ModelFileError(f"{path} has {size:,} bytes; such a file has at most {most_bytes:,}.").about(
                file=path
            )
        try:
            return file.read(size)  # a larger number would be set aside at once
        except OSError as error:
            raise ModelFileError(f"Cannot read {path}: {error.strerror}.").about(file=path) from error


def read_json(path: Path) -> Any:
    """The JSON values of a file, see :func:`parse_json`."""
    return parse_json(read_regular(path), path)


def json_digest(values: dict[str, Any]) -> str:
    """Of the content of a JSON object; the order of names and spaces do not matter."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(values: dict[str, Any], name: str = SEAL) -> dict[str, Any]:
    """A JSON object with the checksum of all else in it under ``name``."""
    return {**values, name: json_digest(values)}


def check_seal(values: dict[str, Any], path: str | Path, name: str = SEAL) -> None:
    """Raise unless the checksum is that of all else."""
    rest = {key: value for key, value in values.items() if key != name}
    if values.get(name) != json_digest(rest):
        raise ModelFileError(
            "{file} is damaged or was edited: its checksum does not match. Copy it again from where it was "
            "written, or write it again.",
            file=path,
        )


def parse_json(content: bytes, path: Path) -> Any:
    """JSON as we write it: UTF-8, each name once, finite numbers, no deeper than a model can be."""
    try:
        values = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_each_name_once,
            parse_constant=_refuse_constant,
            parse_float=_finite_number,
            parse_int=_whole_number,
        )
        _check_inside(values)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ModelFileError(f"{path} is damaged: it is not JSON that we wrote ({why}).").about(
            file=path
        ) from error
    return values


def finite_values(value: Any) -> Any:
    """Values as JSON can hold them: NumPy's numbers as Python's, and null for what is not finite.

    >>> finite_values({"gain": float("nan"), "folds": (1, 2)})
    {'gain': None, 'folds': [1, 2]}
    """
    if isinstance(value, dict):
        return {str(name): finite_values(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_values(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_bytes(value: Any) -> bytes:
    """The content of a JSON file, as :func:`read_json` accepts it."""
    return json.dumps(finite_values(value), indent=1, allow_nan=False).encode()


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in values if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} is there twice")
    return values


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON number")


def _finite_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large a number")
    return value


def _whole_number(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a whole number has {len(text)} digits")
    return int(text)


def _check_inside(values: Any) -> None:
    """Nesting, and text that cannot be written again (half of a surrogate pair)."""
    level = [values]
    for _ in range(MAX_NESTING):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner += [*value, *value.values()]
            elif isinstance(value, list):
                inner += value
            elif isinstance(value, str):
                value.encode("utf-8")
        if not inner:
            return
        level = inner
    raise ValueError(f"more than {MAX_NESTING} lists or objects are inside each other")
