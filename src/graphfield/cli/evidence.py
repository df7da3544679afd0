"""``graphfield evidence``: does the graph depend on the covariates at all?"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphfield.cli.check import hide_data_warnings, read_roles, run_check
from graphfield.cli.options import check_new, file_options, node_type_option, seed_option, table_options
from graphfield.cli.values import chosen_kinds, names
from graphfield.cli.words import render_for_shell, say
from graphfield.exceptions import ParameterError, listing, suggestion

if TYPE_CHECKING:
    from graphfield.data.roles import TableData
    from graphfield.inference.evidence import Evidence


def evidence_parser(group: Any) -> None:
    p = group.add_parser("evidence", help="test whether the graph depends on the covariates at all")
    table_options(p)
    node_type_option(p)
    p.add_argument(
        "--only",
        metavar="A,B",
        help="covariates to test one by one, each given all others (default: all; p-values are adjusted for "
        "their number)",
    )
    p.add_argument(
        "--permutations",
        type=int,
        help="rearrangements (default 199, and up to 9,999 where p is near .05)",
    )
    seed_option(p)
    file_options(p, "FILE.json", help="also write the numbers to a file")
    p.set_defaults(run=evidence)


def evidence(arguments: argparse.Namespace) -> None:
    out = arguments.out
    check_new(out, arguments.force)
    data = read_roles(arguments)
    checked = run_check(arguments, data, planned=False)
    with hide_data_warnings():
        found = run_test(
            arguments,
            data,
            arguments.permutations,
            in_order=checked.is_series,
            covariates=_asked(arguments, data),
        )
    say(str(found))
    if out is not None:
        found.save(out, overwrite=arguments.force)
        say(f"Wrote {out}.")


def _asked(arguments: argparse.Namespace, data: TableData) -> list[str] | None:
    """The covariates of ``--only``; None for all."""
    if arguments.only is None:
        return None
    asked, known = names(arguments.only), list(data.Z.columns)
    for name in asked:
        if name not in known:
            raise ParameterError.of(
                "only",
                f"names {name!r}, which is no covariate here.{suggestion(name, known)} It must be one of "
                f"{listing(known)}.",
            )
    return asked


def run_test(
    arguments: argparse.Namespace,
    data: TableData,
    n_permutations: int | None = None,
    *,
    in_order: bool,
    covariates: list[str] | None = None,
) -> Evidence:
    """The test; what it says is for the caller to say."""
    from graphfield.inference.dependence import dependence_test

    found = dependence_test(
        data.X,
        data.Z,
        groups=data.groups,
        time=data.time,
        in_order=in_order,
        covariates=covariates,
        missing=arguments.missing,
        n_permutations=n_permutations,
        node_types=chosen_kinds(arguments),
        random_state=arguments.seed,
    )
    return replace(
        found,
        caveat=render_for_shell(found.caveat, arguments),
        filled_in=render_for_shell(found.filled_in, arguments),
    )
