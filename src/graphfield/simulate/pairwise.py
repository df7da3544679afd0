"""Fields of nodes of any kind: pairwise interactions of their design columns, drawn by Gibbs sampling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphfield.simulate.field import Field
from graphfield.simulate.node_kinds import NodeKind

# Every row is a chain of its own, and what it ends with is the sample. In I1 and M1, chains from opposite
# starts with the same random numbers are one after twenty sweeps.
SWEEPS = 50
# Rows that are drawn side by side, from one random stream.
_CHUNK = 1_000


class PairwiseField(Field):
    """log p(x | z) = sum_j a_j(z) f_j + sum_j<k (f_j - c_j)' B_jk(z) (f_k - c_k) + sum_j log h_j + constant.

    f_j are the design columns of node j, c_j their centres. Given the others, node j has
    eta_j = a_j(z) + sum_k B_jk(z) (f_k - c_k).
    """

    def __init__(self, kinds: Sequence[NodeKind]) -> None:
        self.kinds = tuple(kinds)
        widths = [kind.width for kind in kinds]
        self._column_nodes = np.repeat(np.arange(len(widths)), widths)
        ends = np.cumsum(widths).tolist()
        self._owned = [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]

    @property
    def node_types(self) -> tuple[str, ...]:
        return tuple(kind.name for kind in self.kinds)

    @property
    def column_nodes(self) -> NDArray[np.int64]:
        return self._column_nodes

    @abstractmethod
    def offsets(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """a(z), (n, columns)."""

    @abstractmethod
    def interactions(self, Z: NDArray[np.float64]) -> NDArray[np.float64]: ...

    def coef(self, Z: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The interactions where every node has one column, else None."""
        return self.interactions(Z) if len(self.column_nodes) == len(self.kinds) else None

    def sample(self, Z: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        starts = range(0, len(Z), _CHUNK)
        chunks = zip(starts, rng.spawn(len(starts)), strict=True)
        return np.concatenate([self._draw(Z[start : start + _CHUNK], stream) for start, stream in chunks])

    def _draw(self, Z: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """One chain per row. A full chunk of numbers is drawn for any rows: more of them keep the first."""
        offsets = self.offsets(Z)
        pulls = np.ascontiguousarray(self.interactions(Z).transpose(1, 0, 2))  # (columns, n, columns)
        X = np.empty((len(Z), len(self.kinds)))
        centred = np.zeros_like(offsets)  # at first, nothing pulls
        for _ in range(SWEEPS):
            uniform = rng.random((len(self.kinds), _CHUNK))[:, : len(Z)]
            for j, (kind, own) in enumerate(zip(self.kinds, self._owned, strict=True)):
                eta = offsets[:, own] + np.einsum("cik,ik->ic", pulls[own], centred)
                X[:, j] = kind.draw(eta, uniform[j])
                centred[:, own] = kind.columns(X[:, j]) - kind.centre
        return X
