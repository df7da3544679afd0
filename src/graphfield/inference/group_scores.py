"""Scores of whole groups, each of which counts by how much its rows tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.inference.cleaned_nodes import CleanedNodes
from graphfield.inference.rearrange import Rows
from graphfield.inference.score_test import Functions, Pairs

# Groups less columns of covariates, at least, for groups to be exchanged.
_LEAST_FREEDOM = 5


@dataclass(frozen=True)
class GroupScores:
    """What exchanging groups needs, where one covariate is tested and others are given.

    Mean products of the nodes of a group are regressed on ``given``, and what is left of them changes
    places (Freedman and Lane), or, which is the same, the covariate does. What changes places must be alike.
    But the mean of two rows is noisier than that of eighty, and a level that is rare among rows has its
    largest shares in groups of few rows. So both sides are multiplied by ``weights``, the roots of the
    inverse variances of the means.

    Attributes
    ----------
    rows : Rows
    fixed, own : ndarray of shape (n_groups, m'), (n_groups, m)
        Orthonormal, times weights: a constant and ``given``, and what these leave of the covariate.
    weights : ndarray of shape (n_groups,)
    spreads : list of ndarray of shape (p, p)
        About the variances of the scores of nodes and of residuals.
    """

    rows: Rows
    fixed: NDArray[np.float64]
    own: NDArray[np.float64]
    weights: NDArray[np.float64]
    spreads: list[NDArray[np.float64]]

    @classmethod
    def of(
        cls, nodes: CleanedNodes, columns: NDArray[np.float64], given: NDArray[np.float64], rows: Rows
    ) -> GroupScores | None:
        """None where too few groups are left to exchange; columns and given do not vary within groups."""
        raw = np.column_stack([np.ones(len(rows.starts)), given[rows.starts]])
        between, within = _variances(nodes, _orthonormal(raw), rows)
        whole = np.maximum(between + within, 1e-12)
        means = (between / whole).mean() + (within / whole).mean() / rows.sizes  # variances, up to a factor
        weights = 1 / np.sqrt(np.maximum(means, 1e-6))
        fixed = _orthonormal(weights[:, None] * raw)
        own = weights[:, None] * columns[rows.starts]
        own = _orthonormal(own - fixed @ (fixed.T @ own))
        if not own.shape[1] or len(weights) - fixed.shape[1] - own.shape[1] < _LEAST_FREEDOM:
            return None
        spreads = between * np.mean(weights**2) + within * np.mean(weights**2 / rows.sizes)
        return cls(rows, fixed, own, weights, list(spreads))

    @property
    def functions(self) -> Functions:
        sizes = self.rows.sizes
        group = np.repeat(np.arange(len(sizes)), sizes)
        share = (self.weights / sizes)[:, None]

        def functions(rows: NDArray[np.intp]) -> NDArray[np.float32]:
            moved = self.own[group[rows[self.rows.starts]]]
            moved = moved - self.fixed @ (self.fixed.T @ moved)
            root = np.linalg.cholesky(moved.T @ moved + 1e-9 * np.eye(moved.shape[1]))
            moved = np.linalg.solve(root, moved.T).T
            return (share * moved)[group].astype(np.float32)

        return functions


def _variances(nodes: CleanedNodes, fixed: NDArray[np.float64], rows: Rows) -> NDArray[np.float64]:
    """Of scores, between groups (beyond ``fixed``) and within them: (2, 2, p, p), of nodes and residuals."""
    p, n_groups = nodes.values.shape[1], len(rows.starts)
    found = np.zeros((2, 2, p, p))
    left = 1 - np.square(fixed).sum(axis=1)  # of the variance of a group's mean
    for kind, first, second, scores in Pairs.of(nodes.values).parts(rows.n_rows):
        means = rows.group_sums(scores) / rows.sizes[:, None]
        squares = np.square(scores).sum(axis=0) - rows.sizes @ np.square(means)
        within = np.maximum(squares, 0) / max(1, rows.n_rows - n_groups)
        means -= fixed @ (fixed.T @ means)
        between = (np.square(means).sum(axis=0) - within * (left / rows.sizes).sum()) / max(left.sum(), 1e-9)
        found[:, kind, first, second] = np.maximum(between, 0), within
    return found


def _orthonormal(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """An orthonormal basis of the columns, without directions that are all but missing."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return left[:, sizes > 1e-6 * np.sqrt(len(columns))]
