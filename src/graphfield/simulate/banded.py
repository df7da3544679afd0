"""G1 and N1: p = 50 nodes, two covariates; each cluster mixes two of three banded matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphfield.simulate.gaussian import MixtureField, Nonparanormal, raise_diagonal

N_NODES = 50
BAND_VALUE = 0.75
CLIP = (0.25, 0.75)
# Candidates mixed in each third of z_2 (numbered from 0).
PAIRS = ((0, 1), (0, 2), (1, 2))


class Banded(MixtureField):
    """G1: Theta(z) = w Psi_a + (1 - w) Psi_b, w = z_1 (clipped), (a, b) by the third z_2 is in."""

    def __init__(self, rng: np.random.Generator, *, clip: bool) -> None:
        del rng  # the bands are fixed
        self.clip = clip
        self.candidates = np.stack([banded_precision(offset) for offset in (1, 2, 3)])

    def covariates(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.random((n_samples, 2))

    def regime(self, Z: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.minimum((Z[:, 1] * 3).astype(np.int64), 2)

    def mixing(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        weight = np.clip(Z[:, 0], *CLIP) if self.clip else Z[:, 0]
        pairs = np.array(PAIRS)[self.regime(Z)]  # (n, 2)
        mixing = np.zeros((len(Z), 3))
        np.put_along_axis(mixing, pairs, np.column_stack([weight, 1 - weight]), axis=1)
        return mixing


def make_n1(rng: np.random.Generator, *, clip: bool) -> Nonparanormal:
    """N1: the nodes of G1 through (x + sin x) / 2."""
    return Nonparanormal(Banded(rng, clip=clip), lambda x: 0.5 * (x + np.sin(x)))


def banded_precision(offset: int) -> NDArray[np.float64]:
    """0.75 on the ``offset``-th off-diagonals, conditioned to at most 10."""
    psi = BAND_VALUE * (np.eye(N_NODES, k=offset) + np.eye(N_NODES, k=-offset))
    return raise_diagonal(psi)
