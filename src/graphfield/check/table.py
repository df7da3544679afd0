"""A look at the data before a fit: what each column is taken for, what is changed, what looks wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.check.covariates import covariate_findings
from graphfield.check.filled_in import gap_findings, lost_row_findings
from graphfield.check.findings import LEAK, Column, DataCheck, Finding
from graphfield.check.gaps import missing_findings, rows_with_gaps
from graphfield.check.nodes import IDENTIFIER, node_findings
from graphfield.check.relations import new_relations
from graphfield.check.row_order import effects_of_covariates
from graphfield.check.rows import group_findings, missing_group_findings, row_findings
from graphfield.check.size import SPARE_ROWS, size_findings
from graphfield.check.values import date_number_findings, missing_codes, unused_findings
from graphfield.data.covariates import OTHER
from graphfield.data.dates import date_text, is_date, to_days
from graphfield.data.frames import Frame, as_frame, check_roles_disjoint, check_same_length
from graphfield.data.level_text import as_text, level_order
from graphfield.data.missing import POLICIES, bad_entries, dropped_unlabelled, what_is_done
from graphfield.exceptions import DataError, check_choice, count, first_few, listing
from graphfield.messages import move_rows

# Rows that are looked at where all would take long, evenly spread; counts are always of all rows.
MAX_ROWS = 20_000
# So many levels of a category are listed in its note.
_LEVELS_NAMED = 6
# Whole numbers below this are shown with all digits.
_MOST_DIGITS = 1e9
# Roles of columns that a model is fitted to.
_USED = ("node", "covariate")
# Of a node's standard deviation, what covariates must leave of it.
_LEFT = 1e-6
_YES_NO = {"yes", "no", "y", "n", "true", "false", "t", "f", "0", "1"}


def check_table(
    X: Any,
    Z: Any,
    groups: Any = None,
    time: Any = None,
    *,
    missing: str = "error",
    planned: bool = True,
    rest: pd.DataFrame | None = None,
    pooled: dict[str, list[str]] | None = None,
    trimmed: dict[str, dict[str, int]] | None = None,
    typed: Collection[str] = (),
) -> DataCheck:
    """Look at nodes and covariates before a fit, and say in plain words what was found.

    Nothing is changed and nothing is fitted. It takes about a second for 26,000 rows of 22 nodes.

    Parameters
    ----------
    X, Z : tables of shape (n, p) and (n, q)
        As `fit` takes them; text and missing values are fine here.
    groups, time : sequences of length n, optional
        Which rows belong together, and when they were measured.
    missing : {"error", "drop", "impute"}
        What `fit` will be told to do with missing values; the check says what that does. With "drop" it looks
        at the rows that are left; only ``missing`` of a column counts all rows.
    planned : bool
        Whether changes are told as what a fit would do, or as done: for a fit that follows at once.
    rest : DataFrame, optional
        Columns that are not used, to find one among them that identifies subjects.
    pooled : dict, optional
        For each covariate the levels that were pooled into "other" (:func:`from_table`).
    trimmed : dict, optional
        For each column the texts that lost blanks at their ends, with their rows (:func:`from_table`).
    typed : collection of str
        Nodes that a fit will be told the types of, or ``node_types`` itself: what they are is not asked.

    Returns
    -------
    DataCheck
        ``columns``, ``changes`` and ``warnings``; print it to read it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    >>> Z = pd.DataFrame({"age": rng.uniform(20, 80, 300), "site": ["A", "B", "C"] * 100})
    >>> print(check_data(X.assign(d=X.a * 2.54), Z))
    300 rows, 4 nodes, 2 covariates.
      nodes: 4 numbers, 'a', 'b', 'c', 'd'
      covariate 'age': number, 20.12 to 79.31
      covariate 'site': category, 3 levels (rows): 'A' 100, 'B' 100, 'C' 100
    Look: Nodes 'a', 'd' are the same up to scale. Keep one of them (drop=['d']): between copies no graph \
can tell who is connected to what.
    """
    check_choice("missing", missing, POLICIES)
    x_frame, z_frame = as_frame(X, "X"), as_frame(Z, "Z")
    check_same_length(x_frame, z_frame)
    check_roles_disjoint(x_frame, z_frame)
    n_rows = len(x_frame.values)
    if n_rows == 0:
        raise DataError("The table has no rows, so there is nothing to check.").about(argument="X")
    bad_x, bad_z = bad_entries(x_frame), bad_entries(z_frame)
    labels, moments = (_series(values, n_rows, what) for values, what in ((groups, "group"), (time, "time")))
    unused = pd.DataFrame(index=range(n_rows)) if rest is None else rest
    fitted = ~rows_with_gaps(bad_x, bad_z) if missing == "drop" else np.ones(n_rows, dtype=bool)
    unlabelled = 0
    if missing == "drop" and labels is not None:
        unlabelled = int((fitted & labels.isna().to_numpy()).sum())
        fitted &= labels.notna().to_numpy()
    rows_left_out = int((~fitted).sum())
    kept = np.flatnonzero(fitted) if fitted.any() else np.arange(n_rows)
    kinds = typed if isinstance(typed, Mapping) else {}
    columns = [
        _column(x_frame.values[name], "node", bad_x[name], kept, kinds.get(name)) for name in x_frame.names
    ]
    columns += [_column(z_frame.values[name], "covariate", bad_z[name], kept) for name in z_frame.names]
    if labels is not None:
        columns.append(_group_column(labels, kept))
    if moments is not None:
        columns.append(_column(moments, "time", moments.isna(), kept))
    columns += [_column(unused[name], "unused", unused[name].isna(), kept) for name in unused.columns]
    used = [column for column in columns if column.role in _USED]
    findings = [
        *unused_findings(unused),  # a node that is missing comes first
        *size_findings(columns, n_rows - rows_left_out, missing == "drop"),
        *missing_findings(used, bad_x, bad_z, missing),
        *(gap_findings(x_frame, z_frame, bad_x, bad_z) if missing != "drop" else ()),
        *(lost_row_findings(z_frame, bad_x, bad_z) if missing != "impute" else ()),
        *missing_group_findings(labels, missing),
        *_row_findings(
            _Table(x_frame, z_frame, bad_x, bad_z, labels, moments, unused), kept, typed, pooled or {}
        ),
    ]
    changes = []
    refused = any(column.kind == "empty" for column in used)
    if missing != "error" and not refused and any(column.missing for column in used):
        changes.append(what_is_done(x_frame, z_frame, bad_x, bad_z, missing, planned=planned))
    if unlabelled:
        changes.append(dropped_unlabelled(unlabelled, planned=planned))
    changes += [
        *_trimmed_texts(trimmed or {}),
        *_covariate_changes(columns, z_frame.values.iloc[kept], bad_z.iloc[kept], pooled or {}),
    ]
    return DataCheck(n_rows, tuple(columns), tuple(changes), tuple(findings), rows_left_out)


check_data = check_table


@dataclass(frozen=True)
class _Table:
    """What rows are looked at by."""

    X: Frame
    Z: Frame
    bad_x: pd.DataFrame
    bad_z: pd.DataFrame
    labels: pd.Series | None
    moments: pd.Series | None
    unused: pd.DataFrame

    def take(self, rows: NDArray[np.intp]) -> _Table:
        if len(rows) == len(self.bad_x):
            return self

        def own(table: Any) -> Any:
            return None if table is None else table.iloc[rows].reset_index(drop=True)

        others = map(own, (self.bad_x, self.bad_z, self.labels, self.moments, self.unused))
        return _Table(self.X.take(rows), self.Z.take(rows), *others)


def _row_findings(
    table: _Table, kept: NDArray[np.intp], typed: Collection[str], pooled: dict[str, list[str]]
) -> Iterator[Finding]:
    """What is found by looking at the rows that are kept, which messages name as in the whole table."""
    own = table.take(kept)
    X, Z, bad_x, bad_z = own.X, own.Z, own.bad_x, own.bad_z
    rows = np.linspace(0, len(kept) - 1, min(len(kept), MAX_ROWS)).round().astype(np.intp)
    nodes = _filled_nodes(X, bad_x)
    empty = [name for name in X.names if bad_x[name].all()]
    coded = _coded_numbers(X, bad_x, Z, bad_z)
    of_nodes = list(node_findings(X, nodes, bad_x, empty, rows, typed, coded))
    ids = {name for one in of_nodes if one.code == IDENTIFIER for name in one.columns}
    of_covariates = list(covariate_findings(Z, bad_z, nodes, bad_x, rows, pooled, own.labels, coded))
    leaks = [one.columns for one in of_covariates if one.code == LEAK]
    found = [
        *of_nodes,
        *of_covariates,
        *date_number_findings(_numbers_by_role(X, Z, own.moments)),
        *group_findings(own.labels),
        *(_relations_given(Z, bad_x, bad_z, nodes, rows) if own.labels is None else ()),
        *row_findings(X, Z, bad_x, bad_z, nodes, own.labels, own.moments, own.unused, ids, leaks),
    ]
    places = kept.tolist()
    yield from (replace(one, message=move_rows(one.message, places)) for one in found)


def _relations_given(
    Z: Frame, bad_x: pd.DataFrame, bad_z: pd.DataFrame, nodes: pd.DataFrame, rows: NDArray[np.intp]
) -> Iterator[Finding]:
    """Nodes that follow from others and the covariates, which models and tests take out of them."""
    bad = np.hstack([bad_x[list(nodes.columns)].to_numpy(dtype=bool), bad_z.to_numpy(dtype=bool)])
    known = np.asarray(~bad.any(axis=1))
    rows = rows[known[rows]]
    design, values = effects_of_covariates(Z, bad_z, len(nodes))[rows], nodes.to_numpy()[rows]
    if not Z.names or len(rows) <= design.shape[1] + values.shape[1] + SPARE_ROWS:
        return
    left = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    varies = left.std(axis=0) > _LEFT * values.std(axis=0)  # else a covariate says it all
    names = [name for name, own in zip(nodes.columns, varies, strict=True) if own]
    yield from new_relations("Given the covariates", names, values[:, varies], left[:, varies])


def _coded_numbers(X: Frame, bad_x: pd.DataFrame, Z: Frame, bad_z: pd.DataFrame) -> set[float]:
    """Numbers that stand for "missing" in some column."""
    present = (
        frame.values[name][~bad[name].to_numpy()]
        for frame, bad in ((X, bad_x), (Z, bad_z))
        for name in frame.names
    )
    numbers = (own for own in present if len(own) and pd.api.types.is_numeric_dtype(own))
    return {code for own in numbers for code in missing_codes(_floats(own))}


def _numbers_by_role(X: Frame, Z: Frame, moments: pd.Series | None) -> Iterator[tuple[str, pd.Series]]:
    yield from (("node", X.values[name]) for name in X.names)
    yield from (("covariate", Z.values[name]) for name in Z.names)
    if moments is not None and moments.name not in Z.names:
        yield "time", moments


def _series(values: Any, n_rows: int, what: str) -> pd.Series | None:
    if values is None:
        return None
    series = values if isinstance(values, pd.Series) else pd.Series(np.asarray(values, dtype=object))
    series = series.infer_objects().reset_index(drop=True).rename(str(series.name or what))
    if len(series) != n_rows:
        raise DataError.of(what, f"must hold one value per row of X ({n_rows:,}), got {len(series):,}.")
    return series


def _column(
    column: pd.Series, role: str, bad: pd.Series, kept: NDArray[np.intp], told: str | None = None
) -> Column:
    """Kind, counts and a few words about the values of one column; what is missing is counted in all rows.

    Of a node with a type the kind is what was ``told``, if that is no number.
    """
    present = column.iloc[kept][~bad.to_numpy()[kept]]
    kind = column_kind(present, role)
    shown = kind if kind == "empty" or told in (None, "gaussian") else str(told)
    return Column(
        str(column.name), role, shown, int(bad.sum()), int(present.nunique()), _about(present, kind)
    )


def column_kind(present: pd.Series, role: str = "covariate") -> str:
    """What a column without its missing entries is: number, category, yes/no, date, text or empty.

    >>> column_kind(pd.Series(["2020-01-31", "2020-02-29"])), column_kind(pd.Series([True, False]))
    ('date', 'yes/no')
    """
    if len(present) == 0:
        return "empty"
    if is_date(present):
        return "date"
    if pd.api.types.is_bool_dtype(present):
        return "yes/no"
    numeric = pd.api.types.is_numeric_dtype(present)
    distinct = present.unique()
    if len(distinct) == 2 and {text.lower() for text in as_text(pd.Series(distinct))} <= _YES_NO:
        return "yes/no"
    if numeric:
        return "number"
    return "text" if role in ("node", "unused") or len(distinct) > len(present) / 2 > 10 else "category"


def _about(present: pd.Series, kind: str) -> str:
    if kind == "empty":
        return ""
    if kind == "date":
        days = to_days(present)
        return f"{date_text(days.min())} to {date_text(days.max())}"
    if kind == "number":
        return " to ".join(_number(float(end)) for end in (present.min(), present.max()))
    levels = level_order(present, set(as_text(pd.Series(present.unique()))))
    if kind == "text":
        return f"{count(len(levels), 'different text')}, such as {levels[0]!r}"
    rows = pd.Series(as_text(present)).value_counts()
    shown = first_few([f"{level!r} {rows[level]:,}" for level in levels], _LEVELS_NAMED)
    return f"{count(len(levels), 'level')} (rows): {shown}"


def _number(value: float) -> str:
    """Whole numbers with all their digits, by which people know them."""
    value += 0.0  # no -0
    return f"{value:.0f}" if value.is_integer() and abs(value) < _MOST_DIGITS else f"{value:.4g}"


def _group_column(labels: pd.Series, kept: NDArray[np.intp]) -> Column:
    present = labels.iloc[kept].dropna()
    sizes = present.value_counts()
    few, many = int(sizes.min()), count(int(sizes.max()), "row")
    note = f"{count(len(sizes), 'group')} of " + (many if few == sizes.max() else f"{few:,} to {many}")
    kind = column_kind(present, "covariate")
    return Column(str(labels.name), "group", kind, int(labels.isna().sum()), len(sizes), note)


def _filled_nodes(X: Frame, bad: pd.DataFrame) -> pd.DataFrame:
    """Node columns that hold numbers, as floats with the median in place of what is missing."""
    columns = {}
    for name in X.names:
        column, gaps = X.values[name], bad[name].to_numpy()
        if gaps.all() or not _holds_numbers(column[~gaps]):
            continue
        values = _floats(column)
        if gaps.any():
            values = np.where(gaps, np.median(values[~gaps]), values)
        columns[name] = values
    return pd.DataFrame(columns, index=range(len(bad)))


def _holds_numbers(present: pd.Series) -> bool:
    if pd.api.types.is_numeric_dtype(present) or pd.api.types.is_bool_dtype(present):
        return not pd.api.types.is_complex_dtype(present)
    return bool(present.astype(object).map(lambda value: isinstance(value, (int, float, np.number))).all())


def _floats(column: pd.Series) -> NDArray[np.float64]:
    if column.dtype == object:
        column = pd.to_numeric(column, errors="coerce")
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _trimmed_texts(trimmed: dict[str, dict[str, int]]) -> Iterator[str]:
    for name, texts in trimmed.items():
        rows = count(sum(texts.values()), "row")
        yield f"Column {name!r}: blanks at the ends of {listing(texts)} are removed ({rows})."


def _covariate_changes(
    columns: list[Column], Z: pd.DataFrame, bad: pd.DataFrame, pooled: dict[str, list[str]]
) -> list[str]:
    """What is done to covariates on the way into a model."""
    changes = []
    for column in columns:
        if column.role != "covariate":
            continue
        if column.kind == "date" and column.distinct > 1:
            first = np.floor(to_days(Z[column.name][~bad[column.name].to_numpy()]).min())
            changes.append(
                f"Covariate {column.name!r} is taken as a date and enters as days since 1970-01-01; ask for "
                f"a graph at a date, such as {date_text(first)}."
            )
    for name, levels in pooled.items():
        changes.append(f"Covariate {name!r}: {listing(levels)} pooled into {OTHER!r} (few rows).")
    return changes
