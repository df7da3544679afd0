"""Whether a field that was just read from a file gives finite answers at covariates like those of its fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from graphfield.data.covariates import CovariateEncoder, Numeric
from graphfield.data.frames import Frame
from graphfield.data.ranges import MAX_MAGNITUDE
from graphfield.exceptions import ExtrapolationWarning
from graphfield.fields.base import GraphField
from graphfield.graphs.strength import precision_from_partial

# Entries of the graphs that are looked at; of at least so many rows.
_ENTRIES, _LEAST_ROWS = 4_000_000, 8
# Of a conditional mean: errors of predictions are squared.
_MAX_MEAN = 1e3 * MAX_MAGNITUDE


def has_finite_answers(field: GraphField) -> bool:
    """Weights, residual scales, means and precision at the ends of every range and at every level.

    Numbers may be finite in a file and yet too large to be computed with.
    """
    most = max(_LEAST_ROWS, _ENTRIES // field.n_nodes**2)
    encoder = field.schema.encoder
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        rows = field.encode(Frame(_rows(encoder, most), named=encoder.named))
        here = field.at(field.distinct(rows)[0])
        partial, scale, unit = here.partial_correlations, here.scales, here.units
        finite = np.isfinite(here.weights).all() and np.isfinite(partial).all()
        if not (finite and (np.abs(here.offsets) < _MAX_MEAN).all()):
            return False
        if not ((scale > 0) & np.isfinite(scale) & (unit > 0) & np.isfinite(unit)).all():
            return False
        return bool(np.isfinite(precision_from_partial(partial, scale)).all())  # its eigenvalues need numbers


def _rows(encoder: CovariateEncoder, most: int) -> pd.DataFrame:
    """A row with ordinary values, and rows that differ from it in one covariate."""
    plain: dict[str, Any] = dict.fromkeys(encoder.names, 0.0)
    values: dict[str, list[Any]] = {}
    for column in encoder.columns:
        if isinstance(column, Numeric):
            middle = min(max(column.mean, column.low), column.high)
            plain[column.name], values[column.name] = middle, [column.low, column.high]
        else:
            plain[column.name], *values[column.name] = column.levels
    rows = [plain, *({**plain, name: value} for name, own in values.items() for value in own)]
    return pd.DataFrame(rows[:most], columns=pd.Index(encoder.names))
