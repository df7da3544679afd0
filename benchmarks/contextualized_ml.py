"""contextualized-ml on the same data: AUPRC and seconds of its Markov networks, by setting and sample size.

    python -m venv other && other/bin/pip install contextualized-ml
    PYTHONPATH=src other/bin/python benchmarks/contextualized_ml.py [--settings G1,D1] [--n 10000]
        [--seeds 100] [--out FILE.json]

In an environment of its own, as its requirements differ from ours. Batches of 64, at most 200 epochs,
stopping after 5 without progress on a tenth of the rows; all else as that package has it. The truth is used
to score the graphs of 1,000 other rows, as in ``benchmarks/accuracy.py``.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import graphfield as gf
from graphfield.metrics import auprc, auroc

N_TEST = 1_000
SETTINGS = ("G1", "G2", "N1", "N2", "D1", "D2")


def run(setting: str, n: int, seed: int) -> dict[str, Any]:
    from contextualized.easy import ContextualizedMarkovNetworks

    sim = gf.make_setting(setting, n_samples=n + N_TEST, random_state=seed)
    start = time.perf_counter()
    model = ContextualizedMarkovNetworks(n_bootstraps=1)
    model.fit(
        sim.Z[:n],
        sim.X[:n],
        val_split=0.1,
        train_batch_size=64,
        es_patience=5,
        max_epochs=200,
        learning_rate=1e-3,
    )
    seconds = time.perf_counter() - start
    precision = np.abs(np.asarray(model.predict_precisions(sim.Z[n:])))
    precision = precision[0] if precision.ndim == 4 else precision
    scale = np.sqrt(np.maximum(precision.diagonal(axis1=1, axis2=2), 1e-12))
    weights = precision / scale[:, :, None] / scale[:, None, :]
    weights = (weights + weights.swapaxes(1, 2)) / 2
    weights[:, np.arange(weights.shape[1]), np.arange(weights.shape[1])] = 0
    truth = sim.skeleton[n:]
    return {
        "setting": setting,
        "n": n,
        "seed": seed,
        "auprc": float(auprc(weights, truth).mean()),
        "auroc": float(auroc(weights, truth).mean()),
        "seconds": seconds,
    }


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--n", type=int, nargs="+", default=[10_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[100])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = []
    for n in arguments.n:
        for setting in arguments.settings.split(","):
            for seed in arguments.seeds:
                rows.append(run(setting, n, seed))
                print(json.dumps(rows[-1]), flush=True)
                if arguments.out is not None:
                    arguments.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
