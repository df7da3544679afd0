"""Which column of a table is a node, a covariate, or the group that keeps rows together."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.covariate_text import trim_text
from graphfield.data.covariates import OTHER
from graphfield.data.dates import is_date, read_dates, to_days
from graphfield.data.frames import Frame, as_frame, check_numeric, with_columns
from graphfield.data.identifiers import find_identifiers
from graphfield.data.level_text import as_text
from graphfield.data.missing import handle_missing
from graphfield.data.rare_levels import pool_counted
from graphfield.data.reading import Reading, ReadOptions
from graphfield.data.sources import Source
from graphfield.data.tables import read_file
from graphfield.exceptions import (
    DataError,
    DataWarning,
    agreed,
    count,
    listing,
    named,
    suggestion,
)
from graphfield.messages import Argument, Message, Row

_FOR_NODE = "for a node"


@dataclass(frozen=True, repr=False)
class TableData:
    """A table split by role: ready for ``fit(data.X, data.Z, groups=data.groups)``.

    ``unused`` names the columns that are left over, ``dropped`` those of them that were to be left out, and
    ``rest`` holds them. ``pooled`` says for each covariate which of its levels were pooled into "other";
    ``trimmed`` which texts lost blanks at their ends, with their rows; ``reading`` how a file was read, and
    ``dates`` how dates were written in columns where that is not plain to see.
    """

    X: pd.DataFrame
    Z: pd.DataFrame
    groups: pd.Series | None
    unused: list[str]
    time: pd.Series | None = None
    rest: pd.DataFrame = field(default_factory=pd.DataFrame)
    pooled: dict[str, list[str]] = field(default_factory=dict)
    trimmed: dict[str, dict[str, int]] = field(default_factory=dict)
    reading: Reading | None = None
    dates: dict[str, str] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.Z)

    def __repr__(self) -> str:
        lines = [count(len(self), "row")]
        if self.reading is not None and self.reading.words():
            lines.append(f"  read as: {self.reading.words()}")
        roles = {"node": list(self.X.columns), "covariate": list(self.Z.columns)}
        lines += [f"  {count(len(names), role)}: {listing(names)}" for role, names in roles.items()]
        if self.groups is not None:
            lines.append(f"  group: {self.groups.name} ({self.groups.nunique():,} different)")
        if self.time is not None:
            lines.append(f"  time: {self.time.name}")
        for name, texts in self.trimmed.items():
            lines.append(f"  {name}: blanks at the ends of {listing(texts)} removed")
        for name, levels in self.pooled.items():
            lines.append(f"  {name}: {listing(levels)} pooled into {OTHER!r}")
        for name, notation in self.dates.items():
            lines.append(f"  {name}: dates as {notation}")
        if self.dropped:
            lines.append(f"  left out: {listing(self.dropped)}")
        if left := [name for name in self.unused if name not in self.dropped]:
            lines.append(f"  unused: {listing(left)}")
        return "\n".join(lines)


def from_table(
    table: Any,
    covariates: Sequence[str],
    nodes: Sequence[str] | None = None,
    group: str | None = None,
    time: str | None = None,
    rare: int | Mapping[str, int] | None = None,
    categories: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: str | None = None,
    *,
    sep: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    date_format: str | None = None,
) -> TableData:
    """Split a table by role.

    Parameters
    ----------
    table : frame or path
        A pandas or polars frame, or a file as :func:`~graphfield.read_table` takes it.
    covariates : sequence of str
        Column names, or patterns such as ``"z*"``.
    nodes : sequence of str, optional
        Column names or patterns such as ``"roi_*"``, which pass over columns that have another role. By
        default every other numeric column; none (``[]``) where a model is only to be asked at the rows.
    group : str, optional
        Column whose equal values (one subject, one site) are never split between training and
        held-out rows.
    time : str, optional
        Column that says when a row was measured: dates or numbers. No node, and a covariate only if it is
        named among them too.
    rare : int or mapping, optional
        Levels of a category with fewer rows than this become one level, "other", of all covariates or of
        those that are named (``{"site": 20}``). By default none do. A model that is fitted to ``data.Z``
        knows them, and takes them as "other" when asked about them.
    categories : sequence of str
        Covariates (names or patterns) that are categories although their values are numbers, such as the
        codes of sites or the month.
    drop : sequence of str
        Columns (names or patterns) to leave out where a pattern or the default would take them; also nodes
        that are named in ``nodes``. Otherwise a column that is named for a role is not left out by a pattern.
    missing : {"error", "drop", "impute"}, optional
        What to do at once about missing values, as the estimators do it in `fit`. By default they stay, for
        `fit` to deal with; rows that are dropped here are missing in all parts.
    sep, decimal, thousands, encoding, sheet : str, optional
        How a file is to be read, where that cannot be told from it: see :func:`~graphfield.read_table`.
    date_format : {"dd/mm/yyyy", "mm/dd/yyyy", "yyyymmdd", "yymmdd"}, optional
        How covariates and the time column write dates, where 03/04/2020 may be two of them, or where whole
        numbers such as 20200401 or 200401 are dates.

    Examples
    --------
    >>> table = pd.DataFrame({"a": [1., 2.], "b": [2., 1.], "age": [60, 61], "id": ["s1", "s2"]})
    >>> data = from_table(table, covariates=["age"], group="id")
    >>> list(data.X.columns), list(data.Z.columns)
    (['a', 'b'], ['age'])
    >>> data
    2 rows
      2 nodes: 'a', 'b'
      1 covariate: 'age'
      group: id (2 different)
    """
    covariates, categories, drop = _listed(covariates), _listed(categories), _listed(drop)
    by_name = {name for given in (covariates, nodes, group, time) for name in _listed(given)}
    numbers = [name for name in by_name if not any(fnmatchcase(name, pattern) for pattern in categories)]
    options = ReadOptions(
        sep, decimal, thousands, encoding, sheet, (*categories, *drop), maybe_numbers=tuple(numbers)
    )
    frame, reading = _read(table, options, by_name)
    names = list(frame.columns)
    dropped = _dropped(drop, names, by_name)
    z_names = _resolve(covariates, names, "for a covariate", dropped)
    group_names = _resolve([group], names, "for a group", dropped) if group is not None else []
    time_names = _resolve([time], names, "for a time", dropped) if time is not None else []
    taken = {*z_names, *group_names, *time_names}
    x_names = (
        _node_names(_listed(nodes), names, dropped, taken)
        if nodes is not None
        else _other_numeric(frame, {*taken, *dropped})
    )
    _check_disjoint(x_names, z_names, group_names, time_names)
    used = {*x_names, *z_names, *group_names, *time_names}
    unused = [name for name in names if name not in used]
    as_categories = _resolve(categories, z_names, "for a category") if categories else []
    frame, trimmed = trim_text(frame, list(dict.fromkeys([*z_names, *group_names, *time_names])))
    maybe_dates = [name for name in dict.fromkeys([*z_names, *time_names]) if name not in as_categories]
    frame, dates = read_dates(frame, maybe_dates, date_format)
    Z = _with_categories(frame[z_names], as_categories)
    X = frame[x_names]
    Z, pooled = (Z, {}) if rare is None else pool_counted(X, Z, rare, missing)
    if time_names:
        time_values(frame[time_names[0]])
    if missing is not None:
        check_numeric(Frame(X, True))
        kept_x, kept_z, rows = handle_missing(Frame(X, True), Frame(Z, True), missing)
        X, Z, frame = kept_x.values, kept_z.values, frame.iloc[rows].reset_index(drop=True)
    return TableData(
        X=X,
        Z=Z,
        groups=frame[group_names[0]] if group_names else None,
        unused=unused,
        time=frame[time_names[0]] if time_names else None,
        rest=frame[unused],
        pooled=pooled,
        trimmed=trimmed,
        reading=reading,
        dates=dates,
        dropped=dropped,
    )


def _read(table: Any, options: ReadOptions, by_name: set[str]) -> tuple[pd.DataFrame, Reading | None]:
    """The table with names that are text, and how it was read if it is a file."""
    if isinstance(table, (str, Path, Source)):
        file = read_file(table, options)
        return as_frame(_lists_as_text(file.frame, by_name), "table").values, file.reading
    options.refuse("a table in memory", ("sep", "decimal", "thousands", "encoding", "sheet"))
    return as_frame(table, "table").values, None


def _lists_as_text(frame: pd.DataFrame, by_name: set[str]) -> pd.DataFrame:
    """Columns of lists, as Parquet may have them, as text where they have no role: they can have none."""
    lists = [
        name
        for name, column in frame.items()
        if column.dtype == object and str(name) not in by_name and pd.api.types.is_list_like(_first(column))
    ]
    return with_columns(frame, {name: frame[name].map(str) for name in lists})


def _first(column: pd.Series) -> object:
    known = column.dropna()
    return known.iloc[0] if len(known) else None


def _with_categories(Z: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Z with some columns as categories of text, missing entries left as they are."""
    text = {
        name: pd.Series(as_text(Z[name]), index=Z.index).where(Z[name].notna(), None).astype("category")
        for name in names
        if not isinstance(Z[name].dtype, pd.CategoricalDtype)
    }
    return with_columns(Z, text)


def time_values(column: pd.Series) -> NDArray[np.float64]:
    """When each row was measured, as numbers; dates in days."""
    missing = int(column.isna().sum())
    if missing:
        raise DataError(
            f"Time column {column.name!r} has {missing:,} missing values. Leave these rows out."
        ).about(column=column.name)
    if is_date(column):
        return to_days(column)
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    if not np.isfinite(numbers).all() or pd.api.types.is_bool_dtype(column):
        row = int(np.argmin(np.isfinite(numbers)))
        raise DataError(
            "Time column {column!r} must hold dates (such as 2020-03-01) or numbers, but {row} holds "
            "{value!r}.",
            column=column.name,
            row=Row(row),
            value=column.iloc[row],
        )
    return numbers


def _listed(given: str | Sequence[str] | None) -> list[str]:
    return [] if given is None else [given] if isinstance(given, str) else list(given)


def _dropped(drop: Sequence[str], names: list[str], by_name: set[str]) -> list[str]:
    """Columns to leave out; patterns pass over those that are given a role by their name."""
    found = _resolve(drop, names, "to leave out") if drop else []
    return [name for name in found if name in drop or name not in by_name]


def _resolve(wanted: Sequence[str], names: list[str], role: str, dropped: Sequence[str] = ()) -> list[str]:
    """Columns that names and patterns stand for; patterns pass over those that are dropped."""
    if not wanted:
        raise DataError(f"Name at least one column {role}. The table has {listing(names)}.").about(role=role)
    found: list[str] = []
    for pattern in wanted:
        matches = [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]
        if not matches:
            raise DataError(
                f"The table has no column {pattern!r} {role}.{suggestion(pattern, names)} It has "
                f"{listing(names)}."
            ).about(column=pattern)
        if pattern in dropped and role != _FOR_NODE:  # a list of nodes is shortened
            raise DataError(
                "{column!r}: a column cannot be left out ({drop}) and be named {role}.",
                column=pattern,
                drop=Argument("drop"),
                role=role,
            )
        found += [name for name in matches if name not in found and name not in dropped]
    if not found:
        raise DataError(f"No column is left {role} without {listing(dropped)}.").about(role=role)
    return found


def _node_names(wanted: list[str], names: list[str], dropped: list[str], taken: set[str]) -> list[str]:
    """Patterns pass over columns that have another role; names do not, so that they are refused."""
    if not wanted:
        return []
    found = _resolve(wanted, names, _FOR_NODE, dropped)
    left = [name for name in found if name in wanted or name not in taken]
    if not left:
        have = agreed(len(found), "has", "have")
        raise DataError(f"No column is left for a node: {listing(found)} {have} another role.").about(
            argument="nodes", column=found[0]
        )
    return left


def _other_numeric(frame: pd.DataFrame, taken: set[str]) -> list[str]:
    names = [
        name
        for name in frame.columns
        if name not in taken
        and pd.api.types.is_numeric_dtype(frame[name])
        and not pd.api.types.is_bool_dtype(frame[name])
    ]
    names = [name for name in names if not name.startswith("Unnamed: ")]  # a saved pandas index
    rising, distinct = find_identifiers(frame, names)
    suspicious = [*rising, *distinct]
    if suspicious:
        look = agreed(len(suspicious), "looks like an identifier", "look like identifiers")
        used = agreed(len(suspicious), "is used as a node", "are used as nodes")
        warnings.warn(
            Message(
                "{columns} {look} but {used}. Name the nodes, or leave out what measures nothing ({drop}).",
                columns=named("Column", suspicious),
                look=look,
                used=used,
                drop=Argument("drop"),
            ),
            DataWarning,
            stacklevel=3,
        )
    if not names:
        raise DataError(
            "No numeric column is left for the nodes. Name them with {argument}.", argument=Argument("nodes")
        )
    return names


def _check_disjoint(nodes: list[str], covariates: list[str], group: list[str], time: list[str]) -> None:
    both = [name for name in nodes if name in covariates]
    if both:
        raise DataError(f"{listing(both)}: a column is a node or a covariate, not both.").about(
            column=both[0]
        )
    if group and group[0] in covariates:
        raise DataError(f"{group[0]!r}: the group column cannot be a covariate too.").about(column=group[0])
    if group and group[0] in nodes:
        raise DataError(f"{group[0]!r}: the group column cannot be a node too.").about(column=group[0])
    if time and time[0] in nodes:
        raise DataError(f"{time[0]!r}: the time column cannot be a node too.").about(column=time[0])
