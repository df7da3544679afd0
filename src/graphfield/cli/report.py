"""``graphfield report``: the page about a fitted model."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphfield.cli.options import check_new, file_options, rare_text
from graphfield.cli.words import say
from graphfield.exceptions import OutputError

PAGE = "report.html"
# Nodes that a command to copy names one by one.
_NAMED_NODES = 30


def report_parser(group: Any) -> None:
    p = group.add_parser("report", help="write a page about a fitted model that works without network")
    p.add_argument("model", type=Path, metavar="DIR", help="folder written by 'graphfield fit'")
    p.add_argument("--title", help="heading of the page")
    p.add_argument("--node-groups", type=Path, metavar="FILE", help="table with the columns node and group")
    file_options(p, "FILE.html", help="default: report.html in DIR")
    p.set_defaults(run=report)


def report(arguments: argparse.Namespace) -> None:
    out = arguments.out or arguments.model / PAGE
    if out.suffix.lower() not in (".html", ".htm"):
        raise OutputError("--out must end in .html, got {file}.", file=out)
    path = write_page(
        arguments.model, out, title=arguments.title, groups=arguments.node_groups, force=arguments.force
    )
    say(f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB). Open it in a browser; it needs no network.")


def write_page(
    folder: Path, out: Path, *, title: str | None = None, groups: Path | None = None, force: bool = False
) -> Path:
    """The page about the model in ``folder``, with what else the folder holds."""
    from graphfield.data.tables import read_pairs
    from graphfield.estimators.persistence import load, read_header
    from graphfield.report import write_report
    from graphfield.report.folder import CHECK, EDGES, EVIDENCE, FIT, GAIN, read_record, read_rows

    node_groups = None if groups is None else read_pairs(groups, "node", "group")
    read_header(folder)  # a folder that is missing is no place where the page could not be written
    check_new(out, force)
    model = load(folder)
    fit = read_record(folder, FIT)
    return write_report(
        model,
        out,
        Z=read_rows(folder, model.encoder_),
        evidence=read_record(folder, EVIDENCE),
        check=read_record(folder, CHECK),
        fit=fit,
        gain=read_record(folder, GAIN),
        title=title,
        node_groups=node_groups,
        edges=read_record(folder, EDGES),
        evidence_command=table_command("evidence", fit, folder / EVIDENCE),
        edges_command=table_command("edges", fit, folder / EDGES),
        overwrite=force,
    )


def table_command(name: str, fit: Mapping[str, Any] | None, out: Path) -> str:
    """What to run on the table of a fit, for a file that its folder does not have yet."""
    fit = fit or {}
    words = ["graphfield", name, str(fit.get("table", "TABLE"))]
    words += ["--covariates", ",".join(map(str, fit.get("covariates", ["..."])))]
    nodes = list(map(str, fit.get("nodes", [])))
    if fit.get("unused"):  # otherwise the nodes are all other columns
        words += ["--nodes", ",".join(nodes) if len(nodes) <= _NAMED_NODES else "..."]
    for name in ("group", "time"):
        if fit.get(name) is not None:
            words += [f"--{name}", str(fit[name])]
    if fit.get("rare") is not None:
        words += ["--rare", rare_text(fit["rare"])]
    if fit.get("missing", "error") != "error":
        words += ["--missing", str(fit["missing"])]
    if fit.get("categories"):
        words += ["--categories", ",".join(map(str, fit["categories"]))]
    if fit.get("node_types"):
        words += ["--node-types", str(fit["node_types"])]
    return shlex.join([*words, "--out", str(out)])
