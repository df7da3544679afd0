"""Does the connectivity of brain regions follow a score, and what is the network of one subject?
==============================================================================================

Data: simulated time series of 50 subjects, 12 regions in three networks, 60 time points each; the
visual and the memory regions are the more connected the higher the score. Takes about 20 seconds on two
cores. docs/fmri.md has the same with real scans.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import graphfield as gf
from graphfield.studies.fmri import fmri_study, load_subjects

parser = argparse.ArgumentParser(description="One graph per subject, and bands of a score.")
parser.add_argument("--out", type=Path, default=Path("build/examples/subjects"))
out = parser.parse_args().out
out.mkdir(parents=True, exist_ok=True)

# 1. Simulate. Regions of a network are connected; visual and memory regions, too, where the score is high.
rng = np.random.default_rng(0)
networks = np.repeat(["visual", "motor", "memory"], 4)
regions = [f"{name} {i}" for name in ("visual", "motor", "memory") for i in range(1, 5)]
people = pd.DataFrame({"subject": [f"s{i:02d}" for i in range(50)], "score": rng.normal(100, 15, 50).round()})
people["sex"] = rng.choice(["F", "M"], 50)
scans = {}
for subject, score in zip(people["subject"], people["score"], strict=True):
    partial = 0.22 * (networks[:, None] == networks) * (1 - np.eye(12))
    joined = 0.35 / (1 + np.exp(-(score - 105) / 6))
    for j, k in [(0, 8), (1, 9), (2, 10)]:  # visual 1 - memory 1, and so on
        partial[j, k] = partial[k, j] = joined
    factor = np.linalg.cholesky(np.linalg.inv(np.eye(12) - partial))
    series = np.zeros((60, 12))
    for t in range(1, 60):  # neighbouring time points are alike, as in a scan
        series[t] = 0.4 * series[t - 1] + factor @ rng.normal(size=12)
    scans[subject] = series

# 2. Match scans and people. All splits are by subject: rows of one subject are not independent.
subjects = load_subjects(
    scans, people, id_column="subject", score="score", covariates=["sex"], regions=regions, networks=networks
)

# 3. Fit, judge on subjects that were left out, and average the graphs of subjects with similar scores.
#    Few patterns, steps and folds keep this example quick; leave them out for real data.
study = fmri_study(
    subjects, estimator=gf.DNNCGM(rank=4, max_steps=150, random_state=0), n_folds=2, threshold=0.1
)
print("\n".join(study.sentences()))
print("\nEdges that move most with the score:")
print(study.score_edges().head(5).round(2).to_string(index=False))

# 4. The graph of one subject, as a table with names.
print("\nThe graph of subject s07:")
print(study.graph("s07", threshold=0.1).iloc[:4, 8:].round(2).to_string())

# 5. Pictures; study.write(folder) writes them all, with tables and the graphs of all subjects.
figures = study.figures()
for name in ("bands", "edge_curves"):
    figures[name].savefig(out / f"{name}.png", dpi=80)
