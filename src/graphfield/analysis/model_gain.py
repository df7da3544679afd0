"""The held-out gain of an estimator of the user's choice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from graphfield.analysis.held_out_gain import Gain
from graphfield.data.frames import Frame
from graphfield.data.splits import hold_out
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.graphical_lasso import GraphicalLasso
from graphfield.estimators.held_out import HeldOut, Yardstick
from graphfield.estimators.inputs import Inputs
from graphfield.estimators.reggmm import RegGMM
from graphfield.exceptions import ParameterError

_HELD_OUT = 0.25


def model_gains(
    model: Any, inputs: Inputs, labels: NDArray[np.intp] | None, timed: bool
) -> tuple[Gain, Gain]:
    """Of a copy of ``model`` over ``GraphicalLasso`` and over ``RegGMM``, all without a quarter of the rows.

    Both are shares of the held-out squared error of ``GraphicalLasso``, averaged over nodes.
    """
    if not isinstance(model, GraphEstimator):
        raise ParameterError(f"model must be a graphfield estimator such as DNNCGM(), got {model!r}.")
    n = len(inputs.X)
    if timed and labels is None:
        first = n - int(np.ceil(_HELD_OUT * n))
        train, held_out = np.arange(first), np.arange(first, n)
    else:
        train, held_out = hold_out(n, _HELD_OUT, labels, seed=0)
    units = np.arange(len(held_out)) if labels is None else labels[held_out]
    if timed and labels is None:
        units = units * 20 // len(units)
    rows = HeldOut(inputs.X[held_out], _taken(inputs.Z, held_out), units)
    X, Z = inputs.X[train], _taken(inputs.Z, train).values
    own, static, linear = (
        rows.residuals(estimator.fit(X, Z)) for estimator in (clone(model), GraphicalLasso(), RegGMM())
    )
    yardstick = Yardstick.of(static, units)
    errors = yardstick.errors(own)

    def gain(other: NDArray[np.float64]) -> Gain:
        lower = yardstick.errors(other) - errors
        return Gain(float(lower.mean()), yardstick.standard_error(lower))

    return gain(static), gain(linear)


def _taken(frame: Frame, rows: NDArray[np.intp]) -> Frame:
    return Frame(frame.values.iloc[rows].reset_index(drop=True), frame.named)
