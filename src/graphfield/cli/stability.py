"""``graphfield stability``: which edges and central nodes remain when rows are left out."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfield.cli.check import hide_data_warnings, read_roles, run_check
from graphfield.cli.options import check_new, file_options, model_options, table_options
from graphfield.cli.values import covariate_values, make_model, model_name, threshold
from graphfield.cli.words import list_out
from graphfield.estimators.registry import short_names
from graphfield.exceptions import ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from graphfield.data.roles import TableData
    from graphfield.inference.stability_result import Stability


def stability_parser(group: Any) -> None:
    p = group.add_parser("stability", help="which edges and central nodes remain when rows are left out")
    table_options(p)
    p.add_argument(
        "--model",
        type=model_name,
        default="linear",
        help=f"{', '.join(short_names())}; it is fitted some hundred times (default linear)",
    )
    p.add_argument("--threshold", default="auto", help="when a pair is an edge, as in 'graph'")
    p.add_argument(
        "--at", action="append", default=[], metavar="NAME=VALUE", help="the graph there, not the average one"
    )
    p.add_argument(
        "--frequency", type=float, default=0.9, metavar="F", help="list pairs in so many half-samples (0.9)"
    )
    p.add_argument("--all", action="store_true", help="list all pairs")
    p.add_argument(
        "--centrality",
        choices=("strength", "closeness", "betweenness"),
        help="list nodes with intervals of this measure instead of pairs",
    )
    p.add_argument("--pairs", type=int, default=50, metavar="N", help="pairs of half-samples (default 50)")
    p.add_argument("--drops", type=int, default=50, metavar="N", help="fits for each dropped share (50)")
    p.add_argument("--bootstraps", type=int, default=100, metavar="N", help="fits for intervals (100)")
    p.add_argument(
        "--folder", type=Path, metavar="DIR", help="keep every fit there; a killed run goes on from it"
    )
    model_options(p)
    file_options(p, "FILE.csv", help="write the list there instead of to the screen")
    p.set_defaults(run=stability, intervals=False)


def stability(arguments: argparse.Namespace) -> None:
    if not 0 <= arguments.frequency <= 1:
        raise ParameterError.of("frequency", f"must be from 0 to 1, got {arguments.frequency:g}.")
    check_new(arguments.out, arguments.force)
    data = read_roles(arguments)
    # The list alone goes to the screen's output, so that it can be piped.
    with redirect_stdout(sys.stdout if arguments.out is not None else sys.stderr):
        run_check(arguments, data, planned=False)
    found = _run(arguments, data)
    text = _listed(arguments, found).to_csv(index=False, float_format="%.4g")
    list_out(text, found.summary(arguments.frequency), arguments)


def _run(arguments: argparse.Namespace, data: TableData) -> Stability:
    from graphfield.data.covariates import CovariateEncoder
    from graphfield.data.frames import as_frame
    from graphfield.inference.stability import stability as run

    with hide_data_warnings():
        encoder = CovariateEncoder().fit(as_frame(data.Z.dropna(), "Z"))
        at = covariate_values(arguments.at, encoder) if arguments.at else None
        found = run(
            make_model(arguments),
            data.X,
            data.Z,
            groups=data.groups,
            at=at,
            threshold=threshold(arguments.threshold),
            n_pairs=arguments.pairs,
            n_drops=arguments.drops,
            n_bootstraps=arguments.bootstraps,
            folder=arguments.folder,
            random_state=arguments.seed,
        )
    return found if at is None else found.at(found.about.places[0])


def _listed(arguments: argparse.Namespace, found: Stability) -> pd.DataFrame:
    if arguments.centrality is not None:
        return found.centrality(arguments.centrality)
    return found.table if arguments.all or not found.n_pairs else found.edges(arguments.frequency)
