"""The report page: one HTML file with the model inside, which asks no network for anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphfield import __version__
from graphfield.analysis.errors import interval_reach
from graphfield.analysis.near_rows import FEW, NEAR
from graphfield.analysis.rows import FieldLike, field_of
from graphfield.check.findings import DataCheck
from graphfield.data.saved_files import finite_values
from graphfield.fields import GraphField
from graphfield.fields import questions as ask
from graphfield.fields.program import NotExported, Program, evaluate
from graphfield.fields.store import Store
from graphfield.folders import check_file, write_file
from graphfield.graphs.groups import Groups, group_labels
from graphfield.inference.edge_inference import EdgeInference
from graphfield.inference.edge_record import LEVEL, EdgeRecord
from graphfield.inference.evidence import Evidence
from graphfield.inference.method_comparison import MethodComparison
from graphfield.inference.model_gain import ModelGain
from graphfield.inference.verdict import Fitted, Verdict, reach_verdict
from graphfield.report import words
from graphfield.report.figures import SIZE, STILL, Survey, effects, node_order, survey
from graphfield.report.folder import (
    CHECK,
    EDGES,
    EVIDENCE,
    FIT,
    GAIN,
    RowsUsed,
    checked_record,
    recorded_gain,
)
from graphfield.report.frames import frames_program
from graphfield.report.glance import names_movers
from graphfield.report.methods import methods_section
from graphfield.report.rows import Rows
from graphfield.report.summary import average_edges, summary, warnings
from graphfield.templates import render

# Bytes of arrays in a page, of which some for every pair; as base64 a third more, so that a page stays below
# 25 MB.
_MAX_BYTES, _PAIR_BYTES = 16_000_000, 24
# Rows at which the page is compared with the model, and edges that are drawn as curves at first.
_CHECKED, _CHOSEN = 20, 3
# The share of the rows in which a pair is an edge that it may be chosen for that.
_MOST_ROWS = 0.5


@dataclass(frozen=True)
class Shown:
    """The model as the page has it."""

    program: Program
    kind: str  # of the large arrays
    moving: list[str] | None  # covariates of a grid of frames; None where the model itself is in the page
    why: str  # there is a grid
    largest: float  # difference from the model at some rows
    typical: float


def write_report(
    model: FieldLike,
    path: str | Path,
    *,
    Z: Any = None,
    evidence: Evidence | Mapping[str, Any] | None = None,
    check: DataCheck | Mapping[str, Any] | None = None,
    fit: Mapping[str, Any] | None = None,
    gain: ModelGain | Mapping[str, Any] | None = None,
    title: str | None = None,
    node_groups: Groups | None = None,
    edges: EdgeInference | Mapping[str, Any] | None = None,
    methods: MethodComparison | None = None,
    evidence_command: str = "graphfield.dependence_test(X, Z)",
    edges_command: str = "",
    max_bytes: int | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a self-contained HTML page about a fitted model, or a field.

    Parameters
    ----------
    model : fitted estimator or GraphField
        A field knows its graphs, but not how it was fitted.
    path : path
        The HTML file.
    Z : table, optional
        Rows of covariates to speak about, mostly those of training: ranges of the sliders, averages over
        rows, which edges vary. Without it, rows are drawn from what the model remembers.
    evidence, check, fit, gain : mapping, optional
        Contents of ``evidence.json``, ``data_check.json``, ``fit.json`` and ``gain.json`` of a model folder;
        or what :func:`graphfield.dependence_test`, :func:`graphfield.check_data` and
        :func:`graphfield.gain_over_one_graph` returned.
    title : str, optional
    node_groups : mapping from node to group, or one group per node, optional
        Blocks of the heatmap and colours of the network.
    edges : EdgeInference or mapping, optional
        What :func:`graphfield.infer_edges` returned, or the contents of ``edges.json``: q-values in the table
        of edges, bands on curves, and of all pairs only those that were found are edges of the page.
    methods : MethodComparison, optional
        What :func:`graphfield.compare_methods` returned: a section with its table, picture and ranking.
    evidence_command, edges_command : str
        What the page tells a reader to run where there is no evidence, or where edges were not tested.
    max_bytes : int, optional
        Room for edge weights. A model that needs more is shown as a grid of frames. By default as much as
        keeps the page below 25 MB.
    overwrite : bool
        Whether an existing file is replaced.

    Examples
    --------
    >>> import graphfield as gf, tempfile
    >>> from graphfield.report import write_report
    >>> sim = gf.make_setting("G1", n_samples=60, random_state=0)
    >>> model = gf.RegGMM().fit(sim.X[:, :5], sim.Z)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(model, folder + "/report.html", Z=sim.Z).read_text()
    >>> page.count("<html"), "https://" in page
    (1, False)
    """
    field = field_of(model)
    path = Path(path)
    check_file(path, overwrite=overwrite)
    evidence, check, fit, gain = (
        checked_record(record, name)
        for record, name in ((evidence, EVIDENCE), (check, CHECK), (fit, FIT), (gain, GAIN))
    )
    tests = _as_tests(edges)
    if tests is not None:
        tests.check_nodes(field.schema.node_names)
        model = tests.applied_to(model)
        field = field_of(model)
    groups = None if node_groups is None else group_labels(node_groups, field.schema.node_names)
    if max_bytes is None:
        p = field.n_nodes
        max_bytes = max(_MAX_BYTES - _PAIR_BYTES * p * (p - 1) // 2, _MAX_BYTES // 4)
    rows = Rows.of(field, Z)
    used = RowsUsed.of(fit, check)
    known, why_not = recorded_gain(gain)
    told = replace(tests, movers=()) if tests and names_movers(tests) else tests  # named by the page itself
    verdict = reach_verdict(Fitted.of(model, rows.Z), known, evidence, told, why_not=why_not, check=check)
    page = _assembled(model, rows, groups, max_bytes, used, verdict, tests)
    page |= {
        "title": title or _title(field, fit),
        "about": words.about(model, fit, verdict, used),
        "verdict": verdict,
        "opening": words.opening(verdict),
        "command": "" if evidence or not field.schema.encoder.columns else evidence_command,
        "untested": not tests and bool(field.schema.encoder.columns),
        "edges_command": edges_command,
        "not_tested": "" if tests is None else tests.why_not,
        "warnings": warnings(check),
        "evidence": words.evidence(evidence) if evidence else None,
        "model_card": words.model_card(model, fit),
        "data_card": words.data_card(check, fit, used),
        "methods": None if methods is None else methods_section(methods),
        "training": words.training(model),
        "version": __version__,
    }
    return write_file(path, render("graphfield.report", "report", **page).encode(), overwrite=overwrite)


def _assembled(
    model: FieldLike,
    rows: Rows,
    groups: list[str] | None,
    max_bytes: int,
    used: RowsUsed | None,
    verdict: Verdict,
    tests: EdgeRecord | None,
) -> dict[str, Any]:
    tests = None if tests is None or tests.why_not else tests
    field = field_of(model)
    types, names = field.schema.types, field.schema.node_names
    covariates, typical = rows.describe_covariates(field), rows.typical
    found = survey(field, rows.Z, groups)
    moves = words.opening(verdict) == "moving"
    by_model = found.mean
    if tests is not None and not moves:  # they know one graph better than the model
        found = replace(found, mean=tests.averaged(found.mean))
    moved = effects(field, typical, covariates)
    shown = _choose_program(field, rows, typical, covariates, list(moved), max_bytes)
    for covariate in covariates:
        covariate["fixed"] = shown.moving is not None and covariate["name"] not in shown.moving
        covariate["idle"] = covariate["name"] in verdict.unused
    reach = interval_reach(field) if shown.moving is None else 0.0
    store = Store(shown.kind)
    program = shown.program.stored(store)
    j, k = np.triu_indices(len(names), 1)
    pairs = [(names[a], names[b]) for a, b in zip(j, k, strict=True)]
    crossing = words.crossing(found.present, pairs)
    data = {
        "nodes": names,
        "kinds": None if types is None else types.kinds,
        "signless": None if types is None else field.schema.signless,
        "groups": groups,
        "covariates": covariates,
        "verdict": verdict.to_json(),
        "opening": words.opening(verdict),
        "threshold": {
            "value": field.threshold.value,
            "reason": field.threshold.reason,
            "never": np.flatnonzero(np.isinf(field.threshold.pair_cuts)).tolist(),
            "always": np.flatnonzero(field.threshold.pair_cuts == 0).tolist(),
        },
        "program": program,
        "reach": reach,
        "pairs": {
            **{name: store.add(getattr(found, name)) for name in ("spread", "least", "most", "present")},
            "mean": store.add(by_model),
            "average": store.add(found.mean),
        },
        "limit": found.limit,
        "order": node_order(found.mean, groups),
        "chosen": _first_chosen(found, _opening_edges(field, found, typical, verdict), tests),
        "connectivity": {
            "measures": [
                {"name": name, "share": name != SIZE, "values": np.round(values, 5).tolist()}
                for name, values in found.measures.items()
            ],
            "rows": {c["name"]: rows.Z[c["name"]].tolist() for c in covariates},
            "crossing": crossing != "",
        },
        "near": {"near": NEAR, "few": FEW} if rows.n_given else None,
        "training": words.training_lines(model),
        "tests": None if tests is None else _tests_json(tests, store),
    }
    return {
        "summary": summary(field, rows, found, moved, pairs, moves=not verdict.shows_average, tests=tests),
        "shown": shown,
        "intervals": words.intervals(draws) if reach and (draws := field.draws()) else "",
        "bands": words.bands(model, LEVEL, tests.curves, moves=moves) if tests and tests.curves else "",
        "rows": _rows_note(rows, used),
        "crossing": crossing,
        "unsure": [
            words.unsure_movement(verdict, tests, [covariate["name"] for covariate in covariates]),
            words.near_the_cut(tests, found.present),
        ],
        "data": _json(data),
        "arrays": store.text(),
    }


def _as_tests(edges: EdgeInference | Mapping[str, Any] | None) -> EdgeRecord | None:
    if isinstance(edges, EdgeInference):
        return EdgeRecord.of(edges)
    record = checked_record(edges, EDGES)
    return None if record is None else EdgeRecord.from_json(record)


def _tests_json(tests: EdgeRecord, store: Store) -> dict[str, Any]:
    """For the page: rates of all pairs, curves by pair and covariate, covariates by pair that moves."""
    curves: dict[int, dict[str, Any]] = {}
    for curve in tests.curves:
        columns = (curve.estimate, curve.low, curve.high, curve.low_all, curve.high_all)
        curves.setdefault(curve.pair, {})[curve.covariate] = list(zip(*columns, strict=True))
    with_one: dict[int, list[tuple[str, float]]] = {}
    for one in tests.with_one:
        with_one.setdefault(one.pair, []).append((one.covariate, one.rate))
    along = {name: [one.pair for one in tests.with_one if one.covariate == name] for name in tests.values}
    if len(along) == 1:
        along = dict.fromkeys(along, np.flatnonzero(tests.are_moving).tolist())
    rates = {name: np.array(getattr(tests, name), dtype=np.float64) for name in ("q_value", "q_varies")}
    return {
        "values": tests.values,
        "curves": curves,
        "with_one": with_one,
        "along": along,
        "estimate": tests.estimate,
        "low": tests.low,
        "high": tests.high,
        **{name: store.add(rate) for name, rate in rates.items()},
    }


def _choose_program(
    field: GraphField,
    rows: Rows,
    typical: dict[str, Any],
    covariates: list[dict[str, Any]],
    order: list[str],
    max_bytes: int,
) -> Shown:
    """The model itself where it can run in a page and fits, otherwise a grid."""
    some = rows.Z.iloc[:: max(1, len(rows.Z) // _CHECKED)]
    j, k = np.triu_indices(field.n_nodes, 1)
    truth = ask.correlations(field, some)[:, j, k]
    try:
        program = field.program()
        size = program.size()
        for kind, width in (("float32", 4), ("float16", 2)):
            if size * width <= max_bytes:
                return Shown(program, kind, None, "", *_differences(program.rounded(kind), some, truth))
        why = "its weights would make the file too large"
    except NotExported as error:
        why = str(error)
    ranges = {c["name"]: c.get("levels") or [c["low"], c["high"]] for c in covariates}
    grid, moving = frames_program(field, typical, ranges, order, max_bytes // 2)
    return Shown(grid, "int16", moving, why, *_differences(grid.rounded("int16"), some, truth))


def _differences(program: Program, Z: pd.DataFrame, truth: NDArray) -> tuple[float, float]:
    size = np.abs(evaluate(program, Z) - truth)
    return float(size.max(initial=0.0)), float(size.mean()) if size.size else 0.0


def _rows_note(rows: Rows, used: RowsUsed | None) -> str:
    if not rows.n_given:
        return "No rows were saved with the model: covariates were drawn from the ranges seen in training."
    taken = f", of which {len(rows.Z):,} are shown" if len(rows.Z) < rows.n_given else ""
    if used is None or not used.left_out:
        return f"Rows: {rows.n_given:,} of the training table{taken}."
    fitted = f"the fit used {used.used:,} rows and left out {used.left_out:,} with missing values"
    return f"Rows: {rows.n_given:,} of the table that have all covariates{taken}; {fitted}."


def _opening_edges(
    field: GraphField, survey: Survey, typical: dict[str, Any], verdict: Verdict
) -> NDArray[np.bool_]:
    """Pairs that are edges of the graph on which the page opens.

    Where it moves, also those of most rows: an edge that changes its sign is none in between. Where there are
    none of these, those of any row.
    """
    if verdict.shows_average:
        return average_edges(field, survey)
    graph = ask.graphs(field, pd.DataFrame([typical]), field.threshold.cuts, "and")[0]
    found = graph[np.triu_indices(len(graph), 1)] | (survey.present > _MOST_ROWS)
    return found if found.any() else survey.present > 0


def _first_chosen(survey: Survey, edges: NDArray[np.bool_], tests: EdgeRecord | None) -> list[int]:
    """Of these edges those that vary most; where they stand still, the strongest.

    Bands of several edges hide each other: where there are any, the first edge that has one, or the first
    pair that moves by its test, which may be too weak on average to be an edge here.
    """
    varies = np.where(survey.spread > STILL, survey.spread, 0.0)
    order = np.lexsort((-np.abs(survey.mean), -varies)).tolist()
    banded = [] if tests is None else [curve.pair for curve in tests.curves]
    wanted = edges if tests is None else edges | tests.are_named
    return [int(i) for i in dict.fromkeys([*banded, *order]) if wanted[i]][: 1 if banded else _CHOSEN]


def _title(field: GraphField, fit: Mapping[str, Any] | None) -> str:
    if fit and fit.get("table"):
        return f"Graphs of {words.file_name(fit['table'])}"
    return f"Graphs of {field.n_nodes} nodes"


def _json(data: Any) -> str:
    """JSON that no text inside can end early: a page's parser looks for ``</script`` first."""
    return json.dumps(finite_values(data), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
