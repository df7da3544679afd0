"""Do errors of coefficients stop falling with many rows because of the size of the model?

    .venv/bin/python benchmarks/rate_sizes.py [--n 80000] [--seeds 2] [--first-seed 0] [--device cuda]

The chains of ``graphfield reproduce rates`` with 20 nodes: on the smooth truth the network of the paper's
model, and four times its hidden units; on the kinked one our defaults, with fixed numbers of
patterns, and how many the search keeps. A line for each fit: the error of Corollary 1.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

import graphfield as gf
from graphfield.experiments.rates import PAPER, Truth, score_coefficients

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("smooth", "network", PAPER),
    ("smooth", "network, 256 hidden units", {**PAPER, "hidden_size": 256}),
    ("kinked", "defaults", {}),
    *(("kinked", f"rank={rank}", {"rank": rank}) for rank in (16, 32, 64)),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=80_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for shape, name, own in CASES:
            structure, covariates, noise = np.random.default_rng(seed).spawn(3)
            chain = Truth(shape, 20).field(structure)
            Z = chain.covariates(500 + arguments.n, covariates)
            start = time.perf_counter()
            model = gf.DNNCGM(**own, random_state=seed, device=arguments.device)
            model.fit(chain.sample(Z[500:], noise), Z[500:])
            seconds = round(time.perf_counter() - start, 1)
            error = score_coefficients(model.predict_coef(Z[:500]), chain, Z[:500], None)[0].error.mean()
            line = {"truth": shape, "model": name, "seed": seed, "error": round(float(error), 4)}
            print(json.dumps({**line, "seconds": seconds, "patterns": model.rank_}), flush=True)


if __name__ == "__main__":
    main()
