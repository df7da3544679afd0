"""What fields of nodes of any kind say of the columns that these own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks
from graphfield.exceptions import ParameterError
from graphfield.fields.schema import Rows, Schema
from graphfield.fields.streaming import Part, cache_slices
from graphfield.graphs.strength import block_strengths

# Values of a number that enters by a curve, in standard deviations from its mean.
CURVE_STEPS = np.linspace(-2, 2, 9)


class ColumnQuestions:
    """Where some nodes are no plain numbers, a field is known by four answers about columns.

    A kind of field that takes such nodes gives :meth:`column_strengths_at`, :meth:`column_residuals`,
    :meth:`fit_links` and :meth:`links_at`; fields made of fields pass the questions on. Links are in units
    that all fields have in common: means of numbers, log-odds, logarithms of counts (``Blocks.of_links``).
    Numbers that enter by curves own more columns than links; a field of these also gives
    :meth:`curve_values_at` and :meth:`curves_at`.
    """

    @property
    @abstractmethod
    def schema(self) -> Schema: ...

    @abstractmethod
    def scales_at(self, rows: Rows) -> NDArray[np.float64]: ...

    @property
    def made_of(self) -> Sequence[ColumnQuestions]:
        """The fields that this one is made of, whose nodes own as many columns; none of one that is not."""
        return ()

    @property
    def column_starts(self) -> NDArray[np.intp]:
        """First of the columns that each node owns, (p,): one each, unless nodes have levels or curves."""
        if self.made_of:
            return self.made_of[0].column_starts
        types = self.schema.types
        return np.arange(self.schema.n_nodes) if types is None else types.starts

    @property
    def n_columns(self) -> int:
        return self.made_of[0].n_columns if self.made_of else self.n_links

    @property
    def n_links(self) -> int:
        types = self.schema.types
        return self.schema.n_nodes if types is None else int(types.widths.sum())

    def is_curve(self, node: int) -> bool:
        """Whether a number enters by more than itself."""
        width = np.diff(self.column_starts, append=self.n_columns)[node]
        return self.schema.node_kinds[node] == "gaussian" and bool(width > 1)

    def column_strengths_at(self, rows: Rows) -> NDArray[np.float32]:
        """Directed strengths between columns, (m, d, d), in units of what is left of both."""
        raise NotImplementedError

    def column_residuals(self, values: NDArray, rows: Rows) -> NDArray[np.float64]:
        """What is left of the columns of these nodes given the others, (m, d), in its own units."""
        raise NotImplementedError

    def fit_links(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        """Positions of some rows and the links of the columns given the others, until all rows were."""
        raise NotImplementedError

    def links_at(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What columns, less their means given z, do to links, (m, links, d), and these means, (m, d)."""
        raise NotImplementedError

    def curve_values_at(self, rows: Rows, node: int) -> NDArray[np.float64]:
        """Values of a number at which its curves are told, (m, values)."""
        raise NotImplementedError

    def curves_at(self, rows: Rows, node: int, values: NDArray) -> NDArray[np.float64]:
        """What these values (m, values) of a number do to links, against its mean: (m, links, values)."""
        raise NotImplementedError

    # -- what follows from these ------------------------------------------------------------

    def link_columns(self, values: NDArray) -> NDArray[np.float64]:
        """Columns of values of nodes in the units in which :meth:`links_at` takes them, (n, d)."""
        if self.n_columns > self.n_links:
            return self.curve_columns(values)
        assert self.schema.types is not None
        return Blocks.of_links(self.schema.types).columns(values)

    def curve_columns(self, values: NDArray) -> NDArray[np.float64]:
        """The same where numbers enter by curves; these are of this field alone."""
        return _same_columns([own.curve_columns(values) for own in self.made_of])

    def block_weights_at(self, rows: Rows) -> NDArray[np.float32]:
        """Weights of nodes, (m, p, p)."""
        strengths = block_strengths(self.column_strengths_at(rows), self.column_starts)
        scale = self.scales_at(rows)
        return (strengths * (scale[:, :, None] / scale[:, None, :])).astype(np.float32)

    def column_parts(self, values: NDArray, rows: Rows) -> Iterator[tuple[slice, NDArray, NDArray]]:
        """Some rows after the other: what is left of columns, and their directed strengths."""
        strengths, left = self.column_strengths_at(rows), self.column_residuals(values, rows)
        for few in cache_slices(len(values), self.n_columns):
            yield few, left[few], np.clip(strengths[few], -1, 1)

    def fit_means(self, values: NDArray, rows: Rows) -> Iterator[Part]:
        """Positions of some rows and what to expect of each node there."""
        assert self.schema.types is not None
        blocks = Blocks.of_links(self.schema.types)
        for where, links in self.fit_links(values, rows):
            yield where, blocks.node_means(links)


def _same_columns(columns: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Those of fields that another is made of: curves of other rows are made of other functions."""
    if any(not np.array_equal(own, columns[0]) for own in columns[1:]):
        raise ParameterError(
            "A model that is made of several, each with curves of its own (features), has no average graph "
            "to be compared with. Give one whose features are 'linear', or a single DNNCGM."
        ).about(argument="model")
    return columns[0]
