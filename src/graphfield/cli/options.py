"""Options that several commands have, each written once, and what ``--out`` without ``--force`` promises."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from graphfield.folders import check_file

# Options of :func:`reading_options` about the file itself.
READING = ("sep", "decimal", "thousands", "encoding", "sheet")


class Once(argparse.Action):
    """An option whose second value would silently replace the first and change what numbers mean."""

    def __call__(self, _parser: Any, namespace: Any, values: Any, _option: str | None = None) -> None:
        if getattr(namespace, self.dest, None) not in (None, values):
            raise argparse.ArgumentError(
                self, f"given twice, {getattr(namespace, self.dest)!r} and {values!r}"
            )
        setattr(namespace, self.dest, values)


def table_options(p: argparse.ArgumentParser) -> None:
    """The table and what its columns are, for every command that reads one."""
    p.add_argument(
        "table",
        type=Path,
        metavar="TABLE",
        help="text (.csv, .tsv, .txt, or .csv.gz), .parquet, .feather, .xlsx, .npz, .npy or .h5ad file, "
        ".zarr, or a folder of Parquet files with the same columns; -: standard input",
    )
    p.add_argument("--covariates", required=True, metavar="A,B", help="columns or patterns")
    p.add_argument(
        "--nodes", metavar="X1,X2", help="columns or patterns ('roi_*'); default: all other numeric columns"
    )
    p.add_argument("--drop", metavar="X3,X4", help="columns or patterns to leave out of the nodes")
    p.add_argument("--group", metavar="COLUMN", help="rows with equal values belong together, in splits too")
    p.add_argument("--missing", choices=("error", "drop", "impute"), default="error")
    p.add_argument("--time", metavar="COLUMN", help="when a row was measured: a date or a number")
    p.add_argument(
        "--rare",
        type=rare_rows,
        metavar="N|A=N,B=N",
        help="pool levels with fewer than N rows into 'other', of all covariates or of those named",
    )
    p.add_argument(
        "--categories", metavar="A,B", help="covariates that are categories although they are numbers"
    )
    reading_options(p)


def rare_rows(text: str) -> int | dict[str, int]:
    """What ``--rare`` says: rows for all covariates, or for some by name.

    >>> rare_rows("20"), rare_rows("site=20,country=5")
    (20, {'site': 20, 'country': 5})
    """
    parts = [part.rpartition("=") for part in text.split(",")]
    try:
        if "=" not in text:
            return int(text)
        found = {name.strip(): int(rows) for name, _, rows in parts}
    except ValueError as error:
        expected = "a number of rows, such as 20, or covariates with theirs, such as site=20,country=10"
        raise argparse.ArgumentTypeError(f"expects {expected}; got {text!r}") from error
    if len(found) < len(parts) or "" in found:
        raise argparse.ArgumentTypeError(f"expects each covariate once, by its name; got {text!r}")
    return found


def rare_text(rare: int | dict[str, int]) -> str:
    """The same as it is written."""
    return ",".join(f"{name}={rows}" for name, rows in rare.items()) if isinstance(rare, dict) else str(rare)


def reading_options(p: argparse.ArgumentParser) -> None:
    """How a file is to be read, where that cannot be told from it; what contradicts the file is an error."""
    p.add_argument(
        "--sep",
        action=Once,
        metavar="MARK",
        help="between cells of text: , ; tab | or space (default: found)",
    )
    p.add_argument("--decimal", action=Once, choices=(".", ","), help="decimal mark of text (default: found)")
    p.add_argument(
        "--thousands", action=Once, metavar="MARK", help="between groups of three digits: . , ' or a space"
    )
    p.add_argument(
        "--encoding", action=Once, metavar="NAME", help="of text, such as utf-16 or cp1252 (default: found)"
    )
    p.add_argument("--sheet", action=Once, metavar="NAME", help="of an Excel file that has several")
    p.add_argument(
        "--date-format",
        action=Once,
        choices=("dd/mm/yyyy", "mm/dd/yyyy", "yyyymmdd", "yymmdd"),
        help="where 03/04/2020 may be two dates, or numbers such as 20200403 or 200403 are dates",
    )


def seed_option(p: argparse.ArgumentParser, help: str | None = None) -> None:
    p.add_argument("--seed", type=int, default=0, help=help)


def model_options(p: argparse.ArgumentParser) -> None:
    """For every command that fits a model of the user's choice."""
    seed_option(p)
    p.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a hyper-parameter of the model; may be repeated",
    )


def node_type_option(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--node-types",
        metavar="X3=KIND,...",
        help="what nodes (names or patterns) are, where these may be more than numbers: gaussian, binary, "
        "categorical, ordinal or count (default: text and true or false are levels, numbers are numbers); "
        "without --nodes these columns are nodes beside those of numbers",
    )


def graph_options(p: argparse.ArgumentParser) -> None:
    """When an edge counts as present."""
    p.add_argument(
        "--threshold",
        default="auto",
        help="'auto' (default): edges clear of their noise; a number, 'gap', or 'none': all but zeros",
    )
    p.add_argument("--rule", choices=("and", "or"), default="and")


def file_options(
    p: argparse.ArgumentParser, metavar: str, *, required: bool = False, help: str | None = None
) -> None:
    """A file to write, which :func:`check_new` looks at before the work."""
    p.add_argument("--out", type=Path, required=required, metavar=metavar, help=help)
    p.add_argument("--force", action="store_true", help="replace an existing file")


def folder_options(
    p: argparse.ArgumentParser,
    default: str | None = None,
    *,
    help: str | None = None,
    force: str = "replace earlier results in DIR",
) -> None:
    """A folder to write; without a default it must be named."""
    folder = None if default is None else Path(default)
    p.add_argument("--out", type=Path, required=default is None, default=folder, metavar="DIR", help=help)
    p.add_argument("--force", action="store_true", help=force)


def check_new(out: Path | None, force: bool) -> None:
    """Refuse to replace a file unless told to, and to begin where it could not be written."""
    if out is not None:
        check_file(out, overwrite=force)
