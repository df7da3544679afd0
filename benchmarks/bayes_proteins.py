"""BayesianCGM beside the published edges of R GraphR: 190 proteins of 859 breast tumours of three subtypes.

python benchmarks/bayes_proteins.py pam50_proteins.csv [--sweeps 500]

Partial correlations of basal-like tumours with 90 % intervals, probabilities of the pairs, whether chains
agree, and seconds (GraphR: 213).
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import graphfield as gf

PUBLISHED = {
    ("PKCALPHA", "PKCALPHA_pS657"): 0.944,
    ("S6_pS235S236", "S6_pS240S244"): 0.823,
    ("ERALPHA", "PR"): 0.664,
    ("YAP", "YAP_pS127"): 0.664,
}
SUBTYPES = ["basal_like", "her2_enriched", "luminal_ab"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", type=Path)
    parser.add_argument("--sweeps", type=int, default=500)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    table = pd.read_csv(arguments.table)
    subtype = pd.DataFrame({"subtype": np.array(SUBTYPES)[table[SUBTYPES].to_numpy().argmax(axis=1)]})
    X = table.drop(columns=SUBTYPES)
    start, before = time.perf_counter(), time.process_time()
    model = gf.BayesianCGM(n_sweeps=arguments.sweeps, n_draws=100, random_state=0).fit(X, subtype)
    print(f"{time.perf_counter() - start:.0f} s ({time.process_time() - before:.0f} s of one core)")
    print(model.describe())
    print(f"nodes with R-hat above 1.1: {int((model.rhat_ > 1.1).sum())}")
    at = pd.DataFrame({"subtype": SUBTYPES[:1]})
    found, (low, high) = model.partial_correlations(at)[0], model.credible_intervals(at)
    j, k = np.triu_indices(X.shape[1], 1)
    rank = np.empty(len(j), dtype=int)
    rank[np.argsort(-np.abs(found[j, k]))] = np.arange(1, len(j) + 1)
    for (a, b), published in PUBLISHED.items():
        one, two = sorted((X.columns.get_loc(a), X.columns.get_loc(b)))
        place = int(rank[(j == one) & (k == two)][0])
        ends = f"{low[0, one, two]:.2f} to {high[0, one, two]:.2f}"
        print(
            f"{a} - {b}: {found[one, two]:.3f} ({ends}), GraphR {published}; "
            f"probability {model.inclusion_[one, two]:.2f}, rank {place} of {len(j)}"
        )


if __name__ == "__main__":
    main()
