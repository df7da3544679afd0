"""CSV, TSV, Parquet and NPZ files to a pandas frame."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import DataError, MissingDependencyError, listing

TRUTH = "truth_"  # arrays of an NPZ file that are no columns of the table
SUFFIXES = (".csv", ".tsv", ".parquet", ".npz")


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a table; its kind follows the file's ending.

    An NPZ file is read column-wise: a 2-D array ``A`` gives the columns named in ``A_names`` (or
    ``a1, a2, ...``), a 1-D array gives one column. Arrays of another length than the first 2-D one,
    or with more dimensions, and those called ``truth_...`` (the known answer in the output of
    ``graphfield simulate``) are no columns.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{path.name!r} is not a table: expected a name ending in {', '.join(SUFFIXES)}.")
    if path.is_dir():
        raise DataError(f"{str(path)!r} is a folder. Name the table in it.")
    if not path.is_file():
        raise DataError(f"There is no file {str(path)!r}.")
    if path.stat().st_size == 0:
        raise DataError(f"{str(path)!r} is empty. Expected a header line and one row per sample.")
    try:
        frame = _READERS[suffix](path)
    except (DataError, MissingDependencyError):
        raise
    except UnicodeDecodeError as error:
        raise DataError(
            f"{str(path)!r} cannot be read as {suffix[1:]}: it is not UTF-8 text. Save it as UTF-8."
        ) from error
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{str(path)!r} cannot be read as {suffix[1:]}: {first_line}") from error
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise DataError(f"{str(path)!r} holds no data: {frame.shape[0]} rows and {frame.shape[1]} columns.")
    return frame


def read_pairs(path: str | Path, first: str, second: str) -> dict[str, str]:
    """The first two columns of a table, what they hold being called so: each ``first`` has one ``second``."""
    table = read_table(path)
    if table.shape[1] < 2:
        raise DataError(f"{str(path)!r} must have two columns, {first} and {second}, got {table.shape[1]}.")
    keys, values = table.iloc[:, 0], table.iloc[:, 1]
    if keys.isna().any() or values.isna().any():
        raise DataError(f"{str(path)!r} has empty cells in its first two columns, {first} and {second}.")
    names = [str(name) for name in keys]
    again = sorted({name for name in names if names.count(name) > 1})
    if again:
        raise DataError(f"{str(path)!r} must name each {first} once, but has {listing(again)} again.")
    return dict(zip(names, [str(value) for value in values], strict=True))


def check_described(
    described: Mapping[str, str], names: Sequence[str], option: str, path: str | Path, first: str, second: str
) -> None:
    """Raise unless the table of ``option``, from :func:`read_pairs`, has a ``second`` for all these names.

    It may well be another table, so its columns are in the message.
    """
    lacking = [name for name in names if name not in described]
    if not lacking:
        return
    columns = listing(read_table(path).columns)
    raise DataError(
        f"{option}: {str(path)!r} must have the columns {first} and {second} with a row for every {first}, "
        f"but it lacks {listing(lacking, most=5)}. Its columns are {columns}, and it names "
        f"{listing(described, most=5)}."
    )


def _read_text(path: Path, separator: str) -> pd.DataFrame:
    # Duplicate names must reach us as they are: pandas would rename the second one silently.
    header = pd.read_csv(path, sep=separator, nrows=1, header=None, dtype=str)
    names = [str(name) for name in header.iloc[0]]
    repeated = sorted({name for name in names if names.count(name) > 1 and name != "nan"})
    if repeated:
        raise DataError(f"{str(path)!r} has more than one column called {listing(repeated)}. Rename them.")
    if len(names) == 1 and any(mark in names[0] for mark in ";\t,|"):
        raise DataError(
            f"{str(path)!r} has one column called {_shortened(names[0])!r}: its separator is another one. "
            "Save it with commas, or with tabs and the ending .tsv."
        )
    return pd.read_csv(path, sep=separator)


def _shortened(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:37]}..."


def _read_csv(path: Path) -> pd.DataFrame:
    return _read_text(path, ",")


def _read_tsv(path: Path) -> pd.DataFrame:
    return _read_text(path, "\t")


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "Parquet files need the package pyarrow: pip install 'graphfield[parquet]'."
        ) from error
    return pd.read_parquet(path)


def _read_npz(path: Path) -> pd.DataFrame:
    if not zipfile.is_zipfile(path):
        raise DataError(f"{str(path)!r} cannot be read as npz: it is not an NPZ archive.")
    with np.load(path, allow_pickle=False) as archive:
        names = [name for name in archive.files if not name.startswith(TRUTH)]
        arrays = {name: archive[name] for name in names}
    matrices = {k: a for k, a in arrays.items() if a.ndim == 2 and not k.endswith("_names")}
    if not matrices:
        raise DataError(
            f"{str(path)!r} has no 2-D array. Expected, for example, X (samples x nodes) and Z "
            f"(samples x covariates); found {sorted(arrays)}."
        )
    length = len(next(iter(matrices.values())))
    columns: dict[str, NDArray] = {}
    for key, array in arrays.items():
        if key.endswith("_names") or array.shape[:1] != (length,) or array.ndim > 2:
            continue
        for name, column in _npz_columns(key, array, arrays.get(f"{key}_names")):
            if name in columns:
                raise DataError(f"{str(path)!r} has more than one column called {name!r}.")
            columns[name] = column
    return pd.DataFrame(columns)


def _npz_columns(key: str, array: NDArray, names: NDArray | None) -> list[tuple[str, NDArray]]:
    if array.ndim == 1:
        return [(key, array)]
    labels = (
        [str(name) for name in names]
        if names is not None and len(names) == array.shape[1]
        else [f"{key.lower()}{i + 1}" for i in range(array.shape[1])]
    )
    return list(zip(labels, array.T, strict=True))


_READERS = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".parquet": _read_parquet,
    ".npz": _read_npz,
}
