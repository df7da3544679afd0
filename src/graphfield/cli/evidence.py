"""``graphfield evidence``: does the graph depend on the covariates at all?"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphfield.cli.check import hide_data_warnings, read_roles, run_check
from graphfield.cli.options import check_new, file_options, node_type_option, seed_option, table_options
from graphfield.cli.values import chosen_kinds
from graphfield.cli.words import say

if TYPE_CHECKING:
    from graphfield.data.roles import TableData
    from graphfield.inference.evidence import Evidence

_AS_SERIES = "Rows look like a series, so they were tested as one, in the order in which they come."
_ONE_BY_ONE = (
    "Rows look like a series, but in their order the covariates change too slowly to be tested as one. The "
    "test takes rows as independent of each other: if they are not, its p-values are too small."
)


def evidence_parser(group: Any) -> None:
    p = group.add_parser("evidence", help="test whether the graph depends on the covariates at all")
    table_options(p)
    node_type_option(p)
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
        found = run_test(arguments, data, arguments.permutations, in_order=checked.is_series)
    say(str(found))
    if out is not None:
        found.save(out, overwrite=arguments.force)
        say(f"Wrote {out}.")


def run_test(
    arguments: argparse.Namespace, data: TableData, n_permutations: int | None = None, *, in_order: bool
) -> Evidence:
    """The test; what it says is for the caller to say.

    Rows that are ``in_order`` look like a series, whose time nobody names. Where that leaves nothing to test,
    as in a table sorted by a covariate, they are taken one by one, and that is said.
    """
    found = _test(arguments, data, n_permutations, range(len(data.X)) if in_order else data.time)
    if not in_order:
        return found
    if found.p_value is not None:
        return replace(found, notes=(*found.notes, _AS_SERIES))
    one_by_one = _test(arguments, data, n_permutations, None)
    if one_by_one.p_value is None:
        return found
    return replace(one_by_one, notes=(*one_by_one.notes, _ONE_BY_ONE))


def _test(arguments: argparse.Namespace, data: TableData, n_permutations: int | None, time: Any) -> Evidence:
    from graphfield.inference.dependence import dependence_test

    return dependence_test(
        data.X,
        data.Z,
        groups=data.groups,
        time=time,
        missing=arguments.missing,
        n_permutations=n_permutations,
        node_types=chosen_kinds(arguments),
        random_state=arguments.seed,
    )
