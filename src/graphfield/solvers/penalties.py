"""Which penalties to try, and what a search over them returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A penalty this many times smaller than the noise of a correlation, 1/sqrt(n), is as good as none.
_BELOW_NOISE = 0.1
# With more neighbours than this share of the rows a regression explains everything, held-out rows
# excepted, and takes very long to solve.
_MOST_NEIGHBOURS = 0.5


@dataclass(frozen=True)
class PenaltyChoice:
    """The solution at one penalty and the search that led to it.

    Attributes
    ----------
    solution : ndarray of shape (p, p)
        Coefficients or a precision matrix, on standardised nodes.
    penalty : float
    path : ndarray of shape (m, 3)
        Penalty, score and number of edges of everything that was tried, largest penalty first. NaN
        or infinity stands for what is not known.
    """

    solution: NDArray[np.float64]
    penalty: float
    path: NDArray[np.float64]


def penalty_path(S: NDArray[np.float64], n_penalties: int, ratio: float = 0.1) -> NDArray[np.float64]:
    """Penalties from the largest off-diagonal entry of ``S`` down to ``ratio`` times it.

    Geometric and descending, the convention of R's huge. The first gives the empty graph, in the
    nodewise and in the graphical lasso.

    >>> penalty_path(np.array([[1.0, -0.5], [-0.5, 1.0]]), 3, ratio=0.01).round(3).tolist()
    [0.5, 0.05, 0.005]
    """
    top = float(np.abs(S - np.diag(np.diag(S))).max())
    # Without any correlation every penalty gives the empty graph.
    path = np.geomspace(top or 1.0, (top or 1.0) * ratio, n_penalties)
    path[0] = top or 1.0  # not one rounding below: the empty graph is exact
    return path


def search_path(S: NDArray[np.float64], n_samples: int, n_penalties: int) -> NDArray[np.float64]:
    """:func:`penalty_path` from the empty graph to a tenth of the noise of a correlation matrix.

    The range covers one decade at least.
    """
    top = penalty_path(S, 1)[0]
    return penalty_path(S, n_penalties, ratio=min(0.1, smallest_penalty(n_samples) / top))


def smallest_penalty(n_samples: int) -> float:
    """Below which a search has nothing to gain but the copies among the nodes, which have no end."""
    return float(_BELOW_NOISE / np.sqrt(n_samples))


def too_dense(n_neighbours: float, n_samples: int) -> bool:
    """Whether a node has more neighbours than a search with so many rows should consider.

    A search ends where this holds for the average node.
    """
    return n_neighbours > _MOST_NEIGHBOURS * n_samples


def between_neighbours(penalties: NDArray, best: int, n_penalties: int) -> NDArray[np.float64]:
    """``n_penalties`` new ones between the neighbours of the best of a descending path."""
    high, low = penalties[max(best - 1, 0)], penalties[min(best + 1, len(penalties) - 1)]
    return np.geomspace(high, low, n_penalties + 2)[1:-1]
