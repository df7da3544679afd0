"""Parts of a whole, and counts of them: which logarithms show the graph of the logarithms behind them.

    .venv/bin/python benchmarks/compositions.py [--nodes 6 10 30] [--n 600] [--seeds 0 1 2]
    .venv/bin/python benchmarks/compositions.py --drawn 8 20 30      # pairs that a network of clr draws

A random Gaussian graph of logarithms with as many edges as nodes (of either sign), seen as shares, or as
multinomial counts whose totals differ (20 for each node, a factor of two up and down). AUPRC against the
graph by nodes as they are, their normal scores, log(1 + x), log-ratios to the mean of the row's logarithms
(the usual centred log-ratio) and to the level that ``marginals="clr"`` has, for three estimators.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import graphfield as gf
from graphfield.data.marginals import learn_map, normal_scores
from graphfield.metrics import auprc

MODELS = {
    "graphical lasso": gf.GraphicalLasso,
    "least squares": lambda: gf.RegGMM(center="constant"),
    "lasso of nodes": gf.NodewiseLasso,
}


def draw_parts(p: int, n: int, seed: int, *, counts: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows of parts, and the graph."""
    rng = np.random.default_rng(seed)
    pairs = np.argwhere(np.triu(np.ones((p, p)), 1))
    precision = np.eye(p)
    for j, k in rng.choice(pairs, p, replace=False):
        precision[j, k] = precision[k, j] = rng.choice([-0.3, 0.3])
    edges = (precision != 0) & ~np.eye(p, dtype=bool)
    precision += np.eye(p) * max(0, 0.1 - np.linalg.eigvalsh(precision)[0])
    logs = rng.multivariate_normal(np.zeros(p), np.linalg.inv(precision), n) + 1.5 * rng.normal(size=p)
    parts = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    if counts:
        totals = np.exp(rng.normal(np.log(20 * p), 0.7, n)).astype(int)
        parts = np.array([rng.multinomial(total, row) for total, row in zip(totals, parts, strict=True)])
    return parts.astype(np.float64), edges


def seen_as(X: np.ndarray) -> dict[str, np.ndarray]:
    names = [str(j) for j in range(X.shape[1])]
    logs = np.log(X + X[X > 0].min() / 2)
    found = {"as they are": X, "normal scores": normal_scores(X)}
    found["log1p"] = learn_map(X, "log1p", names).transform(X)
    found["less the mean"] = logs - logs.mean(axis=1, keepdims=True)
    found["clr"] = learn_map(X, "clr", names).transform(X)
    return found


def count_drawn(p: int, seed: int, n: int = 1_500) -> int:
    """Pairs with an edge in the graph of a network of log-ratios; two pairs of logarithms have one."""
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=(n, p))
    logs[:, 1] += 0.6 * logs[:, 0]
    logs[:, 3] += 0.6 * logs[:, 2]
    parts = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    model = gf.DNNCGM(marginals="clr", random_state=seed, max_steps=400)
    graph = model.fit(parts, rng.uniform(size=(n, 1))).predict_graph(np.array([[0.5]]))[0]
    return int(graph.sum() // 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[6, 10, 30])
    parser.add_argument("--n", type=int, default=600)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--drawn", type=int, nargs="+", metavar="PARTS")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for p in arguments.drawn or ():
        counts = [count_drawn(p, seed) for seed in arguments.seeds]
        print(f"{p} parts: {counts} of {p * (p - 1) // 2} pairs drawn, 2 true", flush=True)
    if arguments.drawn:
        return
    Z = np.random.default_rng(9).normal(size=(arguments.n, 1))
    for counts in (False, True):
        for p in arguments.nodes:
            drawn = [draw_parts(p, arguments.n, seed, counts=counts) for seed in arguments.seeds]
            for name in seen_as(drawn[0][0]):
                scores = {
                    model: np.mean(
                        [
                            auprc(make().fit(seen_as(X)[name], Z).edge_weights(Z[:1]), edges[None])[0]
                            for X, edges in drawn
                        ]
                    )
                    for model, make in MODELS.items()
                }
                told = ", ".join(f"{model} {score:.2f}" for model, score in scores.items())
                print(f"{'counts' if counts else 'shares'}, {p} nodes, {name}: {told}", flush=True)


if __name__ == "__main__":
    main()
