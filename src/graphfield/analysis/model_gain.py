"""The held-out gain of an estimator of the user's choice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from graphfield.analysis.held_out_gain import Gain
from graphfield.data.splits import hold_out
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.held_out import HeldOut, Yardstick
from graphfield.estimators.inputs import Inputs
from graphfield.estimators.reggmm import RegGMM
from graphfield.exceptions import ParameterError

_HELD_OUT = 0.25


def model_gains(
    model: Any, inputs: Inputs, labels: NDArray[np.intp] | None, timed: bool
) -> tuple[Gain, Gain]:
    """Of a copy of ``model`` over its own average graph and over ``RegGMM``, in a quarter of the rows.

    Both are shares of the held-out squared error of that average, averaged over nodes. Another static graph
    would do for neither: a model can beat it by having the better graph for everybody.
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
    rows = HeldOut(inputs.X[held_out], inputs.Z.take(held_out), units)
    known = inputs.Z.take(train)
    X, Z = inputs.X[train], known.values
    groups = None if labels is None else labels[train]
    fitted: Any = clone(model)
    fitted.fit(X, Z, groups=groups)
    own, static = rows.residuals(fitted), rows.residuals_of_average(fitted, known)
    linear = rows.residuals(RegGMM().fit(X, Z, groups=groups))
    yardstick = Yardstick.of(static, units)
    errors = yardstick.errors(own)
    over_static, over_linear = (
        Gain(*yardstick.gain(yardstick.errors(other), errors)) for other in (static, linear)
    )
    return over_static, over_linear
