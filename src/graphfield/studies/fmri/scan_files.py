"""A folder with one file of time series per subject, as time x regions arrays."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphfield.exceptions import DataError, ParameterError, listing

SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".1D", ".txt")
_ID = "{id}"
_MISSING = ("", "nan", "na", "n/a")


@dataclass(frozen=True)
class Scan:
    """The time series of one subject, (time, regions), and names of the regions where the file has them."""

    values: NDArray[np.float64]
    names: list[str] | None


def read_folder(folder: str | Path, pattern: str | None = None) -> dict[str, Scan]:
    """Subject to time series, for every file of the folder that the pattern fits.

    A pattern is the name of a file (or path below the folder) with ``{id}`` where the subject is and ``*``
    for anything: ``"NYU_{id}_rois_cc200.1D"``, ``"sub-{id}/func/*_timeseries.tsv"``. By default every file
    with a known ending, and the subject is the name without the ending.
    """
    folder = Path(folder)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise DataError(f"Expected a folder with one file per subject, but {str(folder)!r} {what}.").about(
            file=str(folder)
        )
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*") if pattern and "/" in pattern else folder.iterdir()):
        subject = _subject(path.relative_to(folder).as_posix(), pattern) if path.is_file() else None
        if subject is None:
            continue
        if subject in found:
            raise DataError(
                f"Subject {subject!r} has two files: {found[subject].name!r} and {path.name!r}. Keep one, or "
                "say by a pattern with {id} which files count."
            ).about(file=str(path))
        found[subject] = path
    if not found:
        wanted = f"that fits {pattern!r}" if pattern else f"ending in {', '.join(SUFFIXES)}"
        there = [path.name for path in sorted(folder.iterdir())]
        held = f"it holds {listing(there, most=3)}" if there else "it is empty"
        raise DataError(f"{str(folder)!r} has no file {wanted}; {held}.").about(file=str(folder))
    return {subject: read_scan(path) for subject, path in found.items()}


def _subject(name: str, pattern: str | None) -> str | None:
    """The subject that a file belongs to; None where the pattern does not fit."""
    if pattern is None:
        path = Path(name)
        known = path.suffix in SUFFIXES and not path.name.startswith(".")
        return path.stem if known else None
    if pattern.count(_ID) < 1:
        raise ParameterError.of("pattern", f"must have {_ID} where the subject is, got {pattern!r}.")
    if not fnmatchcase(name, pattern.replace(_ID, "*")):
        return None
    parts = [re.escape(part).replace(r"\*", "[^/]*") for part in pattern.split(_ID)]
    expression = parts[0] + "(?P<id>[^/]+?)" + "(?P=id)".join(parts[1:])
    match = re.fullmatch(expression, name)
    return match["id"] if match else None


def read_scan(path: Path) -> Scan:
    """One file; its kind follows from the ending."""
    if path.suffix not in _READERS:
        raise DataError(
            f"{str(path)!r} is no time series: expected a name ending in {', '.join(SUFFIXES)}."
        ).about(file=str(path))
    try:
        scan = _READERS[path.suffix](path)
    except DataError as error:
        error.about(file=str(path))
        raise
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{str(path)!r} cannot be read as {path.suffix[1:]}: {first_line}").about(
            file=str(path)
        ) from error
    return scan


def _read_npy(path: Path) -> Scan:
    return Scan(_numbers(np.load(path, allow_pickle=False), path), None)


def _read_npz(path: Path) -> Scan:
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    matrices = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "fiu"]
    if len(matrices) != 1:
        raise DataError(
            f"{str(path)!r} must hold one two-dimensional array (time x regions), but it has "
            f"{listing(matrices) if matrices else 'none'}. Save the time series alone."
        )
    values = _numbers(arrays[matrices[0]], path)
    named = [a for a in arrays.values() if a.dtype.kind == "U" and a.shape == (values.shape[1],)]
    return Scan(values, [str(name) for name in named[0]] if len(named) == 1 else None)


def _read_text(path: Path, separator: str) -> Scan:
    """Numbers with or without a line of names above; AFNI and C-PAC put a # before these."""
    with path.open(encoding="utf-8-sig") as file:
        lines = [line for line in (raw.rstrip("\r\n") for raw in file) if line.strip()]
    comments = [line for line in lines if line.lstrip().startswith("#")]
    body = [line for line in lines if not line.lstrip().startswith("#")]
    if not body:
        raise DataError(f"{str(path)!r} holds no numbers.")
    rows = [_cells(line, separator) for line in body]
    names: list[str] | None = None
    if _is_header(rows[0]):
        names, rows = rows[0], rows[1:]
    elif comments:
        names = [cell.lstrip("#").strip() for cell in _cells(comments[-1], separator)]
    widths = {len(row) for row in rows}
    if len(widths) != 1:
        found = f"lines with {min(widths)} and with {max(widths)} numbers" if rows else "names and no numbers"
        raise DataError(f"{str(path)!r} must hold a table of numbers, but it has {found}.")
    values = _parsed(rows, path)
    if names and len(names) == values.shape[1] and names[0] in ("", "Unnamed: 0"):
        names, values = names[1:], values[:, 1:]  # the row numbers that pandas writes
    fits = names is not None and len(names) == values.shape[1]
    return Scan(_numbers(values, path), names if fits else None)


def _cells(line: str, separator: str) -> list[str]:
    parts = line.split(separator) if separator else line.split()
    return [part.strip().strip('"') for part in parts]


def _is_header(cells: list[str]) -> bool:
    """Text, or the column numbers that pandas writes where there are no names."""
    if any(not _is_number(cell) for cell in cells):
        return True
    return any(cells == [str(i) for i in range(first, first + len(cells))] for first in (0, 1))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell.lower() in _MISSING[1:]
    return True


def _parsed(rows: list[list[str]], path: Path) -> NDArray[np.float64]:
    try:
        return np.array(rows, dtype=np.float64)
    except ValueError:
        wrong = dict.fromkeys(
            cell for row in rows for cell in row if cell.lower() not in _MISSING and not _is_number(cell)
        )
    if wrong:
        raise DataError(f"{str(path)!r} must hold numbers, but it has {listing(wrong, most=3)}.")
    return np.array([["nan" if c.lower() in _MISSING else c for c in row] for row in rows], dtype=np.float64)


def _numbers(array: NDArray, path: Path) -> NDArray[np.float64]:
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise DataError(
            f"{str(path)!r} must hold a two-dimensional array of numbers (time x regions), got shape "
            f"{array.shape} of {array.dtype}."
        )
    return np.asarray(array, dtype=np.float64)


_READERS: dict[str, Callable[[Path], Scan]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": lambda path: _read_text(path, ","),
    ".tsv": lambda path: _read_text(path, "\t"),
    ".1D": lambda path: _read_text(path, ""),
    ".txt": lambda path: _read_text(path, ""),
}
