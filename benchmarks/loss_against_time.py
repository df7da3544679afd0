"""Held-out loss against time on setting G1: the straightforward recipe, ours, and a warm start.

    .venv/bin/python benchmarks/loss_against_time.py [--n 10000] [--seed 0] [--out DIR]

One run on the CPU, one after the other: the straightforward implementation with the published schedule
(batch 512, Adam, the rate quartered every 20 epochs), our engine with the same settings, and our engine
with its defaults (batch 128, one cosine cycle, narrower network). All see the same raw rows and the same
held-out rows. Then two short default fits to all rows: from scratch, and from a model of the first nine
tenths of the rows. Writes loss_against_time.json and .png.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graphfield as gf
from graphfield.experiments.bench.ours import our_curve
from graphfield.experiments.bench.problems import G1_STEP
from graphfield.experiments.bench.straightforward import StraightforwardTraining
from graphfield.experiments.specs import paper_recipe
from graphfield.plots import pyplot

EPOCHS = 100
N_HELD_OUT = 1_000
SHORT = 600  # steps of the warm and the cold fit
CPU = torch.device("cpu")


def curves(n: int, seed: int) -> dict[str, list[tuple[float, float]]]:
    sim = gf.make_setting("G1", n + N_HELD_OUT, seed)
    X, Z = sim.X.astype(np.float32), sim.Z.astype(np.float32)
    rows = (X[:n], Z[:n], X[n:], Z[n:])
    problem = replace(G1_STEP, n_rows=n)
    recipe = paper_recipe("G1", n) | {"max_steps": EPOCHS * problem.steps_per_epoch}
    ours = {
        "ours, the same settings": gf.DNNCGM(**recipe),
        "ours, settings of a full head": gf.DNNCGM(rank=None, center="none", standardize=False),
    }
    found = {
        "straightforward": StraightforwardTraining(problem, *rows[:2], CPU, seed).train(EPOCHS, *rows[2:])
    }
    for name, model in ours.items():
        found[name] = our_curve(model, *rows, CPU, until=-np.inf)
    return found


def warm_start(n: int, seed: int) -> dict[str, Any]:
    sim = gf.make_setting("G1", n, seed)
    before = gf.DNNCGM(rank=None, device="cpu", random_state=seed).fit(
        sim.X[: 9 * n // 10], sim.Z[: 9 * n // 10]
    )
    found = {}
    for name, start in (("cold", None), ("warm", before)):
        begin = time.perf_counter()
        model = gf.DNNCGM(rank=None, max_steps=SHORT, device="cpu", random_state=seed + 1)
        model.fit(sim.X, sim.Z, start=start)
        losses = model.training_.held_out_loss
        found[name] = {
            "seconds": time.perf_counter() - begin,
            "best_held_out_loss": float(losses.min()),
            "after_a_tenth_of_the_steps": float(losses.iloc[len(losses) // 10]),
        }
    return {"steps": SHORT, **found}


def draw(found: dict[str, list[tuple[float, float]]], path: Path) -> None:
    plt = pyplot()
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    for (name, curve), style in zip(found.items(), ("-", "--", "-."), strict=True):
        ax.plot(*np.transpose(curve), style, label=name)
    target = found["straightforward"][-1][1]
    ax.axhline(target, color="grey", linewidth=0.8)
    ax.text(ax.get_xlim()[1], target, "straightforward, final ", ha="right", va="bottom", fontsize=8)
    ax.set_xscale("log")
    ax.set_ylim(target - 0.02, target + 0.2)
    ax.set_xlabel("seconds (log)")
    ax.set_ylabel("held-out loss")
    ax.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("loss-against-time"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    found = curves(args.n, args.seed)
    seconds, target = found["straightforward"][-1]
    for name, curve in found.items():
        reached = next((t for t, loss in curve if loss <= target), None)
        when = "not reached" if reached is None else f"{reached:.1f} s ({seconds / reached:.1f}x)"
        print(f"{name:26s} best {min(loss for _, loss in curve):.4f}; {target:.4f} at {when}")
    warm = warm_start(args.n, args.seed)
    print(f"warm start: {json.dumps(warm)}")
    (args.out / "loss_against_time.json").write_text(
        json.dumps({"curves": found, "warm_start": warm}, indent=1)
    )
    draw(found, args.out / "loss_against_time.png")


if __name__ == "__main__":
    main()
