"""Is the test of dependence valid where means and scales move in awkward ways, and what can it see?

    .venv/bin/python benchmarks/dependence_validity.py null [--designs NAME ...] [--sets 100] [--workers 2]
    .venv/bin/python benchmarks/dependence_validity.py power [--designs NAME ...] [--sets 20] [--workers 2]

``null`` makes data sets in which the graph does not depend on what is tested, and prints the share of
p-values up to .05 and .10 and the Kolmogorov-Smirnov p-value against a uniform distribution. ``power`` makes
data sets in which it does. Both take ``--first-seed`` and ``--out FILE.json``. Set OMP_NUM_THREADS=1 with
several workers.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from evidence import Case, P, chain, slow_series
from scipy.stats import kstest

import graphfield as gf


def levels(
    rng: np.random.Generator, n: int, shares: tuple[float, ...], means: bool, scales: bool, heavy: bool
) -> Case:
    """Levels, most of them rare, that differ in the means or scales of the nodes."""
    counts = np.round(np.array(shares[1:]) * n).astype(int)
    code = rng.permutation(np.repeat(np.arange(len(shares)), [n - counts.sum(), *counts]))
    X = chain(rng, n, heavy=heavy)
    if scales:
        X *= np.exp(rng.uniform(-1, 1, size=(len(shares), P)))[code]
    if means:
        X += 2 * rng.normal(size=(len(shares), P))[code]
    return X, pd.DataFrame({"site": np.array(list("abcdef"))[code]}), {}, None


def irrelevant(rng: np.random.Generator, n: int, product: bool) -> Case:
    """The graph follows tanh(ab), and c goes along with a and b: the p-value of c given these."""
    a, b = rng.normal(size=(2, n))
    c = (a * b if product else 0.6 * a + 0.6 * b) + 0.6 * rng.normal(size=n)
    X = chain(rng, n, 0.8 * np.tanh(a * b), heavy=False)
    return X, pd.DataFrame({"a": a, "b": b, "c": c}), {}, "c"


def moving_mean(rng: np.random.Generator, n: int, shape: str) -> Case:
    """Means of all nodes follow one function of z; the graph does not."""
    Z = pd.DataFrame(rng.uniform(-1, 1, size=(n, 3)), columns=list("abc"))
    a, b, c = Z.to_numpy().T
    curve = {
        "product": 5 * a * b * c,
        "wave": np.sin(12 * a),
        "jump": 2.0 * (a > 0.3),
        "stairs": np.floor(3 * (a + 1)),
        "mixed": np.sin(3 * a * b) + np.abs(c) + np.exp(a),
        "steps": np.sign(a * b) * np.exp(c),
    }[shape]
    Z = Z[["a"]] if shape in ("wave", "jump", "stairs") else Z
    return chain(rng, n) + 2 * curve[:, None] * rng.normal(size=P), Z, {}, None


def moving_scale(rng: np.random.Generator, n: int) -> Case:
    """Standard deviations of all nodes follow a wave, each by as much as it happens to."""
    z = rng.uniform(-1, 1, n)
    return chain(rng, n) * np.exp(0.8 * np.sin(8 * z))[:, None], pd.DataFrame({"a": z}), {}, None


def uneven_groups(rng: np.random.Generator, moving: float = 0.0, own: float = 0.15) -> Case:
    """24 subjects with 2 to 80 rows and graphs of their own; ``moving`` says how much these follow z."""
    sizes = rng.integers(2, 81, size=24)
    label = np.repeat(np.arange(24), sizes)
    z = rng.normal(size=24)
    X = chain(rng, len(label), (0.4 + own * rng.normal(size=24) + moving * z)[label], heavy=False)
    return X, pd.DataFrame({"age": z[label]}), {"groups": label}, None


def owners(rng: np.random.Generator, n_groups: int = 260, n_nodes: int = 6) -> Case:
    """Owners with 1 to 100 rows and levels of their own, in one of up to twelve countries each."""
    sizes = np.minimum(1 + rng.pareto(1.0, n_groups).astype(int), 100)
    label = np.repeat(np.arange(n_groups), sizes)
    country = np.array(list("abcdefghijkl"))[np.clip(rng.geometric(0.2, n_groups) - 1, 0, 11)]
    rows = pd.Series(country[label]).value_counts()
    few = [level for level in rows.index if rows[level] < 20 or (country == level).sum() < 2]
    Z = pd.DataFrame({"country": np.where(np.isin(country, few), "a", country)[label]})
    X = (
        chain(rng, len(label), heavy=False, n_nodes=n_nodes)
        + 0.4 * rng.normal(size=(n_groups, n_nodes))[label]
    )
    return X, Z.assign(altitude=rng.normal(size=len(label))), {"groups": label}, None


def drop_out(rng: np.random.Generator, n_groups: int = 80, n_nodes: int = 5) -> Case:
    """All nodes rise over time within a subject, and who has high levels is seen less often."""
    illness = rng.normal(size=n_groups)
    visits = np.clip(np.round(6 - 3 * illness), 2, 12).astype(int)
    label = np.repeat(np.arange(n_groups), visits)
    time = np.concatenate([np.arange(seen) / 4 for seen in visits])
    levels = illness[:, None] + 0.5 * rng.normal(size=(n_groups, n_nodes))
    X = 0.6 * chain(rng, len(label), heavy=False, n_nodes=n_nodes) + levels[label] + 0.8 * time[:, None]
    return X, pd.DataFrame({"time": time}), {"groups": label}, None


def rare_in_groups(
    rng: np.random.Generator,
    sizes: tuple[int, int],
    counts: tuple[int, ...],
    visits: bool = False,
    means: float = 0.0,
    other: float = 0.0,
    n_nodes: int = 12,
) -> Case:
    """Subjects with graphs and means of their own, an age and a site: the p-value of site given age.

    Of ``sum(counts)`` subjects, ``counts`` are those at each site, or with ``visits`` so many shares of the
    rows, whoever they belong to. ``other`` is by how much edges differ at other sites than the first.
    """
    n_groups = sum(counts)
    rows = np.exp(rng.uniform(*np.log(np.add(sizes, (0, 1))), size=n_groups)).astype(int)
    label = np.repeat(np.arange(n_groups), rows)
    per_unit = np.round(np.array(counts[1:]) * (len(label) / n_groups if visits else 1)).astype(int)
    n_units = len(label) if visits else n_groups
    code = rng.permutation(np.repeat(np.arange(len(counts)), [n_units - per_unit.sum(), *per_unit]))
    code, age = code if visits else code[label], rng.normal(size=n_groups)[label]
    own = (0.4 + 0.15 * rng.normal(size=n_groups))[label] + other * (code > 0)
    X = chain(rng, len(label), own, n_nodes=n_nodes) + means * rng.normal(size=(n_groups, n_nodes))[label]
    return X, pd.DataFrame({"age": age, "site": np.array(list("abc"))[code]}), {"groups": label}, "site"


def multiplied(rng: np.random.Generator, of: Callable[[np.random.Generator], Case]) -> Case:
    """Another design whose means, levels and noise multiply each other: exponentials of its nodes."""
    X, *rest = of(rng)
    return np.exp(X / 2), *rest


def panel(rng: np.random.Generator, n_groups: int = 90, n_rows: int = 7) -> Case:
    """Groups with levels of their own, years that move all means, a region; no edge moves."""
    label = np.repeat(np.arange(n_groups), n_rows)
    year, region = np.tile(np.arange(float(n_rows)), n_groups), rng.integers(0, 3, n_groups)[label]
    X = chain(rng, len(label), heavy=False) + 1.5 * rng.normal(size=(n_groups, P))[label]
    X += np.outer(year / n_rows, rng.normal(size=P))
    Z = pd.DataFrame({"year": year, "region": np.array(list("abc"))[region]})
    return X, Z, {"groups": label}, None


def year_effects(rng: np.random.Generator, n_groups: int = 90, n_rows: int = 7, n_years: int = 7) -> Case:
    """Levels of groups, and years that are good or bad for all nodes, without any trend; no edge moves.

    A skewed number of each group moves means by its logarithm. Where there are more years than rows of a
    group, it enters in some year and leaves again.
    """
    label = np.repeat(np.arange(n_groups), n_rows)
    entry = rng.integers(0, n_years - n_rows + 1, n_groups)
    year, size = entry[label] + np.tile(np.arange(n_rows), n_groups), np.exp(rng.normal(size=n_groups))[label]
    X = chain(rng, len(label), heavy=False) + rng.normal(size=(n_groups, P))[label]
    common = rng.normal(size=n_years)
    common = (common - common.mean()) / common.std()
    X += np.outer(common[year], rng.uniform(0.3, 0.7, P) * rng.choice([-1, 1], P))
    X += np.outer(np.log(size), rng.uniform(-0.5, 0.5, P))
    return X, pd.DataFrame({"year": year.astype(float), "size": size}), {"groups": label}, None


NULL: dict[str, Callable[[np.random.Generator], Case]] = {
    "rare-means": partial(levels, n=300, shares=(0.95, 0.03, 0.02), means=True, scales=False, heavy=False),
    "rare-scales": partial(levels, n=300, shares=(0.95, 0.03, 0.02), means=False, scales=True, heavy=False),
    "rare-both": partial(levels, n=300, shares=(0.95, 0.03, 0.02), means=True, scales=True, heavy=True),
    "rarer-means": partial(
        levels, n=1500, shares=(0.97, 0.016, 0.014), means=True, scales=False, heavy=False
    ),
    "many-rare": partial(
        levels, n=600, shares=(0.75, 0.1, 0.08, 0.04, 0.02, 0.01), means=True, scales=True, heavy=True
    ),
    "irrelevant-sum": partial(irrelevant, n=500, product=False),
    "irrelevant-product": partial(irrelevant, n=800, product=True),
    "mean-product": partial(moving_mean, n=500, shape="product"),
    "mean-wave": partial(moving_mean, n=500, shape="wave"),
    "mean-jump": partial(moving_mean, n=500, shape="jump"),
    "mean-stairs": partial(moving_mean, n=500, shape="stairs"),
    "mean-mixed": partial(moving_mean, n=500, shape="mixed"),
    "mean-steps": partial(moving_mean, n=1000, shape="steps"),
    "scale-wave": partial(moving_scale, n=500),
    "multiplied-wave": partial(multiplied, of=partial(moving_mean, n=500, shape="wave")),
    "multiplied-mixed": partial(multiplied, of=partial(moving_mean, n=500, shape="mixed")),
    "panel": panel,
    "year-effects": year_effects,
    "year-effects-entries": partial(year_effects, n_years=12),
    "multiplied-panel": partial(multiplied, of=panel),
    "multiplied-drop-out": partial(multiplied, of=drop_out),
    "slow-series": slow_series,
    "uneven-groups": uneven_groups,
    "drop-out": drop_out,
    "rare-subjects": partial(rare_in_groups, sizes=(2, 4), counts=(144, 4, 2)),
    "rare-subjects-means": partial(rare_in_groups, sizes=(2, 30), counts=(54, 4, 2), means=1.0),
    "rare-subjects-few": partial(rare_in_groups, sizes=(20, 40), counts=(28, 2), means=0.3),
    "rare-visits": partial(rare_in_groups, sizes=(1, 60), counts=(95, 3, 2), visits=True),
    "rarer-visits": partial(rare_in_groups, sizes=(1, 60), counts=(98, 2), visits=True),
}


def setting(rng: np.random.Generator, name: str, n: int) -> Case:
    sim = gf.make_setting(name, n, int(rng.integers(2**31)))
    return sim.X, pd.DataFrame(np.asarray(sim.Z)).add_prefix("z"), {}, None


def moving_edges(rng: np.random.Generator, n: int, which: slice, size: float) -> Case:
    """A chain in which some edges are linear in the first of three covariates."""
    Z = pd.DataFrame(rng.uniform(-1, 1, size=(n, 3)), columns=list("abc"))
    strength = np.full((n, P), 0.4)
    strength[:, which] += size * Z[["a"]].to_numpy()
    X = rng.normal(size=(n, P))
    for j in range(1, P):
        X[:, j] += strength[:, j] * X[:, j - 1]
    return X, Z, {}, None


def relevant(rng: np.random.Generator) -> Case:
    """The graph follows a and c, which go together: the p-value of c given a and b."""
    a, b = rng.normal(size=(2, 500))
    c = 0.6 * a + 0.6 * b + 0.6 * rng.normal(size=500)
    X = chain(rng, 500, 0.2 + 0.25 * np.tanh(a) + 0.25 * np.tanh(c), heavy=False)
    return X, pd.DataFrame({"a": a, "b": b, "c": c}), {}, "c"


def rare_graph(rng: np.random.Generator) -> Case:
    """A level with 6 % of 500 rows has another graph."""
    code = rng.permutation(np.repeat([0, 1], [470, 30]))
    X = chain(rng, 500, np.where(code == 1, -0.5, 0.5), heavy=False)
    return X, pd.DataFrame({"site": np.array(["a", "b"])[code]}), {}, None


POWER: dict[str, Callable[[np.random.Generator], Case]] = {
    **{
        f"{name}-{n}": partial(setting, name=name, n=n)
        for name, sizes in {"G1": (200, 500), "D1": (500, 1000), "S1": (500, 1000)}.items()
        for n in sizes
    },
    "linear-300": partial(moving_edges, n=300, which=slice(1, P), size=0.2),
    "one-edge-300": partial(moving_edges, n=300, which=slice(3, 4), size=0.4),
    "relevant-500": relevant,
    "rare-graph-500": rare_graph,
    "uneven-groups": partial(uneven_groups, moving=0.15),
    "rare-subjects": partial(rare_in_groups, sizes=(2, 30), counts=(54, 6), other=-0.4),
    "rare-subjects-means": partial(rare_in_groups, sizes=(2, 30), counts=(54, 6), other=-0.6, means=1.0),
    "site-subjects": partial(rare_in_groups, sizes=(2, 30), counts=(30, 30), other=0.2),
    "site-even": partial(rare_in_groups, sizes=(10, 10), counts=(20, 20), other=0.2),
    "rare-visits": partial(rare_in_groups, sizes=(2, 30), counts=(56, 4), visits=True, other=-0.4),
}


def p_value(make: Callable[[np.random.Generator], Case], seed: int) -> tuple[float | None, float, float]:
    """The p-value, that of a test that knows where to look (groups only), and seconds."""
    X, Z, keys, covariate = make(np.random.default_rng(seed))
    start = time.perf_counter()
    wanted = [] if covariate is None else [covariate]
    found = gf.dependence_test(X, Z, covariates=wanted, random_state=seed, **keys)
    seconds = time.perf_counter() - start
    grouped = "groups" in keys and covariate is None
    known = knowing_p_value(X, Z, keys["groups"], seed) if grouped else np.nan
    return found.p_value if covariate is None else found.covariates.p_value[covariate], known, seconds


def knowing_p_value(X: np.ndarray, Z: pd.DataFrame, label: np.ndarray, seed: int) -> float:
    """Of a test that knows means, scales, the edges that move, and that they do so in a straight line."""
    rng = np.random.default_rng(seed)
    pairs = (X[:, 1:] * X[:, :-1]).mean(axis=1)
    sizes = np.bincount(label)
    mean = np.bincount(label, pairs) / sizes
    z = Z.iloc[:, 0].groupby(label).first().to_numpy()
    if np.ptp(z) == 0:  # it knows nothing of what differs within groups alone
        return np.nan
    weight = 1 / (np.var(mean) + np.var(pairs) / sizes)

    def statistic(z: np.ndarray) -> float:
        z = z - np.average(z, weights=weight)
        return abs((weight * z * mean).sum()) / np.sqrt((weight * z**2).sum())

    drawn = [statistic(rng.permutation(z)) for _ in range(199)]
    return (1 + sum(value >= statistic(z) - 1e-12 for value in drawn)) / 200


def run(designs: dict[str, Callable], arguments: argparse.Namespace) -> None:
    lines: list[dict[str, Any]] = []
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.sets)
    with ProcessPoolExecutor(arguments.workers) as pool:
        for name in arguments.designs or designs:
            found = list(pool.map(partial(p_value, designs[name]), seeds))
            answered = np.array([p for p, _, _ in found if p is not None and p == p], dtype=float)
            known = np.array([k for _, k, _ in found])
            line = {
                "design": name,
                "sets": len(found),
                "refused": len(found) - len(answered),
                "at_most_.05": float((answered <= 0.05).sum() / len(found)),
                "at_most_.10": float((answered <= 0.10).sum() / len(found)),
                "mean": float(np.mean(answered)),
                "ks": float(kstest(answered, "uniform").pvalue) if len(answered) else None,
                "knowing_at_most_.05": None if np.isnan(known).all() else float(np.mean(known <= 0.05)),
                "seconds": float(np.mean([s for _, _, s in found])),
            }
            print(json.dumps(line), flush=True)
            lines.append({**line, "p_values": [p for p, _, _ in found]})
            if arguments.out:
                arguments.out.write_text(json.dumps(lines, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, designs, sets in (("null", NULL, 100), ("power", POWER, 20)):
        command = commands.add_parser(name)
        command.add_argument("--designs", nargs="+", choices=tuple(designs))
        command.add_argument("--sets", type=int, default=sets)
        command.add_argument("--workers", type=int, default=1)
        command.add_argument("--first-seed", type=int, default=20_000)
        command.add_argument("--out", type=Path)
        command.set_defaults(designs_of=designs)
    arguments = parser.parse_args()
    run(arguments.designs_of, arguments)


if __name__ == "__main__":
    main()
