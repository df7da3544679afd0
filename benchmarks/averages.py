"""One network, the average of five, and AutoCGM with one of these among its candidates: AUPRC and seconds.

    .venv/bin/python benchmarks/averages.py [--settings S1 D1 N2 D2] [--rows 1000 2000] [--seeds 101 102]
        [--part 0/1]

A line for each data set: AUPRC at 200 new values of z, seconds of each fit, and what AutoCGM kept. ``--part
0/4`` does the first of every four data sets, so that four processes may share a machine (whose seconds then
say little).
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings

import graphfield as gf
from graphfield import metrics
from graphfield.estimators import registry

NEW_ROWS = 200


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--settings", nargs="+", default=["S1", "D1", "N2", "D2"])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 2_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[101, 102])
    parser.add_argument("--part", default="0/1")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    cells = list(itertools.product(arguments.rows, arguments.seeds, arguments.settings))
    warnings.simplefilter("ignore")
    for n, seed, setting in cells[part::parts]:
        print(json.dumps({"setting": setting, "n": n, "seed": seed} | measure(setting, n, seed)), flush=True)


def measure(setting: str, n: int, seed: int) -> dict[str, object]:
    sim = gf.make_setting(setting, n + NEW_ROWS, random_state=seed)
    one_network = [name for name in registry.candidates() if name != "ensemble"]
    models = {
        "one": gf.DNNCGM(random_state=0),
        "ensemble": gf.Ensemble(random_state=0),
        "auto, one": gf.AutoCGM(candidates=one_network, random_state=0),
        "auto": gf.AutoCGM(random_state=0),
    }
    line: dict[str, object] = {}
    for name, model in models.items():
        start = time.perf_counter()
        model.fit(sim.X[:n], sim.Z[:n])
        line[f"{name}, seconds"] = round(time.perf_counter() - start, 1)
        line[name] = round(float(metrics.auprc(model.edge_weights(sim.Z[n:]), sim.skeleton[n:]).mean()), 4)
    kept = models["auto"].chosen_  # type: ignore[attr-defined]
    return line | {"kept": {name: round(weight, 2) for name, weight in kept.items()}}


if __name__ == "__main__":
    main()
