"""Do the bounds and intervals of ``stability`` hold, and do the plans of ``plan_samples``?

    .venv/bin/python benchmarks/stability.py bound [--estimators linear static ...] [--n 400] [--p 20]
    .venv/bin/python benchmarks/stability.py settings [--settings G1 D1] [--estimators linear] [--n 1000]
    .venv/bin/python benchmarks/stability.py intervals [--estimators linear static] [--n 400] [--p 10]
    .venv/bin/python benchmarks/stability.py tables DATA_FOLDER [--tables nhanes ...] [--n 1000]
    .venv/bin/python benchmarks/stability.py plan [--settings S1 ...] [--question edges]
    .venv/bin/python benchmarks/stability.py pilot [--estimators linear static dnncgm] [--n 300 1000] [--p 10]

``bound``: a chain whose first five edges follow z; how many pairs without an edge are selected, beside the
bounds on that, by the share of half-samples. ``settings``: the same in settings of the package.
``intervals``: the share of true centralities (of the average graph of the same chain) that intervals of 95 %
cover: quantiles over rows drawn with replacement, and the estimate plus what halves differ from their mean.
``tables``: CS coefficients and times of real tables. ``plan``: power in fresh tables with as many rows as
were planned for a known truth. ``pilot``: rows planned from fitted models over rows planned from the truth.
All take ``--sets``, ``--workers``, ``--first-seed`` and ``--out FILE.json``. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from seed_runs import write_lines

import graphfield as gf
from graphfield.cli.values import estimator_class
from graphfield.graphs.centrality import CENTRALITIES
from graphfield.inference.selection_bounds import ASSUMPTIONS
from graphfield.simulate.gaussian import GaussianField
from inference import SHAPES, moving_pairs, rates, shapes_data

FREQUENCIES = (0.6, 0.75, 0.9, 1.0)
Line = dict[str, Any]


def upper(matrices: np.ndarray) -> np.ndarray:
    return matrices[..., *np.triu_indices(matrices.shape[-1], 1)]


def judged_selection(found: gf.Stability, there: np.ndarray, about: Line) -> Iterator[Line]:
    table = found.table
    all_rows = table.partial_correlation.to_numpy() != 0
    alone = {"edges_all_rows": all_rows.sum(), "false_all_rows": (all_rows & ~there).sum()}
    for frequency in FREQUENCIES:
        kept = table.frequency.to_numpy() >= frequency - 1e-9
        line = {**about, "frequency": frequency, **alone, "edges": kept.sum(), "false": (kept & ~there).sum()}
        line["power"] = rates(kept, there)[1]
        yield line | {kind: found.expected_false(frequency, kind) for kind in ASSUMPTIONS}


def bound_of(seed: int, name: str, n: int, p: int) -> list[Line]:
    X, z, partials = shapes_data(np.random.default_rng(seed), n, p)
    keys = {"n_drops": 0, "n_bootstraps": 0, "random_state": seed}
    start = time.perf_counter()
    found = gf.stability(estimator_class(name)(), X, pd.DataFrame({"z": z}), **keys)
    about = {"estimator": name, "n": n, "p": p, "seconds": time.perf_counter() - start}
    return list(judged_selection(found, upper((partials != 0).any(axis=0)), about))


def setting_of(seed: int, setting: str, name: str, n: int) -> list[Line]:
    sim = gf.make_setting(setting, n, seed)
    keys = {"n_drops": 0, "n_bootstraps": 0, "random_state": seed}
    start = time.perf_counter()
    found = gf.stability(estimator_class(name)(), sim.X, sim.Z, **keys)
    about = {"setting": setting, "estimator": name, "n": n, "seconds": time.perf_counter() - start}
    return list(judged_selection(found, upper(sim.skeleton.any(axis=0)), about))


def intervals_of(seed: int, name: str, n: int, p: int) -> list[Line]:
    X, z, partials = shapes_data(np.random.default_rng(seed), n, p)
    true_graph = upper(partials.mean(axis=0))[None]
    true_graph[np.abs(true_graph) < 0.05] = 0  # averages of zero, but for the rows drawn
    keys = {"n_drops": 0, "n_pairs": 50, "n_bootstraps": 100, "random_state": seed}
    found = gf.stability(estimator_class(name)(), X, pd.DataFrame({"z": z}), **keys)
    lines = []
    for measure in CENTRALITIES:
        true = found._centralities(measure, true_graph)[0]
        estimate, draws, halves = (
            found._centralities(measure, found._of_kind(kind)) for kind in ("all", "draw", "half")
        )
        ends = {
            "drawn": np.quantile(draws, [0.025, 0.975], axis=0),
            "centred": estimate + np.quantile(draws - draws.mean(axis=0), [0.025, 0.975], axis=0),
            "halves": estimate + np.quantile(halves - halves.mean(axis=0), [0.025, 0.975], axis=0),
        }
        line: Line = {"estimator": name, "n": n, "p": p, "measure": measure}
        line["bias"] = float((estimate[0] - true).mean())
        for kind, (low, high) in ends.items():
            line[kind] = float(((low <= true) & (true <= high)).mean())
            line[f"{kind}_width"] = float((high - low).mean())
        lines.append(line)
    return lines


def real_table(folder: Path, name: str, n: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows without gaps, drawn at random."""
    if name == "dass":
        table = pd.read_csv(folder / "mixed" / "dass.csv", nrows=5_000)
        nodes = table.iloc[:, :42]
        Z = table[["age", "gender"]]
    else:
        spec = importlib.util.spec_from_file_location("load", folder / "load.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        data = module.load(name)
        values = np.log(data["x"]) if name == "sachs" else data["x"]
        nodes = pd.DataFrame(values, columns=list(map(str, data["x_names"])))
        numbers = pd.DataFrame(data["z_num"], columns=list(map(str, data["z_num_names"])))
        Z = numbers.assign(**data["z_cat"])
        Z = Z.drop(columns=[c for c in Z if c in ("poverty_ratio",)])
    whole = nodes.notna().all(axis=1) & Z.notna().all(axis=1)
    rows = np.random.default_rng(seed).choice(np.flatnonzero(whole), min(n, int(whole.sum())), replace=False)
    return nodes.iloc[rows].reset_index(drop=True), Z.iloc[rows].reset_index(drop=True)


def table_of(seed: int, folder: Path, table: str, name: str, n: int) -> list[Line]:
    X, Z = real_table(folder, table, n, seed)
    start = time.perf_counter()
    found = gf.stability(estimator_class(name)(), X, Z, n_bootstraps=0, random_state=seed)
    line: Line = {"table": table, "estimator": name, "n": len(X), "p": X.shape[1]}
    line["fits"], line["seconds"] = len(found.graphs), time.perf_counter() - start
    line |= {f"cs_{measure}": found.cs_coefficient(measure) for measure in CENTRALITIES}
    line["edges"], line["edges_in_90"] = (
        int((found.table.partial_correlation != 0).sum()),
        len(found.edges(0.9)),
    )
    return [line | {f"false_{kind}": found.expected_false(0.9, kind) for kind in ASSUMPTIONS}]


def power_at(field: Any, there: np.ndarray, question: str, n: int, seed: int) -> tuple[float, float]:
    """Share of false ones, and power."""
    covariate_rng, noise_rng = np.random.default_rng(seed).spawn(2)
    Z = field.covariates(n, covariate_rng)
    table = gf.infer_edges(field.sample(Z, noise_rng), Z, covariates=[], random_state=seed).table
    return rates((table["q_value" if question == "edges" else "q_varies"] <= 0.1).to_numpy(), there)


def plan_of(seed: int, setting: str, question: str) -> list[Line]:
    """The fresh tables have other seeds, and as many of them as four numbers of rows of the plan."""
    start = time.perf_counter()
    sim = gf.make_setting(setting, 2_000, seed)
    plan = gf.plan_samples(sim, question=question, random_state=seed, n_sets=6)
    line: Line = {"setting": setting, "question": question, "planned": plan.n_rows or np.nan}
    line |= {"low": plan.low, "high": plan.high, "plan_seconds": time.perf_counter() - start}
    if plan.n_rows is not None:
        there = upper(sim.skeleton.any(axis=0) if question == "edges" else moving_pairs(sim))
        fresh = [power_at(sim.field, there, question, plan.n_rows, 10**6 + 100 * seed + k) for k in range(8)]
        line["fdr"], line["power"] = np.mean(fresh, axis=0)
    return [line]


class Chain(GaussianField):
    """The chain of ``bound`` as a truth: its first five edges follow z, the others are .3 or -.3."""

    def __init__(self, p: int, seed: int) -> None:
        self.candidates = np.zeros((1, p, p))
        self.others = 0.3 * np.random.default_rng(seed).choice([-1, 1], p)

    def covariates(self, n_samples: int, rng: np.random.Generator) -> pd.DataFrame:
        return pd.DataFrame({"z": rng.uniform(-1, 1, n_samples)})

    def regime(self, Z: pd.DataFrame) -> np.ndarray:
        return np.zeros(len(Z), dtype=np.int64)

    def skeleton(self, Z: pd.DataFrame) -> np.ndarray:
        return self.precision(Z) * (1 - np.eye(len(self.others))) != 0

    def precision(self, Z: pd.DataFrame) -> np.ndarray:
        shapes = list(SHAPES.values())
        p, z = len(self.others), Z["z"].to_numpy()
        precision = np.tile(np.eye(p), (len(z), 1, 1))
        for j in range(p - 1):
            own = shapes[j](z) if j < len(shapes) else self.others[j]
            precision[:, j, j + 1] = precision[:, j + 1, j] = -own
        return precision


def pilot_of(seed: int, name: str, n: int, p: int, question: str, least: float) -> list[Line]:
    """Rows planned from a fit to n rows, and from the truth behind them."""
    truth, rng = Chain(p, seed), np.random.default_rng(seed)
    Z = truth.covariates(n, rng)
    X = truth.sample(Z, rng)
    model = estimator_class(name)(**({"random_state": seed} if name == "dnncgm" else {})).fit(X, Z)
    line: Line = {"estimator": name, "n": n, "p": p, "question": question, "least": least}
    keys = {"question": question, "random_state": seed, "n_sets": 8, "most_rows": 8_000, "least": least}
    best = gf.plan_samples(gf.Simulation("chain", X, Z, truth), **keys).n_rows or 8_000
    try:
        plan = gf.plan_samples(model, Z=Z, **keys)
    except gf.DataError:  # the pilot has none
        return [{**line, "nothing": 1.0, "from_truth": best}]
    ratio = np.log((plan.n_rows or 8_000) / best)
    found = {
        "nothing": 0.0,
        "from_truth": best,
        "from_pilot": plan.n_rows or 8_000,
        "true_pairs": plan.n_true,
    }
    return [{**line, **found, "log_ratio": ratio, "log_ratio_squared": ratio**2}]


def averages(work: Callable[[int], list[Line]], arguments: argparse.Namespace) -> Iterator[Line]:
    """Means over seeds of the numbers, line by line."""
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.sets)
    with ProcessPoolExecutor(arguments.workers) as pool:
        lines = pd.DataFrame([line for part in pool.map(work, seeds) for line in part])
    known = ("setting", "table", "estimator", "question", "least", "n", "p", "frequency", "measure")
    keys = [name for name in known if name in lines]
    for key, part in lines.groupby(keys, sort=False):
        means = part.drop(columns=keys).mean()
        yield {**dict(zip(keys, map(str, key), strict=True)), "sets": len(part), **means.round(4).to_dict()}


def work_of(arguments: argparse.Namespace) -> list[Callable[[int], list[Line]]]:
    a, names = arguments, arguments.estimators
    makers: dict[str, list[Callable[[int], list[Line]]]] = {
        "bound": [partial(bound_of, name=name, n=n, p=a.p) for n in a.n for name in names],
        "settings": [
            partial(setting_of, setting=s, name=name, n=n) for s in a.settings for n in a.n for name in names
        ],
        "intervals": [partial(intervals_of, name=name, n=n, p=a.p) for n in a.n for name in names],
        "tables": [
            partial(table_of, folder=a.folder, table=t, name=name, n=n)
            for t in a.tables
            for n in a.n
            for name in names
        ],
        "plan": [partial(plan_of, setting=s, question=a.question) for s in a.settings],
        "pilot": [
            partial(pilot_of, name=name, n=n, p=a.p, question=a.question, least=a.least)
            for n in a.n
            for name in names
        ],
    }
    return makers[a.command]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("bound", "settings", "intervals", "tables", "plan", "pilot"))
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--estimators", nargs="+", default=["linear", "static"])
    parser.add_argument("--settings", nargs="+", default=["G1", "S1"])
    parser.add_argument("--tables", nargs="+", default=["nhanes_biomarkers", "sachs", "dass"])
    parser.add_argument("--question", default="edges", choices=("edges", "varying"))
    parser.add_argument("--least", type=float, default=0.0)
    parser.add_argument("--n", type=int, nargs="+", default=[400])
    parser.add_argument("--p", type=int, default=20)
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=70_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    about = {"command": arguments.command, "first_seed": arguments.first_seed, "sets": arguments.sets}
    lines = (line for work in work_of(arguments) for line in averages(work, arguments))
    write_lines(lines, arguments.out, about)


if __name__ == "__main__":
    main()
