"""Other packages on the same data: scikit-learn, and contextualized-ml where it is installed."""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphfield.estimators.dnncgm import DNNCGM
from graphfield.estimators.nodewise_lasso import NodewiseLasso
from graphfield.estimators.reggmm import RegGMM
from graphfield.experiments.bench.records import NotMeasuredError, Record, Timing, interleaved, timed
from graphfield.metrics import auprc
from graphfield.simulate import make_setting


def reggmm(quick: bool, rounds: int) -> list[Record]:
    """Coefficients linear in z: one solve for all nodes against one ``Ridge`` per node."""
    from sklearn.linear_model import Ridge

    n = 2_000 if quick else 10_000
    sim = make_setting("G1", n, 0)
    features = np.column_stack([np.ones(n), sim.Z])
    design = (features[:, :, None] * sim.X[:, None, :]).reshape(n, -1)  # (n, features * nodes)
    nodes = np.tile(np.arange(sim.X.shape[1]), features.shape[1])

    def per_node() -> None:
        for j in range(sim.X.shape[1]):
            Ridge(alpha=1.0, fit_intercept=False).fit(design[:, nodes != j], sim.X[:, j])

    def ours() -> None:
        RegGMM(center="none", standardize=False).fit(sim.X, sim.Z)

    timing = interleaved(ours, per_node, min(rounds, 5))
    title = f"RegGMM against scikit-learn's Ridge per node, G1, n={n:,}"
    return [timing.record("reggmm", title, "s")]


def nodewise_lasso(quick: bool) -> list[Record]:
    """Neighbourhood selection with 30 penalties and 5 folds against one ``LassoCV`` per node."""
    from sklearn.linear_model import LassoCV

    n = 1_000 if quick else 10_000
    sim = make_setting("G1", n, 0)

    def per_node() -> None:
        for j in range(sim.X.shape[1]):
            LassoCV(alphas=30, cv=5).fit(np.delete(sim.X, j, axis=1), sim.X[:, j])

    timing = interleaved(lambda: NodewiseLasso().fit(sim.X, sim.Z), per_node, 3)
    title = f"NodewiseLasso against scikit-learn's LassoCV per node, G1, n={n:,}"
    return [timing.record("nodewise-lasso", title, "s")]


def contextualized(quick: bool) -> list[Record]:
    """Both packages' defaults on the same rows; the graphs' accuracy stands in the details."""
    if find_spec("contextualized") is None:
        raise NotMeasuredError("the package contextualized-ml is not installed")
    easy: Any = import_module("contextualized.easy")
    n, n_test = (2_000, 500) if quick else (10_000, 1_000)
    sim = make_setting("G1", n + n_test, 0)
    found: dict[str, NDArray] = {}

    def theirs() -> None:
        model = easy.ContextualizedMarkovNetworks()
        with warnings.catch_warnings(), torch.random.fork_rng():
            warnings.simplefilter("ignore")
            model.fit(sim.Z[:n], sim.X[:n])
            found["reference"] = np.abs(np.asarray(model.predict_networks(sim.Z[n:])))

    def ours() -> None:
        model = DNNCGM(random_state=0).fit(sim.X[:n], sim.Z[:n])
        found["ours"] = model.edge_weights(sim.Z[n:])

    timing = Timing([timed(ours)], [timed(theirs)])
    scores = {side: float(auprc(weights, sim.skeleton[n:]).mean()) for side, weights in found.items()}
    title = f"DNNCGM against contextualized-ml's Markov networks, both defaults, G1, n={n:,}"
    return [timing.record("contextualized", title, "s", details={"auprc": scores})]
