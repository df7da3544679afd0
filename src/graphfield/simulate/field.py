"""A field of graphs whose truth is known at every covariate value; strengths that come and go with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.graphs.strength import coef_from_precision


class Field(ABC):
    """The truth behind a setting: drawn once from a random stream, then a function of z.

    ``candidates`` are the matrices that the setting mixes: precision matrices, or coefficient
    matrices (child, parent) of directed trees.
    """

    candidates: NDArray[np.float64]

    @abstractmethod
    def covariates(self, n_samples: int, rng: np.random.Generator) -> Any:
        """Draw covariates; more samples keep the first ones."""

    @abstractmethod
    def sample(self, Z: Any, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw one row of node values for each row of Z."""

    def regime(self, Z: Any) -> NDArray[np.int64]:
        """Cluster of each row, whose rows have the same skeleton; 0 for all where there are no clusters."""
        return np.zeros(len(Z), dtype=np.int64)

    @abstractmethod
    def skeleton(self, Z: Any) -> NDArray[np.bool_]:
        """True graphs, (n, p, p), symmetric with a False diagonal."""

    def pseudo_skeleton(self, Z: Any) -> NDArray[np.bool_]:
        """Without edges between married parents; the skeleton itself unless the truth is a DAG."""
        return self.skeleton(Z)

    def precision(self, Z: Any) -> NDArray[np.float64] | None:  # noqa: ARG002
        """True precision matrices of the (latent) Gaussian, (n, p, p); None where there is none."""
        return None

    def coef(self, Z: Any) -> NDArray[np.float64] | None:
        """True beta_jk = -Theta_jk / Theta_jj, (n, p, p); None where nodes are not Gaussian."""
        theta = self.precision(Z)
        return None if theta is None else coef_from_precision(theta)

    @property
    def node_types(self) -> tuple[str, ...]:
        """Kind of each node: "gaussian" (a number), "binary", "categorical" or "count"."""
        return ("gaussian",) * self.candidates.shape[1]

    @property
    def column_nodes(self) -> NDArray[np.int64]:
        """Node of each design column: a node has one, a categorical one has one per level but the first."""
        return np.arange(len(self.node_types))

    def interactions(self, Z: Any) -> NDArray[np.float64] | None:  # noqa: ARG002
        """Effects of design columns on each other, (n, columns, columns); None where nodes are numbers."""
        return None


def without_diagonal(graphs: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return graphs & ~np.eye(graphs.shape[-1], dtype=bool)


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
