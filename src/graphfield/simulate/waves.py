"""Strengths that come and go smoothly with the covariates, each along a direction of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Waves:
    """sin(c v.z + f), one wave per edge: c the frequency, v uniform on the sphere, f a phase."""

    def __init__(self, n_waves: int, n_covariates: int, frequency: float, rng: np.random.Generator) -> None:
        self.frequency = frequency
        self.directions = random_directions(n_waves, n_covariates, rng)
        self.phases = rng.uniform(0, 2 * np.pi, n_waves)

    def at(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Heights in [-1, 1], (n, waves)."""
        return np.sin(self.frequency * Z @ self.directions.T + self.phases)


def random_directions(count: int, n_covariates: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows uniform on the unit sphere, (count, q)."""
    directions = rng.standard_normal((count, n_covariates))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)
