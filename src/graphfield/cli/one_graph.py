"""What ``graphfield graph`` shows: the graph at some covariates or the average, intervals where asked for."""

from __future__ import annotations

import argparse
import warnings
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfield.cli.check import date_notations
from graphfield.cli.values import covariate_values
from graphfield.exceptions import (
    DataWarning,
    ParameterError,
    agreed,
    count,
    first_few,
    listing,
)

if TYPE_CHECKING:
    import networkx as nx
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from graphfield.data.covariates import CovariateEncoder
    from graphfield.estimators.base import GraphEstimator
    from graphfield.inference.edge_record import EdgeRecord
    from graphfield.inference.verdict_facts import Fitted

_ONE_FOR_ALL = "the fitted model is one graph for all, the same at all values of the covariates."
_NAMED_PAIRS = 4  # of those that a note names


def rows_to_average(
    arguments: argparse.Namespace, model: GraphEstimator, fitted: Fitted, *, doubtful: bool, tested: bool
) -> pd.DataFrame | None:
    """The rows whose average graph is shown; None where it is the graph at one place.

    The average is what the page shows as well: where it is asked for or, if no place is named, where held-out
    rows do not support that the graph moves (``doubtful``). A note says so. Where pairs were ``tested``, the
    tests know the average of one graph for all better than the model.
    """
    if arguments.average and arguments.at:
        raise ParameterError.of(
            "at",
            "asks for the graph at one value of the covariates, --average for the average over the "
            "training rows. Leave one of them out.",
        )
    if arguments.average:
        return average_rows(arguments.model, model)
    if not fitted.moves and fitted.covariates and tested and not arguments.at:
        _note(_ONE_FOR_ALL)
        return average_rows(arguments.model, model)
    if not doubtful:
        return None
    doubt = (
        f"held-out rows do not support how this model moves with {listing(fitted.used or fitted.covariates)}"
    )
    if arguments.at:
        instead = "these are the values of the tests, averages of pairs that are not seen to move"
        _note(f"{doubt}; {instead if tested else '--average gives the average graph'}.")
        return None
    where = "" if tested else " --at gives the graph at one value."
    _note(f"this is the average graph over the training rows: {doubt}.{where}")
    return average_rows(arguments.model, model)


def average_rows(folder: Path, model: GraphEstimator) -> pd.DataFrame:
    """The rows that the page of this folder averages over."""
    from graphfield.report.folder import read_rows
    from graphfield.report.rows import Rows

    return Rows.of(model.field_, read_rows(folder, model.encoder_)).Z


def is_doubtful(folder: Path, fitted: Fitted) -> bool:
    """Whether the verdict that was kept with the model is to show the average graph."""
    from graphfield.inference.verdict import reach_verdict
    from graphfield.report.folder import GAIN, read_record, recorded_gain

    gain = recorded_gain(read_record(folder, GAIN))[0]
    return gain is not None and reach_verdict(fitted, gain).shows_average


def read_tests(folder: Path, model: GraphEstimator) -> EdgeRecord | None:
    """What tests in the folder of a model say of its pairs; None without these."""
    from graphfield.inference.edge_record import EdgeRecord
    from graphfield.report.folder import EDGES, read_record

    record = read_record(folder, EDGES)
    tests = None if record is None else EdgeRecord.from_json(record)
    if tests is None or tests.why_not:
        return None
    tests.check_nodes(model.node_names_)
    return tests


def with_tested_edges(tests: EdgeRecord, model: GraphEstimator) -> GraphEstimator:
    """The model with the edges that tests find, as on its page, and a note."""
    from graphfield.inference.edge_record import FDR
    from graphfield.report.folder import EDGES

    found = int(tests.are_edges.sum())
    scores = "" if model.field_.schema.types else " Tests take normal scores of the nodes."
    moving, more = int(tests.are_named.sum()), len(tests.moving_with_one_alone)
    move = agreed(moving, "1 moves:", f"{moving:,} move, most clearly")
    if 0 < more < moving:
        move = f"{moving:,} move ({more:,} of them by tests of one covariate alone), most clearly"
    moves = f"; {move} {tests.movers[0]}" if tests.movers else ""
    _note(
        f"edges are those of {count(found, 'pair')} by the tests in {EDGES}, at a false-discovery level of "
        f"{FDR:.2f}{moves}.{scores}"
    )
    return tests.applied_to(model)


def add_bands(network: nx.Graph, tests: EdgeRecord, model: GraphEstimator, z: dict[str, Any]) -> None:
    """What tests find at z, or on average where edges do not move; a note on strengths outside of that."""
    from graphfield.inference.edge_record import LEVEL

    pairs, known, outside = list(combinations(tests.nodes, 2)), 0, 0
    for pair, found in tests.values_at(_places(model, z)).items():
        if network.has_edge(*pairs[pair]):
            edge = network.edges[pairs[pair]]
            edge |= {"tested": found.estimate, "tested_low": found.low, "tested_high": found.high}
            known += 1
            outside += not found.low <= edge["partial_correlation"] <= found.high
    if outside:
        schema = model.field_.schema
        scores = getattr(model, "marginals_", schema.marginals) in ("normal", "skeptic")
        why = "the model draws edges towards each other and towards zero, the tests do not"
        if not scores:
            why = f"{why}, and take normal scores of the nodes"
        _note(
            f"{outside:,} of {count(known, 'edge')} {agreed(outside, 'lies', 'lie')} outside the "
            f"interval of {100 * LEVEL:.0f} % of the tests (tested_low to tested_high; of averages where "
            f"edges are not seen to move): {why}."
        )


def network_by_tests(
    tests: EdgeRecord,
    model: GraphEstimator,
    partial: NDArray[np.floating],
    threshold: float | str | None,
    z: dict[str, Any] | None = None,
) -> nx.Graph:
    """A graph with what the tests find in place of the model's ``partial`` (p, p), with intervals.

    On average, or at z, where pairs that are not seen to move have their averages.
    """
    import numpy as np

    from graphfield.graphs.threshold import chosen_cut

    schema = model.field_.schema
    found = tests.averages() if z is None else tests.values_at(_places(model, z))
    ends = list(combinations(range(schema.n_nodes), 2))
    own = np.array(partial, dtype=np.float64)
    for pair, value in found.items():
        own[ends[pair]] = own[ends[pair][::-1]] = value.estimate
    graph = np.abs(own) > chosen_cut(threshold, model.field_.threshold)
    network = schema.network(graph, own)
    for pair, value in found.items():
        names = tests.nodes[ends[pair][0]], tests.nodes[ends[pair][1]]
        if network.has_edge(*names):
            network.edges[names].update(low=value.low, high=value.high, model=float(partial[ends[pair]]))
    return network


def _places(model: GraphEstimator, z: dict[str, Any]) -> dict[str, float | str]:
    """Levels, as they were pooled, and numbers, dates in days; a level that is not known is no text."""
    from graphfield.analysis.rows import at_one
    from graphfield.data.covariates import Numeric

    encoder = model.encoder_
    with warnings.catch_warnings(action="ignore"):  # what there is to say was said with the graph
        row = at_one(model.field_, z)
        codes = {one.name: encoder.encode_value(one.name, row[one.name].iloc[0]) for one in encoder.columns}
    return {
        one.name: one.mean + one.scale * codes[one.name]
        if isinstance(one, Numeric)
        else [*one.levels, ""][int(codes[one.name])]
        for one in encoder.columns
    }


def note_weak_pairs(
    model: GraphEstimator, network: nx.Graph, tests: EdgeRecord, z: dict[str, Any] | None
) -> None:
    """Say which pairs pass their tests and are not in this graph, as they are too weak in it.

    Those that move by the tests come first, where the graph is the model's at z with what the tests find
    there: a model may have less of it, or not from both nodes.
    """
    from graphfield.inference.movement_words import pair_name

    clear, pairs = model.threshold_.clear_pairs, enumerate(combinations(model.node_names_, 2))
    weak = {i: ends for i, ends in pairs if clear[i] and not network.has_edge(*ends)}
    if not weak:
        return
    moving = tests.are_named
    here = {} if z is None else tests.moving_at(_places(model, z))
    told = {
        i: f" (by the tests {own.estimate:+.2f} [{own.low:+.2f}, {own.high:+.2f}] here)"
        for i, own in here.items()
    }
    order = sorted(weak, key=lambda i: not moving[i])
    named = [f"{pair_name(*weak[i])}{told.get(i, '')}" for i in order]
    n_moving = sum(bool(moving[i]) for i in weak)
    move = f", {n_moving:,} of which {agreed(n_moving, 'moves', 'move')} by the tests" if n_moving else ""
    _note(
        f"{len(weak):,} of these pairs {agreed(len(weak), 'is', 'are')} not listed: the model has "
        f"{agreed(len(weak), 'it', 'them')} below its cut of {model.threshold_.value:.3g} here{move}: "
        f"{first_few(named, _NAMED_PAIRS)}."
    )


def average_network(
    model: GraphEstimator, rows: pd.DataFrame, threshold: float | str | None, tests: EdgeRecord | None
) -> nx.Graph:
    from graphfield.analysis.averages import average_graph

    if tests is not None:
        partial = average_graph(model, rows, threshold=None).to_numpy()
        return network_by_tests(tests, model, partial, threshold)
    partial = average_graph(model, rows, threshold=threshold).to_numpy()
    return model.field_.schema.network(partial != 0, partial)


def _note(text: str) -> None:
    warnings.warn(text, DataWarning, stacklevel=3)


def asked_values(
    arguments: argparse.Namespace, model: GraphEstimator, fitted: Fitted, *, own_cut: bool
) -> dict[str, Any]:
    """The covariates of ``--at``; typical ones where nothing is said, and a note that says which.

    ``own_cut``: whether edges are those that the fit chose, which is said as well.
    """
    from graphfield.analysis.near_rows import few_rows_near
    from graphfield.report.folder import read_rows

    rows = read_rows(arguments.model, model.encoder_)
    values, what = _typical_values(rows, model)
    given = covariate_values(arguments.at or [], model.encoder_, date_notations(arguments.model))
    silent = [name for name in fitted.used or fitted.covariates if name not in given]
    if not fitted.moves and fitted.covariates:
        _note(_ONE_FOR_ALL)
    elif silent:
        named = ", ".join(f"{name}={_value_text(values[name])}" for name in silent)
        where = "covariates that --at does not name are" if given else "without --at, this is the graph"
        _note(f"{where} at typical values ({what} or most common level): {named}.")
    if given and fitted.moves and own_cut:
        _note(
            f"which pairs may be edges, and the cut of {model.threshold_.value:.3g}, are those of the whole "
            "table."
        )
    if given and fitted.moves and rows is not None:
        lonely = few_rows_near(model.field_, rows, values | given, fitted.used)
        if lonely:
            _note(lonely)
    return values | given


def _typical_values(rows: pd.DataFrame | None, model: GraphEstimator) -> tuple[dict[str, Any], str]:
    """The median or the most common level of every covariate, and what stands for the middle of numbers.

    From the training rows in the model's folder; without them from what the model knows, where the mean
    stands in for the median.
    """
    from graphfield.analysis.rows import covariate_rows, median_row, typical_row

    if rows is None:
        return _by_encoder(model.encoder_), "mean"
    table = covariate_rows(model.field_, rows)
    found = typical_row(model.field_, table)
    is_middle = found == median_row(model.field_, table)
    return found, "median" if is_middle else "of the row nearest to the medians,"


def _value_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _by_encoder(encoder: CovariateEncoder) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(encoder.names, 0)  # a constant one is not looked at
    for number in encoder.numeric:
        middle = number.mean if encoder.standardize else (number.low + number.high) / 2
        values[number.name] = number.text(middle) if number.date else middle
    for category in encoder.categorical:
        values[category.name] = category.by_size(category.levels, category.shares)[0]
    return values


def add_intervals(network: nx.Graph, intervals: pd.DataFrame) -> None:
    """Standard errors and intervals on the edges of a graph."""
    columns = ["standard_error", "interval_low", "interval_high"]
    found = intervals.set_index(["source", "target"])[columns].to_dict("index")
    for source, target, edge in network.edges(data=True):
        edge |= found.get((source, target)) or found[target, source]
