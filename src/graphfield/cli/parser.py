"""The commands and their options."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

from graphfield import __version__
from graphfield.cli import commands
from graphfield.cli.bench import bench
from graphfield.cli.check import check_parser
from graphfield.cli.compare import compare_parser
from graphfield.cli.differences import differences_parser
from graphfield.cli.edges import edges_parser
from graphfield.cli.evidence import evidence_parser
from graphfield.cli.finance import finance_parser
from graphfield.cli.fmri import fmri_parser
from graphfield.cli.large_tables import memory_option
from graphfield.cli.options import (
    Once,
    file_options,
    folder_options,
    graph_options,
    model_options,
    node_type_option,
    seed_option,
    table_options,
)
from graphfield.cli.plan import plan_parser
from graphfield.cli.predict import predict_parser
from graphfield.cli.report import report_parser
from graphfield.cli.reproduce import reproduce
from graphfield.cli.stability import stability_parser
from graphfield.cli.values import model_name
from graphfield.estimators.registry import short_names
from graphfield.exceptions import suggestion

BAD_INPUT = 2
_UNKNOWN = "unrecognized arguments: "


class _Parser(argparse.ArgumentParser):
    """argparse with one line per error and no guessing of shortened options."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """A command answers for what it does not know: suggestions are options of its own."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(_UNKNOWN + " ".join(unknown))
        return found, unknown

    def error(self, message: str) -> NoReturn:
        unknown = message.partition(_UNKNOWN)[2].split()
        hint = suggestion(unknown[0].partition("=")[0], set(self._option_string_actions)) if unknown else ""
        if unknown and "=" in unknown[0] and not unknown[0].startswith("-"):
            hint = " Each NAME=VALUE has the option before it, as in --at a=1 --at b=2."
        sys.stderr.write(f"graphfield: {message}.{hint} See '{self.prog} --help'.\n")
        self.exit(BAD_INPUT)


def make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="graphfield",
        description="Estimate graphs that depend on covariates: the network of one subject, "
        "one day, one age.",
    )
    parser.add_argument("--version", action="version", version=f"graphfield {__version__}")
    group = parser.add_subparsers(metavar="COMMAND", required=True)
    _demo_parser(group)
    check_parser(group)
    _fit_parser(group)
    evidence_parser(group)
    edges_parser(group)
    differences_parser(group)
    stability_parser(group)
    compare_parser(group)
    plan_parser(group)
    _graph_parser(group)
    predict_parser(group)
    report_parser(group)
    finance_parser(group)
    fmri_parser(group)
    _simulate_parser(group)
    _reproduce_parser(group)
    _bench_parser(group)
    return parser


def _demo_parser(group: Any) -> None:
    p = group.add_parser("demo", help="simulate, fit, score against the truth, draw the graphs")
    p.add_argument("--n", type=int, default=10_000, help="training rows (default 10000)")
    p.add_argument("--n-test", type=int, default=1_000, help="test rows (default 1000)")
    seed_option(p)
    folder_options(p, "graphfield-demo", force="replace an earlier demo in DIR")
    p.set_defaults(run=commands.demo)


def _fit_parser(group: Any) -> None:
    p = group.add_parser("fit", help="learn z -> graph from a table and save the model")
    table_options(p)
    memory_option(p)
    node_type_option(p)
    p.add_argument(
        "--model",
        type=model_name,
        default="dnncgm",
        help=f"{', '.join(short_names())}, or the name of a class; auto compares several kinds on held-out "
        "rows and keeps the best (default dnncgm)",
    )
    p.add_argument(
        "--intervals",
        action="store_true",
        help="fit to rows drawn with replacement, several times, for 'graph --intervals' and the page: how "
        "far such fits are apart; intervals that cover are those of 'graphfield edges'",
    )
    p.add_argument("--members", type=int, default=20, metavar="N", help="fits for --intervals (default 20)")
    p.add_argument(
        "--evidence",
        action="store_true",
        help="also test whether the graph depends on the covariates, for the report (takes longer)",
    )
    p.add_argument(
        "--edges",
        action=argparse.BooleanOptionalAction,
        help="test every pair of nodes, as 'graphfield edges' does: q-values and bands on the page (default: "
        "where there are at most 300 nodes, and not with --no-verdict)",
    )
    p.add_argument(
        "--no-verdict",
        action="store_true",
        help="do not compare the model with one graph on rows that it has not seen (up to five more fits)",
    )
    p.add_argument("--details", action="store_true", help="say more: how each answer was found")
    p.add_argument("--no-rows", action="store_true", help="keep no covariates of training rows in DIR")
    folder_options(p, help="folder for the model", force="replace an existing folder")
    model_options(p)
    p.add_argument("--checkpoint", type=Path, metavar="DIR", help="keep the state of training here")
    p.add_argument("--resume", action="store_true", help="continue the fit that --checkpoint holds")
    p.set_defaults(run=commands.fit)


def _graph_parser(group: Any) -> None:
    p = group.add_parser("graph", help="the graph at one covariate value, or the average graph")
    p.add_argument("model", type=Path, metavar="DIR", help="folder written by 'graphfield fit'")
    p.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a covariate at this value, those not named at typical ones (default: typical values, or the "
        "average graph where held-out rows do not support that the graph moves)",
    )
    p.add_argument(
        "--average",
        action="store_true",
        help="the average graph over the training rows (a pair has one average, so --rule does nothing)",
    )
    p.add_argument(
        "--intervals", action="store_true", help="with intervals of 95 %%, of a model fitted with --intervals"
    )
    graph_options(p)
    p.add_argument(
        "--format",
        action=Once,
        choices=("csv", "parquet", "graphml", "json"),
        help="default: by the ending of FILE, or on the screen csv with four digits",
    )
    file_options(p, "FILE", help="default: standard output")
    p.set_defaults(run=commands.graph)


def _simulate_parser(group: Any) -> None:
    p = group.add_parser("simulate", help="write samples of a setting with a known graph")
    p.add_argument("setting", metavar="SETTING", help="G1, G2, N1, N2, D1, D2, S1, S2, S3, I1 or M1")
    p.add_argument("--n", type=int, default=12_000, help="samples (default 12000)")
    seed_option(p)
    p.add_argument("--no-clip", action="store_true", help="mix as in the paper's text")
    file_options(p, "FILE.npz", required=True)
    p.set_defaults(run=commands.simulate)


def _reproduce_parser(group: Any) -> None:
    p = group.add_parser("reproduce", help="the paper's tables and figures, ours beside the published values")
    p.add_argument(
        "table",
        metavar="TABLE",
        help="table1, table3, table4, table5, remark30k, all (these five), figures, rates, or a .toml file",
    )
    p.add_argument("--settings", metavar="G1,D1", help="some settings only")
    p.add_argument("--methods", metavar="dnn-cgm,reggmm", help="some methods only, and the lines beside them")
    p.add_argument("--no-lines", action="store_true", help="without the static, tree and oracle lines")
    p.add_argument("--quick", action="store_true", help="rates: few rows and nodes, for a first look")
    p.add_argument("--replicates", type=int, default=5, help="data replicates (default 5)")
    seed_option(p, help="seed of the first replicate; the others follow")
    folder_options(p, "graphfield-reproduce", force="run cells again that DIR already has")
    p.add_argument("--jobs", type=int, help="cells at a time (default: one per CPU core)")
    p.add_argument("--device", default="auto", help="auto, cpu or cuda, for the neural methods")
    p.set_defaults(run=reproduce)


def _bench_parser(group: Any) -> None:
    p = group.add_parser("bench", help="speed and memory beside a straightforward implementation")
    p.add_argument(
        "--quick", action="store_true", help="under two minutes: fewer rounds, some problems smaller"
    )
    folder_options(p, "graphfield-bench")
    p.add_argument("--device", default="auto", help="auto (CPU, and GPU where there is one), cpu or cuda")
    p.add_argument("--only", metavar="NAME,...", help="some cases only, such as metrics,simulators")
    p.add_argument("--scaling", action="store_true", help="also time and memory against n, p and q")
    p.set_defaults(run=bench)
