"""Nodes of any kind: families beside the same nodes taken as numbers; one graph, edges linear in z, mixtures.

    .venv/bin/python benchmarks/kinds.py [--settings I1 M1] [--n 1000] [--seeds 0 1] [--models mixture]
        [--table group_mixed.csv]
    .venv/bin/python benchmarks/kinds.py --settings --ordinal

AUPRC against the true graphs, explained deviance (R^2 where all are numbers) of new rows, and seconds. The
oracle (AUPRC alone) is told how every pair would move with z if it was an edge, and not which are. With
``--models``, those whose names begin so. With ``--table`` (x3 binary, x5 of three levels, x7 the group), also
the edges of each group, and how far edges differ between groups that are shuffled. With ``--ordinal``, the
log loss of ``predict_proba`` on new rows of three ordinal nodes of a chain of six, cut from a Gaussian graph,
beside shares alone and a multinomial logistic regression.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

import graphfield as gf
from graphfield.metrics import auprc
from graphfield.simulate.field import Waves
from graphfield.simulate.moving_pairs import FREQUENCY, MovingPairs

N_TEST = 500
N_SHUFFLES = 100


def compare_kinds(setting: str, n: int, seed: int, wanted: tuple[str, ...]) -> None:
    sim = gf.make_setting(setting, n + N_TEST, seed)
    types = {f"x{j + 1}": kind for j, kind in enumerate(sim.node_types)}
    models = {
        "static, numbers": gf.NodewiseLasso(),
        "static, families": gf.NodewiseLasso(node_types=types),
        "tree, numbers": gf.TreeCGM(random_state=0),
        "tree, families": gf.TreeCGM(random_state=0, node_types=types),
        "linear, numbers": gf.RegGMM(),
        "linear, families": gf.RegGMM(node_types=types),
        "sparse linear, families": gf.RegGMM(penalty="sparse-group", node_types=types),
        "mixture, numbers": gf.DNNCGM(random_state=seed),
        "mixture, families": gf.DNNCGM(random_state=seed, node_types=types),
    }
    for name, model in models.items():
        if not name.startswith(wanted):
            continue
        start = time.perf_counter()
        model.fit(sim.X[:n], sim.Z[:n])
        seconds = time.perf_counter() - start
        found = auprc(model.edge_weights(sim.Z[n:]), sim.skeleton[n:]).mean()
        score = model.score(sim.X[n:], sim.Z[n:])
        line = f"{setting} n={n} seed={seed} {name:24s} AUPRC {found:.3f} score {score:.3f} {seconds:.1f} s"
        print(line, flush=True)

    if "oracle".startswith(wanted):
        start = time.perf_counter()
        best, plain = score_oracle(sim, n)
        seconds = time.perf_counter() - start
        scores = f"AUPRC {best:.3f}, without a penalty {plain:.3f}"
        print(f"{setting} n={n} seed={seed} {'oracle':24s} {scores} {seconds:.1f} s", flush=True)


# What the oracle takes off the sizes of all pairs, as a penalty would; it is told the best.
TAKEN_OFF = np.linspace(0.0, 0.3, 31)


def score_oracle(sim: gf.Simulation, n: int) -> tuple[float, float]:
    """AUPRC at the rows after the first n of regressions that are told all shapes in z.

    Levels are linear in z, as in truth. A pair has the wave of its edge, or another, drawn as these were,
    where it is none. What is left to be found from n rows is one block of coefficients a pair, by likelihood.
    The first number is with the best penalty, the second without one.
    """
    field, heights = sim.field, pair_heights(sim)
    nodes = field.column_nodes
    columns = [kind.columns(x) - kind.centre for kind, x in zip(field.kinds, sim.X[:n].T, strict=True)]
    neighbours, p = np.hstack(columns), len(columns)
    sizes = np.zeros((p, p))
    for j, kind in enumerate(sim.node_types):
        others = nodes != j
        moving = (heights[:n, j, nodes] * neighbours)[:, others]
        added = added_effects(kind, np.hstack([moving, sim.Z[:n]]), sim.X[:n, j])  # (columns, links)
        for k in np.flatnonzero(np.arange(p) != j):
            effect = columns[k] @ added[: others.sum()][nodes[others] == k]
            sizes[j, k] = np.sqrt(effect.var(axis=0).sum())
    left = (np.maximum(0.0, (sizes + sizes.T) / 2 - taken) for taken in TAKEN_OFF)
    scores = [float(auprc(heights[n:] * size, sim.skeleton[n:]).mean()) for size in left]
    return max(scores), scores[0]


def pair_heights(sim: gf.Simulation) -> np.ndarray:
    """How each pair moves with z if it is an edge, (rows, p, p)."""
    field, p = sim.field, len(sim.node_types)
    assert isinstance(field, MovingPairs)
    first, second = np.triu_indices(p, 1)
    drawn = Waves(len(first), sim.Z.shape[1], FREQUENCY, np.random.default_rng(0)).at(sim.Z)
    heights = np.zeros((len(sim.Z), p, p))
    heights[:, first, second] = drawn
    heights[:, *field.pairs.T] = heights[:, *field.pairs[:, ::-1].T] = field.waves.at(sim.Z)
    heights[:, second, first] = heights[:, first, second]
    return np.maximum(0.0, heights)


def added_effects(kind: str, design: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Of the columns of a design, hardly penalised, (columns, links), in units of what is left of the node.

    These units make the size of an effect a correlation between numbers, and comparable between kinds.
    """
    if kind == "gaussian":
        model = LinearRegression().fit(design, x)
        return model.coef_[:, None] / (x - model.predict(design)).std()
    if kind == "count":
        model = PoissonRegressor(alpha=1e-4, max_iter=1_000).fit(design, x)
        return model.coef_[:, None] * np.sqrt(x.mean())
    model = LogisticRegression(C=100, max_iter=1_000).fit(design, x)
    coef = model.coef_.T
    shares = np.bincount(x.astype(int)) / len(x)
    if len(shares) == 2:
        return coef * np.sqrt(shares.prod())
    return (coef - coef @ shares[:, None]) * np.sqrt(shares)  # the variance of effects over levels


def show_groups(path: Path) -> None:
    table = pd.read_csv(path)
    X, Z = table.drop(columns="x7"), table[["x7"]].astype(str)
    at = Z.drop_duplicates().sort_values("x7")
    types = {"x3": "binary", "x5": "categorical"}
    models = {
        "by group, no penalty": gf.ByCluster(estimator=gf.NodewiseLasso(penalty=1e-6, node_types=types)),
        "linear": gf.RegGMM(node_types=types),
        "sparse linear": gf.RegGMM(penalty="sparse-group", node_types=types),
        "mixture": gf.DNNCGM(random_state=0, node_types=types),
    }
    for name, model in models.items():
        start = time.perf_counter()
        model.fit(X, Z)
        print(f"{path.name} {name}, {time.perf_counter() - start:.1f} s")
        strength = model.partial_correlations(at)
        present = np.triu(model.predict_graph(at).any(axis=0))
        for j, k in np.argwhere(present):
            values = " / ".join(f"{value:+.3f}" for value in strength[:, j, k])
            moves = np.ptp(strength[:, j, k])
            print(f"  {X.columns[j]}-{X.columns[k]} {values} range {moves:.3f}")
    rng, same = np.random.default_rng(0), gf.RegGMM(node_types=types)
    # What chance alone moves: no edge differs between groups of shuffled rows.
    fits = (same.fit(X, Z.iloc[rng.permutation(len(Z))].reset_index(drop=True)) for _ in range(N_SHUFFLES))
    moves = np.array([np.ptp(fit.partial_correlations(at), axis=0) for fit in fits])
    for j, k in np.argwhere(present):
        some = moves[:, j, k]
        line = f"median range {np.median(some):.3f}, above .05 in {(some > 0.05).mean():.2f}"
        print(f"  {X.columns[j]}-{X.columns[k]} groups shuffled: {line}")


# Shares below the cuts of a scale.
SCALES = {
    "3 levels, few in the middle": (0.4, 0.6),
    "4 levels, even": (0.25, 0.5, 0.75),
    "4 levels, skewed": (0.6, 0.85, 0.95),
    "5 levels, skewed": (0.1, 0.2, 0.3, 0.5),
    "7 levels, even": tuple(np.arange(1, 7) / 7),
}


def compare_ordinal(cuts: tuple[float, ...], edge: float, seed: int, n: int = 600) -> list[float]:
    """Log losses on new rows: shares, ours, multinomial regression."""
    chain = np.eye(6) - edge * (np.eye(6, k=1) + np.eye(6, k=-1))
    latent = np.random.default_rng(seed).multivariate_normal(np.zeros(6), np.linalg.inv(chain), n + 1_000)
    table = pd.DataFrame(latent / latent.std(axis=0)).rename(columns="x{}".format)
    ordinal = list(table.columns[:3])
    for name in ordinal:
        table[name] = np.digitize(table[name], norm.ppf(cuts))
    Z = np.zeros((len(table), 1)) + np.arange(len(table))[:, None] % 2
    model = gf.RegGMM(center="constant", node_types=dict.fromkeys(ordinal, "ordinal")).fit(table[:n], Z[:n])
    losses = []
    for name in ordinal:
        others, answer = table.drop(columns=name), table[name].to_numpy()
        known = LogisticRegression(C=10, max_iter=500).fit(others[:n], answer[:n])
        shares = np.tile(np.bincount(answer[:n]) / n, (len(table) - n, 1))
        ours = model.predict_proba(table[n:], Z[n:], name).to_numpy()
        rows = np.arange(len(table) - n), answer[n:]
        losses.append([-np.log(p[rows]).mean() for p in (shares, ours, known.predict_proba(others[n:]))])
    return list(np.mean(losses, axis=0))


def show_ordinal(seeds: list[int]) -> None:
    for edge in (0.3, 0.5):
        for name, cuts in SCALES.items():
            shares, ours, known = np.mean([compare_ordinal(cuts, edge, seed) for seed in seeds], axis=0)
            print(f"{name}, edges {edge}: shares {shares:.3f}, ours {ours:.3f}, multinomial {known:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", nargs="*", default=["I1", "M1"])
    parser.add_argument("--n", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--models", nargs="+", default=[""])
    parser.add_argument("--table", type=Path)
    parser.add_argument("--ordinal", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", gf.ThresholdWarning)
    for setting in arguments.settings:
        for seed in arguments.seeds:
            compare_kinds(setting, arguments.n, seed, tuple(arguments.models))
    if arguments.table is not None:
        show_groups(arguments.table)
    if arguments.ordinal:
        show_ordinal(arguments.seeds)


if __name__ == "__main__":
    main()
