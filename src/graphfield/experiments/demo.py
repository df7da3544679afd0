"""The demo: simulate G1, fit, score against the truth, write model, numbers and a picture."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from graphfield import __version__
from graphfield.data.saved_files import json_bytes
from graphfield.estimators.base import GraphEstimator
from graphfield.estimators.by_cluster import ByCluster
from graphfield.estimators.dnncgm import DNNCGM
from graphfield.estimators.graphical_lasso import GraphicalLasso
from graphfield.estimators.persistence import save_model
from graphfield.estimators.reggmm import RegGMM
from graphfield.estimators.tree import TreeCGM
from graphfield.experiments.specs import published
from graphfield.folders import write_file
from graphfield.graphs.strength import partial_from_precision
from graphfield.inference.model_gain import gain_of
from graphfield.inference.unseen_rows import predict_new_rows
from graphfield.metrics import f1, ranking_scores
from graphfield.plots import plot_graphs, png_bytes
from graphfield.report.folder import GAIN, gain_record
from graphfield.simulate import Simulation, make_setting

SETTING = "G1"
# One covariate value in the middle of each third of z_2, with mixing weights that differ.
PICTURED = ((0.25, 0.17), (0.5, 0.5), (0.75, 0.83))


@dataclass(frozen=True)
class Line:
    """One row of the demo's table."""

    method: str
    auroc: float
    auprc: float
    seconds: float | None
    note: str


def run_demo(out: Path, *, n_train: int, n_test: int, seed: int, say: Callable[[str], None]) -> list[Line]:
    """Run the demo into the existing folder ``out``; returns the table that was printed."""
    say(f"Simulating setting {SETTING}: {n_train:,} rows to train on, {n_test:,} to test on.")
    sim = make_setting(SETTING, n_samples=n_train + n_test, random_state=seed)
    train, test = slice(0, n_train), slice(n_train, None)
    clusters = pd.DataFrame({"cluster": [f"cluster {label}" for label in sim.regime]})
    truth, cited = sim.skeleton[test], published("table1", "dnn-cgm", SETTING)

    def line(method: str, model: GraphEstimator, Z: Any, note: str) -> Line:
        start = time.perf_counter()
        model.fit(sim.X[train], Z[train])
        seconds = round(time.perf_counter() - start, 2)
        ranking = ranking_scores(model.edge_weights(Z[test]), truth)
        return Line(method, float(ranking.auroc.mean()), float(ranking.auprc.mean()), seconds, note)

    say("Fitting DNNCGM with its defaults.")
    model = DNNCGM(random_state=seed)
    lines = [line("DNNCGM (defaults)", model, sim.Z, "ours")]
    say("Fitting the comparison lines.")
    told = ByCluster(estimator=GraphicalLasso())
    lines += [
        line("graphical lasso", GraphicalLasso(), sim.Z, "no z"),
        line("RegGMM", RegGMM(), sim.Z, "linear in z"),
        line("tree + graphical lasso", TreeCGM(random_state=seed), sim.Z, "TreeCGM"),
        line("graphical lasso by cluster", told, clusters, "told the clusters"),
        Line("DNN-CGM, published", cited["auroc"], cited["auprc"], None, "mean of 5, diagonal left in"),
    ]
    units = np.arange(len(truth))
    new = predict_new_rows(model, sim.X[train], sim.Z[train], sim.X[test], sim.Z[test], units)
    record = json_bytes(gain_record(gain_of(new)))
    save_model(model, out / "model", overwrite=True, extra={GAIN: record})
    graphs = model.predict_graph(sim.Z[test])
    report = {
        "setting": SETTING,
        "seed": seed,
        "n_train": n_train,
        "n_test": n_test,
        "lines": [asdict(line) for line in lines],
        "threshold": {"value": model.threshold_.value, "reason": model.threshold_.reason},
        "f1_at_threshold": float(f1(graphs, truth).mean()),
        "versions": {
            "graphfield": __version__,
            **{name: version(name) for name in ("torch", "numpy", "scikit-learn")},
        },
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    write_file(out / "metrics.json", json_bytes(report), overwrite=True)
    _picture(model, sim, out / "graphs.png")
    return lines


def _picture(model: GraphEstimator, sim: Simulation, path: Path) -> None:
    Z = np.array(PICTURED)
    precision = sim.field.precision(Z)
    assert precision is not None  # G1 is Gaussian
    truth = partial_from_precision(precision)
    graph = model.predict_graph(Z)
    label = f"estimated, above {model.threshold_.value:.2f}"
    rows = {"true": truth, label: np.where(graph, model.partial_correlations(Z), 0.0)}
    columns = [f"z = ({a:g}, {b:g})" for a, b in PICTURED]
    figure = plot_graphs(rows, columns)[0].figure
    write_file(path, png_bytes(figure, dpi=130), overwrite=True)
