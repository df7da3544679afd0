"""Any container to a pandas frame, and the checks that every estimator makes of its input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from graphfield.data.containers import named_table, plain_array
from graphfield.data.text_numbers import PLAIN_NUMBERS, have_units
from graphfield.exceptions import DataError, listing
from graphfield.messages import Argument, Message, Row

_CONVERT_NODE = Message(
    "Convert the column with pandas.to_numeric, or use it as a covariate", code="convert-node"
)
# Estimators whose nodes may be levels and counts: some of those that have ``node_types``.
KIND_MODELS = Message("DNNCGM, RegGMM, TreeCGM, AutoCGM or NodewiseLasso", code="kind-models")
_LEVELS_NODE = Message(
    "Use it as a covariate, or fit {models}, whose nodes may be levels",
    code="levels-node",
    models=KIND_MODELS,
)
MIN_SAMPLES = 10
MIN_NODES = 2
# Fewer rows per node than this: edges are uncertain and few of them can be told from noise.
ROWS_PER_NODE = 10


@dataclass(frozen=True)
class Frame:
    """A table whose columns have names; ``named`` says whether the user gave them.

    ``rows`` are positions in the user's table, for messages, where its rows are not all there in their order.
    """

    values: pd.DataFrame
    named: bool
    rows: NDArray[np.intp] | None = None

    @property
    def names(self) -> list[str]:
        return list(self.values.columns)

    @property
    def floats(self) -> NDArray[np.floating] | None:
        """All values as one array, where possible a view, if all columns are float32, or all float64."""
        kinds = set(self.values.dtypes)
        plain = len(kinds) == 1 and kinds <= {np.dtype(np.float32), np.dtype(np.float64)}
        return self.values.to_numpy() if plain else None

    @property
    def places(self) -> NDArray[np.intp]:
        """The position of each row in the user's table."""
        return np.arange(len(self.values)) if self.rows is None else self.rows

    def take(self, rows: NDArray[np.intp] | slice) -> Frame:
        """The rows at these positions, counted anew."""
        return Frame(self.values.iloc[rows].reset_index(drop=True), self.named, self.places[rows])


def as_frame(data: Any, argument: str) -> Frame:
    """Array, list, tensor, pandas, polars or Arrow table to :class:`Frame`; masked values are missing.

    Columns without names are called ``x1, x2, ...`` (argument ``X``) or ``z1, z2, ...``. A frame, which one
    estimator hands on to another, stays as it is.
    """
    if isinstance(data, Frame):
        return data
    if data is None:
        raise DataError.of(
            argument,
            "is missing. Expected array-like (array or non-string sequence), got None. "
            "Pass node values as X and covariates as Z.",
        )
    table = named_table(data)
    if table is not None:
        return Frame(_plain_columns(_checked_names(table, argument), argument), named=True)
    if sparse.issparse(data):
        raise DataError.of(
            argument,
            "is a sparse matrix, and sparse input is not supported: "
            "graphs need dense node values. Use X.toarray().",
        )
    if isinstance(data, (str, Path)):
        raise DataError.of(
            argument, f"is text. Read a file first: gf.from_table({str(data)!r}, covariates=[...])."
        )
    if isinstance(data, Mapping):
        raise DataError.of(argument, f"is a mapping. Pass a table: pandas.DataFrame([{argument.lower()}]).")
    array = plain_array(data, argument)
    if array.ndim != 2 or array.dtype.kind == "c":
        raise _no_table(array, argument)
    prefix = argument[0].lower()
    names = [f"{prefix}{i + 1}" for i in range(array.shape[1])]
    try:
        frame = pd.DataFrame(array, columns=names, copy=False)
    except ValueError as error:  # dates beyond what pandas knows
        raise DataError.of(argument, f"cannot be read as a table: {error}.") from error
    if array.dtype == object:
        frame = _plain_columns(frame.infer_objects(), argument)
    return Frame(frame, named=False)


def _no_table(array: NDArray, argument: str) -> DataError:
    if array.ndim == 1:
        return DataError.of(
            argument,
            f"must be two-dimensional (samples x columns), got a 1-D sequence of length "
            f"{len(array)}. Reshape your data: {argument}.reshape(-1, 1) for one column, "
            f"{argument}.reshape(1, -1) for one sample.",
        )
    if array.ndim != 2:
        return DataError.of(
            argument,
            f"must be two-dimensional (samples x columns), got {array.ndim} dimensions "
            f"with shape {array.shape}. Reshape your data.",
        )
    return DataError(f"Complex data not supported: {argument} has dtype {array.dtype}.").about(
        argument=argument
    )


def _checked_names(frame: pd.DataFrame, argument: str) -> pd.DataFrame:
    names = [str(name) for name in frame.columns]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError.of(
            argument,
            f"has more than one column called {listing(repeated)}. Rename them: columns are matched by name.",
        )
    no_text = [name for name in names if not _is_text(name)]
    if no_text:
        raise DataError.of(argument, f"has a column name that is no valid text: {no_text[0]!r}. Rename it.")
    frame = frame.copy(deep=False)
    frame.columns = pd.Index(names)
    return frame


def _is_text(name: str) -> bool:
    """Whether a file can hold it: halves of characters cannot be written."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain_columns(frame: pd.DataFrame, argument: str) -> pd.DataFrame:
    """Columns in this machine's byte order, with one value in each cell."""
    changed = {}
    for name, kind in zip(frame.columns, frame.dtypes, strict=True):
        if isinstance(kind, np.dtype) and not kind.isnative:
            changed[name] = plain_array(frame[name].to_numpy(), argument)
        elif pd.api.types.is_object_dtype(kind) or isinstance(kind, pd.ArrowDtype):
            _check_cells(frame[name], argument)
    return with_columns(frame, changed) if changed else frame


def with_columns(frame: pd.DataFrame, columns: Mapping[Any, Any]) -> pd.DataFrame:
    """A table with these columns in place of its own, whatever they are called.

    >>> with_columns(pd.DataFrame({"self": [1]}), {"self": [2]})["self"].tolist()
    [2]
    """
    changed = frame.copy(deep=False)
    for name, values in columns.items():
        changed[name] = values
    return changed


def _check_cells(column: pd.Series, argument: str) -> None:
    for row, value in enumerate(column):
        if hasattr(value, "__len__") and not isinstance(value, (str, bytes)):
            raise DataError(
                "Each cell of {argument} must hold one value, but {row} of column {column!r} holds {value}. "
                "Spread it over columns of its own, or leave the column out.",
                argument=Argument(argument),
                row=Row(row),
                column=str(column.name),
                value=_shortened(value),
            )


def _shortened(value: object, most: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


def match_columns(frame: Frame, expected: Sequence[str], named: bool, argument: str) -> Frame:
    """Columns of ``frame`` in the order seen in ``fit``, by name where both sides have names."""
    if frame.named and named:
        missing = [name for name in expected if name not in frame.names]
        extra = [name for name in frame.names if name not in expected]
        if missing or extra:
            close = get_close_matches(missing[0], extra, n=1, cutoff=0.5) if missing else []
            hint = f" Should {close[0]!r} be called {missing[0]!r}?" if close else ""
            parts = [f"lacks {listing(missing)}"] if missing else []
            parts += [f"has unexpected {listing(extra)}"] if extra else []
            raise DataError.of(
                argument, f"must have the columns seen in fit, but it {' and '.join(parts)}.{hint}"
            )
        same_order = frame.names == list(expected)
        return frame if same_order else Frame(frame.values[list(expected)], True, frame.rows)
    if len(frame.names) != len(expected):
        raise DataError.of(
            argument,
            f"has {len(frame.names)} features, but graphfield is expecting {len(expected)} "
            f"features as input, those seen in fit: {listing(expected)}.",
        )
    renamed = frame.values.copy(deep=False)
    renamed.columns = pd.Index(list(expected))
    return Frame(renamed, True, frame.rows)


def node_values(frame: Frame) -> NDArray[np.floating]:
    """Node columns as a float array (missing entries become NaN); text is refused by column.

    A table of float32 or float64 columns alone comes as it is, where possible as a view that must not
    be written to: a copy of a long table is the largest thing that `fit` would hold. Everything else
    becomes float64.
    """
    if (floats := frame.floats) is not None:
        return floats
    values = np.empty((len(frame.values), len(frame.names)))
    for position, name in enumerate(frame.names):
        values[:, position] = _column_values(frame.values[name], name)
    return values


def check_numeric(frame: Frame) -> None:
    """What :func:`node_values` refuses is refused here, without making the array."""
    for name, kind in zip(frame.names, frame.values.dtypes, strict=True):
        if not pd.api.types.is_float_dtype(kind):
            _column_values(frame.values[name], name)


def _column_values(column: pd.Series, name: str) -> NDArray[np.float64]:
    if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)):
        return _objects_to_float(column, name)
    if pd.api.types.is_complex_dtype(column):
        raise DataError(f"Complex data not supported: node column {name!r}.").about(column=name)
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _objects_to_float(column: pd.Series, name: str) -> NDArray[np.float64]:
    """Numbers kept as objects are fine; anything else names the column, the row and the value."""
    values = np.full(len(column), np.nan)
    odd = [row for row, value in enumerate(column) if _is_no_number(value)]
    if odd:
        # One text makes text of a whole column of a file, so one that is not a number is the one to show.
        row = next((row for row in odd if not reads_as_number(column.iloc[row])), odd[0])
        readable = np.mean([reads_as_number(value) for value in column.dropna().unique()])
        raise DataError(
            "Node column {column!r} must hold numbers, but {row} holds {value}. {convert}.",
            column=name,
            row=Row(row),
            value=_shortened(column.iloc[row]),
            convert=_convert(column.dropna(), readable),
        )
    for row, value in enumerate(column):
        if value is None or value is pd.NA or value is pd.NaT:
            continue
        try:
            values[row] = float(value)
        except OverflowError:
            values[row] = np.inf
    return values


def _convert(present: pd.Series, readable: float | np.floating) -> str:
    """What to do about a node that is text, of whose values this share are numbers."""
    if readable > 0.5:
        return _CONVERT_NODE
    return PLAIN_NUMBERS if have_units(present.astype(str)) else _LEVELS_NODE


def _is_no_number(value: object) -> bool:
    return not (value is None or value is pd.NA or value is pd.NaT or is_number(value))


def is_number(value: object) -> bool:
    return isinstance(value, (Real, Decimal, np.bool_))


def reads_as_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def check_same_length(X: Frame, Z: Frame) -> None:
    if len(X.values) != len(Z.values):
        raise DataError(
            f"X and Z must describe the same samples, but X has {len(X.values)} rows and Z has "
            f"{len(Z.values)}. If rows with missing values were dropped from one table, drop them "
            "from the other too."
        ).about(argument="Z")
    if X.named and Z.named:
        check_same_order(X.values.index, Z.values.index, "X and Z")


def check_same_order(first: pd.Index, second: pd.Index, who: str) -> None:
    """Rows are paired by position; equal labels in another order are almost surely a mistake."""
    if first.equals(second) or len(first) != len(second) or first.nlevels != second.nlevels:
        return
    if not (first.is_unique and second.is_unique):
        return
    if first.isin(second).all():
        raise DataError(
            f"{who} have the same row labels in a different order, but rows are paired by position. "
            "Align them first (Z = Z.loc[X.index]), or reset both indexes if the order is right."
        ).about(argument="Z")


def check_roles_disjoint(X: Frame, Z: Frame) -> None:
    if not (X.named and Z.named):
        return
    both = [name for name in X.names if name in Z.names]
    if both:
        raise DataError(
            f"{listing(both)}: in X and in Z. A column is a node or a covariate, not both; "
            "drop it from one of the two."
        ).about(column=both[0])
