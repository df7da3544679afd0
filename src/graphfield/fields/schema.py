"""What a field speaks of: its nodes, its covariates, and rows of these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from graphfield.data.covariates import CovariateEncoder, features
from graphfield.data.encoded import Encoded
from graphfield.data.frames import MIN_NODES, Frame, as_frame, match_columns, node_values
from graphfield.data.marginals import NodeMap, read_map
from graphfield.data.node_types import NodeTypes
from graphfield.data.saved_arrays import SavedArrays
from graphfield.data.saved_values import Saved, optional

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Rows:
    """Covariate rows that a field is asked at: the table, and how the field's encoder reads it.

    The members of a field that is an average have encoders of their own: ``members`` is what these read.
    """

    frame: Frame
    encoded: Encoded
    members: tuple[Rows, ...] = ()

    def __len__(self) -> int:
        return len(self.encoded)

    def take(self, rows: NDArray[np.intp], frame: Frame | None = None) -> Rows:
        """The rows at these positions; ``frame`` where they were taken from the table already."""
        taken = self.frame.take(rows) if frame is None else frame
        members = (own.take(rows, taken if own.frame is self.frame else None) for own in self.members)
        return Rows(taken, self.encoded.take(rows), tuple(members))

    def between(self, rows: slice) -> Rows:
        """Consecutive rows."""
        return self.take(np.arange(rows.start, rows.stop))


@dataclass(frozen=True, eq=False)
class Schema:
    """Names of the nodes, what is made of their values, and how covariates become numbers.

    Where there are ``scores``, the field is one of normal scores or logarithms: what it says of nodes it says
    of these.
    Where there are ``types``, some nodes are no plain numbers, and levels have codes.
    """

    node_names: list[str]
    nodes_named: bool
    encoder: CovariateEncoder
    scores: NodeMap | None = None
    types: NodeTypes | None = None

    @property
    def n_nodes(self) -> int:
        return len(self.node_names)

    def match_nodes(self, X: Any) -> Frame:
        """A table of node values with its columns in the order of the fit; unknown levels raise."""
        frame = match_columns(as_frame(X, "X"), self.node_names, self.nodes_named, "X")
        return frame if self.types is None else self.types.with_categories(frame)

    def node_values(self, frame: Frame) -> NDArray[np.floating]:
        """What :meth:`match_nodes` gives as numbers; levels by their codes."""
        return node_values(frame) if self.types is None else self.types.codes(frame)

    @property
    def node_kinds(self) -> list[str]:
        """Of each node: "gaussian" (a number), "binary", "categorical", "ordinal" or "count"."""
        return ["gaussian"] * self.n_nodes if self.types is None else self.types.kinds

    @property
    def signless(self) -> list[bool]:
        """Of each node, whether its edges have no sign: those of levels without an order."""
        return [False] * self.n_nodes if self.types is None else (self.types.widths > 1).tolist()

    def network(self, graph: NDArray[np.bool_], partial: NDArray) -> nx.Graph:
        """Of edges between these nodes."""
        from graphfield.graphs.export import to_networkx

        kinds = None if self.types is None else self.types.kinds
        return to_networkx(graph, partial, self.node_names, kinds=kinds, signless=self.signless)

    def match_covariates(self, Z: Any) -> Frame:
        """A table of covariates with its columns in the order of the fit."""
        frame = match_columns(as_frame(Z, "Z"), self.encoder.names, self.encoder.named, "Z")
        return self.encoder.pool(frame)

    def features(self, rows: Rows) -> NDArray[np.float64]:
        return features(self.encoder, rows.encoded)

    @property
    def marginals(self) -> str:
        """What nodes are turned into: "raw" (as they are), "normal", "log1p" or "clr"."""
        return "raw" if self.scores is None else self.scores.name

    def with_scores(self, scores: NodeMap | None) -> Self:
        return replace(self, scores=scores)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        arrays = {} if self.scores is None else self.scores.to_arrays()
        nodes: dict[str, Any] = {"node_names": self.node_names, "nodes_named": self.nodes_named}
        if self.types is not None:
            nodes["node_types"] = self.types.state()
        return {**nodes, "encoder": self.encoder.to_state()}, arrays

    @classmethod
    def from_state(cls, state: Saved, arrays: SavedArrays) -> Schema:
        """Inverse of :meth:`state`; what could not come from it is refused."""
        names, encoder = (
            state["node_names"].names(least=MIN_NODES),
            CovariateEncoder.from_state(state["encoder"]),
        )
        scores = read_map(arrays, len(names))
        types = optional(state.known("node_types"), lambda own: NodeTypes.from_state(own, names), None)
        return cls(names, state["nodes_named"].flag(), encoder, scores, types)
