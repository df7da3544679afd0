"""How long the report page takes to open and to follow a slider, by number of nodes.

    .venv/bin/python benchmarks/page_speed.py [--nodes 25 76 150 300] [--width 1280]

Chains of eight nodes whose edges turn with age, fitted with RegGMM. Needs a Chromium. Milliseconds of the
processor on the page's main thread (scripts, layout and drawing; other work on the machine does not count),
of opening the page and of one move of the slider: the mean of 40, with the table and curves that follow when
it rests.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import graphfield as gf
from graphfield.report import write_report

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from browser import Browser

MOVES = 40
MOVE = f"""(async () => {{
  const slider = document.querySelector('#covariates input[type=range]');
  for (let i = 0; i < {MOVES}; i++) {{
    slider.value = Number(slider.min) + (i / {MOVES}) * (slider.max - slider.min);
    slider.dispatchEvent(new Event('input', {{bubbles: true}}));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  }}
  await new Promise((done) => setTimeout(done, 400));
}})()"""


def written(p: int, path: Path) -> Path:
    rng = np.random.default_rng(0)
    Z = pd.DataFrame({"age": rng.uniform(20, 80, 600)})
    X = rng.normal(size=(600, p))
    turn = 0.9 * np.sin(Z["age"].to_numpy() / 15)
    for j in range(1, p):
        if j % 8:
            X[:, j] += (0.9 if j % 3 else turn) * X[:, j - 1]
    model = gf.RegGMM().fit(pd.DataFrame(X, columns=[f"node_{i}" for i in range(p)]), Z)
    near = np.abs(np.subtract.outer(np.arange(p), np.arange(p))) <= 2
    model.field_ = model.field_.with_threshold(
        replace(model.threshold_, value=0.1, clear=near & ~np.eye(p, dtype=bool))
    )
    return write_report(model, path, Z=Z, overwrite=True)


def busy(browser: Browser) -> float:
    """Milliseconds that the main thread has worked; every page has a thread of its own."""
    metrics = browser.call("Performance.getMetrics")["metrics"]
    return 1000 * next(one["value"] for one in metrics if one["name"] == "TaskDuration")


def measured(browser: Browser, path: Path) -> tuple[float, float]:
    browser.open(path)
    browser.run("new Promise((done) => setTimeout(done, 500))")
    opened = busy(browser)
    browser.run(MOVE)
    return opened, (busy(browser) - opened) / MOVES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[25, 76, 150, 300])
    parser.add_argument("--width", type=int, default=1280)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder) / "profile") as browser:
        browser.call("Performance.enable", timeDomain="threadTicks")
        browser.resize(options.width, 900)
        for p in options.nodes:
            opening, move = measured(browser, written(p, Path(folder) / f"{p}.html"))
            print(
                f"{p:4d} nodes: opens in {opening:5.0f} ms, one move of the slider {move:5.1f} ms", flush=True
            )


if __name__ == "__main__":
    main()
