"""Nodes that belong together: their labels, their order in a picture, and averages between groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.exceptions import DataError, listing, suggestion
from graphfield.messages import Argument

# Node name to group, or one group per node in the order of the nodes.
Groups = Mapping[Any, Any] | Sequence[Any] | NDArray | pd.Series


def group_labels(groups: Groups, names: Sequence[str]) -> list[str]:
    """The group of every node, as text, in the order of ``names``.

    >>> group_labels({"b": "north", "a": "south"}, ["a", "b"])
    ['south', 'north']
    """
    names = [str(name) for name in names]
    if isinstance(groups, Mapping):
        known = {str(name): str(group) for name, group in groups.items()}
        lacking = [name for name in names if name not in known]
        unknown = [name for name in known if name not in names]
        if lacking:
            hint = f" Did you mean {lacking[0]!r} by {unknown[0]!r}?" if len(unknown) == 1 else ""
            raise DataError(
                "{argument} must give every node a group, but it lacks {lacking}.{hint}",
                argument=Argument("groups"),
                lacking=listing(lacking),
                hint=hint,
            )
        return [known[name] for name in names]
    labels = [str(group) for group in groups]
    if isinstance(groups, str) or len(labels) != len(names):
        raise DataError(
            "{argument} must have one entry for each of the {n} nodes, got {found}. Pass a mapping from "
            "node name to group to be safe from the order.",
            argument=Argument("groups"),
            n=len(names),
            found=len(labels),
        )
    return labels


def group_order(labels: Sequence[str]) -> tuple[NDArray[np.intp], list[tuple[str, int, int]]]:
    """Positions of the nodes sorted by group, and ``(group, first, end)`` for each group in that order.

    Groups come in the order in which they appear; nodes of a group stay in theirs.

    >>> order, blocks = group_order(["b", "a", "b"])
    >>> order.tolist(), blocks
    ([0, 2, 1], [('b', 0, 2), ('a', 2, 3)])
    """
    codes, found = pd.factorize(np.asarray(labels, dtype=object))
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(found)))
    starts = np.r_[0, ends[:-1]]
    blocks = [(str(g), int(a), int(b)) for g, a, b in zip(found, starts, ends, strict=True)]
    return order, blocks


def node_positions(nodes: Sequence[str], names: Sequence[str]) -> NDArray[np.intp]:
    """Where these nodes are among ``names``; a name that is not there is an error with a suggestion."""
    known = {str(name): position for position, name in enumerate(names)}
    for node in nodes:
        if str(node) not in known:
            raise DataError(
                f"There is no node called {str(node)!r}.{suggestion(str(node), known)} "
                f"The nodes are {listing(known)}."
            ).about(column=str(node))
    return np.array([known[str(node)] for node in nodes], dtype=np.intp)


def block_means(matrices: NDArray, labels: Sequence[str]) -> tuple[list[str], NDArray[np.float64]]:
    """Groups in order of appearance, and the mean over pairs of nodes of each two: (..., g, g).

    A node is no pair with itself: the diagonal of ``matrices`` does not count, and a group of one node has
    a mean of NaN within itself.

    >>> groups, means = block_means(np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0.0]]), ["a", "a", "b"])
    >>> groups, means.tolist()
    (['a', 'b'], [[1.0, 2.5], [2.5, nan]])
    """
    codes, found = pd.factorize(np.asarray(labels, dtype=object))
    member = (codes[:, None] == np.arange(len(found))).astype(np.float64)  # (p, g)
    values = np.asarray(matrices, dtype=np.float64)
    sums = np.swapaxes(member, 0, 1) @ (values @ member)
    own = np.diagonal(values, axis1=-2, axis2=-1) @ member
    sums = sums - own[..., None] * np.eye(len(found))
    sizes = member.sum(axis=0)
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    empty = np.full(sums.shape, np.nan)
    return [str(group) for group in found], np.divide(sums, pairs, out=empty, where=pairs > 0)
