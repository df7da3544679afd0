"""S3: p = 48 nodes, two covariates; edges without any linear trace, between partners that change with z."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.simulate.field import Field, Waves

N_FOURS, N_COVARIATES = 12, 2
N_NODES = 4 * N_FOURS
STRENGTH, FREQUENCY = 1.0, np.pi


class Squares(Field):
    """x_j = w(z) (x_k^2 - 1) + noise, where x_k and the noise are standard normal.

    Nodes stand in twelve fours at random places: parents k, k' and children j, j'. Where the wave of a
    four is positive, k has j and k' has j'; where it is negative, they change partners; w = |wave|. So no
    two children have a parent in common and no child has two parents: given z, all covariances are zero, and
    so is every linear regression of a node on the others. There are no clusters: every regime is 0.
    """

    def __init__(self, rng: np.random.Generator, *, clip: bool) -> None:
        del clip  # nothing is mixed
        place_rng, wave_rng = rng.spawn(2)
        self.parents, self.children = place_rng.permutation(N_NODES).reshape(2, 2, N_FOURS)
        self.waves = Waves(N_FOURS, N_COVARIATES, FREQUENCY, wave_rng)
        self.candidates = np.zeros((2, N_NODES, N_NODES))  # (pairing, child, parent)
        for pairing, parents in enumerate((self.parents, self.parents[::-1])):
            self.candidates[pairing, self.children, parents] = STRENGTH

    def covariates(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.uniform(-1, 1, (n_samples, N_COVARIATES))

    def halves(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """w at the parent of each node in either pairing, one of them zero, (2, n, p)."""
        heights = np.zeros((len(Z), N_NODES))
        heights[:, self.children] = self.waves.at(Z)[:, None, :]
        return np.maximum(0.0, np.stack([heights, -heights]))

    def skeleton(self, Z: NDArray[np.float64]) -> NDArray[np.bool_]:
        there = ((self.halves(Z) > 0)[..., None] & (self.candidates != 0)[:, None]).any(axis=0)
        return there | there.swapaxes(1, 2)

    def sample(self, Z: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        noise = rng.standard_normal((len(Z), N_NODES))
        pulls = (noise**2 - 1) @ self.candidates.swapaxes(1, 2)  # parents are nothing but their noise
        return noise + (self.halves(Z) * pulls).sum(axis=0)
