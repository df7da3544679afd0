"""Node values of new rows beside what a field makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.data.frames import Frame, check_same_length, node_values
from graphfield.data.missing import check_complete, handle_missing
from graphfield.data.ranges import check_reach
from graphfield.exceptions import DataError
from graphfield.fields.base import GraphField
from graphfield.fields.streaming import mean_r2


def match_rows(field: GraphField, X: Any, Z: Any) -> tuple[Frame, Frame]:
    """Both tables with the columns of ``fit``, row by row."""
    x_frame, z_frame = field.schema.match_nodes(X), field.schema.match_covariates(Z)
    check_same_length(x_frame, z_frame)
    return x_frame, z_frame


def read_values(field: GraphField, frame: Frame) -> NDArray[np.floating]:
    """Node values of new rows; those that are nowhere near the training rows are refused."""
    values, scaler = node_values(frame), field.common.scaler
    check_reach(values, frame.names, scaler.center, scaler.scale, "X")
    return values


def predict_values(field: GraphField, X: Any, Z: Any) -> NDArray[np.float64]:
    """Each node from all the others, (n, p)."""
    x_frame, z_frame = match_rows(field, X, Z)
    check_complete(x_frame, z_frame)
    fitted = np.empty(x_frame.values.shape)
    for rows, part in field.fit_values(read_values(field, x_frame), field.encode(z_frame)):
        fitted[rows] = part
    return fitted


def score_values(field: GraphField, X: Any, Z: Any, missing: str) -> float:
    """Mean over nodes of R^2."""
    x_frame, z_frame, _ = handle_missing(*match_rows(field, X, Z), missing)
    values = read_values(field, x_frame)
    if len(values) < 2:
        raise DataError(f"R^2 needs at least 2 rows, got {len(values)}.")
    return mean_r2(values, field.fit_values(values, field.encode(z_frame)))
