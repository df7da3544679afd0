"""Do models fitted by two states of the code from the same seeds predict the same?

    python benchmarks/same_answers.py BEFORE [AFTER] [--only NAME] [--accuracy] [--out FILE]

BEFORE and AFTER are commits, or folders with a package in them (AFTER: the working tree). Each state fits
all models below in a process of its own, with one thread, and predicts coefficients, edge strengths and nodes
at rows it has not seen. The table has the largest absolute difference of each. With --accuracy, the area
under the precision-recall curve of DNNCGM with 10,000 rows of G1, D1 and S1, two seeds each, by both.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
QUESTIONS = ("predict_coef", "partial_correlations", "predict_precision", "predict")
ENOUGH = 1e-6
ACCURACY = [(setting, seed) for setting in ("G1", "D1", "S1") for seed in (0, 1)]
N_ROWS, N_TEST = 10_000, 1_000


def make_models(gf: Any) -> dict[str, Any]:
    """Name -> what is fitted, and to which data."""
    seed = {"random_state": 0}
    short = {"max_steps": 150, **seed}
    return {
        "DNNCGM": (gf.DNNCGM(**seed), "numbers"),
        "DNNCGM, levels": (gf.DNNCGM(**seed), "levels"),
        "DNNCGM, groups": (gf.DNNCGM(**short), "groups"),
        "DNNCGM, full head": (gf.DNNCGM(rank=None, **short), "numbers"),
        "DNNCGM, normal scores": (gf.DNNCGM(marginals="normal", **short), "skewed"),
        "RegGMM": (gf.RegGMM(), "numbers"),
        "RegGMM, levels": (gf.RegGMM(), "levels"),
        "RegGMM, sparse": (gf.RegGMM(penalty="sparse-group"), "numbers"),
        "NodewiseLasso": (gf.NodewiseLasso(), "numbers"),
        "GraphicalLasso": (gf.GraphicalLasso(), "numbers"),
        "TreeCGM": (gf.TreeCGM(**seed), "numbers"),
        "TreeCGM, levels": (gf.TreeCGM(**seed), "levels"),
        "ArchetypeCGM": (gf.ArchetypeCGM(**short), "numbers"),
        "ByCluster": (gf.ByCluster(estimator=gf.NodewiseLasso()), "clusters"),
        "Ensemble": (gf.Ensemble(estimator=gf.DNNCGM(max_steps=80), n_members=3, **seed), "numbers"),
        "Ensemble, resamples": (
            gf.Ensemble(estimator=gf.RegGMM(), n_members=3, resample=True, **seed),
            "numbers",
        ),
        "AutoCGM": (gf.AutoCGM(**seed), "small"),
    }


def make_data(kind: str) -> dict[str, Any]:
    """Rows to fit, and covariates and nodes of others to be asked: no code of the package is used."""
    rng = np.random.default_rng(7)
    n, p = (300, 6) if kind == "small" else (700, 12)
    z = rng.uniform(-1, 1, (n + 50, 2))
    moves = np.stack([0.45 * (z[:, 0] > 0), 0.4 * np.abs(z[:, 1]), np.full(len(z), 0.4)], axis=1)
    x = rng.normal(size=(n + 50, p))
    for node in range(1, p):
        x[:, node] += moves[:, node % 3] * x[:, node - 1]
    data: dict[str, Any] = {}
    if kind == "skewed":
        x = np.exp(x / 2)
    if kind in ("levels", "clusters"):
        names = np.array(["north", "east", "south"])[np.digitize(z[:, 1], [-0.4, 0.3])]
        frame = pd.DataFrame({"age": z[:, 0], "where": names})[
            ["where"] if kind == "clusters" else ["age", "where"]
        ]
        return {"X": x[:n], "Z": frame[:n], "new": (x[n:], frame[n:])}
    if kind == "groups":
        data["groups"] = np.repeat(np.arange(n // 5), 5)
    return {"X": x[:n], "Z": z[:n], "new": (x[n:], z[n:]), **data}


def answer(out: Path, only: str | None) -> None:
    """Fit by the package that is found first, and keep what the models predict."""
    import graphfield as gf

    for name, (model, kind) in make_models(gf).items():
        if only is not None and only not in name:
            continue
        data = make_data(kind)
        nodes, asked = data.pop("new")
        model.fit(data.pop("X"), data.pop("Z"), **data)
        found = {}
        for question in QUESTIONS:
            method = getattr(model, question, None)
            if method is not None:
                found[question] = method(nodes, asked) if question == "predict" else method(asked)
        np.savez(out / f"{name}.npz", **found)
        print(f"  {name}", file=sys.stderr, flush=True)


def measure_accuracy(out: Path) -> None:
    """Of the package that is found first; one file per fit."""
    import graphfield as gf

    for setting, seed in ACCURACY:
        sim = gf.make_setting(setting, n_samples=N_ROWS + N_TEST, random_state=seed)
        start = time.perf_counter()
        model = gf.DNNCGM(random_state=seed).fit(sim.X[:N_ROWS], sim.Z[:N_ROWS])
        seconds = time.perf_counter() - start
        area = gf.metrics.auprc(model.edge_weights(sim.Z[N_ROWS:]), sim.skeleton[N_ROWS:]).mean()
        np.savez(out / f"{setting}, seed {seed}.npz", auprc=area, seconds=seconds)
        print(f"  {setting}, seed {seed}", file=sys.stderr, flush=True)


def unpack_source(commit: str, folder: Path) -> Path:
    """The package as it was at a commit, or as it is in a folder."""
    if Path(commit, "graphfield").is_dir():
        return Path(commit).resolve()
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


def ask(source: Path, out: Path, options: argparse.Namespace) -> None:
    out.mkdir()
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, "1") | {"PYTHONPATH": str(source)}
    command = [sys.executable, "-W", "ignore", __file__, "--answer", str(out)]
    command += ["--only", options.only] if options.only else []
    subprocess.run(command + ["--accuracy"] * options.accuracy, env=environment, check=True)


def difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    if one.shape != other.shape:
        return float("inf")
    return float(np.max(np.abs(one - other), initial=0.0))


def show_differences(before: Path, after: Path) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    print(f"{'model':26s}" + "".join(f"{name:>22s}" for name in QUESTIONS))
    for file in sorted(before.glob("*.npz")):
        one, other = np.load(file), np.load(after / file.name)
        found = {name: difference(one[name], other[name]) for name in one.files if name in other.files}
        lines.append({"model": file.stem, "largest": max(found.values()), **found})
        print(f"{file.stem:26s}" + "".join(f"{found.get(name, np.nan):22.2g}" for name in QUESTIONS))
    same = sum(line["largest"] <= ENOUGH for line in lines)
    print(f"{same} of {len(lines)} models agree to {ENOUGH:g}.")
    return lines


def show_accuracy(before: Path, after: Path) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    print(f"{'data':14s}{'AUPRC before':>14s}{'after':>10s}{'seconds before':>18s}{'after':>10s}")
    for file in sorted(before.glob("*.npz")):
        one, other = (
            {name: float(kept[name]) for name in kept} for kept in map(np.load, (file, after / file.name))
        )
        lines.append({"data": file.stem, "before": one, "after": other})
        print(
            f"{file.stem:14s}{one['auprc']:14.4f}{other['auprc']:10.4f}"
            f"{one['seconds']:18.1f}{other['seconds']:10.1f}"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", nargs="?")
    parser.add_argument("after", nargs="?")
    parser.add_argument("--only", help="models whose name has this in it")
    parser.add_argument("--accuracy", action="store_true")
    parser.add_argument("--out", type=Path, help="a JSON file for the lines")
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer is not None:
        if options.accuracy:
            measure_accuracy(options.answer)
        else:
            answer(options.answer, options.only)
        return
    if options.before is None:
        parser.error("name a commit to compare with")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = [unpack_source(options.before, folder / "before")]
        sources.append(unpack_source(options.after, folder / "after") if options.after else ROOT / "src")
        for source, out in zip(sources, ("one", "other"), strict=True):
            print(f"fitting by {'the first' if out == 'one' else 'the second'}", file=sys.stderr)
            ask(source, folder / out, options)
        show = show_accuracy if options.accuracy else show_differences
        lines = show(folder / "one", folder / "other")
    if options.out is not None:
        options.out.write_text(json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
