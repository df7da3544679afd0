"""Whether a model that was just loaded gives finite answers at covariates like those it was fitted to."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from graphfield.data.covariates import CovariateEncoder, Numeric
from graphfield.data.frames import Frame
from graphfield.data.ranges import MAX_MAGNITUDE
from graphfield.estimators.base import GraphEstimator
from graphfield.exceptions import ExtrapolationWarning
from graphfield.graphs.strength import partial_correlations, precision_from_partial

# Entries of the graphs that are looked at; of at least so many rows.
_ENTRIES, _LEAST_ROWS = 4_000_000, 8
# Of a conditional mean: errors of predictions are squared.
_MAX_MEAN = 1e3 * MAX_MAGNITUDE


def has_finite_answers(model: GraphEstimator) -> bool:
    """Coefficients, residual scales, means and precision at the ends of every range and at every level.

    Numbers may be finite in a file and yet too large to be computed with.
    """
    most = max(_LEAST_ROWS, _ENTRIES // model.n_features_in_**2)
    frame = Frame(_rows(model.encoder_, most), named=True)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        encoded = model._encode_frame(frame).distinct()[0]
        coef, scale = model._coef_at(encoded), model._residual_scale_at(encoded)
        unit = model._unit_at(encoded)
        partial = partial_correlations(coef, scale)
        mean = model._mean_at(encoded)
        if not (np.isfinite(coef).all() and np.isfinite(partial).all() and (np.abs(mean) < _MAX_MEAN).all()):
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
