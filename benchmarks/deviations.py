"""Two figures behind the page on deviations: the lasso by penalty in D2, the clusters of G2 by replicate.

    .venv/bin/python benchmarks/deviations.py

The published nodewise lasso is a 0/1 graph at one of ten penalties; its scores at each of them, within the
true clusters and averaged over test samples and seeds 0 to 4, show how much hangs on that choice.
"""

from __future__ import annotations

import numpy as np

from graphfield.experiments import evaluation
from graphfield.experiments.methods import TableCell, simulate
from graphfield.metrics import auprc, auroc
from graphfield.simulate import make_setting

SEEDS = range(5)


def by_penalty(seed: int) -> np.ndarray:
    """AUROC and AUPRC at each published penalty, (2, 10)."""
    data = simulate(TableCell("D2", "lasso-by-cluster", 10_000, 1_000, seed))
    regime, truth = data.sim.regime, data.truths()["skeleton"]
    scores = np.zeros((2, evaluation.PUBLISHED_PENALTIES))
    for label in np.unique(regime[data.test]):
        S = np.corrcoef(data.sim.X[data.train][regime[data.train] == label].T)
        graphs, _ = evaluation.lasso_path(S, evaluation.penalty_path(S, evaluation.PUBLISHED_PENALTIES))
        rows = regime[data.test] == label
        wanted = np.broadcast_to(truth[rows][0], graphs.shape)
        scores += rows.mean() * np.array([f(graphs, wanted, diagonal=True) for f in (auroc, auprc)])
    return scores


def main() -> None:
    mean = np.mean([by_penalty(seed) for seed in SEEDS], axis=0)
    for name, values in zip(("AUROC", "AUPRC"), mean, strict=True):
        print(f"D2, nodewise lasso by cluster, {name} at the ten penalties:", *(f"{v:.3f}" for v in values))
    shares = [float((make_setting("G2", 10_000, seed).regime == 0).mean()) for seed in SEEDS]
    print("G2, share of samples in the first cluster, by seed:", *(f"{share:.2f}" for share in shares))


if __name__ == "__main__":
    main()
