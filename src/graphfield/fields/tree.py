"""A binary tree over numbers: which leaf a row belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graphfield.data.saved_arrays import AtMost, SavedArrays

# Of a tree in a file.
_MAX_TREE_NODES = 2**20


@dataclass(frozen=True)
class Tree:
    """A binary tree as plain arrays over its nodes; node 0 is the root, leaves have ``left == -1``.

    A row goes left where ``features[feature] <= threshold``. Nodes are numbered in the order in which
    the best splits were made, so the first 2 L - 1 nodes are the tree with L leaves.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]

    def to_arrays(self) -> dict[str, NDArray]:
        return {name: getattr(self, name) for name in ("left", "right", "feature", "threshold")}

    @classmethod
    def from_arrays(cls, arrays: SavedArrays, n_features: int) -> Tree:
        """Inverse of :meth:`to_arrays`: every node but the root is below exactly one that comes before it."""
        left = arrays.read("left", (AtMost(_MAX_TREE_NODES, 1),), np.int64, low=-1)
        n_nodes = len(left)
        right = arrays.read("right", (n_nodes,), np.int64, low=-1)
        feature = arrays.read("feature", (n_nodes,), np.int64)
        inner = np.flatnonzero((left >= 0) | (right >= 0))
        below = np.concatenate([left[inner], right[inner]])
        if not np.array_equal(np.sort(below), np.arange(1, n_nodes)) or (below <= np.tile(inner, 2)).any():
            arrays.refuse("left", "the children of a tree, with right", "another graph")
        if ((feature[inner] < 0) | (feature[inner] >= n_features)).any():
            arrays.refuse("feature", f"from 0 to {n_features - 1} where the tree splits", str(feature[:8]))
        return cls(left, right, feature, arrays.read("threshold", (n_nodes,)))

    @cached_property
    def leaves(self) -> NDArray[np.intp]:
        """Node numbers of the leaves."""
        return np.flatnonzero(self.left < 0)

    def first(self, n_leaves: int) -> Tree:
        """The tree with fewer leaves that this one was grown from."""
        n_nodes = 2 * n_leaves - 1
        left, right = self.left[:n_nodes].copy(), self.right[:n_nodes].copy()
        cut = left >= n_nodes
        left[cut] = right[cut] = -1
        return Tree(left, right, self.feature[:n_nodes], self.threshold[:n_nodes])

    def members(self, features: NDArray) -> NDArray[np.bool_]:
        """Which rows pass through which node, (n, nodes)."""
        # scikit-learn compares single precision with double precision thresholds. Back in double precision
        # here: NumPy before 2 would round a threshold that is compared with single precision.
        features = features.astype(np.float32).astype(np.float64)
        inside = np.zeros((len(features), len(self.left)), dtype=bool)
        inside[:, 0] = True
        for node in np.flatnonzero(self.left >= 0):
            goes_left = features[:, self.feature[node]] <= self.threshold[node]
            inside[:, self.left[node]] = inside[:, node] & goes_left
            inside[:, self.right[node]] = inside[:, node] & ~goes_left
        return inside

    def apply(self, features: NDArray) -> NDArray[np.intp]:
        """Position in ``leaves`` of the leaf of each row."""
        return np.argmax(self.members(features)[:, self.leaves], axis=1)

    def parent(self, node: int) -> int:
        return int(np.flatnonzero((self.left == node) | (self.right == node))[0])

    def tops(self, leaves: NDArray[np.intp]) -> list[int]:
        """As few nodes as possible below which these leaves are, and no others."""
        covered = {int(leaf) for leaf in leaves}
        inner = np.flatnonzero(self.left >= 0)
        for node in inner[::-1]:  # children have larger numbers
            children = {int(self.left[node]), int(self.right[node])}
            if children <= covered:
                covered = covered - children | {int(node)}
        return sorted(covered)

    def path(self, leaf: int) -> list[tuple[int, bool]]:
        """Splits from the root down to node ``leaf``, and whether each is passed on the left."""
        steps: list[tuple[int, bool]] = []
        node = leaf
        while node != 0:
            parent = self.parent(node)
            steps.append((parent, bool(self.left[parent] == node)))
            node = parent
        return steps[::-1]
