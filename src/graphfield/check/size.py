"""Whether there are enough rows and nodes for a graph, and for one that moves with the covariates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphfield.check.findings import Column, Finding
from graphfield.data.covariate_text import MANY_LEVELS
from graphfield.data.frames import MIN_NODES, MIN_SAMPLES, ROWS_PER_NODE
from graphfield.exceptions import count
from graphfield.messages import Argument, Message

# Rows beyond the number of nodes without which it cannot be told whether a node follows from the others.
SPARE_ROWS = 30
# Rows per coefficient of a node on another that moves with a covariate, and rows at least, without which
# nobody can tell how edges move.
ROWS_PER_MOVEMENT, FEW_ROWS = 5, 100


def size_findings(columns: Sequence[Column], n_rows: int, complete: bool) -> Iterator[Finding]:
    """Findings about ``n_rows`` rows that a fit has, ``complete`` if others were left out for their gaps."""
    nodes = [column for column in columns if column.role == "node"]
    covariates = [column for column in columns if column.role == "covariate"]
    if len(nodes) < MIN_NODES:
        yield Finding(
            "too-few-nodes",
            tuple(column.name for column in nodes),
            f"{count(len(nodes), 'node')}: a graph needs at least {MIN_NODES} nodes, and fit refuses fewer.",
            Message(
                "Name more columns for the nodes ({nodes}); they must hold numbers.", nodes=Argument("nodes")
            ),
        )
    if n_rows < MIN_SAMPLES:
        of = " without missing values" if complete else ""
        yield Finding(
            "too-few-rows",
            (),
            f"{count(n_rows, 'row')}{of}: fit refuses fewer than {MIN_SAMPLES}.",
            "Collect more rows.",
        )
    varying = sum(column.distinct > 1 for column in nodes)
    if varying:
        yield from _few_rows(n_rows, varying, [column for column in covariates if column.distinct > 1])


def _few_rows(n_rows: int, n_nodes: int, covariates: Sequence[Column]) -> Iterator[Finding]:
    wanted = max(FEW_ROWS, ROWS_PER_MOVEMENT * n_nodes * (1 + sum(map(_directions, covariates))))
    if n_rows < ROWS_PER_NODE * n_nodes:
        wide = n_rows <= n_nodes + SPARE_ROWS
        untold = " Whether nodes follow from others, as totals do, cannot be told." if wide else ""
        yield Finding(
            "few-rows",
            (),
            f"{count(n_rows, 'row')} for {count(n_nodes, 'node')}: {n_rows / n_nodes:.1f} rows per node, "
            f"where {ROWS_PER_NODE} or more are wanted.{untold}",
            "Use fewer nodes or more rows, and trust strong edges only.",
        )
    elif n_rows < wanted and covariates:
        yield Finding(
            "few-rows",
            (),
            f"{count(n_rows, 'row')} for {count(n_nodes, 'node')} and {count(len(covariates), 'covariate')} "
            f"are few: {wanted:,} or more are wanted to tell how edges move.",
            "Trust strong edges only, and do not expect to see which covariate moves them; fewer nodes, "
            "covariates or levels help.",
        )


def _directions(covariate: Column) -> int:
    """Columns of a linear model that stand for a covariate; very many levels are another finding."""
    return 1 if covariate.kind in ("number", "date") else min(covariate.distinct, MANY_LEVELS) - 1
