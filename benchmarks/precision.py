"""Does rounding the factors of the large products change how training goes?

    .venv/bin/python benchmarks/precision.py [--device cuda] [--n 10000] [--seeds 0 1 2] [--out FILE.json]

The same fits of setting G1 (same rows, batches and dropout) with every precision that an engine may use:
on CUDA bfloat16 (the default), TF32 and float32 in the kernels of the head; on the CPU float32 and, where
the processor has AMX, bfloat16 in large products. Printed are the best held-out loss of each fit and the
largest difference between loss curves, beside the difference that another seed makes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graphfield as gf
from graphfield.metrics import auprc
from graphfield.nn import precision as machine

N_TEST = 1_000


@contextmanager
def precision(name: str, device: str) -> Iterator[None]:
    if device == "cuda":
        from graphfield.nn.triton_head import fused

        before = fused.__defaults__
        fused.__defaults__ = (name,)
        try:
            yield
        finally:
            fused.__defaults__ = before
        return
    before_size = machine.LARGE_PRODUCT
    machine.LARGE_PRODUCT = 0 if name == "bf16" else 10**18
    try:
        yield
    finally:
        machine.LARGE_PRODUCT = before_size


def fitted(name: str, device: str, n: int, seed: int) -> dict[str, Any]:
    sim = gf.make_setting("G1", n_samples=n + N_TEST, random_state=seed)
    with precision(name, device):
        model = gf.DNNCGM(rank=None, center="none", patience=None, device=device, random_state=seed)
        model.fit(sim.X[:n], sim.Z[:n])
    score = float(auprc(model.edge_weights(sim.Z[n:]), sim.skeleton[n:]).mean())
    return {
        "precision": name,
        "seed": seed,
        "curve": model.training_.held_out_loss.tolist(),
        "best": float(model.training_.held_out_loss.min()),
        "auprc": score,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    names = ("ieee", "tf32", "bf16") if args.device == "cuda" else ("ieee", "bf16")
    fits = [fitted(name, args.device, args.n, seed) for seed in args.seeds for name in names]
    for seed in args.seeds:
        exact, *others = (fit for fit in fits if fit["seed"] == seed)
        print(f"seed {seed}  {exact['precision']}: best {exact['best']:.5f}, AUPRC {exact['auprc']:.4f}")
        for fit in others:
            apart = np.abs(np.subtract(fit["curve"], exact["curve"])).max()
            print(
                f"        {fit['precision']}: best {fit['best']:.5f}, AUPRC {fit['auprc']:.4f}, "
                f"curves at most {apart:.5f} apart"
            )
    if args.out is not None:
        args.out.write_text(json.dumps({"device": args.device, "n": args.n, "fits": fits}, indent=1))


if __name__ == "__main__":
    main()
