"""Fields that have members: how far these are apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.fields.base import Draws, GraphField
from graphfield.fields.schema import Rows
from graphfield.fields.streaming import rows_within
from graphfield.fields.walker import groups_of, parts_of

# Bytes of weights of one member held at a time where members are told apart: sums are doubles.
_MEMBER_BYTES = 16 * 2**20


def member_parts(draws: Draws, rows: Rows) -> Iterator[tuple[slice, Iterator[NDArray]]]:
    """Some rows at a time and, for these, the partial correlations of one member after the other."""
    for part, own in parts_of(rows, _rows_at_a_time(draws)):
        yield part, member_correlations(draws, own)


def member_correlations(draws: Draws, rows: Rows) -> Iterator[NDArray]:
    """Partial correlations (n, p, p) of one member after the other."""
    for member, seen in zip(draws.members, rows.members, strict=True):
        yield member.at(seen).partial_correlations


def member_spread(field: GraphField, Z: Any) -> NDArray[np.float32]:
    """Standard deviation of partial correlations over the members of a field that has some, (n, p, p)."""
    draws = field.draws()
    assert draws is not None
    rows, p = field.rows(Z), field.n_nodes
    result = np.empty((len(rows), p, p), dtype=np.float32)
    for group in groups_of(*field.distinct(rows), _rows_at_a_time(draws)):
        group.fill(result, lambda values: values, _spread_at(draws, group.distinct))
    return result


def _spread_at(draws: Draws, rows: Rows) -> NDArray[np.float64]:
    """One member at a time: mean and squares about it are updated, so no member is kept."""
    p = draws.members[0].n_nodes
    mean, squares = np.zeros((2, len(rows), p, p))
    for count, partial in enumerate(member_correlations(draws, rows), start=1):
        step = partial - mean
        mean += step / count
        squares += step * (partial - mean)
    return np.sqrt(squares / (len(draws.members) - 1))


def _rows_at_a_time(draws: Draws) -> int:
    return rows_within(_MEMBER_BYTES, draws.members[0].n_nodes)
