"""What a default fit decides on a few hundred rows: does the mean move, does the graph, how strong are edges.

    .venv/bin/python benchmarks/few_rows.py tables|groups|collinear|moving|movement [--seeds 10]
        [--rows 400 2000] [--device cpu] [--jobs 1]

- tables: tables of scikit-learn, over seeds. Whether the mean moves (``mean``), how much movement is kept,
  and the five strongest edges of the average graph; below, the spread of these over seeds.
- groups: a graph that is the same at every z, groups with levels of their own and covariates that do not
  matter, 20 and 40 groups of uneven sizes. How much movement is kept, and the largest partial correlation.
- collinear: graphs that are the same at every z, with two nodes that are sums of three others and a little
  noise. Root mean squared errors of partial correlations, of true edges (``edges``) and of the others, beside
  ``GraphicalLasso`` (``glasso``) and unpenalised regressions (``ols``).
- moving: two of ten edges change sign with z, which all rows, or groups, see. How much movement is kept.
- movement: a chain whose means move, and one edge beside it that only cases have (arm), that only one of
  four sites has (site), that is a line of a number (line; items: seen through answers from 1 to 5) or a
  product of two (product), or that nothing moves (none, with the covariates of arm). How much of the true
  movement is found (``size``: the slope of the estimated partial correlation on the true one; 1: all), how
  far it is off (``off``: root mean squared error over rows), that of all other pairs (``others``), and how
  much the whole graph moves (``moved``: root mean squared over pairs and rows).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from seed_runs import Case, Line, run_cases, seed_options
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

import graphfield as gf


def diabetes() -> tuple[pd.DataFrame, pd.DataFrame]:
    data = load_diabetes(as_frame=True, scaled=False)
    X = data.data.drop(columns=["age", "sex"]).assign(progression=data.target)
    return X, data.data[["age", "sex"]].assign(sex=data.data["sex"].map(lambda code: f"sex {code:.0f}"))


def wine() -> tuple[pd.DataFrame, pd.DataFrame]:
    data = load_wine(as_frame=True)
    return data.data, data.target.map(lambda code: f"cultivar {code}").to_frame()


def cancer() -> tuple[pd.DataFrame, pd.DataFrame]:
    data = load_breast_cancer(as_frame=True).frame
    names = [
        name for name in data if name.startswith("mean ") and name not in ("mean area", "mean perimeter")
    ]
    return data[names], data[["mean perimeter"]].assign(kind=data["target"].map(lambda code: f"kind {code}"))


def iris() -> tuple[pd.DataFrame, pd.DataFrame]:
    data = load_iris(as_frame=True)
    return data.data, data.target.map(lambda code: f"species {code}").to_frame()


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, pd.DataFrame]]] = {
    "diabetes": diabetes,
    "wine": wine,
    "cancer": cancer,
    "iris": iris,
}


def tables(name: str, seed: int, device: str) -> Line:
    X, Z = TABLES[name]()
    model = gf.DNNCGM(random_state=seed, device=device).fit(X, Z)
    found = model.partial_correlations(Z).mean(axis=0)
    line = {"mean": float(model.mean_depends_on_covariates_), "kept": model.variation_}
    for j, k in _strongest(X):
        line[f"{X.columns[j]}-{X.columns[k]}"] = found[j, k]
    return line


def _strongest(X: pd.DataFrame) -> list[tuple[int, int]]:
    """Five pairs with the largest partial correlations in all rows, the same for all seeds."""
    partial = np.abs(np.triu(partial_correlations(X.to_numpy()), 1))
    return [
        tuple(map(int, np.unravel_index(place, partial.shape)))
        for place in np.argsort(-partial, axis=None)[:5]
    ]


def partial_correlations(X: NDArray) -> NDArray:
    precision = np.linalg.inv(np.cov(X.T))
    scale = np.sqrt(np.diag(precision))
    partial = -precision / np.outer(scale, scale)
    np.fill_diagonal(partial, 0)
    return partial


def chain(p: int) -> NDArray:
    """Turns noise into nodes."""
    precision = np.eye(p) - 0.4 * (np.eye(p, k=1) + np.eye(p, k=-1))
    return np.linalg.cholesky(np.linalg.inv(precision))


def _uneven(n: int, n_groups: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Labels of groups, one of them with about 15 % of the rows, many with a few."""
    shares = rng.dirichlet(np.full(n_groups, 0.7))
    return np.concatenate([np.arange(n_groups), rng.choice(n_groups, n - n_groups, p=shares)])


def groups(n: int, n_groups: int, level: float, seed: int, device: str) -> Line:
    rng, p = np.random.default_rng([seed, n, n_groups]), 8
    labels = _uneven(n, n_groups, rng)
    X = rng.normal(size=(n, p)) @ chain(p).T + level * rng.normal(size=(n_groups, p))[labels]
    Z = pd.DataFrame({"year": rng.uniform(-1, 1, n), "kind": rng.choice(["a", "b", "c"], n_groups)[labels]})
    model = gf.DNNCGM(random_state=seed, device=device).fit(X, Z, groups=labels)
    return {"kept": model.variation_, "largest": float(np.abs(model.partial_correlations(Z)).max())}


def moving(n: int, n_groups: int, seed: int, device: str) -> Line:
    rng = np.random.default_rng([seed, n, n_groups])
    z = rng.uniform(-1, 1, n)
    X = rng.normal(size=(n, 8))
    X[:, 1] += 0.7 * np.tanh(3 * z) * X[:, 0]
    X[:, 3] -= 0.7 * np.tanh(3 * z) * X[:, 2]
    labels = _uneven(n, n_groups, rng) if n_groups else None
    model = gf.DNNCGM(random_state=seed, device=device).fit(X, z[:, None], groups=labels)
    found = model.partial_correlations(np.array([[-0.9], [0.9]]))
    return {"kept": model.variation_, "low": found[0, 0, 1], "high": found[1, 0, 1]}


def collinear_graph(p: int, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Partial correlations of a tree with two sums of three nodes, and a matrix that makes nodes of noise."""
    effects, noise, order = np.zeros((p, p)), np.ones(p), rng.permutation(p)
    for place, node in enumerate(order[1:], start=1):
        if place >= p - 2:
            effects[node, rng.choice(order[:place], 3, replace=False)] = rng.uniform(0.5, 1, 3) * rng.choice(
                [-1, 1], 3
            )
            noise[node] = rng.uniform(0.1, 0.3)
        elif rng.random() < 0.7:
            effects[node, rng.choice(order[:place])] = rng.uniform(0.3, 0.8)
    root = np.linalg.inv(np.eye(p) - effects) * noise
    precision = np.linalg.inv(root @ root.T)
    scale = np.sqrt(np.diag(precision))
    partial = -precision / np.outer(scale, scale)
    partial[(np.abs(partial) < 1e-9) | np.eye(p, dtype=bool)] = 0
    return partial, root


def collinear(n: int, p: int, seed: int, device: str) -> Line:
    rng = np.random.default_rng([seed, n, p])
    truth, root = collinear_graph(p, rng)
    X, Z = rng.normal(size=(n, p)) @ root.T, rng.uniform(-1, 1, (n, 2))
    model = gf.DNNCGM(random_state=seed, device=device).fit(X, Z)
    found = {
        "dnncgm": model.partial_correlations(Z[:100]).mean(axis=0),
        "glasso": gf.GraphicalLasso().fit(X, Z).partial_correlations(Z[:1])[0],
        "ols": partial_correlations(X),
    }
    places = {"edges": truth != 0, "others": (truth == 0) & ~np.eye(p, dtype=bool)}
    errors = {
        f"{name} {which}": float(np.sqrt(np.square(own - truth)[where].mean()))
        for name, own in found.items()
        for which, where in places.items()
    }
    return {"kept": model.variation_, **errors}


def _movers(kind: str, n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, NDArray]:
    """Covariates, and the partial correlation of the first and the last node at each row."""
    age = rng.uniform(-1, 1, n)
    if kind in ("arm", "none"):
        arm = rng.choice(["case", "control"], n)
        edge = 0.45 * (arm == "case") if kind == "arm" else np.full(n, 0.25)
        return pd.DataFrame({"age": age, "arm": arm}), edge
    if kind == "site":
        site = rng.choice(["a", "b", "c", "d"], n)
        return pd.DataFrame({"age": age, "site": site}), 0.45 * (site == "c")
    other = rng.uniform(-1, 1, n)
    edge = 0.6 * age if kind in ("line", "items") else 0.6 * np.tanh(3 * age * other)
    return pd.DataFrame({"age": age, "other": other}), edge


def movement(n: int, kind: str, seed: int, device: str) -> Line:
    rng = np.random.default_rng([seed, n])
    p, n_all = 6, n + 500
    Z, edge = _movers(kind, n_all, rng)
    truth = np.repeat(np.eye(p)[None], n_all, axis=0)
    truth[:, range(4), range(1, 5)] = truth[:, range(1, 5), range(4)] = -0.35
    truth[:, 0, -1] = truth[:, -1, 0] = -edge
    root = np.linalg.cholesky(np.linalg.inv(truth))
    age = Z["age"].to_numpy()
    X = (root @ rng.normal(size=(n_all, p, 1)))[..., 0]
    X += np.column_stack([2 * age, -1.5 * age, 1.5 * age**2, np.sin(3 * age), age, 0 * age])
    if kind == "items":
        X = 1.0 + sum((X - X.mean(axis=0) > cut * X.std(axis=0)) for cut in (-1.2, -0.4, 0.4, 1.2))
    model = gf.DNNCGM(random_state=seed, device=device).fit(X[:n], Z[:n])
    found = model.partial_correlations(Z[n:])
    own, edge = found[:, 0, -1], edge[n:]
    moves = edge - edge.mean()
    slope = float((own - own.mean()) @ moves / max(moves @ moves, 1e-9)) if edge.std() else 0.0
    others = found + truth[n:] * (1 - np.eye(p))
    others[:, 0, -1] = others[:, -1, 0] = 0
    return {
        "kept": model.variation_,
        "size": slope,
        "off": float(np.sqrt(np.square(own - edge).mean())),
        "others": float(np.sqrt(np.square(others).sum() / len(others) / (p * (p - 1) - 2))),
        "moved": float(np.sqrt(np.square(found - found.mean(axis=0)).mean())),
    }


FUNCTIONS: dict[str, Callable[..., Line]] = {
    "movement": movement,
    "tables": tables,
    "groups": groups,
    "moving": moving,
    "collinear": collinear,
}


def cases(what: str, rows: list[int]) -> Iterator[Case]:
    more: dict[str, list[tuple[Any, ...]]] = {
        "groups": [(20, 0.0), (20, 1.0), (40, 0.0), (40, 1.0)],
        "moving": [(0,), (20,), (40,)],
        "collinear": [(10,), (25,)],
        "movement": [(kind,) for kind in ("arm", "site", "line", "items", "product", "none")],
    }
    found = [(n, *own) for n in rows for own in more[what]] if what in more else [(name,) for name in TABLES]
    yield from ((" ".join(map(str, (what, *case))), FUNCTIONS[what], case) for case in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=FUNCTIONS)
    parser.add_argument("--rows", type=int, nargs="+", default=[400])
    seed_options(parser, seeds=10)
    arguments = parser.parse_args()
    run_cases(cases(arguments.what, arguments.rows), arguments)


if __name__ == "__main__":
    main()
