"""Do the intervals of ``infer_edges`` cover, and are its false discoveries as rare as they are said to be?

    .venv/bin/python benchmarks/inference.py coverage [--n 800 3000] [--p 10 50] [--sets 100] [--workers 2]
    .venv/bin/python benchmarks/inference.py fdr [--settings G1 ...] [--n 2000] [--sets 10] [--workers 2]
    .venv/bin/python benchmarks/inference.py null [--designs NAME ...] [--sets 100] [--workers 2]
    .venv/bin/python benchmarks/inference.py permuted [--tables wine ...] [--sets 100] [--workers 2]
    .venv/bin/python benchmarks/inference.py compare GROUP_DIFFERENCES.npz [--n 233 431 795] [--sets 60]
    .venv/bin/python benchmarks/inference.py random [--n 200 400] [--sets 60] [--workers 2]
    .venv/bin/python benchmarks/inference.py same [--noise t3 ...] [--n 100 200] [--sets 100] [--workers 2]
    .venv/bin/python benchmarks/inference.py ising [ISING_DIFFERENCES.npz] [--n 795 1467] [--sets 60]
    .venv/bin/python benchmarks/inference.py kinds [--n 150 300 800] [--sets 100] [--workers 2]
    .venv/bin/python benchmarks/inference.py kinds-null [--n 400 800 2000] [--sets 100] [--workers 2]
    .venv/bin/python benchmarks/inference.py moderated [--n 280 407] [--sets 100] [--workers 2]
    .venv/bin/python benchmarks/inference.py many [--sets 20] [--workers 2]
    .venv/bin/python benchmarks/inference.py time [--n 2000] [--p 100]

``coverage``: five edges of known shape, the share of values and of whole curves that intervals of 90 % cover,
and their width beside that of an oracle which knows all coefficients but those of the curve that is drawn.
``fdr``: false discoveries and power at .10 in the settings, for presence, movement and graphs at z. ``null``:
graphs that do not depend on what is tested; the share of p-values up to .05, and false discoveries at .10.
``permuted``: real tables of few rows (scikit-learn's) with rearranged covariates, so that nothing moves.
``compare``: pairs of covariances ``sigma1_SIZE``, ``sigma2_SIZE`` (sets, p, p); sensitivity and false
discoveries of ``compare_graphs`` at .10 beside z-tests of partial correlations with Benjamini-Hochberg, and
how often anything is found between two samples of the first graph. ``random``: the same for random graphs,
two or three of them. ``same``: samples of one graph, two or three, independent or of the same subjects, with
normal, heavy or skewed nodes. ``ising``: pairs of Ising models ``graph1_SIZE``, ``thresh1_SIZE``, ... (sets,
p, p), or without a file dense ones of our own with the same edges, of which some differ in size; and what is
found between two samples of the first model. ``kinds``: two samples of one distribution, of n and of n or 3 n
rows, with nodes of all kinds. ``kinds-null``: one graph of nodes of all kinds, or all binary, whose means
follow a number and a level; the share of p-values up to .05 of ``infer_edges``, also with each five rows as a
group, and false discoveries. ``moderated``: moderations of .2 in 12 nodes (Haslbeck, Borsboom and Waldorp).
``many``: 70 nodes, 120 covariates, 400 rows, one edge that follows two of them (SAGE; Meng, Zhang and Li).
All take ``--first-seed`` and ``--out FILE.json``. Set OMP_NUM_THREADS=1 with several workers.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import dependence_validity as validity
import numpy as np
import pandas as pd
from edge_designs import (
    NOISE,
    STILL_KINDS,
    STILL_PAIRS,
    dense_ising,
    ising_rows,
    many_covariates,
    mixed_rows,
    moderated,
    paired_rows,
    random_graphs,
    rows_of_graph,
    still_kinds,
)
from evidence import chain
from scipy.stats import false_discovery_control, norm
from seed_runs import write_lines
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

import graphfield as gf
from graphfield.inference.curve import curve_of_pair
from graphfield.inference.design import Design, Fit
from graphfield.inference.edge_tests import fit_scores
from graphfield.inference.pair_scores import Scores

SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "constant": lambda z: 0.3 + 0 * z,
    "linear": lambda z: 0.35 * z,
    "sine": lambda z: 0.3 * np.sin(np.pi * z),
    "hinge": lambda z: 0.5 * np.maximum(z, 0),
    "step": lambda z: 0.35 * (z > 0),
}
JUMP = 0.15  # values nearer to the jump of the step are not judged
SETTINGS = ("G1", "G2", "N1", "N2", "D1", "D2", "S1", "S2")


def shapes_data(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes of a chain whose first five edges have the shapes, z, and partial correlations (n, p, p)."""
    z = rng.uniform(-1, 1, n)
    partial = np.zeros((n, p, p))
    others = 0.3 * rng.choice([-1, 1], p)
    for j in range(p - 1):
        own = list(SHAPES.values())[j](z) if j < len(SHAPES) else others[j]
        partial[:, j, j + 1] = partial[:, j + 1, j] = own
    precision = np.eye(p) - partial
    root = np.linalg.cholesky(precision)
    X = np.linalg.solve(root.transpose(0, 2, 1), rng.normal(size=(n, p, 1)))[:, :, 0]
    return X, z, partial


def oracle_scores(X: np.ndarray, partial: np.ndarray, j: int) -> Scores:
    """Of the pair (j, j + 1), with the true coefficients; the diagonal of the precision is one."""
    left = X - np.einsum("ijk,ik->ij", partial, X)
    u, v, r = left[:, [j]], left[:, [j + 1]], partial[:, j, j + 1][:, None]
    return Scores(slice(j, j + 1), u * v + r * (u**2 + v**2) / 2 + r, r, u, v, np.ones(1))


def fit_oracle(scores: Scores, rows: object, design: Design) -> Fit:  # rows: all of them, as nothing is fixed
    return fit_scores(scores, design)[0]


def coverage_of(seed: int, n: int, p: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    X, z, correlations = shapes_data(rng, n, p)
    order = np.argsort(z)  # as infer_edges has them, for the oracle
    X, z, correlations = X[order], z[order], correlations[order]
    found = gf.infer_edges(X, pd.DataFrame({"z": z}), covariates=[], random_state=seed)
    lines = []
    for j, (name, shape) in enumerate(SHAPES.items()):
        edge = f"x{j + 1}", f"x{j + 2}", "z"
        single, whole = (found.bands(*edge, simultaneous=flag) for flag in (False, True))
        value = single["value"].to_numpy()
        judged = np.abs(value) > JUMP if name == "step" else np.full(len(value), True)
        truth = shape(value)
        fit = partial(fit_oracle, oracle_scores(X, correlations, j))
        best = curve_of_pair(fit, found.schema.encoder, found.encoded, None, "z", {}, 50)
        low, high = best.intervals(0.9, False, seed)
        line: dict[str, Any] = {"shape": name, "n": n, "p": p}
        for kind, band in (("pointwise", single), ("simultaneous", whole)):
            inside = ((band["low"] <= truth) & (truth <= band["high"]))[judged]
            line[kind] = float(inside.mean() if kind == "pointwise" else inside.all())
        ends = (found.table[side] == name for side, name in zip(("source", "target"), edge, strict=False))
        pair = int(np.flatnonzero(np.logical_and(*ends))[0])
        here = [found.pairs_at([pair]).at({"z": place})[pair] for place in value[judged]]
        inside = [one.low <= true <= one.high for one, true in zip(here, truth[judged], strict=True)]
        line["at_place"] = float(np.mean(inside))
        line["width"], line["oracle"] = (
            float((single["high"] - single["low"]).mean()),
            float((high - low).mean()),
        )
        lines.append({**line, "oracle_pointwise": float(((low <= truth) & (truth <= high))[judged].mean())})
    return lines


def rates(found: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """False discoveries and power."""
    false = float((found & ~truth).sum() / max(1, found.sum()))
    return false, float((found & truth).sum() / max(1, truth.sum()))


def moving_pairs(sim: gf.Simulation) -> np.ndarray:
    """Pairs whose partial correlation is not the same in all rows; of D2, all that have an edge at all."""
    precision = sim.precision
    if precision is None:
        return sim.skeleton.any(axis=0)
    root = np.sqrt(np.einsum("ijj->ij", precision))
    return np.ptp(precision / root[:, :, None] / root[:, None, :], axis=0) > 1e-6


def fdr_of(seed: int, name: str, n: int) -> list[dict[str, Any]]:
    sim = gf.make_setting(name, n, seed)
    start = time.perf_counter()
    found = gf.infer_edges(sim.X, sim.Z, covariates=[], random_state=seed)
    seconds = time.perf_counter() - start
    upper = np.triu_indices(sim.X.shape[1], 1)
    table, there, moves = found.table, sim.skeleton.any(axis=0)[upper], moving_pairs(sim)[upper]
    line: dict[str, Any] = {"setting": name, "n": n, "seconds": seconds}
    line["fdr"], line["power"] = rates((table.q_value <= 0.1).to_numpy(), there)
    line["fdr_cut"], line["power_cut"] = rates((table.estimate.abs() > 0.1).to_numpy(), there)
    line["fdr_moves"], line["power_moves"] = rates((table.q_varies <= 0.1).to_numpy(), moves)
    some = slice(0, 200)
    graph = found.predict_graph(sim.Z[some] if isinstance(sim.Z, np.ndarray) else sim.Z.iloc[some])
    line["fdr_at_z"], line["power_at_z"] = rates(graph[:, *upper], sim.skeleton[some][:, *upper])
    return [line]


def static(rng: np.random.Generator, n: int, p: int, q: int, heavy: bool) -> validity.Case:
    """A chain, and covariates that have nothing to do with it."""
    Z = pd.DataFrame(rng.uniform(-1, 1, size=(n, q)), columns=list("abcdefghij")[:q])
    return chain(rng, n, heavy=heavy, n_nodes=p), Z, {}, None


def tails(rng: np.random.Generator, n: int, noise: str, p: int = 10) -> validity.Case:
    """A chain of heavy or skewed nodes, a number and a category that have nothing to do with it."""
    partial_correlations = np.diag(np.full(p - 1, 0.35), 1) + np.diag(np.full(p - 1, 0.35), -1)
    Z = pd.DataFrame({"a": rng.normal(size=n), "site": np.array(list("uvw"))[rng.integers(0, 3, n)]})
    return rows_of_graph(rng, partial_correlations, n, noise), Z, {}, None


def visits(rng: np.random.Generator, own: float, n_groups: int = 60) -> validity.Case:
    """Subjects with eight rows, graphs of their own, an age, and a task that differs between rows."""
    label = np.repeat(np.arange(n_groups), 8)
    X = chain(rng, len(label), (0.4 + own * rng.normal(size=n_groups))[label], heavy=False)
    task = np.array(["rest", "work"])[rng.integers(0, 2, len(label))]
    Z = pd.DataFrame({"age": rng.normal(size=n_groups)[label], "task": task})
    return X, Z, {"groups": label}, None


def answers(rng: np.random.Generator, cuts: tuple[float, ...], n: int = 1_000, p: int = 8) -> validity.Case:
    """Independent answers on a scale with these cuts, whose means follow three covariates."""
    z = rng.normal(size=(n, 3))
    behind = rng.normal(size=(n, p)) + 0.2 * z @ rng.normal(size=(3, p))
    X = (behind[None] > np.quantile(behind, cuts, axis=0)[:, None]).sum(axis=0)
    return X.astype(float), pd.DataFrame(z, columns=list("abc")), {}, None


NULL: dict[str, Callable[[np.random.Generator], validity.Case]] = {
    "static-300-10": partial(static, n=300, p=10, q=1, heavy=False),
    "static-800-10-q3": partial(static, n=800, p=10, q=3, heavy=False),
    "static-500-50": partial(static, n=500, p=50, q=1, heavy=False),
    "heavy-500-10": partial(static, n=500, p=10, q=2, heavy=True),
    **{f"{noise}-{n}": partial(tails, n=n, noise=noise) for noise in NOISE for n in (100, 200, 500)},
    "answers-2": partial(answers, cuts=(0.3,)),
    "answers-3": partial(answers, cuts=(0.1, 0.3)),
    "answers-5": partial(answers, cuts=(0.2, 0.4, 0.6, 0.8)),
    "levels": partial(validity.levels, n=400, shares=(0.9, 0.05, 0.05), means=True, scales=True, heavy=False),
    "rare-levels": partial(
        validity.levels, n=300, shares=(0.92, 0.04, 0.04), means=True, scales=True, heavy=True
    ),
    **{name: validity.NULL[name] for name in ("mean-product", "mean-wave", "mean-jump", "mean-mixed")},
    "scale-wave": validity.NULL["scale-wave"],
    "irrelevant-sum": validity.NULL["irrelevant-sum"],
    "irrelevant-product": validity.NULL["irrelevant-product"],
    "visits": partial(visits, own=0.0),
    "visits-own-graphs": partial(visits, own=0.15),
    "uneven-groups": validity.uneven_groups,
    "owners": validity.owners,
    "drop-out": validity.drop_out,
    "rare-subjects": partial(validity.rare_in_groups, sizes=(2, 30), counts=(54, 6)),
    **{name: validity.NULL[name] for name in ("multiplied-wave", "multiplied-mixed", "panel")},
    **{name: validity.NULL[name] for name in ("multiplied-panel", "multiplied-drop-out")},
    **{name: validity.NULL[name] for name in ("year-effects", "year-effects-entries")},
}


def null_of(seed: int, name: str) -> list[dict[str, Any]]:
    X, Z, keys, covariate = NULL[name](np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gf.DataWarning)  # levels of groups
        found = gf.infer_edges(X, Z, random_state=seed, **keys)
    table = found.table
    first, second = np.triu_indices(X.shape[1], 1)
    absent = second > first + 1
    line: dict[str, Any] = {"design": name, "presence": float((table.p_value[absent] <= 0.05).mean())}
    line["presence_fdr"] = rates((table.q_value <= 0.1).to_numpy(), ~absent)[0]
    tested = [column.removeprefix("p_") for column in table.columns[7::2]]
    for own in ["varies", *tested] if covariate is None else [covariate]:
        p_values = table[f"p_{own}"]
        line[f"p_{own}"] = float((p_values <= 0.05).mean())
        line[f"p_{own}_edges"] = float((p_values[~absent] <= 0.05).mean())
        line[f"any_{own}"] = float((table[f"q_{own}"] <= 0.1).any())
    return [line]


def classes_of(read: Callable[..., Any], n_nodes: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes without means and scales of the classes, and the classes."""
    table = read(as_frame=True)
    X, label = table.data.iloc[:, :n_nodes], table.target.map(lambda code: f"class {code}")
    return (X - X.groupby(label).transform("mean")) / X.groupby(label).transform("std"), label.to_frame(
        "label"
    )


def patients() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measurements of patients, two of which are nearly copies, and their ages and sexes."""
    table = load_diabetes(as_frame=True, scaled=False).data
    return table.drop(columns=["age", "sex"]), table[["age", "sex"]].astype({"sex": str})


# Tables of scikit-learn, and how many rows are drawn.
PERMUTED: dict[str, tuple[Callable[[], tuple[pd.DataFrame, pd.DataFrame]], int]] = {
    "wine": (partial(classes_of, load_wine, 13), 178),
    "iris": (partial(classes_of, load_iris, 4), 150),
    "cancer": (partial(classes_of, load_breast_cancer, 10), 200),
    "diabetes": (patients, 200),
}


def permuted_of(seed: int, name: str) -> list[dict[str, Any]]:
    read, n_rows = PERMUTED[name]
    rng, (X, Z) = np.random.default_rng(seed), read()
    X = X.iloc[rng.choice(len(X), n_rows, replace=False)].reset_index(drop=True)
    Z = Z.iloc[rng.permutation(len(Z))[:n_rows]].reset_index(drop=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gf.DataWarning)  # nodes that are nearly sums of others
        found = gf.infer_edges(X, Z, covariates=[], random_state=seed).table
    line: dict[str, Any] = {"design": name, "n": n_rows}
    line |= {f"p_{level:g}": float((found.p_varies <= level).mean()) for level in (0.05, 0.005)}
    return [{**line, "any": float((found.q_varies <= 0.1).any())}]


def partial_of(covariance: np.ndarray) -> np.ndarray:
    """Partial correlations of all pairs."""
    precision = np.linalg.inv(covariance)
    root = np.sqrt(np.diag(precision))
    return (-precision / root / root[:, None])[np.triu_indices(len(root), 1)]


def compare_of(seed: int, file: Path, size: str, n: int) -> list[dict[str, Any]]:
    with np.load(file) as stored:
        pair = [stored[f"sigma{side}_{size}"][seed % 60].astype(float) for side in (1, 2)]
    rng = np.random.default_rng(seed)
    X, same = (
        np.vstack([rng.multivariate_normal(np.zeros(len(s)), s, n) for s in sides])
        for sides in (pair, pair[:1] * 2)
    )
    Z, a, b = pd.DataFrame({"group": np.repeat(["a", "b"], n)}), {"group": "a"}, {"group": "b"}
    truth = np.abs(partial_of(pair[0]) - partial_of(pair[1])) > 1e-3
    start = time.perf_counter()
    found = gf.compare_graphs(X, Z, a, b)
    line: dict[str, Any] = {"size": size, "n": n, "seconds": time.perf_counter() - start}
    line["fdr"], line["sensitivity"] = rates((found.q_value <= 0.1).to_numpy(), truth)
    line["type_1"] = float((found.p_value[~truth] <= 0.05).mean())
    line["covered"] = float(
        ((found.low <= partial_of(pair[1]) - partial_of(pair[0]))
         & (partial_of(pair[1]) - partial_of(pair[0]) <= found.high)).mean()
    )  # fmt: skip
    line["any_in_same"] = float((gf.compare_graphs(same, Z, a, b).q_value <= 0.1).any())
    z = np.arctanh([partial_of(np.cov(half.T)) for half in (X[:n], X[n:])])
    p_values = 2 * norm.sf(np.abs(z[0] - z[1]) / np.sqrt(2 / (n - X.shape[1] - 1)))
    line["z_fdr"], line["z_sensitivity"] = rates(false_discovery_control(p_values) <= 0.1, truth)
    return [line]


# Nodes, share of pairs with an edge, share that differs, whether by edges that are absent from the others.
RANDOM = [(17, 0.15, 0.1, False), (17, 0.3, 0.15, False), (17, 0.2, 0.1, True), (25, 0.1, 0.03, True)]
RANDOM += [(10, 0.4, 0.2, True), (12, 0.2, 0.05, False)]


def random_of(seed: int, n: int, design: tuple, n_graphs: int = 2) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    p, density, share, removed = design
    graphs = random_graphs(rng, p, density, share, removed, n_graphs)
    upper = np.triu_indices(p, 1)
    truth = np.ptp([graph[upper] for graph in graphs], axis=0) > 1e-3
    X = np.vstack([rows_of_graph(rng, graph, n) for graph in graphs])
    start = time.perf_counter()
    found = compare_times(X, np.repeat([f"t{i}" for i in range(n_graphs)], n))
    name = f"p={p} edges={density} differ={share}{' removed' if removed else ''} graphs={n_graphs}"
    line: dict[str, Any] = {"design": name, "n": n, "seconds": time.perf_counter() - start}
    line["fdr"], line["sensitivity"] = rates((found.q_value <= 0.1).to_numpy(), truth)
    line["type_1"] = float((found.p_value[~truth] <= 0.05).mean())
    line["bh_fdr"], line["bh_sensitivity"] = rates(false_discovery_control(found.p_value) <= 0.1, truth)
    return [line]


def compare_times(X: np.ndarray, times: np.ndarray, groups: np.ndarray | None = None) -> pd.DataFrame:
    sides = [{"time": time} for time in np.unique(times)]
    return gf.compare_graphs(X, pd.DataFrame({"time": times}), *sides, groups=groups)


def same_of(seed: int, n: int, noise: str, n_graphs: int, own: float) -> list[dict[str, Any]]:
    """Of one graph; ``own`` is how much of a row a subject brings along, none without subjects."""
    rng = np.random.default_rng(seed)
    graphs = random_graphs(rng, 12, 0.2, 0.0, False)[:1] * n_graphs
    X, Z, subjects = paired_rows(rng, graphs, n, noise, own)
    found = compare_times(X, Z.time.to_numpy(), subjects if own else None)
    edges = graphs[0][np.triu_indices(12, 1)] != 0
    name = f"{noise} {n_graphs} samples{' of the same subjects' if own else ''}"
    line: dict[str, Any] = {"design": name, "n": n, "type_1": float((found.p_value <= 0.05).mean())}
    line["type_1_edges"] = float((found.p_value[edges] <= 0.05).mean())
    line["any"] = float((found.q_value <= 0.1).any())
    return [line]


def ising_of(seed: int, n: int, file: Path | None, size: str) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    if file is None:
        models = dense_ising(rng)
    else:
        with np.load(file) as stored:
            models = [
                (stored[f"graph{side}_{size}"][seed % 60], stored[f"thresh{side}_{size}"][seed % 60])
                for side in (1, 2)
            ]
    truth = np.abs(models[0][0] - models[1][0])[np.triu_indices(len(models[0][0]), 1)] > 1e-9
    X, same = (np.vstack([ising_rows(rng, *model, n) for model in both]) for both in (models, models[:1] * 2))
    start = time.perf_counter(), time.process_time()
    found = compare_times(X, np.repeat(["a", "b"], n))
    line: dict[str, Any] = {"design": "dense" if file is None else f"published {size}", "n": n}
    line["seconds"] = time.perf_counter() - start[0]
    line["processor_seconds"] = time.process_time() - start[1]
    for level in (0.05, 0.1, 0.2):
        false, line[f"sensitivity_{level}"] = rates((found.q_value <= level).to_numpy(), truth)
        line[f"precision_{level}"] = 1 - false
    line["bh_fdr"], line["bh_sensitivity"] = rates(false_discovery_control(found.p_value) <= 0.1, truth)
    line["type_1"] = float((found.p_value[~truth] <= 0.05).mean())
    nothing = compare_times(same, np.repeat(["a", "b"], n))
    line["type_1_same"] = float((nothing.p_value <= 0.05).mean())
    line["found_in_same"] = int((nothing.q_value <= 0.1).sum())
    return [{**line, "any_in_same": float((nothing.q_value <= 0.1).any())}]


def kinds_of(seed: int, n: int, times: int) -> list[dict[str, Any]]:
    X = mixed_rows(np.random.default_rng(seed), n * (1 + times))
    counts = {name: "count" for name in X if name.startswith("count")}
    group = np.repeat(["a", "b"], (n, n * times))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gf.DataWarning)  # levels that few rows do not have
        found = gf.compare_graphs(X, pd.DataFrame({"group": group}), "group", node_types=counts)
    line: dict[str, Any] = {"design": f"{n} and {n * times} rows", "n": n}
    for level in (0.01, 0.05):
        line[f"type_1_{level}"] = float((found.p_value <= level).mean())
    neighbours = np.flatnonzero(np.subtract(*np.triu_indices(X.shape[1], 1)[::-1]) == 1)
    line["type_1_edges"] = float((found.p_value[neighbours] <= 0.05).mean())
    rare = found.source.str.startswith("rare") | found.target.str.startswith("rare")
    line["type_1_rare"] = float((found.p_value[rare] <= 0.05).mean())
    return [{**line, "any": float((found.q_value <= 0.1).any())}]


def kinds_null_of(seed: int, n: int, kinds: str, grouped: bool) -> list[dict[str, Any]]:
    X, Z, types = still_kinds(np.random.default_rng(seed), n, kinds)
    groups = np.arange(n) // 5 if grouped else None
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gf.DataWarning)
        found = gf.infer_edges(X, Z, groups=groups, node_types=types, random_state=seed).table
    line: dict[str, Any] = {"design": f"{kinds}{' in groups' if grouped else ''}", "n": n}
    line["seconds"] = time.perf_counter() - start
    edges = np.array([pair in STILL_PAIRS for pair in zip(*np.triu_indices(X.shape[1], 1), strict=True)])
    line["presence"] = float((found.p_value[~edges] <= 0.05).mean())
    line["presence_fdr"], line["presence_power"] = rates((found.q_value <= 0.1).to_numpy(), edges)
    for own in ("varies", "z", "level"):
        line[f"p_{own}"] = float((found[f"p_{own}"] <= 0.05).mean())
        line[f"p_{own}_edges"] = float((found[f"p_{own}"][edges] <= 0.05).mean())
    return [{**line, "any_varies": float((found.q_varies <= 0.1).any())}]


def moderated_of(seed: int, n: int) -> list[dict[str, Any]]:
    X, Z, beside, alone = moderated(np.random.default_rng(seed), n)
    found = gf.infer_edges(X, Z, covariates=[]).table
    upper = np.transpose(np.triu_indices(12, 1)).tolist()
    both = [[upper.index(pair) for pair in kind.tolist()] for kind in (beside, alone)]
    line: dict[str, Any] = {"design": "moderated", "n": n}
    for level in (0.02, 0.05, 0.1):
        clear = (found.q_varies <= level).to_numpy()
        right = [int(clear[kind].sum()) for kind in both]
        name = f"{level:g}"[1:]
        line[f"beside_{name}"], line[f"alone_{name}"] = (number / 2 for number in right)
        line[f"found_{name}"], line[f"false_{name}"] = int(clear.sum()), int(clear.sum() - sum(right))
        line[f"fdr_{name}"] = line[f"false_{name}"] / max(1, clear.sum())
    known = np.setdiff1d(np.arange(len(upper)), both)
    return [{**line, "type_1": float((found.p_varies[known] <= 0.05).mean())}]


def many_of(seed: int) -> list[dict[str, Any]]:
    X, Z = many_covariates(np.random.default_rng(seed), 400, 70, 120)
    start = time.perf_counter()
    found = gf.infer_edges(X, Z)
    line: dict[str, Any] = {"design": "70 nodes, 120 covariates", "n": len(X)}
    line["seconds"] = time.perf_counter() - start
    line["peak_MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    p_values, q_values = (found.table[[f"{kind}_{name}" for name in Z]].to_numpy() for kind in "pq")
    clear = q_values <= 0.1
    truth = np.zeros_like(clear)
    truth[0, :2] = True
    line["fdr"], line["sensitivity"] = rates(clear, truth)
    line["both"] = float((clear & truth).sum() == 2)
    return [{**line, "type_1": float((p_values[~truth] <= 0.05).mean())}]


def averages(work: Callable[[int], list[dict[str, Any]]], arguments: argparse.Namespace) -> Iterator[dict]:
    """Means over seeds of the numbers, line by line."""
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.sets)
    with ProcessPoolExecutor(arguments.workers) as pool:
        lines = pd.DataFrame([line for part in pool.map(work, seeds) for line in part])
    keys = [name for name in ("shape", "setting", "design", "size", "n", "p") if name in lines]
    for key, part in lines.groupby(keys, sort=False):
        means = part.drop(columns=keys).mean()
        yield {**dict(zip(keys, map(str, key), strict=True)), "sets": len(part), **means.round(4).to_dict()}


def work_of(arguments: argparse.Namespace) -> Iterable[Callable[[int], list[dict[str, Any]]]]:
    if arguments.command == "coverage":
        return [partial(coverage_of, n=n, p=p) for n in arguments.n for p in arguments.p]
    if arguments.command == "fdr":
        return [partial(fdr_of, name=name, n=arguments.n) for name in arguments.settings]
    if arguments.command == "compare":
        return [partial(compare_of, file=arguments.file, size=arguments.size, n=n) for n in arguments.n]
    if arguments.command == "random":
        cases = [*((design, 2) for design in RANDOM), (RANDOM[0], 3)]
        return [partial(random_of, n=n, design=d, n_graphs=k) for n in arguments.n for d, k in cases]
    if arguments.command == "same":
        cases = [(noise, k, own) for noise in arguments.noise for k in (2, 3) for own in (0.0, 0.5)]
        return [partial(same_of, n=n, noise=e, n_graphs=k, own=o) for n in arguments.n for e, k, o in cases]
    if arguments.command == "ising":
        return [partial(ising_of, n=n, file=arguments.file, size=arguments.size) for n in arguments.n]
    if arguments.command == "kinds":
        return [partial(kinds_of, n=n, times=times) for n in arguments.n for times in (1, 3)]
    if arguments.command == "kinds-null":
        cases = [(kinds, grouped) for kinds in STILL_KINDS for grouped in (False, True)]
        return [partial(kinds_null_of, n=n, kinds=k, grouped=g) for n in arguments.n for k, g in cases]
    if arguments.command == "moderated":
        return [partial(moderated_of, n=n) for n in arguments.n]
    if arguments.command == "permuted":
        return [partial(permuted_of, name=name) for name in arguments.tables]
    if arguments.command == "many":
        return [many_of]
    return [partial(null_of, name=name) for name in arguments.designs]


def time_of(n: int, p: int) -> dict[str, Any]:
    X, Z, _, _ = static(np.random.default_rng(0), n, p, 2, False)
    start = time.perf_counter()
    gf.infer_edges(X, Z, random_state=0)
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"n": n, "p": p, "seconds": round(seconds, 1), "peak_MiB": round(memory)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, sets in (
        ("coverage", 100),
        ("fdr", 10),
        ("null", 100),
        ("permuted", 100),
        ("compare", 60),
        ("random", 60),
        ("same", 100),
        ("ising", 60),
        ("kinds", 100),
        ("kinds-null", 100),
        ("moderated", 100),
        ("many", 20),
        ("time", 1),
    ):
        command = commands.add_parser(name)
        command.add_argument("--sets", type=int, default=sets)
        command.add_argument("--workers", type=int, default=1)
        command.add_argument("--first-seed", type=int, default=40_000)
        command.add_argument("--out", type=Path)
        if name == "coverage":
            command.add_argument("--n", type=int, nargs="+", default=[800, 3_000])
            command.add_argument("--p", type=int, nargs="+", default=[10, 50])
        elif name == "compare":
            command.add_argument("file", type=Path)
            command.add_argument("--size", default="0.2")
            command.add_argument("--n", type=int, nargs="+", default=[233, 431, 795])
        elif name == "ising":
            command.add_argument("file", type=Path, nargs="?")
            command.add_argument("--size", default="0.6")
            command.add_argument("--n", type=int, nargs="+", default=[795, 1_467])
        elif name in ("random", "same", "kinds", "kinds-null", "moderated"):
            default = {
                "random": [200, 400],
                "same": [100, 200],
                "kinds": [150, 300, 800],
                "kinds-null": [400, 800, 2_000],
                "moderated": [280, 407, 591],
            }[name]
            command.add_argument("--n", type=int, nargs="+", default=default)
            command.add_argument("--noise", nargs="+", choices=tuple(NOISE), default=list(NOISE))
        elif name == "null":
            command.add_argument("--designs", nargs="+", choices=tuple(NULL), default=list(NULL))
        elif name == "permuted":
            command.add_argument("--tables", nargs="+", choices=tuple(PERMUTED), default=list(PERMUTED))
        else:
            command.add_argument("--n", type=int, default=2_000)
            command.add_argument("--p", type=int, default=100)
            command.add_argument("--settings", nargs="+", choices=SETTINGS, default=SETTINGS)
    arguments = parser.parse_args()
    if arguments.command == "time":
        write_lines([time_of(arguments.n, arguments.p)], arguments.out, {"command": "time"})
        return
    about = {"command": arguments.command, "first_seed": arguments.first_seed, "sets": arguments.sets}
    lines = (line for work in work_of(arguments) for line in averages(work, arguments))
    write_lines(lines, arguments.out, about)


if __name__ == "__main__":
    main()
