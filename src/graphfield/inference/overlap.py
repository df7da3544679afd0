"""Whether rows that are to be compared have the other covariates in common.

A graph at one level of a category is averaged over the other covariates of all rows. Where rows of that level
have none of these values, that graph is what functions of z make of other rows: houses in a row that were all
built after 1970 have no graph in 1920.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import Categorical, CovariateEncoder
from graphfield.data.encoded import Encoded
from graphfield.exceptions import DataWarning, listing
from graphfield.inference.asked_values import position_of

# The share of all rows that may lie outside of what the rows of one side have, beside that by chance.
MOST_OUTSIDE = 0.1


def warn_of_no_overlap(
    encoder: CovariateEncoder, encoded: Encoded, sides: Sequence[Mapping[str, Any]]
) -> None:
    """Say where the graph of one side is averaged over values that its rows do not have, where most so."""
    found = [
        (_share_outside(encoder, encoded, side, column.name), column.name, side)
        for side in sides
        for column in encoder.columns
        if column.name not in side
    ]
    share, name, side = max(found, key=lambda one: one[0], default=(0.0, "", {}))
    if share <= MOST_OUTSIDE:
        return
    place = ", ".join(f"{key}={value}" for key, value in side.items())
    warnings.warn(
        f"Rows with {place} have {_values(encoder, encoded, side, name)}, and {share:.0%} of all rows, over "
        f"whose {name!r} graphs are averaged, have other values: there the graph at {place} is extrapolated, "
        f"and so are its differences. Name a value of {name!r} that both have, beside those that are "
        "compared, or compare the rows that have such values alone.",
        DataWarning,
        stacklevel=4,
    )


def _share_outside(encoder: CovariateEncoder, encoded: Encoded, side: Mapping[str, Any], name: str) -> float:
    """Share of all rows whose value of a covariate is none that the rows of this side have."""
    values, rows = _column(encoder, encoded, name), _rows_of(encoder, encoded, side)
    own = values[rows]
    if not len(own):
        return 0.0
    if isinstance(position_of(encoder, name)[1], Categorical):
        return float((~np.isin(values, own)).mean())
    outside = float(((values < own.min()) | (values > own.max())).mean())
    by_chance = 2 / (len(own) + 1)  # beyond the extremes of so many rows
    return outside if outside > MOST_OUTSIDE + by_chance else 0.0


def _rows_of(encoder: CovariateEncoder, encoded: Encoded, side: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Rows with the levels of this side; of numbers, all rows help."""
    rows = np.ones(len(encoded), dtype=bool)
    for name, value in side.items():
        if isinstance(position_of(encoder, name)[1], Categorical):
            rows &= _column(encoder, encoded, name) == encoder.encode_value(name, value)
    return rows


def _column(encoder: CovariateEncoder, encoded: Encoded, name: str) -> NDArray:
    position, column = position_of(encoder, name)
    return (encoded.codes if isinstance(column, Categorical) else encoded.numeric)[:, position]


def _values(encoder: CovariateEncoder, encoded: Encoded, side: Mapping[str, Any], name: str) -> str:
    """What the rows of this side have of a covariate, in words."""
    own, column = (
        _column(encoder, encoded, name)[_rows_of(encoder, encoded, side)],
        position_of(encoder, name)[1],
    )
    if isinstance(column, Categorical):
        return f"{name!r} at {listing([column.levels[int(code)] for code in np.unique(own)])} alone"
    low, high = (column.shown(column.mean + column.scale * end) for end in (own.min(), own.max()))
    return f"{name!r} from {low} to {high}"
