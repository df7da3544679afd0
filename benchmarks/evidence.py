"""Is the test of "the graph depends on z" valid, does it see what is there, what does it say of real data?

    .venv/bin/python benchmarks/evidence.py null [--tests 200] [--cases rows groups ...] [--first-seed 5000]
        [--out FILE.json]
    .venv/bin/python benchmarks/evidence.py power [--n 500 1000] [--seeds 20] [--out FILE.json]
    .venv/bin/python benchmarks/evidence.py data TABLE.npz:covariate,... [--out FILE.json]

``null`` makes small data sets in which the tested covariate does not matter and compares the p-values with a
uniform distribution (Kolmogorov-Smirnov). ``power`` runs the test on setting G1. ``data`` runs it on files
with arrays ``x``, ``x_names``, ``z_num``, ``z_num_names``, ``z_cat`` (codes), ``z_cat_levels__NAME``,
``unit`` and ``time``; rows count as a time series where the file has ``time``, unless ``--no-time``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kstest

import graphfield as gf

P = 8
Case = tuple[np.ndarray, pd.DataFrame, dict[str, Any], str | None]


def chain(
    rng: np.random.Generator,
    n: int,
    strength: np.ndarray | float = 0.5,
    heavy: bool = True,
    n_nodes: int = P,
) -> np.ndarray:
    """Each node follows the one before it, with a strength that may differ from row to row."""
    noise = rng.standard_t(5, size=(n, n_nodes)) if heavy else rng.normal(size=(n, n_nodes))
    X = noise.copy()
    for j in range(1, n_nodes):
        X[:, j] += strength * X[:, j - 1]
    return X


def slow(rng: np.random.Generator, n: int, memory: float) -> np.ndarray:
    """A stationary series of variance one that forgets slowly."""
    values = np.empty(n)
    values[0] = rng.normal()
    for i in range(1, n):
        values[i] = memory * values[i - 1] + np.sqrt(1 - memory**2) * rng.normal()
    return values


def rows(rng: np.random.Generator) -> Case:
    """Independent rows, heavy tails, a number and a category that do not matter."""
    n = 200
    Z = pd.DataFrame({"a": rng.exponential(size=n), "b": rng.choice(list("pqr"), n)})
    return chain(rng, n), Z, {}, None


def groups(rng: np.random.Generator) -> Case:
    """Every subject has a mean and a graph of its own, which have nothing to do with its covariate."""
    n_groups, size = 40, 10
    label = np.repeat(np.arange(n_groups), size)
    X = chain(rng, len(label), rng.normal(0.3, 0.4, n_groups)[label]) + rng.normal(size=(n_groups, P))[label]
    return X, pd.DataFrame({"a": rng.normal(size=n_groups)[label]}), {"groups": label}, None


def within(rng: np.random.Generator) -> Case:
    """As ``groups``, with one covariate that also varies within subjects and one that does not."""
    X, Z, keys, _ = groups(rng)
    return X, Z.assign(b=Z["a"] + rng.normal(size=len(Z))), keys, None


def series(rng: np.random.Generator, memory: float = 0.8) -> Case:
    """Graph and covariate both drift, independently of each other."""
    n = 400
    X = chain(rng, n, 0.4 + 0.4 * slow(rng, n, memory))
    return X, pd.DataFrame({"a": slow(rng, n, memory)}), {"time": np.arange(n)}, None


def slow_series(rng: np.random.Generator) -> Case:
    """As ``series``, but so slowly that 400 rows hold only about ten independent stretches."""
    return series(rng, memory=0.95)


def conditional(rng: np.random.Generator) -> Case:
    """The graph depends on a, in a curve; b only goes along with a. The p-value of b given a."""
    n = 400
    a = rng.normal(size=n)
    X = chain(rng, n, 0.8 * np.cos(1.5 * a) + 0.3 * a)
    return X, pd.DataFrame({"a": a, "b": 0.8 * a + 0.6 * rng.normal(size=n)}), {}, "b"


def subjects(rng: np.random.Generator, real: bool) -> Case:
    """30 subjects with covariates of their own; the p-value of ``motion`` given age and sex."""
    n_groups, size = 30, 20
    label = np.repeat(np.arange(n_groups), size)
    age = rng.uniform(-1, 1, n_groups)
    own = 0.4 + 0.15 * rng.normal(size=n_groups) + (0.4 * age if real else 0)
    Z = pd.DataFrame(
        {
            "age": age,
            "motion": 0.5 * age + rng.exponential(size=n_groups),
            "sex": rng.choice(list("fm"), n_groups),
        }
    )
    return (
        chain(rng, len(label), own[label]),
        Z.iloc[label].reset_index(drop=True),
        {"groups": label},
        "motion",
    )


def few_groups(rng: np.random.Generator) -> Case:
    """30 subjects, graphs that differ by chance alone: motion given age and sex."""
    return subjects(rng, real=False)


def few_groups_age(rng: np.random.Generator) -> Case:
    """30 subjects, graphs that move with age: motion, which goes along with age, given age and sex."""
    return subjects(rng, real=True)


def mean(rng: np.random.Generator) -> Case:
    """Means of all nodes move with a, b and their product; the graph does not."""
    n = 300
    Z = pd.DataFrame({"a": rng.uniform(-2, 2, n), "b": rng.normal(size=n)})
    curve = np.sin(1.5 * Z["a"]) + 0.5 * Z["b"] ** 2 + 0.5 * Z["a"] * Z["b"]
    return chain(rng, n) + 2 * curve.to_numpy()[:, None] * rng.normal(size=P), Z, {}, None


def scale(rng: np.random.Generator) -> Case:
    """Standard deviations of the nodes move with a, by a factor of up to ten; partial correlations do not."""
    n = 300
    Z = pd.DataFrame({"a": rng.uniform(-1, 1, n)})
    return chain(rng, n) * np.exp(Z["a"].to_numpy()[:, None] * rng.uniform(-1.2, 1.2, P)), Z, {}, None


CASES: dict[str, Callable[[np.random.Generator], Case]] = {
    "rows": rows,
    "groups": groups,
    "within": within,
    "series": series,
    "slow-series": slow_series,
    "conditional": conditional,
    "few-groups": few_groups,
    "few-groups-age": few_groups_age,
    "mean": mean,
    "scale": scale,
}


def null(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    lines = []
    for name in arguments.cases or CASES:
        start, p_values = time.perf_counter(), []
        for seed in range(arguments.tests):
            X, Z, keys, covariate = CASES[name](np.random.default_rng(arguments.first_seed + seed))
            wanted = [] if covariate is None else [covariate]
            found = gf.dependence_test(X, Z, covariates=wanted, random_state=seed, **keys)
            if found.p_value is not None:
                p_values.append(found.p_value if covariate is None else found.covariates.p_value[covariate])
        lines.append(
            {
                "case": name,
                "tests": len(p_values),
                "refused": arguments.tests - len(p_values),
                "ks_p_value": float(kstest(p_values, "uniform").pvalue),
                "at_most_.05": float(np.mean(np.array(p_values) <= 0.05)),
                "seconds_per_test": (time.perf_counter() - start) / len(p_values),
                "p_values": p_values,
            }
        )
        print({key: value for key, value in lines[-1].items() if key != "p_values"}, flush=True)
    return lines


def power(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    lines = []
    for n in arguments.n:
        for seed in range(arguments.seeds):
            sim = gf.make_setting("G1", n, seed)
            start = time.perf_counter()
            found = gf.dependence_test(sim.X, sim.Z, covariates=[], random_state=seed)
            lines.append({"n": n, "seed": seed, "seconds": time.perf_counter() - start, **summary(found)})
        these = pd.DataFrame([line for line in lines if line["n"] == n])
        print(n, dict(these.verdict.value_counts()), f"mean gain {these.gain_over_static.mean():.4f}")
        print(
            f"  share with p <= .05: {np.mean(these.p_value <= 0.05):.2f}, {these.seconds.mean():.1f} s",
            flush=True,
        )
    return lines


def data(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    lines = []
    for wanted in arguments.tables:
        path, _, names = wanted.partition(":")
        X, Z, keys = table(Path(path), names.split(",") if names else None)
        if arguments.no_time:
            keys.pop("time", None)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gf.DataWarning)
            found = gf.dependence_test(X, Z, missing="drop", **keys)
        seconds = time.perf_counter() - start
        print(Path(path).stem, X.shape, f"{seconds:.0f} s\n{found}\n", flush=True)
        lines.append({"data": Path(path).stem, "seconds": seconds, "evidence": json.loads(found.to_json())})
    return lines


def table(path: Path, names: list[str] | None) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    with np.load(path, allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    Z = pd.DataFrame(arrays["z_num"].astype(np.float64), columns=[str(c) for c in arrays["z_num_names"]])
    for i, name in enumerate(arrays["z_cat_names"]):
        levels = [*map(str, arrays[f"z_cat_levels__{name}"]), None]  # code -1: missing
        Z[str(name)] = [levels[code] for code in arrays["z_cat"][:, i]]
    X = pd.DataFrame(arrays["x"].astype(np.float64), columns=[str(c) for c in arrays["x_names"]])
    keys = {"groups": arrays.get("unit"), "time": arrays.get("time")}
    return (
        X,
        Z if names is None else Z[names],
        {key: value for key, value in keys.items() if value is not None},
    )


def summary(found: gf.Evidence) -> dict[str, Any]:
    static, linear = found.gain_over_static, found.gain_over_linear
    return {
        "verdict": found.verdict,
        "p_value": found.p_value,
        "gain_over_static": None if static is None else static.value,
        "gain_over_linear": None if linear is None else linear.value,
        "covariates": {line.name: [line.verdict, line.p_value, line.gain] for line in found.per_covariate},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    p = commands.add_parser("null")
    p.add_argument("--tests", type=int, default=200)
    p.add_argument("--first-seed", type=int, default=5_000)
    p.add_argument("--cases", nargs="+", choices=tuple(CASES))
    p.set_defaults(run=null)
    p = commands.add_parser("power")
    p.add_argument("--n", type=int, nargs="+", default=[500, 1000])
    p.add_argument("--seeds", type=int, default=20)
    p.set_defaults(run=power)
    p = commands.add_parser("data")
    p.add_argument("tables", nargs="+", metavar="TABLE.npz:covariate,...")
    p.add_argument("--no-time", action="store_true")
    p.set_defaults(run=data)
    for command in commands.choices.values():
        command.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    lines = arguments.run(arguments)
    if arguments.out:
        arguments.out.write_text(json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
