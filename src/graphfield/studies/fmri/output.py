"""The files of a study of brain networks: one folder that is also the folder of its model."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from graphfield.data.covariate_rows import FILE_NAME, MAX_ROWS, covariate_rows
from graphfield.estimators.persistence import save_model
from graphfield.report.folder import EVIDENCE, FIT, GAIN, fit_record, gain_record
from graphfield.report.plots import pyplot

if TYPE_CHECKING:
    from graphfield.studies.fmri.study import FmriStudy

# Pairs of regions in the table of edges by score.
_MOST_EDGES = 20_000


def write_study(study: FmriStudy, out: str | Path, *, overwrite: bool = False) -> Path:
    """All files or none: an existing folder survives until the new one is whole."""
    files = {**_tables(study), **_pictures(study), "graphs.npz": _graphs(study)}
    files["summary.json"] = json.dumps(study.summary(), indent=1, default=float).encode()
    fit = fit_record(
        rows=sum(study.subjects.n_times),
        nodes=study.subjects.regions,
        covariates=list(study.subjects.table.columns),
        group="subject",
        seconds=study.seconds["fit"],
    )
    files[FIT] = json.dumps(fit, indent=1).encode()
    gain = None if study.gain is None else study.gain.model_gain
    files[GAIN] = json.dumps(gain_record(gain), indent=1).encode()
    if study.evidence is not None:
        files[EVIDENCE] = study.evidence.to_json().encode()
    return save_model(study.model, Path(out), overwrite=overwrite, extra=files)


def _tables(study: FmriStudy) -> dict[str, bytes]:
    bands = study.bands.table.rename(columns={"n_rows": "n_subjects"})
    regions = pd.DataFrame({"region": study.subjects.regions, "network": study.networks})
    tables = {
        "subjects.csv": study.connectivity().rename_axis("subject").reset_index(),
        "bands.csv": bands,
        "networks.csv": study.network_table(),
        "edges_by_score.csv": study.score_edges().head(_MOST_EDGES),
        "regions.csv": regions,
    }
    files = {name: table.to_csv(index=False).encode() for name, table in tables.items()}
    return {**files, FILE_NAME: covariate_rows(study.subjects.table.head(MAX_ROWS)).encode()}


def _pictures(study: FmriStudy) -> dict[str, bytes]:
    plt = pyplot()
    found = {}
    for name, figure in study.figures().items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=130)
        plt.close(figure)
        found[f"{name}.png"] = buffer.getvalue()
    return found


def _graphs(study: FmriStudy) -> bytes:
    """Partial correlations of all subjects with the names of subjects and regions."""
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        partial_correlations=study.graphs(),
        subjects=np.array(study.subjects.ids),
        regions=np.array(study.subjects.regions),
        networks=np.array(study.networks),
        threshold=np.array(study.bands.threshold),
    )
    return buffer.getvalue()
