"""What ``graphfield fit`` says first: does the fitted model beat one graph for all?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from graphfield.cli.check import hide_data_warnings
from graphfield.cli.words import render_for_shell
from graphfield.exceptions import GraphfieldError, count

if TYPE_CHECKING:
    from graphfield.check.findings import DataCheck
    from graphfield.data.roles import TableData
    from graphfield.inference.edge_record import EdgeRecord
    from graphfield.inference.evidence import Evidence
    from graphfield.inference.model_gain import ModelGain
    from graphfield.inference.verdict import Verdict


def judge_model(
    arguments: argparse.Namespace, data: TableData, model: Any, *, in_order: bool
) -> tuple[ModelGain | None, str]:
    """The model against one graph on rows that it has not seen, or None and why not."""
    from graphfield.data.roles import time_values
    from graphfield.inference.model_gain import gain_over_one_graph

    if arguments.no_verdict:
        return None, "--no-verdict"
    time = None if data.time is None else time_values(data.time)
    try:
        with hide_data_warnings():
            gain = gain_over_one_graph(
                model,
                data.X,
                data.Z,
                groups=data.groups,
                time=time,
                missing=arguments.missing,
                in_order=in_order,
            )
    except GraphfieldError as error:  # the model itself is there, and stays
        return None, render_for_shell(error.message, arguments)
    return gain, ""


def table_verdict(
    model: Any,
    data: TableData,
    gain: ModelGain | None,
    why_not: str,
    evidence: Evidence | None,
    edges: EdgeRecord | None,
    check: DataCheck,
) -> Verdict:
    """The one answer, for a model of this table."""
    from graphfield.inference.verdict import Fitted, reach_verdict

    complete = data.Z[data.Z.notna().all(axis=1)]
    fitted = Fitted.of(model, complete)
    return reach_verdict(fitted, gain, evidence, edges, why_not=why_not, check=check)


def verdict_lines(verdict: Verdict, evidence: Evidence | None, *, details: bool) -> list[str]:
    """The answer in a few words, the verdict, and what it rests on where ``details`` are asked for."""
    lines = ["", f"{verdict.headline}.", verdict.paragraph]
    if not details:
        return lines
    if verdict.gain is not None:
        fits, seconds = count(verdict.gain.n_folds, "fit"), verdict.gain.seconds
        lines.append(
            f"That comparison judges the recipe, not this one fit: {fits} of the same kind without some of "
            f"the rows took {seconds:.1f} s."
        )
    if evidence is None:
        lines.append("Whether the graph depends on the covariates at all was not tested: add --evidence.")
    return [*lines, *([] if evidence is None else evidence.details())]
