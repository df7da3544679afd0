"""Missing and infinite values: refused, dropped by row, or imputed - and said aloud."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.frames import Frame, node_values
from graphfield.exceptions import DataError, DataWarning, check_choice

POLICIES = ("error", "drop", "impute")


def handle_missing(X: Frame, Z: Frame, policy: str) -> tuple[Frame, Frame, NDArray[np.intp]]:
    """Apply ``policy`` to rows with NaN or infinity; also returns the positions of the rows kept.

    ``drop`` removes rows, ``impute`` puts the column's median (most frequent level for text) in
    place. Both warn with counts per column. Imputation pulls edges of the imputed columns towards
    zero; prefer ``drop`` where few rows are affected.
    """
    check_choice("missing", policy, POLICIES)
    bad_x, bad_z = bad_entries(X), bad_entries(Z)
    rows = np.arange(len(X.values))
    if not (bad_x.to_numpy().any() or bad_z.to_numpy().any()):
        return X, Z, rows
    counts = _counts(bad_x, bad_z)
    if policy == "error":
        raise DataError(
            f"NaN, missing or infinite values: {counts}. Use missing='drop' to leave out these "
            "rows or missing='impute' to fill them in."
        )
    if policy == "impute":
        warnings.warn(f"Imputed by median or most frequent level: {counts}.", DataWarning, stacklevel=3)
        return _imputed(X, bad_x), _imputed(Z, bad_z), rows
    keep = np.asarray(~(bad_x.to_numpy().any(axis=1) | bad_z.to_numpy().any(axis=1)))
    warnings.warn(
        f"Dropped {int((~keep).sum())} of {len(keep)} rows with missing or infinite values: {counts}.",
        DataWarning,
        stacklevel=3,
    )
    return (
        Frame(X.values.loc[keep].reset_index(drop=True), X.named),
        Frame(Z.values.loc[keep].reset_index(drop=True), Z.named),
        rows[keep],
    )


def check_complete(X: Frame | None, Z: Frame | None) -> None:
    """At prediction every row is wanted, so nothing can be dropped: raise with the counts."""
    empty = pd.DataFrame()
    bad_x = bad_entries(X) if X is not None else empty
    bad_z = bad_entries(Z) if Z is not None else empty
    if bad_x.to_numpy().any() or bad_z.to_numpy().any():
        raise DataError(
            f"NaN, missing or infinite values: {_counts(bad_x, bad_z)}. A prediction is made for "
            "every row, so drop or fill these rows first."
        )


def bad_entries(frame: Frame) -> pd.DataFrame:
    """True where a value is missing or infinite."""
    bad = {}
    for name in frame.names:
        column = frame.values[name]
        missing = column.isna().to_numpy()
        if pd.api.types.is_float_dtype(column):
            missing = missing | np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan))
        elif not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)):
            missing = missing | np.array([_is_blank(value) for value in column], dtype=bool)
        bad[name] = missing
    return pd.DataFrame(bad, index=frame.values.index)


def _is_blank(value: object) -> bool:
    """Empty text, and an infinite number among objects."""
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, float) and np.isinf(value)


def _counts(bad_x: pd.DataFrame, bad_z: pd.DataFrame) -> str:
    parts = []
    for label, bad in (("X", bad_x), ("Z", bad_z)):
        totals = bad.sum()
        for name, count in totals[totals > 0].items():
            first = int(np.argmax(bad[name].to_numpy()))
            parts.append(f"{label} column {str(name)!r} has {int(count)} (first at row {first})")
    if len(parts) > 5:
        parts = [*parts[:5], f"{len(parts) - 5} more columns"]
    return "; ".join(parts)


def _imputed(frame: Frame, bad: pd.DataFrame) -> Frame:
    filled = frame.values.copy()
    for name in frame.names:
        rows = bad[name].to_numpy()
        if not rows.any():
            continue
        good = filled[name][~rows]
        if good.empty:
            raise DataError(f"Column {name!r} has no usable value to impute from. Drop it.")
        if pd.api.types.is_numeric_dtype(filled[name]) and not pd.api.types.is_bool_dtype(filled[name]):
            column = node_values(Frame(filled[[name]], True))[:, 0]
            column[rows] = float(np.median(column[~rows]))
            filled[name] = column
        else:
            filled[name] = filled[name].astype(object).where(~rows, good.mode().iloc[0])
    return Frame(filled, frame.named)
