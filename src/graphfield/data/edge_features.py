"""Functions of a number by which it may enter the regressions of other nodes, beside the number itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FEATURES = ("linear", "spline", "hermite")
# Of how many functions, beside the number itself, an edge may be made.
_MORE = {"linear": 0, "spline": 3, "hermite": 2}
# In standard deviations from the mean: knots of splines are those of a normal distribution at the quantiles
# .02, .25, .5, .75 and .98, and a polynomial stays where it is beyond the outer bounds.
_KNOTS = np.array([-2.054, -0.674, 0.0, 0.674, 2.054])
_OUTER = 3.0


def n_functions(features: str) -> int:
    return 1 + _MORE[features]


def functions_of(features: str, u: Array) -> Array:
    """Of a standardised number (n,), beside itself, (n, M - 1)."""
    if features == "linear":
        return np.empty((len(u), 0))
    if features == "hermite":
        u = np.clip(u, -_OUTER, _OUTER)
        return np.column_stack([u**2 - 1, u**3 - 3 * u])
    # A natural cubic spline: Hastie, Tibshirani and Friedman (2009), eq. 5.4 and 5.5.
    cubes = np.maximum(u[:, None] - _KNOTS, 0) ** 3
    slopes = (cubes[:, :-1] - cubes[:, -1:]) / (_KNOTS[-1] - _KNOTS[:-1])
    return slopes[:, :-1] - slopes[:, -1:]


@dataclass(frozen=True)
class Curve:
    """A number and functions of it, a family of one node whose mean and loss are those of the number.

    ``location`` and ``spread`` are its mean and standard deviation in the training rows; ``lines`` (M - 1,)
    are taken from the functions, so that none has a linear trace there. ``center`` (M,) and ``covariance``
    are those of the number and its functions.
    """

    features: str
    location: float
    spread: float
    lines: Array
    center: Array
    covariance: Array
    elementwise: bool = False

    def columns(self, codes: Array) -> Array:
        x = codes[:, 0]
        u = (x - self.location) / self.spread
        return np.column_stack([x, functions_of(self.features, u) - u[:, None] * self.lines])

    def null(self, mean: Array) -> Array:
        return np.asarray((mean - self.center) @ np.linalg.pinv(self.covariance))

    def bounded(self, mean: Array, center: Array) -> Array:  # noqa: ARG002
        return mean

    def mean(self, eta: Array) -> Array:
        return self.center + eta @ self.covariance

    def slopes(self, eta: Array) -> Array:  # noqa: ARG002
        return self.covariance

    def variances(self, eta: Array) -> Array:
        return np.broadcast_to(self.covariance, (len(eta), *self.covariance.shape))

    def loss(self, eta: Array, f: Array) -> Array:
        return np.square(f - self.mean(eta))[:, 0] / (2 * self.covariance[0, 0])
