"""What each command does. Heavy imports happen inside, so that ``--help`` stays fast."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfield.cli.check import (
    check_files,
    fit_facts,
    hide_data_warnings,
    read_roles,
    run_check,
)
from graphfield.cli.edges import edges_of_fit, tests_edges
from graphfield.cli.evidence import run_test
from graphfield.cli.held_out_rows import rows_to_fit
from graphfield.cli.judged import judge_model, table_verdict, verdict_lines
from graphfield.cli.large_tables import open_large, read_sample, rows_of
from graphfield.cli.one_graph import (
    add_bands,
    add_intervals,
    asked_values,
    average_network,
    average_rows,
    is_doubtful,
    network_by_tests,
    note_weak_pairs,
    read_tests,
    rows_to_average,
    with_tested_edges,
)
from graphfield.cli.options import check_new
from graphfield.cli.processes import all_or_none, process_group, process_number
from graphfield.cli.values import make_model, threshold
from graphfield.cli.words import say
from graphfield.exceptions import OutputError, ParameterError, count

if TYPE_CHECKING:
    from graphfield.inference.edge_record import EdgeRecord

_ABOUT_INTERVALS = (
    "Intervals of this model are how far fits to drawn rows are apart, not how far they are from the truth: "
    "those of networks cover less often than they say. For bands that cover, add --edges, or run 'graphfield "
    "edges'."
)
_ABOUT_TESTED = (
    "'graph' and 'report' show the edges of the tests (edges.json) instead; in Python, predict_graph has "
    "those of the model's own cut."
)
_DIGITS = 4  # of numbers in a table for people; files, and formats that are asked for, have all


def demo(arguments: argparse.Namespace) -> None:
    for option, value, least in (("--n", arguments.n, 50), ("--n-test", arguments.n_test, 1)):
        if value < least:
            raise ParameterError(f"{option} must be at least {least}, got {value}.").about(
                argument=option.lstrip("-")
            )
    if arguments.seed < 0:
        raise ParameterError.of("seed", f"must not be negative, got {arguments.seed}.")
    out = _demo_folder(arguments.out, arguments.force)
    from graphfield.cli.report import write_page
    from graphfield.experiments.demo import run_demo
    from graphfield.plots import draw_to_files

    draw_to_files()
    start = time.perf_counter()
    lines = run_demo(out, n_train=arguments.n, n_test=arguments.n_test, seed=arguments.seed, say=say)
    say("")
    say(f"{'':28s} {'AUROC':>7s} {'AUPRC':>7s} {'fit':>8s}")
    for line in lines:
        fit = "" if line.seconds is None else f"{line.seconds:.1f} s"
        say(f"{line.method:28s} {line.auroc:7.3f} {line.auprc:7.3f} {fit:>8s}  {line.note}")
    say("")
    write_page(out / "model", out / "report.html", title="graphfield demo: setting G1", force=True)
    seconds = time.perf_counter() - start
    say(f"Wrote {out}/model, {out}/metrics.json, {out}/graphs.png and {out}/report.html in {seconds:.0f} s.")
    say(f"Open {out}/report.html in a browser: it needs no network.")
    say(f"Next: {_program()} graph {out}/model --at z1=0.5 --at z2=0.5")


def fit(arguments: argparse.Namespace) -> None:
    from graphfield.data.saved_files import json_bytes
    from graphfield.estimators.persistence import check_writable, save_model
    from graphfield.report.folder import EDGES, EVIDENCE, FIT, GAIN, gain_record

    if arguments.resume and arguments.checkpoint is None:
        raise ParameterError.of("resume", "needs --checkpoint DIR, the folder to continue from.")
    if arguments.checkpoint is not None and arguments.model != "dnncgm":
        raise ParameterError.of("checkpoint", "is for --model dnncgm; other models have none.")
    if arguments.checkpoint is not None and arguments.intervals:
        raise ParameterError.of("checkpoint", "is for one fit; leave it out, or --intervals.")
    with process_group(arguments):
        with all_or_none():
            if process_number() == 0:
                check_writable(arguments.out, overwrite=arguments.force)
            source = open_large(arguments)
            data = read_roles(arguments) if source is None else read_sample(arguments, source)
            found = run_check(arguments, data, planned=False, notes=True)
        extra: dict[str, bytes] = {}
        evidence = None
        if arguments.evidence:
            with hide_data_warnings():
                evidence = run_test(arguments, data, in_order=found.is_series)
            extra[EVIDENCE] = evidence.to_json().encode()
        tests, about_edges = None, "Which edges to believe was not tested: add --edges."
        if tests_edges(arguments, data, is_large=source is not None):
            tests, about_edges = edges_of_fit(arguments, data, is_series=found.is_series)
            extra[EDGES] = tests.to_json().encode()
        model = make_model(arguments)
        neural = arguments.model == "dnncgm" and not arguments.intervals
        options = {"checkpoint": arguments.checkpoint, "resume": arguments.resume} if neural else {}
        rows, note = rows_to_fit(data, model, can_hold_out=neural)
        if note is not None:
            say(note)
        n_rows = len(data.X)
        if source is not None:
            rows = rows_of(source, data, model)
            n_rows = len(rows["X"])
        start = time.perf_counter()
        with hide_data_warnings():
            model.fit(**rows, **options)
    if process_number() > 0:
        return
    seconds = time.perf_counter() - start
    gain, why_not = judge_model(arguments, data, model, in_order=found.is_series)
    extra[GAIN] = json_bytes(gain_record(gain, why_not))
    extra |= {
        FIT: json_bytes(fit_facts(arguments, data, seconds, n_rows) | model.facts()),
        **check_files(arguments, data, found),
    }
    save_model(model, arguments.out, overwrite=arguments.force, extra=extra)
    verdict = table_verdict(model, data, gain, why_not, evidence, tests, found)
    say("\n".join(verdict_lines(verdict, evidence, details=arguments.details)))
    say(about_edges)
    if arguments.details:
        say(f"Fitted {type(model).__name__} in {seconds:.1f} s.\n{model.describe()}")
    if arguments.details and tests is not None and not tests.why_not:
        say(_ABOUT_TESTED)
    if arguments.intervals and tests is None:
        say(_ABOUT_INTERVALS)
    used = [one.name for one in model.encoder_.columns if one.name not in verdict.unused]
    at = "" if verdict.supported is False else "".join(f" --at {name}=..." for name in used)
    for line in found.reminders(meant=data.unused if arguments.nodes else data.dropped):
        say(line)
    say(f"Wrote {arguments.out}. Next: {_program()} graph {arguments.out}{at}")
    say(f"A page to look at: {_program()} report {arguments.out}")


def graph(arguments: argparse.Namespace) -> None:
    from graphfield.estimators.persistence import load
    from graphfield.graphs.export import check_format, graph_text, write_graph

    check_new(arguments.out, arguments.force)
    if arguments.out is not None:
        check_format(arguments.out, arguments.format)
    model = load(arguments.model)
    tests = read_tests(arguments.model, model)
    by_tests = tests is not None and arguments.threshold == "auto"
    if tests is not None and by_tests:
        model = with_tested_edges(tests, model)
    network, z = _network(arguments, model, tests)
    if tests is not None and by_tests:
        note_weak_pairs(model, network, tests, z)
    if arguments.out is None:
        digits = _DIGITS if arguments.format is None else None
        sys.stdout.write(graph_text(network, arguments.format or "csv", digits=digits))
        return
    write_graph(network, arguments.out, arguments.format)
    edges, nodes = network.number_of_edges(), network.number_of_nodes()
    by = "of pairs that pass their tests" if by_tests else f"--threshold {arguments.threshold}"
    say(f"Wrote {count(edges, 'edge')} of {count(nodes, 'node')} ({by}) to {arguments.out}.")


def _network(
    arguments: argparse.Namespace, model: Any, tests: EdgeRecord | None
) -> tuple[Any, dict[str, Any] | None]:
    """The average graph, or the graph at one z, and the latter where values are the model's."""
    from graphfield.analysis.errors import warn_of_few_rows
    from graphfield.analysis.one_value import average_intervals, intervals_at
    from graphfield.analysis.rows import at_one
    from graphfield.fields.questions import correlations
    from graphfield.inference.verdict_facts import Fitted

    cut = threshold(arguments.threshold)
    fitted = Fitted.of(model, average_rows(arguments.model, model))
    doubtful = is_doubtful(arguments.model, fitted)
    rows = rows_to_average(arguments, model, fitted, doubtful=doubtful, tested=tests is not None)
    if rows is not None:
        network = average_network(model, rows, cut, tests)
        if arguments.intervals:
            add_intervals(network, average_intervals(model, rows))
        return network, None
    z = asked_values(arguments, model, fitted, own_cut=tests is None and arguments.threshold == "auto")
    by_tests = tests is not None and (doubtful or not fitted.moves)
    if tests is not None and by_tests:
        partial = correlations(model.field_, at_one(model.field_, z))[0]
        network = network_by_tests(tests, model, partial, cut, z)
    else:
        network = model.to_networkx(z, threshold=cut, rule=arguments.rule)
        if tests is not None:
            add_bands(network, tests, model, z)
    if arguments.intervals:
        add_intervals(network, intervals_at(model, z))
    else:
        warn_of_few_rows(model.field_, at_one(model.field_, z))
    return network, None if by_tests else z


def simulate(arguments: argparse.Namespace) -> None:
    import numpy as np

    from graphfield.folders import open_file
    from graphfield.simulate import make_setting

    check_new(arguments.out, arguments.force)
    if arguments.out.suffix != ".npz":
        raise OutputError("--out must end in .npz, got {file}.", file=arguments.out)
    sim = make_setting(arguments.setting, arguments.n, arguments.seed, clip=not arguments.no_clip)
    columns = (
        {"Z": sim.Z, "Z_names": [f"z{i + 1}" for i in range(sim.Z.shape[1])]}
        if isinstance(sim.Z, np.ndarray)
        else {name: np.array(sim.Z[name].tolist()) for name in sim.Z.columns}
    )
    with open_file(arguments.out, overwrite=arguments.force) as file:
        np.savez_compressed(
            file,
            X=sim.X,
            X_names=[f"x{i + 1}" for i in range(sim.X.shape[1])],
            **columns,
            truth_skeleton=sim.skeleton,
            truth_pseudo_skeleton=sim.pseudo_skeleton,
            truth_regime=sim.regime,
            truth_candidates=sim.candidates,
            truth_node_types=sim.node_types,
            truth_column_nodes=sim.column_nodes,
        )
    n, p = sim.X.shape
    nodes = f"{count(p, 'node')}{_kinds_of(sim.node_types)}"
    size = f"{count(n, 'sample')} of {nodes} and {count(sim.Z.shape[1], 'covariate')}"
    say(f"Wrote {size} to {arguments.out}.")


def _kinds_of(node_types: Sequence[str]) -> str:
    """ " (8 gaussian, 6 binary)"; nothing where all are numbers."""
    found = Counter(node_types)
    if list(found) == ["gaussian"]:
        return ""
    return f" ({', '.join(f'{number} {kind}' for kind, number in found.items())})"


def _demo_folder(out: Path, force: bool) -> Path:
    """An earlier demo is replaced only when told to, and only once the new results are there."""
    from graphfield.estimators.persistence import check_writable
    from graphfield.folders import make_folder

    if not force and any(
        (out / name).exists() for name in ("model", "metrics.json", "graphs.png", "report.html")
    ):
        raise OutputError("{file} already exists. Choose another folder, or add --force.", file=out)
    make_folder(out)
    check_writable(out / "model", overwrite=True)
    return out


def _program() -> str:
    """How this command was called, so that the next one can be copied from the screen."""
    if shutil.which("graphfield"):
        return "graphfield"
    called = Path(sys.argv[0])
    return "python -m graphfield" if called.name == "__main__.py" else str(called)
