"""How closely columns follow each other, whatever the shape of the relation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

# Correlations this close to one are copies; what is left is rounding.
COPY_TOLERANCE = 1e-9


def rank_correlation(values: NDArray[np.float64], others: NDArray[np.float64] | None = None) -> NDArray:
    """Spearman's correlation of every column with every column, or with those of ``others``; 0 if constant.

    >>> x = np.arange(1.0, 9.0)
    >>> rank_correlation(np.column_stack([x, np.exp(x), -x])).round(3).tolist()[0]
    [1.0, 1.0, -1.0]
    """
    first = _standard_ranks(values)
    second = first if others is None else _standard_ranks(others)
    return first.T @ second / len(values)


def _standard_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    ranks = rankdata(values, axis=0)
    ranks -= ranks.mean(axis=0)
    spread = ranks.std(axis=0)
    return ranks / np.where(spread > 0, spread, 1.0)
