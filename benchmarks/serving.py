"""How fast does a model that was loaded answer: one z, and 100,000 distinct z beside one matrix product?

    .venv/bin/python benchmarks/serving.py [--nodes 50 200] [--rows 100000] [--out FILE.json]

A small ``DNNCGM`` is fitted, saved and loaded. One z is asked for many times; the median, in milliseconds
of the clock and of the processor. Then distinct z stream through ``iter_coef``, ``iter_edges`` and
``predict``, in turns with the least work there is: shares of patterns times patterns, (n x R) times
(R x p^2), into blocks of 64 MB as they are streamed. Ratios are of processor time, the median over the turns.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graphfield as gf
from graphfield.fields.walker import rows_at_a_time

TURNS, REPEATS = 3, 100


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # a fit of a few steps has much to say about itself
    found = []
    for p in arguments.nodes:
        with tempfile.TemporaryDirectory() as folder:
            model = gf.load(small_model(p).save(Path(folder) / "model"))
        found.append({"nodes": p, **answer_one(model), **stream(model, arguments.rows)})
        print(json.dumps(found[-1], indent=1), flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


def small_model(p: int) -> Any:
    """A chain whose edges follow one of two covariates; 8 patterns, as by default, and few steps."""
    rng = np.random.default_rng(0)
    Z, X = rng.uniform(-1, 1, (300, 2)), rng.normal(size=(300, p))
    X[:, 1:] += 0.6 * np.tanh(2 * Z[:, :1]) * X[:, :-1]
    return gf.DNNCGM(max_steps=20, rank=8, penalty=0.2, random_state=0).fit(X, Z)


def answer_one(model: Any) -> dict[str, Any]:
    z = np.array([[0.1, 0.2]])
    asked = {
        "edge_weights": model.edge_weights,
        "predict_coef": model.predict_coef,
        "predict_graph": model.predict_graph,
        "edges": model.edges,
        "field.at": lambda z: model.field_.at(z).weights,
    }
    times = {name: [measure(lambda f=f: f(z)) for _ in range(REPEATS)] for name, f in asked.items()}
    middle = {name: np.median(np.array(pairs)[1:], axis=0) * 1e3 for name, pairs in times.items()}
    return {"one z, ms (wall, cpu)": {name: [round(v, 2) for v in pair] for name, pair in middle.items()}}


def stream(model: Any, n: int) -> dict[str, Any]:
    rng, p = np.random.default_rng(1), model.n_features_in_
    Z, X = rng.uniform(-1, 1, (n, 2)), rng.normal(size=(n, p))
    patterns = model.field_.network.head.weight.detach()[0, :-1].flatten(1)  # (R, p^2)
    shares = torch.rand(n, len(patterns))

    def product() -> None:
        for part in shares.split(rows_at_a_time(p)):
            part @ patterns

    asked = {
        "product": product,
        "iter_coef": lambda: deque(model.iter_coef(Z), maxlen=0),
        "iter_edges": lambda: deque(model.iter_edges(Z), maxlen=0),
        "predict": lambda: model.predict(X, Z),
    }
    times = np.array([[measure(f)[1] for f in asked.values()] for _ in range(TURNS)])
    rows, ratios = np.median(times, axis=0) / n * 1e6, np.median(times / times[:, :1], axis=0)
    return {
        "rows": n,
        "microseconds a row (cpu)": dict(zip(asked, rows.round(1).tolist(), strict=True)),
        "times the product": dict(zip(asked, ratios.round(2).tolist(), strict=True)),
    }


def measure(function: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    main()
