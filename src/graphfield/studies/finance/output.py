"""A study of stocks in words, and as files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from graphfield.data.covariate_rows import FILE_NAME, MAX_ROWS, covariate_rows
from graphfield.estimators.persistence import check_writable, save_model
from graphfield.exceptions import OutputError
from graphfield.folders import open_file, write_file
from graphfield.studies.finance.days import HIGH, NORMAL, PERIODS
from graphfield.report.folder import EVIDENCE, FIT, GAIN, fit_record, gain_record
from graphfield.report.plots import pyplot

if TYPE_CHECKING:
    from graphfield.studies.finance.study import FinanceStudy

FORMAT, FORMAT_VERSION = "graphfield-finance", 1
TABLES = ("residuals.csv", "connectivity.csv", "edges.csv", "pairs.csv", "held_out_by_month.csv")
FIGURES = (
    "connectivity.png",
    "beside_volatility.png",
    "against_volatility.png",
    "averages.png",
    "days.png",
)
SUMMARY, MODEL = "summary.json", "model"
_DPI = 150


def described(study: FinanceStudy) -> str:
    """What was found, in words."""
    p, n = study.X.shape[1], len(study.X)
    parts = [f"{count:,} {name}" for name, count in _counts(study).items() if count]
    bands, name = _bands(study), study.volatility
    lines = [
        study.verdict.paragraph,
        f"{p} stocks on {n:,} days from {study.X.index[0].date()} to {study.X.index[-1].date()} "
        f"({', '.join(parts)}).",
    ]
    if not study.has_edges:
        lines.append(
            f"{study.doubt[0].upper()}{study.doubt[1:]} on any day. Pictures of the graph are empty."
        )
    lines.append(
        "Density of the estimated graphs on test days: "
        + ", ".join(
            f"{bands[label]['density']:.3f} where {name} is {side} {bands[label]['cut']:.4g} "
            f"({bands[label]['days']:,} days)"
            for label, side in ((HIGH, "above"), (NORMAL, "below"))
        )
        + "."
    )
    return "\n".join([*lines, *(f"Note: {note}" for note in study.notes)])


def summary_values(study: FinanceStudy) -> dict[str, Any]:
    """The contents of ``summary.json``."""
    test = (study.period == "test").to_numpy()
    rank = math.nan
    if "density" in study.connectivity:
        level = study.Z.loc[test, study.volatility]
        density = study.connectivity["density"][test]
        if density.nunique() > 1 and level.nunique() > 1:
            rank = float(density.corr(level, method="spearman"))
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "summary": described(study),
        "verdict": study.verdict.to_json(),
        "stocks": list(study.X.columns),
        "covariates": list(study.Z.columns),
        "volatility": study.volatility,
        "periods": {
            name: {
                "days": count,
                "first": _date(study.period.index[study.period == name], 0),
                "last": _date(study.period.index[study.period == name], -1),
            }
            for name, count in _counts(study).items()
            if count
        },
        "held_out": {
            "verdict": study.held_out.verdict,
            "sentence": study.verdict.sentence,
            "gain_over_static": {
                "value": study.held_out.gain,
                "standard_error": _finite(study.held_out.standard_error),
            },
            "gain_over_graphical_lasso": {
                "value": study.held_out.gain_over_lasso,
                "standard_error": _finite(study.held_out.standard_error_over_lasso),
            },
            "months": len(study.held_out.months),
        },
        "evidence": None if study.evidence is None else json.loads(study.evidence.to_json()),
        "averages": _bands(study),
        "rank_correlation_of_density_and_volatility": _finite(rank),
        "threshold": study.threshold,
        "cut": study.averages.threshold,
        "has_edges": study.has_edges,
        "rule": study.rule,
        "model": type(study.model).__name__,
        "fit_seconds": round(study.seconds, 2),
        "notes": list(study.notes),
    }


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Say before the work that its results could not be written, or would replace earlier ones."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file. Name a folder.")
    there = [name for name in (*TABLES, *FIGURES, SUMMARY, MODEL) if (folder / name).exists()]
    if there and not overwrite:
        raise OutputError(f"{folder} already exists. Choose another folder, or pass overwrite=True.")
    check_writable(folder / MODEL, overwrite=True)


def write_study(study: FinanceStudy, folder: Path, *, overwrite: bool) -> list[Path]:
    """Tables, figures, the model and the summary, which comes last; the paths of all of them."""
    plt = pyplot()
    check_folder(folder, overwrite=overwrite)
    written = []
    for name, table in _tables(study).items():
        content = table.to_csv(index=table.index.name == "date").encode()
        written.append(write_file(folder / name, content, overwrite=True))
    for name, figure in _figures(study):
        with open_file(folder / name, overwrite=True) as file:
            figure.savefig(file, format="png", dpi=_DPI)
        plt.close(figure)
        written.append(folder / name)
    save_model(study.model, folder / MODEL, overwrite=True, extra=_beside_the_model(study))
    text = json.dumps(summary_values(study), indent=1, allow_nan=False)
    written += [folder / MODEL, write_file(folder / SUMMARY, text.encode(), overwrite=True)]
    if study.days is None:
        _forget(folder / "days.png")
    return written


def _forget(path: Path) -> None:
    """Remove the picture of an earlier study that this one does not have."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"Cannot remove {path} of an earlier study: {error.strerror}.") from error


def _tables(study: FinanceStudy) -> dict[str, pd.DataFrame]:
    beside = pd.DataFrame({"period": study.period, study.volatility: study.Z[study.volatility]})
    connectivity = pd.concat([beside, study.connectivity], axis=1)
    tables = (
        study.X.rename_axis("date"),
        connectivity.rename_axis("date"),
        study.edges,
        study.pairs,
        study.held_out.months,
    )
    return dict(zip(TABLES, tables, strict=True))


def _figures(study: FinanceStudy) -> Iterator[tuple[str, Any]]:
    measure = "density" if "density" in study.connectivity else str(study.connectivity.columns[0])
    shown = None if measure == "density" else [measure]
    yield "connectivity.png", study.plot_connectivity(shown)[0].figure
    yield "beside_volatility.png", study.plot_beside(measure).get_figure()
    yield "against_volatility.png", study.plot_against(measure).get_figure()
    yield "averages.png", study.plot_averages()[0].figure
    if study.days is not None:
        yield "days.png", study.plot_days()[0].figure


def _beside_the_model(study: FinanceStudy) -> dict[str, bytes]:
    """What ``graphfield fit`` keeps in the folder of a model too."""
    train = (study.period == "train").to_numpy()
    rows = np.flatnonzero(train)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_ROWS)).astype(int)]
    fit = fit_record(
        table="residual returns",
        rows=int(train.sum()),
        nodes=list(study.X.columns),
        covariates=list(study.Z.columns),
        seconds=study.seconds,
    )
    files = {
        FIT: json.dumps(fit, indent=1).encode(),
        GAIN: json.dumps(gain_record(study.held_out.model_gain), indent=1).encode(),
        FILE_NAME: covariate_rows(study.Z.iloc[rows]).encode(),
    }
    if study.evidence is not None:
        files[EVIDENCE] = study.evidence.to_json().encode()
    return files


def _bands(study: FinanceStudy) -> dict[str, dict[str, Any]]:
    """Cut, days, density and mean size of the average partial correlation, for high and normal days."""
    found = {}
    for label in (HIGH, NORMAL):
        line = study.averages.table.iloc[study.averages.labels.index(label)]
        found[label] = {
            "cut": study.cuts[label],
            "days": int(line["n_rows"]),
            "density": float(line["density"]),
            "mean_weight": float(line["mean_weight"]),
        }
    return found


def _counts(study: FinanceStudy) -> dict[str, int]:
    return {name: int((study.period == name).sum()) for name in PERIODS}


def _date(dates: Any, place: int) -> str:
    return str(dates[place].date())


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
