"""The result of a simulation: data, and the truth behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Simulation:
    """Samples whose precision matrix is a mixture of candidates that depends on the covariates.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Node values.
    Z : ndarray of shape (n, q)
        Covariates.
    regime : ndarray of shape (n,), int
        Cluster of each sample: samples of one cluster have the same skeleton.
    mixing : ndarray of shape (n, r)
        Weight of each candidate in each sample.
    candidates : ndarray of shape (r, p, p)
        The precision matrices that are mixed.
    """

    setting: str
    X: NDArray[np.float64]
    Z: NDArray[np.float64]
    regime: NDArray[np.int64]
    mixing: NDArray[np.float64]
    candidates: NDArray[np.float64]

    @property
    def precision(self) -> NDArray[np.float64]:
        """True precision matrices, (n, p, p); computed when asked for."""
        return np.einsum("ir,rjk->ijk", self.mixing, self.candidates)

    @property
    def coef(self) -> NDArray[np.float64]:
        """True beta_jk = -Theta_jk / Theta_jj, (n, p, p), zero diagonal; computed when asked for."""
        theta = self.precision
        diagonal = np.einsum("ijj->ij", theta)
        coef = -theta / diagonal[:, :, None]
        np.einsum("ijj->ij", coef)[:] = 0.0
        return coef

    @cached_property
    def skeleton(self) -> NDArray[np.bool_]:
        """True graphs, (n, p, p), symmetric with a False diagonal."""
        used = self.mixing > 0  # (n, r)
        patterns, index = np.unique(used, axis=0, return_inverse=True)
        present = self.candidates != 0
        graphs = np.stack([present[pattern].any(axis=0) for pattern in patterns])
        graphs[:, np.eye(graphs.shape[1], dtype=bool)] = False
        return graphs[index.ravel()]

    @property
    def pseudo_skeleton(self) -> NDArray[np.bool_]:
        """Without edges between married parents; equal to ``skeleton`` unless the truth is a DAG."""
        return self.skeleton
