"""How much do graphs move where nothing depends on z?

    .venv/bin/python benchmarks/variation.py [--seeds 10] [--rows 1500] [--device cpu] [--out FILE.json]

A chain of 10 nodes, three covariates that do not matter, the default ``DNNCGM`` with a tenth and with three
tenths of the rows held out. Prints how much of the movement it kept (``variation_``), and by how much 3,000
new rows are predicted better (worse, where negative) than by its own graph averaged over the training rows.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np

import graphfield as gf

P, N_NEW = 10, 3_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1_500)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", gf.ExtrapolationWarning)
    lines = []
    for seed in range(arguments.seeds):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(arguments.rows + N_NEW, P))
        X[:, 1:] += 0.6 * X[:, :-1]
        Z = rng.normal(size=(len(X), 3))
        for fraction in (0.1, 0.3):
            model = gf.DNNCGM(validation_fraction=fraction, random_state=seed, device=arguments.device)
            known, new = slice(arguments.rows), slice(arguments.rows, None)
            model.fit(X[known], Z[known])
            left = X[new] - model.predict(X[new], Z[new])
            centred = X[new] - X[known].mean(axis=0)
            static = centred - centred @ model.predict_coef(Z[known]).mean(axis=0).T
            gain = 1 - np.square(left).mean() / np.square(static).mean()
            lines.append(
                {"seed": seed, "held_out": fraction, "variation": model.variation_, "gain": float(gain)}
            )
            print(lines[-1], flush=True)
    for fraction in (0.1, 0.3):
        own = [line for line in lines if line["held_out"] == fraction]
        kept, gains = (np.array([line[key] for line in own]) for key in ("variation", "gain"))
        print(f"{fraction}: median of the movement kept {np.median(kept):.2f}, mean gain {gains.mean():.4%}")
    if arguments.out:
        arguments.out.write_text(json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
