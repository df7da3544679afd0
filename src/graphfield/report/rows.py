"""Covariate values that a page speaks about: rows of the training table, a typical one, ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.analysis.rows import typical_row
from graphfield.check.levels import RARE_LEVEL
from graphfield.data.covariates import CovariateEncoder, Numeric
from graphfield.data.frames import Frame
from graphfield.data.level_text import as_text
from graphfield.exceptions import DataError
from graphfield.fields import GraphField

# Rows whose graphs are summarised, and how many entries these may have in all.
MAX_ROWS, MAX_ENTRIES = 500, 20_000_000
_DRAWN = 300
_BINS = 24


@dataclass(frozen=True)
class Rows:
    """Rows of covariates as the model takes them: numbers, and levels as text."""

    Z: pd.DataFrame
    n_given: int  # 0 where none were, and these are drawn from what the model remembers
    typical: dict[str, Any]  # of all that were given: median of a number, most frequent level of a category

    @classmethod
    def of(cls, field: GraphField, Z: Any) -> Rows:
        drawn = Z is None
        table = _drawn(field.schema.encoder) if drawn else _plain(field, Z)
        p = field.n_nodes
        most = int(np.clip(MAX_ENTRIES // p**2, 20, MAX_ROWS))
        kept = np.unique(np.linspace(0, len(table) - 1, min(most, len(table))).astype(int))
        n_given = 0 if drawn else len(table)
        some = table.iloc[kept].reset_index(drop=True)
        return cls(some, n_given, typical_row(field, table))

    def describe_covariates(self, field: GraphField) -> list[dict[str, Any]]:
        """What the controls and axes of the page need to know of each covariate."""
        encoder = field.schema.encoder
        rare = {
            column.name: {level: n for level, n in encoder.level_rows(column).items() if n < RARE_LEVEL}
            for column in encoder.categorical
        }
        return [
            self._one(column, self.typical[column.name], rare.get(column.name, {}))
            for column in encoder.columns
        ]

    def _one(self, column: Any, start: Any, rare: dict[str, int]) -> dict[str, Any]:
        values = self.Z[column.name]
        if not isinstance(column, Numeric):
            ordered = column.ordered and not column.pooled  # what was pooled has no place among them
            return _levels(column.name, values, list(column.levels), start, ordered) | {"rare": rare}
        low, high = (float(v) for v in np.quantile(values, [0.01, 0.99]))
        if not high > low:
            low, high = column.low, column.high
        decimals = int(np.clip(2 - np.floor(np.log10(high - low)), 0, 12))
        if (values == values.round()).all() and high - low >= 10:
            decimals = 0
        low, high = _outward(low, high, decimals)
        start = float(np.clip(round(start, decimals), low, high))
        counts = np.histogram(values, bins=_BINS, range=(low, high))[0].tolist()
        return {
            "name": column.name,
            "kind": "number",
            "low": low,
            "high": high,
            "least": column.low,
            "most": column.high,
            "start": start,
            "decimals": decimals,
            "date": bool(getattr(column, "date", False)),  # days since 1970-01-01
            "counts": counts,
        }


def _levels(name: str, values: pd.Series, levels: list[Any], start: Any, ordered: bool) -> dict[str, Any]:
    counts = [int((values == level).sum()) for level in levels]
    own = {"levels": levels, "ordered": ordered, "start": start, "counts": counts}
    return {"name": name, "kind": "category", **own}


def _outward(low: float, high: float, decimals: int) -> tuple[float, float]:
    unit = 10.0**-decimals
    return round(np.floor(low / unit) * unit, decimals), round(np.ceil(high / unit) * unit, decimals)


def _plain(field: GraphField, Z: Any) -> pd.DataFrame:
    encoder = field.schema.encoder
    frame = field.schema.match_covariates(Z).values.dropna()
    if frame.empty and len(encoder.columns):
        raise DataError.of("Z", "has no complete rows: a report needs at least one.")
    numbers = {column.name: _numbers(encoder, frame, i) for i, column in enumerate(encoder.numeric)}
    columns = {n: numbers[n] if n in numbers else as_text(frame[n]) for n in frame.columns}
    columns |= {column.name: column.as_levels(frame[column.name]) for column in encoder.categorical}
    return pd.DataFrame(columns, index=frame.index)


def _numbers(encoder: CovariateEncoder, frame: pd.DataFrame, which: int) -> NDArray[np.float64]:
    """A numeric covariate as numbers, also where it is written as something else, such as dates."""
    column = encoder.numeric[which]
    if pd.api.types.is_numeric_dtype(frame[column.name]):
        return frame[column.name].to_numpy(dtype=np.float64)
    seen = encoder.transform(Frame(frame, encoder.named)).numeric[:, which]
    return np.round(seen * column.scale + column.mean, 6)


def _drawn(encoder: CovariateEncoder) -> pd.DataFrame:
    """Rows drawn from the means, spreads, ranges and frequencies that the model remembers."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = dict.fromkeys(encoder.names, 0.0)
    for column in encoder.columns:
        if not isinstance(column, Numeric):
            columns[column.name] = rng.choice(np.array(column.levels, dtype=object), _DRAWN, p=column.shares)
        elif encoder.standardize:
            values = rng.normal(column.mean, column.scale, _DRAWN)
            columns[column.name] = values.clip(column.low, column.high)
        else:
            columns[column.name] = rng.uniform(column.low, column.high, _DRAWN)
    return pd.DataFrame(columns, index=range(_DRAWN))
