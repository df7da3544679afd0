"""``graphfield compare``: several methods on the same held-out rows of a table."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfield.cli.check import fit_facts, hide_data_warnings, read_roles, run_check
from graphfield.cli.options import check_new, file_options, seed_option, table_options
from graphfield.cli.report import table_command
from graphfield.cli.values import model_name, names
from graphfield.cli.words import list_out, say
from graphfield.data.marginals import MARGINALS
from graphfield.estimators.registry import short_names
from graphfield.exceptions import count
from graphfield.folders import write_file

if TYPE_CHECKING:
    from graphfield.check.findings import DataCheck
    from graphfield.data.roles import TableData
    from graphfield.inference.method_comparison import MethodComparison

_DPI = 150
# A fit of a neural method on one slow core: seconds, and values of the table that take one more.
_SECONDS, _CELLS_PER_SECOND = 10, 4_000


def compare_parser(group: Any) -> None:
    p = group.add_parser("compare", help="several methods on the same held-out rows: errors, edges, time")
    table_options(p)
    which = p.add_mutually_exclusive_group()
    which.add_argument(
        "--methods",
        type=_method_names,
        default="all",
        metavar="A,B",
        help=f"some of {', '.join(short_names())}; static is always there (default all, but auto "
        "and ensemble)",
    )
    which.add_argument(
        "--quick",
        dest="methods",
        action="store_const",
        const="quick",
        help="all but neural ones, which take most of the time; numbers of the others stay the same",
    )
    p.add_argument(
        "--marginals",
        choices=MARGINALS,
        default="auto",
        help="what all methods take nodes as, and errors are counted in (default auto: normal scores where "
        "held-out rows prefer them)",
    )
    p.add_argument("--agreement", action="store_true", help="list how far any two methods agree instead")
    p.add_argument("--folds", type=int, metavar="N", help="1: a fifth is held out (default 5 to 3,000 rows)")
    p.add_argument(
        "--folder", type=Path, metavar="DIR", help="keep every method there; a killed run goes on from it"
    )
    p.add_argument("--picture", type=Path, metavar="FILE.png", help="draw gains and agreement there")
    p.add_argument(
        "--report",
        type=Path,
        metavar="FILE.html",
        help="fit the best method to all rows and write a page about it, the others beside it",
    )
    seed_option(p)
    file_options(p, "FILE.csv", help="write the list there instead of to the screen")
    p.set_defaults(run=compare)


def _method_names(text: str) -> str | list[str]:
    return text if text == "all" else [model_name(name) for name in names(text)]


def compare(arguments: argparse.Namespace) -> None:
    check_new(arguments.out, arguments.force)
    check_new(arguments.picture, arguments.force)
    check_new(arguments.report, arguments.force)
    data = read_roles(arguments)
    # The list alone goes to the screen's output, so that it can be piped.
    with redirect_stdout(sys.stdout if arguments.out is not None else sys.stderr):
        checked = run_check(arguments, data, planned=False)
    found = _run(arguments, data, in_order=checked.is_series)
    table, notes = found.table, f"{found.summary}\n{found.reading}"
    if arguments.agreement:
        table, notes = found.agreement, found.summary
    list_out(table.to_csv(index=False, float_format="%.4g"), notes, arguments)
    with redirect_stdout(sys.stdout if arguments.out is not None else sys.stderr):
        if arguments.picture is not None:
            _draw(found, arguments)
        if arguments.report is not None:
            _write_page(found, data, checked, arguments)


def _run(arguments: argparse.Namespace, data: TableData, *, in_order: bool) -> MethodComparison:
    from graphfield.inference.compare_methods import compare_methods

    _print_line(_how_long(arguments, *data.X.shape))
    with hide_data_warnings():
        return compare_methods(
            data.X,
            data.Z,
            arguments.methods,
            groups=data.groups,
            time=data.time,
            n_folds=arguments.folds,
            missing=arguments.missing,
            folder=arguments.folder,
            random_state=arguments.seed,
            in_order=in_order,
            marginals=arguments.marginals,
            say=None if sys.stderr.isatty() else _print_line,  # a terminal has a bar
        )


def _how_long(arguments: argparse.Namespace, n_rows: int, n_nodes: int) -> str:
    """Before it begins: how often methods are fitted, about how long that takes, and what is faster."""
    from graphfield.inference.compare_methods import is_neural, read_methods
    from graphfield.inference.unseen_rows import FOLD_ROWS, N_FOLDS

    times = 1 + (arguments.folds or (N_FOLDS if n_rows <= FOLD_ROWS else 1))
    neural = [name for name, model in read_methods(arguments.methods, 0).items() if is_neural(model)]
    text = f"Each method is fitted {'twice' if times == 2 else f'{times} times'}."
    if neural:
        seconds = times * len(neural) * (_SECONDS + n_rows * n_nodes / _CELLS_PER_SECOND)
        text += (
            f" Neural ones ({', '.join(neural)}) take longest, here about "
            f"{count(max(1, round(seconds / 60)), 'minute')} of computing: --quick leaves them out"
            f"{', --folds 1 fits each method twice' if times > 2 else ''}."
        )
    if arguments.folder is None:
        text += " --folder DIR keeps methods that are done, so that a killed run goes on."
    return text


def _print_line(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _draw(found: MethodComparison, arguments: argparse.Namespace) -> None:
    from graphfield.plots import draw_to_files, plot_methods, png_bytes

    draw_to_files()
    figure = plot_methods(found)[0].figure
    write_file(arguments.picture, png_bytes(figure, _DPI), overwrite=arguments.force)
    say(f"Drew {arguments.picture}.")


def _write_page(
    found: MethodComparison, data: TableData, checked: DataCheck, arguments: argparse.Namespace
) -> None:
    from graphfield.estimators.inputs import root_seed
    from graphfield.inference.common_nodes import fit_with_nodes
    from graphfield.inference.compare_methods import read_methods
    from graphfield.plots import draw_to_files
    from graphfield.report import write_report
    from graphfield.report.words import file_name

    draw_to_files()
    model = read_methods(arguments.methods, root_seed(arguments.seed))[found.best]
    start = time.perf_counter()
    with hide_data_warnings():
        model.set_params(missing=arguments.missing)
        fit_with_nodes(model, data.X, data.Z, found.nodes, groups=data.groups)
    fit = fit_facts(arguments, data, time.perf_counter() - start)
    tested = table_command("fit", fit, Path("DIR"))
    page = write_report(
        model,
        arguments.report,
        Z=data.Z.dropna(),
        check=checked.to_json(),
        fit=fit | model.facts(),
        gain=found.gain,
        title=f"Graphs of {file_name(arguments.table)}",
        methods=found,
        evidence_command="",
        edges_command=f"{tested} --model {found.best} --edges && graphfield report DIR",
        overwrite=arguments.force,
    )
    say(f"Wrote {page}, a page about {found.best}.")
