"""Where the numbers of each edge are, where nodes have one column or more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PairColumns:
    """An edge of nodes with v and w columns is v x w numbers; those of all pairs j < k, one after the other.

    Attributes
    ----------
    first, second : ndarray of int
        Columns of the nodes that each number is about.
    starts : ndarray of int of shape (pairs + 1,)
        Where each pair begins, and the end.

    Examples
    --------
    >>> pairs = PairColumns.of([1, 1, 2])
    >>> pairs.first, pairs.second, pairs.widths
    (array([0, 0, 0, 1, 1]), array([1, 2, 3, 2, 3]), array([1, 2, 2]))
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, widths: Sequence[int] | NDArray[np.intp]) -> PairColumns:
        """From the columns of each node."""
        nodes = np.repeat(np.arange(len(widths)), widths)
        first, second = np.nonzero(nodes[:, None] < nodes)
        order = np.lexsort((second, first, nodes[second], nodes[first]))
        first, second = first[order], second[order]
        j, k = nodes[first], nodes[second]
        starts = np.flatnonzero(np.diff(j * len(widths) + k, prepend=-1))
        return cls(first, second, np.append(starts, len(first)))

    @cached_property
    def widths(self) -> NDArray[np.intp]:
        return np.diff(self.starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of_pair(self, pair: int) -> slice:
        return slice(self.starts[pair], self.starts[pair + 1])

    def with_width(self, width: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Pairs with so many numbers, and where these are, (pairs, width)."""
        which = np.flatnonzero(self.widths == width)
        return which, self.starts[which][:, None] + np.arange(width)
