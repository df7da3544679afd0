"""``graphfield plan``: how many rows are needed to find the edges."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from graphfield.cli.options import check_new, file_options, seed_option
from graphfield.cli.values import threshold
from graphfield.cli.words import list_out
from graphfield.exceptions import DataError, ParameterError, listing

_TAKEN_AS_TRUE = (
    "Held-out rows do not support how this model moves: its edges that move are taken as true here, so the "
    "number is that for such edges, if there are any."
)


def plan_parser(group: Any) -> None:
    p = group.add_parser("plan", help="how many rows are needed to find the edges, by simulation")
    p.add_argument(
        "source", metavar="MODEL", help="folder written by 'graphfield fit', or a setting such as G1"
    )
    p.add_argument("--power", type=float, default=0.8, help="share of true edges to be found (default 0.8)")
    p.add_argument(
        "--fdr", type=float, default=0.1, metavar="Q", help="share of false ones among them (default 0.1)"
    )
    p.add_argument("--varying", action="store_true", help="find the edges that move with the covariates")
    p.add_argument("--least", type=float, default=0.0, metavar="R", help="only edges of this size or more")
    p.add_argument("--threshold", default="auto", help="which edges of the model are true, as in 'graph'")
    p.add_argument("--sets", type=int, metavar="N", help="simulated tables for each number of rows")
    p.add_argument("--most-rows", type=int, default=20_000, metavar="N", help="where the search ends (20000)")
    seed_option(p)
    file_options(p, "FILE.csv", help="write the curve there instead of to the screen")
    p.set_defaults(run=plan)


def plan(arguments: argparse.Namespace) -> None:
    from graphfield.inference.planning import plan_samples

    check_new(arguments.out, arguments.force)
    source, Z = _source(arguments.source)
    found = plan_samples(
        source,
        arguments.power,
        Z=Z,
        question="varying" if arguments.varying else "edges",
        fdr=arguments.fdr,
        least=arguments.least,
        n_sets=arguments.sets,
        most_rows=arguments.most_rows,
        threshold=threshold(arguments.threshold),
        random_state=arguments.seed,
    )
    summary = found.summary()
    if arguments.varying and Z is not None and _is_doubtful(Path(arguments.source), source, Z):
        summary += f" {_TAKEN_AS_TRUE}"
    list_out(found.curve.to_csv(index=False, float_format="%.4g"), summary, arguments)


def _is_doubtful(folder: Path, model: Any, Z: Any) -> bool:
    from graphfield.cli.one_graph import is_doubtful
    from graphfield.inference.verdict import Fitted

    return is_doubtful(folder, Fitted.of(model, Z))


def _source(text: str) -> tuple[Any, Any]:
    """A model and rows of its covariates, or the name of a setting."""
    from graphfield.simulate import SETTINGS

    if text in SETTINGS:
        return text, None
    folder = Path(text)
    if not folder.is_dir():
        raise ParameterError(
            f"{text} is no folder written by 'graphfield fit' and no setting ({listing(SETTINGS)})."
        ).about(argument="source")
    from graphfield.estimators.persistence import load
    from graphfield.report.folder import read_rows

    model = load(folder)
    rows = read_rows(folder, model.encoder_)
    if rows is None:
        raise DataError(f"{text} has no covariates of training rows: fit again without --no-rows.").about(
            argument="source"
        )
    return model, rows
