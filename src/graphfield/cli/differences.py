"""``graphfield differences``: which edges differ between values of the covariates."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from graphfield.cli.check import hide_data_warnings, read_roles, run_check
from graphfield.cli.edges import check_rate, fdr_option
from graphfield.cli.options import check_new, file_options, node_type_option, table_options
from graphfield.cli.values import chosen_kinds, covariate_values
from graphfield.cli.words import list_out, pairs_text, render_for_shell
from graphfield.exceptions import ParameterError, count

if TYPE_CHECKING:
    import pandas as pd

    from graphfield.data.roles import TableData


def differences_parser(group: Any) -> None:
    p = group.add_parser("differences", help="test which edges differ between values of the covariates")
    table_options(p)
    node_type_option(p)
    p.add_argument(
        "--between",
        required=True,
        metavar="NAME=VALUE",
        help="a value of a covariate, or of several (sex=F,age=60); a category alone stands for its levels",
    )
    p.add_argument(
        "--and",
        dest="others",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what it is compared with; may be repeated",
    )
    p.add_argument("--level", type=float, default=0.9, help="of intervals, one by one (default 0.9)")
    fdr_option(p)
    p.add_argument("--all", action="store_true", help="list all pairs, with their p- and q-values")
    file_options(p, "FILE.csv", help="write the list there instead of to the screen")
    p.set_defaults(run=differences)


def differences(arguments: argparse.Namespace) -> None:
    from graphfield.inference.compare import compare_graphs
    from graphfield.inference.edge_record import FDR

    check_rate(arguments.fdr)
    check_new(arguments.out, arguments.force)
    data = read_roles(arguments)
    sides = _sides(arguments, data)
    # The list alone goes to the screen's output, so that it can be piped.
    with redirect_stdout(sys.stdout if arguments.out is not None else sys.stderr):
        checked = run_check(arguments, data, planned=False)
    with hide_data_warnings():
        found = compare_graphs(
            data.X,
            data.Z,
            *sides,
            groups=data.groups,
            time=data.time,
            in_order=checked.is_series,
            level=arguments.level,
            missing=arguments.missing,
            node_types=chosen_kinds(arguments),
        )
    notes, listed = render_for_shell(found.attrs["summary"], arguments), _listed(found, arguments)
    if arguments.fdr != FDR and not arguments.all:
        notes += f" Listed: {count(len(listed), 'pair')}, at a false-discovery level of {arguments.fdr:g}."
    list_out(pairs_text(listed, arguments), notes, arguments)


def _sides(arguments: argparse.Namespace, data: TableData) -> list[Any]:
    """What to compare: values of covariates, or the name of a category."""
    from graphfield.data.covariates import CovariateEncoder
    from graphfield.data.frames import as_frame
    from graphfield.inference.asked_values import read_sides

    if not arguments.others:
        if "=" in arguments.between:
            raise ParameterError.of(
                "between",
                f"gives one side, {arguments.between}: give the other with --and NAME=VALUE, or "
                "compare all levels of a category with --between NAME.",
            )
        return [arguments.between]
    complete = data.Z[data.Z.notna().all(axis=1)]
    encoder = CovariateEncoder(says_average=False).fit(as_frame(complete, "Z"))
    sides = {"--between": [arguments.between], "--and": arguments.others}
    values = [
        covariate_values([text], encoder, data.dates, option=option)
        for option, texts in sides.items()
        for text in texts
    ]
    read_sides(encoder, *values)  # what is wrong with them is said before the check, which takes a while
    return values


def _listed(found: pd.DataFrame, arguments: argparse.Namespace) -> pd.DataFrame:
    if arguments.all:
        return found
    return found[found["q_value"] <= arguments.fdr].sort_values(["q_value", "p_value"], kind="stable")
