"""Gaussian fields: x ~ N(0, Theta(z)^-1), and monotone transforms of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtrs

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
            factors = np.linalg.cholesky(self.precision(Z[start : start + _CHUNK]))
            for i, factor in enumerate(factors, start=start):
                X[i] = back_substitute(factor, noise[i])
        return X


def back_substitute(factor: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """x with L' x = noise; LAPACK sees the rows of L as the columns of L', so nothing is copied."""
    return dtrtrs(factor.T, noise)[0]


class MixtureField(GaussianField):
    """Theta(z) = sum_r w_r(z) Psi_r with weights that depend on z."""

    @abstractmethod
    def mixing(self, Z: Any) -> NDArray[np.float64]:
        """Weight of each candidate, (n, r), non-negative, rows sum to one."""

    def precision(self, Z: Any) -> NDArray[np.float64]:
        return self._mixed(self.mixing(Z))

    def _mixed(self, mixing: NDArray[np.float64]) -> NDArray[np.float64]:
        r, p, _ = self.candidates.shape
        return (mixing @ self.candidates.reshape(r, p * p)).reshape(-1, p, p)

    def sample(self, Z: Any, rng: np.random.Generator) -> NDArray[np.float64]:
        """Samples of equal weights share one factor; where weights are clipped these are many."""
        noise = rng.standard_normal((len(Z), self.candidates.shape[1]))
        X = np.empty_like(noise)
        mixing = self.mixing(Z)
        order = np.lexsort(mixing.T)  # equal rows side by side; np.unique is many times slower
        new = np.ones(len(Z), dtype=bool)
        new[1:] = (mixing[order[1:]] != mixing[order[:-1]]).any(axis=1)
        distinct, ranked = mixing[order[new]], np.cumsum(new) - 1
        for start in range(0, len(distinct), _CHUNK):
            factors = np.linalg.cholesky(self._mixed(distinct[start : start + _CHUNK]))
            first, last = np.searchsorted(ranked, [start, start + _CHUNK])
            for i, which in zip(order[first:last].tolist(), ranked[first:last].tolist(), strict=True):
                X[i] = back_substitute(factors[which - start], noise[i])
        return X

    def skeleton(self, Z: Any) -> NDArray[np.bool_]:
        used = self.mixing(Z) > 0  # (n, r)
        codes = used @ (1 << np.arange(used.shape[1]))
        _, first, index = np.unique(codes, return_index=True, return_inverse=True)
        present = self.candidates != 0
        graphs = np.stack([present[pattern].any(axis=0) for pattern in used[first]])
        return without_diagonal(graphs)[index]


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
