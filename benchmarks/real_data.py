"""What is known about real data, and what the defaults say: blood by age, signalling by drug, air by season.

    .venv/bin/python benchmarks/real_data.py --data FOLDER [--only nhanes,sachs,beijing]
        [--model dnncgm] [--device cpu] [--out FILE.json]

FOLDER holds nhanes_biomarkers.npz, sachs.npz and beijing_air.npz, which are not part of this repository
(where they come from is written in docs/results/real_data.md). "direct" is the partial correlation computed
from the rows of that band alone, with the covariates' linear effect on the means taken out; "model" is the
average of the model's partial correlations over the same rows. Held-out gain: squared error in a fifth of the
rows, relative to one graph for everybody (a ridge regression of each node on all others), on values minus the
model's own mean at z, and on values minus means that are linear in z. Beside it ridge regressions whose
coefficients are splines of z, on the same values and rows. --model ensemble: five default fits, averaged.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import graphfield as gf
from graphfield.data.covariates import CovariateEncoder, features
from graphfield.data.frames import as_frame
from graphfield.inference.covariate_basis import smooth_covariates
from graphfield.solvers.interaction import coefficients_from_gram, interaction_fit, interaction_gram

RIDGES = (1e-4, 1e-3, 1e-2, 3e-2, 0.1)
MOVING = (0.03, 0.1, 0.3, 1.0, 3.0)
MOST_COLUMNS = 2_000  # of a ridge regression: nodes times functions of z
DECADES = [(20, 30), (30, 40), (40, 50), (50, 60), (60, 70), (70, 120)]
# By decade of age, from the table that comes with the data.
KNOWN = {
    ("ln_sbp", "dbp"): [0.30, 0.54, 0.62, 0.55, 0.41, 0.32],
    ("ln_bun", "ln_creat"): [0.18, 0.15, 0.19, 0.24, 0.32, 0.43],
    ("ln_glucose", "ln_hba1c"): [0.31, 0.52, 0.60, 0.66, 0.64, 0.59],
    ("rbc", "mcv"): [-0.46, -0.42, -0.41, -0.43, -0.46, -0.43],
}


def load(folder: Path, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes and covariates as tables."""
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        data = {key: file[key] for key in file.files}
    Z = pd.DataFrame(data["z_num"].astype(float), columns=[str(c) for c in data["z_num_names"]])
    for i, key in enumerate(map(str, data["z_cat_names"])):
        levels = np.append(data[f"z_cat_levels__{key}"], "unknown")  # code -1 means missing
        Z[key] = levels[data["z_cat"][:, i]].astype(str)
    return pd.DataFrame(data["x"].astype(float), columns=[str(c) for c in data["x_names"]]), Z


def partial(X: NDArray, W: NDArray) -> NDArray:
    """Partial correlations of these rows, linear effects of W on the means taken out."""
    left = X - W @ np.linalg.lstsq(W, X, rcond=None)[0]
    precision = np.linalg.pinv(left.T @ left / len(left))
    scale = np.sqrt(precision.diagonal())
    return -precision / np.outer(scale, scale)


def held_out_gain(model: Any, X: pd.DataFrame, Z: pd.DataFrame, seed: int = 0) -> dict[str, Any]:
    """Of a model that is fitted to four fifths of the rows here, and of ridge regressions beside it."""
    held = np.random.default_rng(seed).permutation(len(X)) < len(X) // 5
    rows, test = np.flatnonzero(~held), np.flatnonzero(held)
    model.fit(X[~held], Z[~held])
    scores = model.field_.schema.scores
    values = X.to_numpy() if scores is None else scores.transform(X.to_numpy())
    scale = model.field_.common.scaler.scale
    centred = (values - model.field_.at(Z).offsets) / scale
    coef = model.predict_coef(Z[held]) / scale[:, None] * scale[None, :]
    ours = centred[held] - np.einsum("ijk,ik->ij", coef, centred[held])
    linear_means = values / scale
    linear_means = linear_means - _linear_mean(linear_means, _functions(Z), rows)
    result: dict[str, Any] = {"marginals": model.marginals_}
    for name, nodes in {"own means": centred, "linear means": linear_means}.items():
        static = _ridge_left(nodes, np.ones((len(nodes), 1)), rows, test)
        varying = _ridge_left(nodes, _splines(Z, nodes.shape[1]), rows, test)
        result[name] = {
            "model": _gain(static, ours),
            "ridge": _gain(static, varying),
            "static_r2": float(1 - np.square(static).mean() / np.square(nodes[held]).mean()),
        }
    return result


def _gain(static: NDArray, left: NDArray) -> dict[str, float]:
    difference = ((np.square(static) - np.square(left)) / np.square(static).mean(axis=0)).mean(axis=1)
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return {"gain": float(difference.mean()), "standard_error": float(error)}


def _functions(Z: pd.DataFrame) -> NDArray:
    """A constant, numbers as they are, levels of categories."""
    encoder = CovariateEncoder().fit(as_frame(Z, "Z"))
    return features(encoder, encoder.transform(as_frame(Z, "Z")))


def _splines(Z: pd.DataFrame, n_nodes: int) -> NDArray:
    """A constant, splines of numbers, levels; no splines where the regressions would be too large."""
    frame = as_frame(Z, "Z")
    encoder = CovariateEncoder().fit(frame)
    smooths = smooth_covariates(encoder, encoder.transform(frame), 3)
    wide = n_nodes * (1 + sum(smooth.columns.shape[1] for smooth in smooths)) > MOST_COLUMNS
    columns = [smooth.linear if wide else smooth.columns for smooth in smooths]
    return np.column_stack([np.ones(len(Z)), *columns])


def _linear_mean(values: NDArray, W: NDArray, rows: NDArray) -> NDArray:
    return W @ np.linalg.lstsq(W[rows], values[rows], rcond=None)[0]


def _ridge_left(values: NDArray, W: NDArray, rows: NDArray, test: NDArray) -> NDArray:
    """What ridge regressions with coefficients linear in W leave of the test rows.

    The two penalties, on what edges have in common and on how they move, are chosen on a fifth of ``rows``.
    """
    inner = np.random.default_rng(1).permutation(len(rows)) < len(rows) // 5
    gram = interaction_gram(values[rows[~inner]], W[rows[~inner]])

    def left(gram: NDArray, penalties: tuple[float, float], where: NDArray) -> NDArray:
        ridge = np.repeat(penalties, [1, W.shape[1] - 1])
        coef = coefficients_from_gram(gram, values.shape[1], ridge)
        return values[where] - interaction_fit(values[where], W[where], coef)

    moving = MOVING if W.shape[1] > 1 else (1.0,)
    tried = {
        (common, more): float(np.square(left(gram, (common, more), rows[inner])).mean())
        for common in RIDGES
        for more in moving
    }
    return left(interaction_gram(values[rows], W[rows]), min(tried, key=tried.__getitem__), test)


def fitted(model: Any, X: pd.DataFrame, Z: pd.DataFrame) -> tuple[Any, float]:
    start = time.perf_counter()
    model.fit(X, Z)
    return model, time.perf_counter() - start


def nhanes(folder: Path, make: Any) -> dict[str, Any]:
    X, Z = load(folder, "nhanes_biomarkers")
    Z["poverty_ratio"] = Z["poverty_ratio"].fillna(Z["poverty_ratio"].median())
    model, seconds = fitted(make(), X, Z)
    W = _functions(Z)
    place = {name: i for i, name in enumerate(X.columns)}
    pairs = {f"{a} - {b}": {"known": known, "direct": [], "model": []} for (a, b), known in KNOWN.items()}
    sexes: dict[str, float] = {}
    for low, high in DECADES:
        rows = ((Z["age"] >= low) & (Z["age"] < high)).to_numpy()
        direct = partial(X.to_numpy()[rows], W[rows])
        ours = model.partial_correlations(Z[rows]).mean(axis=0)
        for a, b in KNOWN:
            pairs[f"{a} - {b}"]["direct"].append(float(direct[place[a], place[b]]))
            pairs[f"{a} - {b}"]["model"].append(float(ours[place[a], place[b]]))
    for sex in ("female", "male"):
        rows = (Z["sex"] == sex).to_numpy()
        sexes[sex] = float(model.partial_correlations(Z[rows])[:, place["rbc"], place["mcv"]].mean())
    for entry in pairs.values():
        entry["mean_absolute_error"] = float(np.abs(np.subtract(entry["model"], entry["known"])).mean())
        entry["range"] = float(np.ptp(entry["model"]))
    return {
        "seconds": seconds,
        "marginals": model.marginals_,
        "pairs": pairs,
        "rbc - mcv by sex": sexes,
        "held_out": held_out_gain(make(), X, Z),
    }


def sachs(folder: Path, make: Any) -> dict[str, Any]:
    X, Z = load(folder, "sachs")
    X = np.log(X)
    model, seconds = fitted(make(), X, Z)
    place = {name: i for i, name in enumerate(X.columns)}
    at = pd.DataFrame({"condition": ["cd3cd28", "cd3cd28_u0126"]})
    ours = model.partial_correlations(at)
    pairs = {}
    for (a, b), known in {("Erk", "Akt"): [0.79, -0.04], ("PKA", "Erk"): [0.04, 0.70]}.items():
        direct = []
        for level in at["condition"]:
            rows = (Z["condition"] == level).to_numpy()
            direct.append(float(partial(X.to_numpy()[rows], np.ones((rows.sum(), 1)))[place[a], place[b]]))
        pairs[f"{a} - {b}"] = {
            "known": known,
            "direct": direct,
            "model": [float(graph[place[a], place[b]]) for graph in ours],
        }
    return {
        "seconds": seconds,
        "marginals": model.marginals_,
        "pairs, baseline and MEK inhibitor": pairs,
        "held_out": held_out_gain(make(), X, Z),
    }


def beijing(folder: Path, make: Any) -> dict[str, Any]:
    """All 72 nodes; the correlation of the station averages of ozone and fine dust that the model implies."""
    X, Z = load(folder, "beijing_air")
    X = np.log1p(X)
    X, Z = X.fillna(X.median()), Z.fillna(Z.median(numeric_only=True))
    model, seconds = fitted(make(), X, Z)
    average = np.zeros((2, X.shape[1]))
    for i, kind in enumerate(("O3", "PM2.5")):
        own = np.array([name.startswith(kind + "_") for name in X.columns])
        average[i, own] = 1 / own.sum()
    parts = {
        "winter night": Z["month"].isin(["12", "01", "02"]) & (Z["hour"] == "02"),
        "summer day": Z["month"].isin(["06", "07", "08"]) & (Z["hour"] == "14"),
    }
    result: dict[str, Any] = {}
    for name, chosen in parts.items():
        rows = chosen.to_numpy()
        values = X.to_numpy()[rows] @ average.T
        covariance = average @ np.linalg.inv(model.predict_precision(Z[rows])) @ average.T
        spread = np.sqrt(covariance[:, 0, 0] * covariance[:, 1, 1])
        partials = model.partial_correlations(Z[rows]).mean(axis=0)
        block = partials[np.ix_(average[0] > 0, average[1] > 0)]
        result[name] = {
            "rows": int(rows.sum()),
            "direct": float(np.corrcoef(values.T)[0, 1]),
            "model, given z": float((covariance[:, 0, 1] / spread).mean()),
            "mean partial correlation of pairs": float(block.mean()),
            "same station": float(np.diag(block).mean()),
        }
    return {
        "seconds": seconds,
        "marginals": model.marginals_,
        "rows": len(X),
        "O3 and PM2.5": result,
        "held_out": held_out_gain(make(), X, Z),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="nhanes,sachs,beijing")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="dnncgm", choices=("dnncgm", "ensemble"))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")

    def make() -> Any:
        if arguments.model == "ensemble":
            return gf.Ensemble(estimator=gf.DNNCGM(device=arguments.device), random_state=arguments.seed)
        return gf.DNNCGM(random_state=arguments.seed, device=arguments.device)

    results: dict[str, Any] = {"model": arguments.model}
    for name in arguments.only.split(","):
        study = {"nhanes": nhanes, "sachs": sachs, "beijing": beijing}[name]
        results[name] = study(arguments.data, make)
        print(name, json.dumps(results[name], indent=1), flush=True)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
