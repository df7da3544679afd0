"""S1: p = 50 nodes, five covariates; fifty edges that come and go smoothly along oblique directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.simulate.field import Waves
from graphfield.simulate.gaussian import GaussianField

N_NODES, N_COVARIATES, N_EDGES = 50, 5, 50
STRENGTH, FREQUENCY = 0.6, 0.6 * np.pi
MIN_EIGENVALUE = 0.1


class Smooth(GaussianField):
    """Theta_e(z) = s_e 0.6 max(0, sin(0.6 pi v_e.z + f_e)) on fifty random pairs e.

    v_e is uniform on the sphere, f_e a phase, s_e a sign. The diagonal is max(1, 0.36 deg_j + 0.2),
    raised by a constant where the smallest eigenvalue would be below 0.1. There are no clusters:
    the regime of every sample is 0.
    """

    def __init__(self, rng: np.random.Generator, *, clip: bool) -> None:
        del clip  # nothing is mixed, so there is nothing to clip
        upper = np.column_stack(np.triu_indices(N_NODES, 1))
        self.pairs = upper[rng.choice(len(upper), N_EDGES, replace=False)]
        self.waves = Waves(N_EDGES, N_COVARIATES, FREQUENCY, rng)
        self.signs = rng.choice([-1.0, 1.0], N_EDGES)
        degree = np.bincount(self.pairs.ravel(), minlength=N_NODES)
        self.diagonal = np.maximum(1.0, 0.36 * degree + 0.2)
        ever = np.zeros((N_NODES, N_NODES))
        ever[self.pairs[:, 0], self.pairs[:, 1]] = STRENGTH * self.signs
        self.candidates = (ever + ever.T + np.diag(self.diagonal))[None]

    def covariates(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.uniform(-1, 1, (n_samples, N_COVARIATES))

    def strengths(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Theta_e(z), (n, edges)."""
        return self.signs * STRENGTH * np.maximum(0.0, self.waves.at(Z))

    def _scattered(self, values: NDArray) -> NDArray:
        out = np.zeros((len(values), N_NODES, N_NODES), dtype=values.dtype)
        j, k = self.pairs.T
        out[:, j, k] = values
        out[:, k, j] = values
        return out

    def precision(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        theta = self._scattered(self.strengths(Z)) + np.diag(self.diagonal)
        smallest = np.linalg.eigvalsh(theta)[:, 0]
        lift = np.maximum(0.0, MIN_EIGENVALUE - smallest)
        return theta + lift[:, None, None] * np.eye(N_NODES)

    def skeleton(self, Z: NDArray[np.float64]) -> NDArray[np.bool_]:
        return self._scattered(self.strengths(Z) != 0)
