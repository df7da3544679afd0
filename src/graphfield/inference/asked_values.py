"""Values of covariates that are asked for: some held at a value, the others those of real rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import Categorical, CovariateEncoder, Numeric
from graphfield.data.encoded import Encoded
from graphfield.exceptions import DataError, listing, suggestion
from graphfield.inference.edge_basis import EdgeBasis

# Rows that other covariates are averaged over at most.
_MOST_ROWS = 200


def check_covariates(encoder: CovariateEncoder, names: Iterable[str]) -> None:
    """Raise where one of the names is not that of a covariate."""
    known = [column.name for column in encoder.columns]
    for name in names:
        if name not in known:
            raise DataError(
                f"There is no covariate called {name!r}.{suggestion(str(name), known)} The covariates are "
                f"{listing(known)}."
            )


def hold_values(encoder: CovariateEncoder, encoded: Encoded, values: Mapping[str, Any]) -> Encoded:
    """Some rows, evenly chosen, with covariates held at the values that are given."""
    n = len(encoded)
    rows = encoded.take(np.linspace(0, n - 1, min(n, _MOST_ROWS)).round().astype(np.intp))
    for name, value in values.items():
        rows = hold_at(encoder, rows, name, encoder.encode_value(name, value))
    return rows


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
