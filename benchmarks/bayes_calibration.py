"""Whether BayesianCGM is as sure as it may be: coverage of intervals, and probabilities against frequencies.

python benchmarks/bayes_calibration.py [--tables 40] [--out docs/results/bayes]

"prior": regressions whose parameters were drawn from the prior, so that the model is true in every part.
"graphs": tables of one Gaussian distribution at each z, with a precision matrix that is linear in z and
entries drawn in the same way (again until it is positive definite): what the estimator is used for.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import graphfield as gf
from graphfield.solvers import spike_slab as solver

LEVEL, BINS = 0.9, np.array([0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1])
RANGE = np.sqrt(3)  # of a uniform covariate with variance one
SURE = 0.9


def draw_coefficients(rng: np.random.Generator, p: int, nodes: int) -> np.ndarray:
    """Of the constant and one covariate, (2, p, p), with shares and slabs for each of so many nodes."""
    share = rng.beta(1, 4, (2, nodes, 1))
    slab = np.sqrt(solver.FREEDOM * solver.TYPICAL**2 / rng.chisquare(solver.FREEDOM, (2, nodes, 1)))
    return (rng.random((2, p, p)) < share) * slab * rng.normal(size=(2, p, p)) * (1 - np.eye(p))


def draw_graphs(rng: np.random.Generator, p: int) -> np.ndarray:
    """Symmetric, such that I - B_0 - z B_1 is a precision matrix for all z."""
    while True:
        B = np.triu(draw_coefficients(rng, p, 1))
        B = B + B.swapaxes(1, 2)
        if all(np.linalg.eigvalsh(np.eye(p) - B[0] - z * B[1])[0] > 0.1 for z in (-RANGE, RANGE)):
            return B


def places(draws: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Share of draws below the truth, uniform where all is well; ties (at a spike) are broken at random."""
    return (draws < truth).mean(axis=0) + rng.random(truth.shape) * (draws == truth).mean(axis=0)


def inside(place: np.ndarray) -> np.ndarray:
    return (place > (1 - LEVEL) / 2) & (place < (1 + LEVEL) / 2)


def study_prior(seed: int, p: int = 8, n: int = 80) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, z = rng.normal(size=(n, p)), rng.uniform(-RANGE, RANGE, n)
    D = (np.column_stack([np.ones(n), z])[:, :, None] * X[:, None, :]).reshape(n, -1)
    shape, rate = solver.VARIANCE_PRIOR
    scale = np.sqrt(rate / rng.gamma(shape, size=p))
    B = draw_coefficients(rng, p, p) * scale[:, None]
    Y = D @ B.transpose(0, 2, 1).reshape(-1, p) + scale * rng.normal(size=(n, p))
    products = solver.Products(D.T @ D, (D.T @ Y).T, np.square(Y).sum(axis=0), n)
    options = {"n_sweeps": 500, "n_chains": 4, "n_draws": 1000, "rng": rng}
    found = solver.sample_posterior(products, solver.Prior(), np.arange(2), **options)
    off = ~np.eye(p, dtype=bool)
    chance = found.present.mean(axis=0)[:-1, off]
    covered = inside(places(found.draws[:, :, off], B[:, off], rng))
    # What the others say of each node at a new row.
    x, w = rng.normal(size=p), np.array([1.0, rng.uniform(-RANGE, RANGE)])
    fits = inside(places(np.einsum("swjk,w,k->sj", found.draws, w, x), np.einsum("wjk,w,k->j", B, w, x), rng))
    there = (B[:, off] != 0).ravel()
    return {"chance": chance.ravel(), "there": there, "coefficients": covered.ravel(), "fits": fits}


def study_graphs(seed: int, p: int = 8, n: int = 300) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    B, z = draw_graphs(rng, p), rng.uniform(-RANGE, RANGE, n)
    precision = np.eye(p) - B[0] - z[:, None, None] * B[1]
    X = np.linalg.solve(np.linalg.cholesky(precision).swapaxes(1, 2), rng.normal(size=(n, p, 1)))[:, :, 0]
    model = gf.BayesianCGM(inclusion=(1, 4), n_draws=1000, random_state=seed).fit(X, z[:, None])
    j, k = np.triu_indices(p, 1)
    at = np.array([[-1.0], [0.0], [1.0]])
    truth = (B[0] + at[:, :, None] * B[1])[:, j, k]
    low, high = (end[:, j, k] for end in model.credible_intervals(at, LEVEL))
    draws = np.stack([member.at(at).partial_correlations[:, j, k] for member in model.draws().members])
    chance = model.inclusion_[j, k]
    sure = np.broadcast_to(chance > SURE, truth.shape)
    return {
        "chance": chance,
        "there": (B != 0).any(axis=0)[j, k],
        "intervals of sure pairs": ((low <= truth) & (truth <= high))[sure],
        "draws of sure pairs": inside(places(draws, truth, rng))[sure],
        "intervals of all pairs": ((low <= truth) & (truth <= high)).ravel(),
        "draws of all pairs": inside(places(draws, truth, rng)).ravel(),
    }


def summarise(found: list[dict[str, np.ndarray]]) -> dict[str, object]:
    joined = {name: np.concatenate([own[name] for own in found]) for name in found[0]}
    chance, there = joined.pop("chance"), joined.pop("there")
    if "coefficients" in joined:
        joined["sure coefficients"] = joined["coefficients"][chance > SURE]
    table = []
    for low, high in pairwise(BINS):
        own = (chance >= low) & ((chance < high) | (high == 1))
        if own.any():
            error = np.sqrt(max(there[own].mean() * (1 - there[own].mean()), 1e-4) / own.sum())
            table.append([int(own.sum()), float(chance[own].mean()), float(there[own].mean()), float(error)])
    coverage = {name: [float(values.mean()), len(values)] for name, values in joined.items()}
    return {"coverage": coverage, "probabilities": table}


def draw_picture(results: dict[str, dict], path: Path) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True)
    for ax, (name, found) in zip(axes, results.items(), strict=True):
        _, chance, share, error = np.array(found["probabilities"]).T
        ax.plot([0, 1], [0, 1], color="0.7", lw=1)
        ax.errorbar(chance, share, yerr=2 * error, fmt="o", ms=4)
        ax.set(title={"prior": "coefficients, prior true", "graphs": "pairs, graphs linear in z"}[name])
        ax.set(xlabel="posterior probability")
    axes[0].set_ylabel("share that is there")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results: dict[str, dict] = {}
    for name, study in (("prior", study_prior), ("graphs", study_graphs)):
        start = time.process_time()
        results[name] = summarise([study(1000 + seed) for seed in range(arguments.tables)])
        print(f"{name}, {arguments.tables} tables, {time.process_time() - start:.0f} s")
        for what, (share, n) in results[name]["coverage"].items():
            print(f"  {what:26s} {share:.3f} of {n} are in their {LEVEL:.0%} intervals")
        for n, chance, share, error in results[name]["probabilities"]:
            print(f"  {n:6d} with probability {chance:.3f}: {share:.3f} are there (+- {error:.3f})")
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "calibration.json").write_text(json.dumps(results, indent=1) + "\n")
        draw_picture(results, arguments.out / "calibration.png")


if __name__ == "__main__":
    main()
