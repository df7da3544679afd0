"""The covariate rows that a question is asked over, and the graphs there in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from graphfield.data.covariates import Categorical, Numeric
from graphfield.data.dates import date_text, is_date, to_days
from graphfield.data.frames import Frame, with_columns
from graphfield.data.level_text import as_text
from graphfield.data.missing import check_complete
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.inputs import check_number, one_row
from graphfield.exceptions import DataError, ParameterError, check_choice, listing, suggestion
from graphfield.fields import GraphField, Rows
from graphfield.fields.streaming import slices
from graphfield.graphs.groups import node_positions
from graphfield.graphs.strength import apply_rule, directed_strengths, symmetrise
from graphfield.graphs.threshold import chosen_cut

TableLike = Any
# Matrices that are worked on at a time: few enough to stay near the processor, enough to be worth a call.
_BLOCK_ENTRIES = 500_000
_FEWEST = 16
# Standard deviations from the nearest row from which no row is near, and rows whose distances are looked at.
_FAR, _NEAREST_OF = 0.5, 500
# What can be asked: a fitted model, or its field.
FieldLike = GraphEstimator | GraphField
# A pair of nodes by name.
Edge = tuple[str, str]


def field_of(model: FieldLike) -> GraphField:
    """The field that is asked: that of a fitted model, or the field itself."""
    if isinstance(model, GraphField):
        return model
    check_is_fitted(model)
    return model.field_


def covariate_rows(field: GraphField, Z: TableLike, n_rows: int | None = None) -> pd.DataFrame:
    """Z as a table with the columns of ``fit``, or ``n_rows`` of its rows, in the order of :func:`spread`."""
    check_number("n_rows", n_rows, 1, integer=True, optional=True)
    frame = field.schema.match_covariates(Z)
    check_complete(None, frame)
    if not len(frame.values):
        raise DataError.of("Z", "has no rows. Pass the rows over which the question is asked.")
    if n_rows is None:
        return frame.values
    return frame.values.iloc[spread(frame.values)[:n_rows]].reset_index(drop=True)


def spread(table: pd.DataFrame) -> NDArray[np.intp]:
    """Positions of all rows in an order without pattern that depends on what the rows hold alone.

    So the first m of them are a random sample, the same one however the table was sorted. Equal rows are
    told apart by counting them.
    """
    if not table.shape[1]:
        return np.arange(len(table))
    keys = pd.DataFrame({f"{i}": table.iloc[:, i].to_numpy() for i in range(table.shape[1])})
    keys["count"] = keys.groupby(list(keys.columns), sort=False, observed=True, dropna=False).cumcount()
    return np.argsort(pd.util.hash_pandas_object(keys, index=False).to_numpy(), kind="stable")


def covariate_spec(field: GraphField, name: str) -> Numeric | Categorical:
    """How the model reads this covariate; one that it does not know is an error with a suggestion."""
    names = list(field.schema.encoder.names)
    if name not in names:
        hint = suggestion(name, names) if isinstance(name, str) else ""
        raise DataError(
            f"There is no covariate called {name!r}.{hint} The covariates are {listing(names)}."
        ).about(column=name)
    found = [column for column in field.schema.encoder.columns if column.name == name]
    if not found:
        raise DataError(
            f"Covariate {name!r} had the same value in every training row: the model knows nothing of it."
        ).about(column=name)
    return found[0]


def places(field: GraphField, name: str, column: pd.Series, n_points: int) -> list[Any]:
    """Values of one covariate at which to ask: its levels, or numbers from its 1st to 99th percentile.

    Only levels that occur, and never outside the training range. Numbers with at most ``n_points`` different
    values in that range are asked at these.
    """
    check_number("n_points", n_points, 2, integer=True)
    spec = covariate_spec(field, name)
    if isinstance(spec, Categorical):
        there = set(as_text(column))
        return [level for level in spec.levels if level in there]
    values = np.clip(column.to_numpy(dtype=np.float64), spec.low, spec.high)
    low, high = np.quantile(values, [0.01, 0.99])
    distinct = np.unique(values[(values >= low) & (values <= high)])
    if 0 < len(distinct) <= n_points:
        return [float(value) for value in distinct]
    return [float(value) for value in np.linspace(low, high, n_points)]


def typical_row(field: GraphField, table: pd.DataFrame) -> dict[str, Any]:
    """A place in the middle of the rows: see :func:`median_row`, with the numbers of the row nearest to it
    where none is near, as in the middle of a circle.
    """
    row = median_row(field, table)
    numbers = [column for column in field.schema.encoder.numeric if column.name in row]
    if len(numbers) < 2:
        return row
    values, middle = (
        np.column_stack([_in_units(column, rows[column.name]) for column in numbers])
        for rows in (table, pd.DataFrame([row]))
    )
    away = np.linalg.norm(values - middle, axis=1)
    if away.min() <= _FAR:
        return row
    some = values[np.linspace(0, len(values) - 1, min(len(values), _NEAREST_OF)).astype(np.intp)]
    if away.min() <= 2 * np.quantile(np.sort(cdist(some, some), axis=1)[:, 1], 0.95):
        return row
    nearest = median_row(field, table.iloc[[int(away.argmin())]])
    return row | {column.name: nearest[column.name] for column in numbers}


def _in_units(column: Numeric, values: pd.Series) -> NDArray[np.float64]:
    return (
        (to_days(values) if column.date else values.to_numpy(dtype=np.float64)) - column.mean
    ) / column.scale


def median_row(field: GraphField, table: pd.DataFrame) -> dict[str, Any]:
    """The median of every number and the most frequent level of every category that is not pooled ones."""
    row: dict[str, Any] = {}
    for name in table.columns:
        known = [column for column in field.schema.encoder.columns if column.name == name]
        if known and isinstance(known[0], Categorical):
            levels, counts = np.unique(as_text(table[name]).astype(str), return_counts=True)
            row[name] = known[0].by_size(levels, counts)[0]
        else:
            row[name] = _median(table[name]) if known else table[name].iloc[0]
    return row


def _median(column: pd.Series) -> float | str:
    """Of dates a date, as text; of numbers a number."""
    return date_text(float(np.median(to_days(column)))) if is_date(column) else float(column.median())


def fixed_values(
    field: GraphField, table: pd.DataFrame, along: str, others: str | Mapping[str, Any]
) -> dict[str, Any]:
    """The covariates besides ``along`` that are held at one value, as ``others`` says."""
    if isinstance(others, Mapping):
        for name in others:
            covariate_spec(field, name)
        if along in others:
            raise ParameterError(
                f"{along!r} is the covariate that moves: it cannot be fixed in others."
            ).about(argument="others", column=along)
        return dict(others)
    if others == "typical":
        return {name: value for name, value in typical_row(field, table).items() if name != along}
    if others != "average":
        check_choice("others", others, ("average", "typical"))
    return {}


def grid(rows: pd.DataFrame, along: str, values: Sequence[Any], fixed: Mapping[str, Any]) -> pd.DataFrame:
    """All rows at the first value of ``along``, then all rows at the second, and so on."""
    tall = rows.iloc[np.tile(np.arange(len(rows)), len(values))].reset_index(drop=True)
    return with_columns(tall, {**fixed, along: np.repeat(np.array(values), len(rows))})


@dataclass(frozen=True)
class Graphs:
    """Some distinct covariate values: partial correlations and graphs there, (m, p, p) each.

    ``positions`` says which of the distinct values they are.
    """

    positions: slice
    partial: NDArray[np.float32]
    graph: NDArray[np.bool_]

    @property
    def weights(self) -> NDArray[np.float32]:
        """Sizes of the edges that are there."""
        return np.abs(self.partial) * self.graph


@dataclass(frozen=True)
class Asked:
    """The graphs at the rows of a table; rows with the same covariates are evaluated once.

    ``index`` says for each row of the table which of the distinct values it has.
    """

    field: GraphField
    table: pd.DataFrame
    rows: Rows
    index: NDArray[np.intp]
    cut: float | NDArray[np.float64]
    rule: str

    @property
    def least_cut(self) -> float:
        """The cut as one number, for words: of a pair that can be an edge."""
        return self.cut if isinstance(self.cut, float) else self.field.threshold.value

    @property
    def n_distinct(self) -> int:
        return len(self.rows)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows that have each of the distinct values."""
        return np.bincount(self.index, minlength=self.n_distinct)

    def blocks(self) -> Iterator[Graphs]:
        """All distinct values, a few at a time."""
        start = 0
        p = self.field.n_nodes
        for here in self.field.chunks(self.rows):
            for part in slices(len(here), max(_FEWEST, _BLOCK_ENTRIES // p**2)):
                directed = directed_strengths(here.weights[part], here.scales[part])
                graph = apply_rule(directed, self.cut, self.rule)
                where = slice(start + part.start, start + part.stop)
                yield Graphs(where, symmetrise(directed), graph)
            start += len(here)

    def average(self) -> NDArray[np.float64]:
        """Partial correlations averaged over the rows of the table, (p, p)."""
        total = np.zeros((self.field.n_nodes,) * 2)
        shares = self.counts / self.counts.sum()
        for block in self.blocks():
            total += np.tensordot(shares[block.positions], block.partial, axes=1)
        return total

    def everywhere(self) -> NDArray[np.bool_] | None:
        """The graph that all rows have, (p, p); None where partial correlations differ between them."""
        first: Graphs | None = None
        for block in self.blocks():
            first = first or block
            if (block.partial != first.partial[0]).any():
                return None
        return None if first is None else first.graph[0]

    def collect(self, function: Callable[[Graphs], NDArray], width: tuple[int, ...]) -> NDArray:
        """``function`` of the graphs at every distinct value, (n_distinct, *width)."""
        found = np.empty((self.n_distinct, *width))
        for block in self.blocks():
            found[block.positions] = function(block)
        return found


def ask(
    field: GraphField, table: pd.DataFrame, threshold: float | str | None = None, rule: str = "and"
) -> Asked:
    """The graphs of the model at the rows of a complete table, evaluated when they are gone through."""
    cut = chosen_cut(threshold, field.threshold)
    frame = field.schema.encoder.pool(Frame(table, named=field.schema.encoder.named))
    distinct, index = field.distinct(field.encode(frame))
    return Asked(field, frame.values, distinct, index, cut, rule)


def at_one(field: GraphField, z: TableLike) -> pd.DataFrame:
    """One covariate value as a table of one row."""
    return covariate_rows(field, one_row(z, field.schema.encoder.names))


def pair_positions(n_nodes: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All pairs j < k."""
    return np.triu_indices(n_nodes, 1)


def edge_positions(field: GraphField, edges: Sequence[Edge]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs given by name; one pair alone, a name that is not known, and a node with itself are refused."""
    pairs = [tuple(edge) if not isinstance(edge, str) else (edge,) for edge in edges]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ParameterError.of(
            "edges",
            "must be a list of pairs of node names, for example "
            f"[({field.schema.node_names[0]!r}, {field.schema.node_names[1]!r})], got {edges!r}.",
        )
    j, k = (node_positions([pair[side] for pair in pairs], field.schema.node_names) for side in (0, 1))
    if np.any(j == k):
        raise ParameterError(
            f"{field.schema.node_names[int(j[j == k][0])]!r} has no edge to itself: name two different nodes."
        ).about(argument="edges")
    return j, k


def pair_names(field: GraphField, j: NDArray[np.intp], k: NDArray[np.intp]) -> dict[str, NDArray]:
    names = np.array(field.schema.node_names, dtype=object)
    return {"source": names[j], "target": names[k]}


def named_graph(field: GraphField, values: NDArray) -> pd.DataFrame:
    """A matrix of pairs with the names of the nodes; ``attrs["signless"]`` names nodes without signs."""
    names = field.schema.node_names
    table = pd.DataFrame(values, index=names, columns=names)
    if any(field.schema.signless):
        table.attrs["signless"] = [
            name for name, without in zip(names, field.schema.signless, strict=True) if without
        ]
    return table
