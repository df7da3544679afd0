"""G2 and N2: p = 90 nodes in three blocks, ten covariates, mixing through a radial basis network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from graphfield.exceptions import ParameterError
from graphfield.simulate.gaussian import MixtureField, Nonparanormal, raise_diagonal, random_symmetric

N_BLOCKS, BLOCK_SIZE, N_COVARIATES, N_CENTRES = 3, 30, 10, 10
EDGE_PROBABILITY, EDGE_RANGE = 0.10, (0.5, 0.75)
EXTREME = (0.1, 0.9)  # s outside of this is cluster 1 (here 0), inside cluster 2 (here 1)


class Blocks(MixtureField):
    """G2: with s = sigmoid(rbf(z)), weights (s, 0, 1 - s) where s is extreme, else (m, 1/2, 1/2 - m).

    s is clipped to (.25, .75) and m = s to (.15, .35): the text's formula without clipping is not a
    convex combination.
    """

    def __init__(self, rng: np.random.Generator, *, clip: bool) -> None:
        if not clip:
            raise ParameterError(
                "G2 and N2 need clip=True: the formula in the text gives negative mixing weights, "
                "so its matrices are no precision matrices."
            ).about(argument="clip")
        matrix_rng, network_rng = rng.spawn(2)
        self.candidates = np.stack([block_precision(which, matrix_rng) for which in range(N_BLOCKS)])
        self.centres = network_rng.uniform(-1, 1, (N_CENTRES, N_COVARIATES))
        self.scales = network_rng.uniform(0.1, 0.5, N_CENTRES)
        self.weights = network_rng.uniform(-10, 10, N_CENTRES)

    def covariates(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.standard_normal((n_samples, N_COVARIATES))

    def score(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """s(z) in (0, 1)."""
        squared = ((Z[:, None, :] - self.centres) ** 2).sum(axis=2)  # (n, centres)
        return expit(np.exp(-self.scales * squared) @ self.weights)

    def regime(self, Z: NDArray[np.float64]) -> NDArray[np.int64]:
        s = self.score(Z)
        return ((s >= EXTREME[0]) & (s <= EXTREME[1])).astype(np.int64)

    def mixing(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        s = self.score(Z)
        outer, inner = np.clip(s, 0.25, 0.75), np.clip(s, 0.15, 0.35)
        zero, half = np.zeros_like(s), np.full_like(s, 0.5)
        extreme = np.column_stack([outer, zero, 1 - outer])
        middle = np.column_stack([inner, half, 0.5 - inner])
        return np.where(self.regime(Z)[:, None] == 0, extreme, middle)


def make_n2(rng: np.random.Generator, *, clip: bool) -> Nonparanormal:
    """N2: the nodes of G2 through 0.75 sign(x) x^2."""
    return Nonparanormal(Blocks(rng, clip=clip), lambda x: 0.75 * np.sign(x) * x**2)


def block_precision(which: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Random edges in all blocks, conditioned as a whole, then every block but one is emptied."""
    p = N_BLOCKS * BLOCK_SIZE
    block = np.arange(p) // BLOCK_SIZE
    values = random_symmetric(p, EDGE_PROBABILITY, *EDGE_RANGE, rng)
    values = raise_diagonal(np.where(block[:, None] == block, values, 0.0))
    kept = (block[:, None] == which) & (block == which)
    return np.where(kept | np.eye(p, dtype=bool), values, 0.0)
