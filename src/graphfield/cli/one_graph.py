"""What ``graphfield graph`` shows: typical covariates where none are named, intervals where asked for."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfield.exceptions import DataWarning

if TYPE_CHECKING:
    import networkx as nx

    from graphfield.data.covariates import CovariateEncoder
    from graphfield.estimators.base import GraphEstimator


def typical_values(folder: Path, model: GraphEstimator) -> dict[str, Any]:
    """The median or the most common level of every covariate, with a note that says which.

    From the training rows in the model's folder; without them from what the model knows, where the mean
    stands in for the median.
    """
    from graphfield.analysis.rows import covariate_rows, typical_row
    from graphfield.report.folder import read_rows

    rows = read_rows(folder, model.encoder_)
    if rows is None:
        values, what = _by_encoder(model.encoder_), "mean"
    else:
        values, what = typical_row(model, covariate_rows(model, rows)), "median"
    known = [column.name for column in model.encoder_.columns]
    named = ", ".join(f"{name}={_shown(values[name])}" for name in known)
    if named:
        warnings.warn(
            f"without --at, this is the graph at typical covariates ({what} or most common level): {named}.",
            DataWarning,
            stacklevel=2,
        )
    return values


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _by_encoder(encoder: CovariateEncoder) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(encoder.names, 0)  # a constant one is not looked at
    for number in encoder.numeric:
        middle = number.mean if encoder.standardize else (number.low + number.high) / 2
        values[number.name] = number.shown(middle) if number.date else middle
    for category in encoder.categorical:
        values[category.name] = max(zip(category.shares, category.levels, strict=True))[1]
    return values


def add_intervals(network: nx.Graph, model: GraphEstimator, z: dict[str, Any]) -> None:
    """Standard errors and intervals at z on the edges of a graph."""
    from graphfield.analysis.single import intervals_at

    columns = ["standard_error", "interval_low", "interval_high"]
    found = intervals_at(model, z).set_index(["source", "target"])[columns].to_dict("index")
    for source, target, edge in network.edges(data=True):
        edge |= found.get((source, target)) or found[target, source]
