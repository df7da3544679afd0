"""Values of covariates that are asked for: some held at a value, the others those of real rows."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import ROUNDING, Categorical, CovariateEncoder, Numeric
from graphfield.data.encoded import Encoded
from graphfield.exceptions import (
    DataError,
    ExtrapolationWarning,
    ParameterError,
    first_few,
    listing,
    suggestion,
)
from graphfield.inference.edge_basis import EdgeBasis
from graphfield.messages import Message, Place

# Rows that other covariates are averaged over at most.
_MOST_ROWS = 200
_NAMED = 3  # covariates that a sentence names
_BOTH = Message("a and b", code="both-sides")


def check_covariates(encoder: CovariateEncoder, names: Iterable[str]) -> None:
    """Raise where one of the names is not that of a covariate."""
    known = [column.name for column in encoder.columns]
    for name in names:
        if name not in known:
            raise DataError(
                f"There is no covariate called {name!r}.{suggestion(str(name), known)} The covariates are "
                f"{listing(known)}."
            ).about(column=str(name))


def hold_values(encoder: CovariateEncoder, encoded: Encoded, values: Mapping[str, Any]) -> Encoded:
    """Some rows, evenly chosen, with covariates held at the values that are given."""
    rows = encoded.take(evenly(len(encoded), _MOST_ROWS))
    for name, value in values.items():
        rows = hold_at(encoder, rows, name, encoder.encode_value(name, value))
    return rows


def evenly(n: int, most: int) -> NDArray[np.intp]:
    """Positions of all of n rows, or of so many of them, evenly chosen."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)


def hold_at(encoder: CovariateEncoder, rows: Encoded, name: str, place: float) -> Encoded:
    """Rows with one covariate at one place, as it is encoded."""
    position, column = position_of(encoder, name)
    if isinstance(column, Categorical):
        codes = rows.codes.copy()
        codes[:, position] = int(place)
        return replace(rows, codes=codes)
    numeric = rows.numeric.copy()
    numeric[:, position] = place
    return replace(rows, numeric=numeric)


def position_of(encoder: CovariateEncoder, name: str) -> tuple[int, Numeric | Categorical]:
    """Of a covariate among those of its kind, and the covariate."""
    column = next(column for column in encoder.columns if column.name == name)
    kind = encoder.categorical if isinstance(column, Categorical) else encoder.numeric
    return [other.name for other in kind].index(name), column


def average_at(
    basis: EdgeBasis, encoder: CovariateEncoder, encoded: Encoded, values: Mapping[str, Any]
) -> NDArray[np.float64]:
    """Functions of z, averaged over real rows with some covariates held, (m,)."""
    return np.asarray(basis.at(hold_values(encoder, encoded, values)).mean(axis=0))


def read_sides(encoder: CovariateEncoder, a: Any, b: Any, *more: Any) -> Sequence[Mapping[str, Any]]:
    """Values to compare, checked; the name of a category alone stands for all its levels."""
    return _checked_sides(
        encoder, _all_levels(encoder, a) if isinstance(a, str) and b is None else [a, b, *more]
    )


def places_of(encoder: CovariateEncoder, sides: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """Values of covariates as they are encoded, in one order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)  # such values are refused
        return [{name: encoder.encode_value(name, side[name]) for name in sides[0]} for side in sides]


def _all_levels(encoder: CovariateEncoder, name: str) -> list[dict[str, Any]]:
    check_covariates(encoder, [name])
    _, column = position_of(encoder, name)
    if not isinstance(column, Categorical):
        raise ParameterError(
            "{who} is a number: give the values to compare, for example {twice}. A name alone stands for "
            "all levels of a category.",
            who=repr(name),
            twice=Message("{{'{name}': ...}} twice", code="values-twice", name=name),
        ).about(argument="a", column=name)
    return [{name: level} for level in column.levels]


def _checked_sides(encoder: CovariateEncoder, sides: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
    known = [column.name for column in encoder.columns]
    for side in sides:
        if not isinstance(side, Mapping) or not side:
            raise ParameterError(
                f"a and b must give values of covariates, for example {{{known[0]!r}: ...}}, got {side!r}."
            ).about(argument="a")
        check_covariates(encoder, side)
        if set(side) != set(sides[0]):
            raise ParameterError(
                "{both} must name the same covariates, got {first} and {other}.",
                both=_BOTH,
                first=listing(sides[0]),
                other=listing(side),
            ).about(argument="b")
    places = places_of(encoder, sides)
    for side, place in zip(sides, places, strict=True):
        _check_inside(encoder, side, place)
    if len({tuple(place.values()) for place in places}) < len(sides):
        if len(sides) > 2:
            raise ParameterError("Two of the values to compare are the same: name each once.").about(
                argument="b"
            )
        raise ParameterError("{both} are the same: nothing can differ between them.", both=_BOTH).about(
            argument="b"
        )
    return sides


def ask_of_values(encoder: CovariateEncoder, names: Collection[str]) -> str:
    """Where to ask whether values differ of those covariates that are levels."""
    asked = [column for column in encoder.categorical if column.name in names]
    if not asked:
        return ""
    two = next((column for column in asked if len(column.levels) == 2), None)
    if two is None:
        ask = Message("gf.compare_graphs(X, Z, {name!r})", code="compare-levels", name=asked[0].name)
    else:
        first, second = (Place(two.name, value) for value in two.values)
        ask = Message("gf.compare_graphs(X, Z, {a}, {b})", code="compare-values", a=first, b=second)
    return Message(
        "Whether values of {names} differ is a question of its own, which may see other pairs: {ask}.",
        names=first_few([column.name for column in asked], _NAMED),
        ask=ask,
    )


def _check_inside(encoder: CovariateEncoder, side: Mapping[str, Any], place: Mapping[str, float]) -> None:
    """Refuse numbers that no row reaches: of the graph there, tests know nothing."""
    for column in encoder.numeric:
        if column.name in place:
            value, width = column.mean + column.scale * place[column.name], column.high - column.low
            if max(column.low - value, value - column.high) > ROUNDING * width:
                given = side[column.name]
                shown = column.text(given) if isinstance(given, (int, float)) else given
                raise DataError(
                    f"{column.name}={shown} is beyond all rows, which have {column.name!r} from "
                    f"{column.text(column.low)} to {column.text(column.high)}. Name values within these."
                ).about(column=column.name)
