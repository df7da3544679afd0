"""``graphfield fit`` of a table that is larger than memory: all rows for the fit, a sample for all else."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfield.cli.values import names
from graphfield.cli.words import say
from graphfield.exceptions import DataWarning, ParameterError

if TYPE_CHECKING:
    from graphfield.data.roles import TableData
    from graphfield.data.row_source import RowSource

# A table in memory is at most so many times as long as its Parquet file.
_MOST_PACKED = 100
# Options for tables that are in memory as a whole.
_IN_MEMORY = ("rare", "time", "node_types")


def memory_option(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--memory",
        metavar="SIZE",
        help="that a fit may take, such as 4GB (default: half of what is free): a table of Parquet, "
        ".npy, .zarr or .h5ad files of which ten copies would be more is read by rows",
    )


def open_large(arguments: argparse.Namespace) -> RowSource | None:
    """The table by rows, where it does not fit in memory; else None."""
    from graphfield.data.row_files import is_read_by_rows
    from graphfield.data.row_source import open_table
    from graphfield.data.row_store import SHARE, memory_bound

    path, bound = Path(arguments.table), memory_bound(arguments.memory)
    if not path.exists() or not (is_read_by_rows(path) or path.suffix == ".parquet"):
        return None
    if path.is_file() and path.suffix == ".parquet" and _MOST_PACKED * path.stat().st_size <= SHARE * bound:
        return None
    with warnings.catch_warnings(action="ignore", category=DataWarning):  # the check says it
        source = open_table(
            path,
            covariates=names(arguments.covariates),
            nodes=names(arguments.nodes) if arguments.nodes else None,
            group=arguments.group,
            drop=names(arguments.drop or ""),
            categories=names(arguments.categories or ""),
            date_format=arguments.date_format,
            memory=bound,
        )
    if source.fits:
        return None
    for option in _IN_MEMORY:
        if getattr(arguments, option, None) is not None:
            raise ParameterError.of(
                option, "is for tables that are in memory as a whole; leave it out, or give more --memory."
            )
    return source


def read_sample(arguments: argparse.Namespace, source: RowSource) -> TableData:
    """Rows drawn at random, for checks and tests."""
    data = source.take(source.sample(arguments.seed))
    if len(data.X) < len(source):
        drawn, whole = f"{len(data.X):,}", f"{len(source):,}"
        say(f"Read by rows: what is checked and tested is of {drawn} of {whole} rows, drawn at random.")
    return data


def rows_of(source: RowSource, data: TableData, model: Any) -> dict[str, Any]:
    """What is fitted: all rows, or the sample where a model holds its rows in memory."""
    if model.takes_all_rows or source.fits:
        return {"X": source}
    say(f"{type(model).__name__} holds its rows in memory, and is fitted to the same {len(data.X):,} rows.")
    return {"X": data.X, "Z": data.Z, "groups": data.groups}
