"""``graphfield check``, and what ``graphfield fit`` does with a table before and after the fit."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfield.cli.values import names
from graphfield.cli.words import for_the_shell
from graphfield.exceptions import DataWarning

if TYPE_CHECKING:
    from graphfield.data.findings import DataCheck
    from graphfield.data.roles import TableData

CHECK_FILE = "data_check.json"
STRICT_FAILURE = 1


def check_parser(group: Any) -> None:
    p = group.add_parser("check", help="look at a table before a fit: what is what, what looks wrong")
    table_options(p)
    p.add_argument("--strict", action="store_true", help="exit code 1 if anything looks wrong")
    p.set_defaults(run=check)


def table_options(p: argparse.ArgumentParser) -> None:
    """The table and what its columns are, for every command that reads one."""
    p.add_argument("table", type=Path, metavar="TABLE", help="CSV, TSV, Parquet or NPZ file")
    p.add_argument("--covariates", required=True, metavar="A,B", help="columns or patterns")
    p.add_argument(
        "--nodes",
        metavar="X1,X2",
        help="columns or patterns ('roi_*'); default: all other numeric columns",
    )
    p.add_argument("--group", metavar="COLUMN", help="rows with equal values belong together, in splits too")
    p.add_argument("--missing", choices=("error", "drop", "impute"), default="error")
    p.add_argument("--time", metavar="COLUMN", help="when a row was measured: a date or a number")
    p.add_argument("--rare", type=int, metavar="N", help="pool levels with fewer than N rows into 'other'")
    p.add_argument(
        "--categories", metavar="A,B", help="covariates that are categories although they are numbers"
    )


def check(arguments: argparse.Namespace) -> int:
    """The check alone."""
    data = read_roles(arguments)
    found = run_check(arguments, data)
    say_check(arguments.table, found)
    if not found.warnings:
        sys.stdout.write("Nothing looks wrong.\n")
    return STRICT_FAILURE if arguments.strict and found.warnings else 0


def read_roles(arguments: argparse.Namespace) -> TableData:
    """The table, split by the roles that the options give its columns."""
    from graphfield.data.roles import from_table

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # identifiers among the nodes are in the check
        return from_table(
            arguments.table,
            covariates=names(arguments.covariates),
            nodes=names(arguments.nodes) if arguments.nodes else None,
            group=arguments.group,
            time=arguments.time,
            rare=arguments.rare,
            categories=names(arguments.categories) if arguments.categories else (),
        )


def run_check(arguments: argparse.Namespace, data: TableData) -> DataCheck:
    from graphfield.data.check import check_table

    return check_table(
        data.X,
        data.Z,
        data.groups,
        data.time,
        missing=arguments.missing,
        rest=data.rest,
        pooled=data.pooled,
    )


def say_check(table: Path, found: DataCheck) -> None:
    first, *others = found.lines()
    lines = [f"Read {table}: {first}", *(for_the_shell(line) for line in others)]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


@contextmanager
def said_already() -> Iterator[None]:
    """What is done to the data was printed with the check, so a fit need not say it again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


def check_files(arguments: argparse.Namespace, data: TableData, found: DataCheck) -> dict[str, bytes]:
    """Files about the data that go into the model's folder."""
    from graphfield.data.covariate_rows import FILE_NAME, covariate_rows

    files = {CHECK_FILE: json.dumps(found.to_json(), indent=1).encode()}
    if not arguments.no_rows:
        files[FILE_NAME] = covariate_rows(data.Z, arguments.seed).encode()
    return files


def roles_told(arguments: argparse.Namespace, data: TableData) -> dict[str, Any]:
    """How the columns were taken, for ``fit.json``: enough to read the table in the same way again."""
    return {
        "time": arguments.time,
        "missing": arguments.missing,
        "rare": arguments.rare,
        "categories": names(arguments.categories) if arguments.categories else [],
        "pooled": data.pooled,
    }


def pooled_levels(folder: Path) -> dict[str, list[str]]:
    """For each covariate the levels that ``graphfield fit --rare`` pooled; nothing where it did not."""
    try:
        told = json.loads((folder / "fit.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told.get("pooled", {}) if isinstance(told, dict) else {}
