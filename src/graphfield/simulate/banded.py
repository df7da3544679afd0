"""G1: p = 50 nodes, two covariates; each cluster mixes two of three banded precision matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.simulate.simulation import Simulation

N_NODES = 50
BAND_VALUE = 0.75
MAX_CONDITION = 10.0
CLIP = (0.25, 0.75)
# Candidates mixed in each third of z_2 (numbered from 0).
PAIRS = ((0, 1), (0, 2), (1, 2))
# Samples whose (p, p) matrices are factorised at a time.
_CHUNK = 2_000


def simulate_banded(name: str, n_samples: int, rng: np.random.Generator, *, clip: bool) -> Simulation:
    """Theta(z) = w Psi_a + (1 - w) Psi_b, w = z_1 (clipped), (a, b) by the third that z_2 is in."""
    _, covariate_rng, noise_rng = rng.spawn(3)  # structure is deterministic here
    Z = covariate_rng.random((n_samples, 2))
    mixing, regime = mixing_weights(Z, clip=clip)
    psi = candidates()
    return Simulation(name, sample_gaussian(mixing, psi, noise_rng), Z, regime, mixing, psi)


def candidates() -> NDArray[np.float64]:
    """Psi_1, Psi_2, Psi_3, (3, p, p)."""
    return np.stack([banded_precision(offset) for offset in (1, 2, 3)])


def mixing_weights(Z: NDArray[np.float64], *, clip: bool) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Weight of each candidate (n, 3) and the cluster (n,) at given covariates."""
    weight = np.clip(Z[:, 0], *CLIP) if clip else Z[:, 0]
    regime = np.minimum((Z[:, 1] * 3).astype(np.int64), 2)
    mixing = np.zeros((len(Z), 3))
    rows = np.arange(len(Z))
    pairs = np.array(PAIRS)[regime]  # (n, 2)
    mixing[rows, pairs[:, 0]] = weight
    mixing[rows, pairs[:, 1]] = 1 - weight
    return mixing, regime


def banded_precision(offset: int) -> NDArray[np.float64]:
    """0.75 on the ``offset``-th off-diagonals, conditioned to at most 10."""
    psi = BAND_VALUE * (np.eye(N_NODES, k=offset) + np.eye(N_NODES, k=-offset))
    return raise_diagonal(psi)


def raise_diagonal(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add to the diagonal until positive definite, then 0.005 at a time until condition <= 10."""
    eigenvalues = np.linalg.eigvalsh(matrix)
    low, high = eigenvalues[0], eigenvalues[-1]
    shift = abs(low) + 1e-3 if low <= 0 else 0.0
    while (high + shift) / (low + shift) > MAX_CONDITION:
        shift += 0.005
    return matrix + shift * np.eye(len(matrix))


def sample_gaussian(
    mixing: NDArray[np.float64], candidates: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """x_i ~ N(0, Theta_i^-1) with Theta_i = sum_r mixing_ir candidates_r: solve L' x = noise."""
    noise = rng.standard_normal((len(mixing), candidates.shape[1]))
    X = np.empty_like(noise)
    for start in range(0, len(mixing), _CHUNK):
        rows = slice(start, start + _CHUNK)
        theta = np.einsum("ir,rjk->ijk", mixing[rows], candidates)
        factor = np.linalg.cholesky(theta)
        X[rows] = np.linalg.solve(factor.swapaxes(1, 2), noise[rows, :, None])[:, :, 0]
    return X
