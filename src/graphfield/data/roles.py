"""Which column of a table is a node, a covariate, or the group that keeps rows together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd

from graphfield.data.frames import as_frame
from graphfield.data.tables import read_table
from graphfield.exceptions import DataError, DataWarning, listing, suggestion


@dataclass(frozen=True)
class TableData:
    """A table split by role: ready for ``fit(data.X, data.Z, groups=data.groups)``."""

    X: pd.DataFrame
    Z: pd.DataFrame
    groups: pd.Series | None
    unused: list[str]


def from_table(
    table: Any,
    covariates: Sequence[str],
    nodes: Sequence[str] | None = None,
    group: str | None = None,
) -> TableData:
    """Split a table by role.

    Parameters
    ----------
    table : frame or path
        A pandas or polars frame, or a CSV, TSV, Parquet or NPZ file.
    covariates : sequence of str
        Column names, or patterns such as ``"z*"``.
    nodes : sequence of str, optional
        Column names or patterns such as ``"roi_*"``. By default every other numeric column.
    group : str, optional
        Column whose equal values (one subject, one site) are never split between training and
        held-out rows.

    Examples
    --------
    >>> table = pd.DataFrame({"a": [1., 2.], "b": [2., 1.], "age": [60, 61], "id": ["s1", "s2"]})
    >>> data = from_table(table, covariates=["age"], group="id")
    >>> list(data.X.columns), list(data.Z.columns)
    (['a', 'b'], ['age'])
    """
    frame = read_table(table) if isinstance(table, (str, Path)) else as_frame(table, "table").values
    frame = as_frame(frame, "table").values
    names = list(frame.columns)
    z_names = _resolve(covariates, names, "covariate")
    group_names = _resolve([group], names, "group") if group is not None else []
    x_names = (
        _resolve(nodes, names, "node")
        if nodes is not None
        else _other_numeric(frame, {*z_names, *group_names})
    )
    _check_disjoint(x_names, z_names, group_names)
    used = {*x_names, *z_names, *group_names}
    return TableData(
        X=frame[x_names],
        Z=frame[z_names],
        groups=frame[group_names[0]] if group_names else None,
        unused=[name for name in names if name not in used],
    )


def _resolve(wanted: Sequence[str], names: list[str], role: str) -> list[str]:
    if isinstance(wanted, str):
        wanted = [wanted]
    if not wanted:
        raise DataError(f"Name at least one {role} column. The table has {listing(names)}.")
    found: list[str] = []
    for pattern in wanted:
        matches = [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]
        if not matches:
            raise DataError(
                f"The table has no column {pattern!r} for a {role}.{suggestion(pattern, names)} "
                f"It has {listing(names)}."
            )
        found += [name for name in matches if name not in found]
    return found


def _other_numeric(frame: pd.DataFrame, taken: set[str]) -> list[str]:
    names = [
        name
        for name in frame.columns
        if name not in taken
        and pd.api.types.is_numeric_dtype(frame[name])
        and not pd.api.types.is_bool_dtype(frame[name])
    ]
    names = [name for name in names if not name.startswith("Unnamed: ")]  # a saved pandas index
    suspicious = [name for name in names if _looks_like_identifier(frame[name])]
    if suspicious:
        warnings.warn(
            f"Column {listing(suspicious)} looks like an identifier but is used as a node. Name the "
            "nodes, or make it the group, to leave it out.",
            DataWarning,
            stacklevel=3,
        )
    if not names:
        raise DataError("No numeric column is left for the nodes. Name them with nodes.")
    return names


def _looks_like_identifier(column: pd.Series) -> bool:
    """Whole numbers in rising order, as row numbers and subject codes are."""
    whole = pd.api.types.is_integer_dtype(column)
    return bool(whole and column.is_monotonic_increasing and column.nunique() > 10)


def _check_disjoint(nodes: list[str], covariates: list[str], group: list[str]) -> None:
    both = [name for name in nodes if name in covariates]
    if both:
        raise DataError(f"{listing(both)}: a column is a node or a covariate, not both.")
    if group and group[0] in covariates:
        raise DataError(f"{group[0]!r}: the group column cannot be a covariate too.")
    if group and group[0] in nodes:
        raise DataError(f"{group[0]!r}: the group column cannot be a node too.")
