"""What people keep tables in, as a pandas frame or a plain array: masks, names and byte orders seen to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import DataError, check_package


def named_table(data: Any) -> pd.DataFrame | None:
    """A table whose columns have names, as a frame; None for what has none.

    Known are pandas, polars and pyarrow, structured NumPy arrays, and whatever has ``to_pandas`` or speaks
    Arrow or the dataframe interchange protocol.
    """
    if isinstance(data, pd.DataFrame):
        return data
    if type(data).__module__.split(".")[0] == "polars" and hasattr(data, "to_dict"):
        return _from_polars(data)
    if isinstance(data, np.ndarray) and data.dtype.names is not None:
        return _from_fields(data)
    if getattr(data, "ndim", 2) != 2:
        return None
    if hasattr(data, "to_pandas"):
        frame = _to_pandas(data)
        return frame if isinstance(frame, pd.DataFrame) else None
    if hasattr(data, "__arrow_c_stream__"):
        return _to_pandas(_arrow_table(data))
    if hasattr(data, "__dataframe__"):
        return pd.api.interchange.from_dataframe(data)
    return None


def _from_polars(data: Any) -> pd.DataFrame:
    """Column by column, so that pyarrow is not needed; text and categories become objects."""
    columns: dict[str, Any] = {}
    for name in data.columns:
        series = data[name]
        if type(series.dtype).__name__ == "Enum":  # it has an order
            columns[name] = pd.Categorical(series.to_list(), list(series.dtype.categories), ordered=True)
            continue
        numeric = series.dtype.is_numeric()
        columns[name] = series.to_numpy() if numeric else pd.Series(series.to_list(), dtype="object")
    return pd.DataFrame(columns)


def _from_fields(data: NDArray) -> pd.DataFrame | None:
    """A record per row; fields that hold more than one value make no table."""
    fields = data.dtype.names or ()
    if data.ndim != 1 or any(data.dtype[name].shape or data.dtype[name].names for name in fields):
        raise DataError(
            "A structured array must have one record per row and one value per field, got shape "
            f"{data.shape} and {data.dtype}. Make a table of it first: pandas.DataFrame."
        ).about(argument="data")
    return pd.DataFrame({name: unmasked(data[name]) for name in fields}, columns=list(fields))


def _to_pandas(data: Any) -> Any:
    try:
        return data.to_pandas()
    except (TypeError, ValueError, NotImplementedError) as error:  # categories that are structs, say
        raise DataError(
            f"{type(data).__name__} has a column that pandas cannot hold: {error}. Leave it out, or make "
            "numbers or text of it."
        ).about(argument="data") from error


def _arrow_table(data: Any) -> Any:
    check_package("pyarrow", "parquet", "An Arrow table")
    import pyarrow

    return pyarrow.table(data)


def unmasked(array: NDArray) -> NDArray:
    """A masked array as a plain one with NaN, or None among what are no numbers, where the mask is."""
    if not np.ma.is_masked(array):
        return np.asarray(array)
    of_numbers = {"f": array.dtype, "i": np.float64, "u": np.float64, "b": np.float64}
    kind: Any = of_numbers.get(array.dtype.kind, object)
    values = np.array(np.ma.getdata(array), dtype=kind)
    values[np.ma.getmaskarray(array)] = None if kind is object else np.nan
    return values


def plain_array(data: Any, argument: str) -> NDArray:
    """Anything without names that NumPy can read, as an array of any number of dimensions.

    It has no mask, and the byte order of this machine.
    """
    if type(data).__module__.split(".")[0] == "torch" and hasattr(data, "detach"):
        data = _from_torch(data)
    try:
        array = np.asanyarray(data)
        if isinstance(data, (list, tuple)) and array.dtype.kind in "US":
            array = np.array(data, dtype=object)  # a number beside text stays a number
    except TypeError:  # numbers beside dates
        array = np.array(data, dtype=object)
    except (ValueError, OverflowError) as error:
        raise DataError.of(argument, f"is not a rectangular table: {error}.") from error
    plain = array if type(array) is np.ndarray else unmasked(array)
    return plain if plain.dtype.isnative else plain.astype(plain.dtype.newbyteorder("="))


def _from_torch(tensor: Any) -> NDArray:
    """Values alone, on this side of any device; kinds of numbers that NumPy lacks become doubles."""
    values = tensor.detach().cpu().to_dense().resolve_conj().resolve_neg()
    try:
        return np.asarray(values)
    except TypeError:
        return np.asarray(values.double())
