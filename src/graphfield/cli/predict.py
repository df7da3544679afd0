"""``graphfield predict``: what a fitted model says at every row of a table, as a folder of Parquet files."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfield.cli.check import date_notations
from graphfield.cli.one_graph import read_tests, with_tested_edges
from graphfield.cli.options import folder_options, graph_options
from graphfield.cli.values import threshold
from graphfield.cli.words import say
from graphfield.exceptions import DataWarning, count

if TYPE_CHECKING:
    from graphfield.data.roles import TableData
    from graphfield.data.row_source import RowSource
    from graphfield.estimators.base import GraphEstimator


def predict_parser(group: Any) -> None:
    p = group.add_parser("predict", help="the edges, or fitted values, at every row of a table")
    p.add_argument("model", type=Path, metavar="DIR", help="folder written by 'graphfield fit'")
    p.add_argument(
        "table",
        type=Path,
        metavar="TABLE",
        help="a file as 'graphfield fit' takes it, or a folder of Parquet files; Parquet, .npy, .zarr and "
        ".h5ad are read by rows, however many there are",
    )
    p.add_argument(
        "--values",
        action="store_true",
        help="the values of the nodes that their neighbours predict, a line for each row, instead of edges",
    )
    graph_options(p)
    folder_options(
        p,
        help="folder to write: Parquet files of consecutive rows, about a million lines each",
        force="replace an existing folder",
    )
    p.set_defaults(run=predict)


def predict(arguments: argparse.Namespace) -> None:
    from graphfield.estimators.persistence import load
    from graphfield.folders import check_folder

    check_folder(arguments.out, overwrite=arguments.force)
    cut = threshold(arguments.threshold)
    model = load(arguments.model)
    rows = _open_rows(arguments, model)
    if arguments.values:
        model.write_predictions(rows, arguments.out, overwrite=arguments.force)
    else:
        tests = read_tests(arguments.model, model)
        if tests is not None and cut == "auto":
            model = with_tested_edges(tests, model)
        model.write_edges(rows, arguments.out, cut, arguments.rule, overwrite=arguments.force)
    what = "fitted values" if arguments.values else "edges"
    say(f"Wrote the {what} at {count(len(rows), 'row')} of {arguments.table} to {arguments.out}.")


def _open_rows(arguments: argparse.Namespace, model: GraphEstimator) -> RowSource | TableData:
    """The covariates of the model and, where values are asked for, its nodes."""
    from graphfield.data.roles import from_table
    from graphfield.data.row_files import KINDS
    from graphfield.data.row_source import open_table

    by_rows = arguments.table.is_dir() or arguments.table.suffix in KINDS
    notations = set(date_notations(arguments.model).values())
    with warnings.catch_warnings(action="ignore", category=DataWarning):  # said when the model was fitted
        return (open_table if by_rows else from_table)(
            arguments.table,
            covariates=model.covariate_names_,
            nodes=model.node_names_ if arguments.values else [],
            categories=[one.name for one in model.encoder_.categorical],
            date_format=notations.pop() if len(notations) == 1 else None,
        )
