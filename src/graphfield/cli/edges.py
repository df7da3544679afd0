"""``graphfield edges``: which edges may be believed, and which of them move."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphfield.cli.check import hide_data_warnings, read_roles, run_check
from graphfield.cli.options import check_new, file_options, node_type_option, seed_option, table_options
from graphfield.cli.values import chosen_kinds
from graphfield.cli.words import list_out, pairs_text, render_for_shell
from graphfield.exceptions import GraphfieldError, ParameterError

if TYPE_CHECKING:
    from graphfield.data.roles import TableData
    from graphfield.inference.edge_inference import EdgeInference
    from graphfield.inference.edge_record import EdgeRecord


_COLUMNS = (
    "estimate: the partial correlation averaged over the rows, of normal scores of what covariates leave of "
    "numbers; low and high: its interval of 90 %; p_value: is there an edge anywhere (average and movement "
    "together); p_varies: does it move."
)
_MOST_NODES = 300  # of a fit that tests its pairs unasked


def edges_parser(group: Any) -> None:
    p = group.add_parser("edges", help="test every pair of nodes: is there an edge, does it move")
    table_options(p)
    node_type_option(p)
    fdr_option(p)
    p.add_argument(
        "--varying", action="store_true", help="list the pairs whose edge moves with the covariates"
    )
    p.add_argument("--all", action="store_true", help="list all pairs, with their p- and q-values")
    seed_option(p)
    file_options(
        p,
        "FILE.csv",
        help="write the list there instead of to the screen; DIR/edges.json is for 'report DIR'",
    )
    p.set_defaults(run=edges)


def fdr_option(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--fdr", type=float, default=0.1, metavar="Q", help="share of false pairs in the list (default 0.1)"
    )


def check_rate(fdr: float) -> None:
    if not 0 < fdr < 1:
        raise ParameterError.of(
            "fdr", f"must be above 0 and below 1, got {fdr:g}. For every pair, use --all."
        )


def edges(arguments: argparse.Namespace) -> None:
    from graphfield.inference.edge_record import FDR

    check_rate(arguments.fdr)
    for_page = arguments.out is not None and arguments.out.suffix.lower() == ".json"
    if for_page and arguments.fdr != FDR:
        raise ParameterError(
            f"A page has its edges at --fdr {FDR:g}: leave --fdr out, or write a .csv file."
        ).about(argument="fdr")
    check_new(arguments.out, arguments.force)
    data = read_roles(arguments)
    # The list alone goes to the screen's output, so that it can be piped.
    with redirect_stdout(sys.stdout if arguments.out is not None else sys.stderr):
        checked = run_check(arguments, data, planned=False)
    found = run_tests(arguments, data, in_order=checked.is_series)
    text = _record(found, arguments).to_json() if for_page else _listed(found, arguments)
    notes = "" if for_page else f"\n{_COLUMNS}"
    list_out(text, f"{render_for_shell(found.summary(arguments.fdr), arguments)}{notes}", arguments)


def run_tests(arguments: argparse.Namespace, data: TableData, *, in_order: bool) -> EdgeInference:
    from graphfield.inference.edges import infer_edges

    with hide_data_warnings():
        found = infer_edges(
            data.X,
            data.Z,
            groups=data.groups,
            time=data.time,
            in_order=in_order,
            missing=arguments.missing,
            node_types=chosen_kinds(arguments),
            random_state=arguments.seed,
        )
    return replace(found, caveat=render_for_shell(found.caveat, arguments))


def tests_edges(arguments: argparse.Namespace, data: TableData, *, is_large: bool) -> bool:
    """Whether a fit tests its pairs; where nothing is said, unless that would take long beside the fit."""
    if arguments.edges is not None:
        return bool(arguments.edges)
    return not (arguments.no_verdict or is_large or data.X.shape[1] > _MOST_NODES)


def edges_of_fit(
    arguments: argparse.Namespace, data: TableData, *, is_series: bool
) -> tuple[EdgeRecord, str]:
    """What ``edges.json`` is to hold and what is said of it; where pairs cannot be tested, why not."""
    from graphfield.inference.edge_record import EdgeRecord

    try:
        found = run_tests(arguments, data, in_order=is_series)
    except GraphfieldError as error:  # the fit goes on
        why_not = render_for_shell(error.message, arguments)
        return EdgeRecord(why_not=why_not), f"Pairs could not be tested: {why_not}"
    record = _record(found, arguments)
    if not arguments.details:
        return record, _few_words(found, record, arguments)
    return record, render_for_shell(found.summary(), arguments)


def _few_words(found: EdgeInference, record: EdgeRecord, arguments: argparse.Namespace) -> str:
    """How many edges there are and the strongest; what moves is for the verdict to say."""
    from graphfield.inference.edge_record import FDR

    parts = [found.about, record.edges_words(), found.values_to_ask(FDR)]
    return "\n".join(render_for_shell(part, arguments) for part in parts if part)


def _record(found: EdgeInference, arguments: argparse.Namespace) -> EdgeRecord:
    from graphfield.inference.edge_record import EdgeRecord

    record = EdgeRecord.of(found)
    return replace(record, notes=tuple(render_for_shell(note, arguments) for note in record.notes))


def _listed(found: EdgeInference, arguments: argparse.Namespace) -> str:
    if arguments.all:
        return pairs_text(found.pairs(), arguments)
    table = found.varying(arguments.fdr) if arguments.varying else found.edges(arguments.fdr)
    return pairs_text(table, arguments)
