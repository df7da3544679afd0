"""Do features of a node find edges that the node itself does not? One graph for all z, D2 and S3.

    .venv/bin/python benchmarks/edge_features.py [--settings D2 S3] [--rows 1000 2000] [--seeds 2]

Each node is regressed on features of all others, ``x_j = sum_k sum_m b_jkm f_m(x_k)``, with a group penalty
on the features of each node, the same for all responses and chosen on a tenth of the rows: the node itself
(linear), Hermite functions of order 1 to 3 (hermite), natural cubic splines with four degrees of freedom
(spline). Nodes are normal scores, features are orthonormal for these. A pair is as strong as the larger
norm of its two functions. AUPRC at 500 new z, and the smallest held-out error, as a share of the variance.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata
from seed_runs import Line, run_cases, seed_options

import graphfield as gf
from graphfield.metrics import ranking_scores

_NEW, _STEPS, _PENALTIES = 500, 150, 0.75 ** np.arange(14)
_KNOTS = norm.ppf([0.02, 0.25, 0.5, 0.75, 0.98])


def linear(x: NDArray) -> NDArray:
    return x[..., None]


def hermite(x: NDArray) -> NDArray:
    return np.stack([x, x**2, x**3], axis=-1)


def spline(x: NDArray) -> NDArray:
    """Hastie, Tibshirani and Friedman (2009), eq. 5.4 and 5.5."""
    cubes = np.maximum(x[..., None] - _KNOTS, 0) ** 3
    slopes = (cubes[..., :-1] - cubes[..., [-1]]) / (_KNOTS[-1] - _KNOTS[:-1])
    return np.concatenate([x[..., None], slopes[..., :-1] - slopes[..., [-1]]], axis=-1)


FEATURES = {"linear": linear, "hermite": hermite, "spline": spline}


def orthonormal(features: NDArray) -> NDArray:
    """(n, p, M), each node's own with mean zero, variance one and no correlation, the first one first."""
    centred = features - features.mean(axis=0)
    roots = np.linalg.cholesky(np.einsum("npm,npo->pmo", centred, centred) / len(centred))
    return np.linalg.solve(roots, centred.transpose(1, 2, 0)).transpose(2, 0, 1)


def solve(gram: NDArray, cross: NDArray, penalty: float, start: NDArray) -> NDArray:
    """Coefficients (j, k, m) by accelerated proximal steps."""
    p, curvature = len(cross), float(np.linalg.eigvalsh(gram)[-1])
    off_diagonal = (1 - np.eye(p))[..., None]
    now = point = start
    momentum = 1.0
    for _ in range(_STEPS):
        step = point - ((point.reshape(p, -1) @ gram - cross) / curvature).reshape(start.shape)
        size = np.maximum(np.linalg.norm(step, axis=-1, keepdims=True), 1e-30)
        new = off_diagonal * step * np.maximum(1 - penalty / curvature / size, 0)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        now, point, momentum = new, new + (momentum - 1) / following * (new - now), following
    return now


def compare(setting: str, n: int, kind: str, seed: int, device: str) -> Line:
    sim = gf.make_setting(setting, n_samples=n + _NEW, random_state=seed)
    x = norm.ppf((rankdata(np.asarray(sim.X)[:n], axis=0) - 0.5) / n)
    x /= x.std(axis=0)
    F = orthonormal(FEATURES[kind](x))
    flat = F.reshape(n, -1)
    order = np.random.default_rng(seed).permutation(n)
    new, known = order[: n // 10], order[n // 10 :]
    gram, cross = flat[known].T @ flat[known] / len(known), x[known].T @ flat[known] / len(known)
    top = np.linalg.norm(
        cross.reshape(*F.shape[1:2], *F.shape[1:]) * (1 - np.eye(F.shape[1]))[..., None], axis=-1
    )
    best, found = np.inf, np.zeros((F.shape[1], *F.shape[1:]))
    B = found
    for penalty in top.max() * _PENALTIES:
        B = solve(gram, cross, penalty, B)
        error = float(np.square(x[new] - flat[new] @ B.reshape(len(B), -1).T).mean())
        if error < best:
            best, found = error, B
    norms = np.linalg.norm(found, axis=-1)
    weights, Z = np.maximum(norms, norms.T), np.asarray(sim.Z)[n:]
    scores = ranking_scores(np.broadcast_to(weights, (len(Z), *weights.shape)), sim.field.skeleton(Z))
    return {
        "auprc": float(np.nanmean(scores.auprc)),
        "held_out": best,
        "pairs": float((weights > 0).sum() / 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--settings", nargs="+", default=["D2", "S3"])
    parser.add_argument("--rows", nargs="+", type=int, default=[1000, 2000])
    seed_options(parser, seeds=2)
    arguments = parser.parse_args()
    cases = [
        (f"{setting} {n} {kind}", compare, (setting, n, kind))
        for setting in arguments.settings
        for n in arguments.rows
        for kind in FEATURES
    ]
    run_cases(cases, arguments)


if __name__ == "__main__":
    main()
