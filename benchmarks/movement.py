"""Movement that is not there, edges that are too weak, wide tables, heavy tails, subjects of their own level.

    .venv/bin/python benchmarks/movement.py null|settings|wide|tails|subjects [--seeds 5] [--rows 500 2000]
        [--nodes 10 20 50] [--settings G1 D1 S1] [--device cpu] [--jobs 1]

- null: sparse graphs that are the same at every z, with 2 and 5 covariates that do not matter. How much
  movement is kept (``variation_``), how much better new rows are predicted than by the model's own average
  graph, and how far partial correlations of true edges are off (``rmse``; ``lasso`` is ``GraphicalLasso``).
- settings: simulated settings. AUPRC, and the error of new rows as a share of their variance.
- wide: banded mixtures as in G1 with hundreds of nodes, by default and with a full head.
- tails: relations seen through heavy-tailed nodes: by default, as they are, as normal scores.
- subjects: rows of subjects with levels of their own, with ``groups`` given and without.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky_banded, solve_banded
from scipy.stats import norm, t
from seed_runs import Case, Line, run_cases, seed_options

import graphfield as gf
from graphfield.metrics import auprc
from graphfield.simulate.banded import BAND_VALUE, Banded
from graphfield.simulate.gaussian import raise_diagonal

N_NEW = 3_000


def sparse_graph(p: int, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Partial correlations of a random graph with p edges, and a matrix that turns noise into nodes."""
    rows, columns = np.triu_indices(p, 1)
    taken = rng.choice(len(rows), p, replace=False)
    partial = np.zeros((p, p))
    partial[rows[taken], columns[taken]] = rng.uniform(0.2, 0.5, p) * rng.choice([-1, 1], p)
    partial += partial.T
    partial /= max(1.0, np.abs(np.linalg.eigvalsh(partial)).max() / 0.9)
    covariance = np.linalg.inv(np.eye(p) - partial)
    root = np.linalg.cholesky(covariance) / np.sqrt(np.diag(covariance))[:, None]
    return partial, root


def null(n: int, p: int, q: int, seed: int, device: str) -> Line:
    rng = np.random.default_rng([seed, p, q])
    partial, root = sparse_graph(p, rng)
    X, Z = rng.normal(size=(n + N_NEW, p)) @ root.T, rng.uniform(-1, 1, (n + N_NEW, q))
    model = gf.DNNCGM(random_state=seed, device=device).fit(X[:n], Z[:n])
    new = slice(n, None)
    left = np.square(X[new] - model.predict(X[new], Z[new])).mean()
    centred = X[new] - X[:n].mean(axis=0)
    average = np.square(centred - centred @ model.predict_coef(Z[:n]).mean(axis=0).T).mean()
    found = model.partial_correlations(Z[:100]).mean(axis=0)
    lasso = gf.GraphicalLasso().fit(X[:n], Z[:n])
    return {
        "kept": model.variation_,
        "gain": 1 - left / average,
        "rmse": _rmse(found, partial),
        "lasso": _rmse(lasso.partial_correlations(Z[:1])[0], partial),
        "auprc": float(auprc(np.abs(found)[None], partial[None] != 0)[0]),
    }


def _rmse(found: NDArray, truth: NDArray) -> float:
    return float(np.sqrt(np.square(found - truth)[truth != 0].mean()))


def settings(n: int, name: str, seed: int, device: str) -> Line:
    sim = gf.make_setting(name, n_samples=n + 1_000, random_state=seed)
    model = gf.DNNCGM(random_state=seed, device=device).fit(sim.X[:n], sim.Z[:n])
    return {"kept": model.variation_, **_scores(model, sim.X[n:], sim.Z[n:], sim.skeleton[n:])}


def _scores(model: Any, X: NDArray, Z: NDArray, truth: NDArray) -> Line:
    error = (np.square(X - model.predict(X, Z)).mean(axis=0) / X.var(axis=0)).mean()
    return {"auprc": float(auprc(model.edge_weights(Z), truth).mean()), "error": float(error)}


class WideBanded(Banded):
    """G1 with any number of nodes; rows are drawn by banded triangular systems."""

    def __init__(self, p: int) -> None:
        self.clip = True
        bands = [BAND_VALUE * (np.eye(p, k=k) + np.eye(p, k=-k)) for k in (1, 2, 3)]
        self.candidates = np.stack([raise_diagonal(band) for band in bands])

    def sample(self, Z: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        return self.solve(Z, rng.normal(size=(len(Z), self.candidates.shape[1])))

    def solve(self, Z: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows whose precision is that at z where the noise has unit variance."""
        p = self.candidates.shape[1]
        bands = np.zeros((3, 4, p))  # upper diagonals of the candidates, the main one last
        for k in range(4):
            bands[:, 3 - k, k:] = np.diagonal(self.candidates, offset=k, axis1=1, axis2=2)
        roots = (cholesky_banded(np.tensordot(own, bands, axes=1)) for own in self.mixing(Z))
        return np.stack([solve_banded((0, 3), root, e) for root, e in zip(roots, noise, strict=True)])


def wide(n: int, p: int, head: str, seed: int, device: str) -> Line:
    field = WideBanded(p)
    covariates, noise = np.random.default_rng([seed, p]).spawn(2)
    Z = field.covariates(n + 100, covariates)
    X = field.sample(Z, noise)
    model = gf.DNNCGM(rank="auto" if head == "default" else None, random_state=seed, device=device)
    model.fit(X[:n], Z[:n])
    return {"rank": model.rank_ or 0, **_scores(model, X[n:], Z[n:], field.skeleton(Z[n:]))}


def _heavy(rng: np.random.Generator, n: int, kind: str) -> tuple[NDArray, NDArray, NDArray]:
    """G1 with tails of a t distribution with 3 degrees of freedom, in one of four ways."""
    if kind == "linearly":  # noise is heavy, and nodes are linear in the noise
        field = WideBanded(50)
        Z = field.covariates(n, rng)
        return field.solve(Z, rng.standard_t(3, size=(n, 50))), Z, field.skeleton(Z)
    sim = gf.make_setting("G1", n_samples=n, random_state=int(rng.integers(2**31)))
    if kind == "jointly":  # the row as a whole is large or small: relations of extremes
        return sim.X * np.sqrt(3 / rng.chisquare(3, (n, 1))), sim.Z, sim.skeleton
    if kind == "marginally":  # each node through an increasing function
        return t.ppf(norm.cdf(sim.X / sim.X.std(axis=0)), 3), sim.Z, sim.skeleton
    # each value of its own
    return sim.X * np.sqrt(3 / rng.chisquare(3, sim.X.shape)), sim.Z, sim.skeleton


def tails(n: int, kind: str, marginals: str, seed: int, device: str) -> Line:
    X, Z, truth = _heavy(np.random.default_rng([seed, n]), n + 500, kind)
    model = gf.DNNCGM(marginals=marginals, random_state=seed, device=device).fit(X[:n], Z[:n])
    check = model.marginal_check_
    return {
        "normal": float(model.marginals_ == "normal"),
        **({} if check is None else {"gain": check.gain, "hides": float(check.hides)}),
        "auprc": float(auprc(model.edge_weights(Z[n:]), truth[n:]).mean()),
    }


def subjects(n: int, estimator: str, spread: float, known: bool, seed: int, device: str) -> Line:
    rng = np.random.default_rng([seed, n])
    p, per_subject = 20, 20
    partial, root = sparse_graph(p, rng)
    who = np.arange(n) // per_subject
    level = spread * rng.normal(size=(who.max() + 1, p)) @ rng.normal(size=(p, p)) / np.sqrt(p)
    X = rng.normal(size=(n, p)) @ root.T + level[who]
    Z = rng.uniform(-1, 1, (who.max() + 1, 2))[who]
    options = {"random_state": seed, "device": device} if estimator == "DNNCGM" else {}
    model = getattr(gf, estimator)(**options).fit(X, Z, **({"groups": who} if known else {}))
    found = np.abs(model.partial_correlations(Z[::per_subject])).mean(axis=0)
    return {"auprc": float(auprc(found[None], partial[None] != 0)[0]), "rmse": _rmse(found, np.abs(partial))}


FUNCTIONS = {"null": null, "settings": settings, "wide": wide, "tails": tails, "subjects": subjects}


def cases(arguments: argparse.Namespace) -> Iterator[Case]:
    what = arguments.what
    more: dict[str, list[tuple[Any, ...]]] = {
        "null": [(p, q) for p in arguments.nodes for q in (2, 5)],
        "settings": [(name,) for name in arguments.settings],
        "wide": [(p, head) for p in arguments.nodes for head in ("default", "full head")],
        "tails": [
            (kind, how)
            for kind in ("linearly", "jointly", "marginally", "singly")
            for how in ("auto", "raw", "normal")
        ],
        "subjects": [
            (name, spread, known)
            for name in ("DNNCGM", "RegGMM", "GraphicalLasso", "NodewiseLasso")
            for spread in (0.0, 0.5, 2.0)
            for known in (False, True)
        ],
    }
    for n in arguments.rows:
        for own in more[what]:
            yield f"{what} n={n} " + " ".join(map(str, own)), FUNCTIONS[what], (n, *own)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=FUNCTIONS)
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 2_000])
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument("--settings", nargs="+", default=["G1", "D1", "S1"])
    seed_options(parser, seeds=5)
    arguments = parser.parse_args()
    run_cases(cases(arguments), arguments)


if __name__ == "__main__":
    main()
