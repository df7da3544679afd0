"""Streaming stays within its bound: 109,800 rows with 549 distinct z at p = 268 under 2 GB."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import resource, warnings
import numpy as np
import graphfield as gf
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
p, q, n = 268, 1, 3000
X = rng.normal(size=(n, p)); Z = rng.uniform(-1, 1, (n, q))
model = gf.DNNCGM(max_steps=30, device="cpu", random_state=0).fit(X, Z)
many = rng.choice(rng.uniform(-1, 1, 549), (109_800, 1))
rows = sum(len(block) for block in model.iter_coef(many))
assert rows == 109_800, rows
cut = np.quantile(model.edge_weights(many[:50]), 0.98)
frame = model.edges(many, threshold=float(cut), rule="and")
assert frame["sample"].nunique() == 109_800
print(len(frame), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_streaming_at_the_size_of_the_fmri_study():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    n_edges, megabytes = map(int, done.stdout.split())
    assert n_edges > 10_000_000
    assert megabytes < 2_000
