"""Missing and infinite values: refused, dropped by row, or imputed - and said aloud."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.data.frames import Frame, has_plain_floats, node_values
from graphfield.data.nodes import row_blocks
from graphfield.exceptions import DataError, DataWarning, check_choice

POLICIES = ("error", "drop", "impute")


def handle_missing(X: Frame, Z: Frame, policy: str) -> tuple[Frame, Frame, NDArray[np.intp]]:
    """Apply ``policy`` to rows with NaN or infinity; also returns the positions of the rows kept.

    ``drop`` removes rows, ``impute`` puts the column's median (most frequent level for text) in
    place. Both warn with counts per column. Imputation pulls edges of the imputed columns towards
    zero; prefer ``drop`` where few rows are affected.
    """
    check_choice("missing", policy, POLICIES)
    rows = np.arange(len(X.values))
    if is_complete(X) and is_complete(Z):
        return X, Z, rows
    bad_x, bad_z = bad_entries(X), bad_entries(Z)
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
    return _kept(X, keep), _kept(Z, keep), rows[keep]


def _kept(frame: Frame, keep: NDArray[np.bool_]) -> Frame:
    values = frame.values.loc[keep]
    values.index = pd.RangeIndex(len(values))
    return Frame(values, frame.named)


def check_complete(X: Frame | None, Z: Frame | None) -> None:
    """At prediction every row is wanted, so nothing can be dropped: raise with the counts."""
    empty = Frame(pd.DataFrame(), named=False)
    x_frame, z_frame = X or empty, Z or empty
    if not (is_complete(x_frame) and is_complete(z_frame)):
        counts = _counts(bad_entries(x_frame), bad_entries(z_frame))
        raise DataError(
            f"NaN, missing or infinite values: {counts}. A prediction is made for "
            "every row, so drop or fill these rows first."
        )


def is_complete(frame: Frame) -> bool:
    """Whether :func:`bad_entries` would be False everywhere, found in bounded memory."""
    if not has_plain_floats(frame):
        return not any(_bad(frame.values[name]).any() for name in frame.names)
    values = node_values(frame)
    return all(np.isfinite(values[rows]).all() for rows in row_blocks(*values.shape))


def bad_entries(frame: Frame) -> pd.DataFrame:
    """True where a value is missing or infinite."""
    bad = {name: _bad(frame.values[name]) for name in frame.names}
    return pd.DataFrame(bad, index=frame.values.index)


def _bad(column: pd.Series) -> NDArray[np.bool_]:
    missing = column.isna().to_numpy()
    if pd.api.types.is_float_dtype(column):
        return missing | np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return missing
    return missing | np.array([_is_blank(value) for value in column], dtype=bool)


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
            column = node_values(Frame(filled[[name]], True))[:, 0].astype(np.float64)
            column[rows] = float(np.median(column[~rows]))
            filled[name] = column
        else:
            filled[name] = filled[name].astype(object).where(~rows, good.mode().iloc[0])
    return Frame(filled, frame.named)
