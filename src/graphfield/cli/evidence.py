"""``graphfield evidence``: does the graph depend on the covariates at all?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from graphfield.cli.commands import say
from graphfield.cli.values import names
from graphfield.exceptions import DataError, OutputError, listing, suggestion

if TYPE_CHECKING:
    import pandas as pd


def evidence(arguments: argparse.Namespace) -> None:
    from graphfield.analysis.dependence import dependence_test
    from graphfield.data.roles import from_table
    from graphfield.data.tables import read_table

    out = arguments.out
    if out is not None and out.exists() and not arguments.force:
        raise OutputError(f"{out} already exists. Choose another name or add --force.")
    table = read_table(arguments.table)
    time = None if arguments.time is None else _column(table, arguments.time)
    data = from_table(
        table if time is None else table.drop(columns=[arguments.time]),
        covariates=names(arguments.covariates),
        nodes=names(arguments.nodes) if arguments.nodes else None,
        group=arguments.group,
    )
    found = dependence_test(
        data.X,
        data.Z,
        groups=data.groups,
        time=time,
        missing=arguments.missing,
        n_permutations=arguments.permutations,
        random_state=arguments.seed,
    )
    say(str(found))
    if out is not None:
        found.save(out, overwrite=arguments.force)
        say(f"Wrote {out}.")


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    if name not in table.columns:
        known = [str(column) for column in table.columns]
        raise DataError(
            f"The table has no column {name!r} for the time.{suggestion(name, known)} "
            f"It has {listing(known)}."
        )
    return table[name]
