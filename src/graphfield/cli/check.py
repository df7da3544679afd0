"""``graphfield check``, and what ``graphfield fit`` does with a table before and after the fit."""

from __future__ import annotations

import argparse
import fnmatch
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfield.cli.options import READING, node_type_option, table_options
from graphfield.cli.values import names, read_kinds
from graphfield.cli.words import render_for_shell, say
from graphfield.exceptions import DataError, DataWarning, listing

if TYPE_CHECKING:
    from graphfield.check.findings import DataCheck
    from graphfield.data.roles import TableData
    from graphfield.data.sources import Source

STRICT_FAILURE = 1
# Tables whose fit may be long, and seconds from which it is.
_LONG_ROWS, _LONG_NODES, _LONG_SECONDS = 20_000, 80, 60
STANDARD_INPUT = "-"


def check_parser(group: Any) -> None:
    p = group.add_parser("check", help="look at a table before a fit: what is what, what looks wrong")
    table_options(p)
    node_type_option(p)
    p.add_argument("--columns", action="store_true", help="also list every column and what was noticed")
    p.add_argument("--strict", action="store_true", help="exit code 1 if anything looks wrong")
    p.set_defaults(run=check)


def check(arguments: argparse.Namespace) -> int:
    """The check alone."""
    data = read_roles(arguments)
    found = run_check(arguments, data, planned=True, notes=True)
    if arguments.columns:
        say("\n".join(["", *found.column_lines(), ""]))
    wrong = [one for one in found.warnings if one.looks_wrong]
    if not wrong:
        say("Nothing looks wrong.")
    _print_cost(data)
    for one in wrong:
        if one.code == "too-few-nodes":  # as a fit would, but not before what the columns are taken for
            raise DataError(str(one)).about(advice=one.advice)
    return STRICT_FAILURE if arguments.strict and wrong else 0


def _print_cost(data: TableData) -> None:
    """What a default fit takes, where that is long; small tables need no look at the machine."""
    (n, p), q = data.X.shape, data.Z.shape[1]
    if p == 0 or (n < _LONG_ROWS and p < _LONG_NODES):
        return
    from graphfield.estimators.cost import estimate_cost

    cost = estimate_cost(n, p, q)
    if cost.seconds > _LONG_SECONDS:
        say(f"A default fit of it takes {cost} here.")


def read_roles(arguments: argparse.Namespace) -> TableData:
    """The table, split by the roles that the options give its columns."""
    from graphfield.data.rare_levels import pool_counted
    from graphfield.data.roles import from_table

    if str(arguments.table) == STANDARD_INPUT:
        arguments.table = read_standard_input()
    with warnings.catch_warnings():
        # Identifiers among the nodes are in the check; what is wrong with a file is said here alone.
        warnings.filterwarnings("ignore", "Column", DataWarning)
        data = from_table(
            arguments.table,
            covariates=names(arguments.covariates),
            nodes=names(arguments.nodes) if arguments.nodes else None,
            group=arguments.group,
            time=arguments.time,
            categories=names(arguments.categories or ""),
            drop=names(arguments.drop or ""),
            date_format=arguments.date_format,
            **{name: getattr(arguments, name) for name in READING},
        )
    arguments.reading = data.reading  # for messages, which name lines of the file
    if arguments.rare is not None:
        Z, pooled = pool_counted(data.X, data.Z, arguments.rare, getattr(arguments, "missing", None))
        data = replace(data, Z=Z, pooled=pooled)
    if text := getattr(arguments, "node_types", None):
        arguments.node_types = _named_kinds(text, [*map(str, data.X.columns), *data.unused])
    return data if arguments.nodes else _with_typed_nodes(data, getattr(arguments, "node_types", None))


def _named_kinds(text: str, columns: list[str]) -> str:
    """``--node-types`` with columns in place of patterns; a column that is named beside one is as named."""
    kinds = read_kinds(text)
    found: dict[str, str] = {}
    for name, kind in kinds.items():
        matching = [name] if name in columns else fnmatch.filter(columns, name)
        found |= {column: kind for column in matching or [name] if column == name or column not in kinds}
    return ",".join(f"{name}={kind}" for name, kind in found.items())


def _with_typed_nodes(data: TableData, text: str | None) -> TableData:
    """Columns of which ``--node-types`` says what they are as nodes, though they are no numbers."""
    import pandas as pd

    typed = [name for name in read_kinds(text or "") if name in data.unused and name not in data.dropped]
    unused = [name for name in data.unused if name not in typed]
    X = pd.concat([data.X, data.rest[typed]], axis=1)
    return replace(data, X=X, unused=unused, rest=data.rest[unused]) if typed else data


def read_standard_input() -> Source:
    """All bytes of standard input, which can be read only once."""
    from graphfield.data.room import free_memory, size_text
    from graphfield.data.sources import Source

    stream = None if sys.stdin is None or sys.stdin.closed else sys.stdin
    if stream is None or stream.isatty():
        raise DataError(
            "The table - is standard input, but nothing comes from there. Pipe a table into it."
        ).about(argument="table")
    free = free_memory()
    content = stream.buffer.read(free)
    if len(content) >= free:
        raise DataError(f"Standard input has more than the {size_text(free)} of memory that are free.").about(
            argument="table"
        )
    return Source(STANDARD_INPUT, content)


def run_check(
    arguments: argparse.Namespace, data: TableData, *, planned: bool, notes: bool = False
) -> DataCheck:
    """The check, and what it says on the screen; a fit that is not ``planned`` follows at once."""
    from graphfield.check.table import check_table

    found = check_table(
        data.X,
        data.Z,
        data.groups,
        data.time,
        missing=arguments.missing,
        planned=planned,
        rest=data.rest,
        pooled=data.pooled,
        trimmed=data.trimmed,
        typed=_typed_nodes(arguments, data),
    )
    found = _in_shell_words(found, arguments)
    lines = found.lines("In a fit" if planned else "Changed", said=data.dropped, notes=notes)
    if not notes and (known := dict.fromkeys(one.code for one in found.warnings if not one.looks_wrong)):
        words = ", ".join(code.replace("-", " ") for code in known)
        lines.append(f"Good to know ('graphfield check' says more): {words}.")
    say("\n".join([f"Read {arguments.table}: {lines[0]}", *_read_as(data), *lines[1:]]))
    return found


def _typed_nodes(arguments: argparse.Namespace, data: TableData) -> dict[str, str]:
    """What ``--node-types`` says that nodes are."""
    from graphfield.data.node_types import check_are_nodes, check_node_types

    text = getattr(arguments, "node_types", None)
    if text is None:
        return {}
    types = read_kinds(text)
    check_node_types(types)
    check_are_nodes(list(types), list(map(str, data.X.columns)))
    return types


def _read_as(data: TableData) -> list[str]:
    """What was assumed of the file, in a line; none where it is as plain as can be."""
    words = [data.reading.words()] if data.reading is not None and data.reading.words() else []
    words += [f"dates of {name!r} as {notation}" for name, notation in data.dates.items()]
    lines = [f"  read as: {', '.join(words)}"] if words else []
    return [*lines, *([f"  left out by --drop: {listing(data.dropped)}"] if data.dropped else [])]


def _in_shell_words(found: DataCheck, arguments: argparse.Namespace) -> DataCheck:
    """The check as it is printed and kept in ``data_check.json``: options, and lines of the file for rows."""
    from dataclasses import replace

    def in_words(text: str) -> str:
        return render_for_shell(text, arguments)

    return replace(
        found,
        changes=tuple(map(in_words, found.changes)),
        warnings=tuple(
            replace(w, message=in_words(w.message), advice=in_words(w.advice)) for w in found.warnings
        ),
    )


@contextmanager
def hide_data_warnings() -> Iterator[None]:
    """What is done to the data was printed with the check, so a fit need not say it again.

    What tests find out about their own rows is no part of the check.
    """
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        warnings.filterwarnings("always", ".*Nothing is known of their edges there", DataWarning)
        yield


def check_files(arguments: argparse.Namespace, data: TableData, found: DataCheck) -> dict[str, bytes]:
    """Files about the data that go into the model's folder."""
    from graphfield.data.covariate_rows import FILE_NAME, covariate_rows
    from graphfield.data.saved_files import json_bytes
    from graphfield.report.folder import CHECK

    files = {CHECK: json_bytes(found.to_json())}
    if not arguments.no_rows:
        known = data.X.replace([float("inf"), float("-inf")], float("nan")).notna().all(axis=1)
        if data.groups is not None:
            known &= data.groups.notna()
        complete = known if arguments.missing == "drop" else slice(None)
        files[FILE_NAME] = covariate_rows(data.Z[complete], arguments.seed).encode()
    return files


def fit_facts(
    arguments: argparse.Namespace, data: TableData, seconds: float, n_rows: int | None = None
) -> dict[str, Any]:
    """What ``fit.json`` says of a table and a fit to it."""
    from graphfield.report.folder import fit_record

    record = fit_record(
        table=str(arguments.table),
        rows=n_rows or len(data.X),
        nodes=list(data.X.columns),
        covariates=list(data.Z.columns),
        group=None if data.groups is None else str(data.groups.name),
        unused=data.unused,
        seconds=seconds,
    )
    return record | _role_facts(arguments, data)


def _role_facts(arguments: argparse.Namespace, data: TableData) -> dict[str, Any]:
    """How the columns were taken, for ``fit.json``: enough to read the table in the same way again."""
    return {
        "time": arguments.time,
        "missing": arguments.missing,
        "rare": arguments.rare,
        "categories": names(arguments.categories) if arguments.categories else [],
        "node_types": getattr(arguments, "node_types", None),
        "pooled": data.pooled,
        "read_as": None if data.reading is None else data.reading.to_json(),
        "dates": data.dates,
    }


def date_notations(folder: Path) -> dict[str, str]:
    """For covariates how ``graphfield fit`` found their dates written, where that was not plain to see."""
    from graphfield.report.folder import FIT, read_record

    found = (read_record(folder, FIT) or {}).get("dates", {})
    return found if isinstance(found, dict) else {}
