"""The result of a simulation: data, and the truth behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.simulate.field import Field


@dataclass(frozen=True)
class Simulation:
    """Samples and the field they were drawn from.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Node values.
    Z : ndarray of shape (n, q), or DataFrame where a covariate is categorical
        Covariates.
    field : Field
        The truth as a function of z: ``field.skeleton(Z)`` works at any covariates.
    """

    setting: str
    X: NDArray[np.float64]
    Z: Any
    field: Field

    @cached_property
    def skeleton(self) -> NDArray[np.bool_]:
        """True graphs, (n, p, p), symmetric with a False diagonal."""
        return self.field.skeleton(self.Z)

    @cached_property
    def pseudo_skeleton(self) -> NDArray[np.bool_]:
        """Without edges between married parents; equal to ``skeleton`` unless the truth is a DAG."""
        return self.field.pseudo_skeleton(self.Z)

    @cached_property
    def regime(self) -> NDArray[np.int64]:
        """Cluster of each sample: samples of one cluster have the same skeleton."""
        return self.field.regime(self.Z)

    @property
    def precision(self) -> NDArray[np.float64] | None:
        """True precision matrices, (n, p, p); None in D2, S3, I1 and M1. Computed when asked for."""
        return self.field.precision(self.Z)

    @property
    def coef(self) -> NDArray[np.float64] | None:
        """True beta, (n, p, p), zero diagonal; None in N1, N2, D2, S3 and M1. Computed when asked for.

        In I1 these are the interactions: what each node adds to the log-odds of each other.
        """
        return self.field.coef(self.Z)

    @property
    def interactions(self) -> NDArray[np.float64] | None:
        """True effects of the design columns on each other, (n, columns, columns), in I1 and M1; else None.

        The block of rows ``column_nodes == j`` and columns ``column_nodes == k`` is the effect of node k on
        node j: on its mean (gaussian), its log-odds (binary), the log-odds of its second, third, ... level
        against the first (categorical), the logarithm of its mean (count). Computed when asked for.
        """
        return self.field.interactions(self.Z)

    @property
    def node_types(self) -> tuple[str, ...]:
        """Kind of each node: "gaussian" (a number), "binary" (0, 1), "categorical" (0, 1, ...) or "count"."""
        return self.field.node_types

    @property
    def column_nodes(self) -> NDArray[np.int64]:
        """Node of each design column; 0, 1, ..., p - 1 but in M1, where categorical nodes have several."""
        return self.field.column_nodes

    @property
    def candidates(self) -> NDArray[np.float64]:
        """The matrices that are mixed, (r, p, p); in M1 at the strongest and by design column."""
        return self.field.candidates
