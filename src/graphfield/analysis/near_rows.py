"""Whether rows are near values of two covariates together."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtr

from graphfield.analysis.rows import at_one
from graphfield.data.covariates import Categorical, Numeric
from graphfield.exceptions import count
from graphfield.fields import GraphField

# Rows are near a number within this part of its range, and near a level if they have it. Fewer than FEW are
# near both of two values, and so few by chance, were the two unrelated, as none where FEW are expected.
NEAR, FEW = 0.1, 5


@dataclass(frozen=True)
class _Side:
    """A covariate at the value that is asked for, as it is encoded, and at all rows."""

    column: Numeric | Categorical
    place: float
    values: NDArray
    near: NDArray[np.bool_]

    @property
    def is_level(self) -> bool:
        return isinstance(self.column, Categorical)

    def text(self, place: float) -> str:
        if isinstance(self.column, Categorical):
            return str(self.column.levels[int(place)])
        scale = self.column.scale
        return self.column.text(scale * round(place + self.column.mean / scale, 9) + 0.0)  # no 1e-17

    def __str__(self) -> str:
        return f"{self.column.name}={self.text(self.place)}"


def few_rows_near(field: GraphField, rows: Any, z: Mapping[str, Any], names: Collection[str]) -> str:
    """Which two of the named covariates hardly any row has near their values in z; empty without such."""
    pairs = list(combinations(_sides(field, rows, z, names), 2))
    by_chance = [one.near.sum() * other.near.mean() for one, other in pairs]
    for which in np.argsort(-np.array(by_chance), kind="stable"):
        one, other = sorted(pairs[which], key=lambda side: not side.is_level)
        found = int((one.near & other.near).sum())
        if is_lonely(found, by_chance[which]):
            return _words(one, other, found)
    return ""


def is_lonely(found: int, by_chance: float) -> bool:
    """
    >>> is_lonely(0, 4.9), is_lonely(0, 5.1), is_lonely(1, 6), is_lonely(1, 8), is_lonely(5, 100)
    (False, True, False, True, False)
    """
    return found < FEW and bool(pdtr(found, by_chance) <= np.exp(-FEW))


def _sides(field: GraphField, rows: Any, z: Mapping[str, Any], names: Collection[str]) -> list[_Side]:
    encoder = field.schema.encoder
    encoded = encoder.transform(field.schema.match_covariates(rows))
    columns: list[Numeric | Categorical] = [*encoder.numeric, *encoder.categorical]
    with warnings.catch_warnings(action="ignore"):  # what there is to say is said with the graph
        row = at_one(field, z)
        place_of = {name: encoder.encode_value(name, row[name].iloc[0]) for name in names}
    found = []
    for column, values in zip(columns, [*encoded.numeric.T, *encoded.codes.T], strict=True):
        if column.name in names:
            place = place_of[column.name]
            reach = 0.0 if isinstance(column, Categorical) else NEAR * np.ptp(values)
            found.append(_Side(column, place, values, np.abs(values - place) <= reach))
    return found


def _words(one: _Side, other: _Side, found: int) -> str:
    """Levels come first."""
    rows = f"only {count(found, 'training row')}" if found else "no training row"
    hint = ""
    if not other.is_level:
        low, high = np.quantile(other.values[one.near], [0.05, 0.95], method="nearest")
        former = "with the former" if one.is_level else "near the former"
        hint = f" ({former}, most have {other.column.name} from {other.text(low)} to {other.text(high)})"
    has, near = ("has", "is near") if found < 2 else ("have", "are near")
    where = f"{near} {one} together with {other}"
    if one.is_level:
        where = f"{has} {one} together with {other}" if other.is_level else f"{has} {one} near {other}"
    return f"{rows} {where}{hint}: the graph there is extrapolated."
