"""The paper's pictures of its settings: candidates, mixtures at several z, true beside estimated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphfield.estimators.dnncgm import DNNCGM
from graphfield.experiments.folders import open_results
from graphfield.experiments.runner import choose
from graphfield.folders import already_exists, make_folder, write_file
from graphfield.graphs.strength import partial_from_precision
from graphfield.plots import plot_graph, png_bytes, pyplot
from graphfield.simulate import Simulation, make_setting
from graphfield.training.progress import progress_bar

SETTINGS = ("G1", "G2", "N1", "N2", "D1", "D2")
N_TRAIN, N_LOOK, N_PICTURED = 10_000, 1_000, 3


def draw_figures(
    out: Path, settings: Sequence[str] | None, seed: int, device: str, force: bool
) -> list[Path]:
    """One picture per setting in ``OUT/figures``; DNNCGM is fitted with its defaults for each."""
    chosen = choose("setting", settings, SETTINGS)
    open_results(out)
    folder = make_folder(out / "figures")
    paths = {setting: folder / f"{setting}.png" for setting in chosen}
    present = [str(path) for path in paths.values() if path.exists()]
    if present and not force:
        raise already_exists(present[0])
    with progress_bar("drawing", len(paths), unit="figures") as advance:
        for done, (setting, path) in enumerate(paths.items(), start=1):
            sim = make_setting(setting, N_TRAIN + N_LOOK, seed)
            figure = setting_figure(sim, N_TRAIN, seed, device)
            write_file(path, png_bytes(figure, dpi=110), overwrite=True)
            advance(done, setting)
    return list(paths.values())


def setting_figure(sim: Simulation, n_train: int, seed: int, device: str) -> Any:
    """Rows: the matrices that are mixed; the true graph at three z; the estimate at the same z."""
    rows = _pictured(sim.regime[n_train:]) + n_train
    Z = sim.Z[rows]
    model = DNNCGM(random_state=seed, device=device).fit(sim.X[:n_train], sim.Z[:n_train])
    cut = model.threshold_.value
    partial = model.partial_correlations(Z)
    estimate = np.where(model.predict_graph(Z), partial, 0.0)
    truth, kind = _truth(sim, Z)
    candidates, titles = _candidates(sim, Z)
    plt = pyplot()
    figure, axes = plt.subplots(3, N_PICTURED, figsize=(10.5, 10.5), layout="constrained")
    limit = float(max(np.abs(truth).max(), np.abs(estimate).max())) if kind != "skeleton" else None
    for i in range(N_PICTURED):
        _black_and_white(plot_graph(candidates[i], title=titles[i], ax=axes[0, i]))
        plot_graph(truth[i], limit=limit, title=_where(sim, rows[i]), ax=axes[1, i])
        if kind == "skeleton":
            _black_and_white(axes[1, i])
        plot_graph(estimate[i], limit=limit, ax=axes[2, i])
    axes[0, 0].set_ylabel("what is mixed (0/1)", fontsize=11)
    axes[1, 0].set_ylabel(f"true {kind}", fontsize=11)
    axes[2, 0].set_ylabel(f"estimated, above {cut:.3f}", fontsize=11)
    figure.suptitle(f"Setting {sim.setting}: {n_train:,} training samples, DNNCGM with its defaults")
    figure.colorbar(axes[2, 0].images[0], ax=axes[1:, :], shrink=0.6, label="partial correlation")
    return figure


def _black_and_white(ax: Any) -> None:
    """A 0/1 picture must not look like partial correlations."""
    ax.images[0].set(cmap="gray_r", clim=(0, 1))


def _pictured(regime: NDArray) -> NDArray[np.intp]:
    """Three test rows that show every cluster: the first of each, then the second of the last ones."""
    by_cluster = [np.flatnonzero(regime == label) for label in np.unique(regime)]
    order = [rows[turn] for turn in range(N_PICTURED) for rows in by_cluster[::-1] if turn < len(rows)]
    return np.sort(np.array(order[:N_PICTURED]))


def _truth(sim: Simulation, Z: Any) -> tuple[NDArray, str]:
    """Partial correlations of the (latent) Gaussian, or the skeleton where there is none."""
    precision = sim.field.precision(Z)
    if precision is None:
        return sim.field.skeleton(Z).astype(float), "skeleton"
    return partial_from_precision(precision), "partial correlation"


def _candidates(sim: Simulation, Z: Any) -> tuple[list[NDArray], list[str]]:
    """0/1 pictures of the matrices; of two trees also what they look like mixed."""
    off_diagonal = ~np.eye(sim.X.shape[1], dtype=bool)
    found = [(matrix != 0) & off_diagonal for matrix in sim.candidates]
    letter = "B" if sim.setting.startswith("D") else "$\\Psi$"
    titles = [f"{letter}{i + 1}" for i in range(len(found))]
    if len(found) == 2:
        found.append(found[0] | found[1])
        titles.append("B1 and B2 mixed")
    return [matrix.astype(float) for matrix in found[:N_PICTURED]], titles[:N_PICTURED]


def _where(sim: Simulation, row: int) -> str:
    cluster = f"cluster {sim.regime[row] + 1}"
    z = np.asarray(sim.Z[row], dtype=float)
    return f"{cluster}, z = ({', '.join(f'{v:.2f}' for v in z)})" if len(z) <= 3 else f"{cluster}, row {row}"
