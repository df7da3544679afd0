"""Run the examples and write docs/examples.md and docs/examples/NAME.md: what they print, draw and are.

python docs/render_examples.py              # all; or name some: breast_cancer stocks
python docs/render_examples.py page         # docs/report-page.png: the page of graphfield demo in a Chromium
python docs/render_examples.py bands        # docs/edge-bands.png: curves with bands on a page
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "examples"
# In the order in which a reader may want them.
NAMES = ("breast_cancer", "individual_differences", "from_table", "stocks", "subjects")
MOST_BYTES = 150_000


def code_of(name: str) -> str:
    return (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")


def about(name: str) -> tuple[str, str]:
    """The question that an example answers, and the rest of what it says at the top."""
    text = ast.get_docstring(ast.parse(code_of(name))) or ""
    question, _, rest = text.partition("\n")  # a title, which a line of "=" follows
    return question, " ".join(rest.lstrip("=").split())


def run(name: str) -> str:
    """Run one example with its pictures in build/examples/NAME; what it printed."""
    shutil.rmtree(ROOT / "build" / "examples" / name, ignore_errors=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = [sys.executable, f"examples/{name}.py"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip()


def pictures(name: str) -> list[str]:
    """Copy the pictures of an example beside its page, as NAME-PICTURE.png."""
    for old in PAGES.glob(f"{name}-*.png"):
        old.unlink()
    found = []
    drawn = (ROOT / "build" / "examples" / name).glob("*.png")
    for picture in sorted(drawn, key=lambda file: file.stat().st_mtime_ns):  # as the script draws them
        if picture.stat().st_size > MOST_BYTES:
            sys.exit(f"{picture} has {picture.stat().st_size:,} bytes, at most {MOST_BYTES:,} are allowed.")
        shutil.copy(picture, PAGES / f"{name}-{picture.name}")
        found.append(picture.stem)
    return found


def page(name: str, printed: str, drawn: list[str]) -> str:
    question, rest = about(name)
    shown = "".join(f"\n![{stem.replace('_', ' ')}]({name}-{stem}.png)\n" for stem in drawn)
    return (
        f"# {question}\n\n{rest}\n\n    python examples/{name}.py\n"
        + f"\n## What it prints\n\n```text\n{printed}\n```\n"
        + (f"\n## What it draws\n{shown}" if drawn else "")
        + f"\n## The script\n\n```python\n{code_of(name)}```\n"
    )


def contents() -> str:
    lines = [f"- [{about(name)[0]}](examples/{name}.md)  \n  {about(name)[1]}" for name in NAMES]
    return (
        "# Examples\n\nShort scripts in `examples/`, each for one question. "
        "`make examples` runs all of them and writes these pages again.\n\n" + "\n".join(lines) + "\n"
    )


def draw_page(width: int = 1280, height: int = 1130) -> None:
    """Write docs/report-page.png: the first screen of the page of ``graphfield demo``."""
    sys.path.insert(0, str(ROOT / "tests"))
    from browser import Browser

    demo = ROOT / "build" / "demo"
    demo.parent.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-m", "graphfield", "demo", "--out", str(demo), "--force"], check=True)
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile), width=width, height=height) as page:
        page.open(demo / "report.html")
        page.run("new Promise((done) => setTimeout(done, 300))")
        page.picture(ROOT / "docs" / "report-page.png")


def draw_bands(width: int = 1280, height: int = 400) -> None:
    """Write docs/edge-bands.png: an edge that changes its sign with age, on the page of a small table."""
    sys.path.insert(0, str(ROOT / "tests"))
    import numpy as np
    import pandas as pd

    import graphfield as gf
    from browser import Browser
    from graphfield.report import write_report

    rng = np.random.default_rng(0)
    Z = pd.DataFrame({"age": rng.uniform(20, 80, 800), "smoker": rng.choice(["no", "yes"], 800)})
    X = pd.DataFrame(rng.normal(size=(800, 6)), columns=["IL6", "CRP", "TNF", "LDL", "HDL", "BMI"])
    X["CRP"] += (0.1 + np.tanh((Z["age"] - 50) / 15) + 0.3 * Z["smoker"].eq("yes")) * X["IL6"] / 2
    X["HDL"] -= 0.5 * X["LDL"]
    edges, model = gf.infer_edges(X, Z, random_state=0), gf.RegGMM().fit(X, Z)
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder), width=width, height=height) as page:
        page.open(write_report(model, Path(folder) / "page.html", Z=Z, edges=edges))
        page.run("document.getElementById('curves').scrollIntoView()")
        page.run("new Promise((done) => setTimeout(done, 300))")
        page.picture(ROOT / "docs" / "edge-bands.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*NAMES, "page", "bands", []], help="some only")
    PAGES.mkdir(parents=True, exist_ok=True)
    for name in parser.parse_args().names or NAMES:
        if name == "bands":
            draw_bands()
            continue
        if name == "page":
            draw_page()
            continue
        print(f"Running examples/{name}.py ...", flush=True)
        printed = run(name)
        (PAGES / f"{name}.md").write_text(page(name, printed, pictures(name)), encoding="utf-8")
    (PAGES.parent / "examples.md").write_text(contents(), encoding="utf-8")


if __name__ == "__main__":
    main()
