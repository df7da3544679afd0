"""Gaussian fields: x ~ N(0, Theta(z)^-1), and monotone transforms of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.simulate.field import Field, without_diagonal

MAX_CONDITION = 10.0
# Samples whose (p, p) matrices are factorised at a time.
_CHUNK = 1_000


class GaussianField(Field):
    """A field given by its precision matrix."""

    @abstractmethod
    def precision(self, Z: Any) -> NDArray[np.float64]: ...

    def sample(self, Z: Any, rng: np.random.Generator) -> NDArray[np.float64]:
        """Solve L' x = noise with Theta = L L'."""
        noise = rng.standard_normal((len(Z), self.candidates.shape[1]))
        X = np.empty_like(noise)
        for start in range(0, len(Z), _CHUNK):
            rows = slice(start, start + _CHUNK)
            factor = np.linalg.cholesky(self.precision(Z[rows]))
            X[rows] = np.linalg.solve(factor.swapaxes(1, 2), noise[rows, :, None])[:, :, 0]
        return X


class MixtureField(GaussianField):
    """Theta(z) = sum_r w_r(z) Psi_r with weights that depend on z."""

    @abstractmethod
    def mixing(self, Z: Any) -> NDArray[np.float64]:
        """Weight of each candidate, (n, r), non-negative, rows sum to one."""

    def precision(self, Z: Any) -> NDArray[np.float64]:
        return np.einsum("ir,rjk->ijk", self.mixing(Z), self.candidates)

    def skeleton(self, Z: Any) -> NDArray[np.bool_]:
        used = self.mixing(Z) > 0  # (n, r)
        patterns, index = np.unique(used, axis=0, return_inverse=True)
        present = self.candidates != 0
        graphs = np.stack([present[pattern].any(axis=0) for pattern in patterns])
        return without_diagonal(graphs)[index.ravel()]


class Nonparanormal(Field):
    """A monotone transform of every node of a Gaussian field: same graphs, other marginals."""

    def __init__(self, latent: GaussianField, transform: Callable[[NDArray], NDArray]) -> None:
        self.latent, self.transform = latent, transform
        self.candidates = latent.candidates

    def covariates(self, n_samples: int, rng: np.random.Generator) -> Any:
        return self.latent.covariates(n_samples, rng)

    def sample(self, Z: Any, rng: np.random.Generator) -> NDArray[np.float64]:
        return self.transform(self.latent.sample(Z, rng))

    def regime(self, Z: Any) -> NDArray[np.int64]:
        return self.latent.regime(Z)

    def skeleton(self, Z: Any) -> NDArray[np.bool_]:
        return self.latent.skeleton(Z)

    def precision(self, Z: Any) -> NDArray[np.float64]:
        return self.latent.precision(Z)

    def coef(self, Z: Any) -> None:
        """Not defined: the transformed nodes are no linear functions of each other."""


def raise_diagonal(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add to the diagonal until positive definite, then 0.005 at a time until condition <= 10."""
    eigenvalues = np.linalg.eigvalsh(matrix)
    low, high = eigenvalues[0], eigenvalues[-1]
    shift = abs(low) + 1e-3 if low <= 0 else 0.0
    while (high + shift) / (low + shift) > MAX_CONDITION:
        shift += 0.005
    return matrix + shift * np.eye(len(matrix))


def random_symmetric(
    n_nodes: int, probability: float, low: float, high: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Each pair is an edge with ``probability``, of random sign and magnitude U(low, high)."""
    shape = (n_nodes, n_nodes)
    present = rng.random(shape) < probability
    values = rng.choice([-1.0, 1.0], shape) * rng.uniform(low, high, shape)
    upper = np.triu(np.where(present, values, 0.0), 1)
    return upper + upper.T
