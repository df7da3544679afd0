"""A chain of any length whose coefficients are functions of known smoothness: the truth behind the rates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from graphfield.simulate.gaussian import GaussianField

N_COVARIATES = 2
STRENGTH = 0.4  # below 0.5, so that eigenvalues lie in [0.2, 1.8] for any number of nodes
# Values in [-1, 1] of t in [-sqrt(2), sqrt(2)]. "kinked" is a triangle wave: continuous, slopes jump.
SHAPES: dict[str, Callable[[NDArray, NDArray], NDArray]] = {
    "linear": lambda t, _: t / np.sqrt(2),
    "smooth": lambda t, phase: np.sin(np.pi * t + phase),
    "kinked": lambda t, phase: 2 / np.pi * np.arcsin(np.sin(np.pi * t + phase)),
}


class Chain(GaussianField):
    """Node j hangs on its neighbours: Theta(z) = I - beta(z), z uniform on [-1, 1]^2.

    beta_jk(z) = s_e (low + (high - low) (1 + shape(v_e.z)) / 2) with a random sign s_e, direction v_e and
    phase for every edge e. Values have variance 1 given their neighbours. |beta| lies in [low, high] where
    low >= 0; with low = -high, coefficients pass through zero.
    """

    def __init__(
        self,
        n_nodes: int,
        rng: np.random.Generator,
        *,
        shape: str = "smooth",
        low: float = -STRENGTH,
        high: float = STRENGTH,
    ) -> None:
        self.shape, self.low, self.high = shape, low, high
        angles, self.phases = rng.uniform(0, 2 * np.pi, (2, n_nodes - 1))
        self.directions = np.stack([np.cos(angles), np.sin(angles)])
        self.signs = rng.choice([-1.0, 1.0], n_nodes - 1)
        self.candidates = (np.eye(n_nodes) + np.eye(n_nodes, k=1) + np.eye(n_nodes, k=-1))[None]

    def covariates(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.uniform(-1, 1, (n_samples, N_COVARIATES))

    def strengths(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """beta of the edges, (n, edges)."""
        wave = SHAPES[self.shape](Z @ self.directions, self.phases)
        return self.signs * (self.low + (self.high - self.low) * (1 + wave) / 2)

    def precision(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        edges = np.arange(len(self.signs))
        theta = np.tile(np.eye(len(edges) + 1), (len(Z), 1, 1))
        theta[:, edges, edges + 1] = theta[:, edges + 1, edges] = -self.strengths(Z)
        return theta

    def skeleton(self, Z: NDArray[np.float64]) -> NDArray[np.bool_]:
        graph = (self.candidates[0] != 0) & ~np.eye(len(self.signs) + 1, dtype=bool)
        return np.broadcast_to(graph, (len(Z), *graph.shape))
