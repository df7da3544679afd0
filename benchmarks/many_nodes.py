"""Many nodes: accuracy, time and memory of the default, of a full head and of one graph for all.

    .venv/bin/python benchmarks/many_nodes.py [--nodes 300 500 1000 2000] [--rows 5000] [--device cuda]

Mixtures of three banded precision matrices, as in G1 but with as many nodes as asked for. A line for each
fit: AUPRC at 100 new values of z, seconds, peak memory of the device (of the process on the CPU); then the
exponents b of seconds and bytes ~ p^b by least squares in logarithms.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings

import numpy as np
import torch
from numpy.typing import NDArray

import graphfield as gf
from graphfield import metrics

PAIRS = np.array([(0, 1), (0, 2), (1, 2)])


class Bands:
    """Precision matrices w(z) Psi_a + (1 - w(z)) Psi_b with .75 on one off-diagonal each, and their rows."""

    def __init__(self, n_nodes: int) -> None:
        offsets = [0.75 * (np.eye(n_nodes, k=k) + np.eye(n_nodes, k=-k)) for k in (1, 2, 3)]
        # Eigenvalues of a band are between -1.5 and 1.5: condition numbers of 10, as in G1.
        self.candidates = np.stack([band + (1.5 * 11 / 9) * np.eye(n_nodes) for band in offsets])

    def precisions(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        share = np.clip(Z[:, 0], 0.25, 0.75)
        pair = PAIRS[np.minimum((Z[:, 1] * 3).astype(int), 2)]
        mixed = np.zeros((len(Z), 3))
        np.put_along_axis(mixed, pair, np.column_stack([share, 1 - share]), axis=1)
        return np.tensordot(mixed, self.candidates, axes=1)

    def sample(self, Z: NDArray[np.float64], rng: np.random.Generator, device: str) -> NDArray[np.float32]:
        found = []
        for start in range(0, len(Z), 50):
            theta = torch.as_tensor(
                self.precisions(Z[start : start + 50]), dtype=torch.float32, device=device
            )
            noise = torch.as_tensor(rng.normal(size=theta.shape[:2]), dtype=torch.float32, device=device)
            upper = torch.linalg.cholesky(theta).mT
            found.append(torch.linalg.solve_triangular(upper, noise[..., None], upper=True)[..., 0].cpu())
        return torch.cat(found).numpy()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[300, 500, 1_000, 2_000])
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--most-static", type=int, default=500, help="nodes of the largest graphical lasso")
    parser.add_argument("--models", nargs="+", default=["default", "full head", "graphical lasso"])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    lines = []
    for p in arguments.nodes:
        covariates, noise = np.random.default_rng(arguments.seed).spawn(2)
        truth = Bands(p)
        Z = covariates.random((arguments.rows + 100, 2))
        X = truth.sample(Z[:-100], noise, arguments.device)
        skeleton = np.abs(truth.precisions(Z[-100:])) > 0
        skeleton[:, range(p), range(p)] = False
        models: dict[str, gf.GraphEstimator] = {
            "default": gf.DNNCGM(random_state=0, device=arguments.device),
            "full head": gf.DNNCGM(rank=None, random_state=0, device=arguments.device),
        }
        if p <= arguments.most_static:
            models["graphical lasso"] = gf.GraphicalLasso()
        for name, model in ((name, models[name]) for name in models if name in arguments.models):
            line = {"p": p, "model": name} | measure(model, X, Z, skeleton, arguments.device)
            lines.append(line)
            print(json.dumps(line), flush=True)
    for name in {line["model"]: None for line in lines}:
        own = [line for line in lines if line["model"] == name]
        if len(own) > 1:
            sizes = np.log([line["p"] for line in own])
            slopes = {
                key: np.polyfit(sizes, np.log([line[key] for line in own]), 1)[0] for key in ("seconds", "gb")
            }
            print(
                json.dumps({"model": name} | {f"exponent of {key}": round(b, 2) for key, b in slopes.items()})
            )


def measure(
    model: gf.GraphEstimator, X: NDArray, Z: NDArray, skeleton: NDArray[np.bool_], device: str
) -> dict[str, float]:
    """One fit and its graphs at the last 100 rows of Z, ten at a time."""
    on_gpu = device != "cpu"
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Z[:-100])
    seconds = time.perf_counter() - start
    size = (
        torch.cuda.max_memory_allocated()
        if on_gpu
        else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    )
    new, scores = Z[-100:], []
    for start_row in range(0, len(new), 10):
        rows = slice(start_row, start_row + 10)
        scores.append(metrics.auprc(model.edge_weights(new[rows]), skeleton[rows]))
    return {
        "auprc": round(float(np.concatenate(scores).mean()), 4),
        "seconds": round(seconds, 2),
        "gb": round(size / 1e9, 3),
        "patterns": getattr(model, "rank_", None) or 0,
    }


if __name__ == "__main__":
    main()
