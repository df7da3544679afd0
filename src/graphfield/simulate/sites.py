"""S2: a categorical covariate (site) times a numeric one (age)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.simulate.gaussian import MixtureField, raise_diagonal, random_symmetric

N_NODES = 50
SITES = ("A", "B", "C", "D")
SHARES = (0.4, 0.3, 0.2, 0.1)
EDGE_PROBABILITY, EDGE_RANGE = 0.04, (0.3, 0.6)


class Sites(MixtureField):
    """Theta = (1 - age) Psi_site + age Psi_common, five random sparse matrices."""

    def __init__(self, rng: np.random.Generator, *, clip: bool) -> None:
        del clip  # age is a convex weight as it is
        matrices = [random_symmetric(N_NODES, EDGE_PROBABILITY, *EDGE_RANGE, rng) for _ in range(5)]
        self.candidates = np.stack([raise_diagonal(m) for m in matrices])  # A, B, C, D, common

    def covariates(self, n_samples: int, rng: np.random.Generator) -> pd.DataFrame:
        draws = rng.random((n_samples, 2))
        site = np.searchsorted(np.cumsum(SHARES)[:-1], draws[:, 0], side="right")
        return pd.DataFrame({"site": np.array(SITES, dtype=object)[site], "age": draws[:, 1]})

    def regime(self, Z: pd.DataFrame) -> NDArray[np.int64]:
        return pd.Index(SITES).get_indexer(pd.Index(Z["site"])).astype(np.int64)

    def mixing(self, Z: pd.DataFrame) -> NDArray[np.float64]:
        age = Z["age"].to_numpy()
        mixing = np.zeros((len(Z), 5))
        mixing[np.arange(len(Z)), self.regime(Z)] = 1 - age
        mixing[:, 4] = age
        return mixing
