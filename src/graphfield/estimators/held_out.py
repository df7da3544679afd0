"""How well fitted models predict the same held-out rows, each node from all others."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphfield.data.blocks import Blocks
from graphfield.data.frames import Frame
from graphfield.data.node_types import NodeTypes
from graphfield.estimators.inputs import HeldOutTable
from graphfield.exceptions import ExtrapolationWarning
from graphfield.fields import Conditionals, GraphField, Rows
from graphfield.fields.walker import parts_of, rows_at_a_time
from graphfield.numbers import Gain, mean_and_error
from graphfield.solvers.simplex import simplex_weights

# A member with less weight than this is not worth its time.
_LEAST_WEIGHT = 0.02
# Rows over which the coefficients of a model are averaged, evenly spread, at most.
_AVERAGED_ROWS = 1_000


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows; ``units`` says which of them belong together (each its own without groups)."""

    values: NDArray[np.floating]
    Z: Frame
    units: NDArray[np.intp]

    @classmethod
    def of(cls, table: HeldOutTable) -> HeldOut:
        values, Z, labels = table
        units = np.arange(len(values)) if labels is None else labels
        return cls(values, Z, np.unique(units, return_inverse=True)[1])

    @property
    def n_units(self) -> int:
        return len(np.unique(self.units))

    def residuals(self, field: GraphField) -> NDArray[np.float64]:
        """What ``field`` leaves of every node, (n, p); squares are deviances where some are no numbers."""
        types = field.schema.types
        if types is not None:
            return Blocks.of_links(types).deviance_residuals(self._links(field), self.values)
        left = np.empty(self.values.shape)
        for rows, fitted in field.fit_values(self.values, encode_rows(field, self.Z)):
            left[rows] = self.values[rows] - fitted
        return left

    def residuals_of_average(self, field: GraphField, Z: Frame) -> NDArray[np.float64]:
        """What is left where the graph of ``field`` is its average over the rows of Z, with the same means.

        The difference to :meth:`residuals` is what is gained because the graph varies, and nothing else.
        """
        weights = average_weights(field, Z)
        if field.schema.types is None:
            return self.residuals_with(field, weights)
        return self._deviances_with(field, field.schema.types, weights)

    def residuals_alone(self, field: GraphField) -> NDArray[np.float64]:
        """What is left without any other node."""
        if field.schema.types is None:
            return self.residuals_with(field, np.zeros((field.n_nodes,) * 2))
        return self._deviances_with(field, field.schema.types, np.zeros((field.n_links, field.n_columns)))

    def _links(self, field: GraphField) -> NDArray[np.float64]:
        links = np.empty((len(self.values), field.n_links))
        for rows, part in field.fit_links(self.values, encode_rows(field, self.Z)):
            links[rows] = part
        return links

    def residuals_with(self, field: GraphField, weights: NDArray) -> NDArray[np.float64]:
        """What is left of numbers with the means, scales and normal scores of ``field``, but one graph.

        Its weights are those of nodes divided by the field's units, which may move with z as scales do.
        """
        here, scores = field.at(encode_rows(field, self.Z)), field.schema.scores
        mean, unit = here.offsets, here.units
        values = self.values if scores is None else scores.transform(self.values)
        fitted = mean + unit * ((values - mean) / unit @ weights.T)
        return self.values - (fitted if scores is None else scores.restore(fitted, self.values))

    def _deviances_with(self, field: GraphField, types: NodeTypes, weights: NDArray) -> NDArray[np.float64]:
        """What is left where columns have these weights, as links have them, at every z."""
        blocks, links, rows = Blocks.of_links(types), self._links(field), encode_rows(field, self.Z)
        columns = field.link_columns(self.values)
        for where, part in parts_of(rows, rows_at_a_time(field.n_columns)):
            own, means = field.links_at(part)
            links[where] += np.einsum("njk,nk->nj", weights - own, columns[where] - means)
        return blocks.deviance_residuals(links, self.values)


def average_weights(field: GraphField, Z: Frame) -> NDArray[np.float64]:
    """Over the rows of Z, (p, p); of columns, (links, d), where nodes are levels, counts or curves."""
    if field.schema.types is None:
        return _average_over(field, Z, lambda here: here.weights)
    return _average_over(field, Z, lambda here: field.links_at(here.at)[0])


def _average_over(
    field: GraphField, Z: Frame, weights: Callable[[Conditionals], NDArray]
) -> NDArray[np.float64]:
    """The average of what a field says over rows of Z."""
    given = encode_rows(field, Z)
    rows = np.unique(np.linspace(0, len(given) - 1, _AVERAGED_ROWS).round().astype(np.intp))
    distinct, index = field.distinct(given.take(rows))
    shares = np.bincount(index) / len(rows)
    average, done = np.zeros(()), 0
    for here in field.chunks(distinct):
        average = average + np.tensordot(shares[done : done + len(here)], weights(here), axes=1)
        done += len(here)
    return average


def encode_rows(field: GraphField, Z: Frame) -> Rows:
    """Rows of Z, some of which may be outside of what the field has seen."""
    with warnings.catch_warnings(action="ignore", category=ExtrapolationWarning):
        # The field has seen other rows only, so a value outside of theirs is no news.
        return field.encode(Z)


@dataclass(frozen=True)
class Yardstick:
    """Squared errors in units of those of one model, node by node, so that all nodes count the same."""

    mean_squares: NDArray[np.float64]
    units: NDArray[np.intp]

    @classmethod
    def of(cls, residuals: NDArray[np.float64], units: NDArray[np.intp]) -> Yardstick:
        mean_squares = np.square(residuals).mean(axis=0)
        # A node that is predicted without any error has no unit; any will do.
        return cls(np.where(mean_squares > 0, mean_squares, 1.0), units)

    def errors(self, residuals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean over nodes of the relative squared error of each row, (n,)."""
        return (np.square(residuals) / self.mean_squares).mean(axis=1)

    def gain(self, before: NDArray[np.float64], after: NDArray[np.float64]) -> Gain:
        """By how much errors of rows are smaller ``after`` than ``before``."""
        value, error = mean_and_error(before - after, self.units)
        return Gain(float(value), float(error))

    def weights(self, residuals: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Weights (they sum to one) whose average of the residuals has the smallest mean error."""
        scaled = [(left / np.sqrt(self.mean_squares)).reshape(-1) for left in residuals]
        gram = np.array([[one @ other for other in scaled] for one in scaled])
        return simplex_weights(gram / len(scaled[0]), _LEAST_WEIGHT)
