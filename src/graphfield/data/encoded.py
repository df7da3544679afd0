"""Covariates as numbers and codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True)
class Encoded:
    """Covariates as the models see them: ``numeric`` (n, q_num) and ``codes`` (n, q_cat).

    The code of a level unseen in training is the number of known levels.
    """

    numeric: NDArray[np.float64]
    codes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.numeric)

    def take(self, rows: NDArray[np.intp]) -> Encoded:
        return Encoded(self.numeric[rows], self.codes[rows])

    def distinct(self) -> tuple[Encoded, NDArray[np.intp]]:
        """The distinct rows in order of appearance, and for each row which of them it is."""
        first, index = self.distinct_positions()
        return self.take(first), index

    def distinct_positions(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where each of the distinct rows is there first, and for each row which of them it is."""
        columns = np.column_stack([self.numeric, self.codes.astype(np.float64)])
        if columns.shape[1] == 0 or len(self) < 2:
            return np.arange(min(1, len(self))), np.zeros(len(self), dtype=np.intp)
        # + 0.0 turns -0.0 into 0.0, which are equal but hash differently
        keys = pd.DataFrame(columns + 0.0)
        index = keys.groupby(list(keys.columns), sort=False).ngroup().to_numpy()
        return np.unique(index, return_index=True)[1], index.astype(np.intp)

    @classmethod
    def same(cls, n_rows: int) -> Encoded:
        """Rows that do not differ."""
        return cls(np.empty((n_rows, 0)), np.empty((n_rows, 0), dtype=np.int64))

    def followed_by(self, other: Encoded) -> Encoded:
        """The same columns with more rows."""
        return Encoded(*map(np.concatenate, zip(vars(self).values(), vars(other).values(), strict=True)))

    def beside(self, other: Encoded) -> Encoded:
        """The same rows with more columns."""
        return Encoded(np.hstack([self.numeric, other.numeric]), np.hstack([self.codes, other.codes]))
