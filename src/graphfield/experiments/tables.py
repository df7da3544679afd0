"""From the cells of a results folder to a table: ours, published, difference, and the lines beside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from graphfield import __version__
from graphfield.experiments.evaluation import metric_column
from graphfield.experiments.folders import read_done, warn_left_out
from graphfield.experiments.methods import LINES, METHODS, TableCell
from graphfield.experiments.sheets import Line, Section, Sheet
from graphfield.experiments.specs import Row, TableSpec, split_column
from graphfield.folders import write_file

METRIC_TITLES = {"auroc": "AUROC", "auprc": "AUPRC", "f1": "F1", "balanced_accuracy": "Balanced accuracy"}
EVALUATION_TITLES = {
    "published": "as published",
    "corrected": "corrected",
    "strength": "by strength",
    "best": "by strength, best penalty",
}
ROUNDING = 0.005  # published values have two decimals
NOTES = (
    "Mean over data replicates, standard deviation in brackets. Published values: {source}.",
    '"As published" repeats the paper\'s evaluation: |beta| without symmetrising, the diagonal left in the '
    "ranking; for glasso the diagonal of the precision matrix is left in too, the nodewise lasso is "
    "scored as a 0/1 graph, and both are shown at the penalty with the highest AUROC against the truth.",
    '"Corrected" scores the same path by |partial correlation| off the diagonal, at the penalty with the '
    "highest AUPRC against the truth. No user can choose a penalty on the truth.",
    '"By strength" is |partial correlation| off the diagonal, every choice made on the training data.',
    "The lines at the end are fitted on normal scores of the ranks. The cluster oracle is told the clusters "
    "and the best penalty of a longer path.",
    "The table shows every cell of its folder, also those of earlier commands.",
    "*: beyond one published standard deviation (ours where none is published) and beyond rounding.",
)


@dataclass(frozen=True)
class Entry:
    """One number of a table."""

    metric: str
    row: Row
    column: str
    mean: float | None
    sd: float | None
    replicates: int

    @property
    def published(self) -> tuple[float | None, float | None]:
        value = self.row.published.get((self.metric, self.column))
        return (None, None) if value is None else (value.mean, value.sd)

    @property
    def difference(self) -> float | None:
        published = self.published[0]
        return None if self.mean is None or published is None else self.mean - published

    @property
    def deviates(self) -> bool:
        """Beyond one standard deviation (the published one, ours where none is) and beyond rounding."""
        if self.difference is None:
            return False
        sd = self.sd if self.published[1] is None else self.published[1]
        return abs(self.difference) > (sd or 0) + ROUNDING


def with_lines(table: TableSpec) -> list[Row]:
    """The rows of the spec and, at the end, the lines that stand in every table."""
    cuts = list(dict.fromkeys(row.threshold for row in table.rows))
    lines = [Row(method, evaluation, cut) for method, evaluation in LINES.items() for cut in cuts]
    own = [row for row in table.rows if (row.method, row.evaluation) not in LINES.items()]
    cited = [row for row in table.rows if row not in own and row.published]
    return [*own, *(next((row for row in cited if _same(row, line)), line) for line in lines)]


def _same(row: Row, other: Row) -> bool:
    return (row.method, row.evaluation, row.threshold) == (other.method, other.evaluation, other.threshold)


def entries(table: TableSpec, out: Path, seeds: list[int]) -> list[Entry]:
    """All numbers of a table from the cells that are done."""
    cells = [
        TableCell(setting, method, table.n_train, table.n_test, seed)
        for setting in table.settings
        for method in dict.fromkeys(row.method for row in with_lines(table))
        for seed in seeds
    ]
    reports = read_done(out, cells, table.name)
    found = []
    for metric in table.metrics:
        for row in with_lines(table):
            for column in table.columns:
                setting, truth = split_column(column)
                values = [
                    value
                    for cell, report in reports.items()
                    if (cell.setting, cell.method) == (setting, row.method)
                    and (value := _value(report, row, truth, metric)) is not None
                ]
                mean = float(np.mean(values)) if values else None
                sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
                found.append(Entry(metric, row, column, mean, sd, len(values)))
    return found


def _value(report: dict, row: Row, truth: str, metric: str) -> float | None:
    by_truth = report["metrics"].get(row.evaluation, {})
    return by_truth.get(truth, {}).get(metric_column(metric, row.threshold))


def as_frame(table: TableSpec, found: list[Entry]) -> pd.DataFrame:
    """Long form, one line per number: the CSV file."""
    return pd.DataFrame(
        {
            "table": table.name,
            "metric": e.metric,
            "setting": split_column(e.column)[0],
            "truth": split_column(e.column)[1],
            "method": e.row.method,
            "evaluation": e.row.evaluation,
            "threshold": e.row.threshold,
            "n_train": table.n_train,
            "replicates": e.replicates,
            "ours": e.mean,
            "ours_sd": e.sd,
            "published": e.published[0],
            "published_sd": e.published[1],
            "difference": e.difference,
        }
        for e in found
        if e.mean is not None
    )


def table_columns(table: TableSpec, found: list[Entry]) -> list[str]:
    """The columns that have a number."""
    filled = {e.column for e in found if e.mean is not None}
    return [column for column in table.columns if column in filled]


def printed_lines(metric: str, table: TableSpec, found: list[Entry]) -> Iterator[Line]:
    """The lines of one metric; rows of which nothing was run are left out."""
    shown = table_columns(table, found)
    of_metric = [e for e in found if e.metric == metric and e.column in shown]
    lines_begun = False
    for row in with_lines(table):
        mine = [e for e in of_metric if _same(e.row, row)]
        if all(e.mean is None for e in mine):
            continue
        if row.method in LINES and not lines_begun:
            lines_begun = True
            yield Line("Lines to compare with", [""] * len(mine), "heading")
        yield Line(_label(row), [_number(e.mean, e.sd) for e in mine], "ours")
        if any(e.published[0] is not None for e in mine):
            yield Line("published", [_number(*e.published, decimals=2) for e in mine], "published")
            yield Line("difference", [_difference(e) for e in mine], "difference")


def _label(row: Row) -> str:
    cut = "" if row.threshold is None else f", above {row.threshold:g}"
    return f"{METHODS[row.method].title} ({EVALUATION_TITLES[row.evaluation]}{cut})"


def _number(mean: float | None, sd: float | None, decimals: int = 3) -> str:
    if mean is None:
        return "-"
    return f"{mean:.{decimals}f}" + ("" if sd is None else f" ({sd:.3f})")


def _difference(entry: Entry) -> str:
    if entry.difference is None:
        return "-"
    return f"{entry.difference:+.3f}" + ("*" if entry.deviates else "")


def as_sheet(table: TableSpec, found: list[Entry], command: str) -> Sheet:
    notes = [note.format(source=table.source) for note in NOTES]
    columns = table_columns(table, found)
    sections = [
        Section(METRIC_TITLES[name], columns, list(printed_lines(name, table, found)))
        for name in table.metrics
    ]
    return Sheet(table.name, table.title, command, notes, sections, _footer(found))


def _footer(found: list[Entry]) -> str:
    counts = sorted({e.replicates for e in found if e.replicates})
    replicates = (
        f"{counts[0]}" if len(counts) == 1 else " to ".join(str(c) for c in (counts[:1] + counts[-1:]))
    )
    return f"Replicates per number: {replicates or 0}. graphfield {__version__}."


def write_table(table: TableSpec, out: Path, seeds: list[int], command: str) -> Sheet:
    """Write ``OUT/NAME.md``, ``.csv`` and ``.html`` from the cells that are done."""
    found = entries(table, out, seeds)
    sheet = as_sheet(table, found, command)
    sheet.write(out)
    text = as_frame(table, found).to_csv(index=False, float_format="%.5g")
    write_file(out / f"{table.name}.csv", text.encode(), overwrite=True)
    return sheet


def write_cells(out: Path) -> None:
    """``OUT/cells.csv``: every cell that is done, with its metrics, times and hardware."""
    lines = []
    for done in sorted((out / "cells").glob("*/*/[!.]*/DONE")):
        try:
            report = json.loads((done.parent / "report.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            warn_left_out("cells.csv", str(done.parent), error)
            continue
        cell = {key: report[key] for key in ("setting", "method", "n_train", "seed")}
        times = {f"{name}_seconds": value for name, value in report["seconds"].items()}
        device = report["environment"]["device"]
        for evaluation, by_truth in report["metrics"].items():
            for truth, metrics in by_truth.items():
                key = {"evaluation": evaluation, "truth": truth}
                lines.append({**cell, **key, **metrics, **times, "device": device})
    text = pd.DataFrame(lines).to_csv(index=False, float_format="%.5g")
    write_file(out / "cells.csv", text.encode(), overwrite=True)
