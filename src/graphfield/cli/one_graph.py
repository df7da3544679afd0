"""What ``graphfield graph`` shows: the graph at some covariates or the average, intervals where asked for."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfield.exceptions import DataWarning, ParameterError, count, listing

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from graphfield.data.covariates import CovariateEncoder
    from graphfield.estimators.base import GraphEstimator


def rows_to_average(arguments: argparse.Namespace, model: GraphEstimator) -> pd.DataFrame | None:
    """The rows whose average graph is shown; None where it is the graph at one place.

    The average is what the page shows as well: where it is asked for or, if no place is named, where held-out
    rows do not support that the graph moves. A note says so.
    """
    if arguments.average and arguments.at:
        raise ParameterError(
            "--at asks for the graph at one value of the covariates, --average for the average over the "
            "training rows. Leave one of them out."
        )
    if arguments.average:
        return average_rows(arguments.model, model)
    if not movement_is_doubtful(arguments.model, model):
        return None
    moves = f"that the graph moves with {listing(model.covariate_names_)}"
    if arguments.at:
        _note(f"held-out rows do not support {moves}; --average gives the average graph.")
        return None
    _note(
        f"this is the average graph over the training rows: held-out rows do not support {moves}. For the "
        "graph at one value of the covariates, use --at."
    )
    return average_rows(arguments.model, model)


def average_rows(folder: Path, model: GraphEstimator) -> pd.DataFrame:
    """The rows that the page of this folder averages over."""
    from graphfield.report.folder import read_rows
    from graphfield.report.rows import Rows

    return Rows.of(model, read_rows(folder, model.encoder_)).Z


def movement_is_doubtful(folder: Path, model: GraphEstimator) -> bool:
    """Whether the verdict that was kept with the model is to show the average graph."""
    from graphfield.inference.verdict import Fitted, reach_verdict
    from graphfield.report.folder import GAIN, read_record, recorded_gain

    gain = recorded_gain(read_record(folder, GAIN))[0]
    if gain is None:
        return False
    return reach_verdict(Fitted.of(model, average_rows(folder, model)), gain).shows_average


def with_tested_edges(folder: Path, model: GraphEstimator) -> GraphEstimator:
    """The model with the edges that tests in its folder find, as on its page; itself without these."""
    from graphfield.report.edge_record import FDR, EdgeRecord, false_words
    from graphfield.report.folder import EDGES, read_record

    record = read_record(folder, EDGES)
    tests = None if record is None else EdgeRecord.from_json(record)
    if tests is None or tests.why_not:
        return model
    tests.check_nodes(model.node_names_)
    found = int(tests.are_edges.sum())
    _note(
        f"edges are those of {count(found, 'pair')} by the tests in {EDGES}, at a false-discovery level of "
        f"{FDR:.2f}{false_words(found, 'to be false')}."
    )
    return tests.applied_to(model)


def average_network(model: GraphEstimator, rows: pd.DataFrame, threshold: float | str | None) -> nx.Graph:
    from graphfield.analysis.averages import average_graph
    from graphfield.graphs.export import to_networkx

    partial = average_graph(model, rows, threshold=threshold).to_numpy()
    return to_networkx(partial != 0, partial, model.node_names_)


def _note(text: str) -> None:
    warnings.warn(text, DataWarning, stacklevel=3)


def typical_values(folder: Path, model: GraphEstimator) -> dict[str, Any]:
    """The median or the most common level of every covariate, with a note that says which.

    From the training rows in the model's folder; without them from what the model knows, where the mean
    stands in for the median.
    """
    from graphfield.analysis.rows import covariate_rows, typical_row
    from graphfield.inference.verdict import Fitted
    from graphfield.report.folder import read_rows

    rows = read_rows(folder, model.encoder_)
    if rows is None:
        values, what = _by_encoder(model.encoder_), "mean"
    else:
        values, what = typical_row(model.field_, covariate_rows(model.field_, rows)), "median"
    known = [column.name for column in model.encoder_.columns]
    named = ", ".join(f"{name}={_value_text(values[name])}" for name in known)
    if named and not Fitted.of(model, average_rows(folder, model)).moves:
        _note("the fitted model is one graph for all, the same at all values of the covariates.")
    elif named:
        _note(
            f"without --at, this is the graph at typical covariates ({what} or most common level): {named}."
        )
    return values


def _value_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _by_encoder(encoder: CovariateEncoder) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(encoder.names, 0)  # a constant one is not looked at
    for number in encoder.numeric:
        middle = number.mean if encoder.standardize else (number.low + number.high) / 2
        values[number.name] = number.shown(middle) if number.date else middle
    for category in encoder.categorical:
        values[category.name] = max(zip(category.shares, category.levels, strict=True))[1]
    return values


def add_intervals(network: nx.Graph, intervals: pd.DataFrame) -> None:
    """Standard errors and intervals on the edges of a graph."""
    columns = ["standard_error", "interval_low", "interval_high"]
    found = intervals.set_index(["source", "target"])[columns].to_dict("index")
    for source, target, edge in network.edges(data=True):
        edge |= found.get((source, target)) or found[target, source]
