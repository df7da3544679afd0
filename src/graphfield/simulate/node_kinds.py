"""What a node of a pairwise model is: its design columns, and how it is drawn given the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri


class NodeKind(ABC):
    """p(x | the others) proportional to h(x) exp(eta . f(x)); f are the design columns, h the kind's own.

    ``base`` is added to each eta of the kind, and ``centre`` is a typical f: others are pulled by f - centre,
    so that edges hardly move how often a level or how large a value is. ``unit`` is how large an effect of
    the kind is beside one of another: with it, edges of any two kinds have comparable correlations.
    """

    name: ClassVar[str]
    unit: ClassVar[float]
    base: ClassVar[float] = 0.0
    width: int = 1
    centre: float = 0.0

    def columns(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """f(x), (n, width)."""
        return x[:, None]

    @abstractmethod
    def draw(self, eta: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        """One value per row from eta, (n, width), and a uniform number in [0, 1) for each row."""


class Gaussian(NodeKind):
    """N(eta, 1)."""

    name, unit = "gaussian", 0.55

    def draw(self, eta: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        return eta[:, 0] + ndtri(np.maximum(uniform, 2.0**-54))  # 0 would be minus infinity


class Binary(NodeKind):
    """0 or 1; eta are the log-odds of 1."""

    name, unit, centre = "binary", 1.25, 0.5

    def draw(self, eta: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        return (uniform < expit(eta[:, 0])).astype(np.float64)


class Categorical(NodeKind):
    """Levels 0, 1, ...; eta are the log-odds of each level but the first against the first."""

    name, unit = "categorical", 1.25

    def __init__(self, n_levels: int) -> None:
        self.width, self.centre = n_levels - 1, 1.0 / n_levels

    def columns(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return (x[:, None] == np.arange(1, self.width + 1)).astype(np.float64)

    def draw(self, eta: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        odds = np.exp(np.pad(eta, ((0, 0), (1, 0))))
        reached = np.cumsum(odds, axis=1)
        below = uniform[:, None] * reached[:, -1:] >= reached[:, :-1]
        return below.sum(axis=1).astype(np.float64)


class Count(NodeKind):
    """Poisson; eta is the logarithm of the mean, which is 2 where nothing pulls."""

    name, unit, base, centre = "count", 0.45, float(np.log(2.0)), 2.0

    def draw(self, eta: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        """The smallest x whose probability of at most x is above the uniform number."""
        mean = np.exp(eta[:, 0])
        x = np.zeros_like(mean)
        term = np.exp(-mean)
        reached = term.copy()
        # A term of zero: the sum of all terms may end a rounding below one.
        while (above := (uniform >= reached) & (term > 0)).any():
            x += above
            term = term * mean / np.maximum(x, 1)
            reached = np.where(above, reached + term, reached)
        return x
