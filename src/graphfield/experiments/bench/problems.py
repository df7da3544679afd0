"""Sizes of the problems that are timed, and synthetic data of these sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float32]


@dataclass(frozen=True)
class Problem:
    """One training problem: n rows, p nodes, q covariates and the network's shape."""

    n_rows: int
    n_nodes: int
    n_covariates: int
    hidden: int
    batch: int
    dropout: float = 0.3
    batch_norm: bool = True
    bias: bool = True

    @property
    def head_flops(self) -> float:
        """Arithmetic of one step's head, ``6 b h p^2``: one product forward, two backward."""
        return 6.0 * self.batch * self.hidden * self.n_nodes**2

    @property
    def steps_per_epoch(self) -> int:
        return self.n_rows // self.batch

    def data(self, seed: int = 0) -> tuple[Table, Table]:
        """Node values and covariates: noise, as the time of a step does not depend on what is learned."""
        rng_x, rng_z = np.random.default_rng(seed).spawn(2)
        X = rng_x.standard_normal((self.n_rows, self.n_nodes), dtype=np.float32)
        return X, rng_z.random((self.n_rows, self.n_covariates), dtype=np.float32)


G1_STEP = Problem(10_000, 50, 2, hidden=128, batch=512)
G1_SMALL_BATCH = Problem(10_000, 50, 2, hidden=128, batch=64)
P268 = Problem(40_960, 268, 1, hidden=64, batch=1024)
P1000 = Problem(20_480, 1000, 5, hidden=64, batch=512)
# The paper's fMRI data: 439,200 rows, no batch norm, no bias, 50 epochs.
FMRI = Problem(439_200, 268, 1, hidden=64, batch=1024, batch_norm=False, bias=False)
FMRI_EPOCHS = 50
