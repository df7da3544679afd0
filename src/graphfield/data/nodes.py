"""Node values to standard units and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata


@dataclass(frozen=True)
class NodeScaler:
    """``x -> (x - center) / scale`` per node, and the same for what is derived from x."""

    center: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def learn(cls, X: NDArray[np.float64], *, center: bool, scale: bool) -> NodeScaler:
        n_nodes = X.shape[1]
        return cls(
            X.mean(axis=0) if center else np.zeros(n_nodes),
            X.std(axis=0) if scale else np.ones(n_nodes),
        )

    def transform(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return (X - self.center) / self.scale

    def restore(self, X: NDArray) -> NDArray:
        """Node values in standard units to the user's units."""
        return X * self.scale + self.center

    def restore_coef(self, coef: NDArray) -> NDArray:
        """Coefficients in standard units to the user's: ``beta_jk * scale_j / scale_k``."""
        ratio = (self.scale[:, None] / self.scale[None, :]).astype(coef.dtype)
        return coef * ratio


def normal_scores(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column as the normal quantiles of its ranks, ``Phi^-1(rank / (n + 1))``, ties averaged.

    A graph of Gaussian data seen through unknown increasing functions (the nonparanormal model) can
    be estimated from these as if the data were Gaussian.

    >>> normal_scores(np.array([[1.0], [100.0], [3.0]])).round(2).ravel()
    array([-0.67,  0.67,  0.  ])
    """
    return norm.ppf(rankdata(X, axis=0) / (len(X) + 1))
