"""The command line. Exit code 0 on success, 2 on bad input (one line on stderr), 1 on failure."""

from __future__ import annotations

import argparse
import ast
import json
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from graphfield import __version__
from graphfield.exceptions import (
    DataError,
    DataWarning,
    GraphfieldError,
    NoGapWarning,
    OutputError,
    ParameterError,
    TrainingError,
    TrainingWarning,
    listing,
    suggestion,
)

if TYPE_CHECKING:
    from graphfield.data.roles import TableData
    from graphfield.estimators.base import GraphEstimator

BAD_INPUT, FAILURE, INTERRUPTED = 2, 1, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the ``graphfield`` command."""
    arguments = _parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        for category in (DataWarning, NoGapWarning, TrainingWarning):
            warnings.simplefilter("always", category)
        try:
            arguments.run(arguments)
        except TrainingError as error:
            return _complain(error, FAILURE)
        except GraphfieldError as error:
            return _complain(error, BAD_INPUT)
        except BrokenPipeError:
            sys.stderr.close()  # the reader of our output has gone; nobody is left to tell
            return 0
        except KeyboardInterrupt:
            return _complain("interrupted", INTERRUPTED)
    return 0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _complain(message: object, code: int) -> int:
    sys.stderr.write(f"graphfield: {' '.join(str(message).split())}\n")
    return code


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    sys.stderr.write(f"graphfield: note: {' '.join(str(message).split())}\n")


# -- commands -----------------------------------------------------------------------------------


def demo(arguments: argparse.Namespace) -> None:
    out = _fresh_folder(arguments.out, arguments.force)
    from graphfield.experiments.demo import run_demo

    start = time.perf_counter()
    lines = run_demo(out, n_train=arguments.n, n_test=arguments.n_test, seed=arguments.seed, say=say)
    say("")
    say(f"{'':28s} {'AUROC':>7s} {'AUPRC':>7s} {'fit':>8s}")
    for line in lines:
        fit = "" if line.seconds is None else f"{line.seconds:.1f} s"
        say(f"{line.method:28s} {line.auroc:7.3f} {line.auprc:7.3f} {fit:>8s}  {line.note}")
    say("")
    say(f"Wrote {out}/model, {out}/metrics.json and {out}/graphs.png ")
    say(f"in {time.perf_counter() - start:.0f} s. Next: graphfield graph {out}/model --at z1=0.5 --at z2=0.5")


def fit(arguments: argparse.Namespace) -> None:
    from graphfield.data.roles import from_table
    from graphfield.estimators.persistence import check_writable, save_model

    _check_out(arguments.out, arguments.force, check_writable)
    data = from_table(
        arguments.table,
        covariates=_names(arguments.covariates),
        nodes=_names(arguments.nodes) if arguments.nodes else None,
        group=arguments.group,
    )
    say(_described(arguments.table, data))
    from graphfield.estimators.dnncgm import DNNCGM

    model = DNNCGM(
        **{
            "missing": arguments.missing,
            "random_state": arguments.seed,
            **_settings(arguments.set, DNNCGM),
        }
    )
    start = time.perf_counter()
    model.fit(
        data.X,
        data.Z,
        groups=data.groups,
        checkpoint=arguments.checkpoint,
        resume=arguments.resume,
    )
    seconds = time.perf_counter() - start
    summary = _summary(arguments, data, model, seconds)
    extra = {"fit.json": json.dumps(summary, indent=1).encode()}
    save_model(model, arguments.out, overwrite=arguments.force, extra=extra)
    say(_fitted(model, seconds))
    at = " ".join(f"--at {name}=..." for name in model.covariate_names_)
    say(f"Wrote {arguments.out}. Next: graphfield graph {arguments.out} {at}")


def graph(arguments: argparse.Namespace) -> None:
    from graphfield.estimators.persistence import load
    from graphfield.graphs.export import graph_text, write_graph

    if arguments.out is not None and arguments.out.exists() and not arguments.force:
        raise OutputError(f"{arguments.out} already exists. Choose another name or add --force.")
    model = load(arguments.model)
    network = model.to_networkx(
        _covariate_values(arguments.at, model),
        threshold=_threshold(arguments.threshold),
        rule=arguments.rule,
    )
    if arguments.out is None:
        sys.stdout.write(graph_text(network, arguments.format or "csv"))
        return
    write_graph(network, arguments.out, arguments.format)
    say(f"Wrote {network.number_of_edges()} edges of {network.number_of_nodes()} nodes to {arguments.out}.")


def simulate(arguments: argparse.Namespace) -> None:
    import numpy as np

    from graphfield.simulate import make_setting

    if arguments.out.exists() and not arguments.force:
        raise OutputError(f"{arguments.out} already exists. Choose another name or add --force.")
    if arguments.out.suffix != ".npz":
        raise OutputError(f"--out must end in .npz, got {arguments.out}.")
    sim = make_setting(arguments.setting, arguments.n, arguments.seed, clip=not arguments.no_clip)
    try:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(
            arguments.out,
            X=sim.X,
            Z=sim.Z,
            X_names=[f"x{i + 1}" for i in range(sim.X.shape[1])],
            Z_names=[f"z{i + 1}" for i in range(sim.Z.shape[1])],
            truth_skeleton=sim.skeleton,
            truth_regime=sim.regime,
            truth_mixing=sim.mixing,
            truth_candidates=sim.candidates,
        )
    except OSError as error:
        raise OutputError(f"Cannot write {arguments.out}: {error.strerror}.") from error
    n, p = sim.X.shape
    say(f"Wrote {n:,} samples of {p} nodes and {sim.Z.shape[1]} covariates to {arguments.out}.")


# -- helpers ------------------------------------------------------------------------------------


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _settings(pairs: Sequence[str], estimator: type) -> dict[str, Any]:
    """``--set name=value`` pairs, checked against the estimator's hyper-parameters."""
    known = list(estimator._get_param_names())  # type: ignore[attr-defined]
    settings = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ParameterError(f"--set expects name=value, got {pair!r}.")
        if name not in known:
            raise ParameterError(
                f"Unknown hyper-parameter {name!r}.{suggestion(name, known)} Known: "
                f"{listing(known, most=len(known))}."
            )
        settings[name] = _value(text)
    return settings


def _value(text: str) -> Any:
    """A Python literal where it is one (numbers, True, None, tuples), else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _threshold(text: str) -> float | str:
    try:
        return text if text == "gap" else float(text)
    except ValueError:
        raise ParameterError(f"--threshold must be a number or 'gap', got {text!r}.") from None


def _covariate_values(pairs: Sequence[str], model: GraphEstimator) -> dict[str, Any]:
    from graphfield.data.covariates import Numeric

    values: dict[str, Any] = {}
    numeric = {c.name for c in model.encoder_.columns if isinstance(c, Numeric)}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ParameterError(f"--at expects covariate=value, got {pair!r}.")
        if name in values:
            raise ParameterError(f"--at gives {name!r} twice.")
        values[name] = _number(name, text) if name in numeric else text
    return values


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"Covariate {name!r} is numeric, but --at gives {text!r}.") from None


def _check_out(out: Path, force: bool, check: Any) -> None:
    try:
        check(out, overwrite=force)
    except OutputError as error:
        raise OutputError(str(error).replace("allow overwriting", "add --force")) from None


def _fresh_folder(out: Path, force: bool) -> Path:
    import shutil

    from graphfield.estimators.persistence import check_writable

    _check_out(out, force, check_writable)
    for name in ("model", "metrics.json", "graphs.png"):
        old = out / name
        shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    return out


def _described(table: Path, data: TableData) -> str:
    lines = [
        f"Read {table}: {len(data.X):,} rows, {data.X.shape[1]} nodes, {data.Z.shape[1]} covariates"
        + (f", groups by {data.groups.name!r}." if data.groups is not None else "."),
        f"  nodes: {listing(data.X.columns)}",
        f"  covariates: {listing(data.Z.columns)}",
    ]
    if data.unused:
        lines.append(f"  not used: {listing(data.unused)}")
    return "\n".join(lines)


def _fitted(model: Any, seconds: float) -> str:
    held_out = model.training_["held_out_loss"].min()
    return (
        f"Fitted in {seconds:.1f} s and {model.n_steps_} steps. On held-out rows the others explain "
        f"{max(0.0, 1 - held_out):.0%} of a node's variance on average.\n"
        f"Edges above |partial correlation| {model.threshold_.value:.3f} are shown "
        f"({model.threshold_.reason})."
    )


def _summary(arguments: argparse.Namespace, data: TableData, model: Any, seconds: float) -> dict[str, Any]:
    return {
        "table": str(arguments.table),
        "rows": len(data.X),
        "nodes": list(data.X.columns),
        "covariates": list(data.Z.columns),
        "group": None if data.groups is None else str(data.groups.name),
        "unused": data.unused,
        "seconds": round(seconds, 2),
        "steps": model.n_steps_,
        "held_out_loss": float(model.training_["held_out_loss"].min()),
        "mean_depends_on_covariates": model.mean_depends_on_covariates_,
    }


# -- parser -------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """argparse with one line per error and no guessing of shortened options."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        unknown = message.partition("unrecognized arguments: ")[2].split()
        known = [option for action in self._actions for option in action.option_strings]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                known += [o for p in action.choices.values() for o in p._option_string_actions]
        hint = suggestion(unknown[0].partition("=")[0], set(known)) if unknown else ""
        self.exit(_complain(f"{message}.{hint} See '{self.prog} --help'.", BAD_INPUT))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="graphfield",
        description="Estimate graphs that depend on covariates: the network of one subject, "
        "one day, one age.",
    )
    parser.add_argument("--version", action="version", version=f"graphfield {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _demo_parser(commands)
    _fit_parser(commands)
    _graph_parser(commands)
    _simulate_parser(commands)
    return parser


def _demo_parser(commands: Any) -> None:
    p = commands.add_parser("demo", help="simulate, fit, score against the truth, draw the graphs")
    p.add_argument("--out", type=Path, default=Path("graphfield-demo"), metavar="DIR")
    p.add_argument("--n", type=int, default=10_000, help="training rows (default 10000)")
    p.add_argument("--n-test", type=int, default=1_000, help="test rows (default 1000)")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--force", action="store_true", help="replace an earlier demo in DIR")
    p.set_defaults(run=demo)


def _fit_parser(commands: Any) -> None:
    p = commands.add_parser("fit", help="learn z -> graph from a table and save the model")
    p.add_argument("table", type=Path, metavar="TABLE", help="CSV, TSV, Parquet or NPZ file")
    p.add_argument("--covariates", required=True, metavar="A,B", help="columns or patterns")
    p.add_argument(
        "--nodes",
        metavar="X1,X2",
        help="columns or patterns ('roi_*'); default: all other numeric columns",
    )
    p.add_argument("--group", metavar="COLUMN", help="rows with equal values stay together in splits")
    p.add_argument("--missing", choices=("error", "drop", "impute"), default="error")
    p.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the model")
    p.add_argument("--force", action="store_true", help="replace an existing folder")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a hyper-parameter of DNNCGM; may be repeated",
    )
    p.add_argument("--checkpoint", type=Path, metavar="DIR", help="keep the state of training here")
    p.add_argument("--resume", action="store_true", help="continue the fit that --checkpoint holds")
    p.set_defaults(run=fit)


def _graph_parser(commands: Any) -> None:
    p = commands.add_parser("graph", help="the graph at one covariate value")
    p.add_argument("model", type=Path, metavar="DIR", help="folder written by 'graphfield fit'")
    p.add_argument("--at", action="append", default=[], metavar="NAME=VALUE", help="one per covariate")
    p.add_argument("--threshold", default="gap", help="a number, or 'gap' (default)")
    p.add_argument("--rule", choices=("and", "or"), default="and")
    p.add_argument("--format", choices=("csv", "parquet", "graphml", "json"))
    p.add_argument("--out", type=Path, metavar="FILE", help="default: standard output")
    p.add_argument("--force", action="store_true", help="replace an existing file")
    p.set_defaults(run=graph)


def _simulate_parser(commands: Any) -> None:
    p = commands.add_parser("simulate", help="write samples of a setting with a known graph")
    p.add_argument("setting", metavar="SETTING", help="G1")
    p.add_argument("--n", type=int, default=12_000, help="samples (default 12000)")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--no-clip", action="store_true", help="mix as in the paper's text")
    p.add_argument("--out", type=Path, required=True, metavar="FILE.npz")
    p.add_argument("--force", action="store_true", help="replace an existing file")
    p.set_defaults(run=simulate)


if __name__ == "__main__":
    sys.exit(main())
