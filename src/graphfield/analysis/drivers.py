"""Which edges vary over the rows of a table, and which covariates drive them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.analysis.errors import movement_columns
from graphfield.analysis.rows import (
    Asked,
    Edge,
    FieldLike,
    TableLike,
    ask,
    covariate_rows,
    edge_positions,
    field_of,
    pair_names,
    pair_positions,
)
from graphfield.analysis.wide_tables import WideTable
from graphfield.data.frames import with_columns
from graphfield.estimators.inputs import check_number
from graphfield.exceptions import DataError, ParameterError
from graphfield.fields import GraphField
from graphfield.fields.streaming import slices

# Partial correlations of pairs that are held at a time: 256 MB of float32.
_HELD_ENTRIES = 64 * 2**20
# Standard deviation of a partial correlation below which single precision sees noise.
_CONSTANT = 1e-6
# Drivers are named where the standard deviation of an edge is at least this part of the largest of all.
SHARE_FLOOR = 0.05


def varying_edges(
    model: FieldLike,
    Z: TableLike,
    *,
    n_rows: int | None = 500,
    threshold: float | str | None = "auto",
    rule: str = "and",
) -> pd.DataFrame:
    """How much every pair of nodes varies over the rows of Z, the most varying first.

    Parameters
    ----------
    model : fitted estimator
    Z : table
    n_rows : int or None
        Rows to look at, a sample that does not depend on the order of Z. None takes all.
    threshold, rule
        When an edge counts as present, as in ``predict_graph``.

    Returns
    -------
    DataFrame
        ``source``, ``target``, ``mean`` of the partial correlation, its ``standard_deviation`` over rows,
        ``low`` and ``high`` (5 % and 95 % quantiles; of as many rows as fit in memory), ``range`` =
        high - low, and ``presence``, the share of rows in which the edge is there.

        Of an :class:`~graphfield.Ensemble` with ``resample=True`` also ``standard_error`` of the mean, and
        ``by_chance``: the standard deviation over rows that an edge which does not vary at all would show,
        because its estimate at each z is off by something else. An edge varies where ``standard_deviation``
        is clearly above that. With ``resample=False`` only ``spread`` of the mean; see :func:`compare`.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import varying_edges
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> len(varying_edges(model, sim.Z, threshold=0.1))
    6
    """
    field = field_of(model)
    rows = covariate_rows(field, Z, n_rows if n_rows is not None else len(covariate_rows(field, Z)))
    asked = ask(field, rows, threshold, rule)
    j, k = pair_positions(field.n_nodes)
    counts = asked.counts.astype(np.float64)
    weights = counts / counts.sum()
    held = np.empty((min(asked.n_distinct, max(2, _HELD_ENTRIES // len(j))), len(j)), dtype=np.float32)
    moments, presence = _Moments(len(j)), np.zeros(len(j))
    for block in asked.blocks():
        own, values = weights[block.positions], block.partial[:, j, k]
        moments.add(own, values)
        presence += own @ block.graph[:, j, k]
        kept = slice(block.positions.start, min(block.positions.stop, len(held)))
        if kept.start < kept.stop:
            held[kept] = values[: kept.stop - kept.start]
    low, high = _quantiles(held, asked.index[asked.index < len(held)])
    table = pd.DataFrame(
        {
            **pair_names(field, j, k),
            "mean": moments.mean,
            "standard_deviation": moments.deviation,
            "low": low,
            "high": high,
            "range": high - low,
            "presence": presence,
            **movement_columns(asked, weights, (j, k)),
        }
    )
    order = np.argsort(-table["standard_deviation"].to_numpy(), kind="stable")
    return WideTable(table.iloc[order].reset_index(drop=True))


def edge_drivers(
    model: FieldLike,
    Z: TableLike,
    edges: Sequence[Edge] | str | None = None,
    *,
    n_rows: int | None = 500,
    most: int = 20,
    n_repeats: int = 4,
) -> pd.DataFrame:
    """How much of the variation of an edge over rows each covariate drives.

    One covariate is exchanged among the rows, which keeps its distribution, while the others stay. What that
    changes is compared with the variance of the edge over the rows as they are:

    - ``total`` is half the mean squared change over the variance: the share that would vanish if this
      covariate were the same for all, with all that it does together with others;
    - ``alone`` is the correlation between rows that share this covariate and nothing else: the share that
      this covariate explains without the others.

    With independent covariates these are Sobol' indices: ``alone`` sums to at most 1 over covariates and
    ``total`` to at least 1, and both agree where nothing interacts. Covariates that go together are exchanged
    all the same, so the answer is about what the *model* uses: a covariate that it ignores gets nothing,
    however much it goes along with one that it uses. Combinations that never occur enter then: shares need
    not sum to 1, one may lie above 1, and a model that could have used either of two such covariates may have
    divided the credit between them in any way. Shares come from a sample and are good to a few hundredths.

    Shares say nothing of size, and of an edge that hardly varies they would divide up noise. So an edge whose
    standard deviation over rows is below 5 % of the largest of the network (of all pairs, not only those
    in ``edges``) has no shares: they are NaN.

    Parameters
    ----------
    model : fitted estimator
    Z : table
    edges : list of (source, target), "all", or None
        None takes the ``most`` edges that vary most over the rows. Edges come in the order of the list, else
        those that vary most first.
    n_rows : int or None
        Rows to compare, a sample that does not depend on the order of Z.
    most : int
        How many edges are chosen where none are named.
    n_repeats : int
        Exchanges to average over; more cost time and steady the shares.

    Returns
    -------
    DataFrame
        ``source``, ``target``, ``covariate``, ``alone``, ``total``, ``effect`` (the standard deviation of the
        partial correlation that ``total`` stands for; it is there for every edge), ``standard_deviation`` of
        the edge over rows, and ``relative_deviation``, that divided by the largest of the network.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import edge_drivers
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> edge_drivers(model, sim.Z, most=3).shape
    (6, 8)
    """
    field = field_of(model)
    check_number("most", most, 1, integer=True)
    check_number("n_repeats", n_repeats, 1, integer=True)
    rows = covariate_rows(field, Z, n_rows if n_rows is not None else len(covariate_rows(field, Z)))
    if len(rows) < 3:
        raise DataError(f"Exchanging covariates among rows needs at least 3 rows, got {len(rows)}.").about(
            argument="Z"
        )
    if isinstance(edges, str) and edges != "all":
        raise ParameterError.of(
            "edges", f"must be a list of pairs of node names, 'all' or None, got {edges!r}."
        )
    if edges is None or isinstance(edges, str):
        j, k = pair_positions(field.n_nodes)
    else:
        j, k = edge_positions(field, edges)
    rows = rows.iloc[: max(3, _HELD_ENTRIES // len(j))]
    base = _pair_values(ask(field, rows), j, k)
    deviation = base.std(axis=0, dtype=np.float64)
    if edges is not None and not isinstance(edges, str):
        largest = _largest_deviation(ask(field, rows))
    else:
        largest = deviation.max()
        chosen = np.argsort(-deviation, kind="stable")[: most if edges is None else None]
        j, k, base, deviation = j[chosen], k[chosen], base[:, chosen], deviation[chosen]
    names = [column.name for column in field.schema.encoder.columns]
    alone, total = np.empty((len(names), len(j))), np.empty((len(names), len(j)))
    for i, name in enumerate(names):
        alone[i], total[i] = _shares(field, rows, name, base, (j, k), n_repeats)
    effect = np.where(deviation > _CONSTANT, np.sqrt(total) * deviation, 0.0)
    relative = deviation / largest if largest > _CONSTANT else np.zeros(len(deviation))
    alone, total = (np.where(relative >= SHARE_FLOOR, share, np.nan) for share in (alone, total))
    edge_names = {side: np.repeat(value, len(names)) for side, value in pair_names(field, j, k).items()}
    return pd.DataFrame(
        {
            **edge_names,
            "covariate": np.tile(np.array(names, dtype=object), len(j)),
            "alone": alone.T.ravel(),
            "total": total.T.ravel(),
            "effect": effect.T.ravel(),
            "standard_deviation": np.repeat(deviation, len(names)),
            "relative_deviation": np.repeat(relative, len(names)),
        }
    )


def driver_summary(drivers: pd.DataFrame) -> pd.DataFrame:
    """What :func:`edge_drivers` found, per covariate, the strongest first.

    Returns
    -------
    DataFrame
        ``covariate``; ``alone`` and ``total``, the shares of the variance of all edges together: an edge
        counts as much as it varies, and one without shares not at all; ``mean_effect`` over all edges;
        ``edges_led``, the number of edges with shares of which it drives the most.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import driver_summary, edge_drivers
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> list(driver_summary(edge_drivers(model, sim.Z)).columns)
    ['covariate', 'alone', 'total', 'mean_effect', 'edges_led']
    """
    variance = drivers["standard_deviation"].where(drivers["total"].notna(), 0.0) ** 2
    scaled = {share: drivers[share] * variance for share in ("alone", "total")}
    parts = drivers.assign(**scaled, whole=variance)
    sums = parts.groupby("covariate", sort=False)[["alone", "total", "whole"]].sum()
    whole = sums["whole"].where(sums["whole"] > 0, 1.0)
    varying = drivers[drivers["total"] > 0].sort_values("total", ascending=False, kind="stable")
    leaders = varying.drop_duplicates(["source", "target"])["covariate"].value_counts()
    table = pd.DataFrame(
        {
            "covariate": sums.index,
            "alone": (sums["alone"] / whole).to_numpy(),
            "total": (sums["total"] / whole).to_numpy(),
            "mean_effect": drivers.groupby("covariate", sort=False)["effect"].mean().to_numpy(),
            "edges_led": leaders.reindex(sums.index, fill_value=0).to_numpy(),
        }
    )
    return table.sort_values("total", ascending=False, kind="stable", ignore_index=True)


def _shares(
    field: GraphField,
    rows: pd.DataFrame,
    name: str,
    base: NDArray,
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
    n_repeats: int,
) -> tuple[NDArray, NDArray]:
    """First-order and total shares of one covariate for each pair."""
    n = len(rows)
    centred = base - base.mean(axis=0, dtype=np.float64)
    variance = np.square(centred).mean(axis=0)
    alone, total = np.zeros(base.shape[1]), np.zeros(base.shape[1])
    # The rows come in no order, so handing a value on by any number of places is a random exchange.
    shifts = np.unique(np.linspace(1, n - 1, n_repeats + 2).astype(int)[1:-1])
    for shift in shifts:
        taken = np.roll(np.arange(n), shift)
        mixed = with_columns(rows.iloc[taken].reset_index(drop=True), {name: rows[name].to_numpy()})
        found = _pair_values(ask(field, mixed), *pairs)  # this covariate of row i, the others of row taken[i]
        alone += (centred * (found - found.mean(axis=0, dtype=np.float64))).mean(axis=0)
        total += np.square(found - base[taken]).mean(axis=0) / 2
    safe = np.where(variance > 0, variance, 1.0) * len(shifts)
    return np.clip(alone / safe, 0, None), total / safe


class _Moments:
    """Mean and standard deviation of columns whose rows come in blocks, with weights that sum to one."""

    def __init__(self, width: int) -> None:
        self._first: NDArray[np.float64] | None = None
        self._mean, self._square = np.zeros(width), np.zeros(width)

    def add(self, weights: NDArray, values: NDArray) -> None:
        if self._first is None:
            self._first = values[0].astype(np.float64)  # sums of differences from it lose no digits
        self._mean += weights @ (values - self._first)
        self._square += weights @ np.square(values - self._first)

    @property
    def mean(self) -> NDArray[np.float64]:
        return self._mean if self._first is None else self._first + self._mean

    @property
    def deviation(self) -> NDArray[np.float64]:
        return np.sqrt(np.maximum(self._square - self._mean**2, 0))


def _largest_deviation(asked: Asked) -> float:
    """Standard deviation over rows of the pair of nodes that varies most."""
    j, k = pair_positions(asked.field.n_nodes)
    shares = asked.counts / len(asked.index)
    moments = _Moments(len(j))
    for block in asked.blocks():
        moments.add(shares[block.positions], block.partial[:, j, k])
    return float(moments.deviation.max())


def _pair_values(asked: Asked, j: NDArray[np.intp], k: NDArray[np.intp]) -> NDArray[np.float32]:
    """Partial correlations of these pairs at every row of the table, (n, pairs)."""
    found = np.empty((asked.n_distinct, len(j)), dtype=np.float32)
    for block in asked.blocks():
        found[block.positions] = block.partial[:, j, k]
    return found[asked.index]


def _quantiles(values: NDArray[np.float32], index: NDArray[np.intp]) -> tuple[NDArray, NDArray]:
    """5 % and 95 % quantiles of each column of ``values[index]``, some columns at a time."""
    low, high = np.empty(values.shape[1]), np.empty(values.shape[1])
    for part in slices(values.shape[1], max(1, 2_000_000 // max(1, len(index)))):
        low[part], high[part] = np.quantile(values[:, part][index], [0.05, 0.95], axis=0)
    return low, high
