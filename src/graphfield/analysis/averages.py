"""Average graphs of rows that belong together: quantile bands of a covariate, its levels, any labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield.analysis.rows import (
    FieldLike,
    TableLike,
    ask,
    covariate_rows,
    covariate_spec,
    field_of,
    named_graph,
)
from graphfield.data.covariates import Categorical
from graphfield.data.level_text import as_text
from graphfield.estimators.inputs import check_number
from graphfield.exceptions import DataError, ParameterError, count
from graphfield.fields import GraphField
from graphfield.graphs.connectivity import pair_means

_LINES = 10  # of bands, when printed


@dataclass(frozen=True, repr=False)
class Bands:
    """Average graphs, one per band.

    Attributes
    ----------
    name : str
        The covariate, or what the labels stand for.
    labels : list of str
    matrices : ndarray of shape (m, p, p)
        Partial correlations averaged over the rows of each band.
    presence : ndarray of shape (m, p, p)
        Share of the rows of each band in which the edge is there, at the threshold that was asked for.
    n_rows : list of int
    node_names : list of str
    threshold : float or None
        The size of a partial correlation above which an edge counts as present, of the pairs that can be one.
    """

    name: str
    labels: list[str]
    matrices: NDArray[np.float64]
    presence: NDArray[np.float64]
    n_rows: list[int]
    node_names: list[str]
    threshold: float | None = None

    def __repr__(self) -> str:
        cut = "" if self.threshold is None else f" (edges: |partial correlation| > {self.threshold:.3g})"
        of = f" of {self.name}" if self.name else ""
        lines = [f"Average graphs of {len(self.node_names)} nodes in {len(self.labels)} bands{of}{cut}"]
        bands = zip(self.labels, self.n_rows, self.density, strict=True)
        lines += [f"  {label}: {count(n, 'row')}, density {100 * share:.1f} %" for label, n, share in bands]
        left = len(self.labels) - _LINES
        return "\n".join(lines if left < 2 else [*lines[:-left], f"  and {left} more"])

    @property
    def density(self) -> NDArray[np.float64]:
        """Share of pairs with an edge, averaged over the rows of each band, (m,)."""
        return pair_means(self.presence)

    @property
    def table(self) -> pd.DataFrame:
        """``band``, ``n_rows``, ``density`` and the mean size of the average partial correlation."""
        size = pair_means(np.abs(self.matrices))
        columns = {"band": self.labels, "n_rows": self.n_rows, "density": self.density, "mean_weight": size}
        return pd.DataFrame(columns)

    def frame(self, label: str) -> pd.DataFrame:
        """The average graph of one band, with the names of the nodes on both sides."""
        if label not in self.labels:
            raise ParameterError(f"There is no band {label!r}; the bands are {self.labels}.").about(
                argument="label"
            )
        matrix = self.matrices[self.labels.index(label)]
        return pd.DataFrame(matrix, index=self.node_names, columns=self.node_names)

    def restricted(self, nodes: NDArray[np.intp]) -> Bands:
        """The same bands with these nodes only, in this order."""
        inner = np.ix_(np.arange(len(self.labels)), nodes, nodes)
        names = [self.node_names[i] for i in nodes]
        return replace(self, matrices=self.matrices[inner], presence=self.presence[inner], node_names=names)


def bands(
    model: FieldLike,
    Z: TableLike,
    covariate: str,
    *,
    quantiles: int | Sequence[float] = 4,
    threshold: float | str | None = "auto",
    rule: str = "and",
) -> Bands:
    """Average graphs over quantile bands of a covariate, or over its levels.

    Other covariates are as they are in the rows of a band.

    Parameters
    ----------
    model : fitted estimator
    Z : table
    covariate : str
    quantiles : int or sequence of float
        Number of bands with about equally many rows, or the shares at which to cut: (0.5, 0.9) gives the
        lower half, the next 40 % and the top tenth. Equal values are never separated. The bands of a
        category are its levels.
    threshold, rule
        When an edge counts as present, as in ``predict_graph``. The averages are of all partial
        correlations.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import bands
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> bands(model, sim.Z, "z1", quantiles=3, threshold=0.1).n_rows
    [100, 100, 100]
    """
    field = field_of(model)
    table = covariate_rows(field, Z)
    spec = covariate_spec(field, covariate)
    if isinstance(spec, Categorical):
        text = as_text(table[covariate])
        order = [level for level in spec.levels if level in set(text)]
        order += sorted(set(text) - set(order))
        codes = pd.Index(order).get_indexer(pd.Index(text))
        return _averages(field, table, codes, order, covariate, threshold, rule)
    values = table[covariate].to_numpy(dtype=np.float64)
    codes = _band_codes(values, quantiles)
    ranges = [(values[codes == i].min(), values[codes == i].max()) for i in range(codes.max() + 1)]
    labels = [f"{low:.4g} to {high:.4g}" if low < high else f"{low:.4g}" for low, high in ranges]
    if len(set(labels)) < len(labels):
        labels = [f"q{i + 1}: {label}" for i, label in enumerate(labels)]
    return _averages(field, table, codes, labels, covariate, threshold, rule)


def average_graph(model: FieldLike, Z: TableLike, *, threshold: float | str | None = "auto") -> pd.DataFrame:
    """The one graph to show where movement with the covariates is not supported: the average over rows.

    Partial correlations averaged over the rows of Z, with the names of the nodes on both sides, as
    :func:`~graphfield.analysis.graph_at` has them at one z. Pairs whose average does not exceed the
    ``threshold``, and those that are no edge at any z, are zero; None keeps all.

    Examples
    --------
    >>> import graphfield as gf
    >>> from graphfield.analysis import average_graph
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> average_graph(model, sim.Z, threshold=0.1).shape
    (4, 4)
    """
    field = field_of(model)
    asked = ask(field, covariate_rows(field, Z), threshold)
    mean, always = asked.average(), asked.everywhere()
    # Where all rows have one graph, it is that one; elsewhere there are no two directions to compare.
    is_edge = np.abs(mean) > asked.cut if always is None else always
    values = mean if threshold is None else np.where(is_edge, mean, 0)
    return named_graph(field, values)


def average_graphs(
    model: FieldLike,
    Z: TableLike,
    labels: Sequence[Any] | NDArray | pd.Series,
    *,
    name: str = "",
    threshold: float | str | None = "auto",
    rule: str = "and",
) -> Bands:
    """Average graphs of rows with the same label; rows labelled None or NaN are left out.

    Examples
    --------
    >>> import graphfield as gf, numpy as np
    >>> from graphfield.analysis import average_graphs
    >>> sim = gf.make_setting("G1", n_samples=300, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :4], sim.Z)
    >>> found = average_graphs(model, sim.Z, np.where(sim.Z[:, 0] > 0.5, "high", "normal"), threshold=0.1)
    >>> sorted(found.labels)
    ['high', 'normal']
    """
    field = field_of(model)
    table = covariate_rows(field, Z)
    if len(labels) != len(table):
        raise DataError.of(
            "labels", f"must have one entry per row of Z: {len(table)} rows, {len(labels)} labels."
        )
    codes, found = pd.factorize(pd.Series(np.asarray(labels, dtype=object)))
    if not len(found):
        raise DataError("Every row is labelled None or NaN: there is nothing to average.").about(
            argument="labels"
        )
    named = name or str(getattr(labels, "name", None) or "")
    return _averages(field, table, codes, [str(label) for label in found], named, threshold, rule)


def _averages(
    field: GraphField,
    table: pd.DataFrame,
    codes: NDArray,
    labels: list[str],
    name: str,
    threshold: float | str | None,
    rule: str,
) -> Bands:
    """Averages over the rows of each code; a negative code is left out."""
    kept = codes >= 0
    asked = ask(field, table.loc[kept].reset_index(drop=True), threshold, rule)
    counts = np.zeros((len(labels), asked.n_distinct))
    np.add.at(counts, (codes[kept], asked.index), 1.0)
    n_rows = counts.sum(axis=1)
    p = field.n_nodes
    matrices, presence = np.zeros((len(labels), p, p)), np.zeros((len(labels), p, p))
    for block in asked.blocks():
        own = counts[:, block.positions].astype(np.float32)
        matrices += np.tensordot(own, block.partial, axes=1)
        presence += np.tensordot(own, block.graph.astype(np.float32), axes=1)  # whole numbers, hence exact
    matrices, presence = (sums / n_rows[:, None, None] for sums in (matrices, presence))
    counted = n_rows.astype(int).tolist()
    return Bands(name, labels, matrices, presence, counted, list(field.schema.node_names), asked.least_cut)


def _band_codes(values: NDArray[np.float64], quantiles: int | Sequence[float]) -> NDArray[np.intp]:
    """The band of each row, counted from zero without gaps."""
    if isinstance(quantiles, (int, np.integer)):
        check_number("quantiles", quantiles, 1, integer=True)
        inner = np.arange(1, int(quantiles)) / int(quantiles)
        distinct = np.unique(values)
        if len(distinct) <= int(quantiles):
            return np.searchsorted(distinct, values)
    else:
        inner = np.array([share for share in quantiles if share not in (0, 1)], dtype=np.float64)
        if not len(inner) or np.any(np.diff(inner) <= 0) or inner[0] < 0 or inner[-1] > 1:
            raise ParameterError.of(
                "quantiles",
                f"must be a number of bands, or increasing shares between 0 and 1, got {quantiles!r}.",
            )
    cuts = np.quantile(values, inner)
    return np.unique(np.searchsorted(cuts, values, side="left"), return_inverse=True)[1]
